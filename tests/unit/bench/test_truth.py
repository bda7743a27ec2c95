"""The instrument that measures verify: labels made from a small history, and scores worked out by hand."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from bench.promises import CannotRun
from bench.truth import build, phrases, run
from bench.truth.baselines import search, word_of
from bench.truth.build import Label, Set
from bench.truth.cards import Mark, Setting, Writer, choose, label_of
from bench.truth.documents import Document, Foreign, convert, is_foreign, iter_paths, iter_spans, write_document
from bench.truth.git import Git, Heir
from bench.truth.judge import Fact, Judge
from bench.truth.manifest import read_environment, read_flags, read_packages, read_scripts
from bench.truth.score import Claim, Tally, answer, fit, judge, parse_report, same_place, tally
from bench.truth.source import Definition, define, find_prose, find_words, role, sort_words
from bench.truth.world import World

YEAR = 31_557_600
NOW = 1_790_000_000

ROUTER = '''"""Routes."""
import os

MAX_ROUTES = 40


class Router:
    def match(self, path):
        return [one for one in self.routes if one.path == path and not one.hidden]

    def forget(self, name):
        self.routes = [one for one in self.routes if one.name != name and one.keep]


def build_router(names):
    table = Router()
    for name in names:
        table.routes.append(make_route(name, hidden=False, depth=3))
    return table


def trim_slashes(text):
    return text.strip("/").replace("//", "/")
'''
WORDS = '''"""Words."""


def cut_words(text):
    return [word for word in text.split() if word.isalpha()]


def join_words(words):
    return " ".join(word for word in words if word.strip())


def count_words(words):
    return {word: words.count(word) for word in sorted(set(words))}
'''
DEAD = '''class Kitchen:
    """Pots, pans and a stove."""

    stove = {"left": 180, "right": 220}


def cook_soup(kitchen):
    kitchen.stove["left"] += 20


def boil_eggs(kitchen, minutes=4):
    kitchen.stove["right"] = 100 if minutes > 3 else 90
'''
OPTIONS = """import argparse, os


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-going")
    parser.add_argument("--old-style")
    return parser, os.environ.get("SHOP_HOME_DIR"), os.environ.get("SHOP_OLD_DIR")
