"""Recall as it is asked: questions of every kind, fresh answers, filters, both rankings, reading what was cited."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import NOW, Place, a_card, a_handoff, git_repo, run_cli, tree, wait_until
from tests.support.memories import (
    WORDS_ONLY,
    claude_session,
    index_file,
    paths,
    reindex,
    remember,
    search,
    some_memories,
    times,
)
from truekeep.core.errors import BadInput, NotFound
from truekeep.interfaces.cli.search import render_result
from truekeep.search.excerpt import CHARACTERS, LINES, NotMemory
from truekeep.search.service import SearchResult
from truekeep.workspace.search import DEFAULT_ROOM

EITHER = pytest.mark.parametrize("config", ["", WORDS_ONLY], ids=["hybrid", "words"])


pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def memory(place: Place) -> Place:
    some_memories(place)
    return place


def first(answer: SearchResult) -> str:
    assert answer.hits, answer.notes
    return answer.hits[0].path


# --- Fresh ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@EITHER
def test_a_memory_is_found_without_indexing_first(place: Place, config: str) -> None:
    place.configure(config)
    some_memories(place)
    answer = search(place, "which port does staging answer on")
    assert first(answer) == "memory/cards/staging-proxy.md"
    assert answer.mode == ("words" if config else "hybrid")
    assert answer.waiting == 0
    assert answer.ranking == "truekeep"


def test_a_hit_says_where_it_stands_and_how_old_it_is(memory: Place) -> None:
    hit = search(memory, "ERR_QUOTA_4711").hits[0]
    assert hit.path == "memory/2026-11-12.md"
    assert hit.store == "logs"
    assert hit.day == "2026-11-12"
    assert hit.age_days == 3
    assert "ERR_QUOTA_4711" in hit.text
    assert hit.citation == f"memory/2026-11-12.md#L{hit.first}-L{hit.last}"
    lines = (memory.workspace / hit.path).read_text().split("\n")
    assert hit.text == "\n".join(lines[hit.first - 1 : hit.last])
    assert 0 <= hit.score <= 1
    assert hit.parts
    assert "quota" in hit.matched


def test_an_edit_is_seen_at_once(memory: Place) -> None:
    assert "8443" in search(memory, "port of staging").hits[0].text
    file = memory.workspace / "memory/cards/staging-proxy.md"
    file.write_text(file.read_text().replace("8443", "9555"))
    answer = search(memory, "port of staging")
    assert "9555" in answer.hits[0].text
    assert not any("8443" in hit.text for hit in answer.hits)


def test_an_edit_is_seen_at_once_by_whoever_has_the_index_open(memory: Place) -> None:
    with memory.open() as workspace:
        workspace.search.find("staging")
        remember(memory, "memory/cards/kangaroo.md", a_card("Kangaroo", "The kangaroo lives in the annex."))
        assert first(workspace.search.find("where does the kangaroo live")) == "memory/cards/kangaroo.md"
        (memory.workspace / "memory/cards/kangaroo.md").unlink()
        assert "memory/cards/kangaroo.md" not in paths(workspace.search.find("where does the kangaroo live"))
        os.rename(memory.workspace / "memory/2026-11-12.md", memory.workspace / "memory/2026-11-13.md")
        assert first(workspace.search.find("ERR_QUOTA_4711")) == "memory/2026-11-13.md"


@pytest.mark.parametrize(
    "between", ["\n" * 300, " " * 300, "#" * 300 + "\n", "\n \t" * 100], ids=["lines", "blanks", "signs", "all"]
)
def test_blanks_below_a_heading_are_read_once(place: Place, between: str) -> None:
    """A search did not end when a chunk began with a heading and went on with many blanks or signs."""
    place.configure(WORDS_ONLY)
    remember(place, "memory/tables.md", f"# Tables\n{between}benchmark columns are aligned\n")
    assert first(search(place, "benchmark columns")) == "memory/tables.md"


def test_what_ingest_filed_is_found(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    assert "memory/cards/staging-proxy.md" in paths(search(place, "which port does staging answer on"))


def test_the_files_are_never_touched(memory: Place) -> None:
    before, then = tree(memory.workspace), times(memory.workspace)
    search(memory, "staging port")
    reindex(memory)
    reindex(memory, rebuild=True)
    search(memory, "certificate", ranking="openclaw", mmr=0.5, half_life=30)
    with memory.open() as workspace:
        workspace.search.get("memory/cards/staging-proxy.md")
        workspace.search.status()
    assert tree(memory.workspace) == before
    assert times(memory.workspace) == then


def test_status_tells_how_the_index_stands(memory: Place) -> None:
    reindex(memory)
    remember(memory, "memory/cards/new.md", a_card("New", "Not in yet."))
    with memory.open() as workspace:
        status = workspace.search.status()
    assert status.files["cards"] == 3  # two cards and MEMORY.md
    assert status.files["logs"] == 2
    assert status.waiting >= 1
    assert status.unembedded == 0
    assert status.provider == "static"
    assert status.indexed_at == "2026-11-15T12:00:00Z"
    assert status.size == index_file(memory).stat().st_size
    assert not status.problem


# --- Identifiers ----------------------------------------------------------------------------------------------------

IDENTIFIERS = (
    "zq0033x",
    "ERR_BOILER_4711",
    "a1b2c3d4e5f6",
    "parseHTTPHeader",
    "--no-verify-boiler",
    "10.20.30.40:8443",
    "PROJ-1234",
    "/etc/boiler/conf.d/app.conf",
    "v2.13.7-rc.1",
    "boiler::Pump::prime()",
    "deploy@bastion.example.org",
    "$BOILER_HOME_DIR",
    "0x7ffd12ab",
    "550e8400-e29b-41d4-a716-446655440000",
)


@pytest.fixture(scope="module", params=["", WORDS_ONLY], ids=["hybrid", "words"])
def old_and_new(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Three hundred notes of this year about the boiler, and one of three years ago for each identifier."""
    place = Place.make(tmp_path_factory.mktemp("old"), config=request.param)
    for number in range(300):
        day = date(2026, 11, 14) - timedelta(days=number)
        text = f"# Log\n\n- The boiler was looked at again: what about the pump and valve {number}?\n- Nothing new.\n"
        remember(place, f"memory/{day.isoformat()}.md", text)
    for number, identifier in enumerate(IDENTIFIERS):
        text = f"# Log\n\n- Lunch was late.\n- It stopped with {identifier} in the cellar.\n- Went home.\n"
        remember(place, f"memory/2023-10-{number + 1:02}.md", text)
    reindex(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_an_identifier_is_found_whatever_its_age(old_and_new: Place, identifier: str) -> None:
    answer = search(old_and_new, f"what about {identifier} and the boiler pump")
    assert first(answer) == f"memory/2023-10-{IDENTIFIERS.index(identifier) + 1:02}.md"
    assert identifier in answer.hits[0].text
    assert answer.hits[0].age_days is not None
    assert answer.hits[0].age_days > 1000
    assert first(search(old_and_new, identifier)) == answer.hits[0].path


@pytest.mark.parametrize("typed", ["ZQ0033X", "a1b2c3d", "parsehttpheader", "proj-1234", "app.conf", "`zq0033x`?"])
def test_an_identifier_is_found_in_other_clothes(old_and_new: Place, typed: str) -> None:
    answer = search(old_and_new, f"the boiler and {typed}")
    assert typed.strip("`?").lower() in answer.hits[0].text.lower()


def test_a_word_of_a_camel_case_identifier_finds_it(memory: Place) -> None:
    remember(memory, "memory/cards/retry.md", a_card("Network", "Set maxRetryBackoffSeconds to sixty."))
    assert "memory/cards/retry.md" in paths(search(memory, "backoff"))[:3]
    assert first(search(memory, "maxRetryBackoffSeconds")) == "memory/cards/retry.md"


def test_a_path_finds_the_file_that_is_called_so(memory: Place) -> None:
    for query in ("memory/projects/harbor.md", "harbor.md", "harbor"):
        assert first(search(memory, query)) == "memory/projects/harbor.md"


def test_an_error_is_found_though_its_numbers_differ(memory: Place) -> None:
    error = "TypeError: cannot unpack non-iterable NoneType object at /srv/app/worker.py:{} (pid {}, 0x7f{:04x})"
    remember(memory, "memory/cards/unpack.md", a_card("Worker crash", error.format(112, 4021, 0xABCD)))
    for number in range(20):
        remember(memory, f"memory/2026-10-{number + 1:02}.md", f"- The app worker restarted at line {348 + number}.\n")
    assert first(search(memory, error.format(348, 99, 0x1234))) == "memory/cards/unpack.md"


# --- Questions of every kind ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("certifcate", "certificate"),
        ("ceritficate", "certificate"),
        ("gatewya", "gateway"),
        ("Nigthly", "nightly"),
        ("satging", "staging"),
    ],
)
@EITHER
def test_a_misspelt_word(memory: Place, typed: str, known: str, config: str) -> None:
    memory.configure(config)
    answer = search(memory, typed)
    assert known in answer.hits[0].text.lower()
    assert [pair[0] for pair in answer.corrections] == [typed.lower()]


