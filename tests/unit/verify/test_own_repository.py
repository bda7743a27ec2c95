"""A workspace that is a repository itself: what its documents, logs and index name is checked against it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.histories import NAME, History, git
from truekeep.memory.written_days import blob_id, committed_days
from truekeep.search.file_metadata import describe, written_day
from truekeep.verify import cron_claims
from truekeep.verify.cache import FactsCache
from truekeep.verify.checkouts import find_below, find_home
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.hosted_links import read_hosted_link
from truekeep.verify.live_system.cron import CronEntry, openclaw_jobs, parse_crontab
from truekeep.verify.memory_reader import text_memory
from truekeep.verify.options import Options
from truekeep.verify.path_claims import is_of_other_machine
from truekeep.verify.question import Question
from truekeep.verify.verdict import Verdict
from truekeep.verify.verifier import Verifier

SCRIPT = "import argparse\n\n\ndef send_digest(day):\n    return day\n\n\nparser.add_argument('--dry-run')\n"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scripts, data and notes; one script was moved, another deleted, and a folder is no longer kept in git."""
    root = tmp_path_factory.mktemp("own") / "workspace"
    history = History()
    old = "Run `scripts/mail.py`, see `docs/plan.md` and `notes.md`.\n"
    history.commit(
        "2026-01-05",
        {
            "scripts/mail.py": SCRIPT,
            "scripts/other.py": "parser.add_argument('--since-day')\nparser.add_argument('--limit')\n",
            "docs/plan.md": "# Plan\nOne.\nTwo.\nThree.\n",
            "memory/topics/notes.md": "# Notes\nAbout topics.\n",
            "memory/topics/index.md": "# Index\n",
            "memory/old.md": old,
            "keys/login.txt": "none\n",
            "data/preferences.json": '{"digest_mode": "daily", "weather": true}\n',
            "lib/kernel.py": "class ToolPolicy:\n    def run(self):\n        return 1\n",
        },
    )
    history.commit(
        "2026-03-05",
        {"docs/plan.md": None, "keys/login.txt": None, ".gitignore": "keys/\n", "lib/kernel.py": "OTHER = 1\n"},
        renames={"scripts/mail.py": "scripts/send/mail.py"},
    )
    history.commit("2026-04-05", {"memory/late.md": "We read `docs/plan.md` in April.\n"})
    history.write(root)
    return root


def check(root: Path, text: str, path: str = "memory/note.md", home: str | None = None) -> dict[str, Verdict]:
    """The verdicts on a document of the workspace, by the words of their claims."""
    top = find_home(root) if home is None else home
    verifier = Verifier(FactsCache(":memory:"), [], workspace=str(root), home=top, options=Options(system=False))
    (checked,) = verifier.check([text_memory(path, text)], keep=False)
    return {verdict.claim.text: verdict for verdict in checked.verdicts}


def words(found: dict[str, Verdict]) -> dict[str, tuple[str, str]]:
    return {text: (verdict.verdict, verdict.reason) for text, verdict in found.items()}


class TestAgainstItself:
    def test_what_is_there_moved_and_gone(self, workspace: Path) -> None:
        found = check(workspace, "`scripts/other.py`, `scripts/mail.py` and `docs/plan.md`.")
        assert words(found) == {
            "scripts/other.py": ("confirmed", "exists"),
            "scripts/mail.py": ("moved", "renamed"),
            "docs/plan.md": ("gone", "deleted"),
        }
        assert found["scripts/mail.py"].place == "scripts/send/mail.py"

    def test_a_log_tells_of_its_day(self, workspace: Path) -> None:
        found = check(workspace, "Wrote `scripts/mail.py` and `scripts/other.py`.", "memory/2026-01-05.md")
        assert words(found) == {
            "scripts/mail.py": ("unverifiable", "of-its-day"),
            "scripts/other.py": ("confirmed", "exists"),
        }
        assert found["scripts/mail.py"].place == "scripts/send/mail.py"

    def test_a_line_that_was_written_after_the_removal_is_no_alarm(self, workspace: Path) -> None:
        late = (workspace / "memory/late.md").read_text()
        assert words(check(workspace, late, "memory/late.md")) == {"docs/plan.md": ("unverifiable", "gone-before")}
        early = (workspace / "memory/old.md").read_text()
        assert words(check(workspace, early, "memory/old.md"))["docs/plan.md"] == ("gone", "deleted")

    def test_the_documents_own_folder_comes_first(self, workspace: Path) -> None:
        found = check(workspace, "[notes](notes.md), [up](../old.md), `topics/notes.md`", "memory/topics/index.md")
        assert {text: verdict.place for text, verdict in found.items()} == {
            "notes.md": "memory/topics/notes.md",
            "../old.md": "memory/old.md",
            "topics/notes.md": "memory/topics/notes.md",
        }

    def test_what_git_no_longer_keeps_is_not_gone(self, workspace: Path) -> None:
        assert words(check(workspace, "The login is in `keys/login.txt`.")) == {
            "keys/login.txt": ("unverifiable", "ignored")
        }

    def test_a_path_that_never_was_is_no_alarm(self, workspace: Path) -> None:
        assert words(check(workspace, "---\nupdated: 2026-02-01\n---\n`scripts/none.py`")) == {
            "scripts/none.py": ("unverifiable", "never-seen")
        }

    @pytest.mark.parametrize("text", ["`docs/YYYY-MM-DD.md`", "`memory/[DATE].md`", "`notes-NN.md`"])
    def test_a_place_for_something_else_is_no_claim(self, text: str) -> None:
        assert not extract_claims(text).claims


