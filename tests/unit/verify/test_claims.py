"""What a Markdown text claims: every kind from every source, with its exact span; and nothing where prose looks so."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from tests.support.helpers import run_cli
from tests.support.phrases import golden_sentences
from truekeep.verify.claim import KINDS, Claim
from truekeep.verify.claims.extract import MAX_CLAIMS, Claims, extract_claims

GOLDEN = golden_sentences("claims")


def shown(claim: Claim) -> str:
    """A claim in one line: `~` is past, `?` is weak; then kind, words, what is looked for, and what is said of it."""
    words = [("~" if claim.is_past else "") + ("?" if claim.is_weak else "") + claim.kind, claim.text]
    if claim.kind == "line":
        words += ["=", claim.place, f"{claim.first}-{claim.last}" if claim.last > claim.first else str(claim.first)]
    elif claim.name != claim.text:
        words += ["=", claim.name]
    if claim.place and claim.kind != "line":
        words += ["defined in" if claim.is_definite else "in", claim.place]
    for word, value in (("of", claim.owner), ("near", claim.near), ("quote", claim.quote)):
        words += [word, value] if value else []
    return " ".join(words)


def told(text: str, *, is_changelog: bool = False) -> list[str]:
    """The claims of a text as lines; each span is checked on the way."""
    found = extract_claims(text, is_changelog=is_changelog)
    assert_sound(text, found)
    return [shown(claim) for claim in found.claims]


def assert_sound(text: str, found: Claims) -> None:
    """What holds for every text: exact spans, in order, inside; known kinds; lines and columns that are right."""
    last = 0
    for claim in found.claims:
        assert text[claim.start : claim.end] == claim.text
        assert 0 <= claim.start < claim.end <= len(text)
        assert claim.start >= last
        last = claim.start
        assert claim.kind in KINDS
        assert claim.name
        assert claim.why
        assert "\n" not in claim.text
        assert claim.line == text.count("\n", 0, claim.start) + 1
        assert claim.column == claim.start - text.rfind("\n", 0, claim.start)
    plain = [claim for claim in found.claims if claim.kind != "decision"]
    for one, other in pairwise(plain):
        assert one.end <= other.start, f"{one.text} and {other.text} overlap"


def kinds_of(text: str) -> list[str]:
    return [claim.kind for claim in extract_claims(text).claims]


def strong(text: str) -> list[str]:
    """What counts wherever it is held against, whether or not a repository knows it."""
    return [claim.text for claim in extract_claims(text).claims if not (claim.is_weak or claim.is_past)]


# --- Each kind, as inline code ----------------------------------------------------------------------------------------

INLINE: dict[str, list[str]] = {
    # paths and folders
    "See `src/app/main.py` for it.": ["path src/app/main.py"],
    "See ``src/app/main.py`` for it.": ["path src/app/main.py"],
    "`.github/workflows/ci.yml` and `.env`": ["path .github/workflows/ci.yml", "?path .env"],
    "`pyproject.toml`, `Makefile`": ["?path pyproject.toml", "?path Makefile"],
    "The folder `src/app/` and `src/app`": ["directory src/app/ = src/app", "path src/app"],
    "`./src/a.py` `/src/a.py` `~/notes.md`": ["path ./src/a.py = src/a.py", "?path /src/a.py", "path ~/notes.md"],
    "`/etc/hosts` `../up.py`": ["path /etc/hosts", "path ../up.py"],
    "`src\\app\\main.py`": ["path src\\app\\main.py = src/app/main.py"],
    '`"src/a.py"`, `src/b.py,` and `src/c.py:`': ["path src/a.py", "path src/b.py", "path src/c.py"],
    # lines
    "It is at `src/app/main.py:42`.": ["line src/app/main.py:42 = src/app/main.py 42"],
    "`src/app/main.py:42-50`": ["line src/app/main.py:42-50 = src/app/main.py 42-50"],
    "`src/app/main.py:42–50`": ["line src/app/main.py:42–50 = src/app/main.py 42-50"],
    "`src/a.py:12..20`": ["line src/a.py:12..20 = src/a.py 12-20"],
    "`src/a.py:42:7`": ["line src/a.py:42:7 = src/a.py 42"],
    "`src/a.py#L10-L20`": ["line src/a.py#L10-L20 = src/a.py 10-20"],
    "`./src/a.py#L10`": ["line ./src/a.py#L10 = src/a.py 10"],
    "`dist/embedded-CQnl8oWA.js:382`": ["bundle dist/embedded-CQnl8oWA.js:382 = dist/embedded-CQnl8oWA.js"],
    # symbols and methods
    "Call `load_config()` first.": ["symbol load_config"],
    "`loadConfig` and `_private`": ["symbol loadConfig", "?symbol _private"],
    "Use `load(path, strict=True)`.": ["symbol load"],
    "`Config.load` `Config::load` `User#save` `obj->field`": [
        "method Config.load = load of Config",
        "method Config::load = load of Config",
        "method User#save = save of User",
        "method obj->field = field of obj",
    ],
    "`config.Loader.load()`": ["method config.Loader.load = load of config.Loader"],
    "`crate::util::read` and `this.state.user`": [
        "method crate::util::read = read of util",
        "method this.state.user = user of state",
    ],
    "`def load(x)`, `class Foo(Bar):`, `func (s *Server) Run()`": ["symbol load", "symbol Foo", "symbol Run"],
    "`pub fn go()`, `const LIMIT = 5`, `export async function fetchAll`": [
        "symbol go",
        "symbol LIMIT",
        "symbol fetchAll",
    ],
    "`useState<T>()`, `Vec<u8>`, `*Server`, `@property`": [
        "symbol useState",
        "?symbol Vec",
        "?symbol Server",
        "symbol property",
    ],
    "`src/config.py::load_config`": ["path src/config.py", "symbol load_config in src/config.py"],
    "`tests/test_a.py::TestA::test_b`": [
        "path tests/test_a.py",
        "method TestA::test_b = test_b in tests/test_a.py of TestA",
    ],
    "`from app.config import load_config, save`": ["?method load_config of app.config", "?method save of app.config"],
    "`import app.config`": ["?symbol app.config = config of app.config"],
    # flags, settings, constants
    "Pass `--dry-run` or `--max-size=10`; `-v` and `--` are nothing.": ["flag --dry-run", "flag --max-size"],
    "`DATABASE_URL`, `${API_KEY}`, `$PATH`": ["env DATABASE_URL", "env API_KEY", "env PATH"],
    "`APP_TOKEN=abc` and `PORT=3000`": ["env APP_TOKEN", "?env PORT"],
    "`export APP_MODE=dev`": ["env APP_MODE"],
    # commits, versions, packages, scripts
    "It came with `3f2b1c9e`.": ["commit 3f2b1c9e"],
    "`3f2b1c9e8a1b2c3d4e5f60718293a4b5c6d7e8f9`": ["commit 3f2b1c9e8a1b2c3d4e5f60718293a4b5c6d7e8f9"],
    # hexadecimal ids that are no commits
    "The people schema is `3b7702e71da3dd791d9e17b76c88730e`.": [],
    "Cron job `df22eb11` posts the daily digest.": ["?id df22eb11 of job"],
    "Cron jobs: `df22eb11`, `0a1b2c3d` and `9f8e7d6c`.": ["?id df22eb11 of job"],
    "The cron job `daily-digest` posts it.": ["?cron daily-digest"],
    "Run as `0 3 * * 1 /opt/backup.sh`.": ["cron 0 3 * * 1 of /opt/backup.sh"],
    "The container `4f5e6d7c8b9a` runs n8n.": ["container 4f5e6d7c8b9a"],
    "The `4f5e6d7c8b9a` container runs n8n.": ["container 4f5e6d7c8b9a"],
    "Session ID: 4f5e6d7c8b9a of that commit.": [],
    "| workflow | `4f5e6d7c8b9a` |": [],
    "The request id is `4f5e6d7c8b9a`, the trace `0a1b2c3d4e5f`.": [],
    "Its sha1 checksum is 3f2b1c9e8a1b2c3d4e5f60718293a4b5c6d7e8f9.": [],
    "The cron job was mended in `3f2b1c9e`.": ["commit 3f2b1c9e"],
    "The session commit `3f2b1c9e` did it.": ["commit 3f2b1c9e"],
    "The image was built from commit hash `3f2b1c9e`.": ["commit 3f2b1c9e"],
    "CI uses actions/checkout@8f4b7f84864484a7bf31766abe9204da3cbe65b3 now.": [],
    "See revision 20240101 of the page.": [],
    "`1234567` and `deadbeef` are a number and a word": ["?symbol deadbeef"],
    "`django==4.2.1` `react@18.2.0` `@types/node@18.1.0` `flask==3.0.0rc1`": [
        "version django==4.2.1 = ==4.2.1 of django",
        "version react@18.2.0 = 18.2.0 of react",
        "version @types/node@18.1.0 = 18.1.0 of @types/node",
        "version flask==3.0.0rc1 = ==3.0.0rc1 of flask",
    ],
    "`v1.2.3` and `3.11` name nothing": [],
    "`@scope/pkg` and `left-pad`": ["?package @scope/pkg", "?package left-pad"],
    "Run `make lint`, then `just deploy`.": ["script lint of make", "script deploy of just"],
    "`npm run test:unit`, `npm test`, `pnpm build`": [
        "script test:unit of npm",
        "script test of npm",
        "script build of pnpm",
    ],
    "`npm install lodash` and `yarn add lodash` run no script": [],
    # the machine
    "`localhost:3000`, `0.0.0.0:9000`, `:8080`": ["port 3000", "port 9000", "port 8080"],
    "`nginx.service` and `my-app.timer`": ["unit nginx.service", "unit my-app.timer"],
    "`docker restart web`": ["container web"],
    "`dist/embedded-CQnl8oWA.js` and `assets/vendor.3f9a21bc.js`": [
        "bundle dist/embedded-CQnl8oWA.js",
        "bundle assets/vendor.3f9a21bc.js",
    ],
    "`http://127.0.0.1:8000/x`": ["port 8000"],
    # commands: their paths, flags and scripts; what they would do is nobody's business
    "`./run.sh --fast`": ["path ./run.sh = run.sh", "flag --fast of ./run.sh"],
    "`APP_MODE=dev ./run.sh`": ["?env APP_MODE", "path ./run.sh = run.sh"],
    "`python src/main.py --fast`": ["path src/main.py", "flag --fast of src/main.py"],
    "`pytest tests/test_a.py --maxfail=1`": ["path tests/test_a.py", "?flag --maxfail of pytest"],
    "`Order#valid?`": ["method Order#valid? = valid? of Order"],
    "`save!`": ["?symbol save!"],
    "`println!()`": ["symbol println!"],
    "`rm -rf src/gen/`, `cd src/app`": ["directory src/gen/ = src/gen", "directory src/app"],
    "`mytool --fast`": ["?flag --fast of mytool"],
    "`git checkout main`": [],
}


@pytest.mark.parametrize("text", INLINE)
def test_inline_code(text: str) -> None:
    assert told(text) == INLINE[text]


# --- Other sources ----------------------------------------------------------------------------------------------------

PROSE: dict[str, list[str]] = {
    "The file src/app/main.py does it, and src/app/other.py:12-14 too.": [
        "path src/app/main.py",
        "line src/app/other.py:12-14 = src/app/other.py 12-14",
    ],
    "It needs Python 3.11 or newer, and Redis 7.2.": ["?version 3.11 = >=3.11 of Python", "?version 7.2 of Redis"],
    "Works with Django 4.2 to 5.0 and Node 18.1, 20.2.": [],
    "Open http://localhost:8080/admin or https://example.com/x.": ["port 8080", "url https://example.com/x"],
    "See docs/guide/ and src/main.": ["directory docs/guide/ = docs/guide", "?path src/main"],
    "setup.py has it; so has config.toml.": ["?path setup.py", "?path config.toml"],
    "Call load_config() or Config.load() now.": ["?symbol load_config", "?method Config.load = load of Config"],
    "The load_config function reads MAX_SIZE.": ["?symbol load_config", "?env MAX_SIZE"],
    "Use --dry-run here.": ["?flag --dry-run"],
    "See https://example.com/a/b.": ["url https://example.com/a/b"],
    "Fixed in 3f2b1c9, see commit 4a5b6c7d8e.": ["commit 3f2b1c9", "commit 4a5b6c7d8e"],
    "It came in commit `deadbeef`.": ["commit deadbeef"],
    "The commit defaced the page.": [],
    "It reverts 3f2b1c9e8a1b2c3d4e5f60718293a4b5c6d7e8f9.": ["commit 3f2b1c9e8a1b2c3d4e5f60718293a4b5c6d7e8f9"],
    "Django 4.2 runs on Python 3.11 and postgres version 15.2 here": [
        "?version 4.2 of Django",
        "?version 3.11 of Python",
        "?version 15.2 of postgres",
    ],
    "Staging answers on port 8443 only.": ["port 8443"],
    "Ports 8080 and 8081 are taken; it listens on 5204 now": ["port 8080", "port 8081", "port 5204"],
    "The database is at localhost:5432 today": ["port 5432"],
    "The sshd.service unit": ["?unit sshd.service"],
    "The container `redis-main` and the `web` container; docker logs -f api-1": [
        "container redis-main",
        "container web",
        "container api-1",
    ],
    "The `requests` package, and it depends on `lodash`": ["?package requests", "?package lodash"],
    "package.json lists `express`": ["?path package.json", "?package express"],
    "The make target `release` and the `fmt` make target": ["script release of make", "script fmt of make"],
}


@pytest.mark.parametrize("text", PROSE)
def test_prose(text: str) -> None:
    assert told(text) == PROSE[text]


@pytest.mark.parametrize(
    "text", ["Staging answers on port 8443.", "It listens on 8443.", "Ports 80 and 443.", "Is it port 8443?"]
)
def test_a_port_may_end_a_sentence(text: str) -> None:
    assert set(kinds_of(text)) == {"port"}
    assert text[-2] == told(text)[-1][-1]


def test_a_method_in_prose() -> None:
    assert told("Config.load is called by App.run_all at the start.") == [
        "?method Config.load = load of Config",
        "?method App.run_all = run_all of App",
    ]


@pytest.mark.parametrize("text", ["`Mutex.lock`", "`Config.env`", "`logger.log`", "`items.map`"])
def test_methods_that_look_like_files(text: str) -> None:
    assert kinds_of(text) == ["method"]


def test_links_and_references() -> None:
    text = (
        '[a](docs/a.md) [b](docs/b.md "title") [c](docs/c.md#install) ![d](assets/d.png)\n'
        "[e](#anchor) [f](mailto:me@example.org) [g](https://x.org/a(b)) [h](src/a.py#L3) [i](src/a.py#L3-L9)\n"
        "\n[j]: docs/j.md\n"
    )
    assert told(text) == [
        "?path docs/a.md",
        "?path docs/b.md",
        "?path docs/c.md",
        "?path assets/d.png",
        "url https://x.org/a(b)",
        "line src/a.py#L3 = src/a.py 3",
        "line src/a.py#L3-L9 = src/a.py 3-9",
        "?path docs/j.md",
    ]


def test_a_link_with_blanks_is_one_path_or_none() -> None:
    assert told("[a](<docs/a b.md>)") in ([], ["?path docs/a b.md"])


def test_tables_and_lists_and_quotes() -> None:
    text = """\