@pytest.mark.parametrize("typed", ["ertificate", "certifikate"])
def test_a_misspelt_beginning_or_middle(memory: Place, typed: str) -> None:
    for config in ("", WORDS_ONLY):
        memory.configure(config)
        assert first(search(memory, typed)) == "memory/2026-11-10.md"


@pytest.mark.parametrize("typed", ["certificaet", "certificte"])
def test_a_misspelt_ending(memory: Place, typed: str) -> None:
    memory.configure(WORDS_ONLY)
    assert first(search(memory, typed)) == "memory/2026-11-10.md"


TEXTS_AND_QUERIES = [
    ("数据库连接池已经耗尽，请稍后重试。", "连接池"),
    ("数据库连接池已经耗尽，请稍后重试。", "为什么连接池耗尽了"),
    ("データベースの接続プールが枯渇しました。", "接続プール"),
    ("データベースの接続プールが枯渇しました。", "プールはなぜ枯渇した？"),
    ("데이터베이스 연결 풀이 고갈되었습니다.", "연결"),
    ("데이터베이스 연결 풀이 고갈되었습니다.", "데이터베이스"),
    ("데이터베이스연결풀이고갈되었습니다.", "연결"),
    ("ปัญหาการเชื่อมต่อฐานข้อมูลล้มเหลว", "การเชื่อมต่อ"),
    ("ปัญหาการเชื่อมต่อฐานข้อมูลล้มเหลว", "ฐานข้อมูล"),
    ("מסד הנתונים אינו זמין בלילה", "מסד הנתונים"),
    ("قاعدة البيانات غير متاحة ليلا", "متاحة"),
    ("База данных недоступна по ночам", "недоступна ночам"),
    ("Η βάση δεδομένων δεν είναι διαθέσιμη", "βάση διαθέσιμη"),
    ("Die Überweisung schlägt nachts fehl", "uberweisung"),
    ("Le café est fermé à midi", "cafe ferme"),
    ("The launch is on 🚀🦊 and nobody knows", "🚀🦊"),
    ("The flag is C++ only", "C++"),
    ("Call it with ->next", "->next"),
    ("to be or not to be", "to be or not to be"),
    ("𠮷野家 is where we meet", "𠮷野家"),
    ("The answer is Ω-1 in ℝ", "Ω-1"),
    ("co-operation in the naïve façade", "naive facade"),
]


@EITHER
def test_whatever_is_written_is_found(memory: Place, config: str, subtests: pytest.Subtests) -> None:
    for text, query in TEXTS_AND_QUERIES:
        with subtests.test(f"{text!r:.40}, {query!r:.40}"):
            memory.configure(config)
            others = (
                "数字签名证书已轮换。",
                "署名証明書を更新しました。",
                "서명 인증서를 교체했습니다.",
                "สวัสดีตอนเช้า ประชุมทีม",
                "ночью тихо",
            )
            for number, other in enumerate(others):
                remember(memory, f"memory/2026-09-{number + 1:02}.md", f"{other}\n")
            remember(memory, "memory/2026-08-01.md", f"# Log\n\nSomething else.\n\n{text}\n")
            assert first(search(memory, query)) == "memory/2026-08-01.md"


@pytest.mark.parametrize("sign", ["🦊", "₹", "→"])
def test_a_single_sign(memory: Place, sign: str) -> None:
    remember(memory, "memory/2026-08-01.md", f"Something else.\n\nMarked with {sign} in the ledger.\n")
    assert first(search(memory, sign)) == "memory/2026-08-01.md"


QUERIES_WITH_OPERATORS = [
    '"staging proxy',
    '"staging" "proxy"',
    "staging AND proxy",
    "staging OR proxy",
    "staging NOT proxy",
    "NOT staging proxy",
    "NEAR(staging proxy, 2)",
    "NEAR(staging",
    "(staging proxy",
    "staging) proxy(",
    "stag* staging proxy*",
    "title:staging proxy",
    "text : staging proxy",
    "{title text}: staging proxy",
    "^staging proxy",
    "-staging -proxy",
    "+staging +proxy",
    "staging + proxy",
    "chunks_fts MATCH 'staging proxy'",
    "staging'; DROP TABLE chunks; --proxy",
    'staging"; DELETE FROM files; --proxy',
    "staging%proxy_",
    "staging\\proxy\\",
    "staging\x00proxy",
    "\x00staging\x00\x00proxy\x00",
    "staging\nproxy\r\n\tport",
    "staging\u202eproxy\u202c",
    "\ufeffstaging proxy",
    "staging\u200bproxy staging proxy",
    "STAGING PROXY",
    "ｓｔａｇｉｎｇ staging proxy",
    "[staging](proxy)",
    "`staging` **proxy**",
    "<staging proxy/>",
    "staging proxy ?1 ?2 :a @b $c",
    "staging proxy " + "word " * 300,
    "staging proxy " + " ".join(f"w{number}" for number in range(3000)),
    "staging proxy " + "x" * 100_000,
]


