"""Golden sets for `truekeep/text/phrases`: sentences with the expected answer, one file for each subject."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "samples" / "phrases"


def golden_sentences(subject: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{subject}.toml").read_text(encoding="utf-8"))