class TestOtherMachines:
    @pytest.mark.parametrize(
        "name", ["/root/.openclaw/workspace", "~/.openclaw/workspace", "/home/kim/.openclaw/workspace"]
    )
    def test_an_openclaw_workspace_elsewhere_is_this_one(self, workspace: Path, name: str) -> None:
        found = check(workspace, f"`{name}/scripts/other.py` and `{name}/scripts/mail.py`, in `{name}`")
        assert words(found) == {
            f"{name}/scripts/other.py": ("confirmed", "exists"),
            f"{name}/scripts/mail.py": ("moved", "renamed"),
            name: ("confirmed", "exists"),
        }

    def test_a_folder_whose_files_are_here_is_this_one(self, workspace: Path) -> None:
        there = "/Users/kim/agent"
        text = f"`{there}/scripts/other.py`, `{there}/memory/old.md`, `{there}/docs/plan.md`, `/Users/kim/else/a.py`"
        assert words(check(workspace, text)) == {
            f"{there}/scripts/other.py": ("confirmed", "exists"),
            f"{there}/memory/old.md": ("confirmed", "exists"),
            f"{there}/docs/plan.md": ("gone", "deleted"),
            "/Users/kim/else/a.py": ("unverifiable", "other-machine"),
        }

    def test_only_homes_of_others_are_called_another_machines(self) -> None:
        assert is_of_other_machine("/Users/kim/a.py")
        assert is_of_other_machine("/home/nobody-of-this-name/a.py")
        assert not is_of_other_machine("/etc/none.conf")
        assert not is_of_other_machine("~/none.txt")


class TestWordsAndData:
    def test_data_confirms_no_name(self, workspace: Path) -> None:
        found = check(workspace, "We set `digest_mode` and like `weather`; `send_digest` sends it.")
        assert found["send_digest"].verdict == "confirmed"
        assert "digest_mode" not in found  # a setting of whatever program: no code here has it
        assert "weather" not in found

    def test_two_names_with_a_dot_need_each_other(self, workspace: Path) -> None:
        assert all(
            item.verdict != "confirmed" for item in check(workspace, "arXiv's `cs.run` and `day.OTHER`").values()
        )

    def test_a_flag_belongs_to_its_script(self, workspace: Path) -> None:
        found = check(workspace, "`python scripts/send/mail.py --dry-run --limit 3`, and `brew list --limit 3`")
        assert found["--dry-run"].place == "scripts/send/mail.py:8"
        assert found["--limit"].reason == "not-in-body"

    def test_what_is_lacking_planned_or_an_example_is_no_alarm(self, workspace: Path) -> None:
        assert check(workspace, "`ToolPolicy` decides.")["ToolPolicy"].verdict == "gone"
        for text in (
            "It lacks a central `ToolPolicy`.",
            "Implement `ToolPolicy.run()` next.",
            "- `docs/plan.md` → DELETE",
            "- [ ] Create `docs/next.md`, from `docs/plan.md` and others",
            "| `docs/plan.md` | Migrate, archive |",
        ):
            assert all(not verdict.is_rot for verdict in check(workspace, text).values())

    def test_routes_and_names_that_every_project_has_confirm_nothing(self, workspace: Path) -> None:
        assert not check(workspace, "`GET /scripts/send`, `config.toml`, `type name = value`")

    def test_a_formula_is_no_code(self) -> None:
        assert not extract_claims("`score(x) = KL(gc(x), gc(base))`").claims


@pytest.mark.parametrize(
    "text",
    [
        "`src/a.py` wurde gelöscht.",
        "Statt `src/a.py` nehmen wir anderes.",
        "我们删除了 `src/a.py`。",
        "`src/a.py` 已被移除",
        "Файл `src/a.py` удалён.",
        "Fail `src/a.py` telah dipadam.",
        "El archivo `src/a.py` ya no existe.",
    ],
)
def test_the_past_in_other_languages(text: str) -> None:
    (claim,) = extract_claims(text).claims
    assert claim.is_past


@pytest.mark.parametrize("text", ["`src/a.py` läuft täglich.", "每天运行 `src/a.py`。", "`src/a.py` работает."])
def test_the_present_in_other_languages(text: str) -> None:
    (claim,) = extract_claims(text).claims
    assert not claim.is_past
    assert not claim.may_be_past


@pytest.mark.parametrize("text", ["创建 `src/a.py`", "Erstelle die Datei `src/a.py`", "Crear el archivo `src/a.py`"])
def test_what_is_to_be_made_is_no_alarm_in_other_languages(text: str) -> None:
    (claim,) = extract_claims(text).claims
    assert claim.may_be_past


