"""The index: one line per card, found wherever a person put it, and no other byte changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.memory.card import index_line
from truekeep.memory.memory_index import Pointers, linked_cards, pointer_lines


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


@pytest.mark.slow
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


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(
            [b"## Cards\n", b"](", b"memory/cards/", b"a.md", b")", b"[[", b"]]", b"\n", b"\r\n", b"<", b"```"]
        )
    ),
    st.lists(st.sampled_from(["a.md", "b.md", "c.md"]), min_size=1),
)
@settings(max_examples=300, deadline=None)
def test_what_is_known_of_the_links_is_what_a_reader_finds(pieces: list[bytes], names: list[str]) -> None:
    pointers = Pointers(b"".join(pieces))
    for name in names:
        pointers.point_at(name, "topic", 0)
    assert pointers.linked() == linked_cards(pointers.render())


def test_an_unclosed_fence_does_not_make_a_heading_a_run() -> None:
    data = b"# M\n```\nnever closed\n"
    for name in ("a.md", "b.md", "c.md"):
        data = point(data, name)
    assert data.count(b"## Cards") == 1


def drop(data: bytes, name: str = "a.md", *, but_one: bool = False) -> tuple[bytes, list[str]]:
    pointers = Pointers(data)
    left = pointers.update_lines(0, once=(name,)).get(name, []) if but_one else pointers.drop(name, 0)
    text = data
    for _, splice in pointers.splices():
        assert text[splice.offset : splice.offset + len(splice.removed)] == splice.removed
        text = text[: splice.offset] + splice.inserted + text[splice.offset + len(splice.removed) :]
    assert text == pointers.render()
    return text, left


@pytest.mark.parametrize(
    "line",
    [
        b"- [Proxy in front of staging](memory/cards/a.md)",
        b"* [x](./memory/cards/a.md#part)",
        b"12. [x](<cards/a.md>)",
        b"  - **[x \\[y\\] \xc3\xa9](memory/cards/a.md)**",
        b"- [[a]]",
        b"- [ ] [[memory/cards/a.md|the proxy]].",
    ],
)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_pure_pointer_is_dropped_and_nothing_else(line: bytes, newline: bytes) -> None:
    before = newline.join([b"# Memory", b"", b"## Cards", b"", b"- [b](memory/cards/b.md)", b""])
    after = newline.join([b"- [aa](memory/cards/aa.md)", b"", b"## Mine", b"see a.md", b""])
    assert drop(before + line + newline + after) == (before + after, [])
    assert drop(before + line + newline + line) == (before, [])
    assert drop(line) == (b"", [])


@pytest.mark.parametrize(
    "text",
    [
        b"- see [the proxy](memory/cards/a.md) before a deploy\n",
        b"- [x](memory/cards/a.md): never on Fridays\n",
        b'- [x](memory/cards/a.md "never on Fridays")\n',
        b"- [x](memory/cards/a.md), [y](memory/cards/b.md)\n",
        b"| [a](cards/a.md) | x |\n",
        b"- [x](memory/cards/a.md)\n  - never on Fridays\n",
        b"- [x](memory/cards/a.md)\n\n  never on Fridays\n",
        b"- [x](memory/cards/a.md)\nnever on Fridays\n",
        b"for this, see\n[[a]]\n\nmore\n",
    ],
)
def test_a_line_that_says_more_is_left_to_a_person(text: bytes) -> None:
    after, left = drop(b"# M\n\n" + text)
    assert after == b"# M\n\n" + text
    assert len(left) == 1
    assert "a" in left[0]


def test_what_a_fence_or_a_comment_shows_is_no_pointer() -> None:
    data = b"```\n- [x](memory/cards/a.md)\n```\n<!--\n- [x](memory/cards/a.md)\n-->\n- [x](memory/cards/a.md)\n"
    assert drop(data) == (data[: data.rindex(b"- [x]")], [])


def test_all_but_one_go() -> None:
    line, own = b"- [a](memory/cards/a.md)\n", b"- see [a](memory/cards/a.md) first\n"
    assert drop(line * 3, but_one=True) == (line, [])
    assert drop(line + own + line, but_one=True) == (own, [own.decode().strip()])
    assert drop(line, but_one=True) == (line, [])


def test_a_line_of_the_same_batch_is_dropped_and_can_be_added_again() -> None:
    pointers = Pointers(b"## Cards\n- [B](memory/cards/b.md)\n")
    pointers.point_at("a.md", "A", 1)
    assert pointers.drop("a.md", 2) == []
    assert pointers.splices() == []
    assert pointers.drop("b.md", 2) == []
    pointers.point_at("b.md", "B anew", 3)
    assert pointers.render() == b"## Cards\n\n- [B anew](memory/cards/b.md)\n"


_LINES = st.sampled_from(
    [b"- [a](memory/cards/a.md)", b"- [b](memory/cards/b.md)", b"- see [[a]]", b"  more", b"", b"```", b"## Cards"]
)


@pytest.mark.slow
@given(st.lists(_LINES, max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_dropping_keeps_every_other_byte(lines: list[bytes], newline: bytes, is_ended: bool) -> None:
    data = newline.join(lines) + (newline if is_ended else b"")
    pointers = Pointers(data)
    left = pointers.drop("a.md", 0)
    text = pointers.render()
    for _, splice in reversed(pointers.splices()):
        assert splice.removed.strip() == b"- [a](memory/cards/a.md)"
        text = text[: splice.offset] + splice.removed + text[splice.offset + len(splice.inserted) :]
    assert text == data
    assert drop(pointers.render()) == (pointers.render(), left)


@pytest.mark.parametrize(
    "line",
    [
        b"- [x](memory/cards/my%20card.md)",
        b"- [x](<memory/cards/my card.md>)",
        b"- [x](<cards/my%20card.md#part>)",
        b"- [x](memory/cards/my card.md)",
        b"- see [x](memory/cards/my%20card.md#part) first",
        b"- [[my card]]",
        b"- [[memory/cards/my card.md|mine]]",
    ],
)
def test_a_name_with_a_blank_is_found(line: bytes) -> None:
    data = b"# Memory\n\n" + line + b"\n"
    assert linked_cards(data) == {"my card.md"}
    assert point(data, "my card.md") == data


@pytest.mark.parametrize(
    "line",
    [
        b"[x](memory/cards/sub%2Fmy%20card.md)",
        b"[x](memory/cards/..%2Fa.md)",
        b'[x](memory/cards/my "card.md")',
        b"[x](memory/cards/.md)",
        b"[x](memory/cards/%00.md)",
        b"[[a\nb]]",
    ],
)
def test_what_names_no_card_is_no_link_to_one(line: bytes) -> None:
    assert linked_cards(line) == set()


# Any name that a file can have on a disk, as the survey takes it: UTF-8, no slash, not hidden.
_ODD = " ()<>[]|#%\\\"'?&é\n\r\x1b\u202e"
_NAMES = st.text(
    st.one_of(st.characters(codec="utf-8", exclude_characters="/\0"), st.sampled_from(_ODD)),
    min_size=1,
    max_size=20,
).filter(lambda name: name[0] != ".").map(lambda name: f"{name}.md")  # fmt: skip


@pytest.mark.slow
@given(st.lists(_NAMES, unique=True, max_size=5), st.text(st.characters(codec="utf-8"), max_size=30))
@settings(max_examples=400, deadline=None)
def test_our_line_is_found_again_whatever_a_card_is_called(names: list[str], topic: str) -> None:
    data = point(None, *names)
    assert linked_cards(data) == set(names)
    assert point(data, *names) == data
    lines = list(pointer_lines(data, lambda _: False))
    assert [(cards, is_pure) for _, _, cards, is_pure in lines] == [({name}, True) for name in names]
    pointers = Pointers(data)
    for name in names:
        pointers.drop(name, 0)
    assert linked_cards(pointers.render()) == set()
    assert b"memory/cards/" not in pointers.render()
    for name in names:
        line = index_line(name, topic)
        assert linked_cards(line.encode()) == {name}
        assert line.isprintable() or not line.isascii()
        assert "\n" not in line


@pytest.mark.slow
@given(st.lists(st.sampled_from([b"](", b"[[", b"cards/", b"a.md", b"<", b">", b"(", b")", b"\\", b" ", b"#", b"\n"])))
@settings(max_examples=300, deadline=None)
def test_links_are_told_in_any_text(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    for number, text, names, _ in pointer_lines(data, lambda _: True):
        assert names <= linked_cards(data)
        assert data.split(b"\n")[number - 1].decode().strip() == text


def test_words_in_double_brackets_that_are_no_card_may_be_anything() -> None:
    data = b"- [[Project Alpha]]\n- [[my card]]\n"
    assert [names for _, _, names, _ in pointer_lines(data, {"my card.md"}.__contains__)] == [{"my card.md"}]


_LETTERS = st.sampled_from("abcdef")


@pytest.mark.slow
@given(st.lists(_LETTERS, max_size=14), st.sets(_LETTERS), st.sets(_LETTERS), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=300, deadline=None)
def test_mending_all_at_once_is_mending_one_by_one(
    order: list[str], gone: set[str], once: set[str], end: bytes
) -> None:
    lines = [b"- [%s](memory/cards/%s.md)" % (name.encode(), name.encode()) for name in order]
    data = b"# M" + end * 2 + b"## Cards" + end * 2 + b"".join(line + end for line in lines)
    once -= gone
    retitled = {name for name in "abcdef" if name in order} - gone - once
    one, all_at_once = Pointers(data), Pointers(data)
    for name in sorted(gone):
        one.drop(f"{name}.md", 0)
    for name in sorted(once):
        one.update_lines(0, once=(f"{name}.md",))
    for name in sorted(retitled):
        one.retitle(index_line(f"{name}.md", name), index_line(f"{name}.md", "new"), 0)
    all_at_once.update_lines(
        0,
        gone={f"{name}.md" for name in gone},
        once={f"{name}.md" for name in once},
        retitled={index_line(f"{name}.md", name): index_line(f"{name}.md", "new") for name in retitled},
    )
    assert one.render() == all_at_once.render()
    for pointers in (one, all_at_once):
        text = data
        for _, splice in pointers.splices():
            assert text[splice.offset : splice.offset + len(splice.removed)] == splice.removed
            text = text[: splice.offset] + splice.inserted + text[splice.offset + len(splice.removed) :]
        assert text == pointers.render()
