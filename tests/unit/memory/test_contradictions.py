"""Variants: nearly the same words that say another thing are told apart from other words for the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.memory.contradictions import differ_in, find_variant, statements_of

OTHERS = """
The nightly backup of the shop runs at 02:00 and is kept in Frankfurt. | The nightly backup of the blog runs at 02:00 and is kept in Frankfurt.
Alice is on call in May and answers pages within ten minutes. | Bob is on call in June and answers pages within ten minutes.
Deploys are allowed on Friday afternoon if the smoke tests pass. | Deploys are not allowed on Friday afternoon even if the smoke tests pass.
Always enable certificate verification for the payment gateway. | Always disable certificate verification for the payment gateway.
Ada prefers tabs over spaces in Go and Makefiles. | Ada prefers spaces over tabs in Go and Makefiles.
Copy the snapshot from staging to production before the release. | Copy the snapshot from production to staging before the release.
Increase the memory limit of the indexer before a reindex. | Decrease the memory limit of the indexer before a reindex.
The us-east cluster is primary and the us-west cluster is standby. | The us-west cluster is primary and the us-east cluster is standby.
Der Dienst ist in der Nacht aktiv und muss nicht neu gestartet werden. | Der Dienst ist in der Nacht aktiv und muss neu gestartet werden.
Le cache est activé pour la page d'accueil de la boutique. | Le cache est désactivé pour la page d'accueil de la boutique.
Les sauvegardes sont chiffrées avant le transfert. | Les sauvegardes ne sont pas chiffrées avant le transfert.
El servicio de pagos está activo por la noche. | El servicio de pagos no está activo por la noche.
La copia se hace con cifrado en el servidor principal. | La copia se hace sin cifrado en el servidor principal.
Die Rechnungen werden vor dem Versand geprüft. | Die Rechnungen werden nach dem Versand geprüft.
Der Kunde möchte Rechnungen als PDF, nicht als Papier. | Der Kunde möchte Rechnungen als Papier, nicht als PDF.
Marta owns the billing rota and Ola owns the shipping rota. | Ola owns the billing rota and Marta owns the shipping rota.
Use rebase, not merge, when updating a feature branch. | Use merge, not rebase, when updating a feature branch.
The export job is idempotent, so a rerun is safe. | The import job is not idempotent, so a rerun is unsafe.
Friday is release day and Thursday is freeze day. | Thursday is release day and Friday is freeze day.
Feature X is enabled for beta users. | Feature Y is enabled for beta users.
Feature A is enabled for beta users. | Feature B is enabled for beta users.
Monday: Ada reviews the security inbox. | Tuesday: Ada reviews the security inbox.
new_checkout is on | new_checkout is off
Build with `--no-cache` when the base image changed. | Never build with `--no-cache` when the base image changed.
`DEBUG` is off in production. | `DEBUG` is on in development.
The client retries a request before it opens the circuit. | The client opens the circuit before it retries a request.
Start the worker with the profiler attached. | Start the worker without the profiler attached.
The queue accepts at most one hundred messages. | The queue accepts at least one hundred messages.
The proxy is encrypted between the nodes. | The proxy is unencrypted between the nodes.
Everyone may approve a price list. | Nobody may approve a price list.
The worker writes its state to `/var/lib/worker`. | The worker writes its state to `/srv/worker`.
Timestamps in the export are in UTC, not in local time. | Timestamps in the export are in local time, not in UTC.
Integration tests run against a real Postgres, since mocks hid bugs. | Integration tests run against a mocked Postgres, since real ones were slow.
Messages are delivered at least once, so handlers must be idempotent. | Messages are delivered at most once, so handlers need not be idempotent.
The board meets on Wednesdays at ten. | The board meets on Thursdays at ten.
Node 18 is required for the build. | Node 20 is required for the build.
Don't squash commits when merging to main. | Squash commits when merging to main.
Admins can see salaries but managers cannot. | Managers can see salaries but admins cannot.
Orders above 500 euros need a second signature. | Orders below 500 euros need a second signature.
Carts are kept for thirty days. | Carts are kept for sixty days.
"""  # noqa: E501
SAME = """
CI runs on ARM take twice as long because the toolchain is compiled there. | Because the toolchain is compiled on ARM, CI runs there take twice as long.
You need the VPN to reach staging. Ask Marta for a profile. | To reach staging you need the VPN; Marta hands out profiles.
SQLite file locks are not reliable on NFS mounts. | NFS does not give SQLite reliable file locks.
The licence forbids loading fonts from elsewhere. | The licence does not allow loading fonts from another place.
The gateway needs prices sorted by day; unsorted input doubles its memory. | Memory of the gateway doubles when prices are not sorted by day.
The tax is computed from the rounded line and not from the sum. | Tax comes from the rounded line, never from the sum.
The export must never run while the ledger is compacted. | The export must not ever run while the ledger is being compacted!
Run migrations before deploying the web service. | Before the web service is deployed, run the migrations.
The Docker cache is wiped every night, so the first build takes 20 minutes. | The first build takes 20 minutes since the Docker cache is wiped every night.
Driver notes are read once at start. | Driver notes: they are read at start only.
Carts expire after 48 hours in Redis. | Carts expire after 48 hours in Redis, unless somebody pays.
Errors are announced by the live region, not by colour. | Colour is not enough for errors; the live region announces them.
Rechnungen bricht er ab, wenn die Spalte Währung fehlt. | Er bricht Rechnungen ab, sobald die Spalte Währung fehlt.
"""  # noqa: E501


def split(text: str) -> list[tuple[str, str]]:
    return [
        (one.strip(), other.strip()) for one, _, other in (line.partition("|") for line in text.strip().split("\n"))
    ]


@pytest.mark.parametrize(("one", "other"), split(OTHERS))
def test_nearly_the_same_words_that_say_another_thing(one: str, other: str) -> None:
    assert find_variant(one, other) is not None
    assert find_variant(f"- Something both say.\n- {one}", f"{other}\n\nSomething both say.") is not None


@pytest.mark.parametrize(("one", "other"), split(SAME))
def test_other_words_for_the_same(one: str, other: str) -> None:
    assert find_variant(one, other) is None


def test_what_only_one_says_is_an_addition() -> None:
    more = "- `DEBUG` is off in production.\n- Ask Ola."
    assert find_variant("- `DEBUG` is off in production.", more) is None
    assert find_variant(more, "- `DEBUG` is off in production.") is None
    both = "- `DEBUG` is off in production.\n- `DEBUG` is on in development."
    assert find_variant(both, "- `DEBUG` is off in production.") is None  # the first one knows of both


def test_topics_that_name_different_things() -> None:
    body = "It runs at night and is kept for a month."
    assert find_variant(body, body, ("Backup of the shop", "Backup of the blog")) is not None
    assert find_variant(body, body, ("Incident review May", "Incident review June")) is not None
    assert find_variant(body, body, ("Nightly backups", "How backups are made")) is None
    assert find_variant(f"{body} On NFS.", f"{body} On NFS.", ("SQLite, NFS", "SQLite, drives")) is None


def test_it_says_what_they_differ_in() -> None:
    assert differ_in("Deploys are allowed.", "Deploys are not allowed.") == "a negation"
    assert differ_in("Enable it for all.", "Disable it for all.") == "an opposite"
    assert differ_in("Ask Ola for access.", "Ask Nuno for access.") == "a name"
    assert differ_in("It keeps 3 copies.", "It keeps 4 copies.") == "a number"
    assert differ_in("Copy the blue script.", "Copy the red script.") == "a word"
    assert differ_in("Tabs over spaces.", "Spaces over tabs.") == "the order"


def test_code_and_tables_are_compared_line_by_line() -> None:
    fence = "```\nexport LEVEL={}\nmake\n```"
    assert find_variant(fence.format("debug"), fence.format("info")) is not None
    rows = "| env | url |\n|---|---|\n| prod | {} |"
    assert find_variant(rows.format("a.example/x"), rows.format("b.example/x")) is not None
    assert find_variant(rows.format("a.example/x"), rows.format("a.example/x")) is None


def test_a_long_text_takes_no_long_time() -> None:
    text = "\n".join(f"- word{number % 7} and word{number % 11} are number {number}" for number in range(3_000))
    assert len(statements_of(text)) == 400
    assert find_variant(text, text.upper()) is None
    assert find_variant("a " * 50_000, "b " * 50_000) is None


WORDS = "the a not on off Ada tabs spaces over 3 4 never before `x` runs. safe;".split()  # noqa: SIM905
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(TEXT, TEXT)
@settings(max_examples=400, deadline=None)
def test_it_is_the_same_both_ways(one: str, other: str) -> None:
    assert bool(differ_in(one, other)) == bool(differ_in(other, one))
    assert differ_in(one, one) == ""
    assert find_variant(one, one) is None


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read(one: str, other: str) -> None:
    find_variant(one, other, (other[:20], one[:20]))
