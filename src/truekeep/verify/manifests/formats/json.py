"""JSON, with the lines of its members."""

from __future__ import annotations

from collections.abc import Iterable
from json import JSONDecoder
from typing import Any, NamedTuple

from truekeep.verify.manifests.limits import MOST_BRACKETS, MOST_COMMAS
from truekeep.verify.manifests.text import Pattern, Places, UnreadableManifest

_GAP = Pattern(r"[ \t\n\r]*+")


class Member(NamedTuple):
    key: str  # of a list, the place in it
    value: object
    line: int
    at: int  # where the value begins
    members: list[Member] | None = None  # of the value, when they were walked over already


class Json:
    """A walk over the members of JSON objects that knows their lines; the values are decoded at the speed of C."""

    def __init__(self, text: str) -> None:
        if text.count("{") + text.count("[") > MOST_BRACKETS or text.count(",") > MOST_COMMAS:
            raise UnreadableManifest("too many parts")
        self.text = text
        self.places = Places(text)
        # Numbers stay text: nobody calculates with them, and a long one would take its time.
        self._raw_decode = JSONDecoder(parse_int=str, parse_float=str, strict=False).raw_decode

    def _decode(self, text: str, at: int) -> tuple[Any, int]:
        try:
            return self._raw_decode(text, at)
        except ValueError as error:
            raise UnreadableManifest(f"line {self.places.line(at)}: {error}") from error

    def _gap(self, at: int) -> int:
        text = self.text
        while text.startswith((" ", "\n", "\t", "\r"), at):
            match = _GAP.match(text, at)
            at = match.end() if match else at
        return at

    def _walk(self, at: int, deep: tuple[str, ...] = ()) -> tuple[list[Member], int]:
        """The members of the value that begins here, and where it ends. Those of `deep` keys are walked in turn."""
        text, gap, decode, line = self.text, self._gap, self._decode, self.places.line
        at = gap(at)
        opening = text[at : at + 1]
        if opening not in ("{", "["):
            raise UnreadableManifest("it is not a JSON object")
        closing = "}" if opening == "{" else "]"
        members: list[Member] = []
        at = gap(at + 1)
        while not (text.startswith(closing, at) and not members):
            key, place = str(len(members)), line(at)
            if opening == "{":
                if not text.startswith('"', at):
                    raise UnreadableManifest(f"line {place}: a key is missing")
                key, at = decode(text, at)
                at = gap(at)
                if not text.startswith(":", at):
                    raise UnreadableManifest(f"line {place}: a colon is missing")
                at = gap(at + 1)
            if key in deep and text.startswith(("{", "["), at):
                inner, end = self._walk(at)
                value: object = {member.key: member.value for member in inner}
                members.append(Member(key, value, place, at, inner))
            else:
                value, end = decode(text, at)
                members.append(Member(key, value, place, at))
            at = gap(end)
            if text.startswith(closing, at):
                break
            if not text.startswith(",", at):
                raise UnreadableManifest(f"line {line(at)}: a comma is missing")
            at = gap(at + 1)
        return members, at + 1

    def top(self, *deep: str) -> dict[str, Member]:
        """The members of the whole; those that hold most of the file are best named as `deep`, to be read once."""
        return {member.key: member for member in self._walk(0, deep)[0]}

    def inside(self, member: Member | None) -> Iterable[Member]:
        """The members of a value; of doubled keys the last, as JSON readers have it. Nothing when it has none."""
        if member is None or not isinstance(member.value, (dict, list)):
            return ()
        members = self._walk(member.at)[0] if member.members is None else member.members
        return {inner.key: inner for inner in members}.values()


def string_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def find_in(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def keys_of(value: object) -> Iterable[str]:
    return value.keys() if isinstance(value, dict) else ()
