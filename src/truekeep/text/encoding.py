"""Decode the bytes of a file."""

from __future__ import annotations


def decode_text(raw: bytes) -> str | None:
    """The text of a file: UTF-8 without its byte-order mark, with plain newlines. None if it is not text."""
    if b"\0" in raw:
        return None
    try:
        text = raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text
