"""Verdicts from Markdown to answer, on small real repositories: every kind of claim with each verdict it can have."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, Place, a_card, a_document_handoff, run_cli
from tests.support.histories import NAME, History, Repo, check, git, settle, verifier_for
from tests.support.memories import remember
from truekeep.verify import checkout as tree
from truekeep.verify import languages
from truekeep.verify.cache import FactsCache
from truekeep.verify.options import Options
from truekeep.verify.results import CheckedMemory
from truekeep.verify.verdict import CODE, GIT, Verdict

BEFORE, AFTER = "2026-01-10", "2026-06-20"  # a memory of the first commit, and one that is newer than the last


def word(verdict: Verdict) -> tuple[str, str]:
    return verdict.verdict, verdict.reason


# --- The same story in four languages ---------------------------------------------------------------------------------

STORIES = {
    "python": {
        "file": "pkg/store.py",
        "other": "pkg/other.py",
        "test": "tests/test_store.py",
        "names": "fetch_item drop_item open_store move_me forget_me keep_me",
        "old": '''"""The store."""

class Store:
    def fetch_item(self, key):
        return self.items[key]

    def drop_item(self, key):
        del self.items[key]


def open_store(path):
    return Store(path)


def move_me(value):
    return value * 3 + len(str(value))


def forget_me(value):
    return value - 1


def keep_me(value):
    return value
''',
        "new": '''"""The store."""
import os

LIMIT = 5


class Store:
    def fetch_item(self, key):
        return self.items[key]


def open_store(path):
    return Store(os.fspath(path))


# forget_me was nice
def keep_me(value):
    return value
''',
        "moved": """def move_me(value):
    return value * 3 + len(str(value))
""",
        "tests": "def test_it():\n    assert forget_me(2) == 1\n",
    },
    "go": {
        "file": "store/store.go",
        "other": "store/other.go",
        "test": "store/store_test.go",
        "names": "FetchItem DropItem OpenStore MoveMe ForgetMe KeepMe",
        "old": """package store

type Store struct{ items map[string]string }

func (s *Store) FetchItem(key string) string {
	return s.items[key]
}

func (s *Store) DropItem(key string) {
	delete(s.items, key)
}

func OpenStore(path string) *Store {
	return &Store{}
}

func MoveMe(value int) int {
	return value*3 + 4
}

func ForgetMe(value int) int {
	return value - 1
}

func KeepMe(value int) int {
	return value
}
""",
        "new": """package store

import "os"

type Store struct{ items map[string]string }

func (s *Store) FetchItem(key string) string {
	return s.items[key]
}

func OpenStore(path string) *Store {
	os.Stat(path)
	return &Store{}
}

// ForgetMe was nice.
func KeepMe(value int) int {
	return value
}
""",
        "moved": """package store

func MoveMe(value int) int {
	return value*3 + 4
}
""",
        "tests": "package store\n\nfunc TestIt(t *testing.T) {\n\t_ = ForgetMe(2)\n}\n",
    },
    "typescript": {
        "file": "src/store.ts",
        "other": "src/other.ts",
        "test": "src/store.test.ts",
        "names": "fetchItem dropItem openStore moveMe forgetMe keepMe",
        "old": """export class Store {
  fetchItem(key: string): string {
    return this.items[key];
  }

  dropItem(key: string): void {
    delete this.items[key];
  }
}

export function openStore(path: string): Store {
  return new Store(path);
}

export const moveMe = (value: number): number => {
  return value * 3 + 4;
};

export function forgetMe(value: number): number {
  return value - 1;
}

export function keepMe(value: number): number {
  return value;
}
""",
        "new": """import { join } from "path";

export class Store {
  fetchItem(key: string): string {
    return this.items[key];
  }
}

export function openStore(path: string): Store {
  return new Store(join(path));
}

// forgetMe was nice
export function keepMe(value: number): number {
  return value;
}
""",
        "moved": """export const moveMe = (value: number): number => {
  return value * 3 + 4;
};
""",
        "tests": 'import { forgetMe } from "./store";\n\ntest("it", () => {\n  forgetMe(2);\n});\n',
    },
    "rust": {
        "file": "src/store.rs",
        "other": "src/other.rs",
        "test": "tests/store.rs",
        "names": "fetch_item drop_item open_store move_me forget_me keep_me",
        "old": """pub struct Store { items: Vec<String> }

impl Store {
    pub fn fetch_item(&self, key: usize) -> &str {
        &self.items[key]
    }

    pub fn drop_item(&mut self, key: usize) {
        self.items.remove(key);
    }
}

pub fn open_store(path: &str) -> Store {
    Store { items: vec![] }
}

pub fn move_me(value: u32) -> u32 {
    value * 3 + 4
}

pub fn forget_me(value: u32) -> u32 {
    value - 1
}

pub fn keep_me(value: u32) -> u32 {
    value
}
""",
        "new": """use std::path::Path;

pub struct Store { items: Vec<String> }

impl Store {
    pub fn fetch_item(&self, key: usize) -> &str {
        &self.items[key]
    }
}

pub fn open_store(path: &str) -> Store {
    let _ = Path::new(path);
    Store { items: vec![] }
}

// forget_me was nice
pub fn keep_me(value: u32) -> u32 {
    value
}
""",
        "moved": """pub fn move_me(value: u32) -> u32 {
    value * 3 + 4
}
""",
        "tests": "#[test]\nfn it() {\n    assert_eq!(forget_me(2), 1);\n}\n",
    },
}


class Story:
    """One language's repository with the names of its story."""

    def __init__(self, root: Path, language: str) -> None:
        known = STORIES[language]
        self.file, self.other, self.test, self.old = known["file"], known["other"], known["test"], known["old"]
        self.fetch, self.drop, self.open, self.move, self.forget, self.keep = known["names"].split()
        self.now = known["new"]
        history = History()
        history.commit("2026-01-05", {self.file: self.old, self.test: known["tests"], "README.md": f"{self.forget}\n"})
        self.deleting = history.commit(
            "2026-03-05", {self.file: self.now, self.other: known["moved"]}, message="the great tidying"
        )
        history.commit("2026-05-05", {"docs/notes.md": "later\n"})
        self.repo = history.write(root / language)

    def line(self, name: str, *, old: bool = False) -> int:
        """The line that defines a name."""
        lines = (self.old if old else self.now).split("\n")
        return next(
            number
            for number, line in enumerate(lines, 1)
            if f"{name}(" in line or f" {name} " in line or line.endswith(name)
        )


@pytest.fixture(scope="module", params=list(STORIES))
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("story"), request.param)


class TestSymbols:
    def test_confirmed(self, story: Story) -> None:
        told = story.repo.told(f"`{story.keep}()` and `Store.{story.fetch}` do it.", written=BEFORE)
        assert {text: word(verdict) for text, verdict in told.items()} == {
            story.keep: ("confirmed", "defined"),
            f"Store.{story.fetch}": ("confirmed", "defined"),
        }
        assert told[story.keep].place == f"{story.file}:{story.line(story.keep)}"
        assert told[story.keep].rank == CODE
        assert not told[story.keep].is_dirty

    def test_confirmed_in_a_named_file(self, story: Story) -> None:
        verdict = story.repo.told(f"`{story.keep}()` is defined in `{story.file}`.", written=BEFORE)[story.keep]
        assert word(verdict) == ("confirmed", "defined")
        assert verdict.place == f"{story.file}:{story.line(story.keep)}"

    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_moved_to_another_file(self, story: Story, written: str) -> None:
        verdict = story.repo.told(f"`{story.move}()` is defined in `{story.file}`.", written=written)[story.move]
        assert word(verdict) == ("moved", "defined-elsewhere")
        assert verdict.place.partition(":")[0] == story.other

    def test_without_a_place_it_may_be_anywhere(self, story: Story) -> None:
        assert word(story.repo.ask(f"`{story.move}()` triples.", written=BEFORE)) == ("confirmed", "defined")

    def test_changed_body(self, story: Story) -> None:
        verdict = story.repo.ask(f"`{story.open}()` is simple.", written=BEFORE)
        assert word(verdict) == ("changed", "body-changed")
        assert verdict.place == f"{story.file}:{story.line(story.open)}"
        assert "2026-01-05" in verdict.why

    def test_unchanged_for_a_memory_of_after_the_change(self, story: Story) -> None:
        assert word(story.repo.ask(f"`{story.open}()` is simple.", written="2026-04-01")) == ("confirmed", "defined")

    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_gone_with_the_commit_that_took_it(self, story: Story, written: str) -> None:
        verdict = story.repo.ask(f"`{story.forget}()` subtracts.", written=written)
        assert verdict.verdict == "gone"
        assert verdict.commit == story.repo.commits[story.deleting]
        assert verdict.day == "2026-03-05"
        assert verdict.place == story.file

    def test_gone_although_comments_documents_and_tests_name_it(self, story: Story) -> None:
        verdict = story.repo.ask(f"`{story.forget}()` subtracts.", written=BEFORE)
        assert word(verdict) == ("gone", "only-mentioned")
        assert "only named in" in verdict.why

    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_gone_method(self, story: Story, written: str) -> None:
        verdict = story.repo.ask(f"`Store.{story.drop}` deletes.", written=written)
        assert verdict.verdict == "gone"
        assert verdict.commit == story.repo.commits[story.deleting]

    def test_never_seen_is_unverifiable(self, story: Story) -> None:
        verdict = story.repo.ask("`some_other_projects_name()` is nice.", written=BEFORE)
        assert word(verdict) == ("unverifiable", "never-seen")
        assert verdict.why

    def test_weak_words_that_nobody_knows_make_no_verdict(self, story: Story) -> None:
        assert story.repo.check("An `iterator` over `origin/main`, some_thing() else.", written=BEFORE).verdicts == ()

    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_lines_follow_what_they_hold(self, story: Story, written: str) -> None:
        old, now = story.line(story.keep, old=True), story.line(story.keep)
        verdict = story.repo.told(f"`{story.keep}` is at `{story.file}:{old}`.", written=written)[f"{story.file}:{old}"]
        assert word(verdict) == ("moved", "line-moved")
        assert verdict.place == f"{story.file}:{now}"

    def test_a_line_follows_its_definition_into_another_file(self, story: Story) -> None:
        old = story.line(story.move, old=True)
        verdict = story.repo.ask(f"See `{story.file}:{old}`.", written=BEFORE)
        assert word(verdict) == ("moved", "line-moved")
        assert verdict.place.partition(":")[0] == story.other

    def test_a_line_whose_definition_is_gone(self, story: Story) -> None:
        verdict = story.repo.ask(f"See `{story.file}:{story.line(story.forget, old=True)}`.", written=BEFORE)
        assert word(verdict) == ("gone", "line-removed")