class TestWithoutGit:
    def test_files_are_checked_as_they_are(self, tmp_path: Path) -> None:
        (tmp_path / "memory/topics").mkdir(parents=True)
        (tmp_path / "memory/topics/a.md").write_text("a\n")
        (tmp_path / "run.sh").write_text("true\n")
        text = "`topics/a.md`, `~/.openclaw/workspace/run.sh`, `scripts/none.py`, http://localhost:64999"
        found = check(tmp_path, text, home="")
        assert words(found) == {
            "topics/a.md": ("confirmed", "in-memory"),
            "~/.openclaw/workspace/run.sh": ("confirmed", "in-memory"),
            "scripts/none.py": ("unverifiable", "not-there"),
            "64999": ("unverifiable", "no-answer"),
        }


class TestRepositories:
    def test_the_repository_that_keeps_the_workspace(self, workspace: Path, tmp_path: Path) -> None:
        assert find_home(workspace) == os.path.realpath(workspace)
        assert find_home(workspace / "memory") == os.path.realpath(workspace)
        assert find_home(tmp_path) == ""
        git(tmp_path, "init", "-q")
        (tmp_path / "inner").mkdir()
        assert find_home(tmp_path / "inner") == ""  # nothing of it is kept there

    def test_checkouts_below(self, tmp_path: Path) -> None:
        for name in ("projects/app", "node_modules/thing", ".cache/other"):
            (tmp_path / name / ".git").mkdir(parents=True)
        assert find_below(tmp_path) == [tmp_path / "projects/app"]


class TestAge:
    def test_a_clone_is_as_old_as_its_commits(self, workspace: Path) -> None:
        data = (workspace / "memory/late.md").read_bytes()
        (day,) = committed_days(str(workspace), {"memory/late.md": blob_id(data)}).values()
        assert (day.day, day.is_first) == ("2026-04-05", False)
        assert not committed_days(str(workspace), {"memory/late.md": blob_id(data + b"edited")})
        assert not committed_days(str(workspace / "none"), {})

    def test_what_tells_the_day_of_a_file(self, workspace: Path) -> None:
        data = (workspace / "memory/topics/notes.md").read_bytes()
        (first,) = committed_days(str(workspace), {"memory/topics/notes.md": blob_id(data)}).values()
        assert first.is_first
        assert written_day(describe("memory/a.md", "# A\n"), first) == "2026-01-05"
        assert written_day(describe("memory/a.md", "# A\nLast updated: 2025-12-24\n"), first) == "2025-12-24"
        assert written_day(describe("memory/a.md", "更新时间：2025年12月4日\n"), None) == "2025-12-04"
        assert written_day(describe("memory/radar-2025-11-30.md", "# A\n"), first) == "2025-11-30"
        assert written_day(describe("memory/a.md", "# A\n"), None) == ""


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with several projects, whose files and names are called alike."""
    root = tmp_path_factory.mktemp("projects") / "workspace"
    history = History()
    history.commit(
        "2026-01-05",
        {
            "MEMORY.md": "# Memory\n",
            "package.json": "{}\n",
            "memory/MEMORY.md": "# Another\n",
            "memory/topics/first.md": "# First\n",
            "workspace/stray.md": "# Stray\n",
            "archive/route.ts": "export const old = 1\n",
            "lab/store-kit/store.py": "def clear():\n    return 1\n\n\ndef export_rows():\n    return 2\n",
            "lab/store-kit/brief.md": "# Brief\n",
            "lab/parser-kit/parse.py": "def clear():\n    return 3\n\n\ndef export_rows():\n    return 4\n",
            "lab/parser-kit/brief.md": "# Brief\n",
            "lab/parser-kit/start.sh": "serve --port 8082  # the parser\n",
            "lab/parser-kit/.env.example": "PARSER_URL=http://localhost:8083\n",
            "data/index.json": '{"parser": "http://localhost:8084"}\n',
            "install.sh": "env=1\necho $env.scheduler\nexport API_KEY=x PARSER_MODE=y\necho row_state\n",
            "tests/test_all.py": "def test_all():\n    pass\n",
        },
    )
    history.write(root)
    return root


class TestWhatIsOnlyMentioned:
    """Names of a workspace's text that are no claims about it: of other folders, projects, machines and programs."""

    @pytest.mark.parametrize(
        "text",
        [
            "# Shop\n\n**Path:** `/home/kim/shop`\n\n## Code\n\nThe parser is `parse.py`.",
            "# Shop\n\nRepo: https://github.com/kim/shop\n\n`install.sh` sets it up, `export_rows()` writes.",
            "# Notes\n\n## Shop\n\n- Path: ~/shop\n- `parse.py` reads the feed",
            "Files in `~/shop/`:\n\n| file | what |\n|---|---|\n| `parse.py` | reads |",
        ],
    )
    def test_a_part_about_another_folder(self, projects: Path, text: str) -> None:
        found = check(projects, text)
        assert not [verdict for verdict in found.values() if verdict.verdict == "confirmed"]

    def test_a_part_about_a_folder_that_is_here(self, projects: Path) -> None:
        text = "# Kit\n\n## Parser\n\n- Path: `lab/parser-kit/`\n- `brief.md` says why, `parse.py` reads\n"
        assert {name: item.place for name, item in check(projects, text).items()} == {
            "lab/parser-kit/": "lab/parser-kit",
            "brief.md": "lab/parser-kit/brief.md",
            "parse.py": "lab/parser-kit/parse.py",
        }

    def test_a_list_whose_folder_is_named_above_it(self, projects: Path) -> None:
        assert check(projects, "Read in `lab/store-kit/`:\n\n- `brief.md`: why\n")["brief.md"].place == (
            "lab/store-kit/brief.md"
        )
        assert not check(projects, "Read it at last: `brief.md`.\n")  # two have this name

    @pytest.mark.parametrize(
        "text",
        [
            "Renamed `export_rows`/`clear` → `dump` in parser-kit.",  # the old names
            "The parser-kit changed `export_rows` -> `dump_rows`.",
            "The agents have `MEMORY.md` files of their own.",
            "Sub-agents start with `sessions_spawn`, and `web_search` finds pages.",
            "The parser keeps row_state between two runs.",  # a word of the text, though code has it
            "Commit `abc1234def` fixed the parser.",
            "`src/routes/usage.tsx` shows it.",  # a folder that was never here
            "Set `PARSER_MODE` and `GITHUB_TOKEN`.",  # variables that any project may have
            "Then `npm run build`.",
        ],
    )
    def test_no_claim(self, projects: Path, text: str) -> None:
        assert not check(projects, text)

    def test_a_section_whose_files_are_not_here(self, projects: Path) -> None:
        text = "## Shop\n\n- `cart-view.ts`\n- `order-list.ts`\n- `price-table.ts`\n- `install.sh`\n"
        assert not check(projects, text)
        assert set(check(projects, "## Shop\n\n- `cart-view.ts`\n- `install.sh`\n")) == {"install.sh"}

    def test_what_a_program_wrote(self, projects: Path) -> None:
        text = "# Light Sleep\n\n- Candidate: `install.sh` sets it up\n  - evidence: install.sh:1-1\n"
        assert not check(projects, text)

    def test_machines_that_a_copy_tells_of(self, projects: Path) -> None:
        there = "`/home/kim/.openclaw/workspace/install.sh` runs"
        told = "`web.service` and port 5999; its keys are in `~/.shop/keys.toml`, the rest in `/etc/hosts.d/shop`"
        assert {item.reason for item in check(projects, f"It runs {told}").values()} >= {"outside", "not-listening"}
        found = check(projects, f"{there} {told}")  # the workspace of another machine
        assert found.pop("/home/kim/.openclaw/workspace/install.sh").verdict == "confirmed"
        assert {item.verdict for item in found.values()} == {"unverifiable"}


