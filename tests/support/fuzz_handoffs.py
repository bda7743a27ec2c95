"""Handoffs bent at random, from a seed: for the judge, which must survive every one of them.

As a program it runs for long: python -m tests.support.fuzz_handoffs 100000 [SEED]
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.helpers import Place, a_card, a_document_handoff, a_handoff
from truekeep.handoffs.policy.decision import Decision

DOCUMENTS = (
    *("TOOLS.md", "USER.md", "rules/security.md", ".learnings/ERRORS.md", "memory/2026-11-16.md"),
    *("memory/daily/2026-11-16.md", "memory/decisions/2026-11.md", "memory/ops/CHANGELOG.md"),
    *("memory/projects/app.md", "memory/checkpoints/subagent-a.md"),
)
CONTENTS = (
    "### Lint\nRun make lint.",
    "### 2026-11-16 09:00 +0100, claude, app\n\nWorked on `src/app.py:12`.",
    "### Status\n\n(2026-11-16 09:00 +0100, claude)\n\nBlocked on `make_app()`.",
    "- 2026-11-16 09:00 +0100 Port 8080 is now 8443 (claude, app)\n- 2026-11-15 Postgres 17 it is\n",
    "1. One\n2. Two `app.py#L3-L9`\n\n| a | b |\n|---|---|\n| `x()` | 10 MB |",
)
DIGITS = "٠١٢٣٤٥٦٧٨٩०१२३４５６²³½Ⅷ𝟘𝟙"
PIECES = (
    *(
        "\n",
        "\r\n",
        "\r",
        "\t",
        " ",
        "\u2028",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u200b",
        "\u202e",
        "\ufeff",
        "\U000e0041",
    ),
    *(
        "---\n",
        "---",
        "...\n",
        ": ",
        "- ",
        "* ",
        "> ",
        "#",
        "## ",
        "### ",
        "```",
        "~~~~",
        "`",
        "<!--",
        "-->",
        "|",
        "[",
        "](",
    ),
    *(
        "topic: ",
        "topic: [a, {b: c}]\n",
        "tags: [",
        "created: 9999-99-99\n",
        "id: x\n",
        "&a *a !!int |\n  x\n",
        '"\\u',
        "'",
    ),
    *(
        "0000-00-00",
        "9999-12-31",
        "2026-02-30 25:61",
        "+9999",
        "-2400",
        "Updated 2026-11-16 09:00",
        "99999999999999999999",
    ),
    *(
        "{}",
        "%s",
        "{0.__class__}",
        "\\",
        "\\N{DASH}",
        "é",
        "e\u0301",
        "ß",
        "ﬁ",
        "İ",
        "ı",
        "😀",
        "\U0010ffff",
        "漢字",
        "ي",
    ),
    *(
        "src/app.py:٣",
        "app.py#L1-L99999999",
        "`a.b.c()`",
        "port ٨٠",
        "v1.2.3.4.5",
        "https://[::1",
        "file:///",
        "a@b",
        "../",
    ),
    *(
        "<<<<<<< a\n=======\n>>>>>>> b\n",
        "## Target document\n",
        "## Suggested card content\n",
        "## Type\n",
        "<script>",
        "&#0;",
    ),
)


def bases() -> tuple[str, ...]:
    """Handoffs of every kind that is filed."""
    cards = [a_handoff(), a_handoff(action="update-card"), a_handoff(content="````\n" + a_card() + "````\n")]
    cards.append(a_handoff(content=a_card(body=CONTENTS[4], created="2026-11-16", aliases="[a, b]")))
    found = cards * 8
    found += [a_document_handoff(content, document) for document in DOCUMENTS for content in CONTENTS]
    return tuple(found)


def bend(text: str, chance: random.Random) -> str:
    """A handoff with a few things in it bent."""
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice((0, 1, 1, 3, 10, 40)))
        match chance.randrange(7):
            case 0:  # digits of another script, one or all of them
                many = chance.choice((1, 0))
                text = re.sub(r"[0-9]", lambda _: chance.choice(DIGITS), text[at:], count=many).join((text[:at], ""))
            case 1:
                text = text[:at] + chance.choice(PIECES) * chance.choice((1, 1, 2, 50)) + text[end:]
            case 2:
                text = text[:at] + text[end:]
            case 3:
                text = text[:at] + text[at:end] * chance.choice((2, 3, 30)) + text[end:]
            case 4:
                lines = text.split("\n")
                chance.shuffle(lines) if chance.random() < 0.1 else lines.insert(
                    chance.randrange(len(lines) + 1), chance.choice(lines)
                )
                text = "\n".join(lines)
            case 5:  # the value of a section
                text = re.sub(
                    r"(?m)^(## (?:Target \w+|Title|Type|Recommended memory action)\n).*",
                    lambda match: match[1] + chance.choice((*DOCUMENTS, *PIECES)),
                    text,
                    count=chance.choice((1, 2, 0)),
                )
            case 6:
                text = (
                    text[:at] + text[at:end].swapcase() + chr(chance.choice((0x41, 0xE9, 0x661, 0x4E00))) + text[end:]
                )
    return text[:60_000]


def handoffs(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of handoffs, bent at random."""
    chance = random.Random(seed)
    kinds = bases()
    for number in range(count):
        raw = bend(chance.choice(kinds), chance).encode("utf-8", "surrogatepass")
        if chance.random() < 0.05:
            at = chance.randrange(len(raw) + 1)
            raw = raw[:at] + bytes(chance.randrange(256) for _ in range(3)) + raw[at:]
        name = f"2026-11-14-{number % 2400:04}-bent.md"
        yield (bend(name, chance).replace("/", "").replace("\0", "")[:60] if chance.random() < 0.1 else name), raw


def judge(place: Place, seed: int, count: int) -> list[Decision]:
    """What lint says to them, each before the same memory."""
    with place.open() as workspace:
        return [workspace.handoffs.lint([(raw, name, place.repo)])[0] for name, raw in handoffs(seed, count)]


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    codes: Counter[str] = Counter()
    bugs: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Place.make(Path(folder))
        for start in range(0, count, 1000):
            for filing in judge(place, seed + start, min(1000, count - start)):
                codes[filing.outcome] += 1
                bugs.update(f"{seed + start}: {found.message}" for found in filing.findings if found.code == "bug")
    print(dict(codes), dict(bugs))


if __name__ == "__main__":
    main()
