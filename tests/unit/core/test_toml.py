"""TOML files are read as they were written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekeep.core.config import render_config
from truekeep.core.errors import BadInput
from truekeep.core.toml import render_text
from truekeep.handoffs.sync.routes import Route, read_routes, write_routes
from truekeep.integrations.schedule.config import ScheduleSettings, read_settings, write_settings


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
    agreed = ScheduleSettings(every=30, system="cron", hours=None, workspace=name, installed_at="", made=(name,))
    write_settings("truekeep", agreed)
    assert read_settings("truekeep") == agreed
