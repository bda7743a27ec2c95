"""Rules of .gitignore files, held against git itself; and which documents of a workspace are found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from truekeep.memory.document_scan import iter_current, iter_workspace
from truekeep.memory.ignore_rules import is_ignored, parse_ignore_rules

PATTERNS = (
    "*.log",
    "/build",
    "out/",
    "docs/*.md",
    "**/cache",
    "a/**/z.md",
    "tmp/**",
    "*.md\n!keep.md",
    "note-?.md",
    "[ab].md",
    "[!ab].md",
    "*a*b*c.md",
    "# comment",
    "\\#name.md",
    "!",
    "",
    "x*y*",
    "name with blank.md",
)
PATHS = (
    "a.md",
    "b.md",
    "c.md",
    "keep.md",
    "note-1.md",
    "note-12.md",
    "run.log",
    "build",
    "sub/build",
    "docs/x.md",
    "sub/docs/x.md",
    "docs/deep/x.md",
    "cache",
    "deep/cache",
    "a/z.md",
    "a/b/c/z.md",
    "tmp/x/y.md",
    "xaxbxc.md",
    "xabc.md",
    "acb.md",
    "#name.md",
    "xay.md",
    "xaya",
    "name with blank.md",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_path_is_ignored_as_git_ignores_it(pattern: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(pattern + "\n")
    asked = "\n".join(PATHS)
    done = subprocess.run(
        ["git", "-C", str(tmp_path), "-c", "core.quotePath=false", "check-ignore", "--no-index", "--stdin"],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    rules = (parse_ignore_rules("", pattern + "\n"),)
    ours = [path for path in PATHS if _is_ignored_with_folders(path, rules)]
    assert ours == [path for path in PATHS if path in done.stdout.splitlines()]


def _is_ignored_with_folders(path: str, rules: tuple[object, ...]) -> bool:
    """As a walk does it: what is in an ignored folder is never reached."""
    parts = path.split("/")
    folders = ("/".join(parts[:at]) for at in range(1, len(parts)))
    ignored = (is_ignored(folder, rules, is_folder=True) for folder in folders)  # type: ignore[arg-type]
    return any(ignored) or is_ignored(path, rules, is_folder=False)  # type: ignore[arg-type]


def test_a_hostile_pattern_is_matched_at_once() -> None:
    rules = parse_ignore_rules("", "*a" * 60 + "*b\n" + "**/" * 40 + "x\n")
    assert rules.find("a" * 250 + "c", is_folder=False) is None


def test_the_nearest_file_decides(tmp_path: Path) -> None:
    rules = (parse_ignore_rules("", "*.md\n"), parse_ignore_rules("notes/", "!kept.md\n"))
    assert is_ignored("plan.md", rules, is_folder=False)
    assert not is_ignored("notes/kept.md", rules, is_folder=False)


def test_documents_that_people_wrote_are_found_and_others_are_not(tmp_path: Path) -> None:
    kept = ("MEMORY.md", "PLAN.md", "clients/becker/offer.md", "memory/2026-01-02.md")
    left = (
        "node_modules/pack/README.md",
        "skills/weather/SKILL.md",
        "skills/weather/notes.md",
        "checkout/README.md",
        "out/report.md",
    )
    for path in (*kept, *left):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("# Something\n\nwritten down\n")
    (tmp_path / "checkout/.git").mkdir()
    (tmp_path / ".gitignore").write_text("out/\n")
    assert sorted(file.path for file in iter_workspace(str(tmp_path))) == sorted(kept)


def test_what_tells_how_things_are_has_instructions_and_no_backups(tmp_path: Path) -> None:
    kept = ("AGENTS.md", "HEARTBEAT.md", "clients/CLAUDE.md", "notes/plan.md", "memory/a.md")
    left = ("7-backups/2026/plan.md", "memory/backups/a.md", "site_backup_20260102/a.md", "BOOTSTRAP.md")
    for path in (*kept, *left):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("# Something\n")
    assert sorted(file.path for file in iter_current(str(tmp_path))) == sorted(kept)
