"""The bench of check: labels, and the links that it calls broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.check import repositories
from bench.check.labels import FoundAlarm, Label, judge, load_labels, save_labels, score
from bench.check.repositories import HALVES, PublicRepository, load_repositories
from bench.check.run import at_least, leads_somewhere


def _alarm(claim: str, *, line: int = 3, confidence: str = "high") -> FoundAlarm:
    return FoundAlarm(path="README.md", line=line, claim=claim, kind="path", verdict="gone", confidence=confidence)


def test_a_label_is_about_its_line_and_claim() -> None:
    labels = [
        Label(path="README.md", line=3, claim="src/a.py", kind="path", right=True, by="reading"),
        Label(path="README.md", line=3, claim="a.py", kind="path", right=False),
    ]
    assert judge(_alarm("src/a.py"), labels) is True
    assert judge(_alarm("a.py"), labels) is False
    assert judge(_alarm("src/a.py", line=4), labels) is None
    found = score([_alarm("src/a.py"), _alarm("b.py")], labels)
    assert (found.right, found.wrong, found.unlabelled, found.found, found.known) == (1, 0, 1, 1, 1)


def test_labels_are_kept_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repositories, "HERE", tmp_path)
    one = PublicRepository(repository="me/app", commit="0" * 40, half="tuning", language="Go")
    last = Label(path="b.md", line=1, claim="x", kind="path", right=False)
    first = Label(path="a.md", line=9, claim="y", kind="symbol", right=True, by="reading")
    save_labels(one, [last, first])
    assert load_labels(one) == [first, last]


def test_every_repository_has_a_commit_and_a_half() -> None:
    found = load_repositories()
    assert len(found) == len({one.repository for one in found}) >= 24
    assert {one.half for one in found} == set(HALVES)
    assert all(len(one.commit) == 40 for one in found)
    assert len({one.language for one in found}) >= 6


def test_settings_include_stricter_alarms() -> None:
    alarms = [_alarm("a"), _alarm("b", confidence="low")]
    assert at_least(alarms, "high") == at_least(alarms, "medium") == alarms[:1]
    assert at_least(alarms, "low") == alarms


def test_links_lead_to_files_folders_and_pages() -> None:
    known = {"docs", "docs/a.md", "docs/b", "docs/b/index.md", "src/x.py"}
    assert all(
        leads_somewhere("docs/a.md", target, known) for target in ("b/", "../src/x.py", "a.html", "/docs/a.md#top")
    )
    assert not leads_somewhere("docs/a.md", "src/x.py", known)