OWNERS = {
    "go": (
        "run/run.go",
        "package run\n\ntype Alpha struct{}\n\ntype Beta struct{}\n\nfunc (a *Alpha) Start() int {\n\treturn 1\n}\n",
        "\nfunc (b *Beta) Start() int {\n\treturn 2\n}\n",
        "Start",
    ),
    "rust": (
        "src/run.rs",
        "pub struct Alpha;\npub struct Beta;\n\nimpl Alpha {\n    pub fn start() -> u8 {\n        1\n    }\n}\n",
        "\nimpl Beta {\n    pub fn start() -> u8 {\n        2\n    }\n}\n",
        "start",
    ),
    "typescript": (
        "src/run.ts",
        "export class Alpha {\n  start(): number {\n    return 1;\n  }\n}\n",
        "\nexport class Beta {\n  start(): number {\n    return 2;\n  }\n}\n",
        "start",
    ),
    "python": (
        "src/run.py",
        "class Alpha:\n    def start(self):\n        return 1\n",
        "\n\nclass Beta:\n    def start(self):\n        return 2\n",
        "start",
    ),
}


@pytest.mark.parametrize("language", list(OWNERS))
def test_methods_of_the_same_name_are_told_apart_by_their_owners(tmp_path: Path, language: str) -> None:
    path, alpha, beta, name = OWNERS[language]
    history = History()
    history.commit("2026-01-05", {path: alpha + beta})
    history.commit("2026-03-05", {path: "\n" + alpha})
    repo = history.write(tmp_path / "app")
    told = repo.told(f"`Alpha.{name}` and `Beta.{name}` do it.", written=BEFORE)
    assert told[f"Alpha.{name}"].verdict == "confirmed"
    assert told[f"Beta.{name}"].verdict == "gone"
    line = 2 + alpha.count("\n", 0, alpha.index(name))
    moved = repo.ask(f"See `{path}:{line - 1}`.", written=BEFORE)
    assert (moved.verdict, moved.place) == ("moved", f"{path}:{line}")


# --- Paths and folders ------------------------------------------------------------------------------------------------

UTIL = "def slug(text):\n    return text.lower()\n\n\ndef words(text):\n    return text.split()\n"


class Paths:
    """A repository whose files went everywhere."""

    def __init__(self, root: Path) -> None:
        history = History()
        first = history.commit(
            "2026-01-05",
            {
                "src/app/main.py": "print('hello')\n",
                "src/app/util.py": UTIL,
                "src/app/Case.py": "CASE = 1\n",
                "src/legacy/one.py": "ONE = 'the first of three'\n",
                "src/legacy/two.py": "TWO = 'the second of three'\n",
                "src/legacy/deep/three.py": "THREE = 'the third of three'\n",
                "src/dead.py": "DEAD = 'nobody misses it'\n",
                "src/dying/a.py": "A = 'also gone'\n",
                "src/back.py": "BACK = 1\n",
                "a/lib/config.py": "A_CONFIG = 1\n",
                "b/lib/config.py": "B_CONFIG = 2\n",
                "x/only/here.py": "HERE = 1\n",
                "pages/[id].tsx": "export const page = 'one page for all of them';\n",
                "docs/übersicht.md": "Ein Überblick über alles, was es hier gibt.\n",
                "top/a.py": "TOP = 'a folder at the very top'\n",
                "top/b.py": "BOT = 'another one in that folder'\n",
                ".gitignore": "gen/\n*.out\n",
            },
        )
        self.helpers = history.commit("2026-02-05", renames={"src/app/util.py": "src/app/helpers.py"})
        self.tools = history.commit(
            "2026-03-05",
            renames={
                "src/app/helpers.py": "src/core/tools.py",
                "src/legacy": "src/modern",
                "pages/[id].tsx": "pages/[slug].tsx",
                "docs/übersicht.md": "docs/überblick.md",
                "top": "src/top",
            },
        )
        self.deleting = history.commit("2026-04-05", {"src/dead.py": None, "src/dying/a.py": None, "src/back.py": None})
        history.commit("2026-04-10", {"src/feature.py": "NEW = 1\n"}, branch="feature", start=first)
        history.commit("2026-05-05", {"src/back.py": "BACK = 2\n", "docs/note.md": "note\n"})
        self.repo = history.write(root / "app")
        (self.repo.root / "src" / "gen").mkdir()
        (self.repo.root / "src" / "gen" / "built.py").write_text("BUILT = 1\n")
        settle(self.repo.root)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    return Paths(tmp_path_factory.mktemp("paths"))


class TestPaths:
    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("`src/app/main.py`", "src/app/main.py"),
            ("`./src/app/main.py`", "src/app/main.py"),
            ("`/src/app/main.py`", "src/app/main.py"),
            ("`src\\app\\main.py`", "src/app/main.py"),
            ("`app/src/app/main.py`", "src/app/main.py"),  # with the repository's own name in front
            ("src/app/main.py", "src/app/main.py"),
            ("[it](src/app/main.py)", "src/app/main.py"),
            ("`main.py`", "src/app/main.py"),
            ("`app/main.py`", "src/app/main.py"),
            ("`only/here.py`", "x/only/here.py"),
            ("`src/app/`", "src/app"),
            ("`src/app`", "src/app"),
            ("`src/back.py`", "src/back.py"),  # deleted once, and there again
            ("`src/gen/built.py`", "src/gen/built.py"),  # git ignores it
        ],
    )
    def test_confirmed(self, paths: Paths, text: str, place: str) -> None:
        verdict = paths.repo.ask(text, written=BEFORE)
        assert word(verdict) == ("confirmed", "exists")
        assert verdict.place == place
        assert verdict.rank == CODE

    def test_a_name_that_several_files_have(self, paths: Paths) -> None:
        verdict = paths.repo.ask("`config.py`", written=BEFORE)
        assert word(verdict) == ("confirmed", "exists")
        assert verdict.candidates == ("a/lib/config.py", "b/lib/config.py")

    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_moved_by_renames_in_a_chain(self, paths: Paths, written: str) -> None:
        verdict = paths.repo.ask("`src/app/util.py`", written=written)
        assert word(verdict) == ("moved", "renamed")
        assert (verdict.place, verdict.commit, verdict.day) == (
            "src/core/tools.py",
            paths.repo.commits[paths.tools],
            "2026-03-05",
        )
        assert verdict.rank == GIT

    def test_moved_from_the_middle_of_the_chain(self, paths: Paths) -> None:
        verdict = paths.repo.ask("`src/app/helpers.py`", written="2026-02-10")
        assert (word(verdict), verdict.place) == (("moved", "renamed"), "src/core/tools.py")

    def test_a_bare_name_is_followed_too(self, paths: Paths) -> None:
        verdict = paths.repo.ask("`util.py`", written=BEFORE)
        assert (word(verdict), verdict.place) == (("moved", "renamed"), "src/core/tools.py")

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("`src/legacy/`", "src/modern"),
            ("`src/legacy/two.py`", "src/modern/two.py"),
            ("`src/legacy/deep/`", "src/modern/deep"),
            ("`src/legacy/deep/three.py`", "src/modern/deep/three.py"),
            ("`pages/[id].tsx`", "pages/[slug].tsx"),
            ("`docs/übersicht.md`", "docs/überblick.md"),
            ("`top/a.py`", "src/top/a.py"),
            pytest.param("`top/`", "src/top"),
        ],
    )
    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_moved_with_its_folder(self, paths: Paths, text: str, place: str, written: str) -> None:
        verdict = paths.repo.ask(text, written=written)
        assert word(verdict) == ("moved", "renamed")
        assert (verdict.place, verdict.commit) == (place, paths.repo.commits[paths.tools])

    @pytest.mark.parametrize("text", ["`src/dead.py`", "`src/dying/`", "`src/dying/a.py`", "`dead.py`"])
    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_gone_with_the_commit_that_deleted_it(self, paths: Paths, text: str, written: str) -> None:
        verdict = paths.repo.ask(text, written=written)
        assert word(verdict) == ("gone", "deleted")
        assert (verdict.commit, verdict.day) == (paths.repo.commits[paths.deleting], "2026-04-05")
        assert verdict.commit[:10] in verdict.why

    def test_other_capitals(self, paths: Paths) -> None:
        verdict = paths.repo.ask("`src/app/case.py`", written=BEFORE)
        assert (word(verdict), verdict.place) == (("moved", "letter-case"), "src/app/Case.py")

    def test_never_there_is_gone_only_when_the_checkout_is_newer(self, paths: Paths) -> None:
        assert word(paths.repo.ask("`src/never.py`", written=BEFORE)) == ("gone", "never-seen")
        assert word(paths.repo.ask("`src/never.py`", written=AFTER)) == ("unverifiable", "never-seen")
        assert word(paths.repo.ask("`src/never.py`")) == ("unverifiable", "never-seen")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("`src/feature.py`", "other-branch"),
            pytest.param("`src/gen/other.py`", "ignored"),
            pytest.param("`src/gen/deep/other.py`", "ignored"),
            ("`nowhere/at/all.py`", "never-seen"),
            ("`../elsewhere/file.py`", "relative"),
            ("`lib/config.py`", "several"),
            ("`/etc/no-such-file-of-ours.conf`", "outside"),
            ("`~/no-such-file-of-ours.md`", "outside"),
        ],
    )
    def test_unverifiable_and_why(self, paths: Paths, text: str, reason: str) -> None:
        verdict = paths.repo.ask(text, written=BEFORE)
        assert word(verdict) == ("unverifiable", reason)
        assert verdict.why

    def test_several_candidates_are_listed(self, paths: Paths) -> None:
        assert paths.repo.ask("`lib/config.py`", written=BEFORE).candidates == ("a/lib/config.py", "b/lib/config.py")

    def test_outside_but_on_this_machine(self, paths: Paths) -> None:
        verdict = paths.repo.ask("`/etc/passwd`", written=BEFORE)
        assert word(verdict) == ("confirmed", "on-this-host")
        assert "root" not in verdict.why

    def test_an_absolute_path_into_the_checkout(self, paths: Paths) -> None:
        assert word(paths.repo.ask(f"`{paths.repo.root}/src/app/main.py`")) == ("confirmed", "exists")

    def test_weak_paths_that_nobody_knows(self, paths: Paths) -> None:
        assert paths.repo.check("`origin/main` setup.cfg [a](nowhere.md)", written=BEFORE).verdicts == ()

    def test_past_and_future_make_no_verdicts(self, paths: Paths) -> None:
        text = "`src/dead.py` was removed. We will add `src/never.py`. `src/app/util.py` → `src/core/tools.py`"
        assert list(paths.repo.told(text, written=BEFORE)) == ["src/core/tools.py"]


