"""Frontmatter: the same values as a YAML parser on what cards use, every byte kept, nothing hostile taken."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.memory.frontmatter import (
    _NEEDS_QUOTES,
    _NOT_TEXT,
    _WORDS,
    MAX_CHARS,
    Frontmatter,
    InvalidFrontmatter,
    quote,
    split_frontmatter,
)

KEYS = st.from_regex(r"[a-z_][a-z0-9_.-]{0,10}", fullmatch=True)
PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)


def parse(text: str) -> Frontmatter:
    front, _ = split_frontmatter(text)
    assert front is not None
    return front


@pytest.mark.slow
@given(st.dictionaries(KEYS, st.lists(PLAIN, max_size=4).map(" ".join), max_size=5))
@settings(max_examples=300, deadline=None)
def test_what_we_write_other_yaml_readers_read(values: dict[str, str]) -> None:
    front = Frontmatter()
    for key, value in values.items():
        front = front.with_text(key, value)
    flat = {key: " ".join(value.split()) for key, value in values.items()}
    assert {key: front.text(key) for key in values} == flat
    again = parse(front.render())
    assert {key: again.text(key) for key in values} == flat
    body = front.render().removeprefix("---\n").removesuffix("---\n")
    assert (yaml.load(body, Loader=yaml.BaseLoader) or {}) == flat


@pytest.mark.slow
@given(st.dictionaries(KEYS, st.lists(st.from_regex(r"[a-z][a-z0-9 .-]{0,8}[a-z]", fullmatch=True)), max_size=4))
@settings(max_examples=200, deadline=None)
def test_lists_are_read_as_yaml_reads_them(values: dict[str, list[str]]) -> None:
    flow = "".join(f"{key}: [{', '.join(items)}]\n" for key, items in values.items())
    block = "".join(f"{key}:\n" + "".join(f"  - {item}\n" for item in items) for key, items in values.items())
    assert {key: list(parse(f"---\n{flow}---\n").items(key)) for key in values} == values
    assert {key: list(parse(f"---\n{block}---\n").items(key)) for key in values} == values


@pytest.mark.parametrize(
    "text",
    [
        "---\ntopic: a\n# a comment\n\nnested:\n  deep: [1, {a: b}]\n  more: |\n    text\ntags:\n- x\n---\nbody\n",
        "---\n# only a comment\n---\n",
        "---\n---\n",
        "---\n'quoted key': \"a: b\"\n---\n",
    ],
)
def test_rendering_gives_back_every_byte(text: str) -> None:
    front, body = split_frontmatter(text)
    assert front is not None
    assert front.render() + body == text


def test_setting_a_key_changes_only_its_lines() -> None:
    text = "---\na: 1\nupdated: 2020-01-01  # old\nz:\n  - q\n---\n"
    assert parse(text).with_text("updated", "x").render() == text.replace("2020-01-01  # old", "x")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("no", "no"),
        ("0123", "0123"),
        ("12:30:00", "12:30:00"),
        ("1e3", "1e3"),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        ("9" * 5000, "9" * 5000),
        ("Foo: bar baz", "Foo: bar baz"),
        ('"a \\"b\\" c"  # comment', 'a "b" c'),
        ("'it''s'", "it's"),
        ("plain # comment", "plain"),
    ],
)
def test_scalars_stay_text(value: str, text: str) -> None:
    assert parse(f"---\nkey: {value}\n---\n").text("key") == text


@pytest.mark.parametrize(
    "lines",
    [
        "a: &anchor x",
        "a: *alias",
        "a: !!python/object/apply:os.system [x]",
        "<<: *base",
        "a: [x, *y]",
        "a: {b: !tag c}",
        "a:\n  - *b",
        "a:\n  b: &c d",
        "a: 1\na: 2",
        "no colon here",
        "- a list",
        "a: [[[[*x]]]]",
    ],
)
def test_what_is_not_safe_is_refused_with_its_line(lines: str) -> None:
    with pytest.raises(InvalidFrontmatter) as error:
        split_frontmatter(f"---\n{lines}\n---\n")
    assert error.value.line >= 2


@pytest.mark.parametrize(
    "text",
    [
        "---\na: 1\nnever closed",
        "---\n" + "a: " + "[" * 100_000 + "\n---\n",
        "---\n" + "".join(f"k{n}: v\n" for n in range(100_000)) + "---\n",
        "---\n" + "x" * (MAX_CHARS + 100) + "\n---\n",
    ],
)
def test_open_or_huge_frontmatter_is_refused(text: str) -> None:
    with pytest.raises(InvalidFrontmatter):
        split_frontmatter(text)


@pytest.mark.parametrize(
    "text", ["", "--", "----\na: b\n---\n", "text\n---\na: b\n---\n", "+++\na = 1\n+++\n", "---x\n---\n"]
)
def test_other_starts_are_no_frontmatter(text: str) -> None:
    assert split_frontmatter(text) == (None, text)


def test_only_the_first_block_counts() -> None:
    front, body = split_frontmatter("---\na: 1\n---\ntext\n---\nb: 2\n---\n")
    assert front is not None
    assert front.names() == ("a",)
    assert body == "text\n---\nb: 2\n---\n"


@pytest.mark.parametrize("value", ["", "a", "- a", "a: b", "# x", "it's", '"', "[x]", "yes", "&a", "a #b", "x:"])
def test_quoted_text_survives(value: str) -> None:
    assert yaml.load(f"k: {quote(value)}", Loader=yaml.BaseLoader) == {"k": value}


@pytest.mark.slow
@given(
    st.text(alphabet="aZ9é٣ -_.:#~\n", max_size=8) | st.sampled_from(["yes", "No", "null", "1e5", "e5", "0x1f", "x"])
)
@settings(max_examples=400, deadline=None)
def test_what_is_plain_at_a_glance_needs_no_quotes(value: str) -> None:
    flat = " ".join(value.split())
    needs = re.search(_NEEDS_QUOTES, flat) or flat.casefold() in _WORDS or re.match(_NOT_TEXT, flat)
    assert quote(value).startswith('"') == bool(needs)
    assert Frontmatter().with_text("key", value).text("key") == flat
