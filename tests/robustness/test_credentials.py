"""A credential that is found is copied nowhere: no cache, log, draft or argument of git has it; nothing shows it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.support.helpers import Place, a_handoff, run_cli
from truekeep.core.formats import CATALOG, FACTS, INDEX, SURVEY
from truekeep.handoffs.policy import additions
from truekeep.interfaces.mcp.responses import one_line
from truekeep.text.secrets.scanner import cover_secrets, find_secrets, mask_lines, mask_secrets

TOKENS = {
    "github": "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY3zA5",
    "stripe": "sk_live_" + "51Hx9KqLmN3pR7sTvW2yZ4bC",
    "npm": "npm_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY3zA5",
    "shopify": "shpat_" + "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "digitalocean": "dop_v1_" + "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9",
}
AWS = "AKIA" + "QYLPMN5HHHFPZAM2"
AWS_SECRET = "wJalrXUtnFEMI7K7MDENGbPxRfiCYzq8pT2vLm4Q"


@pytest.fixture
def git_log(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What git is asked, with all arguments: any local user can read them."""
    log, folder, real = place.base / "git.log", place.base / "bin", shutil.which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {log}\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    run = ["-c", "user.name=a", "-c", "user.email=a@b"]
    (place.repo / "app.py").write_text("def main():\n    return 1\n")
    for arguments in (["init", "-q"], ["add", "-A"], [*run, "commit", "-qm", "Begin"]):
        subprocess.run(["git", "-C", str(place.repo), *arguments], check=True)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(place.workspace))
    return log


def copies(place: Place, value: str, *more: Path, but: tuple[Path, ...] = ()) -> list[str]:
    """Every file in the places that are truekeep's own that has a value in it."""
    found = []
    home = Path(os.environ["HOME"])
    for root in (place.workspace, home, *more):
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.is_symlink() or not stat.S_ISREG(path.stat().st_mode) or path in but:
                continue
            if value.encode() in path.read_bytes():
                found.append(str(path.relative_to(place.base) if path.is_relative_to(place.base) else path))
    return found


def everything(place: Place) -> str:
    """Run what reads memory, and give all that was said."""
    said = ""
    for arguments in (
        ["ingest"], ["ingest"], ["verify"], ["verify", "--json"], ["verify", "--fix", "--dry-run"], ["index"],
        ["search", "the key for deploys"], ["search", "the key for deploys", "--json"],
        ["wake"], ["wake", "--json"], ["status"], ["status", "--json"],
        ["review", "list"], ["review", "list", "--json"], ["reconcile"], ["history"], ["history", "--json"],
        ["tidy"], ["doctor"], ["doctor", "--json"], ["repos"], ["repos", "--json"], ["handoff", "list"],
    ):  # fmt: skip
        done = run_cli(*arguments, cwd=place.repo)
        assert "Traceback" not in done.stderr
        said += f"\n$ {arguments}\n{done.stdout}{done.stderr}"
    return said


FIELDS = ("title", "summary", "facts", "evidence", "topic", "tags", "body", "heading", "document", "name", "card")


def handoff_with(token: str, field: str) -> tuple[str, str]:
    """A handoff, and its name, with a token in backticks in one field."""
    there = f"Deploys use the key `{token}` for the release."
    name = "2026-11-14-0900-deploy.md"
    if field == "document":
        return a_handoff(action="no-card", document="TOOLS.md", document_content=f"### Deploys\n{there}"), name
    front = {"topic": "Deploys", "tags": "deploy"}
    front |= {field: f"'{there}'"} if field in front else {}
    body = f"## {there}\n\nSee `app.py`." if field == "heading" else there if field == "body" else "See `app.py`."
    content = f"---\ntopic: {front['topic']}\ncategory: setup\ntags: [{front['tags']}]\n---\n{body}\n"
    text = a_handoff(
        title=there if field == "title" else "Deploys",
        summary=there if field == "summary" else "How deploys work.",
        facts=f"- {there if field == 'facts' else 'Deploys run at night'}",
        card=f"{token}.md" if field == "card" else "deploys.md",
        content=content,
    )
    if field == "evidence":
        text = text.replace("deploy/proxy.conf", f"`{token}`")
    return text, f"2026-11-14-0900-deploy-{token}.md" if field == "name" else name