@pytest.mark.slow
@EITHER
def test_no_sign_is_an_operator(memory: Place, config: str, subtests: pytest.Subtests) -> None:
    for query in QUERIES_WITH_OPERATORS:
        with subtests.test(f"{query!r:.40}"):
            memory.configure(config)
            assert first(search(memory, query)) == "memory/cards/staging-proxy.md"
            search(memory, query, ranking="openclaw")


ODD_QUERIES = [
        "?!", "...", "()", '"', '""', "''", "*", "AND", "NEAR", "NOT", "-", "--", "^", ":", "\\", "%", "_", "\x00",
        "\x00\x00", "\u200b", "\u202e", "🦊", "👩‍👩‍👧‍👦", "the of and", "a", "א", "ا", "字", "ー", "々", "\u0301",
        "\ufffd", "\ue000", "9", "x" * 100_000, "数" * 33_000, "🦊" * 25_000, "? " * 50_000, "a.b" * 33_000,
        "aB" * 50_000, "-" * 100_000, "\u0e01\u0e31" * 16_000,
    ]  # fmt: skip


@pytest.mark.slow
@EITHER
def test_no_query_is_an_error(memory: Place, config: str, subtests: pytest.Subtests) -> None:
    for query in ODD_QUERIES:
        with subtests.test(f"{query!r:.40}"):
            memory.configure(config)
            for options in ({}, {"ranking": "openclaw"}, {"stores": ["transcripts"]}, {"repository": "app"}):
                search(memory, query, **options)


@pytest.mark.slow
@pytest.mark.parametrize("query", ["\udcff\udcfe", "caf\udce9-x", "\ud800"])
def test_bytes_that_are_not_utf8_in_a_query(memory: Place, query: str) -> None:
    search(memory, query)
    search(memory, "staging", repository=query)
    if query != "\ud800":  # no bytes on a command line become this
        done = run_cli("search", query, "-w", str(memory.workspace))
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("query", ["", " ", "\n\t ", "\u3000"])
def test_nothing_to_search_for(memory: Place, query: str) -> None:
    with pytest.raises(BadInput, match="nothing to search for"):
        search(memory, query)


def test_an_empty_memory(place: Place) -> None:
    (place.workspace / "MEMORY.md").unlink()
    answer = search(place, "anything")
    assert answer.hits == ()
    assert reindex(place).files == 0


def test_meaning_finds_what_no_word_finds(memory: Place) -> None:
    answer = search(memory, "programming language of the dock application")
    assert "memory/projects/harbor.md" in paths(answer)[:3]
    assert answer.mode == "hybrid"


def test_a_day_in_the_question(memory: Place) -> None:
    for query in ("what happened on 2026-11-10", "notes of November 10", "was war am 10. November 2026", "11月10日"):
        assert first(search(memory, query)) == "memory/2026-11-10.md", query


def test_a_hit_is_not_returned_twice(memory: Place) -> None:
    text = "# Long\n\n" + "".join(f"- Step {number}: restart the harbor pump and wait.\n" for number in range(200))
    remember(memory, "memory/projects/long.md", text)
    seen: set[tuple[str, int]] = set()
    for hit in search(memory, "restart the harbor pump", limit=20).hits:
        lines = {(hit.path, line) for line in range(hit.first, hit.last + 1)}
        assert not lines & seen
        seen |= lines


@EITHER
def test_what_says_the_same_is_folded(memory: Place, config: str) -> None:
    memory.configure(config)
    text = "# Kiln\n\nThe kiln must cool for nine hours before the door may be opened.\n"
    for name in ("memory/projects/kiln.md", "memory/2026-11-01.md", "memory/2026-11-02.md"):
        remember(memory, name, text)
    answer = search(memory, "how long must the kiln cool")
    about = [hit for hit in answer.hits if "kiln" in hit.text]
    assert len(about) == 1
    cited = {citation.partition("#")[0] for citation in about[0].also}
    assert cited | {about[0].path} == {"memory/projects/kiln.md", "memory/2026-11-01.md", "memory/2026-11-02.md"}


def test_limit(memory: Place) -> None:
    for number in range(30):
        others = " ".join(
            f"{word}{number}" for word in ("alder", "birch", "cedar", "elder", "hazel", "linden", "maple")
        )
        remember(memory, f"memory/cards/c{number}.md", f"The crate holds figs and {others}.\n")
    for limit in (1, 2, 6, 15):
        assert len(search(memory, "crate figs", limit=limit).hits) == limit
    for limit in (0, -1, 1001):
        with pytest.raises(BadInput, match="hits"):
            search(memory, "crate", limit=limit)


def test_without_a_limit_an_answer_fills_its_room(memory: Place) -> None:
    for number in range(40):
        text = "\n".join(f"- Crate {number} row {row} holds figs, {row * number} of them." for row in range(40))
        remember(memory, f"memory/cards/c{number}.md", f"# Crate {number}\n\n{text}\n")
    hits = search(memory, "crate figs").hits
    assert len(hits) > 4
    assert DEFAULT_ROOM * 0.6 < sum(len(hit.text) for hit in hits) <= DEFAULT_ROOM
    shown = run_cli("search", "crate figs", "-w", str(memory.workspace)).stdout
    assert DEFAULT_ROOM * 0.8 < len(shown) < DEFAULT_ROOM * 1.2


def test_hits_of_a_file_are_under_one_heading(memory: Place) -> None:
    parts = [
        f"## Room {number}\n\n"
        + "".join(f"The kiln bakes tile {part}{at} for roof{part} {part}barn{at}, w{at}{part}.\n" for at in range(60))
        for number, part in ((1, "north"), (2, "south"))
    ]
    remember(memory, "memory/projects/kilns.md", "\n".join(parts))
    shown = run_cli("search", "kiln bakes tile", "-n", "3", "-w", str(memory.workspace)).stdout
    assert shown.count("memory/projects/kilns.md#L") == 1
    assert len(re.findall(r"^   #L\d+-L\d+  0\.\d\d|^   #L\d+-L\d+  1\.00", shown, re.MULTILINE)) == 2


def test_a_large_limit(memory: Place) -> None:
    for number in range(40):
        others = " ".join(
            f"{word}{number}" for word in ("alder", "birch", "cedar", "elder", "hazel", "linden", "maple")
        )
        remember(memory, f"memory/cards/c{number}.md", f"The crate holds figs and {others}.\n")
    assert len([hit for hit in search(memory, "crate figs", limit=100).hits if "figs" in hit.text]) == 40


