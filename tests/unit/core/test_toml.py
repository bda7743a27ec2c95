"""TOML that is read without a parser says what the parser says."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekeep.core.config import render_config
from truekeep.core.errors import BadInput
from truekeep.core.toml import _parse_plain, parse_toml, render_text
from truekeep.handoffs.sync.routes import Route, read_routes, write_routes
from truekeep.integrations.schedule.config import ScheduleSettings, read_settings, write_settings
from truekeep.search.expired import DecayRecord, render_decayed

LINES = [
    "", "# c", "a = 1", "b = 0", "c = 007", "d = -1", "e = 1_000", "f = 1.5", 'g = "x"', 'h = ""', 'i = "\\n"',
    'j = "a"b"', "k = 'x'", "l = true", "m = False", 'n = ["a", "b"]', "o = []", 'p = ["a",]', 'q = ["a,b"]',
    'r = ["a" "b"]', "s = [,]", 't = [["a"]]', "u = [1]", "[v]", "[w.x]", "[[y]]", "[ z ]", "a.b = 1", '"q" = 1',
    "a = 2", "[a]", "[v]", "x =", "= 1", "junk", 'g = "x" # c', 'é = "x"', '_-1 = "é 日"', "\tt = 1", "ä = 1\r",
    "d = 2026-11-15", '""', "[]", "z = ]", "z = [",
    "n = 0.8", "n = 00.8", "n = 1.", "n = .5", "n = 1.5.2", "n = 0.50", "n = 1e5", "n = 1.5e5", "n = 1._5", "n = ١.٥",
]  # fmt: skip


def outcome(read: object, text: str) -> object:
    try:
        return read(text)  # type: ignore[operator]
    except ValueError as error:
        return str(error)


@given(st.lists(st.sampled_from(LINES), max_size=6).map("\n".join))
def test_it_says_what_the_parser_says(text: str) -> None:
    assert outcome(parse_toml, text) == outcome(tomllib.loads, text)


@given(st.text(alphabet='ab=[]",# \n\\1-_.\x85\ufeff', max_size=30))
def test_whatever_it_is_given(text: str) -> None:
    assert outcome(parse_toml, text) == outcome(tomllib.loads, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'format = 1\nhost = "me"\n',
        render_config(()),
        render_config(("~/a", "/b c")),
        render_decayed(DecayRecord(date(2026, 5, 1))),
    ],
)
def test_what_truekeep_writes_needs_no_parser(text: str) -> None:
    assert _parse_plain(text) == tomllib.loads(text)


@given(st.text())
def test_any_text_is_read_as_it_was_written(text: str) -> None:
    assert tomllib.loads(f"a = {render_text(text)}") == {"a": text}
    assert tomllib.loads(render_config((text,)))["repositories"] == [text]


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(BadInput, match=r"n\\xff is not UTF-8"):
        render_text("n\udcff")


def test_routes_and_timers_of_folders_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One name with an emoji made the whole file unreadable, and every route of it."""
    name = "/home/me/\U0001f4c1 \x7f\n\"'"
    route = Route("laptop", "rsync", {"host": name, "repos": (name,)})
    write_routes(tmp_path, {"laptop": route})
    assert read_routes(tmp_path) == {"laptop": route}
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "truekeep").mkdir()
    agreed = ScheduleSettings(every=30, system="cron", quiet_hours=None, workspace=name, installed_at="", made=(name,))
    write_settings("truekeep", agreed)
    assert read_settings("truekeep") == agreed
