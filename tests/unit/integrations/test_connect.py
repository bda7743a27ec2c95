"""Connect and disconnect: what goes in comes out again, byte for byte, whatever the files look like."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.harnesses import put_stand_ins
from tests.support.helpers import Place, a_handoff, git_repo, run_cli
from truekeep.core import file_io
from truekeep.core.harness_paths import Homes, find_homes
from truekeep.core.openclaw_config import parse_json5
from truekeep.integrations.harnesses import apply, installed, plugin_files
from truekeep.integrations.harnesses.instruction_block import IGNORE_MARKS, RULE_MARKS, render_rule
from truekeep.interfaces.cli.app import run
from truekeep.text.managed_block import BrokenBlock, cut_block, put_block
from truekeep.workspace.workspace import Workspace

VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR", "OPENCLAW_PROFILE", "OPENCLAW_CONFIG_PATH")
NAMES = ("claude", "codex", "openclaw")
SETTINGS = b'{"theme":"dark",\r\n  "hooks":{"Stop":[{"hooks":[{"type":"command","command":"other"}]}]}}'
CONFIG = b'# mine\r\nmodel = "gpt-5" # c\r\nfeatures = { hooks = true }\r\n[projects."/x"]\r\ntrust_level = "trusted"'
OPENCLAW = b"""// mine
{
  agents: { defaults: { workspace: '~/.openclaw/workspace', }, }, // yes
  memory: { search: { extraPaths: ["/n"] } },
}"""


@pytest.fixture(autouse=True)
def bare_machine(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No harness, and none of the developer's folders."""
    for name in (*VARIABLES, "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()


@pytest.fixture
def homes() -> Homes:
    return find_homes()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return git_repo(tmp_path / "app")


@pytest.fixture
def machine(tmp_path: Path, homes: Homes) -> Homes:
    """A machine with all three harnesses, each with a configuration of its own style."""
    put_stand_ins(tmp_path / "bin")
    for path, data in (
        (homes.claude / "settings.json", SETTINGS),
        (homes.claude_json, b'{"numStartups": 7, "mcpServers": {}}\n'),
        (homes.codex / "config.toml", CONFIG),
        (homes.openclaw_json, OPENCLAW),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return homes


def picture(*roots: Path) -> dict[str, object]:
    """Every file and folder below these, with bytes and mode; links as links."""
    found: dict[str, object] = {}
    for root in roots:
        for folder, names, files in os.walk(root):
            names[:] = [name for name in names if name != ".git"]
            for name in (*names, *files):
                path = Path(folder) / name
                info = path.lstat()
                if stat.S_ISLNK(info.st_mode):
                    found[str(path)] = os.readlink(path)
                elif stat.S_ISDIR(info.st_mode):
                    found[str(path)] = "folder"
                else:
                    found[str(path)] = (path.read_bytes(), stat.S_IMODE(info.st_mode))
    return found


def connect(repo: Path, *more: str) -> int:
    return run(["connect", "--repo", str(repo), "--yes", *more])


def disconnect(repo: Path, *more: str) -> int:
    return run(["disconnect", "--repo", str(repo), "--yes", *more])


def untracked(repo: Path) -> str:
    command = ["git", "-C", str(repo), "status", "--short", "-uall"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def only_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# Blocks.

TEXTS = st.text(alphabet=st.sampled_from("ab# \n\r\ufeff<!-"), max_size=40)


class TestBlocks:
    @given(TEXTS, st.sampled_from((RULE_MARKS, IGNORE_MARKS)))
    def test_cutting_undoes_putting(self, text: str, marks: Any) -> None:
        data = text.encode()
        once = put_block(data, "one\n\ntwo\n", marks)
        assert cut_block(once, marks) == data
        assert put_block(once, "one\n\ntwo\n", marks) == once
        assert cut_block(put_block(once, "other\n", marks), marks) == data

    @given(TEXTS.map(lambda text: text.replace("\r", "")), TEXTS.map(lambda text: text.replace("\r", "")))
    def test_what_a_person_writes_around_it_stays(self, above: str, below: str) -> None:
        first = put_block(b"mine\n", "rule\n", RULE_MARKS)
        edited = above.encode() + b"\n" + first + b"\n" + below.encode()
        assert cut_block(edited, RULE_MARKS) == above.encode() + b"\nmine\n\n" + below.encode()

    @given(TEXTS.filter(lambda text: not text.endswith("\n")))
    @example("\r\n\r")
    def test_what_is_appended_begins_a_line_of_its_own(self, text: str) -> None:
        data = text.encode()
        appended = put_block(data, "rule\n", IGNORE_MARKS) + b"dist\n"
        above, _, last = cut_block(appended, IGNORE_MARKS).removesuffix(b"\n").rpartition(b"\n")
        assert last.removeprefix(b"\xef\xbb\xbf") == b"dist"
        assert not data or above in (data, data + b"\r") or data == b"\xef\xbb\xbf"

    def test_crlf_is_kept(self) -> None:
        assert b"\n" not in put_block(b"a\r\nb\r\n", "x\ny\n", RULE_MARKS).replace(b"\r\n", b"")

    def test_a_mark_in_a_sentence_is_not_a_block(self) -> None:
        data = f"See `{RULE_MARKS.begin}` in the docs.\n".encode()
        assert cut_block(data, RULE_MARKS) == data

    @pytest.mark.parametrize(
        "text", ["{begin}\nx\n", "x\n{end}\n", "{end}\n{begin}\n", "{begin}\n{end}\n{begin}\n{end}\n"]
    )
    def test_broken_marks_are_refused(self, text: str) -> None:
        data = text.format(begin=RULE_MARKS.begin, end=RULE_MARKS.end).encode()
        with pytest.raises(BrokenBlock):
            put_block(data, "x\n", RULE_MARKS)

    def test_the_rule_names_the_inboxes_and_the_command(self) -> None:
        rule = render_rule([("claude", ".claude/memory-handoffs"), ("codex", ".codex/memory-handoffs")])
        for word in (".claude/memory-handoffs/", ".codex/memory-handoffs/", "truekeep handoff new", "without waiting"):
            assert word in rule


# The bundle.


class TestBundle:
    def test_its_bytes_are_frozen(self) -> None:
        """Another byte, and every Codex user has to trust the hooks again. See bundle.py before changing this."""
        text = "\0".join(f"{name}\0{text}" for name, text in sorted(plugin_files.MARKET_FILES.items()))
        assert (
            hashlib.sha256(text.encode()).hexdigest()
            == "8880dccdc3124dd4757a72874515c1b8dab890a8b6d816b34a6b36086714b6e9"
        )

    def test_commands_name_no_place_and_no_version(self) -> None:
        from truekeep import __version__

        for hook in plugin_files.HOOKS:
            assert "/" not in hook.command.replace("/dev/null", "")
            assert "$" not in hook.command
        assert not any(
            __version__ in text for text in plugin_files.MARKET_FILES.values() if __version__ != plugin_files.VERSION
        )

    def test_a_missing_program_is_silence(self, tmp_path: Path) -> None:
        for hook in plugin_files.HOOKS:
            done = subprocess.run(
                ["/bin/sh", "-c", hook.command], capture_output=True, env={"PATH": str(tmp_path)}, input=b"{}"
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def test_mcp_is_the_command_that_serves(self) -> None:
        from truekeep.interfaces.cli.app import COMMANDS

        servers = json.loads(plugin_files.PLUGIN_FILES[".mcp.json"])["mcpServers"]
        assert servers == {"truekeep": {"command": "truekeep", "args": ["mcp"]}}
        assert "mcp" in COMMANDS


class TestJson5:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("{a: 1, 'b': [1, 2,], /* x */ \"c\": 'it\\'s', // y\n}", {"a": 1, "b": [1, 2], "c": "it's"}),
            ("[0x1F, -.5, +3, 1e3, true, null, Infinity]", [31, -0.5, 3, 1000.0, True, None, float("inf")]),
            ('\ufeff{"u": "\\u00e9\\\n!", $x_1: \'a\\x41\'}', {"u": "é!", "$x_1": "aA"}),
        ],
    )
    def test_reads_what_people_write(self, text: str, value: object) -> None:
        assert parse_json5(text) == value

    @pytest.mark.parametrize("text", ["", "{", "{a}", "[1 2]", "{a: 1} x", "'", "[" * 5000, "{a: }", "/* x"])
    def test_anything_else_is_an_error(self, text: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - any reason will do
            parse_json5(text)


# A repository's files, with no harness installed.

ODD = {
    "plain": b"# Rules\n\nBe kind.\n",
    "crlf": b"# Rules\r\n\r\nBe kind.\r\n",
    "crlf-no-final-newline": b"# Rules\r\nBe kind.",
    "no-final-newline": b"# Rules\n\nBe kind.",
    "bom": b"\xef\xbb\xbf# Rules\n",
    "bom-only": b"\xef\xbb\xbf",
    "empty": b"",
    "newlines": b"\n\n\n",
    "mixed": b"a\r\nb\nc\r\n",
    "other-tool": b"# Rules\n<!-- othertool:begin -->\nx\n<!-- othertool:end -->\n",
    "trailing-space": b"text  \n\t\n",
}


class TestRepositoryFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ODD)
    def test_there_and_back(self, repo: Path, own_home: Path, name: str) -> None:
        for file in ("CLAUDE.md", "AGENTS.md", ".gitignore"):
            (repo / file).write_bytes(ODD[name])
        (repo / "CLAUDE.md").chmod(0o640)
        before = picture(repo, own_home)
        assert connect(repo) == 0
        for file in ("CLAUDE.md", "AGENTS.md"):
            assert (repo / file).read_bytes().startswith(ODD[name])
            assert RULE_MARKS.begin.encode() in (repo / file).read_bytes()
        assert stat.S_IMODE((repo / "CLAUDE.md").stat().st_mode) == 0o640
        assert (repo / ".claude/memory-handoffs").is_dir()
        assert b"/.claude/memory-handoffs/" in (repo / ".gitignore").read_bytes()
        assert disconnect(repo) == 0
        assert picture(repo, own_home) == before

    @pytest.mark.parametrize("name", ODD)
    def test_there_and_back_without_the_record(self, repo: Path, homes: Homes, name: str) -> None:
        for file in ("CLAUDE.md", "AGENTS.md", ".gitignore"):
            (repo / file).write_bytes(ODD[name])
        assert connect(repo) == 0
        (homes.keep / "record.json").unlink()
        assert disconnect(repo) == 0
        for file in ("CLAUDE.md", "AGENTS.md", ".gitignore"):
            assert (repo / file).read_bytes() == ODD[name]

    def test_files_that_were_not_there_go_again(self, repo: Path, own_home: Path) -> None:
        before = picture(repo, own_home)
        connect(repo)
        assert {"CLAUDE.md", "AGENTS.md", ".gitignore", ".claude", ".codex"} <= set(os.listdir(repo))
        disconnect(repo)
        assert picture(repo, own_home) == before

    def test_twice_changes_nothing(self, repo: Path, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (repo / "CLAUDE.md").write_bytes(b"mine")
        connect(repo)
        first = picture(repo, own_home)
        stamps = {path: os.stat(path).st_mtime_ns for path in first}
        capsys.readouterr()
        assert connect(repo) == 0
        assert "already connected" in capsys.readouterr().out
        assert picture(repo, own_home) == first
        assert {path: os.stat(path).st_mtime_ns for path in first} == stamps

    @pytest.mark.slow
    def test_dry_run_touches_nothing(
        self, repo: Path, own_home: Path, machine: Homes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (repo / "CLAUDE.md").write_bytes(b"mine")
        before = picture(repo, own_home)
        assert run(["connect", "--repo", str(repo), "--dry-run"]) == 0
        shown = capsys.readouterr().out
        assert "truekeep handoff new" in shown
        assert "claude plugin install truekeep@truekeep" in shown
        assert "~/.claude/settings.json" in shown
        assert picture(repo, own_home) == before
        connect(repo)
        during = picture(repo, own_home)
        assert run(["disconnect", "--repo", str(repo), "--dry-run"]) == 0
        assert picture(repo, own_home) == during

    def test_without_being_asked_for_nothing_is_written(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No harness is installed and none was named: there is nothing to connect."""
        monkeypatch.chdir(repo)
        before = picture(repo)
        assert run(["connect", "--yes"]) == 1
        assert picture(repo) == before

    def test_inbox_with_handoffs_stays(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        connect(repo)
        letter = repo / ".claude/memory-handoffs/2026-11-14-0900-proxy.md"
        letter.write_text(a_handoff())
        (repo / ".codex/memory-handoffs/processed").mkdir()
        assert disconnect(repo) == 0
        assert letter.exists()
        assert not (repo / ".codex").exists()
        assert "handoffs wait in it (1)" in capsys.readouterr().out

    def test_handoffs_that_stay_are_not_offered_to_git(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Issue 18: the ignore lines went with disconnect, and `git add .` took the handoffs along."""
        own = repo / ".codex/memory-handoffs"
        own.mkdir(parents=True)  # connect did not make this one
        connect(repo)
        for name in ("a", "processed/b", "processed/c"):
            letter = repo / f".claude/memory-handoffs/{name}.md"
            letter.parent.mkdir(exist_ok=True)
            letter.write_text(a_handoff())
        (own / "d.md").write_text(a_handoff())
        assert disconnect(repo) == 0
        told = capsys.readouterr().out
        assert ".claude/memory-handoffs: handoffs wait in it (1), it has filed handoffs (2)" in told
        assert ".codex/memory-handoffs: handoffs wait in it (1)" in told
        assert untracked(repo) == ""
        assert connect(repo) == 0
        assert disconnect(repo) == 0
        assert untracked(repo) == ""

    def test_handoffs_of_configured_writers_are_not_offered_to_git_either(
        self, repo: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        memory = own_home / ".openclaw" / "workspace"
        Workspace.init(memory)
        config = memory / ".truekeep" / "config.toml"
        config.write_text(
            config.read_text().replace("\n[writers]\n", '\n[writers]\ngemini = ".gemini/memory-handoffs"\n')
        )
        connect(repo)
        (repo / ".gemini/memory-handoffs").mkdir(parents=True, exist_ok=True)
        (repo / ".gemini/memory-handoffs/a.md").write_text(a_handoff())
        assert disconnect(repo) == 0
        assert ".gemini/memory-handoffs: handoffs wait in it (1)" in capsys.readouterr().out
        assert untracked(repo) == ""

    def test_an_inbox_of_who_stays_connected_is_not_left(
        self, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        connect(repo)
        for name in (".claude", ".codex"):
            (repo / name / "memory-handoffs/a.md").write_text(a_handoff())
        monkeypatch.chdir(repo)
        capsys.readouterr()
        assert run(["disconnect", "--harness", "codex", "--yes"]) == 0
        told = capsys.readouterr().out
        assert ".codex/memory-handoffs: handoffs wait in it (1)" in told
        assert ".claude/memory-handoffs" not in told

    @pytest.mark.slow
    def test_several_repositories_at_once(
        self, machine: Homes, tmp_path: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Issue 18: of `--repo A --repo B` only B was connected, without a word."""
        repos = [git_repo(tmp_path / name) for name in ("a", "b")]
        before = picture(*repos, own_home)
        named = [word for repo in (*repos, repos[0]) for word in ("--repo", str(repo))]
        assert run(["connect", "--dry-run", *named]) == 0
        plan = capsys.readouterr().out
        assert picture(*repos, own_home) == before
        commands = [line for line in plan.splitlines() if line.startswith("  run ")]
        assert len(commands) == len(set(commands)) > 2
        assert all(f" in {repo}" in plan for repo in repos)
        assert run(["connect", "--yes", *named]) == 0
        for repo in repos:
            assert "truekeep" in (repo / "CLAUDE.md").read_text()
            assert (repo / ".codex/memory-handoffs").is_dir()
        capsys.readouterr()
        assert run(["connect", "--json", "--yes", *named]) == 0
        places = only_json(capsys)["places"]
        assert [place["place"] for place in places] == [str(repo) for repo in repos]
        assert not any(place["files"] or place["commands"] for place in places)
        assert run(["connect", "--check", *named]) == 2
        assert run(["disconnect", "--yes", *named]) == 0
        assert picture(*repos, own_home) == before

    def test_lines_that_are_ignored_already_are_not_doubled(self, repo: Path) -> None:
        (repo / ".gitignore").write_text(".claude/memory-handoffs/\n/.codex/memory-handoffs\n")
        connect(repo)
        assert (repo / ".gitignore").read_text() == ".claude/memory-handoffs/\n/.codex/memory-handoffs\n"

    def test_what_is_added_to_an_ignore_file_without_a_last_newline_works(self, repo: Path) -> None:
        (repo / ".gitignore").write_text("build")
        connect(repo)
        with (repo / ".gitignore").open("a") as file:
            file.write("dist\n")
        ask = ["git", "-C", str(repo), "check-ignore", "dist", "build"]
        assert subprocess.run(ask, capture_output=True, check=False).stdout == b"dist\nbuild\n"
        assert disconnect(repo) == 0
        assert (repo / ".gitignore").read_text() == "build\ndist\n"

    def test_a_place_that_cannot_be_left_is_no_trouble_to_another(
        self, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = git_repo(tmp_path / "other")
        connect(repo)
        connect(other)
        whole = (repo / ".gitignore").read_text()
        (repo / ".gitignore").write_text(whole.replace(IGNORE_MARKS.end, f"{IGNORE_MARKS.end}dist"))
        assert disconnect(repo) == 1
        assert disconnect(other) == 0
        assert disconnect(tmp_path) == 0
        assert disconnect(repo) == 1
        capsys.readouterr()
        assert run(["disconnect", "--all", "--yes"]) == 1
        assert f"{repo}/.gitignore" in capsys.readouterr().err
        (repo / ".gitignore").write_text(whole)
        assert disconnect(repo) == 0
        assert not (repo / ".gitignore").exists()
        assert disconnect(repo) == 0

    def test_git_agrees_that_handoffs_are_ignored(self, repo: Path) -> None:
        connect(repo)
        name = ".claude/memory-handoffs/2026-11-14-0900-x.md"
        assert subprocess.run(["git", "-C", str(repo), "check-ignore", "-q", name], check=False).returncode == 0

    def test_one_harness_only(self, repo: Path) -> None:
        connect(repo, "--harness", "codex")
        assert (repo / "AGENTS.md").exists()
        assert not (repo / "CLAUDE.md").exists()
        assert not (repo / ".claude").exists()
        connect(repo, "--harness", "claude")
        disconnect(repo, "--harness", "codex")
        assert not (repo / "AGENTS.md").exists()
        assert (repo / "CLAUDE.md").exists()
        assert (repo / ".gitignore").exists()
        disconnect(repo)
        assert os.listdir(repo) == [".git"]

    def test_override_is_what_codex_reads(self, repo: Path) -> None:
        (repo / "AGENTS.override.md").write_text("mine\n")
        (repo / "AGENTS.md").write_text("all\n")
        connect(repo, "--harness", "codex")
        assert RULE_MARKS.begin in (repo / "AGENTS.override.md").read_text()
        assert (repo / "AGENTS.md").read_text() == "all\n"

    def test_an_import_needs_no_second_rule(self, repo: Path) -> None:
        (repo / "CLAUDE.md").write_text("@AGENTS.md\n")
        connect(repo)
        assert (repo / "CLAUDE.md").read_text() == "@AGENTS.md\n"
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()
        disconnect(repo, "--harness", "codex")
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()
        disconnect(repo)
        assert not (repo / "AGENTS.md").exists()

    def test_the_other_place_for_claude(self, repo: Path) -> None:
        (repo / ".claude").mkdir()
        (repo / ".claude/CLAUDE.md").write_text("mine\n")
        connect(repo, "--harness", "claude")
        assert not (repo / "CLAUDE.md").exists()
        assert RULE_MARKS.begin in (repo / ".claude/CLAUDE.md").read_text()
        disconnect(repo)
        assert (repo / ".claude/CLAUDE.md").read_text() == "mine\n"

    def test_a_folder_in_the_way_is_a_problem(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (repo / "CLAUDE.md").mkdir()
        (repo / ".codex").write_text("a file")
        assert connect(repo) == 1
        said = capsys.readouterr().err
        assert "CLAUDE.md: it is not a regular file" in said
        assert ".codex: is not a folder" in said
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()

    def test_a_disk_that_says_no(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (repo / "CLAUDE.md").write_text("mine\n")
        real = file_io.put_over

        def full(*arguments: Any, **options: Any) -> None:
            if arguments[1] == "CLAUDE.md":
                raise OSError(28, "No space left on device")
            real(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(file_io, "put_over", full)
            assert connect(repo) == 1
        assert (repo / "CLAUDE.md").read_text() == "mine\n"
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()
        assert disconnect(repo) == 0
        assert sorted(os.listdir(repo)) == [".git", "CLAUDE.md"]


class TestSymlinks:
    def test_inside_the_repository_the_target_is_edited(self, repo: Path) -> None:
        (repo / "AGENTS.md").write_text("shared\n")
        (repo / "CLAUDE.md").symlink_to("AGENTS.md")
        before = picture(repo)
        assert connect(repo) == 0
        assert (repo / "CLAUDE.md").is_symlink()
        assert (repo / "AGENTS.md").read_text().count(RULE_MARKS.begin) == 1
        disconnect(repo, "--harness", "claude")
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()
        disconnect(repo)
        assert picture(repo) == before

    def test_outside_of_it_nothing_is(self, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "elsewhere.md").write_text("theirs\n")
        (repo / "CLAUDE.md").symlink_to(tmp_path / "elsewhere.md")
        assert connect(repo) == 1
        assert ", outside " in capsys.readouterr().err
        assert (tmp_path / "elsewhere.md").read_text() == "theirs\n"
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()

    def test_to_nothing_is_refused(self, repo: Path) -> None:
        (repo / "CLAUDE.md").symlink_to("missing.md")
        assert connect(repo, "--harness", "claude") == 1
        assert not (repo / "missing.md").exists()

    def test_an_inbox_behind_one_is_refused(self, repo: Path, tmp_path: Path) -> None:
        (tmp_path / "away").mkdir()
        (repo / ".claude").symlink_to(tmp_path / "away")
        assert connect(repo, "--harness", "claude") == 1
        assert os.listdir(tmp_path / "away") == []

    @pytest.mark.slow
    def test_user_level_dotfiles(self, machine: Homes, own_home: Path) -> None:
        dots = own_home / "dotfiles"
        dots.mkdir()
        (dots / "CLAUDE.md").write_bytes(b"mine")
        (machine.claude / "CLAUDE.md").symlink_to(dots / "CLAUDE.md")
        before = picture(own_home)
        assert run(["connect", "--user", "--yes", "--harness", "claude"]) == 0
        assert RULE_MARKS.begin in (dots / "CLAUDE.md").read_text()
        assert run(["disconnect", "--user", "--yes"]) == 0
        assert picture(own_home) == before


class TestHardLinks:
    """A file with two names is not written: whole it would lose one of them, in place it could be torn."""

    def test_neither_name_is_changed(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (repo / "CLAUDE.md").write_text("mine\n")
        (repo / "other.md").hardlink_to(repo / "CLAUDE.md")
        assert connect(repo) == 1
        assert "hard link" in capsys.readouterr().err
        assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()
        assert disconnect(repo) == 0
        assert (repo / "other.md").read_text() == "mine\n"
        assert (repo / "CLAUDE.md").stat().st_nlink == 2

    def test_one_that_was_linked_later(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (repo / "CLAUDE.md").write_text("mine\n")
        assert connect(repo) == 0
        (repo / "other.md").hardlink_to(repo / "CLAUDE.md")
        assert connect(repo) == 0  # there is nothing to write
        assert disconnect(repo) == 1
        assert "by hand" in capsys.readouterr().err
        assert (repo / "CLAUDE.md").stat().st_nlink == 2
        (repo / "other.md").unlink()
        assert disconnect(repo) == 0
        assert (repo / "CLAUDE.md").read_text() == "mine\n"

    def test_without_the_record(self, repo: Path, homes: Homes) -> None:
        connect(repo)
        (homes.keep / "record.json").unlink()
        (repo / "other.md").hardlink_to(repo / "CLAUDE.md")
        assert disconnect(repo) == 1
        assert (repo / "CLAUDE.md").stat().st_nlink == 2

    @pytest.mark.slow
    def test_a_harnesss_own_file_stays_as_the_harness_wrote_it(
        self, repo: Path, machine: Homes, own_home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = machine.claude / "settings.json"
        (own_home / "dotfiles.json").hardlink_to(settings)
        connect(repo)
        capsys.readouterr()
        assert disconnect(repo) == 0
        assert settings.stat().st_nlink == 2
        assert "truekeep" not in settings.read_text()
        said = capsys.readouterr().out
        assert "hard link" in said
        backup = Path(said.partition("backup: ")[2].split()[0])
        assert backup.read_bytes() == SETTINGS


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Rules\n\n```sh\nmake\n", 3),
        ("~~~\n```\n", 1),
        ("````md\n```\n", 1),
        ("```sh\nmake\n``` no end\n", 1),
        ("```sh\nmake\n```\n", None),
        ("```\r\nmake\r\n````  \r\n", None),
        ("    ```\nindented\n", None),
        ("```in` line```\n", None),
    ],
)
def test_a_rule_inside_of_a_code_fence_is_said(
    repo: Path, text: str, line: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "CLAUDE.md").write_bytes(text.encode())
    for _ in range(2):  # it is so before, and stays so
        assert connect(repo) == 0
        said = capsys.readouterr().out
        assert ("CLAUDE.md: the code fence of line" in said) == (line is not None)
        assert line is None or f"line {line} is not closed" in said
    disconnect(repo)
    assert (repo / "CLAUDE.md").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("# Rules\n".encode("utf-16"), "UTF-8"),
        (b"a\0b", "NUL"),
        (f"{RULE_MARKS.begin}\nhalf\n".encode(), "broken"),
    ],
)
def test_a_file_that_cannot_be_edited_is_a_problem_of_its_own(
    repo: Path, data: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "CLAUDE.md").write_bytes(data)
    assert connect(repo) == 1
    said = capsys.readouterr().err
    assert words in said
    assert str(repo / "CLAUDE.md") in said
    assert (repo / "CLAUDE.md").read_bytes() == data
    assert RULE_MARKS.begin in (repo / "AGENTS.md").read_text()


class TestEdited:
    def test_above_below_and_inside(self, repo: Path) -> None:
        (repo / "CLAUDE.md").write_text("one\n")
        connect(repo)
        text = (repo / "CLAUDE.md").read_text()
        (repo / "CLAUDE.md").write_text(
            text.replace("one", "first\none").replace("secret.", "secret. Ha!") + "\nlast\n"
        )
        disconnect(repo)
        assert (repo / "CLAUDE.md").read_text() == "first\none\n\nlast\n"

    def test_then_connected_again(self, repo: Path) -> None:
        (repo / "CLAUDE.md").write_text("one\n")
        connect(repo)
        text = (repo / "CLAUDE.md").read_text()
        (repo / "CLAUDE.md").write_text(text.replace("Memory handoffs", "Old words") + "two\n")
        connect(repo)
        assert "Old words" not in (repo / "CLAUDE.md").read_text()
        disconnect(repo)
        assert (repo / "CLAUDE.md").read_text() == "one\ntwo\n"

    def test_a_file_that_connect_made_and_a_person_filled_stays(self, repo: Path) -> None:
        connect(repo)
        with (repo / "CLAUDE.md").open("a") as file:
            file.write("mine\n")
        disconnect(repo)
        assert (repo / "CLAUDE.md").read_text() == "mine\n"

    def test_a_rule_that_a_person_took_out_stays_out(self, repo: Path) -> None:
        (repo / "CLAUDE.md").write_text("one\n")
        connect(repo)
        (repo / "CLAUDE.md").write_text("one, rewritten\n")
        assert disconnect(repo) == 0
        assert (repo / "CLAUDE.md").read_text() == "one, rewritten\n"

    def test_between_plan_and_write(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (repo / "CLAUDE.md").write_text("one\n")
        real = apply.write_file

        def late(now: Any, data: bytes) -> None:
            if now.real.name == "CLAUDE.md":
                now.real.write_text("a person was faster\n")
            real(now, data)

        monkeypatch.setattr(apply, "write_file", late)
        assert connect(repo) == 1
        assert (repo / "CLAUDE.md").read_text() == "a person was faster\n"


# Harnesses.


class TestHarnesses:
    @pytest.mark.slow
    def test_there_and_back(self, repo: Path, own_home: Path, machine: Homes) -> None:
        before = picture(repo, own_home)
        assert connect(repo) == 0
        settings = json.loads((machine.claude / "settings.json").read_bytes())
        assert settings["enabledPlugins"] == {"truekeep@truekeep": True}
        assert "[marketplaces.truekeep]" in (machine.codex / "config.toml").read_text()
        assert json.loads(machine.openclaw_json.read_bytes())["hooks"]["internal"]["entries"]["truekeep"]["enabled"]
        assert (machine.openclaw / "hooks/truekeep/handler.js").exists()
        assert disconnect(repo) == 0
        assert picture(repo, own_home) == before

    @pytest.mark.slow
    def test_twice_runs_no_command(self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]) -> None:
        connect(repo)
        capsys.readouterr()
        assert run(["connect", "--repo", str(repo), "--json"]) == 0
        shown = only_json(capsys)
        assert shown["commands"] == []
        assert shown["files"] == []

    @pytest.mark.slow
    def test_trust_and_a_comment_survive_or_go_as_they_should(self, repo: Path, machine: Homes) -> None:
        """Codex writes trust into config.toml; that goes, and a person's comment stays."""
        connect(repo)
        trust(machine)
        config = machine.codex / "config.toml"
        disconnect(repo)
        assert config.read_bytes() == CONFIG  # nobody else wrote: even the line ends are back
        connect(repo)
        trust(machine)
        config.write_text(config.read_text().replace("# mine", "# mine, still"))
        disconnect(repo)
        assert "# mine, still" in config.read_text()
        assert "truekeep" not in config.read_text()

    @pytest.mark.slow
    def test_settings_changed_since_keep_the_change(self, repo: Path, machine: Homes) -> None:
        connect(repo)
        path = machine.claude / "settings.json"
        settings = json.loads(path.read_bytes())
        settings["theme"] = "light"
        path.write_text(json.dumps(settings))
        disconnect(repo)
        after = json.loads(path.read_bytes())
        assert after["theme"] == "light"
        assert "truekeep" not in path.read_text()
        assert after["hooks"]["Stop"][0]["hooks"][0]["command"] == "other"

    @pytest.mark.slow
    def test_two_repositories_share_what_the_machine_has(
        self, repo: Path, own_home: Path, machine: Homes, tmp_path: Path
    ) -> None:
        other = git_repo(tmp_path / "other")
        before = picture(repo, other, own_home)
        connect(repo)
        between = picture(own_home)
        connect(other)
        disconnect(repo)
        settings = json.loads((machine.claude / "settings.json").read_bytes())
        assert settings["enabledPlugins"] == {"truekeep@truekeep": True}
        assert (machine.market / ".claude-plugin/marketplace.json").exists()
        assert not (repo / "CLAUDE.md").exists()
        assert (other / "CLAUDE.md").exists()
        assert {path for path in between if "plugin" in path} <= set(picture(own_home))
        disconnect(other)
        assert picture(repo, other, own_home) == before

    @pytest.mark.slow
    def test_all_at_once(self, repo: Path, own_home: Path, machine: Homes, tmp_path: Path) -> None:
        other = git_repo(tmp_path / "other")
        before = picture(repo, other, own_home)
        connect(repo)
        connect(other)
        run(["connect", "--user", "--yes"])
        assert run(["disconnect", "--all", "--yes", "--repo", str(repo)]) == 0
        assert picture(repo, other, own_home) == before

    @pytest.mark.slow
    def test_what_a_person_switched_off_stays_off(
        self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        connect(repo)
        path = machine.claude / "settings.json"
        path.write_text(path.read_text().replace('"truekeep@truekeep": true', '"truekeep@truekeep": false'))
        capsys.readouterr()
        connect(repo)
        assert "claude plugin enable" in capsys.readouterr().out
        assert '"truekeep@truekeep": false' in path.read_text()

    @pytest.mark.slow
    def test_open_discovery_is_not_narrowed(self, repo: Path, machine: Homes) -> None:
        machine.openclaw_json.write_text('{"hooks": {"internal": {"enabled": true}}}')
        connect(repo)
        internal = json.loads(machine.openclaw_json.read_text())["hooks"]["internal"]
        assert internal == {"enabled": True}

    @pytest.mark.slow
    def test_cards_elsewhere_are_added_to_the_search(self, place: Place, machine: Homes) -> None:
        before = machine.openclaw_json.read_bytes()
        chosen = ("--workspace", str(place.workspace))
        assert connect(place.repo, *chosen) == 0
        paths = json.loads(machine.openclaw_json.read_bytes())["memory"]["search"]["extraPaths"]
        assert paths == ["/n", os.path.realpath(place.workspace / "memory/cards")]
        assert disconnect(place.repo, *chosen) == 0
        assert machine.openclaw_json.read_bytes() == before

    @pytest.mark.slow
    def test_cards_are_taken_out_also_when_the_workspace_is_elsewhere_by_now(
        self, place: Place, machine: Homes
    ) -> None:
        connect(place.repo, "--workspace", str(place.workspace))
        config = json.loads(machine.openclaw_json.read_bytes())
        machine.openclaw_json.write_text(json.dumps({**config, "logging": {"level": "info"}}))
        assert disconnect(place.repo) == 0
        after = json.loads(machine.openclaw_json.read_bytes())
        assert after["memory"]["search"]["extraPaths"] == ["/n"]
        assert after["logging"] == {"level": "info"}
        assert "truekeep" not in machine.openclaw_json.read_text()

    @pytest.mark.slow
    def test_a_command_that_fails_is_named_and_can_be_taken_back(
        self, repo: Path, own_home: Path, machine: Homes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = picture(repo, own_home)
        program = tmp_path / "bin" / "claude"
        good = program.read_text()
        program.write_text('#!/bin/sh\necho "no such thing" >&2\nexit 3\n')
        assert connect(repo) == 1
        said = capsys.readouterr().err
        assert "claude plugin marketplace add" in said
        assert "no such thing" in said
        assert "codex" in {owner.partition("@")[0] for owner in installed.Keep(machine.keep).read().owners}
        program.write_text(good)
        assert disconnect(repo) == 0
        assert picture(repo, own_home) == before

    @pytest.mark.slow
    def test_a_harness_that_went_away_is_taken_back_all_the_same(
        self, repo: Path, own_home: Path, machine: Homes, tmp_path: Path
    ) -> None:
        settings = machine.claude / "settings.json"
        connect(repo)
        (tmp_path / "bin" / "claude").unlink()
        assert disconnect(repo) == 0
        assert settings.read_bytes() == SETTINGS

    @pytest.mark.slow
    def test_a_configuration_that_cannot_be_read_is_not_touched(
        self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (machine.codex / "config.toml").write_bytes(b"model = \n")
        assert connect(repo) == 1
        assert "is not TOML" in capsys.readouterr().err
        assert (machine.codex / "config.toml").read_bytes() == b"model = \n"
        assert "truekeep" in (machine.claude / "settings.json").read_text()

    @pytest.mark.slow
    def test_backups_are_for_the_user_only(self, repo: Path, machine: Homes) -> None:
        connect(repo)
        assert stat.S_IMODE(machine.keep.stat().st_mode) == 0o700
        backups = list((machine.keep / "backups").iterdir())
        assert {stat.S_IMODE(path.stat().st_mode) for path in backups} == {0o600}
        kept = {path.read_bytes() for path in backups}
        assert {SETTINGS, CONFIG, OPENCLAW} <= kept

    def test_only_one_at_a_time(self, repo: Path, machine: Homes) -> None:
        machine.keep.mkdir(parents=True)
        with file_io.locked(str(machine.keep)) as held:
            assert held
            assert connect(repo) == 5


def trust(homes: Homes, content: str = plugin_files.CODEX_CONTENT) -> None:
    """What Codex writes when a person trusts the hooks."""
    lines = ["", "[hooks.state]"]
    for hook in plugin_files.HOOKS:
        lines += ["", f'[hooks.state."{plugin_files.codex_hook_key(hook)}"]']
        lines += [f'trusted_hash = "{plugin_files.codex_hook_hash(hook)}"']
        lines += [f'trusted_content_hash = "{content}"'] if content else []
    with (homes.codex / "config.toml").open("a") as file:
        file.write("\n".join(lines) + "\n")


class TestCheck:
    def states(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
        capsys.readouterr()
        run(["connect", "--check", "--json", "--repo", str(repo)])
        return {item["harness"]: item for item in only_json(capsys)["harnesses"]}

    @pytest.mark.slow
    def test_before_and_after(self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]) -> None:
        states = self.states(repo, capsys)
        assert all(item["installed"] and not item["connected"] for item in states.values())
        connect(repo)
        states = self.states(repo, capsys)
        assert all(item["connected"] and item["mcp"] for item in states.values())
        assert {name: item["hooks"] for name, item in states.items()} == {
            "claude": "ready",
            "codex": "untrusted",
            "openclaw": "ready",
        }
        assert states["claude"]["rule"] == str(repo / "CLAUDE.md")
        assert "Trust all" in states["codex"]["problems"][0]

    @pytest.mark.slow
    def test_codex_trust(self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]) -> None:
        connect(repo)
        bare = (machine.codex / "config.toml").read_text()
        for content, word in ((plugin_files.CODEX_CONTENT, "ready"), ("sha256:00", "modified"), ("", "unknown")):
            (machine.codex / "config.toml").write_text(bare)
            trust(machine, content)
            assert self.states(repo, capsys)["codex"]["hooks"] == word
        (machine.codex / "config.toml").write_text(bare)
        trust(machine)
        text = (machine.codex / "config.toml").read_text()
        key = plugin_files.codex_hook_key(plugin_files.HOOKS[0])
        (machine.codex / "config.toml").write_text(text.replace(f'"{key}"]\n', f'"{key}"]\nenabled = false\n'))
        assert self.states(repo, capsys)["codex"]["hooks"] == "off"

    @pytest.mark.slow
    def test_a_rule_for_the_user_counts_everywhere(
        self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run(["connect", "--user", "--yes"])
        assert self.states(repo, capsys)["claude"]["rule"] == str(machine.claude / "CLAUDE.md")
        assert self.states(repo, capsys)["codex"]["rule"] == str(machine.codex / "AGENTS.md")

    def test_checking_is_no_session(self, tmp_path: Path) -> None:
        """Not in the records, and not in a log."""
        import sys

        from truekeep.integrations.harnesses.status import probe_hook
        from truekeep.sessions import session_record

        program = tmp_path / "bin" / "truekeep"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m truekeep "$@"\n')
        program.chmod(0o755)
        assert probe_hook().is_well
        assert not Path(session_record.folder()).parent.exists()

    @pytest.mark.parametrize(
        ("script", "words"),
        [("exit 0", ""), ("exit 9", "ended with 9"), ("sleep 60", "no answer")],
    )
    def test_the_hook_command_is_really_run(
        self, script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from truekeep.integrations.harnesses import status

        monkeypatch.setattr(status, "PROBE_SECONDS", 0.5)
        program = tmp_path / "bin" / "truekeep"
        program.write_text(f"#!/bin/sh\n{script.replace('sleep', 'exec sleep')}\n")
        program.chmod(0o755)
        probe = status.probe_hook()
        assert probe.is_well == (not words)
        assert words in probe.why


# Killed in the middle.


class Killed(BaseException):
    """Stands for a process that is no more."""


class Killer:
    """Ends the run at the n-th thing that changes something."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.calls, self.at = 0, at
        for owner, name in (
            (file_io, "write_beside"),
            (file_io, "put_new"),
            (file_io, "put_over"),
            (file_io, "remove"),
            (os, "rename"),
            (os, "mkdir"),
            (os, "rmdir"),
            (subprocess, "run"),
        ):
            monkeypatch.setattr(owner, name, self._watch(getattr(owner, name)))

    def _watch(self, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self._count()
            done = real(*arguments, **options)
            self._count()
            return done

        return call

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise Killed


def killed_at(at: int, *arguments: str) -> bool:
    """Run a command that dies at a certain point. Whether it got that far."""
    with pytest.MonkeyPatch.context() as patch:
        Killer(patch, at)
        try:
            run(list(arguments))
        except Killed:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("then", ["connect", "disconnect"])
def test_killed_while_connecting(then: str, repo: Path, own_home: Path, homes: Homes, tmp_path: Path) -> None:
    """At whatever point: connect finishes the job, and disconnect leaves everything as it was."""
    put_stand_ins(tmp_path / "bin", "claude")
    (homes.claude).mkdir()
    (homes.claude / "settings.json").write_bytes(SETTINGS)
    (repo / "CLAUDE.md").write_bytes(ODD["crlf-no-final-newline"])
    before = picture(repo, own_home)
    words = ("--repo", str(repo), "--yes", "--harness", "claude")
    at = 1
    while killed_at(at, "connect", *words):
        if then == "connect":
            assert run(["connect", *words]) == 0, at
            assert RULE_MARKS.begin.encode() in (repo / "CLAUDE.md").read_bytes()
        assert run(["disconnect", *words]) == 0, at
        assert without_stand_in(picture(repo, own_home)) == without_stand_in(before), at
        reset(own_home, before)
        at += 1 if at < 12 else 7  # every point of the first steps, then a sample
    assert at > 40


@pytest.mark.slow
def test_killed_while_disconnecting(repo: Path, own_home: Path, homes: Homes, tmp_path: Path) -> None:
    put_stand_ins(tmp_path / "bin", "claude")
    (homes.claude).mkdir()
    (homes.claude / "settings.json").write_bytes(SETTINGS)
    (repo / "CLAUDE.md").write_bytes(b"mine\n")
    before = picture(repo, own_home)
    words = ("--repo", str(repo), "--yes", "--harness", "claude")
    at = 1
    run(["connect", *words])
    while killed_at(at, "disconnect", *words):
        assert run(["disconnect", *words]) == 0, at
        assert without_stand_in(picture(repo, own_home)) == without_stand_in(before), at
        reset(own_home, before)
        run(["connect", *words])
        at += 1 if at < 12 else 7
    assert at > 20


def without_stand_in(found: dict[str, object]) -> dict[str, object]:
    """Without what a harness keeps for itself when its command ran and truekeep died before it could look, and without
    the empty folders of a run that died before it could write that it made them."""
    theirs = (".claude.json", "/.claude/plugins")
    empty = ("/.local", "/.local/state", "/.local/state/truekeep", "/.local/state/truekeep/connect")
    return {path: what for path, what in found.items() if not path.endswith((*theirs, *empty))}


def reset(home: Path, before: dict[str, object]) -> None:
    import shutil

    (home / ".claude.json").unlink(missing_ok=True)
    shutil.rmtree(home / ".claude/plugins", ignore_errors=True)
    for path, what in before.items():
        if isinstance(what, tuple):
            Path(path).write_bytes(what[0])


# The command line.


class TestDoor:
    @pytest.mark.slow
    def test_nobody_to_ask(self, repo: Path) -> None:
        done = run_cli("connect", "--repo", str(repo))
        assert done.returncode == 3
        assert "--yes" in done.stderr
        assert not (repo / "CLAUDE.md").exists()

    def test_user_and_project_exclude_each_other(self, repo: Path) -> None:
        assert run(["connect", "--user", "--project"]) == 2

    def test_outside_of_a_repository_a_folder_has_to_be_named(
        self, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(own_home)
        before = picture(own_home)
        assert run(["connect", "--project", "--yes"]) == 3
        said = capsys.readouterr().err
        assert "no git repository" in said
        assert "--repo" in said
        assert picture(own_home) == before
        assert run(["connect", "--repo", ".", "--yes", "--harness", "claude"]) == 0
        assert f"undo with `truekeep disconnect --repo {own_home}`" in capsys.readouterr().out
        assert (own_home / "CLAUDE.md").exists()
        assert run(["disconnect", "--yes"]) == 0
        assert picture(own_home) == before

    @pytest.mark.slow
    def test_the_next_step_is_told_when_something_was_connected(
        self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        steps = ("restart Claude Code and Codex; sessions already running", "run `truekeep connect --check` to test")
        assert connect(repo, "--dry-run") == 0
        planned = capsys.readouterr().out
        assert connect(repo) == 0
        done = capsys.readouterr().out
        assert connect(repo) == 0
        again = capsys.readouterr().out
        for step in steps:
            assert [f"next: {step}" in said for said in (planned, done, again)] == [False, True, False]

    def test_that_there_is_no_memory_is_told_where_none_is(
        self, repo: Path, machine: Homes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        said = "there is no memory on this machine yet: `truekeep init` makes one"
        assert connect(repo, "--dry-run") == 0
        assert f"note: {said}" in capsys.readouterr().out
        assert connect(repo, "--dry-run", "--json") == 0
        assert any(note.startswith(said) for note in only_json(capsys)["notes"])
        assert run(["init", str(tmp_path / "memory")]) == 0
        assert connect(repo, "--dry-run", "-w", str(tmp_path / "memory")) == 0
        assert said not in capsys.readouterr().out

    @pytest.mark.slow
    def test_the_way_back_is_named_from_where_one_is(
        self, repo: Path, machine: Homes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(repo)
        for words, back in (
            (["--harness", "claude"], "truekeep disconnect"),
            (["--harness", "codex", "--user"], "truekeep disconnect --user"),
        ):
            assert run(["connect", "--yes", *words]) == 0
            assert f"undo with `{back}`" in capsys.readouterr().out
        assert run(["disconnect", "--yes"]) == 0
        capsys.readouterr()
        assert run(["disconnect", "--yes"]) == 0
        said = capsys.readouterr().out
        assert "nothing is connected here" in said
        assert "undo with `truekeep disconnect --user`" in said

    @pytest.mark.slow
    def test_json(self, repo: Path, machine: Homes, capsys: pytest.CaptureFixture[str]) -> None:
        assert connect(repo, "--json") == 0
        shown = only_json(capsys)
        assert shown["schema"] == "truekeep.connect/1"
        assert shown["applied"] is True
        assert shown["harnesses"] == list(NAMES)
        assert any("Trust all" in step for step in shown["next"])
        assert disconnect(repo, "--json") == 0
        assert only_json(capsys)["applied"] is True
        assert disconnect(repo, "--json") == 0
        assert only_json(capsys)["applied"] is False

    def test_a_repository_that_ingest_does_not_see_is_said(
        self, place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        other = git_repo(tmp_path / "unseen")
        connect(other, "--workspace", str(place.workspace))
        assert "ingest does not look into" in capsys.readouterr().out
        connect(place.repo, "--workspace", str(place.workspace))
        assert "ingest does not look into" not in capsys.readouterr().out

    def test_a_damaged_record_is_said(self, repo: Path, homes: Homes) -> None:
        homes.keep.mkdir(parents=True)
        (homes.keep / "record.json").write_text("{")
        assert connect(repo) == 6

    def test_help_loads_none_of_it(self) -> None:
        import sys

        shown = "print([m for m in sys.modules if 'connect' in m])"
        code = f"import sys, truekeep.interfaces.cli.app as c; c.run(['--help']); {shown}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"
