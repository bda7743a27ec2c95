"""Which text around a claim tells of another time, and that hostile text costs no more than its size."""

from __future__ import annotations

import pytest

from truekeep.check.records import is_record
from truekeep.check.told_as_past import is_told_as_past, titles_above
from truekeep.verify.claims.extract import extract_claims


def is_past(text: str) -> bool:
    (claim,) = [claim for claim in extract_claims(text).claims if claim.kind == "path"]
    return is_told_as_past(text.split("\n"), claim, titles_above(text)[claim.line - 1])


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Removed in 2.0", True),
        ("2.1.0", True),
        ("v0.3 (2025)", True),
        ("Before", True),
        ("Roadmap", True),
        ("Checks", False),
        ("Before you commit", False),
        ("Setup with Python 3.11", False),
        ("When you are done", False),
    ],
)
def test_headings(heading: str, expected: bool) -> None:
    assert is_past(f"# Guide\n\n## {heading}\n\nRun `scripts/lint.sh` for all files.\n") is expected


def test_titles_are_of_the_prose_and_not_of_code() -> None:
    text = "# Guide\n\n## Removed\n\n```sh\n## Setup\nrun it\n```\n\n### How\n\ntext\n\n## Now\n\ntext\n"
    titles = titles_above(text)
    assert titles[5] == titles[6] == ("Removed",)
    assert titles[11] == ("Removed", "How")
    assert titles[15] == ("Now",)


def test_a_sentence_is_read_as_far_as_it_is_near() -> None:
    wrapped = "The file\n`scripts/lint.sh`\nwas removed in spring.\n"
    assert is_past(wrapped)
    far = "It was removed\n" + "word " * 300 + "\n`scripts/lint.sh` runs\n" + "word " * 300 + "\nand was removed.\n"
    assert not is_past(far)


def test_a_line_of_colons_is_read_once() -> None:
    """A pattern with overlapping repeats would not come back from this."""
    text = "status" + ": " * 20_000 + "x\n" + "date" + " :" * 20_000 + "y\n"
    assert not is_record("docs/guide.md", text)
    assert is_record("docs/guide.md", "# Cache\n\n**Status**: Draft\n")
    assert is_record("docs/guide.md", "# Cache\n\n- Date: 2026-01-02\n")
