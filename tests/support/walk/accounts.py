"""What must hold at the end of the walk: facts in their places, handoffs accounted for, every line explained."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.support.helpers import tree
from tests.support.walk.letters import TOKEN
from tests.support.walk.world import Machine

FACTS = {  # words, and the one file that says them
    "`CART_TTL` in `app/basket.py` is the only place for the lifetime": "memory/cards/carts.md",
    "Staging answers on port 8443 only": "memory/cards/staging-proxy.md",
    "is made by `render_invoice` in `billing/invoices.py`": "memory/cards/invoice-text.md",
    "Numbers come from a sequence of the database": "memory/cards/invoice-numbers.md",
    "The journal is kept for thirty days": "memory/cards/proxy-log.md",
    "Run `sh deploy/release.sh`; never docker by hand.": "TOOLS.md",
    "Invoices stay plain text: the tax office reads nothing else.": "memory/decisions/",
    "Looked at how invoices are made.": "memory/20",
}
NOWHERE = (TOKEN, "Ignore all previous instructions", "print_invoice", "merge_carts", "app/carts.py")
OUTCOMES = {"promoted": 3, "routed": 3, "approved": 1, "rejected": 1, "already": 3}
"""Of the eleven handoffs. Known already: two test letters, and one that the lost host had filed."""


def settle_accounts(host: Machine, producers: Iterable[Machine]) -> None:
    facts_are_where_they_belong(host.workspace)
    handoffs_are_accounted_for(host, producers)
    the_ledger_explains_every_line(host)


def facts_are_where_they_belong(workspace: Path) -> None:
    texts = {path: (workspace / path).read_text() for path in tree(workspace)}
    for words, place in FACTS.items():
        found = [path for path, text in texts.items() if words in text]
        assert len(found) == 1, f"{words!r} is in {found}"
        assert found[0].startswith(place), f"{words!r} is in {found}"
    for words in NOWHERE:
        assert not [path for path, text in texts.items() if words in text], words
    index = texts["MEMORY.md"]
    for path in texts:
        if path.startswith("memory/cards/"):
            assert index.count(f"({path})") == 1, f"{path} has not one index line:\n{index}"
    assert not list((workspace / "memory" / "handoff-inbox").glob("*.md")), "nothing waits for a person"


def handoffs_are_accounted_for(host: Machine, producers: Iterable[Machine]) -> None:
    """Every letter that was left anywhere is in processed/, and its digest has an outcome in the ledger."""
    left: Counter[str] = Counter()
    for machine in producers:
        for inbox in machine.home.glob("repos/*/.c*/memory-handoffs"):
            assert not list(inbox.glob("*.md")), f"{machine.name} has handoffs that nobody has dealt with: {inbox}"
            left.update(_digest(path) for path in inbox.glob("processed/*.md"))
    assert (len(left), sum(left.values())) == (11, 12), "one of them was on two machines"
    last: dict[str, str] = {}
    for entry in reversed(json.loads(host.quietly("truekeep history --all --json"))["entries"]):
        if entry["handoff"] is not None:
            last[entry["handoff"]["sha256"]] = entry["handoff"]["outcome"]
    assert set(left) <= set(last), "the ledger knows each of them"
    assert Counter(last[digest] for digest in left) == OUTCOMES


def the_ledger_explains_every_line(host: Machine) -> None:
    unexplained = [
        f"{path}:{line['line']} {line['by']}: {line['text']}"
        for path in tree(host.workspace)
        if path.endswith(".md")
        for line in json.loads(host.quietly(f"truekeep blame '{path}' --json"))["lines"]
        if line["entry"] is None and line["by"] not in ("truekeep init", "an archive")
    ]
    assert not unexplained, "\n".join(unexplained)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