@pytest.mark.parametrize("field", FIELDS)
def test_a_credential_of_a_handoff_is_copied_nowhere(place: Place, git_log: Path, field: str) -> None:
    """The handoff itself keeps it, in processed/ of its own inbox: that is the original, and no copy."""
    for vendor, token in TOKENS.items():
        text, name = handoff_with(token, field)
        place.leave(text, name.replace("deploy", f"deploy-{vendor}"))
    said = everything(place)
    assert git_log.exists()
    assert len(place.processed()) == len(TOKENS)
    for token in TOKENS.values():
        assert copies(place, token, git_log) == []
        assert token not in said


LINE = "The key for {} deploys is `{}`; see `app.py` for what the release does.\n"
BODY = "".join(f"- {LINE.format(vendor, token)}" for vendor, token in TOKENS.items())


@pytest.fixture
def remembered(place: Place, git_log: Path) -> list[Path]:
    """What a person wrote, with tokens: in a card, in its frontmatter, in a document, in logs."""
    memory = place.workspace / "memory"
    card, front, tools = memory / "cards" / "deploys.md", memory / "cards" / "keys.md", place.workspace / "TOOLS.md"
    log, other = memory / "2026-11-15.md", memory / "2026-11-16.md"
    head = "category: setup\ntags: [deploy]\nrepository: app\ncreated: 2026-11-14\nupdated: 2026-11-14\n"
    card.write_text(f"---\ntopic: Deploys\n{head}---\n{BODY}")
    every = " ".join(f"`{token}`" for token in TOKENS.values())
    front.write_text(f"---\ntopic: Keys {every}\n{head}---\nThe keys are above; `main` uses them.\n")
    tools.write_text(f"# Tools\n\n{BODY}")
    log.write_text(f"# 2026-11-15\n\n- [decision|i=0.9] {LINE.format('github', TOKENS['github'])}{BODY}")
    other.write_text(f"# 2026-11-16\n\n- [decision|i=0.9] {LINE.format('github', TOKENS['github'])}{BODY}")
    handover = place.workspace / "HANDOVER.md"
    handover.write_text(f"# Handover\n\n{BODY}")
    return [card, front, tools, log, other, handover]


def test_a_credential_of_memory_is_shown_and_cached_nowhere(
    place: Place, git_log: Path, remembered: list[Path]
) -> None:
    said = everything(place)
    for arguments in (
        *(["get", str(path.relative_to(place.workspace)), *how] for path in remembered for how in ([], ["--json"])),
        ["card", "show", "deploys"], ["card", "show", "keys", "--json"], ["card", "list"], ["card", "list", "--json"],
        ["verify", "--list-claims", "memory/cards/deploys.md"],
        ["verify", "--list-claims", "memory/cards/deploys.md", "--json"],
        ["verify", "memory/cards/deploys.md"], ["blame", "memory/cards/deploys.md"], ["resolve", "deploys"],
        ["search", "deploys key", "--verified"], ["search", "deploys", "--explain"], ["tidy", "--fix"], ["wake"],
        ["note", "log"],
    ):  # fmt: skip
        done = run_cli(*arguments, cwd=place.repo)
        said += f"\n$ {arguments}\n{done.stdout}{done.stderr}"
    for event in ("session-start", "user-prompt-submit", "pre-compact"):
        payload = {"session_id": "s", "cwd": str(place.repo), "source": "startup", "prompt": "the key for npm deploys"}
        said += run_cli("hook", event, stdin=json.dumps(payload), cwd=place.repo).stdout
    assert "[secret: github-token]" in said
    for token in TOKENS.values():
        assert copies(place, token, git_log, but=tuple(remembered)) == []
        assert not [line for line in said.splitlines() if token in line]


PASSWORD = "Vq7rT2mX" + "w9LpZ4kN"


@pytest.mark.parametrize("field", ["title", "topic", "body", "name", "card"])
def test_a_password_is_copied_nowhere_once_one_line_says_what_it_is(place: Place, git_log: Path, field: str) -> None:
    text, name = handoff_with(PASSWORD, field)
    place.leave(f"{text}\n- password: {PASSWORD}\n", name)
    said = everything(place)
    for draft in place.drafts():
        said += run_cli("review", "show", draft.stem, cwd=place.repo).stdout
    assert "looks like a credential" in said
    assert copies(place, PASSWORD, git_log) == []
    assert PASSWORD not in said