"""


def commit(folder: Path, files: Mapping[str, str | None], at: int) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True) if text is None else path.write_text(text, encoding="utf-8")
    return save(folder, at)


def save(folder: Path, at: int) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "change", at=at)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str, at: int = NOW) -> str:
    who = {f"GIT_{one}_{what}": "a@b" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {f"GIT_{one}_DATE": f"{at} +0000" for one in ("AUTHOR", "COMMITTER")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **who, **dates}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A small history of six years: things stay, move and go away."""
    folder = tmp_path / "repos" / "shop"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    commit(
        folder,
        {
            "shop/router.py": ROUTER,
            "shop/words.py": WORDS,
            "shop/options.py": OPTIONS,
            "shop/dead.py": DEAD,
            "lib/one.py": WORDS.replace("words", "stems"),
            "lib/two.py": ROUTER.replace("Router", "Lib").replace("build_router", "build_lib"),
            "docs/guide.md": "# Guide\n\nUse `build_router` and `cook_soup()` in `shop/words.py`, not `my/app.py`.\n",
            "Makefile": "lint:\n\truff\nold-check:\n\ttrue\n",
            "pyproject.toml": '[project]\ndependencies = ["alpha-kit>=1", "gamma-kit"]\n',
        },
        NOW - 6 * YEAR,
    )
    (folder / "shop" / "text").mkdir()
    git(folder, "mv", "shop/words.py", "shop/text/cutting.py")
    git(folder, "mv", "lib", "library")
    save(folder, NOW - YEAR // 2)
    moved = ROUTER.partition("\n\ndef trim_slashes")
    commit(
        folder,
        {
            "shop/router.py": "# trim_slashes went to\n# slashes.py\n"
            + moved[0].replace("    def forget", "    def _forget").replace("MAX_ROUTES = 40\n", ""),
            "shop/slashes.py": "def trim_slashes"
            + moved[2].partition("def trim_slashes")[2]
            + ROUTER[-77:].replace("trim", "cut"),
            "shop/dead.py": None,
            "shop/options.py": OPTIONS.replace('    parser.add_argument("--old-style")\n', "").replace(
                "SHOP_OLD_DIR", "X"
            ),
            "docs/guide.md": "# Guide\n\nOnce there was `cook_soup`.\n",
            "Makefile": "lint:\n\truff\n",
            "pyproject.toml": '[project]\ndependencies = ["alpha-kit>=1"]\n',
        },
        NOW,
    )
    return folder


def judge_clone(clone: Path, tmp_path: Path) -> Judge:
    repository = Git(clone)
    old = repository.before(NOW - 5 * YEAR)
    assert old
    return Judge(World(repository, old, tmp_path / "old"), World(repository, "HEAD", tmp_path / "new"), "seed")


# No code is shared with the product


SHARED = ("bench.measure", "bench.promises")
FOLDER = Path(build.__file__).parent


@pytest.mark.parametrize(
    "path",
    [*sorted(FOLDER.glob("*.py")), *(FOLDER.parent / f"{name.partition('.')[2]}.py" for name in SHARED)],
    ids=lambda path: path.name,
)
def test_nothing_imports_the_product(path: Path) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    assert not [name for name in names if name.split(".")[0] == "truekeep"]
    assert not [name for name in names if name.startswith("bench.") and not name.startswith(("bench.truth", *SHARED))]


# History


def test_renames_are_chained_and_what_comes_back_is_in_doubt(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    text = "".join(f"line number {number}\n" for number in range(40))
    old = commit(tmp_path, {"a.py": text, "b.py": text[::-1], "c.py": "gone\n" * 20}, NOW)
    git(tmp_path, "mv", "a.py", "a2.py")
    git(tmp_path, "mv", "b.py", "b2.py")
    save(tmp_path, NOW + 1)
    git(tmp_path, "mv", "a2.py", "a3.py")
    commit(tmp_path, {"b2.py": None, "c.py": None}, NOW + 2)
    commit(tmp_path, {"b2.py": "another one\n"}, NOW + 3)
    heirs = Git(tmp_path).heirs(old, ["a.py", "b.py", "c.py"])
    assert heirs == {"a.py": Heir("a3.py", 100, 2), "b.py": Heir("b2.py", 0, 2), "c.py": Heir(None, 100, 0)}


def test_lines_follow_what_is_put_in_and_taken_out(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    lines = [f"{number}\n" for number in range(1, 11)]
    old = commit(tmp_path, {"a": "".join(lines)}, NOW)
    now = ["new\n", "new\n", *lines[:2], *lines[4:7], "changed\n", *lines[8:], "end\n"]
    commit(tmp_path, {"b": "".join(now), "a": None}, NOW + 1)
    mapped = Git(tmp_path).line_map(old, "a", "b")
    assert mapped == {1: 3, 2: 4, 5: 5, 6: 6, 7: 7, 9: 9, 10: 10}
    assert all(now[new - 1] == lines[was - 1] for was, new in mapped.items())


@pytest.mark.slow
def test_what_became_of_each_thing(clone: Path, tmp_path: Path) -> None:
    judged = judge_clone(clone, tmp_path)
    facts = {(fact.kind, fact.text, fact.path): fact for fact in judged.facts()}

    def fate(kind: str, text: str, path: str = "") -> tuple[str, str, bool]:
        return facts[kind, text, path].verdict, facts[kind, text, path].where, facts[kind, text, path].mentioned

    assert fate("path", "shop/router.py") == ("true", "", False)
    assert fate("path", "shop/words.py") == ("moved", "shop/text/cutting.py", False)
    assert fate("path", "shop/dead.py") == ("gone", "", False)
    assert fate("path", "dead.py") == ("gone", "", False)
    assert fate("directory", "lib") == ("moved", "library", False)
    assert fate("directory", "shop") == ("true", "", False)
    assert fate("symbol", "build_router") == ("true", "", False)
    assert fate("symbol", "cook_soup") == ("gone", "", True)
    assert fate("symbol", "boil_eggs") == ("gone", "", False)
    assert ("place", "trim_slashes", "shop/router.py") not in facts  # it may have moved, and lib has one, too
    assert fate("place", "MAX_ROUTES", "shop/router.py") == ("gone", "", False)  # lib has one, but had it before
    assert fate("place", "cut_words", "shop/words.py") == ("moved", "shop/text/cutting.py", False)
    assert fate("place", "build_router", "shop/router.py") == ("true", "", False)
    assert fate("method", "Router.match") == ("true", "", False)
    assert fate("method", "Router.forget") == ("gone", "", False)  # Lib still has a method of that name
    assert fate("line", "shop/router.py:15", "shop/router.py") == ("moved", "shop/router.py:16", False)
    assert fate("line", "shop/words.py:4", "shop/words.py") == ("moved", "shop/text/cutting.py:4", False)
    assert fate("flag", "--keep-going") == ("true", "", False)
    assert fate("flag", "--old-style") == ("gone", "", False)
    assert fate("env", "SHOP_OLD_DIR") == ("gone", "", False)
    assert fate("script", "make old-check", "Makefile") == ("gone", "", False)
    assert fate("script", "make lint", "Makefile") == ("true", "", False)
    assert fate("package", "gamma-kit", "pyproject.toml") == ("gone", "", False)
    assert fate("package", "alpha-kit", "pyproject.toml") == ("true", "", False)


@pytest.mark.slow
def test_commits_are_known_lost_or_made_up(clone: Path, tmp_path: Path) -> None:
    judged = judge_clone(clone, tmp_path)
    facts = [fact for fact in judged.facts() if fact.kind == "commit"]
    assert {(fact.verdict, fact.flags) for fact in facts} == {
        ("true", ()),
        ("gone", ("unknown",)),
        ("gone", ("on no branch",)),
    }
    lost = next(fact.text for fact in facts if "on no branch" in fact.flags)
    assert git(clone, "cat-file", "-t", lost) == "commit"
    assert git(clone, "branch", "--all", "--contains", lost) == ""
    assert {label_of(fact) for fact in facts if "unknown" in fact.flags} == {"foreign"}  # never seen is not gone
    unknown = next(fact.text for fact in facts if "unknown" in fact.flags)
    assert subprocess.run(["git", "cat-file", "-e", unknown], cwd=clone, check=False, capture_output=True).returncode


# Source


@pytest.mark.parametrize(
    ("path", "its"),
    [
        ("django/urls/resolvers.py", "code"),
        ("tests/urls/tests.py", "test"),
        ("pkg/server/router_test.go", "test"),
        ("src/test/java/A.java", "test"),
        ("django/test/client.py", "unsure"),
        ("docs/guide.md", "doc"),
        ("docs/conf.py", "unsure"),
        ("CHANGELOG", "doc"),
        ("src/db/changes.rs", "code"),
        ("vendor/x/y.go", "vendored"),
        ("package-lock.json", "vendored"),
        ("package.json", "config"),
    ],
)
def test_what_a_file_is_for(path: str, its: str) -> None:
    assert role(path) == its


def test_words_are_told_apart_by_where_they_stand() -> None:
    text = 'def alpha():\n    """Like beta."""\n    # gamma\n    return delta("epsilon")\n'
    found = sort_words(text, "py")
    assert {"alpha", "delta"} <= found["code"]
    assert {"beta", "gamma"} <= found["comment"]
    assert "epsilon" in found["string"]
    assert find_prose(text, "a.py") == {2, 3}
    assert {"Foo", "FOO"} <= sort_words("#define FOO 1\n/* Bar */ struct Foo x;\n", "c")["code"]


def test_where_words_occur(tmp_path: Path) -> None:
    for name, text in {"a.py": "alpha = 1\n# beta\n", "tests/test_a.py": "beta\n", "doc.md": "alpha beta\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = find_words(tmp_path, ["a.py", "tests/test_a.py", "doc.md"], {"alpha", "beta", "delta"})
    assert dict(found) == {"alpha": {"code", "doc"}, "beta": {"comment", "test", "doc"}}


def test_python_definitions(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "X = 1\nclass A:\n    def f(self): pass\nclass B(A):\n    y = 2\nif X:\n    def g(): pass\n"
    )
    assert define(tmp_path, ["a.py", "broken.py"]) == [
        Definition("X", "constant", "", "a.py", 1, 1, False),
        Definition("A", "class", "", "a.py", 2, 3, True),
        Definition("f", "function", "A", "a.py", 3, 3, False),
        Definition("B", "class", "", "a.py", 4, 5, False),
        Definition("y", "other", "B", "a.py", 5, 5, False),
        Definition("g", "function", "", "a.py", 7, 7, False),
    ]


@pytest.mark.needs("ctags")
def test_other_definitions(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("package a\n\ntype Thing struct{}\n\nfunc (t *Thing) Go() {}\n")
    (tmp_path / "b.ts").write_text("export class Shop {\n  open() {}\n}\nexport function build() { const x = 1 }\n")
    found = {(one.path, one.scope, one.name, one.kind) for one in define(tmp_path, ["a.go", "b.ts"])}
    assert found == {
        ("a.go", "", "Thing", "class"),
        ("a.go", "Thing", "Go", "function"),
        ("b.ts", "", "Shop", "class"),
        ("b.ts", "Shop", "open", "function"),
        ("b.ts", "", "build", "function"),
    }


def test_flags_and_variables_in_several_languages() -> None:
    text = """
    parser.add_argument("-k", "--keep-going")
    flags.StringVar(&x, "log-level", "info", "")
    #[arg(long, value_name = "X")]
    pub dry_run: bool,
    new InputOption('no-scripts', null)
    process.env.SHOP_MODE; os.Getenv("SHOP_DIR"); env::var("SHOP_LOG"); ENV.fetch('SHOP_KEY'); getenv("PATH")
    """
    assert set(read_flags(text)) == {"--keep-going", "--log-level", "--dry-run", "--no-scripts"}
    assert set(read_environment(text)) == {"SHOP_MODE", "SHOP_DIR", "SHOP_LOG", "SHOP_KEY"}


@pytest.mark.parametrize(
    ("path", "text", "scripts", "packages"),
    [
        (
            "package.json",
            '{"scripts": {"lint": "x"}, "devDependencies": {"vitest": "1"}}',
            {"npm run lint"},
            {"vitest"},
        ),
        ("Cargo.toml", '[dependencies]\nserde = "1"\nown = {path = "x"}\n', set(), {"serde"}),
        (
            "go.mod",
            "require (\n\tgithub.com/a/b v1.2.3\n\tgithub.com/c/d v1.0.0 // indirect\n)\n",
            set(),
            {"github.com/a/b"},
        ),
        ("x.gemspec", "s.add_dependency('parser', '~> 3')\n", set(), {"parser"}),
        ("Makefile", "lint: all\nX := 1\n.PHONY: lint\n", {"make lint"}, set()),
        ("package.json", "{broken", set(), set()),
    ],
)
def test_manifests(path: str, text: str, scripts: set[str], packages: set[str]) -> None:
    assert set(read_scripts(path, lambda: text)) == scripts
    assert set(read_packages(path, lambda: text)) == packages


# Cards


@pytest.mark.slow
def test_every_mark_stands_where_it_says(clone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path / "cache"))
    for dated in (True, False):
        one = build.load("shop", clone, dated=dated)
        assert len(one.labels) > 100
        for label in one.labels:
            lines = (one.cards / label.card).read_text(encoding="utf-8").split("\n")
            assert label.mark.text in lines[label.mark.line - 1], label
            assert label.mark.label != "moved" or label.mark.where
        texts = [path.read_text(encoding="utf-8") for path in one.cards.glob("*.md")]
        assert all(("\ncreated: " in text) == dated for text in texts)
        assert {label.mark.label for label in one.labels} == {
            "true",
            "moved",
            "gone",
            "skip",
            "look-alike",
            "history",
            "foreign",
        }
        documents = {label.mark.text: label.mark.label for label in one.labels if "doc" in label.mark.flags}
        assert documents == {"build_router": "true", "cook_soup()": "gone", "shop/words.py": "moved"}
        assert git(one.world, "rev-parse", "HEAD") == git(clone, "rev-parse", "HEAD")


@pytest.mark.slow
def test_labels_are_the_same_every_time_and_kept(clone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path / "one"))
    first = build.load("shop", clone, dated=True)
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path / "two"))
    second = build.load("shop", clone, dated=True)
    assert first.labels == second.labels
    monkeypatch.setattr(build, "build", lambda *_: pytest.fail("made again"))
    assert build.load("shop", clone, dated=True) == second


def test_a_line_that_only_a_date_explains_is_not_asked_of_undated_cards() -> None:
    fact = Fact("line", "a/b.py:3", "moved", "a/b.py:9", "a/b.py", flags=("bare",))
    for dated, label in ((True, "moved"), (False, "skip")):
        setting = Setting("github.com/a/b", "1y", "2024-01-01", dated, phrases.TUNING)
        (card,) = Writer(setting, {}, "seed").write([fact])
        assert [mark.label for mark in card.marks if mark.kind == "line"] == [label]


def test_no_kind_fills_the_set() -> None:
    facts = [Fact("symbol", f"name_{number}", "gone", mentioned=number % 2 == 0) for number in range(1_000)]
    chosen = choose(facts, "seed")
    assert Counter(fact.mentioned for fact in chosen) == {True: 18, False: 18}
    assert chosen == choose(list(reversed(facts)), "seed")


def test_spans_of_a_document() -> None:
    lines = ["Use `a_b` or [it](x/y.md), [not](#top).", "```", "`no`", "```", "    `code`", "``no``"]
    assert list(iter_spans(lines)) == [(1, "a_b"), (1, "x/y.md")]
    assert list(iter_paths(["cd a/b && ./run/it.sh http://x.y/z"])) == [(1, "a/b"), (1, "./run/it.sh")]
    assert convert("See :func:`~a.b` and ``c``.") == "See `a.b` and `c`."


def test_what_was_never_of_the_repository_cannot_rot() -> None:
    lines = ["Put `my/app.py` beside `src/b.py`, call `frobnicate()` and `os.walk`.", "It was in `src/b.py`."]
    foreign = Foreign({"src/b.py", "b.py"}, {"frobnicate"}, set())
    known = {"src/b.py": Fact("path", "src/b.py", "moved", "src/c.py")}
    setting = Setting("github.com/a/b", "1y", "2024-01-01", True, phrases.TUNING)
    card = write_document(Document("README.md", lines), setting, known, foreign)
    assert [(mark.line - 8, mark.text, mark.label) for mark in card.marks] == [
        (1, "my/app.py", "foreign"),
        (1, "src/b.py", "moved"),
        (1, "frobnicate()", "foreign"),
    ]


@pytest.mark.parametrize(
    ("text", "is_of_others"),
    [
        ("my/app.py", True),
        ("./my/app.py", True),
        ("and/or", True),
        ("guide/start.md", False),
        ("/guide/start.html", False),
        ("start.md", False),  # no slash, and no word that is known to be of others
        ("acme/kit", False),
        ("../src/b.py", False),
        ("@acme/kit", False),
        ("shop.frobnicate()", True),
        ("shop.walk()", False),
    ],
)
def test_what_is_of_others(text: str, is_of_others: bool) -> None:
    foreign = Foreign({"docs/guide/start.md", "guide/start.md", "start.md"}, {"frobnicate"}, {"acme/kit"})
    assert is_foreign(text, "docs/index.md", foreign) == is_of_others


def test_both_banks_fill_every_kind() -> None:
    for bank in (phrases.TUNING, phrases.HELD_OUT):
        assert all(len(group) >= 3 for group in bank)
        assert all("{t}" in phrase or "{l}" in phrase for group in bank[:17] for phrase in group)
        assert [phrase for phrase in bank.paths if "`{t}`" in phrase]
        assert [phrase for phrase in bank.places if "defin" in phrase]
        assert [phrase for phrase in bank.directories if "`{t}" in phrase]
    for one, other in zip(phrases.TUNING, phrases.HELD_OUT, strict=True):
        assert not set(one) & set(other) - {""} - {"```"}


# Scores


def a_label(kind: str, text: str, verdict: str, line: int = 1, card: str = "c.md", **more: object) -> Label:
    return Label("shop", "1y", card, Mark(line, kind, text, verdict, **more))  # type: ignore[arg-type]


def a_claim(kind: str, text: str, verdict: str, line: int = 1, place: str = "") -> Claim:
    return Claim(kind, text, line, verdict, place)


@pytest.mark.parametrize(
    ("mark", "claim", "fits"),
    [
        (("path", "a/b.py"), ("path", "`./a/b.py`"), True),
        (("directory", "a/b"), ("directory", "a/b/"), True),
        (("symbol", "run"), ("symbol", "run()"), True),
        (("symbol", "run"), ("symbol", "run_all"), False),
        (("symbol", "run"), ("path", "a/run.py"), False),
        (("method", "A.run"), ("method", "A.run()"), True),
        (("place", "run"), ("symbol", "run in a.py"), True),
        (("place", "MAX_SIZE"), ("env", "MAX_SIZE"), True),
        (("line", "a/b.py:3"), ("line", "a/b.py:3-9"), True),
        (("line", "a/b.py#L3"), ("line", "a/b.py#L3-L9"), True),
        (("line", "a/b.py"), ("line", "line 3"), True),
        (("line", "a/b.py:3"), ("line", "c/d.py:3"), False),
        (("line", "a/b.py:3"), ("path", "a/b.py"), True),
        (("flag", "--keep"), ("flag", "--keep-going"), False),
        (("commit", "abc1234"), ("commit", "abc1234"), True),
        (("package", "left-pad"), ("package", "left-pad"), True),
    ],
)
def test_which_claim_answers_which_label(mark: tuple[str, str], claim: tuple[str, str], fits: bool) -> None:
    assert bool(fit(Mark(1, *mark, "true"), a_claim(*claim, "confirmed"))) == fits


def test_a_label_takes_the_claim_that_fits_best() -> None:
    labels = [a_label("place", "run", "moved", where="c.py"), a_label("path", "a.py", "true")]
    claims = [a_claim("path", "a.py", "confirmed"), a_claim("symbol", "run", "moved", place="c.py:3")]
    outcome = answer(labels, {"c.md": claims})
    assert [(found.label.mark.text, found.claim) for found in outcome.answers] == [
        ("run", claims[1]),
        ("a.py", claims[0]),
    ]
    assert not outcome.stray


@pytest.mark.parametrize(
    ("label", "claim", "said"),
    [
        (("symbol", "true", ""), ("confirmed", ""), "right"),
        (("symbol", "true", ""), ("unverifiable", ""), "right"),
        (("symbol", "true", ""), ("changed", ""), "right"),
        (("symbol", "true", ""), ("gone", ""), "false alarm"),
        (("symbol", "gone", ""), ("moved", "x"), "right"),
        (("symbol", "gone", ""), ("changed", ""), "missed (changed)"),
        (("symbol", "gone", ""), ("unverifiable", ""), "missed (unverifiable)"),
        (("path", "moved", "b.py"), ("moved", "b.py"), "right"),
        (("path", "moved", "b.py"), ("gone", ""), "wrong place (gone)"),
        (("path", "moved", "b.py"), ("moved", "c.py"), "wrong place (moved)"),
        (("place", "moved", "b.py"), ("moved", "b.py:12"), "right"),
        (("line", "moved", "b.py:12"), ("moved", "b.py:12-20"), "right"),
        (("line", "moved", "b.py:12"), ("moved", "b.py:13"), "wrong place (moved)"),
        (("line", "moved", "b.py:12"), ("moved", "b.py"), "wrong place (moved)"),
        (("line", "moved", "b.py:12"), ("changed", "b.py:12"), "missed (changed)"),
        (("directory", "moved", "b/c"), ("moved", "b/c/"), "right"),
    ],
)
def test_verdicts_beside_labels(label: tuple[str, str, str], claim: tuple[str, str], said: str) -> None:
    one = a_label(label[0], "x", label[1], where=label[2])
    assert judge(one, a_claim("symbol", "x", claim[0], place=claim[1])) == said


def test_no_claim_is_a_miss_only_for_what_rotted() -> None:
    assert judge(a_label("symbol", "x", "true"), None) == "right"
    assert judge(a_label("symbol", "x", "gone"), None) == "missed (none)"
    assert judge(a_label("symbol", "x", "moved"), None) == "missed (none)"
    assert same_place(a_label("line", "a:1", "moved", where="a:2"), a_claim("line", "a:1", "moved", place="a#L2"))


def test_measures_by_hand() -> None:
    labels = [
        a_label("symbol", "kept", "true", 1),
        a_label("symbol", "kept_too", "true", 2),
        a_label("symbol", "lost", "gone", 3, mentioned=True),
        a_label("symbol", "lost_too", "gone", 4, mentioned=True),
        a_label("path", "a.py", "moved", 5, where="b.py"),
        a_label("line", "a.py:1", "moved", 6, where="b.py:2"),
        a_label("symbol", "whatever", "skip", 7),
        a_label("look-alike", "We use TCP/IP and Node.js.", "look-alike", 8),
        a_label("history", "dropped", "history", 9),
        a_label("foreign", "my/app.py", "foreign", 11, card="1y-doc-01.md"),
        a_label("symbol", "in_a_document", "true", 1, card="1y-doc-01.md"),
    ]
    claims = [
        a_claim("symbol", "kept", "confirmed", 1),
        a_claim("symbol", "kept_too", "gone", 2),
        a_claim("symbol", "lost", "gone", 3),
        a_claim("path", "a.py", "moved", 5, "b.py"),
        a_claim("line", "a.py:1", "moved", 6, "b.py:3"),
        a_claim("symbol", "whatever", "gone", 7),
        a_claim("path", "TCP/IP", "unverifiable", 8),
        a_claim("symbol", "dropped", "gone", 9),
        a_claim("symbol", "out_of_the_blue", "gone", 10),
    ]
    alarms = [a_claim("symbol", "elsewhere", "gone", 4), a_claim("path", "my/app.py", "gone", 11)]
    report = {"c.md": claims, "1y-doc-01.md": alarms}
    outcome = answer(labels, report)
    result = tally(outcome)
    assert (result.labels, result.found, result.true, result.alarms) == (7, 5, 3, 1)
    assert (result.rot, result.caught, result.mentioned, result.mentioned_caught) == (4, 3, 2, 1)
    assert (result.moved, result.moved_right, result.lines, result.lines_right) == (1, 1, 1, 0)
    assert (result.look_alikes, result.look_alike_claims, result.look_alike_alarms) == (1, 1, 0)
    assert (result.history, result.history_alarms, result.stray, result.unjudged) == (1, 1, 1, 1)
    assert (result.foreign, result.foreign_alarms, result.false_alarms) == (1, 1, 4)
    twice = Tally()
    twice.join(result)
    twice.join(result)
    assert twice.labels == 14
    assert twice.kinds["symbol"].labels == 2 * result.kinds["symbol"].labels == 10
    assert run.cells(result)[:5] == ["7", "0.714", "0.429", "0.750", "0.333"]


def test_a_report_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"truekeep\.error/1"):
        parse_report({"schema": "truekeep.error/1"})