def test_a_line_longer_than_a_chunk(memory: Place) -> None:
    remember(
        memory, "memory/projects/long.md", "# Long\n\n" + "filler " * 1500 + "pomegranate " + "filler " * 1500 + "\n"
    )
    hit = search(memory, "pomegranate").hits[0]
    assert (hit.path, hit.first, hit.last) == ("memory/projects/long.md", 3, 3)
    assert "pomegranate" in hit.text


# --- Filters --------------------------------------------------------------------------------------------------------


@pytest.fixture
def stores(memory: Place) -> Place:
    remember(memory, "memory/cards/a.md", "A walrus eats clams and little else.\n")
    remember(memory, "memory/projects/b.md", "The walrus project tracks the animals along the northern coast.\n")
    remember(memory, "memory/2026-11-01.md", "- Fed one walrus at noon; it was in a good mood.\n")
    remember(memory, "memory/2026-06-01.md", "- Bought a bigger tank, because our walrus has grown.\n")
    remember(memory, "memory/cards/c.md", "---\ntopic: Walrus\nrepository: me/app\n---\n\nThe walrus sleeps by day.\n")
    return memory


@EITHER
def test_only_one_store(stores: Place, config: str) -> None:
    stores.configure(config)
    for store in ("cards", "documents", "logs"):
        answer = search(stores, "walrus", stores=[store], limit=50)
        assert answer.hits
        assert {hit.store for hit in answer.hits} == {store}
    both = search(stores, "walrus", stores=["cards", "logs"], limit=50)
    assert {hit.store for hit in both.hits} == {"cards", "logs"}
    assert search(stores, "walrus", stores=["transcripts"]).hits == ()
    with pytest.raises(BadInput, match="store"):
        search(stores, "walrus", stores=["attic"])


def test_only_since_a_day(stores: Place) -> None:
    answer = search(stores, "walrus", since=date(2026, 7, 1), limit=50)
    assert "memory/2026-11-01.md" in paths(answer)
    assert "memory/2026-06-01.md" not in paths(answer)
    assert "memory/2026-06-01.md" in paths(search(stores, "walrus", since=date(2026, 6, 1), limit=50))
    assert paths(search(stores, "walrus", since=date(2999, 1, 1))) == []


@pytest.mark.parametrize("name", ["app", "me/app", "APP", "Me/App", "app.git"])
def test_only_one_repository(stores: Place, name: str) -> None:
    assert set(paths(search(stores, "walrus", repository=name))) == {"memory/cards/c.md"}


@pytest.mark.parametrize("name", ["pp", "%", "_pp", "me", "other", "\\", "'"])
def test_no_such_repository(stores: Place, name: str) -> None:
    assert paths(search(stores, "walrus", repository=name)) == []


def test_a_project_file_belongs_to_its_project(memory: Place) -> None:
    assert paths(search(memory, "what is it written in", repository="harbor")) == ["memory/projects/harbor.md"]


# --- The other ranking ----------------------------------------------------------------------------------------------


@EITHER
def test_openclaw_ranking_returns_whole_chunks(memory: Place, config: str) -> None:
    memory.configure(config)
    answer = search(memory, "staging answers", ranking="openclaw")
    assert answer.ranking == "openclaw"
    assert first(answer) == "memory/cards/staging-proxy.md"
    assert answer.hits[0].text.startswith("---\ntopic:")
    assert set(answer.hits[0].parts) == ({"words"} if config else {"words", "meaning"})
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_openclaw_half_life_lets_logs_fade_and_nothing_else(memory: Place) -> None:
    text = "# Note\n\nThe ferry to the island leaves at noon.\n"
    for path in ("memory/2026-11-14.md", "memory/2024-01-01.md", "memory/projects/ferry.md"):
        remember(memory, path, text)
    plain = {hit.path: hit.score for hit in search(memory, "ferry island", ranking="openclaw", limit=20).hits}
    faded = {
        hit.path: hit.score for hit in search(memory, "ferry island", ranking="openclaw", half_life=30, limit=20).hits
    }
    assert faded["memory/projects/ferry.md"] == plain["memory/projects/ferry.md"]
    assert faded["memory/2024-01-01.md"] < 0.01 * plain["memory/2024-01-01.md"]
    assert faded["memory/2026-11-14.md"] > 0.9 * plain["memory/2026-11-14.md"]


def test_openclaw_mmr_prefers_what_was_not_said_yet(memory: Place) -> None:
    for number in range(4):
        remember(
            memory, f"memory/projects/same{number}.md", f"The ferry leaves at noon from pier seven daily {number}\n"
        )
    remember(
        memory, "memory/projects/other.md", "A ferry ticket for the long crossing costs nine crowns at the kiosk\n"
    )
    plain = paths(search(memory, "ferry", ranking="openclaw", limit=3))
    varied = paths(search(memory, "ferry", ranking="openclaw", limit=3, mmr=0.3))
    assert "memory/projects/other.md" not in plain
    assert "memory/projects/other.md" in varied[:2]


def test_no_such_ranking(memory: Place) -> None:
    with pytest.raises(BadInput, match="ranking"):
        search(memory, "staging", ranking="best")


# --- Reading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted",
    [
        "memory/cards/staging-proxy.md",
        "./memory/cards/../cards/staging-proxy.md",
        "memory//cards/staging-proxy.md",
        "cards/staging-proxy.md",
        "staging-proxy.md",
        "staging-proxy",
    ],
)
def test_get(memory: Place, wanted: str) -> None:
    with memory.open() as workspace:
        excerpt = workspace.search.get(wanted)
    assert excerpt.path == "memory/cards/staging-proxy.md"
    assert excerpt.text + "\n" == a_card()
    assert (excerpt.first, excerpt.last, excerpt.total) == (1, 7, 7)
    assert excerpt.next is None
    assert excerpt.store == "cards"


def test_get_what_a_search_cited(memory: Place) -> None:
    remember(
        memory, "memory/projects/long.md", "".join(f"- Line {number} about item i{number}z\n" for number in range(300))
    )
    with memory.open() as workspace:
        for hit in workspace.search.find("i222z", limit=5).hits:
            excerpt = workspace.search.get(hit.citation)
            assert (excerpt.path, excerpt.text.rstrip("\n")) == (hit.path, hit.text.rstrip("\n"))
        full = str(memory.workspace / "memory/projects/harbor.md")
        assert workspace.search.get(full).path == "memory/projects/harbor.md"
        assert workspace.search.get(full + "#L3").text == "The harbor service is written in Rust."