class TestLinksToGitHosts:
    """Links to files on a git host, where that repository is here. History.write sets the remote."""

    def test_files_of_the_workspace_itself(self, workspace: Path) -> None:
        site = f"https://{NAME}"
        text = (
            f"[one]({site}/blob/main/scripts/other.py), {site}/blob/main/scripts/mail.py and {site}/tree/main/scripts/,"
            f" then {site}/blob/main/docs/plan.md, not {site}/blob/v1.2/docs/plan.md or {site}/issues/12"
        )
        assert words(check(workspace, text)) == {
            "scripts/other.py": ("confirmed", "exists"),
            "scripts/mail.py": ("moved", "renamed"),
            "scripts": ("confirmed", "exists"),
            "docs/plan.md": ("gone", "deleted"),
        }

    def test_of_a_repository_that_is_not_here(self, workspace: Path) -> None:
        assert not check(workspace, "https://github.com/kim/else/blob/main/scripts/other.py")

    def test_the_span_is_the_path(self) -> None:
        text = "See https://github.com/kim/shop/blob/main/src/a%20b.py#L3-L9 for it."
        (claim,) = extract_claims(text).claims
        found = read_hosted_link(claim)
        assert found is not None
        about = found.claim
        assert (found.repository, about.kind, about.name) == ("github.com/kim/shop", "line", "src/a b.py")
        assert (about.first, about.last) == (3, 9)
        assert text[about.start : about.end] == about.text == "src/a%20b.py"


