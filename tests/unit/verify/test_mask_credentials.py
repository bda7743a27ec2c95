"""Masks for briefs: the same as the scanner's, found once for each text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crash import SECRET
from truekeep.text.secrets import scanner
from truekeep.verify.cache import FactsCache
from truekeep.verify.mask_credentials import mask_shown

TEXTS = ("Nothing here.\n", f"A token={SECRET} in a line.\n\nAnd {SECRET} again.\n", "")


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_scanned_once_and_masked_the_same_every_time(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = FactsCache(str(tmp_path / "facts.sqlite"))
    masked = scanner.mask_lines(text)
    assert mask_shown(text, facts) == masked
    assert SECRET not in masked
    monkeypatch.setattr(scanner, "find_secrets", None)  # whoever calls it now fails
    assert mask_shown(text, facts) == masked
    facts.close()
    assert SECRET.encode() not in (tmp_path / "facts.sqlite").read_bytes()


def test_another_version_scans_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = FactsCache(str(tmp_path / "facts.sqlite"))
    text = f"token={SECRET}\n"
    monkeypatch.setattr("truekeep.verify.mask_credentials.__version__", "0")
    monkeypatch.setattr(scanner, "mask_lines", lambda given: given)
    monkeypatch.setattr(scanner, "find_secrets", lambda _: ())
    assert mask_shown(text, facts) == text
    monkeypatch.undo()
    assert SECRET not in mask_shown(text, facts)
    facts.close()