@pytest.mark.slow
def test_get_goes_on_where_it_was_cut(memory: Place) -> None:
    lines = [f"line {number}" for number in range(1, 1001)]
    remember(memory, "memory/projects/long.md", "\n".join(lines) + "\n")
    found: list[str] = []
    at: int | None = 1
    with memory.open() as workspace:
        while at is not None:
            excerpt = workspace.search.get("memory/projects/long.md", first=at)
            assert excerpt.first == at
            assert excerpt.total == 1000
            found += excerpt.text.split("\n")
            at = excerpt.next
        assert len(workspace.search.get("memory/projects/long.md").text.split("\n")) == LINES
        assert workspace.search.get("memory/projects/long.md", first=1000).text == "line 1000"
        assert workspace.search.get("memory/projects/long.md", first=5, lines=2).text == "line 5\nline 6"
        assert workspace.search.get("memory/projects/long.md#L5-L6").text == "line 5\nline 6"
        assert workspace.search.get("memory/projects/long.md#L5-6").text == "line 5\nline 6"
        assert workspace.search.get("memory/projects/long.md#L6-L5").text == "line 6"
        assert workspace.search.get("memory/projects/long.md#L5-L6", first=9, lines=1).text == "line 9"
        with pytest.raises(NotFound, match="1000 lines"):
            workspace.search.get("memory/projects/long.md", first=1001)
        with pytest.raises(NotFound):
            workspace.search.get("memory/projects/long.md#L999999999")
    assert found == lines


def test_get_long_lines_are_cut_by_size(memory: Place) -> None:
    remember(memory, "memory/projects/wide.md", "\n".join(["x" * 5000] * 10))
    remember(memory, "memory/projects/one.md", "y" * 50_000 + "\nlast\n")
    remember(memory, "memory/projects/empty.md", "")
    with memory.open() as workspace:
        wide = workspace.search.get("memory/projects/wide.md")
        assert (wide.first, wide.last, wide.next) == (1, 2, 3)
        one = workspace.search.get("memory/projects/one.md")
        assert len(one.text) <= CHARACTERS + 1
        assert one.next == 2
        empty = workspace.search.get("memory/projects/empty.md")
        assert (empty.text, empty.total, empty.next) == ("", 0, None)


@pytest.fixture
def guarded(memory: Place) -> Place:
    """Everything that must not be read, beside the memory."""
    (memory.base / "outside.md").write_text("outside\n")
    root = memory.workspace
    (root / "HANDOVER.md").write_text("instructions\n")
    (root / "AGENTS.md").write_text("instructions\n")
    remember(memory, "memory/handoff-inbox/draft.md", "a draft about zebras\n")
    remember(memory, "memory/.hidden/secret.md", "hidden zebras\n")
    remember(memory, "memory/.secret.md", "hidden zebras\n")
    remember(memory, "memory/notes.txt", "no Markdown, but zebras\n")
    (root / "memory/link.md").symlink_to(memory.base / "outside.md")
    (root / "memory/elsewhere").symlink_to(memory.base)
    (root / "memory/folder.md").mkdir()
    os.mkfifo(root / "memory/pipe.md")
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(root / "memory")
        sock.bind("socket.md")
        os.chdir(here)
    return memory


NOT_MEMORY = [
    "../outside.md",
    "memory/../../outside.md",
    "/etc/passwd",
    "{base}/outside.md",
    "memory/link.md",
    "memory/elsewhere/outside.md",
    "memory/folder.md",
    "memory/pipe.md",
    "memory/socket.md",
    "memory/handoff-inbox/draft.md",
    "handoff-inbox/draft.md",
    "memory/handoff-inbox/draft.md#L1",
    "memory/.hidden/secret.md",
    "memory/.secret.md",
    "memory/notes.txt",
    "HANDOVER.md",
    "AGENTS.md",
    ".truekeep/config.toml",
    ".truekeep/index.sqlite",
    ".",
    "..",
    "/",
    "memory",
    "memory/",
    "memory/nothing.md",
    "memory/cards/staging-proxy.md/x",
    "nothing",
    "x" * 250,
    "a\x00b",
    "\udcff.md",
    "~/x.md",
    "",
    "#L5",
    "transcripts/claude/no-such.jsonl",
    "transcripts/../../outside.md",
]


def test_get_reads_nothing_but_memory(guarded: Place, subtests: pytest.Subtests) -> None:
    for wanted in NOT_MEMORY:
        with subtests.test(f"{wanted!r:.40}"), guarded.open() as workspace, pytest.raises((NotFound, NotMemory)):
            workspace.search.get(wanted.replace("{base}", str(guarded.base)))


def test_hits_by_meaning_alone_are_told_as_such(memory: Place) -> None:
    """Nobody should take what is merely nearest for an answer."""
    said = "no memory has these words; these are the nearest in meaning"
    found = search(memory, "violin orchestra")
    assert found.hits
    assert said in found.notes
    word = next(word for hit in found.hits for word in hit.text.split() if word.isalpha() and len(word) > 6)
    assert not [note for note in search(memory, word).notes if "no memory" in note]


def test_a_document_that_is_too_large_is_told(memory: Place) -> None:
    (memory.workspace / "dump.md").write_text("walrus\n" * 150_000)
    with memory.open() as workspace:
        assert "dump.md is over 1 MB and is not searched" in workspace.search.index().notes
        assert not [hit for hit in workspace.search.find("walrus").hits if hit.path == "dump.md"]


def test_markdown_that_is_passed_over_is_told(memory: Place, tmp_path: Path) -> None:
    root = memory.workspace
    git_repo(root)
    for path in ("kept/plan.md", "node_modules/pack/README.md", "inside.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Walrus\n")
    subprocess.run(["git", "-C", str(root), "add", "-f", "kept", "node_modules"], check=True)
    (root / ".gitignore").write_text("kept/\nnode_modules/\n")
    os.mkfifo(root / "pipe.md")
    (tmp_path / "abroad").mkdir()
    (root / "vault").symlink_to(tmp_path / "abroad")
    (root / "alias.md").symlink_to(root / "inside.md")
    with memory.open() as workspace:
        assert [note for note in workspace.search.index().notes if note.startswith("not read")] == [
            "not read because they are not regular files: pipe.md",
            "not read because they are links out of the workspace: vault",
            "not read because .gitignore names them, though git keeps them: kept/plan.md",
        ]


def test_nonsense_finds_nothing(memory: Place) -> None:
    found = search(memory, "xyzzyq quuxle flibberty")
    assert (found.hits, found.notes) == ((), ("no memory has these words",))


def test_what_no_memory_has_is_named(memory: Place) -> None:
    remember(memory, "memory/harbour.md", "# Harbour crane\n\nThe crane lifts forty tons. Call `lift_all()` first.\n")
    found = search(memory, "which harbour dentist in Rotterdam repaired the crane with drop_all()")
    assert found.hits[0].path == "memory/harbour.md"
    assert "no memory has drop_all, rotterdam" in found.notes  # and no word of ordinary English
    assert not search(memory, "who usually repairs the harbour crane, and how long does it take").notes
    assert not search(memory, "harbour crane aB3dE5gH7jK9mN1p").notes  # it may be masked somewhere
    assert not search(memory, "harbour crane lift_all()").notes  # a word of the file's name or a heading counts