class TestCron:
    def test_schedules_and_jobs(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        entries = [
            CronEntry("0 3 * * 1", "/opt/backup.sh --all", "crontab"),
            CronEntry("*/5 * * * *", "morning-brief 7f3a", "OpenClaw's cron jobs"),
        ]
        monkeypatch.setattr(cron_claims, "list_cron_entries", lambda: (entries, ""))
        text = (
            "It runs `0 3 * * 1 /opt/backup.sh --all >> /var/log/b 2>&1`.\n\nBefore: 0 5 * * 1 /opt/backup.sh --all\n\n"
            "```\n@daily /opt/else.sh\n```\n\nThe cron job `morning-brief` and the cron job `evening-brief`.\n"
        )
        questions = [
            Question(claim, "MEMORY.md", None) for claim in extract_claims(text).claims if claim.kind == "cron"
        ]
        found = cron_claims.check_cron_here(Options(), questions)
        assert [(verdict.verdict, verdict.reason) if verdict else None for verdict in found.values()] == [
            ("confirmed", "scheduled"),
            ("changed", "rescheduled"),
            ("unverifiable", "not-on-this-host"),
            ("confirmed", "scheduled"),
            None,
        ]

    def test_tables(self) -> None:
        text = "MAILTO=x\n# 1 2 * * * old\n30 7 * * mon-fri  python3 brief.py\n@reboot /opt/start\nnot one\n"
        assert parse_crontab(text, "crontab") == [
            CronEntry("30 7 * * mon-fri", "python3 brief.py", "crontab"),
            CronEntry("@reboot", "/opt/start", "crontab"),
        ]

    @pytest.mark.parametrize("text", ["a * b * c * d", "| 5 * * * * | each hour |", "2 * 3 * 4 * 5 = 120 apples"])
    def test_what_is_no_schedule(self, text: str) -> None:
        assert not [claim for claim in extract_claims(text).claims if claim.kind == "cron"]


class TestRecords:
    """A dated heading makes an entry of a record; a date in the title is only that of the document."""

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("# Notes (2026-02-01)\n\n## Files\n\n`docs/plan.md`", "deleted"),
            ("# Errors\n\n## [ERR-20260201-001] Broken\n\n### Context\n\n`docs/plan.md`", "of-its-day"),
            ("# Notes\n\n## Fix (2026-02-01)\n\n`docs/plan.md`", "of-its-day"),
            ("# Notes\n\n## Fix (2026-02-01)\n\n`scripts/mail.py`", "renamed"),
        ],
    )
    def test_dated_headings(self, workspace: Path, text: str, reason: str) -> None:
        assert [item.reason for item in check(workspace, text).values()] == [reason]

    def test_a_folder_that_was_deleted_did_not_move_with_one_file(self, tmp_path: Path) -> None:
        root = tmp_path / "workspace"
        history = History()
        meta = '{"name": "skill", "version": "1.0", "owner": "me", "tags": ["a", "b"]}\n' * 4
        files = {f"skills/old/part{number}.py": f"def part_{number}():\n    return {number}\n" for number in range(9)}
        history.commit("2026-01-05", {"MEMORY.md": "# Memory\n", **files, "skills/old/_meta.json": meta})
        new = {"skills/new/_meta.json": meta, "skills/new/run.sh": "echo new\n"}
        history.commit("2026-01-09", {**dict.fromkeys(files), "skills/old/_meta.json": None, **new})
        history.write(root)
        found = check(root, "The skill is in `skills/old/`.\n", path="MEMORY.md")
        assert words(found) == {"skills/old/": ("gone", "deleted")}


class TestPutAway:
    def test_a_file_that_was_moved_to_an_archive(self, tmp_path: Path) -> None:
        root = tmp_path / "workspace"
        history = History()
        plan = "".join(f"A long line of the plan, number {number}\n" for number in range(20))
        history.commit("2026-01-05", {"MEMORY.md": "The plan is `road-map.md`.\n", "road-map.md": plan})
        history.commit("2026-01-09", {"archive/road-map.md": plan, "road-map.md": None})
        history.write(root)
        found = check(root, "The plan is `road-map.md`.\n", path="MEMORY.md")
        assert {name: (item.verdict, item.place) for name, item in found.items()} == {
            "road-map.md": ("moved", "archive/road-map.md")
        }

    def test_a_copy_in_a_backup_is_not_the_file(self, projects: Path) -> None:
        assert not check(projects, "The page is in `route.ts`.")