# --- What is not committed --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A checkout with an edited file, a new one, a deleted one and a renamed one."""
    history = History()
    history.commit(
        "2026-01-05",
        {
            "src/edited.py": "def edited_one():\n    return 1\n",
            "src/clean.py": "def clean_one():\n    return 1\n",
            "src/deleted.py": "def deleted_one():\n    return 1\n",
            "src/old_name.py": "def renamed_one():\n    return 'a name that goes elsewhere'\n",
        },
    )
    history.commit("2026-02-05", {"docs/note.md": "note\n"})
    repo = history.write(tmp_path_factory.mktemp("dirty") / "app")
    src = repo.root / "src"
    (src / "edited.py").write_text("\n\ndef edited_one():\n    return 2\n\n\ndef brand_new():\n    return 3\n")
    (src / "untracked.py").write_text("def untracked_one():\n    return 1\n")
    for number, folder in enumerate((CLAUDE, f"{CLAUDE}/processed")):
        (repo.root / folder).mkdir(parents=True, exist_ok=True)
        (repo.root / folder / f"2026-02-06-090{number}-told.md").write_text("See `told_by_an_agent()`.\n")
    (src / "deleted.py").unlink()
    (src / "old_name.py").rename(src / "new_name.py")
    return repo


class TestUncommitted:
    @pytest.mark.parametrize(
        ("text", "dirty_one"),
        [
            ("`src/edited.py`", True),
            ("`brand_new()`", True),
            ("`src/untracked.py`", True),
            ("`untracked_one()`", True),
            ("`src/clean.py`", False),
            ("`clean_one()`", False),
        ],
    )
    def test_evidence_that_is_not_committed_is_flagged(self, dirty: Repo, text: str, dirty_one: bool) -> None:
        verdict = dirty.ask(text)
        assert verdict.verdict == "confirmed"
        assert verdict.is_dirty is dirty_one

    def test_a_handoff_is_no_evidence_for_itself(self, dirty: Repo) -> None:
        assert word(dirty.ask("`told_by_an_agent()`")) == ("unverifiable", "never-seen")

    def test_deleted_in_the_work_tree(self, dirty: Repo) -> None:
        verdict = dirty.ask("`src/deleted.py`", written=BEFORE)
        assert word(verdict) == ("gone", "deleted-here")
        assert verdict.rank == CODE
        assert not verdict.commit

    def test_a_symbol_that_only_the_last_commit_has(self, dirty: Repo) -> None:
        verdict = dirty.ask("`deleted_one()`", written=BEFORE)
        assert verdict.verdict in ("gone", "unverifiable")
        assert verdict.verdict != "confirmed"

    def test_a_rename_that_is_not_committed_is_not_guessed(self, dirty: Repo) -> None:
        verdict = dirty.ask("`src/old_name.py`", written=BEFORE)
        assert verdict.verdict in ("gone", "moved")
        assert verdict.place in ("", "src/new_name.py")

    def test_a_deletion_that_is_not_committed_is_flagged(self, dirty: Repo) -> None:
        assert dirty.ask("`src/deleted.py`", written=BEFORE).is_dirty

    def test_a_move_that_is_not_committed_is_flagged(self, dirty: Repo) -> None:
        verdict = dirty.told("`renamed_one` is in `src/old_name.py`", written=BEFORE)["renamed_one"]
        assert (verdict.verdict, verdict.place) == ("moved", "src/new_name.py:1")
        assert verdict.is_dirty

    def test_a_line_of_a_file_that_is_deleted_in_the_work_tree(self, dirty: Repo) -> None:
        assert word(dirty.ask("`src/deleted.py:1`", written=BEFORE)) == ("gone", "deleted-here")

    @pytest.mark.slow
    def test_the_command_says_so(self, dirty: Repo, tmp_path: Path) -> None:
        done = run_cli("verify", "--stdin", "--repo", str(dirty.root), stdin="`src/edited.py` and `src/clean.py`")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert sum("(not committed)" in line for line in lines) == 1
        assert "(not committed)" in lines[lines.index(next(line for line in lines if "src/edited.py" in line)) + 1]


# --- Lines ------------------------------------------------------------------------------------------------------------

THEN = """\
import os

LIMIT = 40
TIMEOUT = compute_timeout("slow")


@overload
def parse(value: int) -> int: ...
@overload
def parse(value: str) -> str: ...
def parse(value):
    return value


class Box:
    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = value


register(parse, name="parser of values")
forget(parse, name="nobody needs this line")
retry(parse, times=3, wait="a little while")
"""
SINCE = """\
import os
import sys

# Numbers.
LIMIT = 40
TIMEOUT = compute_timeout("slow")


@overload
def parse(value: int) -> int: ...
@overload
def parse(value: str) -> str: ...
def parse(value):
    return value


class Box:
    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = value


register(parse, name="parser of values")
retry(parse, times=5, wait="a little while")
"""
SIZES_THEN = "SIZE = 40\n\n\ndef grow(box):\n    return box + SIZE\n"
SIZES_SINCE = "SIZE = 50\n\n\ndef grow(box, by):\n    return box + SIZE\n"


class Lines:
    """A file whose lines shifted, one that was renamed as well, and one that is gone."""

    def __init__(self, root: Path) -> None:
        history = History()
        history.commit(
            "2026-01-05",
            {
                "src/box.py": THEN,
                "src/away.py": THEN,
                "src/dead.py": THEN,
                "src/sizes.py": SIZES_THEN,
                "notes.txt": "a\nb\n",
            },
        )
        self.renaming = history.commit("2026-02-05", renames={"src/away.py": "src/here.py"})
        history.commit("2026-03-05", {"src/box.py": SINCE, "src/here.py": SINCE, "src/sizes.py": SIZES_SINCE})
        self.deleting = history.commit("2026-04-05", {"src/dead.py": None})
        history.commit("2026-05-05", {"notes.txt": "a\nb\nc\n"})
        self.repo = history.write(root / "app")

    @staticmethod
    def at(text: str, line: str, nth: int = 1) -> int:
        return [number for number, other in enumerate(text.split("\n"), 1) if other.strip() == line][nth - 1]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    return Lines(tmp_path_factory.mktemp("lines"))


def test_a_file_is_parsed_once_and_only_if_a_claim_asks_for_one_of_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History()
    history.commit("2026-01-05", {"src/asked.ts": "export const askedFor = 1\n", "src/other.ts": "const other = 1\n"})
    repo = history.write(tmp_path / "app")
    store = str(tmp_path / "facts.sqlite")
    parsed: list[bytes] = []
    real = languages.definitions

    def recorded(code: bytes, language: str, wanted: Collection[str] | None = None) -> object:
        parsed.append(code)
        return real(code, language, wanted)

    def ask(name: str) -> str:
        parsed.clear()
        verifier = verifier_for([repo.root], store=FactsCache(store))
        (verdict,) = check(verifier, repo.root, f"Call `{name}` for it.").verdicts
        return verdict.place

    monkeypatch.setattr(tree, "definitions", recorded)
    assert (ask("askedFor"), parsed) == ("src/asked.ts:1", [b"export const askedFor = 1\n"])
    assert (ask("askedFor"), parsed) == ("src/asked.ts:1", [])
    (repo.root / "src/other.ts").write_text("export const first = 0\nexport const added = askedFor\n")
    settle(repo.root)
    assert (ask("added"), len(parsed)) == ("src/other.ts:2", 1)
    assert (ask("askedFor"), parsed) == ("src/asked.ts:1", [])


