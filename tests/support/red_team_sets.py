"""Labelled notes of `tests/samples/red_team`: credentials and look-alikes, planted orders and ordinary imperatives.

`python -m tests.support.red_team_sets` prints how many of each group are found, and lists the mistakes of the
development half. The held-out half is measured, never read while rules are written.
"""

from __future__ import annotations

import argparse
import base64
import codecs
import hashlib
import random
import re
import string
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from truekeep.text.injection import find_instructions
from truekeep.text.secrets.scanner import find_secrets

Half = Literal["development", "held_out"]
FOLDER = Path(__file__).parents[1] / "samples" / "red_team"
SEEDS = 5
ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "B": string.ascii_letters + string.digits + "+/",
    "D": string.digits,
    "H": "0123456789abcdef",
    "L": string.ascii_lowercase + string.digits,
    "Q": "023456789acdefghjklmnpqrstuvwxyz",
    "S": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "T": string.ascii_uppercase + "234567",
    "W": string.ascii_letters + string.digits + "_-",
}
DRAWN = re.compile(r"\{UUID\}|\{([ABDHLQSTW])([0-9]+)\}")
ENCODED = re.compile(r"\{(\w+):((?:[^{}]|\{\"[^{}]*\"\})*)\}")
LEET = str.maketrans("aeiost", "4310$7")
CYRILLIC = str.maketrans("aeopcxyi", "аеорсхуі")
ENCODINGS: dict[str, Callable[[str], str]] = {
    "b64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "leet": lambda text: text.translate(LEET),
    "spaced": " ".join,
    "zero_width": "\u200b".join,
    "wide": lambda text: "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text),
    "cyrillic": lambda text: text.translate(CYRILLIC),
    "reversed": lambda text: text[::-1],
}


class Case(NamedTuple):
    """A labelled note: `is_positive` where something is to be found in it."""

    group: str
    template: str
    is_positive: bool

    @property
    def half(self) -> Half:
        return "held_out" if hashlib.sha256(self.template.encode()).digest()[0] & 1 else "development"


class Note(NamedTuple):
    """What a template gives with one seed; `values` are the spans of a credential, `drawn` its random runs."""

    text: str
    values: tuple[tuple[int, int], ...]
    drawn: tuple[str, ...]


def read_cases(name: str, half: Half | None = None) -> list[Case]:
    """The cases of `secrets` or `orders`."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    cases = [
        Case(group, template, label != "ordinary")
        for label, groups in table.items()
        for group, templates in groups.items()
        for template in templates
    ]
    return [case for case in cases if half in (None, case.half)]


def draw(template: str, seed: int) -> Note:
    chance = random.Random(f"{template}{seed}")
    runs: list[str] = []

    def draw_one(place: re.Match[str]) -> str:
        if place[0] == "{UUID}":
            return "-".join("".join(chance.choices(ALPHABETS["H"], k=n)) for n in (8, 4, 4, 4, 12))
        runs.append("".join(chance.choices(ALPHABETS[place[1]], k=int(place[2]))))
        return runs[-1]

    def encode(place: re.Match[str]) -> str:
        return ENCODINGS[place[1]](place[2]) if place[1] in ENCODINGS else place[0]

    marked = ENCODED.sub(encode, DRAWN.sub(draw_one, template))
    text, values = "", []
    for piece in re.split("(«[^»]*»)", marked):
        value = piece.strip("«»")
        if piece.startswith("«"):
            values.append((len(text), len(text) + len(value)))
        text += value
    return Note(text, tuple(values), tuple(runs))


def is_found(case: Case, seed: int) -> bool:
    """Whether a credential is covered wholly (up to a closing sign that may belong to the sentence)."""
    note = draw(case.template, seed)
    found = find_secrets(note.text)
    if not note.values or not case.is_positive:
        return bool(found) and not any(
            len(run) >= 12 and not any(item.start <= at and at + len(run) <= item.end for item in found)
            for run in note.drawn
            if case.is_positive and (at := note.text.find(run)) >= 0
        )
    return all(
        any(item.start <= start and end - (note.text[end - 1] in "!?=") <= item.end for item in found)
        for start, end in note.values
    )


def is_labelled(case: Case, seed: int) -> bool:
    return bool(find_instructions(draw(case.template, seed).text))


FINDERS = {"secrets": is_found, "orders": is_labelled}


def iter_mistakes(name: str, half: Half) -> Iterator[tuple[Case, bool]]:
    """Every case with every seed, and whether the program is wrong about it."""
    for case in read_cases(name, half):
        for seed in range(SEEDS if DRAWN.search(case.template) else 1):
            yield case, FINDERS[name](case, seed) != case.is_positive


def rates(name: str, half: Half, *, is_positive: bool) -> dict[str, tuple[float, int]]:
    """Of each group, and of `all`: the share of cases that are decided wrongly, and their number."""
    shares: dict[Case, list[bool]] = {}
    for case, is_wrong in iter_mistakes(name, half):
        if case.is_positive == is_positive:
            shares.setdefault(case, []).append(is_wrong)
    groups: dict[str, list[float]] = {}
    for case, wrong in shares.items():
        for group in (case.group, "all"):
            groups.setdefault(group, []).append(sum(wrong) / len(wrong))
    return {group: (sum(values) / len(values), len(values)) for group, values in groups.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(FINDERS), help="secrets, orders")
    parser.add_argument("--quiet", action="store_true", help="figures only")
    options = parser.parse_args()
    for name in options.sets:
        for half in get_args(Half):
            for is_positive, word in ((True, "missed"), (False, "false alarms")):
                for group, (share, number) in rates(name, half, is_positive=is_positive).items():
                    print(f"{name} {half} {word:12} {group:20} {share:6.1%} of {number}")
        if not options.quiet:
            wrong = {case for case, is_wrong in iter_mistakes(name, "development") if is_wrong}
            for case in read_cases(name):
                if case in wrong:
                    print(f"  {'missed' if case.is_positive else 'false '} {case.group}: {case.template!r}")


if __name__ == "__main__":
    main()