class TestWhatTheTextIsAbout:
    @pytest.mark.parametrize(
        ("text", "claim", "place"),
        [
            ("Lessons from MEMORY.md.", "MEMORY.md", "MEMORY.md"),  # the root before memory/
            ("[the other](MEMORY.md)", "MEMORY.md", "memory/MEMORY.md"),  # but a link is from its document
            ("See `topics/first.md`.", "topics/first.md", "memory/topics/first.md"),
            ("The parser-kit: `brief.md`.", "brief.md", "lab/parser-kit/brief.md"),
            ("## Store Kit\n\nIt has `clear()`.", "clear", "lab/store-kit/store.py:1"),
            ("## Parser kit\n\n`export_rows()` writes them.", "export_rows", "lab/parser-kit/parse.py:5"),
            ("See `/root/.openclaw/workspace/package.json`.", "/root/.openclaw/workspace/package.json", "package.json"),
        ],
    )
    def test_namesakes_are_told_apart(self, projects: Path, text: str, claim: str, place: str) -> None:
        found = check(projects, text)[claim]
        assert (found.verdict, found.place) == ("confirmed", place)

    @pytest.mark.parametrize(
        "text",
        [
            "Call `clear()` first.",  # a word that any program has
            "Its `package.json` starts the server.",  # a file that every project has
            "The page is `route.ts`.",
            "`brief.md` is short.",  # two projects have one
            "All have `tests/`.",
            "Served from `src/app/api/landing/route.ts`.\n\nThe `route.ts` has the whole page.",
            "Uses the key of `.env.scheduler`.",  # a file, and no attribute of env
            "Set `API_KEY` before.",
            "The column `row_count` is new, the setting `agents.list` too.",
            "Job `df22eb11` posts it.",  # nothing says that it is a commit
            "It wrote `/tmp/report.html`.",
            "The key is in `/etc/hosts`.",  # as on every machine
            "Read https://example.com/article.",
            "We decided to write less.",
            "assistant: HEARTBEAT_OK",
        ],
    )
    def test_what_nothing_ties_to_the_workspace_is_no_claim(self, projects: Path, text: str) -> None:
        assert {found.verdict for found in check(projects, text).values()} <= {"unverifiable"}

    def test_several_projects_define_it_and_nothing_says_which(self, projects: Path) -> None:
        found = check(projects, "`export_rows()` writes them.")["export_rows"]
        assert (found.verdict, found.reason) == ("unverifiable", "several")
        assert found.candidates == ("lab/store-kit/store.py:5", "lab/parser-kit/parse.py:5")

    def test_a_name_of_the_root_is_no_file_elsewhere(self, projects: Path) -> None:
        found = check(projects, "Create `/root/.openclaw/workspace/parse.py`.")
        assert "confirmed" not in {one.verdict for one in found.values()}

    def test_the_folder_called_workspace_is_the_workspace(self, projects: Path) -> None:
        assert check(projects, "Save all to `workspace/`.")["workspace/"].why == "the workspace itself"

    def test_what_code_uses_counts_where_the_text_is_about_that_code(self, projects: Path) -> None:
        assert "row_state" not in check(projects, "Wait for `row_state`.")
        assert check(projects, "`install.sh` waits for `row_state`.")["row_state"].verdict == "confirmed"

    @pytest.mark.parametrize(
        ("text", "verdict"),
        [
            ("The parser listens on localhost:8082.", "confirmed"),
            ("The dashboard listens on localhost:8082.", "unverifiable"),  # another service's
            ("The parser listens on localhost:8083.", "unverifiable"),  # only an example
            ("The parser listens on localhost:8084.", "unverifiable"),  # only data
        ],
    )
    def test_ports_of_the_service_that_is_meant(self, projects: Path, text: str, verdict: str) -> None:
        (found,) = check(projects, text).values()
        assert found.verdict == verdict

    def test_a_file_of_another_branch(self, projects: Path, tmp_path: Path) -> None:
        root = tmp_path / "workspace"
        git(tmp_path, "clone", "-q", str(projects), str(root))
        git(root, "checkout", "-q", "-b", "drafts")
        (root / "lab" / "draft.py").write_text("x = 1\n")
        git(root, "add", ".")
        git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "draft")
        git(root, "checkout", "-q", "-")
        found = check(root, "See `lab/draft.py`.")["lab/draft.py"]
        assert (found.verdict, found.reason) == ("confirmed", "other-branch")
        assert "on drafts" in found.why


class TestOfItsDay:
    @pytest.mark.parametrize(
        ("path", "text", "verdict"),
        [
            ("memory/note.md", "See `docs/plan.md`.", "gone"),
            ("memory/archive/note.md", "See `docs/plan.md`.", "unverifiable"),
            ("memory/move-plan.md", "See `docs/plan.md`.", "unverifiable"),
            ("memory/report-2026-02-01.md", "See `docs/plan.md`.", "unverifiable"),
            ("memory/report-2026-02-01.md", "Run `scripts/mail.py`.", "moved"),  # its readers need the new name
            ("memory/note.md", "| #7 | 2026-02-01 | wrote `docs/plan.md` |", "unverifiable"),
        ],
    )
    def test_records_raise_no_alarm(self, workspace: Path, path: str, text: str, verdict: str) -> None:
        (found,) = check(workspace, text, path).values()
        assert found.verdict == verdict


class TestOddFiles:
    def test_a_system_table_has_a_user_and_odd_jobs_are_none(self) -> None:
        text = "17 * * * * root /usr/bin/backup --all\n"
        assert parse_crontab(text, "/etc/crontab") == [CronEntry("17 * * * *", "/usr/bin/backup --all", "/etc/crontab")]
        for jobs in ('{"jobs": null}', '{"jobs": 5}', "[" * 100_000, '{"jobs": [5, null]}'):
            assert openclaw_jobs(jobs) == []

    def test_history_with_names_that_look_like_records(self, tmp_path: Path) -> None:
        """Of many paths all of history is read, with every name in it."""
        root = tmp_path / "workspace"
        history = History()
        odd = {":memory:": "1", ":100644 100644 a b M": "1"}
        files = {f"docs/part{number}.md": f"Part {number} of many\n" for number in range(40)}
        history.commit("2026-01-05", {"MEMORY.md": "# Memory\n", **files, **odd})
        history.commit("2026-01-09", {**dict.fromkeys(files), **dict.fromkeys(odd, "2")})
        history.write(root)
        found = check(root, "".join(f"See `{path}`.\n\n" for path in files), path="MEMORY.md")
        assert {item.verdict for item in found.values()} == {"gone"}
        assert len(found) == 40


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a second agent, copies of another machine's scripts, and a folder that a build makes."""
    root = tmp_path_factory.mktemp("agents") / "workspace"
    history = History()
    script = "def trim_old_ledger():\n    return MAX_LEDGER_PAGES\n"
    history.commit(
        "2026-01-05",
        {
            "SOUL.md": "# Soul\n",
            "kitchen/SOUL.md": "# The cook\n",
            "kitchen/AGENTS.md": "# Rules\n",
            "7-backups/2026-01-04/guard.py": script,
            "site/index.html": "<p>one</p>\n" * 20,
            "site/about.html": "<p>two</p>\n" * 20,
            "data/sample.json": '{"TASK_OUTCOME": "done"}\n',
            "plugins/.obsidian/main.js": "const DRY_RUN = 1\n",
            "skills/mail/run.py": "print(1)\n",
            "trade_desk/pm2.config.cjs": "module.exports = {}\n",
            "news_desk/pm2.config.cjs": "module.exports = {}\n",
        },
    )
    history.commit(
        "2026-03-05",
        {".gitignore": "site/\n", "7-backups/2026-01-04/guard.py": None},
        renames={"site": "site-source", "skills": "kit/skills"},
    )
    history.write(root)
    return root


