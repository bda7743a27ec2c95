"""The rule that `truekeep connect` puts into a user's file, between marks: it is truekeep's own text, not memory."""

from __future__ import annotations

import re

from truekeep.core.model import BEGIN_MARK, END_MARK

_RULE = re.compile(rf"{re.escape(BEGIN_MARK)} rule -->.*?{re.escape(END_MARK)} rule -->", re.DOTALL)
_SEEN = re.compile(r"\S")


def without_rule(text: str) -> str:
    """The text without truekeep's rule."""
    return _RULE.sub("", text) if BEGIN_MARK in text else text


def blank_rule(text: str) -> str:
    """The text with blanks in place of truekeep's rule, so that every other character keeps its place."""
    return _RULE.sub(lambda rule: _SEEN.sub(" ", rule[0]), text) if BEGIN_MARK in text else text