class TestLines:
    @pytest.mark.parametrize(
        ("line", "nth"),
        [
            ("LIMIT = 40", 1),
            ('TIMEOUT = compute_timeout("slow")', 1),
            ("class Box:", 1),
            ("def parse(value: int) -> int: ...", 1),  # overloads are told apart
            ("def parse(value: str) -> str: ...", 1),
            ("def parse(value):", 1),
            ("def size(self):", 1),
            ("def size(self, value):", 1),
            ("return self._size", 1),
            ('register(parse, name="parser of values")', 1),
        ],
    )
    @pytest.mark.parametrize(("old", "new"), [("src/box.py", "src/box.py"), ("src/away.py", "src/here.py")])
    def test_moved(self, lines: Lines, line: str, nth: int, old: str, new: str) -> None:
        verdict = lines.repo.ask(f"See `{old}:{lines.at(THEN, line, nth)}`.", written=BEFORE)
        assert word(verdict) == ("moved", "line-moved")
        assert verdict.place == f"{new}:{lines.at(SINCE, line, nth)}"
        if old != new:
            assert verdict.commit == lines.repo.commits[lines.renaming]

    @pytest.mark.parametrize("line", ["class Box:", "def size(self, value):", "return self._size"])
    def test_an_old_version_is_read_closely_once(
        self, lines: Lines, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = f"See `src/away.py:{lines.at(THEN, line)}`, and `Box.lost_one()` in `src/away.py`."
        store = str(tmp_path / "facts.sqlite")
        read = []
        real = languages.definitions

        def counted(code: bytes, language: str, wanted: Collection[str] | None = None) -> object:
            read.append(language)
            return real(code, language, wanted)

        monkeypatch.setattr(tree, "definitions", counted)
        told = []
        for _ in range(2):
            verifier = verifier_for([lines.repo.root], store=FactsCache(store))
            told.append(check(verifier, lines.repo.root, text, written=BEFORE).verdicts)
            read.append("again")
        assert told[0] == told[1]
        assert read.index("again") > 0
        assert read[read.index("again") :] == ["again", "again"]

    def test_ranges_keep_their_length(self, lines: Lines) -> None:
        first = lines.at(THEN, "class Box:")
        verdict = lines.repo.ask(f"See `src/box.py:{first}-{first + 7}`.", written=BEFORE)
        now = lines.at(SINCE, "class Box:")
        assert (word(verdict), verdict.place) == (("moved", "line-moved"), f"src/box.py:{now}-{now + 7}")

    def test_a_number_in_words(self, lines: Lines) -> None:
        told = lines.repo.told(f"`src/box.py`, line {lines.at(THEN, 'class Box:')}", written=BEFORE)
        verdict = told[str(lines.at(THEN, "class Box:"))]
        assert (word(verdict), verdict.place) == (
            ("moved", "line-moved"),
            f"src/box.py:{lines.at(SINCE, 'class Box:')}",
        )

    def test_confirmed(self, lines: Lines) -> None:
        assert word(lines.repo.ask("See `src/box.py:1`.", written=BEFORE)) == ("confirmed", "same-line")
        now = lines.at(SINCE, "class Box:")
        assert word(lines.repo.ask(f"See `src/box.py:{now}`.", written=AFTER)) == ("confirmed", "same-line")

    def test_changed(self, lines: Lines) -> None:
        line = lines.at(THEN, 'retry(parse, times=3, wait="a little while")')
        verdict = lines.repo.ask(f"See `src/box.py:{line}`.", written=BEFORE)
        assert word(verdict) == ("changed", "line-edited")
        now = lines.at(SINCE, 'retry(parse, times=5, wait="a little while")')
        assert verdict.place == f"src/box.py:{now}"

    def test_gone(self, lines: Lines) -> None:
        line = lines.at(THEN, 'forget(parse, name="nobody needs this line")')
        assert word(lines.repo.ask(f"See `src/box.py:{line}`.", written=BEFORE)) == ("gone", "line-removed")

    def test_changed_when_the_definition_on_it_says_something_else(self, lines: Lines) -> None:
        for name in ("SIZE = 40", "def grow(box):"):
            verdict = lines.repo.ask(f"See `src/sizes.py:{lines.at(SIZES_THEN, name)}`.", written=BEFORE)
            assert verdict.verdict == "changed", name

    def test_gone_with_its_file(self, lines: Lines) -> None:
        verdict = lines.repo.ask("See `src/dead.py:4`.", written=BEFORE)
        assert word(verdict) == ("gone", "deleted")
        assert (verdict.commit, verdict.day) == (lines.repo.commits[lines.deleting], "2026-04-05")

    def test_without_a_date_a_number_alone_says_nothing(self, lines: Lines) -> None:
        assert word(lines.repo.ask("See `src/box.py:3`.")) == ("unverifiable", "no-date")

    def test_without_a_date_beyond_the_end(self, lines: Lines) -> None:
        verdict = lines.repo.ask("See `src/box.py:4000`.")
        assert word(verdict) == ("gone", "beyond-the-end")
        assert str(SINCE.count("\n")) in verdict.why

    def test_without_a_date_the_symbol_beside_it_decides(self, lines: Lines) -> None:
        now, then = lines.at(SINCE, "class Box:"), lines.at(THEN, "class Box:")
        assert word(lines.repo.told(f"`class Box` is at `src/box.py:{now}`.")[f"src/box.py:{now}"])[0] == "confirmed"
        verdict = lines.repo.told(f"`class Box` is at `src/box.py:{then}`.")[f"src/box.py:{then}"]
        assert (verdict.verdict, verdict.place) == ("moved", f"src/box.py:{now}")

    def test_without_a_date_the_code_that_is_quoted_decides(self, lines: Lines) -> None:
        quote = 'register(parse, name="parser of values")'
        now, then = lines.at(SINCE, quote), lines.at(THEN, quote)
        verdict = lines.repo.told(f"`src/box.py:{then}` (`{quote}`)")[f"src/box.py:{then}"]
        assert (verdict.verdict, verdict.place) == ("moved", f"src/box.py:{now}")
        verdict = lines.repo.told(f"`src/box.py:{now}` (`{quote}`)")[f"src/box.py:{now}"]
        assert verdict.verdict == "confirmed"

    def test_no_such_file(self, lines: Lines) -> None:
        assert lines.repo.ask("See `src/none.py:3`.", written=BEFORE).verdict in ("unverifiable", "gone")
        assert word(lines.repo.ask("See `other/none.py:3`.")) == ("unverifiable", "never-seen")

    def test_a_line_of_a_document(self, lines: Lines) -> None:
        assert word(lines.repo.ask("See `notes.txt:2`.", written=BEFORE)) == ("confirmed", "same-line")

    def test_verdicts_never_hold_the_text_of_a_line(self, lines: Lines) -> None:
        text = " ".join(f"`src/box.py:{number}`" for number in range(1, 30))
        for verdict in lines.repo.check(text, written=BEFORE).verdicts:
            assert "parser of values" not in repr(verdict._replace(claim=verdict.claim._replace(quote="")))


# --- Flags, settings, names with several places -----------------------------------------------------------------------

CLI_THEN = """\
import os

MAX_ITEMS = 40
OLD_LIMIT = 3


def main(parser):
    parser.add_argument("--fast")
    parser.add_argument("--old-way")
    parser.add_argument("--no-color", action="store_true")
    return os.environ["APP_TOKEN"] + os.environ["APP_OLD_TOKEN"]
"""
CLI_SINCE = """\
import os

MAX_ITEMS = 40


def main(parser):
    # --old-way and APP_OLD_TOKEN were nice
    parser.add_argument("--fast")
    parser.add_argument("--color", action="store_true")
    return os.environ["APP_TOKEN"]
"""
ONE = "def convert(value):\n    return int(value) + 1\n"
TWO = "def convert(value):\n    return str(value) + '2'\n"
THREE = "def convert(value):\n    return [value, 'three']\n"
SHAPES = """\
class Base:
    def area(self):
        return 0


class Square(Base):
    def side(self):
        return 1


class Circle(Base):
    def radius(self):
        return 2
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    history = History()
    history.commit(
        "2026-01-05",
        {
            "src/cli.py": CLI_THEN,
            "src/one.py": ONE,
            "src/two.py": "TWO = 2\n",
            "src/shapes.py": SHAPES,
            "src/limits.py": "TIME_LIMIT = 40\n",
            "src/config.go": 'package config\n\nfunc Load() string {\n\treturn "x"\n}\n',
            "docs/use.md": "Run it with --documented and DOCUMENTED_ONLY.\n",
        },
    )
    history.commit(
        "2026-03-05",
        {
            "src/cli.py": CLI_SINCE,
            "src/one.py": "ONE = 1\n",
            "src/two.py": TWO,
            "src/three.py": THREE,
            "src/limits.py": "TIME_LIMIT = 50\n",
        },
    )
    history.commit("2026-05-05", {"docs/more.md": "more\n"})
    return history.write(tmp_path_factory.mktemp("words") / "app")


class TestWords:
    @pytest.mark.parametrize("text", ["`--fast`", "`--color`", "`APP_TOKEN`", "`MAX_ITEMS`"])
    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_confirmed(self, words: Repo, text: str, written: str) -> None:
        verdict = words.ask(text, written=written)
        assert verdict.verdict == "confirmed"
        assert verdict.place.startswith("src/cli.py:")

    @pytest.mark.parametrize("text", ["`--old-way`", "`APP_OLD_TOKEN`", "`OLD_LIMIT`"])
    @pytest.mark.parametrize("written", [BEFORE, ""])
    def test_gone(self, words: Repo, text: str, written: str) -> None:
        verdict = words.ask(text, written=written)
        assert verdict.verdict == "gone"
        assert verdict.day == "2026-03-05"

    @pytest.mark.parametrize("text", ["`APP_OLD_TOKEN`", pytest.param("`--old-way`")])
    def test_gone_although_a_comment_names_it(self, words: Repo, text: str) -> None:
        assert word(words.ask(text, written=BEFORE)) == ("gone", "only-mentioned")

    @pytest.mark.parametrize("text", ["`DOCUMENTED_ONLY`", pytest.param("`--documented`")])
    def test_only_ever_in_documents(self, words: Repo, text: str) -> None:
        verdict = words.ask(text, written=BEFORE)
        assert word(verdict) == ("unverifiable", "only-mentioned")
        assert "docs/use.md" in verdict.why

    @pytest.mark.parametrize("text", ["`--never-heard-of`", "`NEVER_HEARD_OF`"])
    def test_never_seen(self, words: Repo, text: str) -> None:
        assert word(words.ask(text, written=BEFORE)) == ("unverifiable", "never-seen")

    def test_a_constant_in_its_file(self, words: Repo) -> None:
        assert words.told("`MAX_ITEMS` in `src/cli.py` is 40", written=BEFORE)["MAX_ITEMS"].verdict == "confirmed"
        assert words.told("`OLD_LIMIT` in `src/cli.py` is 3", written=BEFORE)["OLD_LIMIT"].verdict == "gone"

    @pytest.mark.parametrize("text", ["`TIME_LIMIT` is 40", "`TIME_LIMIT` in `src/limits.py` is 40"])
    def test_a_constant_that_changed(self, words: Repo, text: str) -> None:
        assert words.told(text, written=BEFORE)["TIME_LIMIT"].verdict == "changed"

    def test_several_candidates_are_listed_and_none_is_guessed(self, words: Repo) -> None:
        verdict = words.told("`convert()` is defined in `src/one.py`.", written=BEFORE)["convert"]
        assert word(verdict) == ("gone", "several")
        assert verdict.candidates == ("src/two.py:1", "src/three.py:1")
        assert not verdict.place

    def test_an_inherited_method(self, words: Repo) -> None:
        verdict = words.ask("`Square.area` is nothing.", written=BEFORE)
        assert word(verdict) == ("confirmed", "inherited")

    def test_a_method_that_only_another_class_has(self, words: Repo) -> None:
        """Nothing says that the memory was ever right: never confirmed by presence alone."""
        assert words.ask("`Square.radius` is nothing.", written=BEFORE).verdict != "confirmed"

    def test_a_function_of_a_module(self, words: Repo) -> None:
        assert word(words.ask("`src.cli.main` starts it.", written="2026-04-01")) == ("confirmed", "defined")

    def test_a_library_function_is_not_ours(self, words: Repo) -> None:
        assert words.ask("`os.path.walk_away` is nice.", written=BEFORE).verdict == "unverifiable"


# --- Commits ----------------------------------------------------------------------------------------------------------


def twins(tree: str) -> tuple[bytes, bytes, str]:
    """Two commits that begin with the same seven digits, found by trying, and those digits."""
    seen: dict[str, bytes] = {}
    for number in range(200_000):
        who = "A <a@b.c> 1767000000 +0000"
        body = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{number}\n".encode()
        short = hashlib.sha1(b"commit %d\0" % len(body) + body).hexdigest()[:7]
        if short in seen and not short.isdigit() and not short.isalpha():
            return seen[short], body, short
        seen[short] = body
    raise AssertionError("no twins")


class Commits:
    def __init__(self, root: Path) -> None:
        history = History()
        first = history.commit("2026-01-05", {"a.txt": "a\n"})
        other = history.commit("2026-02-05", {"b.txt": "b\n"}, branch="other", start=first)
        lost = history.commit("2026-02-06", {"c.txt": "c\n"}, branch="lost", start=first)
        history.commit("2026-05-05", {"a.txt": "aa\n"})
        self.repo = history.write(root / "app", drop=["lost"])
        self.first, self.other, self.lost = (self.repo.commits[number] for number in (first, other, lost))
        one, two, self.twins = twins(git(self.repo.root, "rev-parse", "HEAD^{tree}"))
        for name, body in (("one", one), ("two", two)):
            (root / name).write_bytes(body)
        git(self.repo.root, "hash-object", "-w", "-t", "commit", str(root / "one"), str(root / "two"))


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> Commits:
    return Commits(tmp_path_factory.mktemp("commits"))


class TestCommits:
    @pytest.mark.parametrize("length", [7, 10, 40])
    def test_on_this_branch(self, commits: Commits, length: int) -> None:
        verdict = commits.repo.ask(f"It came with commit {commits.first[:length]} then.", written=BEFORE)
        assert word(verdict) == ("confirmed", "on-branch")
        assert (verdict.commit, verdict.rank) == (commits.first, GIT)

    def test_on_another_branch(self, commits: Commits) -> None:
        verdict = commits.repo.ask(f"Commit {commits.other[:10]} has it.", written=BEFORE)
        assert word(verdict) == ("confirmed", "other-branch")
        assert "another branch" in verdict.why

    def test_unreachable(self, commits: Commits) -> None:
        verdict = commits.repo.ask(f"Commit {commits.lost[:10]} has it.", written=BEFORE)
        assert (word(verdict), verdict.commit) == (("gone", "unreachable"), commits.lost)

    def test_ambiguous(self, commits: Commits) -> None:
        assert word(commits.repo.ask(f"Commit {commits.twins} has it.", written=BEFORE)) == (
            "unverifiable",
            "ambiguous",
        )

    @pytest.mark.parametrize("written", [BEFORE, AFTER, ""])
    def test_a_commit_that_was_never_seen_is_not_gone(self, commits: Commits, written: str) -> None:
        verdict = commits.repo.ask("Commit 0123456789ab has it.", written=written)
        assert word(verdict) == ("unverifiable", "never-seen")

    @pytest.mark.parametrize(
        "text",
        [
            "See https://github.com/zsh-users/zsh, commit `0123456789ab`.",
            "Fixed by [`0123456789ab`](https://github.com/zsh-users/zsh/commit/0123456789ab0123456789ab0123456789ab0123).",
        ],
    )
    def test_a_url_beside_a_commit_says_whose_it_is(self, commits: Commits, text: str) -> None:
        told = commits.repo.told(text, written=BEFORE)["0123456789ab"]
        assert word(told) == ("unverifiable", "of-others")
        assert "github.com/zsh-users/zsh" in told.why

    def test_a_url_of_this_repository_beside_a_commit(self, commits: Commits) -> None:
        url = f"https://{NAME}/commit/{commits.first}"
        told = commits.repo.told(f"Since [`{commits.first[:10]}`]({url}).", written=BEFORE)
        assert word(told[commits.first[:10]]) == ("confirmed", "on-branch")

    def test_many_at_once(self, commits: Commits) -> None:
        text = "\n".join(f"commit {oid}" for oid in (commits.first, commits.other, commits.lost, "0" * 39 + "1"))
        told = commits.repo.told(text, written=BEFORE)
        assert [verdict.reason for verdict in told.values()] == [
            "on-branch",
            "other-branch",
            "unreachable",
            "never-seen",
        ]

    def test_a_blob_is_no_commit(self, commits: Commits) -> None:
        blob = git(commits.repo.root, "rev-parse", "HEAD:a.txt")
        assert commits.repo.ask(f"Commit {blob} has it.", written=BEFORE).verdict != "confirmed"


# --- Manifests, the machine, decisions --------------------------------------------------------------------------------

PYPROJECT = """\
[project]
name = "app"
version = "{version}"
requires-python = ">=3.11"
dependencies = [{packages}]
"""
PACKAGE_JSON = (
    '{{"name": "web", "scripts": {{{scripts}}}, "dependencies": {{"react": "^18.2.0", "express": "4.19.2"}}}}\n'
)
COMPOSE = 'services:\n  redis-main:\n    image: redis\n    ports:\n      - "6390:6379"\n'


class Things:
    """A repository with manifests, scripts, a service and bundles."""

    def __init__(self, root: Path) -> None:
        history = History()
        history.commit(
            "2026-01-05",
            {
                "pyproject.toml": PYPROJECT.format(
                    version="1.2.0", packages='"httpx==0.27.0", "requests>=2", "left-pad"'
                ),
                "web/package.json": PACKAGE_JSON.format(scripts='"build": "vite", "old": "x"'),
                "Makefile": "lint:\n\truff\n\nold-target:\n\ttrue\n",
                "compose.yaml": COMPOSE,
                "deploy/app.service": "[Service]\nExecStart=/usr/bin/app --port 5300\n",
                "static/one-CQnl8oWA.js": "1\n",
                "static/two-CQnl8oWA.js": "2\n",
                "static/three-CQnl8oWA.js": "3\n",
                "src/server.py": "PORT = 8443\n\n\ndef serve():\n    listen(PORT)\n",
            },
        )
        self.changing = history.commit(
            "2026-03-05",
            {
                "pyproject.toml": PYPROJECT.format(version="1.3.0", packages='"httpx==0.28.1", "requests>=2"'),
                "web/package.json": PACKAGE_JSON.format(scripts='"build": "vite"'),
                "Makefile": "lint:\n\truff\n",
                "static/one-CQnl8oWA.js": None,
                "static/one-XyZ12abQ.js": "other\n",
                "static/two-CQnl8oWA.js": None,
                "static/two-Abcd1234.js": "other two\n",
                "static/two-Efgh5678.js": "another two\n",
            },
        )
        history.commit("2026-05-05", {"docs/x.md": "x\n"})
        self.repo = history.write(root / "app")
        git(self.repo.root, "tag", "v1.1.0")


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Things:
    return Things(tmp_path_factory.mktemp("things"))


class TestThings:
    @pytest.mark.parametrize(
        ("text", "verdict", "reason"),
        [
            # packages
            ("The `httpx` package", "confirmed", "listed"),
            ("The `left-pad` package", "gone", "removed"),
            ("The `web` package", "confirmed", "listed"),  # the project's own name
            # versions
            ("`httpx==0.28.1`", "confirmed", "version"),
            ("`httpx==0.27.0`", "changed", "version"),
            ("`react@18.3.1`", "confirmed", "version"),
            ("`express@4.18.0`", "changed", "version"),
            ("We run on Python 3.12 today", "confirmed", "version"),
            ("We run on Python 3.9 today", "changed", "version"),
            ("`numpy==1.0.0`", "unverifiable", "not-listed"),
            ("app 1.3.0 has it", "confirmed", "version"),
            ("app 1.2.0 has it", "changed", "version"),
            # scripts
            ("`make lint`", "confirmed", "listed"),
            ("`make old-target`", "gone", "removed"),
            ("`make no-such-target`", "gone", "never-seen"),
            ("`npm run build`", "confirmed", "listed"),
            ("`npm run old`", "gone", "removed"),
            ("`npm run never`", "unverifiable", "not-listed"),
            ("`just never`", "unverifiable", "no-manifest"),
            # bundles
            ("`static/three-CQnl8oWA.js`", "confirmed", "exists"),
            ("`static/one-CQnl8oWA.js`", "moved", "rebuilt"),
            ("`static/two-CQnl8oWA.js`", "gone", "rebuilt"),
            ("`static/four-CQnl8oWA.js`", "unverifiable", "not-built"),
            # the machine, as far as files say it
            ("It answers on port 8443 here", "confirmed", "configured"),
            ("It answers on port 6390 here", "confirmed", "configured"),
            ("It answers on port 5999 here", "unverifiable", "not-listening"),
            ("`app.service`", "confirmed", "unit-file"),
            ("`other-app.service`", "unverifiable", "no-answer"),
            ("The container `redis-main`", "confirmed", "configured"),
            ("The container `no-such`", "unverifiable", "no-answer"),
            # decisions: never confirmed by what lies around
            ("We decided to use httpx over aiohttp.", "unverifiable", "consistent"),
            ("We decided to use aiohttp over httpx.", "gone", "contradicted"),
            ("We chose left-pad over requests.", "gone", "contradicted"),
            ("We decided to be kind.", "unverifiable", "decision"),
        ],
    )
    def test_verdicts(self, things: Things, text: str, verdict: str, reason: str) -> None:
        told = [item for item in things.repo.check(text, written=BEFORE).verdicts if item.claim.kind != "symbol"]
        assert [word(item) for item in told] == [(verdict, reason)]
        assert told[0].why

    @pytest.mark.parametrize(
        "text", ["The `left-pad` package", "`make old-target`", "`npm run old`", "We chose left-pad."]
    )
    def test_what_a_manifest_lost_comes_with_a_commit(self, things: Things, text: str) -> None:
        verdict = things.repo.ask(text, written=BEFORE)
        assert (verdict.commit, verdict.day) == (things.repo.commits[things.changing], "2026-03-05")

    def test_whoever_touched_a_manifest_last_is_not_blamed(self, tmp_path: Path) -> None:
        history = History()
        history.commit(
            "2026-01-05", {"Makefile": "old-target:\n\techo\n", "requirements.txt": "left-pad==1.0\nflask==3.0\n"}
        )
        taking = history.commit("2026-03-05", {"Makefile": "lint:\n\techo\n", "requirements.txt": "flask==3.0\n"})
        history.commit("2026-04-05", {"Makefile": "lint:\n\tls\n", "requirements.txt": "flask==3.1\n"})
        repo = history.write(tmp_path / "blame")
        for text in ("`make old-target`", "The `left-pad` package", "We chose left-pad."):
            verdict = repo.ask(text, written=BEFORE)
            assert (verdict.verdict, verdict.commit) == ("gone", repo.commits[taking])
            assert "taken out in" in verdict.why

    @pytest.mark.parametrize("text", ["The `left-pad` package", "`make old-target`", "`npm run old`"])
    def test_without_a_date(self, things: Things, text: str) -> None:
        assert word(things.repo.ask(text)) == ("gone", "removed")

    def test_evidence_has_a_place(self, things: Things) -> None:
        assert things.repo.ask("`httpx==0.28.1`", written=BEFORE).place.startswith("pyproject.toml:")
        assert things.repo.ask("`make lint`", written=BEFORE).place == "Makefile:1"
        assert things.repo.ask("It answers on port 8443 here", written=BEFORE).place == "src/server.py:1"

    def test_a_bundle_moved_to_its_new_hash(self, things: Things) -> None:
        assert things.repo.ask("`static/one-CQnl8oWA.js`", written=BEFORE).place == "static/one-XyZ12abQ.js"
        assert set(things.repo.ask("`static/two-CQnl8oWA.js`", written=BEFORE).candidates) == {
            "static/two-Abcd1234.js",
            "static/two-Efgh5678.js",
        }

    def test_a_version_that_only_a_tag_has(self, things: Things, tmp_path: Path) -> None:
        history = History()
        history.commit("2026-01-05", {"a.txt": "a\n"})
        repo = history.write(tmp_path / "tagged")
        git(repo.root, "tag", "v1.1.0")
        assert word(repo.ask("tagged 1.1.0 is out", written=BEFORE)) == ("confirmed", "tagged")
        assert repo.check("tagged 1.4.0 is out", written=BEFORE).verdicts[0].verdict == "unverifiable"

    def test_a_port_that_something_listens_on(self, things: Things) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            verifier = verifier_for([things.repo.root], options=Options(system=True))
            (verdict,) = check(verifier, things.repo.root, f"It is on port {port} now", written=BEFORE).verdicts
            assert word(verdict) == ("confirmed", "listening")
        verifier = verifier_for([things.repo.root], options=Options(system=True))
        (verdict,) = check(verifier, things.repo.root, f"It is on port {port} now", written=BEFORE).verdicts
        assert word(verdict) == ("unverifiable", "not-listening")

    def test_a_port_that_the_configuration_gave_up(self, tmp_path: Path) -> None:
        history = History()
        compose = "services:\n  web:\n    image: web\n    ports:\n      - '{}:80'\n"
        history.commit("2026-01-05", {"docker-compose.yml": compose.format(8080)})
        changing = history.commit("2026-03-05", {"docker-compose.yml": compose.format(9090)})
        repo = history.write(tmp_path / "ports")
        verdict = repo.ask("It answers on port 8080 here", written=BEFORE)
        assert word(verdict) == ("gone", "reconfigured")
        assert verdict.commit == repo.commits[changing]
        assert "9090" in verdict.why

    def test_a_mark_at_the_end_of_a_name(self, tmp_path: Path) -> None:
        history = History()
        history.commit(
            "2026-01-05", {"order.rb": "class Order\n  def valid?\n    true\n  end\n  def old?\n  end\nend\n"}
        )
        history.commit("2026-03-05", {"order.rb": "class Order\n  def valid?\n    true\n  end\nend\n"})
        repo = history.write(tmp_path / "ruby")
        assert repo.ask("`Order#valid?` decides", written=BEFORE).verdict == "confirmed"
        assert repo.ask("`Order#old?` decides", written=BEFORE).verdict == "gone"

    def test_flags_of_a_tool_that_is_made_here(self, tmp_path: Path) -> None:
        history = History()
        history.commit(
            "2026-01-05", {"src/cli.py": 'parser.add_argument("--fast")\nparser.add_argument("--old-way")\n'}
        )
        history.commit("2026-03-05", {"src/cli.py": 'parser.add_argument("--fast")\n'})
        own = history.write(tmp_path / "ruff")
        assert own.ask("`ruff check --fast`", written=BEFORE).verdict == "confirmed"
        assert own.ask("`ruff check --old-way`", written=BEFORE).verdict == "gone"
        other = history.write(tmp_path / "other")
        assert other.check("`ruff check --old-way`", written=BEFORE).verdicts == ()

    def test_decisions_are_never_confirmed(self, things: Things) -> None:
        text = "We decided to use httpx. We chose requests. Decision: `httpx` it is. The team agreed on react."
        verdicts = [item for item in things.repo.check(text, written=BEFORE).verdicts if item.claim.kind == "decision"]
        assert len(verdicts) == 4
        assert "confirmed" not in {item.verdict for item in verdicts}

    def test_a_decision_against_something_that_is_there(self, things: Things) -> None:
        assert things.repo.ask("We decided not to use requests.", written=BEFORE).reason != "consistent"

    @pytest.mark.parametrize(
        "text",
        [
            "The site answers on port 8443; `app.service` runs on port 5300.",
            "`app.service` runs on port 5300, the site on port 8443.",
            "Port 8443 is the site's, `app.service` has port 5300.",
        ],
    )
    def test_the_port_of_a_unit_is_not_its_neighbour_s(self, things: Things, text: str) -> None:
        told = things.repo.told(text, written=BEFORE)
        assert told["5300"].reason == "unit-says"
        assert told["8443"].verdict == "confirmed"

    @pytest.mark.parametrize(("port", "verdict"), [("5300", "confirmed"), ("5204", "moved")])
    def test_a_port_as_the_unit_file_of_the_repository_says_it(self, things: Things, port: str, verdict: str) -> None:
        told = things.repo.told(f"`app.service` runs on port {port} here", written=BEFORE)
        assert told[port].verdict == verdict


@pytest.mark.slow
def test_a_file_in_a_checkout_is_held_against_it(tmp_path: Path) -> None:
    history = History()
    history.commit("2026-01-05", {"src/app.py": "def run():\n    return 1\n", "README.md": "See `src/app.py`.\n"})
    repo = history.write(tmp_path / "alone")
    done = run_cli("verify", "README.md", "--all", cwd=repo.root)
    assert done.returncode == 0, done.stderr
    assert "confirmed" in done.stdout


# --- In a workspace ---------------------------------------------------------------------------------------------------

FETCH_THEN = "def fetch(key):\n    return key\n\n\ndef store(key):\n    return [key]\n"
FETCH_SINCE = FETCH_THEN.replace("    return key\n", "    return key.strip()\n")


@pytest.fixture
def app(place: Place) -> Place:
    """A workspace with one real repository, and nothing in memory yet."""
    history = History()
    history.commit("2026-01-05", {"src/api.py": FETCH_THEN, "src/old.py": "OLD = 'the same all the time'\n"})
    history.commit("2026-03-05", renames={"src/old.py": "src/new.py"})
    history.write(place.repo)
    return place


def note(place: Place, body: str, name: str = "note.md", **keys: str) -> Path:
    keys = {"repository": NAME, "updated": "2026-04-01", **keys}
    return remember(place, f"memory/cards/{name}", a_card(name.removesuffix(".md"), body, **keys))


def verify(place: Place, *files: str, changed: bool = False, repository: Path | None = None) -> list[CheckedMemory]:
    with place.open() as workspace:
        return workspace.verification.verify(files, changed=changed, repository=repository, system=False)


def one(place: Place, *files: str) -> dict[str, tuple[str, str]]:
    """The verdicts on the only memory there is."""
    (checked,) = verify(place, *files)
    return {verdict.claim.text: word(verdict) for verdict in checked.verdicts}


def edit(place: Place, path: str, text: str, *, day: str = "2026-06-01") -> None:
    """Change a file of the repository and commit it."""
    (place.repo / path).write_text(text)
    git(place.repo, "commit", "-q", "-a", "-m", f"change {path}", day=day)


class TestWorkspace:
    def test_cards_documents_and_logs_but_no_index_that_only_lists_cards(self, app: Place) -> None:
        note(app, "See `src/api.py`.")
        remember(app, "TOOLS.md", "See `src/api.py`.\n")
        remember(app, "memory/2026-11-10.md", "See `src/api.py`.\n")
        remember(app, "MEMORY.md", "- [note](memory/cards/note.md) `src/api.py`\n")
        checked = ["TOOLS.md", "memory/2026-11-10.md", "memory/cards/note.md"]
        assert sorted(item.path for item in verify(app)) == checked
        remember(app, "MEMORY.md", "- [note](memory/cards/note.md)\n- The API is in `src/api.py`.\n")
        assert sorted(item.path for item in verify(app)) == ["MEMORY.md", *checked]

    def test_a_card_is_held_against_its_own_repository(self, app: Place) -> None:
        other = History()
        other.commit("2026-01-05", {"src/theirs.py": "THEIRS = 1\n"})
        other.write(app.base / "repos" / "other", remote="git@github.com:me/other.git")
        note(app, "See `src/theirs.py`.", "a.md", repository="github.com/me/other")
        note(app, "See `src/theirs.py`.", "b.md", updated="2026-02-01")
        note(app, "See `src/theirs.py`.", "c.md", repository="github.com/me/nowhere")
        note(app, "See `src/theirs.py`.", "d.md", repository="other")
        verdicts = {item.path[-4:]: [word(verdict) for verdict in item.verdicts] for item in verify(app)}
        assert verdicts == {
            "a.md": [("confirmed", "exists")],
            "b.md": [("gone", "never-seen")],
            "c.md": [("unverifiable", "no-checkout")],
            "d.md": [("confirmed", "exists")],
        }

    def test_a_memory_without_a_repository_is_never_gone(self, app: Place) -> None:
        remember(app, "memory/cards/note.md", a_card("Note", "See `src/none.py` and `/etc/passwd`."))
        assert one(app) == {
            "src/none.py": ("unverifiable", "not-there"),
            "/etc/passwd": ("confirmed", "on-this-host"),
        }

    def test_a_memory_may_name_its_own_files(self, app: Place) -> None:
        remember(app, "rules/naming.md", "# Naming\n")
        note(app, "See `rules/naming.md`.")
        assert verify(app, "note.md")[0].verdicts[0].reason == "in-memory"

    def test_files_by_many_names(self, app: Place) -> None:
        path = note(app, "See `src/api.py`.")
        for name in ("note.md", "note", "memory/cards/note.md", str(path)):
            assert [item.path for item in verify(app, name)] == ["memory/cards/note.md"]

    def test_a_file_from_anywhere(self, app: Place, tmp_path: Path) -> None:
        file = tmp_path / "AGENTS.md"
        file.write_text("See `src/old.py`.\n")
        (checked,) = verify(app, str(file), repository=app.repo)
        assert [word(verdict) for verdict in checked.verdicts] == [("moved", "renamed")]

    def test_only_what_belongs_to_the_repository_that_is_named(self, app: Place) -> None:
        note(app, "See `src/api.py`.", "a.md")
        note(app, "See `src/api.py`.", "b.md", repository="github.com/me/other")
        assert [item.path for item in verify(app, repository=app.repo)] == ["memory/cards/a.md"]

    @pytest.mark.slow
    def test_a_document_has_an_origin_for_each_line(self, app: Place) -> None:
        other = History()
        other.commit("2026-01-05", {"src/theirs.py": "THEIRS = 1\n"})
        other.write(app.base / "repos" / "other", remote="https://github.com/me/other")
        app.leave(
            a_document_handoff("### Ours\nRead `src/api.py` and `src/new.py`.", title="Ours"), "2026-11-10-0900-a.md"
        )
        app.leave(
            a_document_handoff("### Theirs\nRead `src/theirs.py` now.", title="Theirs"),
            "2026-11-11-0900-b.md",
            inbox=app.base / "repos" / "other" / ".claude" / "memory-handoffs",
        )
        app.ingest()
        with (app.workspace / "TOOLS.md").open("a") as file:
            file.write("\nBy hand: `src/by_hand.py`.\n")
        assert one(app, "TOOLS.md") == {
            "src/api.py": ("confirmed", "exists"),
            "src/new.py": ("confirmed", "exists"),
            "src/theirs.py": ("confirmed", "exists"),
            "src/by_hand.py": ("unverifiable", "not-there"),
        }

    def test_worktrees_and_clones(self, app: Place) -> None:
        note(app, "See `src/api.py`.")
        shutil.rmtree(app.repo / ".claude")
        git(app.repo, "worktree", "add", "-q", "-b", "side", str(app.base / "repos" / "side"))
        (app.base / "repos" / "side" / "src" / "api.py").unlink()
        assert one(app) == {"src/api.py": ("confirmed", "exists")}  # the clone itself comes first
        (checked,) = verify(app, repository=app.base / "repos" / "side")
        assert [word(verdict) for verdict in checked.verdicts] == [("gone", "deleted-here")]

    def test_a_changelog_document_claims_nothing(self, app: Place) -> None:
        note(app, "See `src/none.py`.", "changelog.md")
        assert one(app) == {}


class TestKept:
    def test_changed_since_the_last_check(self, app: Place) -> None:
        note(app, "`fetch()` gets it.")
        assert one(app) == {"fetch": ("confirmed", "defined")}
        edit(app, "src/api.py", FETCH_SINCE)
        (checked,) = verify(app)
        assert [word(verdict) for verdict in checked.verdicts] == [("changed", "body-changed")]

    def test_changed_since_the_last_check_without_a_date(self, app: Place) -> None:
        """Nothing but what the last check saw can tell."""
        note(app, "`fetch()` gets it.", updated="")
        assert one(app) == {"fetch": ("confirmed", "defined")}
        edit(app, "src/api.py", FETCH_SINCE)
        (checked,) = verify(app)
        assert [word(verdict) for verdict in checked.verdicts] == [("changed", "body-changed")]
        assert "since the last check" in checked.verdicts[0].why

    def test_it_stays_changed_until_the_memory_is_new(self, app: Place) -> None:
        note(app, "`fetch()` gets it.")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        assert one(app) == one(app) == {"fetch": ("changed", "body-changed")}

    def test_a_memory_that_was_written_anew_is_not_changed(self, app: Place) -> None:
        note(app, "`fetch()` gets it.")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        note(app, "`fetch()` gets it, stripped.", updated=datetime.now().astimezone().date().isoformat())
        assert one(app) == {"fetch": ("confirmed", "defined")}

    @pytest.mark.parametrize("updated", ["", "2026-02-01"])
    def test_words_elsewhere_in_the_memory_take_nothing_back(self, app: Place, updated: str) -> None:
        note(app, "`fetch()` gets it.", updated=updated)
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        note(app, "`fetch()` gets it.\n\nAnd all is well.", updated=updated)
        assert one(app) == {"fetch": ("changed", "body-changed")}

    def test_words_written_anew_without_a_day_count_as_seen(self, app: Place) -> None:
        note(app, "`fetch()` gets it.", updated="")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        note(app, "`fetch()` gets it, stripped.", updated="")
        assert one(app) == {"fetch": ("confirmed", "defined")}

    def test_what_is_said_twice_is_changed_twice(self, app: Place) -> None:
        note(app, "`fetch()` gets it.\n\nOnce more: `fetch()` gets it.", updated="")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        (checked,) = verify(app)
        assert [word(verdict) for verdict in checked.verdicts] == [("changed", "body-changed")] * 2

    def test_changed_since_the_day_of_the_memory_whoever_looks(self, app: Place) -> None:
        """What an earlier check saw and what git tells are the same words."""
        note(app, "`fetch()` gets it.")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        warm = verify(app)
        for file in (app.workspace / ".truekeep").glob("facts.sqlite*"):
            file.unlink()
        assert [item.verdicts for item in verify(app)] == [item.verdicts for item in warm]

    def test_what_is_younger_than_its_memory_is_compared_with_the_first_check(self, app: Place) -> None:
        """Git does not have it at the memory's day."""
        edit(app, "src/api.py", FETCH_THEN + "\n\ndef late():\n    return 1\n", day="2026-05-01")
        note(app, "`late()` is nice.", updated="2026-02-01")
        assert one(app) == one(app) == {"late": ("confirmed", "defined")}
        edit(app, "src/api.py", FETCH_THEN + "\n\ndef late():\n    return 2\n")
        (checked,) = verify(app)
        assert [word(verdict) for verdict in checked.verdicts] == [("changed", "body-changed")]
        assert "since the last check" in checked.verdicts[0].why

    def test_changed_on_the_very_day_of_the_memory(self, app: Place) -> None:
        note(app, "`fetch()` gets it.", updated="2026-06-01")
        assert one(app) == {"fetch": ("confirmed", "defined")}
        edit(app, "src/api.py", FETCH_SINCE, day="2026-06-01")
        assert one(app) == one(app) == {"fetch": ("changed", "body-changed")}

    def test_another_function_of_the_file_may_change(self, app: Place) -> None:
        note(app, "`store()` keeps it.", updated="")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        assert one(app) == {"store": ("confirmed", "defined")}

    def test_comments_and_blanks_are_no_change(self, app: Place) -> None:
        note(app, "`fetch()` gets it.", updated="")
        verify(app)
        edit(
            app, "src/api.py", "# A remark.\n\n" + FETCH_THEN.replace("    return key\n", "    # why\n    return key\n")
        )
        assert one(app) == {"fetch": ("confirmed", "defined")}

    @pytest.mark.slow
    def test_reading_never_renews_what_a_check_saw(self, app: Place) -> None:
        note(app, "`fetch()` gets it.", updated="")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        with app.open() as workspace:
            workspace.search.find("gets it")
            workspace.search.get("memory/cards/note.md")
            workspace.verification.verify_text("`fetch()` gets it.", repository=app.repo)
        assert one(app) == {"fetch": ("changed", "body-changed")}

    @pytest.mark.slow
    def test_reading_never_makes_a_first_print(self, app: Place) -> None:
        note(app, "`fetch()` gets it.", updated="")
        with app.open() as workspace:
            workspace.search.find("gets it")
            workspace.search.get("memory/cards/note.md")
        edit(app, "src/api.py", FETCH_SINCE)
        assert one(app) == {"fetch": ("confirmed", "defined")}

    @pytest.mark.slow
    def test_without_its_cache_nothing_but_time_changes(self, app: Place) -> None:
        note(app, "`fetch()` is in `src/old.py`; `src/old.py:1`; `src/none.py`; commit 0123456789. `store()` keeps it.")
        first = verify(app)
        for file in (app.workspace / ".truekeep").glob("facts.sqlite*"):
            file.unlink()
        assert [item.verdicts for item in verify(app)] == [item.verdicts for item in first]
        assert [item.verdicts for item in verify(app)] == [item.verdicts for item in first]

    def test_a_damaged_cache_is_thrown_away(self, app: Place) -> None:
        note(app, "`fetch()` is in `src/old.py`.")
        first = verify(app)
        (app.workspace / ".truekeep" / "facts.sqlite").write_bytes(b"not a database at all\n" * 400)
        assert [item.verdicts for item in verify(app)] == [item.verdicts for item in first]

    def test_changed_leaves_out_what_is_as_it_was(self, app: Place) -> None:
        note(app, "See `src/api.py`.", "a.md")
        note(app, "See `src/new.py`.", "b.md")
        settle(app.repo)
        assert len(verify(app, changed=True)) == 2
        assert verify(app, changed=True) == []
        note(app, "See `src/new.py` again.", "b.md")
        assert [item.path for item in verify(app, changed=True)] == ["memory/cards/b.md"]

    def test_changed_leaves_out_what_has_nothing_to_check(self, app: Place) -> None:
        note(app, "All is well.")
        verify(app)
        assert verify(app, changed=True) == []

    def test_changed_sees_an_edit_of_the_evidence(self, app: Place) -> None:
        note(app, "See `src/api.py`.", "a.md")
        note(app, "See `src/new.py`.", "b.md")
        verify(app)
        (app.repo / "src" / "api.py").write_text(FETCH_SINCE)
        assert [item.path for item in verify(app, changed=True)] == ["memory/cards/a.md"]

    def test_changed_sees_a_new_file_that_defines_what_was_missing(self, app: Place) -> None:
        note(app, "`brand_new()` is nice.")
        assert one(app) == {"brand_new": ("unverifiable", "never-seen")}
        (app.repo / "src" / "fresh.py").write_text("def brand_new():\n    return 1\n")
        assert [item.path for item in verify(app, changed=True)] == ["memory/cards/note.md"]

    def test_changed_sees_an_edit_that_defines_what_was_missing(self, app: Place) -> None:
        note(app, "`brand_new()` is nice.")
        verify(app)
        assert verify(app, changed=True) == []
        (app.repo / "src" / "api.py").write_text(FETCH_THEN + "\n\ndef brand_new():\n    return 1\n")
        assert [item.path for item in verify(app, changed=True)] == ["memory/cards/note.md"]
        assert verify(app, changed=True) == []

    def test_changed_sees_a_new_commit(self, app: Place) -> None:
        note(app, "See `src/api.py`.")
        verify(app)
        edit(app, "src/api.py", FETCH_SINCE)
        assert [item.path for item in verify(app, changed=True)] == ["memory/cards/note.md"]


# --- The command ------------------------------------------------------------------------------------------------------


class TestCommand:
    @pytest.mark.slow
    def test_what_is_wrong_with_evidence_and_the_next_step(self, app: Place) -> None:
        note(app, "See `src/old.py` and `src/none.py`, not `src/api.py`.", updated="2026-02-01")
        note(app, "All is well in `src/api.py`.", "well.md")
        done = run_cli("verify", "-w", str(app.workspace), cwd=app.repo)
        assert done.returncode == 0, done.stderr
        assert "memory/cards/note.md" in done.stdout
        assert "well.md" not in done.stdout
        assert "renamed to src/new.py in " in done.stdout
        assert "on 2026-03-05" in done.stdout
        assert "2 files: 1 gone, 1 moved, 2 confirmed" in done.stdout
        assert "truekeep verify --fix" in done.stdout

    @pytest.mark.slow
    def test_each_reason_names_a_place(self, app: Place) -> None:
        note(app, "All is well.\n\n`brand_new()` is nice.\n\n`brand_newer()` is nicer.")
        note(app, "See `src/none.py`.", "none.md", repository="")
        said = run_cli("verify", "-w", str(app.workspace)).stdout
        reasons = [line.split("not checked: ")[1] for line in said.splitlines() if "not checked: " in line]
        assert sorted(line.rpartition("(")[2] for line in reasons) == [
            "memory/cards/none.md:9)",
            "memory/cards/note.md:11, …)",
        ]
        assert "next: `truekeep repos match` finds the repository of cards that name none (1 here)" in said

    @pytest.mark.slow
    def test_a_reason_is_told_once_wherever_it_was_met(self, app: Place) -> None:
        for number in (1, 2, 3):
            name = f"only_told_{number}"
            (app.repo / f"about-{number}.md").write_text(f"See `{name}()`.\n")
            note(app, f"`{name}()` is nice.", f"{number}.md")
        said = run_cli("verify", "-w", str(app.workspace)).stdout
        assert "3 not checked: no code here defines or uses it; now only named in documents (" in said
        assert "next:" not in said

    @pytest.mark.slow
    def test_more_reasons_than_are_told_are_counted(self, app: Place) -> None:
        for number in range(7):
            note(app, "See `src/none.py`.", f"{number}.md", repository=f"github.com/me/none{number}")
        said = run_cli("verify", "-w", str(app.workspace)).stdout
        assert said.count(" not checked: ") == 4
        assert "3 not checked for other reasons (--all shows each claim)" in said

    @pytest.mark.slow
    def test_exit_codes_for_scripts(self, app: Place) -> None:
        note(app, "See `src/api.py`.")
        assert run_cli("verify", "--exit-code", "-w", str(app.workspace)).returncode == 0
        note(app, "See `src/old.py`.", updated="2026-02-01")
        assert run_cli("verify", "--exit-code", "-w", str(app.workspace)).returncode == 12

    @pytest.mark.slow
    def test_json_says_all_that_is_known(self, app: Place) -> None:
        note(app, "See `src/old.py`.", updated="2026-02-01")
        done = run_cli("verify", "--json", "-w", str(app.workspace))
        data = json.loads(done.stdout)
        (file,) = data["files"]
        assert (file["path"], file["repository"], file["branch"]) == ("memory/cards/note.md", NAME, "main")
        assert file["head"] == git(app.repo, "rev-parse", "HEAD")
        (claim,) = file["claims"]
        assert claim == claim | {
            "kind": "path",
            "text": "src/old.py",
            "verdict": "moved",
            "reason": "renamed",
            "place": "src/new.py",
            "commit": git(app.repo, "rev-parse", "HEAD"),
            "commit_day": "2026-03-05",
            "uncommitted": False,
        }
        assert data["summary"] == {"files": 1, "confirmed": 0, "moved": 1, "changed": 0, "gone": 0, "unverifiable": 0}

    @pytest.mark.slow
    def test_any_text_from_standard_input(self, app: Place) -> None:
        text = "See `src/old.py` and `src/none.py` on port 5999 here."
        done = run_cli("verify", "--stdin", "--json", cwd=app.repo, stdin=text)
        claims = json.loads(done.stdout)["files"][0]["claims"]
        assert [(claim["verdict"], claim["reason"]) for claim in claims] == [
            ("moved", "renamed"),
            ("gone", "never-seen"),  # a draft is of this very moment: what is not here is not there
            ("unverifiable", "not-listening"),
        ]

    @pytest.mark.slow
    def test_files_and_a_checkout_need_no_workspace(self, app: Place, tmp_path: Path) -> None:
        (tmp_path / "AGENTS.md").write_text("See `src/old.py`.\n")
        done = run_cli("verify", "AGENTS.md", "--repo", str(app.repo), "--all", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "renamed to src/new.py" in done.stdout

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "arguments",
        [("--dry-run",), ("--stdin", "--fix"), ("none.md",), ("--repo", "/no/such/folder")],
    )
    def test_what_makes_no_sense_is_said(self, app: Place, arguments: tuple[str, ...]) -> None:
        done = run_cli("verify", *arguments, "-w", str(app.workspace))
        assert done.returncode not in (0, 12, 70)
        assert "Traceback" not in done.stderr


# --- A full disk ------------------------------------------------------------------------------------------------------

FULL = """
import json, os, resource, shutil, sys
from pathlib import Path
from tests.support.histories import check, verifier_for
from truekeep.verify.cache import FactsCache

root, folder, text = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def ask(name, text):
    store = FactsCache(str(folder / name))
    verdicts = check(verifier_for([root], store=store), root, text, written="2026-01-10").verdicts
    store.close()
    return sorted({verdict.verdict for verdict in verdicts})

ask("facts.sqlite", text + " `lost_0()`")
for path in (root / "src").iterdir():
    names = (f"def {path.stem}_{number}():\\n    return {number}\\n" for number in range(200))
    path.write_text(path.read_text() + "".join(names))
told = {}
for limit in range(16_000, 112_000, 12_000):
    shutil.copy(folder / "facts.sqlite", folder / f"{limit}.sqlite")
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        told[limit] = ask(f"{limit}.sqlite", text)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_full_disk_makes_nothing_gone(tmp_path: Path) -> None:
    """Facts that cannot be kept are still facts."""

    def module(number: int, *, old: bool) -> str:
        more = "".join(f"def more_{number}_{at}_{old}():\n    return {at}\n" for at in range(60))
        return f"def kept_{number}():\n    return 1\n" + (f"def lost_{number}():\n    return 2\n" if old else "") + more

    history = History()
    history.commit("2026-01-05", {f"src/m{number}.py": module(number, old=True) for number in range(20)})
    history.commit("2026-03-05", {f"src/m{number}.py": module(number, old=False) for number in range(20)})
    repo = history.write(tmp_path / "app")
    text = " ".join(f"`kept_{number}()`" for number in range(20))
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(repo.root), str(tmp_path), text],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert {verdict for told in json.loads(done.stdout).values() for verdict in told} == {"confirmed"}
