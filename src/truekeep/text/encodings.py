"""Finds and decodes runs of base64, hexadecimal digits, percent signs and HTML entities in text, one level deep."""

from __future__ import annotations

import base64
import binascii
import html
import re
import urllib.parse
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from truekeep.text.linear_regex import compile_linear

_RUNS = (
    r"(?P<base64>[A-Za-z0-9+/_-]{24,}={0,2})|(?P<percent>(?:%[0-9A-Fa-f]{2}){8,})"
    r"|(?P<entities>(?:&#[0-9]{2,4};|&#[xX][0-9A-Fa-f]{2,4};){8,})"
)
_HEX = re.compile(rb"[0-9a-fA-F]+")
_LONGEST_RUN = 16_384
_PROBE = 32
_MAX_RUNS = 400  # of a text
_PRINTABLE = bytes(range(32, 127)) + b"\t\r\n"


class DecodedRun(NamedTuple):
    """What a run of a text says, and where it is."""

    start: int
    end: int
    text: bytes


@cache
def _runs() -> Any:
    return compile_linear(_RUNS)


def may_be_encoded(data: bytes) -> bool:
    return _runs().search(data) is not None


def iter_decoded(data: bytes) -> Iterator[DecodedRun]:
    """The runs that are plain text when they are decoded."""
    for _, run in zip(range(_MAX_RUNS), _runs().finditer(data), strict=False):
        if text := _decode(run.group()[:_LONGEST_RUN], run.lastgroup or ""):
            yield DecodedRun(run.start(), run.end(), text)


def _decode(run: bytes, how: str) -> bytes:
    if how == "percent":
        return urllib.parse.unquote_to_bytes(run)
    if how == "entities":
        return html.unescape(run.decode("ascii")).encode("utf-8", "replace")
    decoders: tuple[Callable[[str], bytes], ...] = (bytes.fromhex,) if _HEX.fullmatch(run) else ()
    for decode in (*decoders, _from_base64):
        if _is_text(_try(decode, run[:_PROBE])) and _is_text(text := _try(decode, run)):
            return text
    return b""


def _try(decode: Callable[[str], bytes], run: bytes) -> bytes:
    try:
        return decode(run.decode("ascii"))
    except (ValueError, binascii.Error):
        return b""


def _from_base64(run: str) -> bytes:
    whole = run.rstrip("=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    return base64.b64decode(whole + "=" * (-len(whole) % 4), altchars=b"-_" if {"-", "_"} & set(run) else b"+/")


def _is_text(data: bytes) -> bool:
    return len(data) >= _PROBE // 2 and not data.translate(None, _PRINTABLE)
