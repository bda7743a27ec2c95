"""`truekeep check`: which documents, which alarms, and what a change made false."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree
from zlib import crc32

import pytest

from tests.support.helpers import run_cli
from tests.support.project import Project
from truekeep.check.documents import without_older_versions
from truekeep.check.inline_ignores import find_ignored_lines
from truekeep.check.records import is_record
from truekeep.check.settings import CheckSettings, read_settings
from truekeep.core.errors import BadInput


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path / "app")
    made.write("src/server.py", "def serve_requests(port):\n    return port\n\n\ndef stop_server():\n    return None\n")
    made.write("src/client.py", "def call_server():\n    return 1\n")
    made.write(
        "README.md", "# App\n\nThe server is in `src/server.py`; `serve_requests()` in `src/server.py` starts it.\n"
    )
    made.write("docs/guide.md", "See [the client](../src/client.py) and [the server](../src/server.py).\n")
    made.commit("first")
    monkeypatch.chdir(made.path)
    return made


def test_a_true_repository_has_no_alarm(project: Project) -> None:
    report = project.report()
    assert report["alarms"] == []
    assert report["files"] == 2
    assert report["counts"]["confirmed"] == report["claims"] == 5
    assert "no false claims; checked 5 of 5 claims in 2 files" in project.check(exit_code=0)


def test_a_moved_file_is_reported_with_its_repair_and_written(project: Project) -> None:
    project.git("mv", "src/client.py", "src/remote.py")
    project.commit("rename")
    assert project.alarms() == [("docs/guide.md", 1, "moved", "../src/client.py")]
    said = project.check("--fix", exit_code=0)
    assert "fixed docs/guide.md: 1 place" in said
    assert (project.path / "docs/guide.md").read_text() == (
        "See [the client](../src/remote.py) and [the server](../src/server.py).\n"
    )
    assert project.alarms() == []


def test_only_what_a_change_caused_is_reported(project: Project) -> None:
    project.commit("old rot", **{"AGENTS.md": "Read `src/never/there.py` and `src/client.py` first.\n"})
    project.git("mv", "src/client.py", "src/old_client.py")
    base = project.commit("rot from before")
    project.git("rm", "-q", "src/server.py")
    project.commit("remove the server")
    before = {("AGENTS.md", 1, "moved", "src/client.py"), ("docs/guide.md", 1, "moved", "../src/client.py")}
    assert before < set(project.alarms())
    caused = project.alarms("--since", base)
    assert not before & set(caused)
    assert ("README.md", 3, "gone", "src/server.py") in caused
    assert ("docs/guide.md", 1, "gone", "../src/server.py") in caused


def test_a_false_line_that_the_change_adds_is_its_own(project: Project) -> None:
    project.git("mv", "src/client.py", "src/remote.py")
    base = project.commit("rename")
    project.write("README.md", (project.path / "README.md").read_text() + "\nAlso [this](src/client.py).\n")
    assert project.alarms("--since", base) == [("README.md", 5, "moved", "src/client.py")]
    assert project.alarms("--diff") == [("README.md", 5, "moved", "src/client.py")]


def test_uncommitted_changes_count(project: Project) -> None:
    (project.path / "src/client.py").rename(project.path / "src/remote.py")
    assert project.alarms("--diff") == [("docs/guide.md", 1, "moved", "../src/client.py")]
    assert "fixed docs/guide.md: 1 place" in project.check("--diff", "--fix", exit_code=0)
    assert "[the client](../src/remote.py)" in (project.path / "docs/guide.md").read_text()


def test_a_shallow_clone_tells_what_the_change_removed(project: Project, tmp_path: Path) -> None:
    project.write("src/server.py", "def serve_all(port):\n    return port\n\n\ndef stop_server():\n    return None\n")
    project.git("mv", "src/client.py", "src/remote.py")
    project.commit("rename both")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "2", f"file://{project.path}", str(clone)], check=True)
    done = run_cli("check", "--repo", str(clone), "--since", "HEAD~1", "--json")
    found = {(item["path"], item["verdict"], item["claim"]) for item in json.loads(done.stdout)["report"]["alarms"]}
    assert ("docs/guide.md", "moved", "../src/client.py") in found
    assert done.returncode == 12


def test_an_unknown_base_is_one_clear_message(project: Project) -> None:
    done = run_cli("check", "--repo", str(project.path), "--since", "no-such-branch")
    assert done.returncode == 3
    assert "there is no commit no-such-branch here" in done.stderr
    done = run_cli("check", "--repo", str(project.path), "--since", "--upload-pack=x")
    assert done.returncode != 0


def test_a_baseline_accepts_old_rot_and_nothing_new(project: Project) -> None:
    project.git("rm", "-q", "src/client.py")
    project.commit("remove")
    assert "1 alarm accepted" in project.check("--write-baseline", exit_code=0)
    project.write("truekeep.toml", 'baseline = ".truekeep-baseline.json"\n')
    assert project.alarms() == []
    assert project.report()["known"] == 1
    guide = project.path / "docs/guide.md"
    guide.write_text("A line above.\n\n" + guide.read_text())
    assert project.alarms() == []
    guide.write_text(guide.read_text() + "\nAnd [again](../src/client.py).\n")
    assert project.alarms() == [("docs/guide.md", 5, "gone", "../src/client.py")]


def test_comments_and_settings_leave_alarms_out(project: Project) -> None:
    project.git("rm", "-q", "src/client.py")
    project.commit("remove")
    text = (project.path / "docs/guide.md").read_text().rstrip("\n")
    project.write("docs/guide.md", f"{text} <!-- truekeep: ignore -->\n")
    report = project.report()
    assert (report["alarms"], report["ignored"]) == ([], 1)
    project.write("docs/guide.md", f"{text}\n")
    project.write("pyproject.toml", '[tool.truekeep]\nignore = ["*/client.py"]\n')
    assert project.alarms() == []
    project.write("pyproject.toml", '[tool.truekeep]\nexclude = ["docs/"]\n')
    assert (project.alarms(), project.report()["files"]) == ([], 1)
    project.write("pyproject.toml", '[tool.truekeep]\nkinds = ["symbol"]\n')
    assert project.alarms() == []


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ("a <!-- truekeep: ignore -->\nb", {1}),
        ("<!-- truekeep: ignore -->\na\nb\n\nc", {1, 2, 3}),
        ("<!-- truekeep: ignore -->\n\na\n\nc", {1, 3}),
        ("a\n<!-- truekeep: ignore-start -->\nb\n\nc\n<!-- truekeep: ignore-end -->\nd", {2, 3, 4, 5}),
        ("a\n<!-- truekeep: ignore-start -->\nb\n\nc", {2, 3, 4, 5}),
        ("{/* truekeep: ignore */}\na", {1, 2}),
        (".. truekeep: ignore\n\na\n\nb", {1, 3}),
        ("- item <!-- truekeep:ignore -->\n- other", {1}),
        ("the words truekeep: ignore in a text", set()),
    ],
)
def test_ignored_lines(text: str, ignored: set[int]) -> None:
    found = find_ignored_lines(text)
    assert {number for number in range(1, 9) if found.has(number)} == ignored


def test_a_whole_file_is_ignored() -> None:
    assert find_ignored_lines("a\n<!-- truekeep: ignore-file -->\nb").is_whole_file


def test_documents_of_others_are_left_out(project: Project) -> None:
    broken = "See [this](missing.md).\n"
    for path in (
        "vendor/x/README.md",
        "node_modules/x/README.md",
        "docs/generated.md",
        "docs/CHANGELOG.md",
        "notes.md",
    ):
        project.write(path, broken)
    project.write(".gitattributes", "docs/generated.md linguist-generated\n")
    project.commit("others")
    assert project.alarms() == []
    assert project.alarms("notes.md") == [("notes.md", 1, "gone", "missing.md")]
    assert project.alarms("vendor/x/README.md") == [("vendor/x/README.md", 1, "gone", "missing.md")]
    assert project.alarms("*.md") == [("notes.md", 1, "gone", "missing.md")]
    assert project.alarms(".") == [("notes.md", 1, "gone", "missing.md")]


@pytest.mark.parametrize(
    ("paths", "left_out"),
    [
        (["docs/a.md", "docs/b.md", "docs/v2/a.md", "docs/v2/b.md", "docs/v3/a.md"], {"docs/v2", "docs/v3"}),
        (["docs/README.md", *(f"docs/v{version}/{page}.md" for version in (9, 10) for page in "abcdef")], {"docs/v9"}),
        (["docs/1.2/a.md", "docs/1.10/a.md"], {"docs/1.2"}),
        (["docs/a.md", "docs/api/v1/a.md", "docs/01-start/a.md", "docs/2024/a.md"], set()),  # an API, chapters, years
        (["docs/v2/a.md"], set()),
    ],
)
def test_documents_of_earlier_versions_are_left_out(paths: list[str], left_out: set[str]) -> None:
    kept = without_older_versions(paths)
    assert {path.rpartition("/")[0] for path in paths if path not in kept} == left_out


def test_where_links_lead(project: Project) -> None:
    project.write(
        "docs/links.md",
        "[a](guide.md) [b](guide) [c](guide.html) [d](./guide.md#part) [e](/route/page.md) [f](../../issues)\n"
        "[g](src/client.py) [h](../README.md) [i](guides.md) [j](gu%69de.md) [k](https://example.org/x.md)\n",
    )
    assert project.alarms() == [
        ("docs/links.md", 1, "gone", "#part"),
        ("docs/links.md", 2, "gone", "src/client.py"),
        ("docs/links.md", 2, "gone", "guides.md"),
    ]


def test_rst_and_mdx_are_read(project: Project) -> None:
    project.write("docs/api.rst", "API\n===\n\nThe client is in ``src/client.py``.\n")
    project.write("docs/page.mdx", "import X from './x'\n\nThe client is in `src/client.py`.\n")
    project.git("rm", "-q", "src/client.py")
    project.commit("remove")
    found = {path for path, *_ in project.alarms()}
    assert {"docs/api.rst", "docs/page.mdx"} <= found


def test_text_files_below_docs_are_documents_and_requirements_are_not(project: Project) -> None:
    project.write("docs/topics/usage.txt", "Usage\n=====\n\nThe client is in ``src/client.py``.\n")
    project.write("docs/requirements.txt", "# src/client.py needs\nrequests\n")
    project.write("notes.txt", "The client is in ``src/client.py``.\n")
    project.git("rm", "-q", "src/client.py")
    project.commit("remove")
    assert {path for path, *_ in project.alarms()} == {"docs/guide.md", "docs/topics/usage.txt"}


def test_unknown_settings_are_errors(project: Project) -> None:
    project.write("truekeep.toml", "exlude = []\n")
    done = run_cli("check", "--repo", str(project.path))
    assert done.returncode == 3
    assert "exlude is not a setting" in done.stderr
    assert "did you mean exclude?" in done.stderr


@pytest.mark.parametrize(
    "text",
    ["kinds = ['nonsense']", "confidence = 'sure'", "include = 'docs'", "baseline = 3", "include = [1]", "broken ="],
)
def test_wrong_settings_name_their_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "truekeep.toml").write_text(text)
    with pytest.raises(BadInput, match=r"truekeep\.toml"):
        read_settings(tmp_path)


def test_settings_of_others_are_no_business(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("this is = not = toml")
    assert read_settings(tmp_path) == CheckSettings()


def test_formats_of_other_programs(project: Project) -> None:
    project.git("mv", "src/client.py", "src/remote.py")
    project.commit("rename")
    (annotation,) = project.check("--format", "github", exit_code=12).splitlines()
    assert annotation.startswith("::error file=docs/guide.md,line=1,col=18,endColumn=34,title=truekeep%3A moved::")
    sarif = json.loads(project.check("--format", "sarif"))
    (result,) = sarif["runs"][0]["results"]
    assert result["ruleId"] == "moved"
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "../src/remote.py"
    suites = ElementTree.fromstring(project.check("--format", "junit"))
    assert suites.attrib["failures"] == "1"
    assert json.loads(project.check("--format", "badge"))["color"] == "red"


def test_a_value_in_many_places_is_one_line(project: Project) -> None:
    for number in range(6):
        project.write(f"docs/page{number}.md", "See [it](../src/client.py).\n")
    project.git("rm", "-q", "src/client.py")
    project.commit("remove")
    said = project.check(exit_code=12)
    assert said.count("../src/client.py") == 1
    assert "and 3 more" in said
    assert "7 false claims" in said


def test_nothing_to_check_against_is_not_green(tmp_path: Path) -> None:
    done = run_cli("check", "--repo", str(tmp_path))
    assert done.returncode == 3
    assert "is not in a git repository" in done.stderr


def test_a_bare_repository_and_one_without_commits_say_what_to_do(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare.git")], check=True)
    done = run_cli("check", "--repo", str(tmp_path / "bare.git"))
    assert done.returncode == 3
    assert "bare.git is a bare repository\n  check a work tree of it" in done.stderr
    empty = Project(tmp_path / "empty")
    subprocess.run(["git", "init", "-q", str(tmp_path / "new")], check=True)
    done = run_cli("check", "--repo", str(tmp_path / "new"), "--diff")
    assert done.returncode == 3
    assert "this repository has no commit yet" in done.stderr
    assert "no documents here: name files" in empty.check(exit_code=0)


def test_a_document_that_is_not_text_is_not_green(project: Project) -> None:
    (project.path / "docs" / "latin.md").write_bytes(b"caf\xe9 `src/server.py`\n")
    said = project.check("docs/latin.md", exit_code=13)
    assert "docs/latin.md: not UTF-8 text, so it was not checked" in said
    assert "not UTF-8 text" in project.check(exit_code=0)  # the others were checked


def test_two_words_with_one_key_are_both_lost(project: Project) -> None:
    one, other = "ntNXiGIdL", "nY9ehY8mR"
    assert crc32(one.encode()) == crc32(other.encode())
    project.write("src/odd.py", f"def {one}():\n    return 1\n\n\ndef {other}():\n    return 2\n")
    project.write("AGENTS.md", f"Call `{one}()`.\n\nCall `{other}()`.\n")
    project.commit("both")
    project.write("src/odd.py", "def neither():\n    return 1\n")
    assert [(line, claim) for _, line, _, claim in project.alarms("--diff")] == [(1, one), (3, other)]


def test_memory_of_the_repository_is_reviewed_too(project: Project, tmp_path: Path) -> None:
    workspace = tmp_path / "memory"
    assert run_cli("init", str(workspace), "--repo", str(project.path)).returncode == 0
    card = workspace / "memory" / "cards" / "client.md"
    card.write_text(
        "---\ntopic: Client\ncategory: design\ntags: [client]\nrepository: github.com/me/app\ncreated: 2026-11-01\n"
        "updated: 2026-11-01\n---\n\nThe client is in `src/client.py`.\n"
    )
    base = project.git("rev-parse", "HEAD")
    project.git("rm", "-q", "src/client.py")
    project.commit("remove")
    done = run_cli("check", "--repo", str(project.path), "--since", base, "-w", str(workspace), "--json")
    found = json.loads(done.stdout)["report"]["alarms"]
    assert [item["path"] for item in found if item["is_memory"]] == ["memory/cards/client.md"]


_PLANTED = """# Notes for agents