def test_grep_looks_for_whole_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("see src/router.py and --keep-going, not routers\n")
    assert search(tmp_path, ["a.txt"], {"router.py", "--keep-going", "router", "keep", "rout", "going"}) == {
        "router.py",
        "--keep-going",
        "router",
        "keep",
        "going",
    }
    assert word_of(a_label("line", "a/b.py:3", "true")) == "b.py"
    assert word_of(a_label("method", "A.run()", "true")) == "run"


# From Markdown in to verdicts out, with a product that is not ours

PRODUCT = '''
"""Answers from the labels beside the cards: rightly, or that all is well."""
import json, pathlib, sys

command, *files = sys.argv[2:sys.argv.index("--repo")] if "--repo" in sys.argv else sys.argv[2:]
if command == "init":
    raise SystemExit(0)
reports = []
for file in map(pathlib.Path, files):
    rows = map(json.loads, (file.parent / "labels.jsonl").read_text().splitlines())
    claims = [
        {"kind": {"place": "symbol"}.get(row["kind"], row["kind"]), "text": row["text"], "line": row["line"],
         "verdict": {"true": "confirmed"}.get(row["label"], row["label"]) if sys.argv[1] == "right" else "confirmed",
         "place": row["where"], "reason": "told"}
        for row in rows if row["card"] == file.name and row["label"] in ("true", "moved", "gone")
    ]
    reports.append({"path": str(file), "claims": claims})
print(json.dumps({"schema": "truekeep.verify/1", "files": reports, "summary": {}}))
'''