class TestAgentsAndCopies:
    @pytest.mark.parametrize(
        ("path", "text", "expected"),
        [
            ("notes/a.md", "Read SOUL.md first.", ("confirmed", "SOUL.md")),
            ("kitchen/AGENTS.md", "Read `SOUL.md` first.", ("confirmed", "kitchen/SOUL.md")),
            ("kitchen/menu.md", "Its `SOUL.md` is long.", None),  # the cook's, or everybody's
            ("notes/a.md", "- It is in /home/kim/.openclaw/workspace-gym\n- Has `SOUL.md`", None),
            ("notes/a.md", "Append to your `HEARTBEAT.md`.", None),  # the harness makes it
            ("SOUL.md", "# SOUL.md", None),  # a document that names itself
        ],
    )
    def test_whose_file_is_meant(self, agents: Path, path: str, text: str, expected: tuple[str, str] | None) -> None:
        found = [item for item in check(agents, text, path).values() if item.claim.name.endswith(".md")]
        assert [(item.verdict, item.place) for item in found] == ([expected] if expected else [])

    @pytest.mark.parametrize(
        "text",
        [
            "`trim_old_ledger(...)` exists.",  # only a backup of another machine ever had it
            "`MAX_LEDGER_PAGES` limits it.",
            "TASK_OUTCOME: all is done",  # a word of a record
            "Started with `DRY_RUN=0`.",  # a plugin of the editor
        ],
    )
    def test_a_name_that_only_copies_and_records_have_is_no_claim(self, agents: Path, text: str) -> None:
        assert not check(agents, text, "notes/a.md")

    def test_what_a_build_makes_did_not_move(self, agents: Path) -> None:
        found = check(agents, "The page is served from `site/`.", "notes/a.md")
        assert words(found) == {"site/": ("unverifiable", "ignored")}

    def test_a_full_path_means_one_place(self, agents: Path) -> None:
        name = "/root/.openclaw/workspace/skills/mail"
        assert check(agents, f"It is in `{name}`.", "notes/a.md")[name].verdict != "confirmed"

    def test_a_line_that_has_a_word_of_another_folder_leaves_it_open(self, agents: Path) -> None:
        text = "## News desk\n\nThe {}poller is in `pm2.config.cjs`."
        assert not check(agents, text.format("trade "), "notes/a.md")
        assert check(agents, text.format(""), "notes/a.md")["pm2.config.cjs"].place == "news_desk/pm2.config.cjs"


class TestDatedEntries:
    @pytest.mark.parametrize(
        ("text", "verdict"),
        [
            ("- 2026-02-01T11:28:39Z | DONE | see `docs/plan.md`", "unverifiable"),
            ("- 2026-02-01 | DONE | all\n\nRESULT\nIt is in `docs/plan.md`.", "unverifiable"),
            ("- 2026-02-01 done\n- The plan is `docs/plan.md`.", "gone"),  # the next item has no day
            ("- 2026-02-01 done\n\n## Files\n\nThe plan is `docs/plan.md`.", "gone"),
            ("2026-02-01\n\n- wrote `docs/plan.md`", "unverifiable"),
        ],
    )
    def test_how_far_an_entry_goes(self, workspace: Path, text: str, verdict: str) -> None:
        assert check(workspace, text)["docs/plan.md"].verdict == verdict