The worker is in `src/worker.py`, and its helpers are in `src/helpers.py`.
Run `npm run deploy` to ship it. Call `start_workers()` in `src/server.py` before anything else.
The program takes `app --threads`; `serve_requests` is at `src/server.py:5`, and `src/server.py:240` closes sockets.
It listens on port 9100. All of this came in with commit 1a2b3c4d5e.
"""


def test_nine_planted_claims_are_all_found(project: Project) -> None:
    project.commit(
        "old", **{"src/worker.py": "def work():\n    return 1\n", "src/helpers.py": "def help_out():\n    pass\n"}
    )
    project.write("package.json", '{"name": "app", "scripts": {"build": "node build.js"}}\n')
    project.write("compose.yaml", "services:\n  app:\n    image: app\n    ports:\n      - 8080:8080\n")
    project.git("mv", "src/worker.py", "src/job.py")
    project.git("rm", "-q", "src/helpers.py")
    project.commit("moves")
    project.write("AGENTS.md", _PLANTED)
    project.commit("planted")
    report = project.report("AGENTS.md", "--confidence", "low")
    found = {(alarm["claim"], alarm["kind"]) for alarm in report["alarms"]}
    assert found == {
        ("src/worker.py", "path"),
        ("src/helpers.py", "path"),
        ("deploy", "script"),
        ("start_workers", "symbol"),
        ("--threads", "flag"),
        ("src/server.py:5", "line"),
        ("src/server.py:240", "line"),
        ("9100", "port"),
        ("1a2b3c4d5e", "commit"),
    }
    assert report["counts"]["unverifiable"] == 0


def _confidences(project: Project, *arguments: str) -> dict[str, str]:
    return {
        alarm["claim"]: alarm["confidence"] for alarm in project.report(*arguments, "--confidence", "low")["alarms"]
    }


def test_a_name_counts_if_the_document_had_it_before_the_removal(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("docs/old.md", "Call `stop_server()` at the end.\n")
    project.commit("documented")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2030-01-01T00:00:00Z")
    project.write("src/server.py", "def serve_requests(port):\n    return port\n")
    project.commit("removed")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2031-01-01T00:00:00Z")
    project.write("docs/old.md", "Call `stop_server()` at the very end.\n")
    project.write("docs/new.md", "Call `stop_server()` never.\n")
    project.commit("edited later")
    report = project.report("--confidence", "low")
    assert {alarm["path"]: alarm["confidence"] for alarm in report["alarms"]} == {
        "docs/old.md": "high",
        "docs/new.md": "low",
    }


def test_a_name_that_live_code_uses_is_not_gone(project: Project) -> None:
    project.write("src/old.py", "def make_folder():\n    return 1\n")
    project.write("docs/guide.md", "Pass `make_folder` to the server.\n")
    project.commit("had it")
    project.git("rm", "-q", "src/old.py")
    project.write("src/client.py", "def call_server(make_folder):\n    return make_folder\n")
    project.commit("a parameter of that name is left")
    assert _confidences(project) == {}


def test_a_file_that_never_was_is_told_to_contributors(project: Project) -> None:
    text = "Change `src/sockets.py` first; tests go to `src/test_foo.py`.\n"
    project.write("CONTRIBUTING.md", text)
    project.write("README.md", text)
    project.commit("written by guess")
    found = project.report("--confidence", "low")["alarms"]
    assert [(alarm["path"], alarm["claim"], alarm["confidence"]) for alarm in found] == [
        ("CONTRIBUTING.md", "src/sockets.py", "high"),
        ("README.md", "src/sockets.py", "low"),
    ]


def test_a_path_of_a_package_below_the_root_is_followed(project: Project) -> None:
    project.commit("package", **{"core/app/protocol/src/v2.rs": "fn a() {}\n", "core/app/protocol/src/v1.rs": ""})
    project.write("AGENTS.md", "The shapes are in `protocol/src/v2.rs`.\n")
    project.commit("documented")
    assert _confidences(project) == {}
    project.git("rm", "-q", "core/app/protocol/src/v2.rs")
    project.commit("removed")
    assert _confidences(project) == {"protocol/src/v2.rs": "high"}


def test_a_shallow_clone_tells_what_its_tree_can_tell(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("AGENTS.md", "Read `src/net/wire.py`, and see [the notes](docs/notes.md).\n")
    project.commit("had it", **{"src/net/wire.py": "", "src/net/other.py": "", "docs/notes.md": "Notes.\n"})
    project.git("rm", "-q", "src/net/wire.py", "docs/notes.md")
    project.commit("removed")
    full = project.alarms("AGENTS.md")
    clone = Project(tmp_path / "clone")
    clone.git("fetch", "-q", "--depth", "1", f"file://{project.path}", "HEAD")
    clone.git("checkout", "-q", "FETCH_HEAD")
    monkeypatch.chdir(clone.path)
    assert [place[:2] + place[3:] for place in clone.alarms("AGENTS.md")] == [place[:2] + place[3:] for place in full]
    assert len(full) == 2


def test_restructured_text_is_read(project: Project) -> None:
    project.commit("code", **{"src/cache.py": "def warm_cache():\n    pass\n\n\ndef read_cache():\n    pass\n"})
    project.write(
        "docs/index.rst",
        "Cache\n=====\n\nSee :doc:`guide`, `the client <../src/client.py>`_ and :ref:`warm_cache`.\n\n"
        "Call :func:`~app.cache.read_cache` first, then ``warm_cache()``.\n\n"
        ".. versionchanged:: 2.0\n   ``warm_cache()`` is public.\n\n"
        "Example::\n\n    warm_cache()\n\n.. code-block:: python\n\n    from app import warm_cache\n",
    )
    project.commit("documented")
    assert _confidences(project) == {}
    project.write("src/cache.py", "def read_cache():\n    pass\n")
    project.git("mv", "src/client.py", "src/remote.py")
    project.commit("changed")
    found = project.report("docs/index.rst", "--confidence", "low")["alarms"]
    assert [(alarm["line"], alarm["claim"]) for alarm in found] == [(4, "../src/client.py"), (6, "warm_cache")]


def test_a_missing_entry_of_a_folder_tree_is_reported(project: Project) -> None:
    tree = (
        "# Layout\n\n```\napp/\n├── src/\n│   ├── server.py     # serves\n│   ├── client.py\n"
        "│   ├── relay.py      # relays\n│   ├── cache.py      # planned\n│   └── legacy/\n"
        "│       └── old.py\n├── docs/\n│   └── guide.md\n└── …\n```\n"
    )
    project.commit(**{"AGENTS.md": tree})
    assert project.alarms() == [
        ("AGENTS.md", 8, "gone", "relay.py"),
        ("AGENTS.md", 10, "gone", "legacy/"),
    ]
    assert "src has no relay.py" in project.check()


def test_a_tree_without_lines_is_read_by_its_indentation(project: Project) -> None:
    tree = "# Layout\n\n```text\nsrc/\n  server.py\n  client.py\n  relay.py\ndocs/\n  guide.md\n```\n"
    project.commit(**{"CONTRIBUTING.md": tree})
    assert project.alarms() == [("CONTRIBUTING.md", 7, "gone", "relay.py")]


def test_a_tree_of_the_readers_own_project_says_nothing(project: Project) -> None:
    tree = (
        "# Start\n\n```\nmy-shop/\n├── src/\n│   ├── index.ts\n│   └── shop.ts\n├── package.json\n└── README.md\n```\n"
    )
    project.commit(**{"docs/start.md": tree})
    assert project.alarms() == []


def test_an_entry_of_a_tree_that_was_renamed_is_named_and_not_rewritten(project: Project) -> None:
    tree = "# Layout\n\n```\nsrc/\n├── server.py\n├── client.py\n└── relay.py\ndocs/\n└── guide.md\n```\n"
    project.commit(**{"src/relay.py": "def relay_all():\n    return 2\n", "AGENTS.md": tree})
    project.git("mv", "src/relay.py", "src/router.py")
    project.commit("rename")
    assert project.alarms() == [("AGENTS.md", 7, "moved", "relay.py")]
    project.check("--fix")
    assert (project.path / "AGENTS.md").read_text() == tree


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("docs/plans/queue.md", "# Queue\n", True),
        ("docs/2026-03-02-queue.md", "# Queue\n", True),
        ("docs/queue-refactoring.md", "# Queue\n", True),
        ("docs/queue.md", "# Queue\n\nStatus: Proposed\n", True),
        ("docs/queue.md", "# Queue: implementation plan\n", True),
        ("docs/queue.md", "# Queue\n\n" + "- [x] write it\n" * 6, True),
        ("docs/queue.md", "# Queue\n\nStatus: active\n", False),
        ("docs/queue.md", "# Queue\n\nThe report is sent at night.\n", False),
        ("CONTRIBUTING.md", "# Release plan\n", False),
    ],
)
def test_plans_and_reports(path: str, text: str, expected: bool) -> None:
    assert is_record(path, text) is expected


def test_what_a_plan_names_is_no_alarm_but_its_broken_link_is(project: Project) -> None:
    plan = "# Plan\n\nChange `src/client.py`, see [the notes](notes.md).\n"
    project.commit(**{"docs/plans/client.md": plan})
    project.git("rm", "-q", "src/client.py", "docs/guide.md")
    project.commit("gone")
    assert project.alarms() == [("docs/plans/client.md", 3, "gone", "notes.md")]


@pytest.mark.parametrize(
    "text",
    [
        "The file\n`src/client.py` was the first\nclient and was removed with the old protocol.\n",
        "## Retired parts\n\nIt was in `src/client.py` and talked to the server.\n",
        "## Roadmap\n\n### Clients\n\nMove the code of `src/client.py` into a package.\n",
    ],
)
def test_what_the_sentence_or_its_heading_tells_as_past_is_no_alarm(project: Project, text: str) -> None:
    project.commit(**{"AGENTS.md": f"# Agents\n\n{text}"})
    project.git("rm", "-q", "src/client.py", "docs/guide.md")
    project.commit("gone")
    assert project.alarms() == []


def test_a_link_whose_text_is_its_target_is_one_claim(project: Project) -> None:
    project.commit(**{"CONTRIBUTING.md": "See [src/client.py](src/client.py) and [`src/relay.py`](src/relay.py).\n"})
    assert project.alarms() == [("CONTRIBUTING.md", 1, "gone", "src/relay.py")]


def test_what_became_a_submodule_is_not_gone(project: Project) -> None:
    code = "def parse_frame_header():\n    return 1\n"
    project.commit(
        **{"lib/wire/frame.py": code, "AGENTS.md": "`parse_frame_header()` reads frames (`lib/wire/frame.py`).\n"}
    )
    project.git("rm", "-rq", "lib/wire")
    head = project.git("rev-parse", "HEAD")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{head},wire")
    (project.path / "wire").mkdir()
    project.git("commit", "-qm", "a submodule")
    assert project.alarms() == []


def test_paths_behind_cd_are_of_that_folder(project: Project) -> None:
    fence = "```sh\ncd src && python client.py\ncd src && ./server.py\ncd docs\n./relay.sh\ncd src\n./any.sh\n```\n"
    text = f"Run:\n\n{fence}\nOr `cd src && ./relay.sh`.\n"
    project.commit(**{"CONTRIBUTING.md": text})
    assert project.alarms() == [
        ("CONTRIBUTING.md", 7, "gone", "./relay.sh"),
        ("CONTRIBUTING.md", 12, "gone", "./relay.sh"),
    ]
    assert "docs has no relay.sh" in project.check()


def test_a_command_that_ends_in_a_file_is_no_path(project: Project) -> None:
    project.commit(**{"bin/run": "#!/bin/sh\n", "AGENTS.md": "Run `bin/run --only src/server.py`.\n"})
    assert project.alarms() == []


def test_pages_of_a_website_are_linked_by_its_rules(project: Project) -> None:
    page = "See ![it](images/a.png) and [notes](nowhere.md).\n"
    project.commit(**{"docs/deep/page.md": page, "docs/images/a.png": "", "mkdocs.yml": "site_name: App\n"})
    assert project.alarms() == [("docs/deep/page.md", 1, "gone", "nowhere.md")]
    assert ("docs/deep/page.md", 1, "gone", "images/a.png") in project.alarms("--confidence", "medium")


def test_what_a_package_that_left_had_is_less_certain_for_users(project: Project) -> None:
    text = "`WireReader` reads frames.\n"
    project.commit(**{"wire/reader.py": "class WireReader:\n    pass\n", "docs/wire.md": text, "AGENTS.md": text})
    project.git("rm", "-rq", "wire")
    project.commit("a project of its own")
    assert project.alarms() == [("AGENTS.md", 1, "gone", "WireReader")]
    assert ("docs/wire.md", 1, "gone", "WireReader") in project.alarms("--confidence", "medium")


def test_a_variable_named_like_those_of_the_code_is_one_of_them(project: Project) -> None:
    code = 'import os\nHOST = os.environ["SHOP_HOST"]\nPORT = os.environ["SHOP_PORT"]\n'
    text = "Set `SHOP_HOST`, `SHOP_TIMEOUT` and `MAILER_TIMEOUT`.\n"
    project.commit(**{"src/settings.py": code, "AGENTS.md": text})
    assert project.alarms() == [("AGENTS.md", 1, "gone", "SHOP_TIMEOUT")]


def test_the_first_line_of_a_file_means_the_file(project: Project) -> None:
    project.commit(
        **{"AGENTS.md": "`serve_requests` is in `src/server.py:1`, `stop_server` too (`src/server.py:1`).\n"}
    )
    assert project.alarms() == []


def test_a_file_at_the_root_is_known_by_other_capitals(project: Project) -> None:
    project.commit(justfile="test:\n\tpytest\n")
    project.git("mv", "justfile", "Justfile")
    project.commit("capitals", **{"CONTRIBUTING.md": "Commands are in our `justfile`.\n"})
    assert project.alarms() == []


def test_a_subject_with_a_line_separator_is_one_line(project: Project) -> None:
    project.commit("first words\u2028a note on them\x0cmore to come")
    project.write("AGENTS.md", "We went with Redis rather than Memcached.\n")
    project.commit("went with Redis")
    assert project.report("--confidence", "low")["claims"] >= 1


def test_a_change_makes_a_line_false_under_any_heading(project: Project) -> None:
    project.commit("guide", **{"AGENTS.md": "# Guide\n\n### Step 2: end it\n\nCall `stop_server()` at the end.\n"})
    project.write("src/server.py", "def serve_requests(port):\n    return port\n")
    assert ("AGENTS.md", 5, "gone", "stop_server") in project.alarms("--diff")
