"""The index: one line per card, found wherever a person put it, and no other byte changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.pointers import Pointers, linked_cards

NO_LINKS = [
    b"see memory/cards/a.md.",
    b"[see cards/a.md](memory/cards/b.md)",
    b"[x](https://x.example/cards/a.md)",
    b"[x\\](memory/cards/a.md)](memory/cards/b.md)",
]


def point(data: bytes | None, *names: str) -> bytes:
    pointers = Pointers(data)
    for entry, name in enumerate(names):
        pointers.point_at(name, name.removesuffix(".md"), entry)
    rendered, text = pointers.render(), data or b""
    for _, splice in pointers.splices():
        assert text[splice.offset : splice.offset + len(splice.removed)] == splice.removed
        text = text[: splice.offset] + splice.inserted + text[splice.offset + len(splice.removed) :]
    assert text == rendered
    return rendered


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"# Memory\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
        (b"", b"# Memory\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
        (b"# M\n", b"# M\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
        (b"# M", b"# M\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
        (b"# M\n\n## Cards\n", b"# M\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
        (b"## Cards\n\n- [b](memory/cards/b.md)\n\n## Later\nx\n",
         b"## Cards\n\n- [b](memory/cards/b.md)\n- [a](memory/cards/a.md)\n\n## Later\nx\n"),
        (b"## Cards\n- [b](memory/cards/b.md)", b"## Cards\n- [b](memory/cards/b.md)\n- [a](memory/cards/a.md)\n"),
        (b"# M\r\n## Cards\r\n- b\r\n", b"# M\r\n## Cards\r\n- b\r\n- [a](memory/cards/a.md)\r\n"),
        (b"```\n## Cards\n```\n", b"```\n## Cards\n```\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
        (b"\xff not utf-8\n", b"\xff not utf-8\n\n## Cards\n\n- [a](memory/cards/a.md)\n"),
    ],
)  # fmt: skip
def test_where_a_line_goes(before: bytes | None, after: bytes) -> None:
    assert point(before, "a.md") == after
    assert point(after, "a.md") == after


@pytest.mark.parametrize(
    "line",
    [
        b"- see [the proxy](memory/cards/a.md) for it",
        b"* [x](./memory/cards/a.md#part)",
        b"[[a]]",
        b"- [[a|the proxy]]",
        b"- [[memory/cards/a]]",
        b"| [a](cards/a.md) | x |",
        b"[a](<memory/cards/a.md>)",
        b'[a](memory/cards/a.md "title")',
        b"- [[a.md|Zed]]",
    ],
)
def test_a_link_is_found_wherever_a_person_put_it(line: bytes) -> None:
    data = b"# Memory\n\n## Mine\n" + line + b"\n"
    assert linked_cards(data) == {"a.md"}
    assert point(data, "a.md") == data


@pytest.mark.parametrize(
    "line",
    [
        b"[x](memory/cards/aa.md)",
        b"[x](memory/cards/a.md.md)",
        b"[[ab]]",
        b"a.md",
        b"cards/a.mdx",
        b"see memory/cards/a.md.",
        b"[see cards/a.md](memory/cards/b.md)",
        b"[x](https://x.example/cards/a.md)",
        b"[x\\](memory/cards/a.md)](memory/cards/b.md)",
    ],
)
def test_other_links_do_not_count(line: bytes) -> None:
    assert "a.md" not in linked_cards(line + b"\n")


def test_a_new_topic_changes_only_our_own_line() -> None:
    pointers = Pointers(b"## Cards\n- [Old](memory/cards/a.md)\n- mine: [B](memory/cards/b.md)\n")
    pointers.point_at("a.md", "New", 1, old_topic="Old")
    pointers.point_at("b.md", "New", 2, old_topic="B")
    assert pointers.render() == b"## Cards\n- [New](memory/cards/a.md)\n- mine: [B](memory/cards/b.md)\n"


def test_created_and_updated_in_one_batch_is_one_line() -> None:
    pointers = Pointers(None)
    pointers.point_at("a.md", "First", 1)
    pointers.point_at("a.md", "Second", 2, old_topic="First")
    assert pointers.render().count(b"cards/a.md") == 1
    assert b"[Second]" in pointers.render()


@given(st.binary(max_size=200), st.lists(st.from_regex(r"[a-z]{1,5}\.md", fullmatch=True), max_size=5))
@settings(max_examples=300, deadline=None)
def test_every_other_byte_stays(data: bytes, names: list[str]) -> None:
    rendered = point(data, *names)
    pointers = Pointers(data)
    for name in names:
        pointers.point_at(name, name.removesuffix(".md"), 0)
    for _, splice in reversed(pointers.splices()):
        rendered = rendered[: splice.offset] + splice.removed + rendered[splice.offset + len(splice.inserted) :]
    assert rendered == data
    for name in names:
        assert name in linked_cards(point(data, *names))


def test_an_unclosed_fence_does_not_make_a_heading_a_run() -> None:
    data = b"# M\n```\nnever closed\n"
    for name in ("a.md", "b.md", "c.md"):
        data = point(data, name)
    assert data.count(b"## Cards") == 1