def test_a_question_that_nothing_is_near_to_is_told(memory: Place) -> None:
    words = ["gateway", "certificate", "invoice", "deploy", "cache", "latency", "worker", "queue", "printer", "ledger"]
    topics = [
        f"## {one} {other}\n\n" + f"The {one} feeds the {other} every hour. " * 12 for one in words for other in words
    ]
    for number in range(3):
        remember(memory, f"memory/projects/plant{number}.md", "\n\n".join(topics).replace("hour", f"hour{number}"))
    found = search(memory, "which kindergarten does my daughter attend every morning")
    assert found.hits
    assert re.fullmatch("no memory has .*kindergarten.*; these are the nearest notes, and may not answer", found.doubt)
    assert found.doubt in found.notes
    assert not search(memory, "how often does the printer feed the ledger").doubt
    done = run_cli("search", "which kindergarten does my daughter attend every morning", "-w", str(memory.workspace))
    assert done.stdout.startswith(found.doubt)


def test_words_that_stand_apart_are_no_answer(memory: Place) -> None:
    for number in range(300):
        text = f"# Shift {number}\n\nValve {number} was opened by hand, and turbine {number} ran at half speed.\n"
        remember(memory, f"memory/projects/shift{number}.md", text)
    remember(memory, "memory/harbour.md", "# Harbour\n\nThe harbour master is called Odo.\n")
    remember(memory, "memory/rent.md", "# Boat shed\n\nThe rent of the boat shed is 340 euros a month.\n")
    apart = search(memory, "how much rent does the harbour master pay for the piano")
    assert apart.evidence == "none"
    assert apart.doubt in apart.notes
    together = search(memory, "how much is the rent of the boat shed")
    assert (together.evidence, together.doubt) == ("enough", "")
    assert search(memory, "harbour").evidence == "enough"  # nothing of it is missing


def test_without_vectors_an_answer_is_not_doubted_for_that(place: Place) -> None:
    place.configure('[recall]\nembedder = "none"\n')
    for number in range(300):
        text = f"# Shift {number}\n\nValve {number} was opened by hand, and turbine {number} ran at half speed.\n"
        remember(place, f"memory/projects/shift{number}.md", text)
    remember(place, "memory/harbour.md", "# Harbour\n\nThe harbour master is called Odo.\n")
    remember(place, "memory/backup.md", "# Backups\n\nThe nightly backup of the ledger goes to the NAS at 02:30.\n")
    for question in ("who is the master of the harbour now", "where does the nightly backup go to"):
        found = search(place, question)
        assert (found.mode, found.doubt) == ("words", ""), question
    assert search(place, "which kindergarten does my daughter attend every morning").doubt