class TestToldMoves:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Run `scripts/mail.py`.", ("moved", "renamed")),
            ("`scripts/mail.py` was put into `scripts/send/`.", ("unverifiable", "of-its-day")),
            ("| `scripts/mail.py` | old | `scripts/send/mail.py` |", ("unverifiable", "of-its-day")),
        ],
    )
    def test_a_line_that_tells_the_new_place_is_no_alarm(
        self, workspace: Path, text: str, expected: tuple[str, str]
    ) -> None:
        assert words(check(workspace, text))["scripts/mail.py"] == expected

    def test_a_bold_folder_above_a_list_says_where_its_files_are(self, workspace: Path) -> None:
        found = check(workspace, "**scripts/send/** (the mailer):\n\n- `mail.py`\n", path="MEMORY.md")
        assert found["mail.py"].place == "scripts/send/mail.py"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A value of the settings was changed and another variable was removed; so was a file that is elsewhere too."""
    root = tmp_path_factory.mktemp("still") / "workspace"
    history = History()
    example = "DATABASE_URL={}\nSITE_MAIL_SENDER=x\nNODE_ENV=x\nOPENCLAW_GATEWAY_TOKEN=x\n"
    memory = "# Memory\n\nSet `DATABASE_URL`, `SITE_MAIL_SENDER`, `NODE_ENV` and `OPENCLAW_GATEWAY_TOKEN`.\n"
    tool = "def run(args):\n    parser.add_argument('--keep-going')\n    return args.dry_run, args.keep_going\n"
    history.commit(
        "2026-01-05",
        {
            ".env.example": example.format("file:x"),
            "src/index.ts": "const client = open(process.env.DATABASE_URL, process.env.OPENCLAW_LANE)\n",
            "src/tool.py": tool,
            "MEMORY.md": memory,
            "outbox/today.md": "A letter\n",
            "brief.md": "At the root\n",
            "alpha-kit/brief.md": "Of alpha\n",
            "beta-kit/brief.md": "Of beta\n",
        },
    )
    after = {
        ".env.example": "DATABASE_URL=file:y\n",
        "src/tool.py": "def run(args):\n    return args.dry_run, args.keep_going\n",
        "outbox/today.md": None,
        "brief.md": None,
        ".gitignore": ".env\n",
    }
    history.commit("2026-02-05", after)
    history.write(root)
    (root / ".env").write_text("SITE_MAIL_SENDER=x\n")
    return root


class TestNamesThatAreStillHere:
    def test_a_name_that_code_still_has_is_never_gone(self, service: Path) -> None:
        found = words(check(service, (service / "MEMORY.md").read_text(), path="MEMORY.md"))
        assert found["DATABASE_URL"] == ("unverifiable", "several")
        assert found["NODE_ENV"][0] == "gone"  # nothing has it any more
        assert found["SITE_MAIL_SENDER"][0] == "gone"

    def test_a_file_that_git_ignores_may_still_have_it(self, service: Path) -> None:
        found = check(service, "`SITE_MAIL_SENDER` is in `.env`.", path="MEMORY.md")
        assert found["SITE_MAIL_SENDER"].verdict == "unverifiable"

    def test_variables_of_the_harness_are_not_the_workspaces(self, service: Path) -> None:
        found = words(check(service, "Set `OPENCLAW_GATEWAY_TOKEN` and `OPENCLAW_LANE`.", path="MEMORY.md"))
        assert found["OPENCLAW_GATEWAY_TOKEN"] == ("unverifiable", "of-harness")
        assert found.get("OPENCLAW_LANE", ("", ""))[0] != "gone"  # the workspace's own code has it

    @pytest.mark.parametrize(("flag", "verdict"), [("--dry-run", "unverifiable"), ("--keep-going", "gone")])
    def test_a_spelling_that_code_still_has_is_no_witness(self, service: Path, flag: str, verdict: str) -> None:
        assert check(service, f"Run `src/tool.py {flag}`.", path="MEMORY.md")[flag].verdict == verdict

    def test_a_file_name_that_several_folders_still_have(self, service: Path) -> None:
        found = check(service, "The plan is in `brief.md`.", path="MEMORY.md")
        assert {one.verdict for one in found.values()} <= {"unverifiable"}

    @pytest.mark.parametrize(
        ("text", "claim", "verdict"),
        [
            ("Letters wait in `outbox/`, which is emptied nightly.", "outbox/", "unverifiable"),
            ("`outbox/` is cleaned every night: `outbox/today.md`.", "outbox/today.md", "unverifiable"),
            ("- `outbox/` (emptied nightly)\n\nRead `outbox/today.md`.", "outbox/today.md", "unverifiable"),
            ("Read `outbox/today.md`.", "outbox/today.md", "gone"),
            ("`outbox/today.md` is read nightly.", "outbox/today.md", "gone"),
            ("- `cache/` (emptied nightly)\n\nRead `outbox/today.md`.", "outbox/today.md", "gone"),
        ],
    )
    def test_a_folder_that_is_emptied_regularly(self, service: Path, text: str, claim: str, verdict: str) -> None:
        assert check(service, text, path="MEMORY.md")[claim].verdict == verdict

    @pytest.mark.parametrize(
        "text",
        [
            "`alpha-kit/brief.md`: no daily file existed.",
            "No daily file existed (`alpha-kit/brief.md`).",
            "No `alpha-kit/brief.md` existed.",
            "No daily file `alpha-kit/brief.md` existed on that day.",
        ],
    )
    def test_what_did_not_exist_is_not_confirmed_by_a_file(self, service: Path, text: str) -> None:
        assert check(service, text, path="MEMORY.md") == {}

    def test_what_the_missing_file_is_not(self, service: Path) -> None:
        found = check(service, "No daily file existed, so we wrote `alpha-kit/brief.md`.", path="MEMORY.md")
        assert found["alpha-kit/brief.md"].verdict == "confirmed"
