"""What the fault tests share: a good neighbour beside every bad file, and the oracles that must always hold."""

from __future__ import annotations

import random
import string
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from tests.support.helpers import Place, a_card, a_handoff, run_cli, tree
from truekeep.core.model import IngestReport

BAD = "2026-11-14-0900-bad.md"
GOOD = "2026-11-14-0901-good.md"
GOOD_CARD = "release-branch.md"


def leave_good(place: Place) -> Path:
    """A handoff that must be filed whatever lies beside it."""
    content = a_card("Release branch", "Deploys start from the branch called release and from nowhere else.")
    return place.leave(a_handoff(title="Where deploys start", card=GOOD_CARD, content=content), GOOD)


def ingest_beside_good(place: Place) -> IngestReport:
    """One run over whatever was left and a good handoff; nothing outside may change, the good one must be filed."""
    outside = place.base / "outside"
    outside.mkdir(exist_ok=True)
    before = tree(outside)
    leave_good(place)
    report = place.ingest()
    assert place.outcomes()[GOOD] == "promoted"
    assert GOOD_CARD in place.cards()
    assert tree(outside) == before
    return report


def outside_file(place: Place, name: str = "private.md", text: str = "outside, not for memory\n") -> Path:
    path = place.base / "outside" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def whole(place: Place, raw: bytes) -> bool:
    """Whether a handoff's bytes are still somewhere: in an inbox, in processed/, or in a draft."""
    in_inbox = any(
        path.is_file() and not path.is_symlink() and path.stat().st_size == len(raw) and path.read_bytes() == raw
        for path in place.inbox.rglob("*")
    )
    return in_inbox or any(raw in path.read_bytes() for path in place.drafts())


def why(place: Place, name: str) -> str:
    return next(item.why for item in place.filed if item.name == name)


def truekeep(place: Place, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command on the place; it may say no, but it may not break."""
    done = run_cli(*arguments, "-w", str(place.workspace), cwd=place.repo, stdin=stdin)
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "a bug" not in said, said
    assert done.returncode != 70
    return done


def everything_shown(place: Place) -> str:
    """What review and history print about this workspace, with and without --json."""
    said = []
    for command in (("review", "list"), ("history", "--all"), *(("review", "show", d.stem) for d in place.drafts())):
        for more in ((), ("--json",)):
            done = truekeep(place, *command, *more)
            assert done.returncode == 0, done.stderr
            said += [done.stdout, done.stderr]
    return "\n".join(said)


def stored_bytes(place: Place) -> Iterator[tuple[str, bytes]]:
    """Every byte below the workspace: file names, files as they are, and what the databases hold, unpacked."""
    for path in sorted(place.workspace.rglob("*")):
        yield f"name of {path}", str(path.relative_to(place.workspace)).encode("utf-8", "surrogateescape")
        if path.is_file() and not path.is_symlink():
            yield str(path), path.read_bytes()
    for path in sorted((place.workspace / ".truekeep").glob("*.sqlite")):
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in db.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, bytes):
                        yield f"{path.name}:{table}", value
                        try:
                            yield f"{path.name}:{table} unpacked", zlib.decompress(value)
                        except zlib.error:
                            continue
                    else:
                        yield f"{path.name}:{table}", str(value).encode()
        db.close()


def assert_nowhere(place: Place, *values: str, said: str = "") -> None:
    """A value is in no file of the workspace, in no database, and in nothing that was printed."""
    for value in values:
        assert len(value) > 7
        for where, data in stored_bytes(place):
            assert value.encode().lower() not in data.lower(), f"the secret is in {where}"
        assert value.lower() not in said.lower(), "the secret was printed"


def made_up(length: int, *, seed: int = 1, letters: str = string.ascii_letters + string.digits) -> str:
    """Random characters, the same in every run, of every class that the alphabet has."""
    random_ = random.Random(seed)
    while True:
        text = "".join(random_.choice(letters) for _ in range(length))
        if not any(c.isdigit() for c in letters) or any(c.isdigit() for c in text[-12:]):
            return text


def fake_token(seed: int = 1) -> str:
    """What looks like a GitHub token and never was one."""
    return "ghp" + "_" + made_up(36, seed=seed)
