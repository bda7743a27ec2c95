"""The phrase files: languages are joined, and every file can be read and used."""

from __future__ import annotations

from pathlib import Path

import pytest

from truekeep.text import phrases
from truekeep.text.phrases import expand_names, load_phrases

FILES = sorted(Path(phrases.__file__).parent.glob("*.toml"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(phrases, "_FOLDER", str(tmp_path))
    monkeypatch.setattr(phrases, "load_phrases", load_phrases.__wrapped__)
    return tmp_path


def test_a_language_is_added_by_a_file(folder: Path) -> None:
    (folder / "greeting.en.toml").write_text("hello = '''\nhello(?: there)?\nhi\n  |hey\n'''\nnames = 'Ada Bob'\n")
    (folder / "greeting.de.toml").write_text("hello = 'hallo'\n[more]\nbye = 'tschüss'\n", encoding="utf-8")
    (folder / "other.en.toml").write_text("hello = 'other'\n")
    found = phrases.load_phrases("greeting")
    assert found.any_of("hello") == "hello(?: there)?|hi|hey|hallo"
    assert found.words("names") == {"Ada", "Bob"}
    assert found.rows("names") == [["Ada", "Bob"]]
    assert found.table("more") == {"bye": "tschüss"}


def test_names_are_expanded_inside_of_names() -> None:
    names = {"DAY": "monday|friday", "WHEN": "on {DAY}"}
    assert expand_names("due {WHEN}{0,2}", names) == "due (?:on (?:monday|friday)){0,2}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_tidy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    subject, language, _ = path.name.split(".")
    assert (path.with_name(f"{subject}.en.toml")).exists(), "a subject has an English file"
    assert language.isalpha()
    assert text.startswith("# ")
    assert [line for line in text.split("\n") if line != line.rstrip() or len(line) > 120] == []