@pytest.mark.slow
@pytest.mark.parametrize(("mood", "recall"), [("right", "1.000"), ("easy", "0.000")])
def test_the_whole_way(
    mood: str,
    recall: str,
    clone: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_REPOS", str(clone.parent))
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "product.py").write_text(PRODUCT)
    command = f"{sys.executable} {tmp_path / 'product.py'} {mood}"
    run.main(["--product", command, "--errors", str(tmp_path / "errors"), "--part", "held-out"])
    rows = [re.split(r"\s{2,}", line.strip()) for line in capsys.readouterr().out.splitlines()]
    verify = next(row for row in rows if row[:2] == ["shop", "verify"])
    assert verify[3:7] == ["1.000", {"right": "1.000", "easy": "-"}[mood], recall, "0.000"]
    assert verify[8:10] == [recall, recall]
    assert next(row for row in rows if row[:2] == ["shop", "grep finds the word"])[5] not in ("1.000", "-")
    assert next(row for row in rows if row[:2] == ["shop", "path exists"])[4] == "1.000"
    errors = [json.loads(line) for line in (tmp_path / "errors").read_text().splitlines()]
    assert bool(errors) == (mood == "easy")
    assert all(
        error["error"] == "missed (confirmed)" and error["label"]["text"] in error["written"] for error in errors
    )


@pytest.mark.slow
def test_a_product_that_fails_is_named(clone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_REPOS", str(clone.parent))
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SystemExit, match="verify ended with 3"):
        run.main(["--product", f"{sys.executable} -c 'raise SystemExit(3)'"])


def test_without_clones_it_says_what_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUEKEEP_BENCH_REPOS", raising=False)
    with pytest.raises(CannotRun, match="TRUEKEEP_BENCH_REPOS names no folder of clones"):
        run.main([])


@pytest.mark.slow
def test_sizes_say_what_was_dropped(
    clone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_REPOS", str(clone.parent))
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path / "cache"))
    run.main(["--sizes"])
    said = capsys.readouterr().out
    assert "look-alike" in said
    assert "dropped, symbol: " in said


def test_a_limit_takes_the_same_cards_every_time() -> None:
    labels = [a_label("symbol", "x", "true", card=f"{number}.md") for number in range(20)]
    one = Set("shop", "held-out", Path(), Path(), labels, Counter())
    assert len(run.limit(one, 5).labels) == 5
    assert run.limit(one, 5) == run.limit(one._replace(labels=labels[::-1]), 5)._replace(
        labels=run.limit(one, 5).labels
    )
    assert run.limit(one, None) == one
