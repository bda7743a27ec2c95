"""Text, and where in it something stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from truekeep.verify.manifests.limits import LONGEST_LINE


class UnreadableManifest(ValueError):
    """This file is not what its name says."""


class Pattern:
    """A pattern that is compiled when it is first used: a repository needs few of them, and all would take 40 ms."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        return self._compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        return self._compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:
        return self._compiled.findall

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self._compiled.sub


class Places:
    """Line numbers of offsets; quick as long as the offsets mostly grow."""

    def __init__(self, text: str) -> None:
        self.text, self._at, self._line = text, 0, 1

    def line(self, at: int) -> int:
        if at >= self._at:
            self._line += self.text.count("\n", self._at, at)
        else:
            self._line -= self.text.count("\n", at, self._at)
        self._at = at
        return self._line


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers. Of a very long one only the beginning, so that no pattern can run away on it."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line[:LONGEST_LINE].rstrip("\r")


def matching_lines(pattern: Pattern, text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines that begin with the pattern."""
    match_at = pattern.match
    for number, line in numbered_lines(text):
        match = match_at(line)
        if match:
            yield number, match