| What | Where |
|------|-------|
| `load_config` | `src/config.py` |
| entry | src/main.py:12 |

- `Server`: `src/server.go`
* src/main.py does it
1. See `Config.load`

> `src/quoted.py` is quoted
"""
    assert told(text) == [
        "symbol load_config in src/config.py",
        "path src/config.py",
        "line src/main.py:12 = src/main.py 12",
        "?symbol Server in src/server.go",
        "path src/server.go",
        "path src/main.py",
        "method Config.load = load of Config",
        "path src/quoted.py",
    ]


def test_fences() -> None:
    text = """\
```sh
$ make lint
python src/main.py --fast && ./tools/go.sh | tee out.txt
# see src/comment.py
```

```python
from app.config import load_config
from .near import nothing
x = load_config("src/string.py")
```

```json
{"path": "src/data.json"}
```

~~~
./tools/plain.sh
some words of output
~~~
"""
    assert told(text) == [
        "script lint of make",
        "path src/main.py",
        "flag --fast of src/main.py",
        "path ./tools/go.sh = tools/go.sh",
        "?path out.txt",
        "?method load_config of app.config",
        "?path ./tools/plain.sh = tools/plain.sh",
    ]


def test_what_looks_like_markdown_inside_a_fence_is_code() -> None:
    text = "````md\n```\n`src/inner.py` and we decided it.\n## Removed\n````\n`src/outer.py`\n"
    assert told(text) == ["path src/outer.py"]


def test_a_fence_that_never_ends() -> None:
    assert told("`src/a.py`\n```json\n`src/b.py`\n") == ["path src/a.py"]


def test_frontmatter_claims_nothing() -> None:
    text = "---\ntopic: src/a.py on port 8443 here\nupdated: 2026-01-01\n---\n\n`src/b.py`\n"
    assert told(text) == ["path src/b.py"]
    (claim,) = extract_claims(text).claims
    assert (claim.line, claim.column) == (6, 2)


def test_windows_line_ends_change_nothing() -> None:
    """A fence and frontmatter end in such a text, too."""
    text = "---\ntopic: src/a.py\n---\n```json\n`src/b.py`\n```\n\nThen `src/c.py`.\n"
    text += "\n~~~\n./tools/plain.sh\n~~~\nAnd `src/d.py`.\n"
    assert told(text.replace("\n", "\r\n")) == told(text)
    assert told(text) == ["path src/c.py", "?path ./tools/plain.sh = tools/plain.sh", "path src/d.py"]


def test_headings_claim_too() -> None:
    assert told("## How `src/a.py` works\n") == ["path src/a.py"]


# --- What is said of a claim ------------------------------------------------------------------------------------------

PLACED: dict[str, list[str]] = {
    "`load_config` is defined in `src/config.py`.": [
        "symbol load_config defined in src/config.py",
        "path src/config.py",
    ],
    "`load_config` in `src/config.py` reads it.": ["symbol load_config in src/config.py", "path src/config.py"],
    "`load_config` (`src/config.py`)": ["symbol load_config in src/config.py", "path src/config.py"],
    "`load_config`: src/config.py": ["symbol load_config in src/config.py", "path src/config.py"],
    "`src/config.py` defines `load_config`.": ["path src/config.py", "symbol load_config defined in src/config.py"],
    "The class `AppConfig` lives in `src/config.py`.": [
        "symbol AppConfig defined in src/config.py",
        "path src/config.py",
    ],
    "`MAX_RETRIES` in `src/retry.py` is 5": ["env MAX_RETRIES in src/retry.py", "path src/retry.py"],
    "`load_config` reads a lot. `src/config.py` is another story.": ["symbol load_config", "path src/config.py"],
    "`load_config` is what everyone calls sooner or later and nobody likes much, and then `src/config.py`": [
        "symbol load_config",
        "path src/config.py",
    ],
    "line 120 of `src/a.py`": ["line 120 = src/a.py 120", "path src/a.py"],
    "`src/a.py`, lines 3 to 9": ["path src/a.py", "line 3 to 9 = src/a.py 3-9"],
    "`src/a.py` at L12": ["path src/a.py", "line 12 = src/a.py 12"],
    "`load_all` at `src/a.py:12`": ["symbol load_all in src/a.py", "line src/a.py:12 = src/a.py 12 near load_all"],
    "`Config.load` is at src/a.py:12": [
        "method Config.load = load in src/a.py of Config",
        "line src/a.py:12 = src/a.py 12 near Config.load",
    ],
    "`a_one` in `a.py`, `b_one` in `b.py`.": [
        "symbol a_one in a.py",
        "?path a.py",
        "symbol b_one in b.py",
        "?path b.py",
    ],
    "Whoever changes `a_one` has to know `src/a.py`.": ["symbol a_one in src/a.py", "path src/a.py"],
    "`a_one` calls what `src/a.py` has.": ["symbol a_one", "path src/a.py"],
    "Read src/a.py#L4-L9 (`a_one`).": ["line src/a.py#L4-L9 = src/a.py 4-9 near a_one", "symbol a_one in src/a.py"],
    "`retry_all()` at line 40 of `src/retry.py`": [
        "symbol retry_all in src/retry.py",
        "line 40 = src/retry.py 40 near retry_all",
        "path src/retry.py",
    ],
    "`src/a.py:12` (`return value + 1`)": ["line src/a.py:12 = src/a.py 12 quote return value + 1"],
    "`load_all` is fine. See `src/a.py:12`": ["symbol load_all", "line src/a.py:12 = src/a.py 12"],
}


@pytest.mark.parametrize("text", PLACED)
def test_places_owners_and_neighbours(text: str) -> None:
    assert told(text) == PLACED[text]


@pytest.mark.parametrize("text", ["Line 40 of `src/retry.py` is wrong.", "Lines 3 to 9 of `src/retry.py` are wrong."])
def test_a_line_number_may_begin_a_sentence(text: str) -> None:
    assert kinds_of(text) == ["line", "path"]


def test_the_more_telling_kind_wins_a_stretch_of_text() -> None:
    assert kinds_of("port `8443` and package `@scope/pkg`, container `web-1`") == ["port", "package", "container"]
    assert kinds_of("See https://example.com/src/app/main.py:12 there") == ["url"]


def test_every_kind_can_be_found() -> None:
    found = {kind for text in (*INLINE, *PROSE, *PLACED, "We decided it.") for kind in kinds_of(text)}
    found |= {claim.kind for claim in extract_claims("See [it](#setup).", are_documents=True).claims}
    assert found == set(KINDS)


# --- Decisions --------------------------------------------------------------------------------------------------------


def test_decisions_are_sentences_and_hold_other_claims() -> None:
    text = "Long ago. We chose `httpx` over `requests`. The team agreed on it. It works.\n"
    assert told(text) == [
        "decision We chose `httpx` over `requests`.",
        "?symbol httpx",
        "?symbol requests",
        "decision The team agreed on it.",
    ]


def test_golden_sentences_about_decisions() -> None:
    assert [text for text in GOLDEN["decision"]["sentences"] if told(text) != [f"decision {text}"]] == []


def test_under_a_heading_about_decisions_every_item_is_one() -> None:
    text = "# Decisions\n\nA word before.\n\n- Use tabs.\n2. No globals.\n\n## Other\n\n- Not one.\n"
    assert told(text) == ["decision Use tabs.", "decision No globals."]


# --- Past, future, changelogs -----------------------------------------------------------------------------------------


def test_golden_sentences_about_the_past() -> None:
    wrong = []
    for case in GOLDEN["sentence"]:
        found = [claim for claim in extract_claims(case["text"]).claims if claim.kind != "decision"]
        present, past = ([claim.text for claim in found if claim.is_past is is_past] for is_past in (False, True))
        if (present, past) != (case["present"], case["past"]):
            wrong.append((case, present, past))
    wrong += [text for text in GOLDEN["gone"]["sentences"] if "src/old.py" in strong(text)]
    assert wrong == []


@pytest.mark.parametrize(("answer", "may_be_past"), [("gone", True), ("present", False)])
def test_golden_sentences_that_may_be_about_the_past(answer: str, may_be_past: bool) -> None:
    sentences = GOLDEN["maybe"][answer]
    assert [text for text in sentences if extract_claims(text).claims[0].may_be_past is not may_be_past] == []


def test_golden_sentences_about_plans_make_weak_claims() -> None:
    assert [text for text in GOLDEN["planned"]["sentences"] if told(text) != ["?path src/new.py"]] == []


def test_a_changelog_tells_of_the_past() -> None:
    text = (
        "# Changelog\n\n- `src/a.py` works\n\n## 1.2.0\n\n`src/b.py`\n\n```sh\nmake old\n```\n\n# Usage\n\n`src/c.py`\n"
    )
    assert told(text) == ["~path src/a.py", "~path src/b.py", "path src/c.py"]


@pytest.mark.parametrize(
    "heading", ["## 1.2.0", "## [v2.0] - 2026-01-01", "## Release notes", "## Removed in 3", "### History"]
)
def test_a_section_about_the_past_ends_with_its_heading(heading: str) -> None:
    level = heading.split()[0]
    text = f"{heading}\n\n`src/a.py`\n\n{level}# Deeper\n\n`src/b.py`\n\n{level} Usage\n\n`src/c.py`\n"
    assert told(text) == ["~path src/a.py", "~path src/b.py", "path src/c.py"]


def test_a_whole_file_can_be_a_changelog() -> None:
    text = "`src/a.py` is new. We decided it.\n\n```sh\nmake lint\n```\n"
    assert told(text, is_changelog=True) == ["~path src/a.py", "decision We decided it."]


# --- What only looks so -----------------------------------------------------------------------------------------------

LOOK_ALIKES = """\
Read and write, input and output, TCP/IP, 24/7, he/she, yes/no, I/O bound, A/B tests, CI/CD.

