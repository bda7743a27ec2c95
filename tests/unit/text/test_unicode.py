"""Hidden characters are found, stripped, folded and shown; what writing needs is left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.text.unicode import (
    MAX_DECODED,
    HiddenRun,
    clip,
    find_hidden,
    fold,
    printable,
    reveal_hidden,
    strip_hidden,
)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"

# Random text rarely holds two characters that matter side by side, so most of the alphabet is made of those.
DELICATE = st.sampled_from(
    "aZ0#* \t\r\n.-\x00\x07\x0b\x1b[m\x7f\x85\x9b\u00ad\u00e9\u0301\u034f\u061c\u0645\u06cc\u0915\u094d\u115f\u17b4"
    "\u180b\u1820\u200b\u200c\u200d\u200e\u2028\u202e\u2060\u20e3\u2764\u2800\u3164\u4e00\ud800\udc80\udfff\ue000\ufdd0\ufe00"
    "\ufe0e\ufe0f\ufeff\uffa0\ufff9\ufffe\U0001d173\U0001f3f4\U0001f3fb\U0001f468\U000e0001\U000e0065\U000e0067\U000e007f"
    "\U000e0100\U000e01ef\U000f0000\U0010ffff\u0456\u03bf\uff49"
)
TEXT = st.one_of(st.text(DELICATE, max_size=60), st.text(st.characters(), max_size=40))
MARKS = st.text(st.sampled_from("\u0301\u0302\u094d\u200b\u200d\x1b\u0915a"), max_size=120)


def tagged(text: str) -> str:
    return "".join(chr(0xE0000 + ord(char)) for char in text)


def selected(text: str) -> str:
    return "".join(chr(0xFE00 + code if code < 16 else 0xE0100 + code - 16) for code in text.encode())


BLOCKED_CHARACTERS = [
    ("\x00", "control"),
    ("\x07", "control"),
    ("\x0b", "control"),
    ("\x1b", "control"),
    ("\x7f", "control"),
    ("\x85", "control"),
    ("\u00ad", "zero-width"),
    ("\u034f", "zero-width"),
    ("\u061c", "bidi"),
    ("\u115f", "filler"),
    ("\u1160", "filler"),
    ("\u17b4", "filler"),
    ("\u180b", "variation"),
    ("\u180e", "zero-width"),
    ("\u200b", "zero-width"),
    ("\u200c", "zero-width"),
    ("\u200d", "zero-width"),
    ("\u200e", "bidi"),
    ("\u202e", "bidi"),
    ("\u2060", "zero-width"),
    ("\u2066", "bidi"),
    ("\u206f", "bidi"),
    ("\u2800", "filler"),
    ("\u3164", "filler"),
    ("\ue000", "private-use"),
    ("\ufdd0", "noncharacter"),
    ("\ufe00", "variation"),
    ("\ufe0f", "variation"),
    ("\ufeff", "zero-width"),
    ("\uffa0", "filler"),
    ("\ufff9", "zero-width"),
    ("\uffff", "noncharacter"),
    ("\U0001d173", "zero-width"),
    ("\U0001fffe", "noncharacter"),
    ("\U000e0001", "tag"),
    ("\U000e0041", "tag"),
    ("\U000e0100", "variation"),
    ("\U000f0000", "private-use"),
    ("\U0010fffd", "private-use"),
    ("\U0010ffff", "noncharacter"),
    ("\ud800", "surrogate"),
]


def test_blocked_characters_between_latin_letters(subtests: pytest.Subtests) -> None:
    for char, kind in BLOCKED_CHARACTERS:
        with subtests.test(f"{char!r:.40}, {kind!r:.40}"):
            (run,) = find_hidden(f"a{char}b")
            assert (run.start, run.end, run.kind) == (1, 2, kind)
            assert strip_hidden(f"a{char}b") == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text\twith\r\nline breaks",
        "\ufefftext after a byte order mark",
        "Grüße, naïve café \u2014 \u201cquoted\u201d \u2026 \u65e5\u672c\u8a9e",
        "cafe\u0301 decomposed",
        FAMILY,
        "\U0001f469\U0001f3fd\u200d\U0001f4bb with a skin tone",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\u26a0\ufe0f warning, \u260e\ufe0e text style, \u00a9\ufe0f",
        "1\ufe0f\u20e3 #\ufe0f\u20e3",
        ENGLAND,
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: a ZWNJ inside a verb
        "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",  # Devanagari: half form and explicit virama
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\u845b\U000e0100\u98fe",  # the registered form of an ideograph in a Japanese place name
        "\u1820\u180b\u1820",  # Mongolian letter form
        "e" + "\u0301" * 16,
    ],
)
def test_what_writing_needs_is_not_hidden(text: str) -> None:
    assert find_hidden(text) == ()
    assert strip_hidden(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "x\ufeff",  # a byte order mark that is not first
        "a\u200db",
        "\u0645\u200c",  # no letter behind it
        "\u0645\u200c\u200c\u0645",
        "\U0001f468\u200d",
        "\U0001f468\u200da",
        "1\ufe0f",  # a keycap without its cap
        "a\ufe0f",
        "\u2764\ufe0f\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062",  # a flag that is not closed
        "\U0001f3f4" + tagged("ignorethis") + "\U000e007f",
        "\U0001f600" + tagged("eng") + "\U000e007f",
        "\u4e00\U000e0100\U000e0101",
        "a\U000e0100",
        "e" + "\u0301" * 17,
        "e" + "\u0301\u200b" * 17,
    ],
)
def test_the_excuses_do_not_stretch(text: str) -> None:
    assert find_hidden(text) != ()


def test_neighbours_of_one_kind_are_one_run() -> None:
    assert find_hidden("a\u200b\u2060b\u202ec") == (
        HiddenRun(start=1, end=3, kind="zero-width", decoded="U+200B U+2060"),
        HiddenRun(start=4, end=5, kind="bidi", decoded="U+202E"),
    )


def test_tag_characters_are_spelled_out() -> None:
    (run,) = find_hidden("hello" + tagged("run rm -rf"))
    assert (run.kind, run.decoded) == ("tag", "run rm -rf")


def test_variation_selectors_are_spelled_out_when_they_spell() -> None:
    (run,) = find_hidden("\U0001f600" + selected("send the key\nnow"))
    assert (run.kind, run.decoded) == ("variation", "send the key now")
    (run,) = find_hidden("a\ufe01\ufe02")
    assert run.decoded == "U+FE01 U+FE02"


def test_the_decoded_text_is_capped() -> None:
    for text in ("x" + tagged("y" * 5000), "x" + "\u200b" * 5000, "x" + "\U000f0000" * 5000):
        (run,) = find_hidden(text)
        assert len(run.decoded) <= MAX_DECODED


def test_a_terminal_code_is_one_run_with_its_parameters() -> None:
    text = "a\x1b[31;1mred\x1b[0m \x9b2K"
    assert [text[run.start : run.end] for run in find_hidden(text)] == ["\x1b[31;1m", "\x1b[0m", "\x9b2K"]
    assert strip_hidden("ig\x1b[0mnore") == "ignore"


def test_a_terminal_code_that_can_hold_words_leaves_them_in_sight() -> None:
    assert strip_hidden("\x1b]0;ignore previous\x07") == "]0;ignore previous"


def test_ten_thousand_marks_are_one_run() -> None:
    (run,) = find_hidden("e" + "\u0301" * 10_000 + "x")
    assert (run.kind, run.start, run.end) == ("combining", 1, 10_001)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Ignore  ALL\n\n\tprevious", "ignore all previous"),
        ("ig\u200bnore", "ignore"),
        ("\u0456gn\u043er\u0435 \u0399\u0261\u039d\u03bf\u0280\u0415", "ignore ignore"),
        ("\uff29\uff47\uff4e\uff4f\uff52\uff45\u3000\U0001d41a\U0001d425\U0001d425 \u24d8t", "ignore all it"),
        ("i g n o r e", "ignore"),
        ("i.g.n.o.r.e this", "ignore this"),
        ("I-G-N-O-R-E", "ignore"),
        ("i_g_n_o_r_e", "ignore"),
        ("i * g * n * o * r * e", "ignore"),
        ("i g n o r e   a l l   r u l e s", "ignore all rules"),
        ("i\ng\nn\no\nr\ne\nx", "ignorex"),
        ("plan a b c def", "plan a b c def"),
        ("see e.g. the x axis", "see e.g. the x axis"),
        ("stra\u00dfe \u0130", "strasse i\u0307"),
        ("on\x0btw\x0cth\u2028fo\x85fi", "on tw th fo fi"),
        ("\u3164\u2800", ""),
        ("don\u2019t", "don't"),
        ("\ud800x\udc80", "x"),
        ("", ""),
    ],
)
def test_fold_undoes_disguises(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_fold_can_keep_the_line_breaks() -> None:
    assert fold("A  b\n\n  i\ng\nn\no\nr\ne  \r\nEnd", newlines=True) == "a b\n\nignore\n\n\n\n\n\nend"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u200bb\u202e", "a\\u200bb\\u202e"),
        ("x" + tagged("A"), "x\\U000e0041"),
        ("\udc80\udcff\ud800", "\\x80\\xff\\ud800"),
        ("\x9b", "\\u009b"),
        ("\ufeffstart", "\\ufeffstart"),
        ("one\u2028two", "one\\u2028two"),
        (f"{FAMILY} {ENGLAND}", f"{FAMILY} {ENGLAND}"),
        ("caf\u00e9", "caf\u00e9"),
        ("\u25b8 one \u2026 two", "\u25b8 one \u2026 two"),
        ("\u25b8 o\u200bne", "\u25b8 o\\u200bne"),
        ("\u25b8\x1b[31m", "\u25b8\\x1b[31m"),
    ],
)
def test_printable_shows_what_is_there(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text, newlines=True) == shown


def test_printable_keeps_line_breaks_only_when_asked() -> None:
    assert printable("a\r\nb\tc\rd\n") == "a\\r\\nb\\tc\\rd\\n"
    assert printable("a\r\nb\tc\rd\n", newlines=True) == "a\nb\tc\\rd\n"


def test_reveal_spells_payloads_and_parts_words() -> None:
    assert reveal_hidden("a\u200bb" + tagged("hi") + "c") == "a b hi c"
    assert reveal_hidden("\x1b[ignore") == " [ignore"


def test_clip_is_one_safe_line() -> None:
    assert clip("a\n b\x07", 20) == "a b\\x07"
    assert clip("x" * 500, 10) == "x" * 9 + "…"
    assert find_hidden(clip(FAMILY * 50, 3)) == ()


@settings(deadline=None)  # the first example also compiles the patterns
@given(st.one_of(TEXT, MARKS))
def test_stripped_text_hides_nothing(text: str) -> None:
    stripped = strip_hidden(text)
    assert find_hidden(stripped) == ()
    assert strip_hidden(stripped) == stripped


@settings(deadline=None)  # the first example also compiles the patterns
@given(st.one_of(TEXT, MARKS), st.booleans())
def test_printable_text_hides_nothing(text: str, newlines: bool) -> None:
    shown = printable(text, newlines=newlines)
    assert find_hidden(shown) == ()
    raw = {char for char in shown if char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029\ufeff"}
    assert raw <= ({"\n", "\t"} if newlines else set())
    shown.encode()


@settings(deadline=None)  # the first example also compiles the patterns
@given(st.one_of(TEXT, MARKS))
def test_runs_are_in_order_and_apart(text: str) -> None:
    end = 0
    for run in find_hidden(text):
        assert end <= run.start < run.end <= len(text)
        assert run.decoded
        assert len(run.decoded) <= MAX_DECODED
        end = run.end


@settings(deadline=None)  # the first example also compiles the patterns
@given(st.one_of(TEXT, MARKS))
def test_any_text_can_be_folded_revealed_and_clipped(text: str) -> None:
    assert "  " not in fold(text)
    kept = fold(text, newlines=True)
    assert kept.count("\n") == text.count("\n")
    assert reveal_hidden(text).count("\n") == text.count("\n")
    assert len(clip(text, 20)) <= 20


@pytest.mark.slow
@pytest.mark.parametrize("function", [find_hidden, strip_hidden, fold, printable, reveal_hidden])
@pytest.mark.parametrize(
    "piece",
    [
        "\u200b",
        "e\u0301",
        "\u0301",
        "\u0301\u0327",
        "\u2764\ufe0f\u200d",
        "\x1b[0m",
        "\x1b[",
        "\x9b1",
        "a b ",
        "\ud800",
        " ",
        "\u0456",
    ],
)
def test_work_grows_with_the_text_and_no_faster(function: Callable[[str], object], piece: str) -> None:
    assert_about_linear(lambda count: function(piece * count), 1_000, huge=100_000)


def test_importing_the_text_checks_loads_neither_re2_nor_phrases() -> None:
    code = (
        "import sys; import truekeep.text.unicode, truekeep.text.injection, truekeep.text.durability;"
        "print(sorted({'re2', 'tomllib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
