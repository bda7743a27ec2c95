"""Settings: what is set is used, comments stay, and what cannot be used is never written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import Place
from truekeep.core.config import parse_config, render_config
from truekeep.core.errors import BadInput, BadSetup, EditedSince, NotCanonical, NotFound
from truekeep.workspace.settings import _edit, setting_names


@pytest.fixture
def place(place: Place) -> Place:
    """A workspace with the settings that `truekeep init` writes."""
    (place.workspace / ".truekeep/config.toml").write_text(render_config((str(place.repo.parent / "*"),)))
    return place


def text_of(place: Place) -> str:
    return (place.workspace / ".truekeep/config.toml").read_text()


def test_what_is_set_is_used_and_every_other_line_stays(place: Place) -> None:
    before = text_of(place).splitlines()
    with place.open() as opened:
        opened.settings.set("limits.review_days", ["45"])
        opened.settings.set("verify.ask.workflow", ["n8n-has", "{id}"])
        opened.settings.set("policy.task-state", ["review"])
    with place.open() as opened:
        assert opened.config.limits.review_days == 45
        assert opened.config.verify.ask["workflow"] == ("n8n-has", "{id}")
        assert opened.config.policy_for("task-state") == "review"
        assert opened.settings.get("limits.review_days").is_set
        assert not opened.settings.get("limits.processed_days").is_set
    after = text_of(place).splitlines()
    assert [line for line in after if line in before] == before


def test_unset_takes_back_what_set_wrote(place: Place) -> None:
    before = text_of(place)
    with place.open() as opened:
        for key, words in (
            ("limits.review_days", ["45"]),
            ("verify.ask.workflow", ["has", "{id}"]),
            ("verify.ask.job", ["has", "{id}"]),
            ("writers.opencode", [".opencode/memory-handoffs"]),
            ("recall.transcripts", ["false"]),
            ("decay.potential", ["0.5"]),
        ):
            opened.settings.set(key, words)
        for key in ("verify.ask.job", "verify.ask.workflow", "limits.review_days", "writers.opencode"):
            opened.settings.unset(key)
        assert opened.settings.unset("recall.transcripts").after == opened.settings.get("recall.transcripts")
        opened.settings.unset("decay.potential")
        with pytest.raises(NotFound):
            opened.settings.unset("decay.potential")
    assert text_of(place) == before


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("limits.review_days", ["soon"]),
        ("limits.review_days", ["-1"]),
        ("limits.review_days", ["1", "2"]),
        ("recall.transcripts", ["maybe"]),
        ("recall.embedder", ["magic"]),
        ("decay.potential", ["0.95"]),  # above decay.structural
        ("policy.task-state", ["perhaps"]),
        ("policy.secret", ["promote"]),  # may not be promoted
        ("writers.x", ["../outside"]),
        ("verify.ask.job", ["no-placeholder"]),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(place: Place, key: str, words: list[str]) -> None:
    before = text_of(place)
    with place.open() as opened, pytest.raises(BadInput, match=key.replace(".", r"\.")):
        opened.settings.set(key, words)
    assert text_of(place) == before


@pytest.mark.parametrize("key", ["limits.review_day", "nothing", "writers.", "writers.a.b", "limits", "warnings", ""])
def test_an_unknown_setting_is_said(place: Place, key: str) -> None:
    with place.open() as opened:
        for act in (lambda: opened.settings.get(key), lambda: opened.settings.set(key, ["1"])):
            with pytest.raises(NotFound, match="there is no setting"):
                act()


def test_a_file_that_cannot_be_used_is_left_for_its_owner(place: Place) -> None:
    path = place.workspace / ".truekeep/config.toml"
    with place.open() as opened:
        path.write_text("repositories = [\n")
        with pytest.raises(BadSetup):
            opened.settings.set("limits.review_days", ["45"])
        assert path.read_text() == "repositories = [\n"
        assert opened.settings.read_text() == "repositories = [\n"  # what `config edit` opens


def test_an_edit_meanwhile_is_not_overwritten(place: Place) -> None:
    with place.open() as opened:
        before = opened.settings.read_text()
        (place.workspace / ".truekeep/config.toml").write_text("# mine\n")
        with pytest.raises(EditedSince):
            opened.settings.replace_text(before, "# yours\n")
    assert text_of(place) == "# mine\n"


def test_a_link_is_not_followed(place: Place) -> None:
    outside = place.workspace.parent / "outside.toml"
    outside.write_text("")
    path = place.workspace / ".truekeep/config.toml"
    path.unlink()
    path.symlink_to(outside)
    with place.open() as opened, pytest.raises(BadSetup, match="symbolic link"):
        opened.settings.set("limits.review_days", ["45"])
    assert outside.read_text() == ""


def test_only_the_canonical_host_changes_settings(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
    before = text_of(place)
    with place.open() as opened, pytest.raises(NotCanonical):
        opened.settings.set("limits.review_days", ["45"])
    assert text_of(place) == before


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=3))
def test_any_list_is_read_back_as_it_was_given(values: list[str]) -> None:
    changed = _edit(render_config(("~/repos/*",)), "repositories", values)
    assert list(parse_config(changed, where="x").repositories) == values


def test_every_key_of_the_template_can_be_named() -> None:
    assert {"repositories", "limits.review_days", "sync.private", "policy.task-state"} <= set(setting_names())


def test_a_table_that_a_setting_began_goes_with_its_last_key(place: Place) -> None:
    path = place.workspace / ".truekeep/config.toml"
    path.write_text("# mine\nrepositories = []\n")
    with place.open() as opened:
        opened.settings.set("limits.review_days", ["45"])
        opened.settings.unset("limits.review_days")
        assert path.read_text().rstrip() == "# mine\nrepositories = []"
