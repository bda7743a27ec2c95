"""How fast check is on a repository of Django's size, beside `rg -F -w -f` with the words of the same claims.

A pull request of twenty files or more, warm and in a fresh clone without history; all documents, cold and warm. CPU
seconds with those of git, and the memory of the largest process.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.check.repositories import PublicRepository
from bench.measure import child, scratch, table
from bench.promises import CannotRun, keep
from bench.real.workspaces import git
from truekeep.check.documents import find_documents
from truekeep.check.settings import read_settings
from truekeep.core.git import Git
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.memory_reader import read_memory

FILES = 20  # of a pull request, at least
CHECK = (sys.executable, "-m", "truekeep", "check", "--json")
ACCEPT_ALARMS = ("sh", "-c", '"$@"; test $? -lt 14', "sh")


def main(repository: PublicRepository, clone: Path) -> None:
    if shutil.which("rg") is None:
        raise CannotRun("rg is not installed")
    with scratch() as folder:
        root, home = folder / repository.name, folder / "home"
        repository.check_out(clone, root)
        words = folder / "words"
        words.write_text("".join(f"{word}\n" for word in sorted(set(read_words(root)))), encoding="utf-8")
        base = find_base(root)
        alone = folder / "alone" / repository.name
        clone_alone(clone, repository.commit, base, alone)
        since = ("--since", base)
        rows = {
            "pull request, fresh clone of depth 1": measure(alone, folder / "other-home", *since),
            "all documents, cold": measure(root, home),
            "all documents, warm": measure(root, home),
            "rg with the same words": child(["rg", "-F", "-w", "-f", str(words), "--hidden", "-g", "!.git", str(root)]),
        }
        measure(root, home, *since)
        rows["pull request, warm"] = measure(root, home, *since)
    show(rows)


def read_words(root: Path) -> Iterator[str]:
    for path in find_documents(Git(str(root)), root, (), read_settings(root)):
        text = read_memory(str(root / path), path)
        if text is not None:
            claims, _ = extract_claims(text.text, is_rst=path.endswith((".rst", ".txt")))
            yield from (claim.name for claim in claims)


def find_base(root: Path) -> str:
    """The newest commit from which at least twenty files changed."""
    for commit in git("-C", str(root), "rev-list", "--first-parent", "-200", "HEAD").split()[1:]:
        if len(git("-C", str(root), "diff", "--name-only", commit, "HEAD").splitlines()) >= FILES:
            return commit
    raise CannotRun(f"{root.name} has no change of {FILES} files")


def clone_alone(clone: Path, commit: str, base: str, target: Path) -> None:
    """A checkout as a CI job has it: two commits, and nothing of what is between or before them."""
    git("init", "--quiet", str(target))
    for one in (base, commit):
        git("-C", str(target), "fetch", "--quiet", "--depth", "1", f"file://{clone.resolve()}", one)
    git("-C", str(target), "-c", "advice.detachedHead=false", "checkout", "--quiet", "-B", "main", commit)


def measure(root: Path, home: Path, *more: str) -> tuple[float, int]:
    home.mkdir(exist_ok=True)
    place = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return child([*ACCEPT_ALARMS, *CHECK, "--repo", str(root), *more], **place)


def show(rows: dict[str, tuple[float, int]]) -> None:
    grep = rows["rg with the same words"][0]
    table(
        ("", "CPU s", "beside rg", "MB"),
        [(name, f"{cpu:.2f}", f"{cpu / grep:.2f}", str(peak // 1024)) for name, (cpu, peak) in rows.items()],
    )
    keep("check.pull-request", rows["pull request, warm"][0])
    keep("check.fresh", rows["pull request, fresh clone of depth 1"][0])
    keep("check.warm", rows["all documents, warm"][0] / grep)
    keep("check.cold", rows["all documents, cold"][0] / grep)
    keep("check.memory", max(peak for name, (_, peak) in rows.items() if not name.startswith("rg")) / 1024)