def test_weak_evidence_is_told_above_the_hits(memory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(memory, "memory/harbour.md", "# Harbour crane\n\nThe crane lifts forty tons.\n")
    monkeypatch.setattr("truekeep.search.searcher.judge_evidence", lambda _: "weak")
    found = search(memory, "who repaired the crane")
    assert (found.evidence, found.doubt) == ("weak", "")
    assert found.notes == ("these may not answer: no passage has much of the question together",)
    assert found.notes[0] in next(iter(render_result(found, {}, explain=False)))


@pytest.mark.parametrize(
    "question",
    [
        "which harbour crane was repaired in March",  # a month is no name
        "how does the made-up harbour crane work",  # words with a hyphen between them are no identifier
        "wie hoch ist der Kran im Hafenbecken am harbour",  # in German every noun has a capital letter
    ],
)
def test_what_is_no_name_is_not_missed(memory: Place, question: str) -> None:
    remember(memory, "memory/harbour.md", "# Harbour crane\n\nThe crane lifts forty tons.\n")
    assert not search(memory, question).doubt


def test_a_repository_that_no_memory_is_of_is_told(memory: Place) -> None:
    remember(memory, "memory/projects/pier.md", "The pier opens at nine.\n")
    with memory.open() as workspace:
        told = workspace.search.find("pier opens", repository="nope").notes
        assert [note for note in told if note.startswith("no memory is of a repository nope; there is memory of")]
        assert "pier" in told[-1]
        assert workspace.search.find("pier opens", repository="PIER").hits


@pytest.mark.parametrize(
    ("written", "asked"), [("Gebäude", "gebaeude"), ("Gebaeude", "Gebäude"), ("Straße", "strasse")]
)
def test_umlauts_and_their_transliterations_are_the_same(memory: Place, written: str, asked: str) -> None:
    remember(memory, "memory/haus.md", f"Wir haben das {written} gestrichen.\n")
    assert search(memory, asked).hits[0].path == "memory/haus.md"
    assert not [note for note in search(memory, asked).notes if "no memory" in note]


@pytest.mark.parametrize(
    "wanted", ["memory/lines.md:2", "memory/lines.md:2-2", "memory/lines.md#L2", "memory/lines.md:L2"]
)
def test_get_takes_a_line_as_editors_write_it(memory: Place, wanted: str) -> None:
    remember(memory, "memory/lines.md", "one\ntwo\nthree\n")
    with memory.open() as workspace:
        assert workspace.search.get(wanted).text == "two"


def test_the_neighbours_of_a_bullet_are_shown_with_it(memory: Place) -> None:
    """The right bullet alone is often not the answer."""
    filler = "\n".join(f"- unrelated bullet number {number} about gardening and lawns" for number in range(60))
    remember(memory, "MEMORY.md", f"{filler}\n\n## Ferry\n- The ferry company is Nordlink\n- It sails at 07:40\n")
    hit = search(memory, "which ferry company").hits[0]
    assert "Nordlink" in hit.text
    assert "07:40" in hit.text


def test_get_a_name_that_no_file_can_have(memory: Place) -> None:
    with memory.open() as workspace, pytest.raises(NotFound):
        workspace.search.get("x" * 5000)


def test_search_finds_nothing_but_memory(guarded: Place) -> None:
    for config in ("", WORDS_ONLY):
        guarded.configure(config)
        answer = search(guarded, "zebras outside instructions draft", limit=100)
        assert not [hit for hit in answer.hits if "zebra" in hit.text or "outside" in hit.text or "instr" in hit.text]
        assert all("embedder" in note or "nearest in meaning" in note for note in answer.notes)


def test_get_suggests_what_is_near(memory: Place) -> None:
    with memory.open() as workspace, pytest.raises(NotFound) as caught:
        workspace.search.get("memory/cards/staging-prxy.md")
    assert "memory/cards/staging-proxy.md" in caught.value.hint


# --- Transcripts ----------------------------------------------------------------------------------------------------


@pytest.fixture
def session(memory: Place, own_home: Path) -> Path:
    return claude_session(
        own_home,
        ("user", "Why does the quokka service time out?"),
        ("assistant", "Its quokka pool has two workers; raise QUOKKA_POOL_SIZE to nine."),
        ("user", "And the flamingo?"),
        ("assistant", "The flamingo waits for the quokka."),
    )


def test_transcripts_are_left_out_until_asked_for(memory: Place, session: Path) -> None:
    remember(memory, "memory/cards/quokka.md", a_card("Quokka", "The quokka service is owned by the zoo team."))
    reindex(memory)
    for ranking in ("truekeep", "openclaw"):
        answer = search(memory, "quokka service", ranking=ranking, limit=50)
        assert answer.hits
        assert not [hit for hit in answer.hits if hit.store == "transcripts"]
        answer = search(memory, "quokka pool size", stores=["transcripts"], ranking=ranking)
        assert {hit.store for hit in answer.hits} == {"transcripts"}


@EITHER
def test_a_transcript_is_cited_by_the_line_of_the_session(memory: Place, session: Path, config: str) -> None:
    memory.configure(config)
    hit = search(memory, "QUOKKA_POOL_SIZE", stores=["transcripts"]).hits[0]
    rows = session.read_text().splitlines()
    assert hit.path.startswith("transcripts/claude/")
    assert any("QUOKKA_POOL_SIZE" in rows[number - 1] for number in range(hit.first, hit.last + 1))
    assert hit.first >= 2
    assert hit.last <= len(rows)
    assert "raise QUOKKA_POOL_SIZE" in hit.text
    assert hit.repository == "app"
    with memory.open() as workspace:
        excerpt = workspace.search.get(hit.citation)
        assert "raise QUOKKA_POOL_SIZE" in excerpt.text
        assert excerpt.store == "transcripts"
        assert excerpt.first == hit.first
        one = workspace.search.get(f"{hit.path}#L3")
        assert (one.first, one.last) == (3, 3)
        assert one.text.startswith("Assistant: Its quokka pool")
        assert one.next == 4
        with pytest.raises(NotFound):
            workspace.search.get(f"{hit.path}#L99")


def test_a_transcript_answers_when_nothing_else_does(memory: Place, session: Path) -> None:
    memory.configure(WORDS_ONLY)
    answer = search(memory, "flamingo")
    assert answer.hits[0].store == "transcripts"
    assert any("transcripts" in note for note in answer.notes)


def test_a_transcript_answers_when_nothing_else_has_the_identifier(memory: Place, session: Path) -> None:
    answer = search(memory, "QUOKKA_POOL_SIZE")
    assert "QUOKKA_POOL_SIZE" in answer.hits[0].text


def test_old_transcripts_are_forgotten(memory: Place, session: Path, own_home: Path) -> None:
    old = NOW - timedelta(days=31)
    claude_session(own_home, ("user", "The ibis asked about armadillos"), name="0" * 8, at=old)
    assert reindex(memory).transcripts == 1
    assert not any("armadillo" in hit.text for hit in search(memory, "armadillos", stores=["transcripts"]).hits)
    memory.configure("[recall]\ntranscript_days = 60\n")
    assert reindex(memory).transcripts == 2
    assert "armadillos" in search(memory, "armadillos", stores=["transcripts"]).hits[0].text
    later = NOW + timedelta(days=90)
    assert reindex(memory, now=later).transcripts == 0
    assert search(memory, "armadillos", stores=["transcripts"], now=later).hits == ()


def test_transcripts_can_be_turned_off(memory: Place, session: Path) -> None:
    reindex(memory)
    memory.configure("[recall]\ntranscripts = false\n")
    assert reindex(memory).transcripts == 0
    assert search(memory, "quokka", stores=["transcripts"]).hits == ()


def test_a_session_that_goes_on_is_seen(memory: Place, session: Path) -> None:
    search(memory, "quokka", stores=["transcripts"])
    with session.open("a") as file:
        row = {"type": "user", "message": {"role": "user", "content": "What of the axolotl?"}, "cwd": "/home/me/app"}
        file.write(json.dumps(row) + "\n")
    os.utime(session, (NOW.timestamp() + 5, NOW.timestamp() + 5))
    hit = search(memory, "axolotl", stores=["transcripts"]).hits[0]
    assert "axolotl" in hit.text
    assert hit.last == 6


def test_a_session_that_was_deleted(memory: Place, session: Path) -> None:
    hit = search(memory, "quokka", stores=["transcripts"]).hits[0]
    session.unlink()
    with memory.open() as workspace, pytest.raises(NotFound, match="gone"):
        workspace.search.get(hit.path)
    assert search(memory, "quokka", stores=["transcripts"]).hits == ()


def test_memory_and_transcripts_together(memory: Place, session: Path) -> None:
    remember(memory, "memory/2026-11-13.md", "- The quokka pool was raised.\n")
    answer = search(memory, "quokka pool", stores=["logs", "transcripts"], limit=50)
    assert {hit.store for hit in answer.hits} == {"logs", "transcripts"}


# --- The command line -----------------------------------------------------------------------------------------------


def cli(place: Place, *arguments: str) -> Any:
    done = run_cli(*arguments, "-w", str(place.workspace), "--json")
    assert "Traceback" not in done.stderr
    data = json.loads(done.stdout)
    assert data["schema"].startswith("truekeep.")
    return data | {"exit": done.returncode}


@pytest.mark.slow
def test_json_of_search(memory: Place) -> None:
    data = cli(memory, "search", "which", "port", "does", "staging", "answer", "on", "-n", "2", "--explain")
    assert data["exit"] == 0
    assert data["schema"] == "truekeep.search/1"
    assert set(data) - {"exit", "schema"} == {
        *("query", "mode", "provider", "model", "ranking", "notes", "evidence", "corrections", "waiting", "hits"),
    }
    assert data["query"] == "which port does staging answer on"
    assert (data["mode"], data["provider"], data["ranking"]) == ("hybrid", "static", "truekeep")
    assert len(data["hits"]) == 2
    hit = data["hits"][0]
    assert set(hit) >= {
        *("path", "first", "last", "citation", "text", "score", "parts", "store", "day", "age_days", "heading"),
        *("repository", "matched", "also"),
    }
    assert hit["path"] == "memory/cards/staging-proxy.md"
    assert hit["citation"].startswith("memory/cards/staging-proxy.md#L")


@pytest.mark.slow
def test_json_of_index_and_get(memory: Place) -> None:
    data = cli(memory, "index")
    assert (data["exit"], data["schema"]) == (0, "truekeep.index/1")
    assert {"files", "chunks", "changed", "removed", "embedded", "transcripts", "provider", "model", "notes"} <= set(
        data
    )
    assert data["files"] == data["changed"] == 6
    assert data["embedded"] == data["chunks"]
    data = cli(memory, "get", "memory/cards/staging-proxy.md#L2-L3")
    assert (data["exit"], data["schema"]) == (0, "truekeep.get/1")
    assert (data["first"], data["last"], data["next"], data["total"]) == (2, 3, 4, 7)
    assert data["text"] == "topic: Proxy in front of staging\ncategory: setup"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (("search", " "), 3, "bad-input"),
        (("search", "x", "--since", "soon"), 3, "bad-input"),
        (("search", "x", "--since", "9999999999d"), 3, "bad-input"),
        (("search", "x", "--store", "attic"), 2, "usage"),
        (("search", "x", "-n", "0"), 2, "usage"),
        (("search", "x", "--limit", "0"), 2, "usage"),
        (("search",), 2, "usage"),
        (("get", "nothing"), 3, "not-found"),
        (("get", "/etc/passwd"), 3, "not-memory"),
        (("get", "staging-proxy", "--from", "99"), 3, "not-found"),
        (("get", "staging-proxy", "--from", "0"), 2, "usage"),
        (("get", "transcripts/claude/x.jsonl"), 3, "not-found"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_every_no_has_its_code(memory: Place, arguments: tuple[str, ...], exit_code: int, code: str) -> None:
    data = cli(memory, *arguments)
    assert data["schema"] == "truekeep.error/1"
    assert (data["exit"], data["error"]["code"]) == (exit_code, code)


@pytest.mark.slow
def test_no_workspace(tmp_path: Path) -> None:
    for command in (("search", "x"), ("get", "x"), ("index",)):
        assert run_cli(*command, "-w", str(tmp_path / "none")).returncode == 6


@pytest.mark.slow
def test_what_a_person_reads(memory: Place) -> None:
    where = ("-w", str(memory.workspace))
    done = run_cli("search", "certifcate", "of", "the", "gateway", "--explain", *where)
    assert done.returncode == 0
    assert "1. memory/2026-11-10.md#L" in done.stdout
    assert "why: " in done.stdout
    assert "certifcate" in done.stderr
    done = run_cli("search", "quagga", "--store", "transcripts", *where)
    assert (done.returncode, done.stdout.strip()) == (0, "no matches")
    remember(memory, "memory/projects/long.md", "line\n" * 500)
    done = run_cli("get", "memory/projects/long.md", "--from", "100", "--lines", "20", *where)
    assert done.stdout == "line\n" * 20
    assert "lines 100 to 119 of 500, go on with --from 120" in done.stderr
    done = run_cli("index", *where)
    assert done.returncode == 0
    assert "indexed" in done.stdout
    for command in ("search", "get", "index"):
        help_text = run_cli(command, "--help").stdout
        assert "Example: truekeep" in help_text


@pytest.mark.slow
def test_nothing_speaks_to_the_terminal(memory: Place) -> None:
    evil = "The \x1b]0;owned\x07 otter \u202e lives \x9b31m here\r\nand \x07 rings\n"
    remember(memory, "memory/cards/otter\x1b[31m.md", evil)
    where = ("-w", str(memory.workspace))
    for command in (("search", "otter"), ("get", "memory/cards/otter\x1b[31m.md")):
        done = run_cli(*command, *where)
        assert done.returncode == 0, done.stderr
        for character in "\x1b\x07\x9b\u202e":
            assert character not in done.stdout
            assert character not in done.stderr


@pytest.mark.slow
def test_since_takes_days_and_ages(stores: Place) -> None:
    for since in ("2026-11-01", "30d", "4w", "1m"):
        found = {hit["path"] for hit in cli(stores, "search", "walrus", "-n", "50", "--since", since)["hits"]}
        assert "memory/2026-06-01.md" not in found
        assert "memory/2026-11-01.md" in found
    found = {hit["path"] for hit in cli(stores, "search", "walrus", "-n", "50", "--since", "1y")["hits"]}
    assert "memory/2026-06-01.md" in found


@pytest.mark.slow
def test_the_background_goes_on_where_search_stops(memory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose index is for another embedder starts a rebuild that outlives it."""
    reindex(memory)
    memory.configure(WORDS_ONLY)
    monkeypatch.delenv("TRUEKEEP_NO_BACKGROUND")
    inode = index_file(memory).stat().st_ino
    data = cli(memory, "search", "which port does staging answer on")
    assert data["hits"][0]["path"] == "memory/cards/staging-proxy.md"
    assert any("rebuilt" in note for note in data["notes"])
    assert wait_until(lambda: index_file(memory).stat().st_ino != inode)
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    data = cli(memory, "search", "which port does staging answer on")
    assert (data["mode"], data["provider"]) == ("words", "none")
    assert data["hits"][0]["path"] == "memory/cards/staging-proxy.md"


def test_what_is_left_is_not_said_to_go_on_where_nothing_may(memory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    reindex(memory)
    for number in range(3):
        remember(memory, f"memory/cards/late-{number}.md", f"# Late {number}\n\nThe otter swims at {number}.\n")
    monkeypatch.setattr("truekeep.search.service.TIME_TO_REFRESH", -1.0)
    monkeypatch.setattr("truekeep.search.refresh._BATCH_FILES", 1)
    (note,) = [note for note in search(memory, "otter").notes if "not in the index yet" in note]
    assert "`truekeep index` indexes them" in note
    assert "background" not in note


def test_an_index_for_words_alone_fits_settings_for_words_alone(memory: Place) -> None:
    memory.configure(WORDS_ONLY)
    reindex(memory)
    assert search(memory, "staging").notes == ()
    assert reindex(memory).notes == ()


def test_searching_loads_little() -> None:
    """A new process pays for what it imports."""
    heavy = {"numpy", "httpx", "ctypes", "hashlib", "re2", "truekeep.search.refresh", "truekeep.text.secrets.scanner"}
    script = "import sys, truekeep.interfaces.cli.search, truekeep.workspace.search, truekeep.search.service;"
    script += f"print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_search_that_finds_nothing_new_loads_little(memory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what reads and cuts up files, nor what writes them."""
    monkeypatch.setattr("truekeep.memory.file_scan.CLOCK_TICK_NS", -(1 << 62))  # as if all was written long ago
    reindex(memory)
    script = "import sys; from truekeep.__main__ import main\ntry: main()\nexcept SystemExit: pass\n"
    script += "print(sorted({'numpy', 'ctypes', 'truekeep.search.refresh'} & set(sys.modules)))"
    command = [sys.executable, "-c", script, "search", "-w", str(memory.workspace), "staging"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "staging" in done.stdout.lower()
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_was_indexed_while_it_was_written_did_not_change(memory: Place) -> None:
    """The next search reads it again, but nothing says that it is another one."""
    remember(memory, "memory/2026-08-02.md", "# Log\n\nWritten in this very moment.\n")
    with memory.open() as workspace:
        workspace.search.index()
        assert workspace.search.status().waiting == 0
        remember(memory, "memory/2026-08-02.md", "# Log\n\nWritten again, and longer.\n")
        assert workspace.search.status().waiting == 1