The e.g. and i.e. of it, etc. And so on... Really? Version 2.0 is out; 3.5 stars; 1.2 GB; 10.5%; $4.50; 12:30.

Meet at 10:30 on 2026-11-15 in room 4. Node.js, Vue.js and Next.js are frameworks. ASP.NET, too.

Well-known state-of-the-art semi-structured words. Ada Lovelace (1815-1852) wrote it for application/json and text/html.

Email me@example.com or visit example.com -- always -- and never ---. A C++ and a C# and an F# project.

It costs 8080 dollars; the build took 3000 ms on 16 cores; deadbeef is a joke, as are decade, facade and defaced.

The commit message was bad. She committed to 1234567 things. See issue #123 and PR 45 on page 12, section 2.4.

"Quoted words" and 'more words' (in parentheses), 2.x and 3.x; v2; r2d2; mid-2024/early-2025; #channel and @user.

The port authority, a port of call, airport 12. The container is big. The package arrived. Line 12 is long.

| a | b |
|---|---|
| 1 | 2 |

`true` `null` `GET` `foo` `200` `404` `3.5` `x` `a b c` `hello world` `SELECT * FROM users` `{"a": 1}` `x = y + z`
`src/**/*.py` `src/{a,b}.py` `foo/$x.py` `path/to/<name>` `...` `!` `git push` `cd ..` `--` `-v`
"""


def test_prose_that_looks_like_claims_makes_none() -> None:
    assert told(LOOK_ALIKES) == []


@pytest.mark.parametrize("text", ["`*.py`", "`<name>.py`", "`{a,b}.py`", "`utf-8`"])
def test_patterns_and_placeholders_are_no_paths(text: str) -> None:
    assert told(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "A client/server design with and/or/maybe.",
        "`iterator` `next` `User` `origin/main` `foo/bar` `github.com/owner/name`",
        "snake_case is a style, `kebab-case` too; TLS 1.3, IPv4 10.0.0.1.",
    ],
)
def test_what_may_be_anything_is_at_most_weak(text: str) -> None:
    assert strong(text) == []


# --- Limits -----------------------------------------------------------------------------------------------------------


def test_claims_beyond_the_limit_are_counted() -> None:
    text = "`src/a.py` `src/b.py`\n`src/c.py`\n"
    found = extract_claims(text, limit=2)
    assert [claim.name for claim in found.claims] == ["src/a.py", "src/b.py"]
    assert found.left_out == 1
    assert extract_claims(text, limit=0) == Claims((), 3)


@pytest.mark.slow
def test_twenty_thousand_claims_in_one_card() -> None:
    text = "".join(f"- `src/file_{number}.py`\n" for number in range(20_000))
    found = extract_claims(text)
    assert len(found.claims) == MAX_CLAIMS
    assert found.left_out == 20_000 - MAX_CLAIMS
    assert_sound(text, Claims(found.claims[:5] + found.claims[-5:]))


def test_a_very_long_line_is_read_as_far_as_its_limit() -> None:
    text = "`src/a.py` " + "x" * 30_000 + " `src/b.py`\n`src/c.py`\n"
    assert told(text) == ["path src/a.py", "path src/c.py"]


def test_a_very_long_span_of_code_is_nothing() -> None:
    assert told("`" + "a/" * 200 + "b.py`") == []


@pytest.mark.parametrize(
    "text", ["", "\n", "`", "``", "` `", "```", "[](", "|", "---\n", "---\nno end", "\x00", "\ud800"]
)
def test_next_to_nothing(text: str) -> None:
    assert told(text) == []


def test_numbers_too_large_for_a_line_or_a_port() -> None:
    assert kinds_of("`src/a.py:12345678` port 99999 port 0080 localhost:70000") == []


# --- Properties -------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(
            "`",
            "``",
            "```",
            "~~~",
            "\n",
            "\n\n",
            " ",
            "|",
            "# ",
            "## ",
            "- ",
            "1. ",
            "> ",
            "[a](",
            ")",
            "[a]: ",
            "---\n",
        ),
        *(
            "src/a.py",
            "src/a.py:12",
            "a.py:3-9",
            "./x/",
            "lib/",
            "Foo.bar",
            "foo_bar()",
            "A::b",
            "a->b",
            "--flag",
            "$X_Y",
        ),
        *("MAX_SIZE", "3f2b1c9e", "port 8443", "django==4.2", "make lint", "npm run x", "x.service", "docker logs w"),
        *("dist/a-CQnl8oWA.js", "https://x.org/a", "We decided it. ", "line 12 of ", "container `w`", "package `p`"),
        *("was removed", "formerly ", "→", "instead of ", "will add ", "Changelog", "1.2.0", "Decisions", "e.g. "),
        *(
            "\t",
            "\r\n",
            "\r",
            "\x00",
            "\x85",
            "\u2028",
            "é",
            "日本",
            "🙂",
            "\ufeff",
            "\u202e",
            "(",
            "<",
            ">",
            "*",
            "_",
            "\\",
        ),
    ]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=30).map("".join))


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(TEXTS)
@example("`a.py:1`\r\n`b.py`")
@example("\u2028`src/a.py`\x85port 8443 x")
def test_any_text_gives_sound_claims(text: str) -> None:
    assert_sound(text, extract_claims(text))
    assert_sound(text, extract_claims(text, is_changelog=True))


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(0, 5))
def test_a_limit_cuts_and_changes_nothing_else(text: str, limit: int) -> None:
    every = extract_claims(text)
    some = extract_claims(text, limit=limit)
    assert some.claims == every.claims[:limit]
    assert some.left_out == max(0, len(every.claims) - limit)


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(1, 4))
def test_claims_move_with_their_text(text: str, blank: int) -> None:
    """Lines above shift the spans and change nothing else."""
    if text.startswith("---\n"):
        return  # frontmatter is one only at the very start
    moved = extract_claims("\n" * blank + text).claims
    wanted = [
        claim._replace(start=claim.start + blank, end=claim.end + blank, line=claim.line + blank)
        for claim in extract_claims(text).claims
    ]
    assert list(moved) == wanted


@settings(max_examples=80, deadline=None)
@given(TEXTS, TEXTS)
def test_what_comes_below_changes_nothing_above(above: str, below: str) -> None:
    assume(not above.startswith("---"))  # what is below may close a frontmatter
    claims = extract_claims(above).claims
    assert extract_claims(f"{above}\n{below}").claims[: len(claims)] == claims


HOSTILE = {
    "backticks": "`",
    "odd backticks": "` `` ``` ",
    "slashes": "a/",
    "dots": "../a.",
    "dashes": "--a",
    "underscores": "a_A_",
    "brackets": "](a[",
    "parentheses": "foo((",
    "colons": "a::b->",
    "ends": ". A! B? ",
    "past": "formerly the old not the no `a` was ",
    "decisions": "We decided it. ",
    "numbers": "x 1.2.3.4 5.6 ",
    "generics": "`a<b<c<d>` ",
    "blanks": " \t",
}


@pytest.mark.parametrize("unit", list(HOSTILE.values()), ids=list(HOSTILE))
def test_hostile_lines_take_about_linear_work(unit: str) -> None:
    assert_about_linear(lambda size: extract_claims(unit * (size // len(unit))), 1_500, huge=100_000)


def test_a_line_of_hashes_takes_about_linear_work() -> None:
    assert_about_linear(lambda size: extract_claims("3f2b1c9 " * (size // 8)), 1_600, huge=100_000)


CROWDED = {
    "lines": ("`a.py:1` ", 12),
    "lines and names": ("`a.py:1` `foo_bar` ", 12),
    "line numbers": ("line 12 a.py ", 30),
    "names in files": ("`foo_bar()` in `a.py` ", 30),
    "arrows": ("`a.py` -> ", 40),
    "ports": ("port 80, 81 ", 40),
    "commits": ("commit 3f2b1c9 ", 40),
    "scripts": ("`make lint` ", 60),
    "decisions": ("We decided it. ", 60),
}


@pytest.mark.parametrize(
    ("unit", "count"),
    [pytest.param(*given, id=name) for name, given in CROWDED.items()],
)
def test_a_line_crowded_with_claims_takes_about_linear_work(unit: str, count: int) -> None:
    assert_about_linear(lambda count: extract_claims(unit * count), count, times=5)


@pytest.mark.slow
def test_many_lines_take_about_linear_work() -> None:
    line = (
        "- `load_config` in `src/config.py:12`, formerly `src/old.py`; port 8443 here, commit 3f2b1c9. We decided it.\n"
    )
    assert_about_linear(lambda size: extract_claims(line * size), 100)


# --- The command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_shows_claims_and_why(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_text("`load_all` in `src/a.py`, not origin/main but `iterator`; `src/b.py` was removed.\n")
    done = run_cli("verify", "--list-claims", str(file))
    assert done.returncode == 0, done.stderr
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:3]] == [
        ["1", "symbol", "load_all"],
        ["1", "path", "src/a.py"],
    ]
    assert "2 claims; 2 more count only if the repository knows them, or speak of the past (--all)" in done.stdout
    data = json.loads(run_cli("verify", "--list-claims", "-", "--all", "--json", stdin=file.read_text()).stdout)
    assert [(row["text"], row["is_weak"], row["is_past"]) for row in data["claims"]] == [
        ("load_all", False, False),
        ("src/a.py", False, False),
        ("iterator", True, False),
        ("src/b.py", False, True),
    ]
    assert [file.read_text()[row["start"] : row["end"]] for row in data["claims"]] == [
        row["text"] for row in data["claims"]
    ]


def test_the_command_knows_a_changelog_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "CHANGELOG.md"
    file.write_text("`src/a.py` is new.\n")
    assert "0 claims; 1 more" in run_cli("verify", "--list-claims", str(file)).stdout


def test_the_command_says_what_it_cannot_read(tmp_path: Path) -> None:
    done = run_cli("verify", "--list-claims", str(tmp_path / "none.md"))
    assert done.returncode != 0
    assert "No such file" in done.stderr
    assert "Traceback" not in done.stderr