def test_what_shows_a_memory_file_masks_a_password_on_every_line(place: Place, git_log: Path) -> None:
    there = f"- password: {PASSWORD}\n- Log in as ada with {PASSWORD}.\n"
    card = place.workspace / "memory/cards/logins.md"
    card.parent.mkdir(parents=True, exist_ok=True)
    card.write_text(f"---\ntopic: Logins\nupdated: 2026-11-14\n---\n{there}")
    (place.workspace / "HEARTBEAT.md").write_text(f"# Heartbeat\n\n## Now\n\n{there}")
    said = everything(place)
    for arguments in (["card", "show", "logins"], ["note", "heartbeat"], ["note", "heartbeat", "--json"]):
        done = run_cli(*arguments, cwd=place.repo)
        assert "[secret: assigned-password]" in done.stdout, arguments
        said += done.stdout
    assert PASSWORD not in said


def test_what_an_older_truekeep_cached_is_gone(place: Place, git_log: Path, remembered: list[Path]) -> None:
    run_cli("index", cwd=place.repo)
    run_cli("verify", cwd=place.repo)
    run_cli("status", cwd=place.repo)
    state = place.workspace / ".truekeep"
    older = {INDEX: 1, FACTS: 3, CATALOG: 2, SURVEY: 4}
    for known, number in older.items():
        db = apsw.Connection(str(state / known.file))
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("CREATE TABLE old (text TEXT)")
        db.execute("INSERT INTO old VALUES (?)", (TOKENS["github"],))
        db.execute(f"PRAGMA user_version = {number}")
        db.close()
    assert len(copies(place, TOKENS["github"], but=tuple(remembered))) == 4
    place.leave(a_handoff())
    everything(place)
    assert copies(place, TOKENS["github"], but=tuple(remembered)) == []


def test_both_halves_of_a_key_pair_are_masked(place: Place, git_log: Path) -> None:
    text = f"Access key {AWS} with secret {AWS_SECRET} for the bucket."
    assert mask_secrets(text) == (
        "Access key [secret: aws-access-key-id] with secret [secret: nearby-secret] for the bucket."
    )
    place.leave(a_handoff(summary=text, content=f"---\ntopic: Bucket\ntags: []\n---\n{text}\n"))
    said = everything(place)
    for value in (AWS, AWS_SECRET):
        assert copies(place, value, git_log) == []
        assert value not in said


@pytest.mark.parametrize(
    "near",
    ["see src/truekeep/secrets/lookalikes.py", "in the internationalization-of-everything", "on 2026-11-14"],
)
def test_what_stands_near_a_key_and_is_none_stays(near: str) -> None:
    assert near in str(mask_secrets(f"Access key {AWS} {near} for the bucket."))


@pytest.mark.parametrize(
    "url", ["https://h.example/{}/y.git", "https://{}@h.example/x/y.git", "https://h.example/x/y?k={}"]
)
def test_a_token_in_a_remote_is_no_part_of_a_name(place: Place, git_log: Path, url: str) -> None:
    token = TOKENS["github"]
    subprocess.run(["git", "-C", str(place.repo), "remote", "add", "origin", url.format(token)], check=True)
    git_log.unlink()  # that was this test
    place.leave(a_handoff())
    said = everything(place)
    assert place.cards() == ["staging-proxy.md"]
    assert "h.example" in place.card()
    assert copies(place, token, git_log) == []
    assert token not in said


@pytest.mark.parametrize(
    "text",
    [
        "no secret\n",
        BODY,
        f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEpAIBAAKCAQEA7' * 9}\n-----END RSA PRIVATE KEY-----\nafter\n",
    ],
)
def test_masks_keep_lines_and_covers_keep_places(text: str) -> None:
    masked, covered = mask_lines(text), cover_secrets(text)
    assert masked.count("\n") == text.count("\n")
    assert [len(line) for line in covered.split("\n")] == [len(line) for line in text.split("\n")]
    assert not find_secrets(masked)
    assert not find_secrets(covered)
    assert all(new in (old, " ") for old, new in zip(text, covered, strict=True))


@pytest.mark.parametrize(("shown", "width"), [(lambda text: one_line(text, 80), 80), (additions._cited, 160)])
def test_a_credential_is_masked_before_a_line_is_cut(shown: Callable[[str], str], width: int) -> None:
    token = TOKENS["github"]
    assert token[4:8] not in shown("a" * (width - 12) + " " + token), "half a token is not recognised any more"
