"""Addresses that a server is told."""

from __future__ import annotations

import pytest

from truekeep.core.errors import BadInput
from truekeep.interfaces.listener import parse_public_url


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://Memory.example.com/", "https://memory.example.com"),
        ("https://memory.example.com:8443", "https://memory.example.com:8443"),
        ("http://localhost:8381", "http://localhost:8381"),
        ("http://[::1]:8381", "http://[::1]:8381"),
    ],
)
def test_a_public_address(given: str, url: str) -> None:
    assert parse_public_url(given) == url


@pytest.mark.parametrize(
    "given",
    [
        "memory.example.com", "https://", "https://x/path", "https://x?a=1", "https://x#a", "https://u:p@x",
        "https://x:99999", "http://memory.example.com", "ftp://x", "https://x y", 'https://x"', "https://[::1",
    ],
)  # fmt: skip
def test_no_public_address(given: str) -> None:
    with pytest.raises(BadInput):
        parse_public_url(given)
