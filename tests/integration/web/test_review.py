"""The review in a browser, without one: what its forms send is sent, and nothing is written that nobody saw."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.support.helpers import NOW, OPENED, Place, a_card, a_handoff, tree
from tests.support.upkeep_place import point_at_all, upkeep, write_card
from truekeep.core.errors import EditedSince, NotFound
from truekeep.handoffs.draft import Draft, render_draft
from truekeep.handoffs.review import iter_drafts
from truekeep.interfaces.web.app import make_app
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.diff_view import Sides, compare
from truekeep.interfaces.web.local_site import LocalSite
from truekeep.interfaces.web.pages.review import age_of
from truekeep.interfaces.web.pages.review_caches import MAX_SUGGESTED_CARDS, CardNames, ShownFiles
from truekeep.interfaces.web.pages.review_forms import ROWS
from truekeep.memory.staging import FileOnDisk, MemoryFiles
from truekeep.text.line_diff import MOST_COMPARED
from truekeep.text.unicode import printable

KEYS = Keys("a token")
OTHER = "Staging answers on 9443 now, behind the new proxy."


# A browser without a screen.


class Answer(Protocol):
    """What comes back."""

    @property
    def status_code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


@dataclass
class Form:
    """A form as a browser sees it: where it goes, and what it sends."""

    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Reader(HTMLParser):
    """Forms, links and keys of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.keys: list[str] = []
        self.links: list[str] = []
        self._area: str | None = None
        self._text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if "data-key" in given:
            self.keys.append(given["data-key"])
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get")))
        elif tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "textarea":
            self._area, self._text = given.get("name", ""), ""
        elif tag == "input" and given.get("type") != "checkbox":
            self.forms[-1].fields.append((given.get("name", ""), given.get("value", "")))
        elif tag == "input" and "checked" in given:
            self.forms[-1].fields.append((given["name"], given["value"]))
        elif tag == "button" and "name" in given and "disabled" not in given:
            self.forms[-1].buttons.append((given["name"], given["value"]))

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            if self._area and self.forms:
                # A browser drops the first line break and sends the others as CRLF.
                self.forms[-1].fields.append((self._area, self._text.removeprefix("\n").replace("\n", "\r\n")))
            self._area = None


class Visitor:
    """Somebody who came in by the link."""

    def __init__(self, place: Place, *, read_only: bool = False) -> None:
        self.site = LocalSite(place.workspace, KEYS, read_only=read_only)
        OPENED.append(self.site)
        self.client = TestClient(make_app(self.site, {"testserver"}), follow_redirects=False)
        self.client.get("/review", params={"token": KEYS.token})

    def get(self, path: str) -> Answer:
        return self.client.get(path)

    def see(self, path: str) -> str:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def press(self, page: str, do: str, **typed: str) -> Answer:
        """Send the form that has this button, with some fields typed anew."""
        form = next(form for form in Reader(page).forms if ("do", do) in form.buttons)
        fields = [(name, value) for name, value in form.fields if name not in typed]
        return self.send(form.action, [*fields, *typed.items(), ("do", do)])

    def send(self, path: str, fields: list[tuple[str, str]]) -> Answer:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return self.client.post(path, content=urlencode(fields), headers=headers)

    def close(self) -> None:
        self.site.close()


@pytest.fixture
def visitor(place: Place) -> Iterator[Visitor]:
    visitor = Visitor(place)
    yield visitor
    visitor.close()


def shown_text(page: str) -> str:
    """What somebody reads on a page."""
    bare = re.sub(r"<[^>]*>", "", page)
    for name, char in (("lt", "<"), ("gt", ">"), ("#34", '"'), ("#39", "'"), ("amp", "&")):
        bare = bare.replace(f"&{name};", char)
    return bare


def doubtful(place: Place) -> str:
    """A card that is there, and a draft for other content under its name."""
    place.leave(a_handoff(), "2026-11-13-0900-first.md")
    place.ingest()
    place.leave(a_handoff(content=a_card(body=OTHER)), "2026-11-14-0900-second.md")
    place.ingest()
    (draft,) = place.drafts()
    return draft.stem


def workers(place: Place, count: int) -> list[str]:
    """Drafts of one kind, in the order in which they came."""
    for number in range(count):
        handoff = a_handoff(
            title=f"Worker {number}",
            action="update-card",
            card=f"worker-{number}.md",
            content=a_card(topic=f"Worker {number}", body=f"Worker {number} reads queue q{number}."),
        )
        place.leave(handoff, f"2026-11-14-09{number:02}-worker{number}.md")
        place.ingest(now=NOW + timedelta(minutes=number))
    with place.open() as workspace:
        return [draft.id for draft in workspace.review.drafts()]


def put_draft(place: Place, number: int, **keys: str) -> str:
    """A draft as truekeep writes it, without the way through ingest."""
    body = a_handoff(title=f"Thing {number}", card=f"thing-{number}.md").encode()
    draft = Draft(
        id=f"thing-{number}-{sha256(body).hexdigest()[:10]}",
        received_at=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        name="x.md",
        writer=keys.get("writer", "claude"),
        machine="laptop",
        repository=keys.get("repository", "app"),
        original="~/x.md",
        digest=sha256(body).hexdigest(),
        kept="whole",
        reasons=((keys.get("reason", "no-such-card"), "why"),),
        target=f"memory/cards/thing-{number}.md",
        body=body,
    )
    folder = place.workspace / "memory" / "handoff-inbox"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{draft.id}.md").write_bytes(render_draft(draft))
    return draft.id


def draft_file(place: Place, wanted: str) -> Path:
    return place.workspace / "memory" / "handoff-inbox" / f"{wanted}.md"


# The queue.


def test_nothing_waits(visitor: Visitor) -> None:
    assert "Nothing waits for review" in visitor.see("/review")


def test_the_queue_is_oldest_first_with_reasons_writer_and_target(place: Place, visitor: Visitor) -> None:
    ids = workers(place, 3)
    page = visitor.see("/review")
    at = [page.index(f"/review/{wanted}") for wanted in ids]
    assert at == sorted(at)
    for said in ("no-such-card", "claude", "memory/cards/worker-0.md", "3 drafts"):
        assert said in shown_text(page)


def test_the_queue_is_paged_and_filtered(place: Place, visitor: Visitor) -> None:
    ids = [
        put_draft(place, number, writer="codex" if number % 10 == 0 else "claude", reason=f"reason-{number % 2}")
        for number in range(ROWS + 5)
    ]
    first, second = visitor.see("/review"), visitor.see("/review?page=2")
    assert [one for one in ids if f'"/review/{one}"' in first] == ids[:ROWS]
    assert [one for one in ids if f'"/review/{one}"' in second] == ids[ROWS:]
    assert visitor.see("/review?page=99999999999") == first  # no number at all
    assert f'"/review/{ids[-1]}"' in visitor.see("/review?page=99")
    chosen = visitor.see("/review?writer=codex")
    assert [one for one in ids if f'"/review/{one}?writer=codex"' in chosen] == ids[::10]
    both = visitor.see("/review?writer=codex&reason=reason-1")
    assert "No draft fits this filter" in both


def test_the_next_draft_is_of_the_same_choice(place: Place, visitor: Visitor) -> None:
    ids = [put_draft(place, number, writer="codex" if number % 2 else "claude") for number in range(6)]
    page = visitor.see(f"/review/{ids[1]}?writer=codex")
    assert "Draft 1 of 3" in shown_text(page)
    assert f"/review/{ids[3]}?writer=codex" in Reader(page).links
    answer = visitor.press(page, "reject")
    assert answer.headers["location"].startswith(f"/review/{ids[3]}?writer=codex&done=")


# One draft.


def test_a_draft_shows_why_whence_both_sides_and_the_original(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    page = visitor.see(f"/review/{wanted}")
    said = shown_text(page)
    for words in ("two-values", "claude", "app", "Staging answers on port 8443 only.", OTHER, "# Memory Handoff"):
        assert words in said
    assert "As it is now" in said
    assert "As it would be" in said
    assert "<del>port 8443 only</del>" in page
    assert place.card().count("8443") == 1  # looking changes nothing


def test_hostile_text_is_shown_as_what_it_is(place: Place, visitor: Visitor) -> None:
    evil = (
        "<script>alert(1)</script> ![x](http://evil.example/x.png) [y](javascript:alert(1)) \u202eexe.txt\u200b </pre>"
    )
    place.leave(a_handoff(title=f"T {evil}", content=a_card(body=evil)), "2026-11-14-0900-evil.md")
    place.ingest()
    (path,) = place.drafts()
    for address in (
        f"/review/{path.stem}",
        f"/review/{path.stem}/edit",
        "/review",
        "/review/-/several?draft=" + path.stem,
    ):
        page = visitor.see(address)
        assert "<script>alert" not in page
        assert "javascript:alert(1)" not in "".join(Reader(page).links)
        assert "<img" not in page
        outside_field = re.sub(r"<textarea.*?</textarea>", "", page, flags=re.DOTALL)
        assert "\u202e" not in outside_field
        assert "\u200b" not in outside_field
    assert "\\u202eexe.txt\\u200b" in visitor.see(f"/review/{path.stem}")


def test_hidden_characters_are_named_and_taken_out_when_saving(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff(content=a_card(body="Staging\u200b answers.\u202e")), "2026-11-14-0900-hidden.md")
    place.ingest()
    (path,) = place.drafts()
    page = visitor.see(f"/review/{path.stem}/edit")
    assert "2 places in this text cannot be seen" in shown_text(page)
    assert visitor.press(page, "approve").status_code == 303
    assert "Staging answers.\n" in place.card()


def test_approving_files_it_and_the_ledger_can_take_it_back(place: Place, visitor: Visitor) -> None:
    doubtful(place)
    ids = workers(place, 1)
    before = dict(tree(place.workspace))
    answer = visitor.press(visitor.see(f"/review/{ids[0]}"), "approve")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"/review/{ids[1]}?done=")
    assert OTHER in place.card()
    assert [path.stem for path in place.drafts()] == ids[1:]
    page = visitor.see(answer.headers["location"])
    said = shown_text(page)
    assert f"Approved {ids[0]} → memory/cards/staging-proxy.md" in said
    (undo,) = [link for link in Reader(page).links if link.startswith("/history/")]
    with place.open() as workspace:
        workspace.history.undo(int(undo.removeprefix("/history/")))
    assert dict(tree(place.workspace)) == before
    assert "Approved" not in shown_text(visitor.see(answer.headers["location"]))  # it is not so any more


def test_after_the_last_draft_comes_the_queue(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    answer = visitor.press(visitor.see(f"/review/{wanted}"), "approve")
    assert answer.headers["location"].startswith("/review?done=")
    page = shown_text(visitor.see(answer.headers["location"]))
    assert f"Approved {wanted}" in page
    assert "Nothing waits for review" in page


def test_rejecting_keeps_the_reason(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    answer = visitor.press(visitor.see(f"/review/{wanted}"), "reject", reason=" was only\r\ntrue for a day ")
    assert answer.status_code == 303
    assert place.drafts() == []
    assert OTHER not in place.card()
    with place.open() as workspace:
        entry, _ = next(workspace.history.entries(limit=1))
    assert (entry.verb, entry.note) == ("rejected", "was only true for a day")


def test_another_target_is_shown_first_and_then_written(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    page = visitor.see(f"/review/{wanted}?target=memory/cards/new-proxy.md")
    assert "memory/cards/new-proxy.md is new" in shown_text(page)
    assert visitor.press(page, "approve").status_code == 303
    assert OTHER in place.card("new-proxy.md")
    assert OTHER not in place.card()


def test_a_target_that_cannot_be_is_told_and_not_approvable(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    for target in ("../../etc/passwd", "MEMORY.md", "a" * 400, "x\x00.md", "<script>"):
        page = visitor.see(f"/review/{wanted}?{urlencode({'target': target})}")
        assert "Must be fixed" in shown_text(page)
        assert not any(("do", "approve") in form.buttons for form in Reader(page).forms)
    answer = visitor.send(
        f"/review/{wanted}?target=MEMORY.md", [("csrf", KEYS.form), ("do", "approve"), *saws(visitor, wanted)]
    )
    assert answer.status_code == 400
    assert len(place.drafts()) == 1


def saws(visitor: Visitor, wanted: str) -> list[tuple[str, str]]:
    form = next(form for form in Reader(visitor.see(f"/review/{wanted}")).forms if form.method == "post")
    return [(name, value) for name, value in form.fields if name == "saw"]


def test_documents_that_are_there_are_suggested_as_targets(place: Place, visitor: Visitor) -> None:
    for name in ("rules/git.md", ".learnings/PATTERNS.md", "memory/ops/models.md", "memory/research/vectors.md"):
        path = place.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# Notes\n")
    (place.workspace / "memory/ops/notes.txt").write_text("no document\n")
    place.leave(a_handoff(card="../out.md"))
    place.ingest()
    offered = re.findall(r'<option value="([^"]+)">', visitor.see(f"/review/{place.drafts()[0].stem}"))
    documents = {"rules/git.md", ".learnings/PATTERNS.md", "memory/ops/models.md", "memory/research/vectors.md"}
    assert documents < set(offered)
    assert "TOOLS.md" in offered
    assert "memory/ops/notes.txt" not in offered


def test_targets_are_suggested_by_shared_words_and_limited(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    for number in range(90):
        write_card(place, f"aaa-{number:02}", "Something else.")
    write_card(place, "zzz-second-thoughts", "About second things.")
    page = visitor.see(f"/review/{wanted}")
    options = re.findall(r'<option value="([^"]*)">', page)
    assert options[0] in ("memory/cards/staging-proxy.md", "memory/cards/zzz-second-thoughts.md")
    assert len(options) < 90
    assert "TOOLS.md" in options


def test_a_masked_draft_and_one_that_lies_elsewhere(place: Place, visitor: Visitor) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    place.leave(a_handoff(content=a_card(body=f"The token is {secret} for now.")), "2026-11-14-0900-token.md")
    place.leave(b"\x00\x01\x02", "2026-11-14-0910-binary.md")
    place.ingest()
    masked, elsewhere = sorted((path.stem for path in place.drafts()), reverse=True)
    page = visitor.see(f"/review/{masked}")
    assert secret not in page
    assert "credentials masked" in shown_text(page)
    assert not any(("do", "approve") in form.buttons for form in Reader(page).forms)
    page = visitor.see(f"/review/{elsewhere}")
    assert "It is not copied here" in shown_text(page)
    assert visitor.press(visitor.see(f"/review/{elsewhere}/edit"), "save", text=a_handoff()).status_code == 303
    assert visitor.press(visitor.see(f"/review/{elsewhere}"), "approve").status_code == 303
    assert place.cards() == ["staging-proxy.md"]


def test_a_merge_shows_the_card_that_goes(place: Place, visitor: Visitor) -> None:
    facts = (
        "- SQLite file locks are not reliable under NFS mounts.\n- Keep the database on a local disk and copy it later."
    )
    write_card(place, "sqlite-nfs", facts, day="2026-01-05")
    write_card(place, "sqlite-network-drives", f"{facts}\n- The backup job runs on the NAS.", day="2026-02-01")
    point_at_all(place)
    upkeep(place).duplicates()
    (path,) = place.drafts()
    page = visitor.see(f"/review/{path.stem}")
    said = shown_text(page)
    assert "memory/cards/sqlite-network-drives.md goes" in said
    assert "memory/cards/sqlite-nfs.md changes" in said
    # A line that somebody adds to the card that goes would be lost: nothing is approved.
    dropped = place.workspace / "memory/cards/sqlite-network-drives.md"
    dropped.write_text(dropped.read_text() + "- Ada has the keys.\n")
    before = dict(tree(place.workspace))
    late = visitor.press(page, "approve")
    assert late.status_code == 409
    assert dict(tree(place.workspace)) == before
    assert "It cannot be approved" in shown_text(late.text)


def test_a_draft_that_names_other_files_to_drop_shows_none_of_them(place: Place, visitor: Visitor) -> None:
    secret = place.base / "passwd"
    secret.write_text("root:x:0:0")
    wanted = put_draft(place, 1)
    file = draft_file(place, wanted)
    mark = f"drops:\n  - card sha256 {'0' * 64} memory/../../passwd\n---\n# Memory"
    file.write_bytes(file.read_bytes().replace(b"---\n# Memory", mark.encode(), 1))
    page = visitor.see(f"/review/{wanted}")
    assert "root:x:0:0" not in page
    assert "It cannot be approved" in shown_text(page)
    assert secret.exists()


# Editing.


def test_editing_judges_anew_and_saves_what_was_typed(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff(card=None), "2026-11-14-0900-lost.md")
    place.ingest()
    (path,) = place.drafts()
    page = visitor.see(f"/review/{path.stem}/edit")
    assert "no-target" in shown_text(page)
    still = visitor.press(page, "approve", text=a_handoff(card="../up.md").replace("\n", "\r\n"))
    assert still.status_code == 400
    assert "bad-card-name" in shown_text(still.text)
    assert "../up.md" in still.text  # what was typed is still there
    answer = visitor.press(still.text, "save", text=a_handoff(card="found.md").replace("\n", "\r\n"))
    assert answer.status_code == 303
    assert path.read_bytes().endswith(a_handoff(card="found.md").encode())
    page = visitor.see(answer.headers["location"])
    assert "memory/cards/found.md is new" in shown_text(page)
    assert "Saved" in shown_text(page)
    assert visitor.press(page, "approve").status_code == 303
    assert place.cards() == ["found.md"]


def test_save_and_approve_at_once(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    text = a_handoff(content=a_card(body="Staging answers on 9444."))
    answer = visitor.press(visitor.see(f"/review/{wanted}/edit"), "approve", text=text)
    assert answer.status_code == 303
    assert "Staging answers on 9444." in place.card()
    assert place.drafts() == []


def test_an_edit_that_leads_to_a_file_that_was_not_shown_is_shown_first(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    card = write_card(place, "precious", "Nobody looked at this.").read_bytes()
    text = a_handoff(action="update-card", card="precious.md", content=a_card(body=OTHER))
    answer = visitor.press(visitor.see(f"/review/{wanted}/edit"), "approve", text=text)
    assert answer.status_code == 409
    assert (place.workspace / "memory/cards/precious.md").read_bytes() == card
    assert "Nobody looked at this." in shown_text(answer.text)
    assert visitor.press(answer.text, "approve").status_code == 303
    assert OTHER in place.card("precious.md")


@pytest.mark.parametrize(
    "body", [a_handoff().encode(), a_handoff().replace("\n", "\r\n").encode(), b"\xef\xbb\xbf# x\n\ny"]
)
def test_saving_a_text_as_it_was_changes_no_byte(place: Place, visitor: Visitor, body: bytes) -> None:
    wanted = put_draft(place, 1)
    file = draft_file(place, wanted)
    file.write_bytes(file.read_bytes().partition(b"# Memory")[0] + body)
    before = dict(tree(place.workspace))
    answer = visitor.press(visitor.see(f"/review/{wanted}/edit"), "save")
    assert answer.status_code == 303
    assert dict(tree(place.workspace)) == before
    assert "Nothing was changed" in shown_text(visitor.see(answer.headers["location"]))


def test_line_ends_stay_those_of_the_draft(place: Place, visitor: Visitor) -> None:
    wanted = put_draft(place, 1)
    file = draft_file(place, wanted)
    file.write_bytes(file.read_bytes().partition(b"# Memory")[0] + b"one\r\ntwo\r\n")
    visitor.press(visitor.see(f"/review/{wanted}/edit"), "save", text="one\r\n\r\nthree\r\n")
    assert file.read_bytes().endswith(b"---\none\r\n\r\nthree\r\n")


def test_a_typed_credential_is_not_taken_and_the_text_is_kept(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    before = dict(tree(place.workspace))
    text = a_handoff(content=a_card(body="token ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"))
    answer = visitor.press(visitor.see(f"/review/{wanted}/edit"), "save", text=text)
    assert answer.status_code == 400
    assert "looks like a credential" in shown_text(answer.text)
    assert "## Suggested card content" in answer.text
    assert dict(tree(place.workspace)) == before


# Two at a time.


def test_a_target_that_changed_meanwhile_is_not_overwritten(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    page = visitor.see(f"/review/{wanted}")
    card = place.workspace / "memory/cards/staging-proxy.md"
    card.write_text(card.read_text() + "\nAda wrote this by hand.\n")
    before = dict(tree(place.workspace))
    answer = visitor.press(page, "approve")
    assert answer.status_code == 409
    assert dict(tree(place.workspace)) == before
    said = shown_text(answer.text)
    assert "What changed in memory/cards/staging-proxy.md" in said
    assert said.count("Ada wrote this by hand.") == 2  # as what changed, and as what would go
    # They have seen it now.
    assert visitor.press(answer.text, "approve").status_code == 303
    assert OTHER in place.card()


def test_a_draft_that_changed_meanwhile_is_not_decided_on(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    page = visitor.see(f"/review/{wanted}")
    file = draft_file(place, wanted)
    file.write_text(file.read_text().replace("9443", "9555"))
    before = dict(tree(place.workspace))
    for do in ("approve", "reject"):
        answer = visitor.press(page, do)
        assert answer.status_code == 409
        assert f"What changed in memory/handoff-inbox/{wanted}.md" in shown_text(answer.text)
        assert "<ins>9555</ins>" in answer.text
    assert dict(tree(place.workspace)) == before


def test_two_people_edit_and_neither_text_is_lost(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    mine, theirs = visitor.see(f"/review/{wanted}/edit"), visitor.see(f"/review/{wanted}/edit")
    assert visitor.press(theirs, "save", text="their\r\nwords").status_code == 303
    late = visitor.press(mine, "save", text="my\r\nwords")
    assert late.status_code == 409
    assert draft_file(place, wanted).read_bytes().endswith(b"---\ntheir\nwords")
    (form,) = [form for form in Reader(late.text).forms if ("do", "save") in form.buttons]
    assert dict(form.fields)["text"] == "my\r\nwords"
    assert "their" in shown_text(late.text)
    assert visitor.press(late.text, "save").status_code == 303
    assert draft_file(place, wanted).read_bytes().endswith(b"---\nmy\nwords")
    with place.open() as workspace:
        entry, _ = next(workspace.history.entries(limit=1))
        workspace.history.undo(entry.id)
    assert draft_file(place, wanted).read_bytes().endswith(b"---\ntheir\nwords")


def test_a_draft_that_somebody_else_decided_on_says_so_and_offers_the_next(place: Place, visitor: Visitor) -> None:
    ids = workers(place, 3)
    page, edit = visitor.see(f"/review/{ids[1]}"), visitor.see(f"/review/{ids[1]}/edit")
    with place.open() as workspace:
        workspace.review.reject(ids[1])
    before = dict(tree(place.workspace))
    for answer in (visitor.press(page, "approve"), visitor.press(page, "reject")):
        assert answer.status_code == 409
        assert "was rejected" in shown_text(answer.text)
        assert f"/review/{ids[2]}" in Reader(answer.text).links
    assert visitor.get(f"/review/{ids[1]}").status_code == 410
    assert visitor.get(f"/review/{ids[1]}/edit").status_code == 410
    late = visitor.press(edit, "approve", text="what I typed")
    assert late.status_code == 409
    assert "what I typed" in late.text
    assert visitor.get("/review/never-was").status_code == 404
    assert dict(tree(place.workspace)) == before


def test_the_id_of_a_gone_draft_never_means_another(place: Place, visitor: Visitor) -> None:
    ids = [put_draft(place, 1), put_draft(place, 11)]
    for wanted in ("thing-1", "thing", ids[0][:-1], ids[1][1:]):
        assert visitor.get(f"/review/{wanted}").status_code == 404
        for do in ("approve", "reject"):
            answer = visitor.send(f"/review/{wanted}", [("csrf", KEYS.form), ("do", do), *saws(visitor, ids[0])])
            assert answer.status_code == 404
    assert len(place.drafts()) == 2


def test_of_two_at_once_one_is_done(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    page = visitor.see(f"/review/{wanted}")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda do: visitor.press(page, do), ["approve", "reject", "approve", "reject"]))
    assert sorted(answer.status_code for answer in answers) == [303, 409, 409, 409]
    with place.open() as workspace:
        verbs = [entry.verb for entry, _ in workspace.history.entries()]
    assert sum(verb in ("approved", "rejected") for verb in verbs) == 1


@pytest.mark.parametrize("which", ["draft", "target"])
def test_an_act_that_says_what_it_saw_is_refused_for_anything_else(place: Place, which: str) -> None:
    wanted = doubtful(place)
    with place.open() as workspace:
        seen = workspace.review.show(wanted).seen
        assert set(seen) == {f"memory/handoff-inbox/{wanted}.md", "memory/cards/staging-proxy.md"}
        path = next(path for path in seen if ("handoff-inbox" in path) == (which == "draft"))
        (place.workspace / path).write_bytes((place.workspace / path).read_bytes() + b"x")
        before = dict(tree(place.workspace))
        with pytest.raises(EditedSince, match=re.escape(path)):
            workspace.review.approve(wanted, seen=seen)
        with pytest.raises(EditedSince):
            workspace.review.approve(wanted, seen={})
        with pytest.raises(NotFound):
            workspace.review.approve(wanted[:-1], seen=seen)
        assert dict(tree(place.workspace)) == before
        assert workspace.review.approve(wanted, seen=workspace.review.show(wanted).seen).outcome == "promoted"


# Several at once.


def test_several_are_listed_and_one_that_fails_stops_no_other(place: Place, visitor: Visitor) -> None:
    ids = workers(place, 4)
    page = visitor.see("/review/-/several?" + urlencode([("draft", one) for one in [*ids, "never-was"]]))
    assert "Not here any more: never-was" in shown_text(page)
    assert len(place.drafts()) == 4  # asking does nothing
    file = draft_file(place, ids[1])
    file.write_text(file.read_text().replace("queue q1", "another queue"))
    with place.open() as workspace:
        workspace.review.reject(ids[2])
    answer = visitor.press(page, "approve")
    assert answer.status_code == 200
    said = shown_text(answer.text)
    assert "2 of 4 filed" in said
    assert place.cards() == ["worker-0.md", "worker-3.md"]
    assert [path.stem for path in place.drafts()] == [ids[1]]
    assert f"/review/{ids[1]}" in Reader(answer.text).links
    assert f"no draft '{ids[2]}'" in said
    assert len([link for link in Reader(answer.text).links if link.startswith("/history/")]) == 2


def test_several_are_rejected_with_one_reason_and_an_entry_each(place: Place, visitor: Visitor) -> None:
    ids = workers(place, 4)
    place.leave(a_handoff(card=None), "2026-11-14-1000-lost.md")
    place.ingest()
    lost = next(path.stem for path in place.drafts() if path.stem not in ids)
    assert {("do", "reject")} <= {button for form in Reader(visitor.see("/review")).forms for button in form.buttons}
    page = visitor.see("/review/-/several?do=reject&" + urlencode([("draft", one) for one in [*ids, lost]]))
    assert "Reject several drafts" in shown_text(page)
    assert not any(("do", "approve") in form.buttons for form in Reader(page).forms)
    assert [key for key in Reader(page).keys if key in "axX"] == ["x", "X"]
    assert len(place.drafts()) == 5  # asking does nothing
    file = draft_file(place, ids[1])
    file.write_text(file.read_text().replace("queue q1", "another queue"))
    with place.open() as workspace:
        workspace.review.approve(ids[2])
    answer = visitor.press(page, "reject", reason="only true \n for a day")
    assert answer.status_code == 200
    said = shown_text(answer.text)
    assert "3 of 5 rejected" in said
    assert [path.stem for path in place.drafts()] == [ids[1]]  # it is another one than was shown
    with place.open() as workspace:
        entries = [entry for entry, _ in workspace.history.entries(limit=None) if entry.verb == "rejected"]
        assert [entry.note for entry in entries] == ["only true for a day"] * 3
        workspace.history.undo(entries[0].id)
    assert sorted(path.stem for path in place.drafts()) == sorted([ids[1], lost])
    assert len([link for link in Reader(answer.text).links if link.startswith("/history/")]) == 3


def test_all_of_one_kind_are_rejected(place: Place, visitor: Visitor) -> None:
    workers(place, 2)
    place.leave(a_handoff(card=None), "2026-11-14-1000-lost.md")
    place.ingest()
    forms = Reader(visitor.see("/review?reason=no-target")).forms
    assert any(("all", "reject") in form.buttons for form in forms)
    visitor.press(visitor.see("/review/-/several?reason=no-target&all=reject&page=1"), "reject")
    assert len(place.drafts()) == 2


def test_a_form_for_several_that_asks_for_nothing_does_nothing(place: Place, visitor: Visitor) -> None:
    (wanted,) = workers(place, 1)
    for do in ("", "expire"):
        fields = [("csrf", KEYS.form), ("do", do), ("draft", wanted)]
        saw = [(f"saw-{wanted}", value) for _, value in saws(visitor, wanted)]
        assert visitor.send("/review/-/several", [*fields, *saw]).status_code == 400
    assert len(place.drafts()) == 1
    assert not place.cards()


def test_the_queue_names_drafts_by_their_titles(place: Place, visitor: Visitor) -> None:
    first, second = workers(place, 2)
    assert f'>Worker 0</a><br><span class="faint small">{first}<' in visitor.see("/review")
    file = draft_file(place, second)
    file.write_text(file.read_text().replace("## Title\nWorker 1", "## Title\nThe second <b>worker</b>"))
    assert ">The second &lt;b&gt;worker&lt;/b&gt;</a>" in visitor.see("/review")
    file.write_text("no handoff at all\n")
    assert f">{second}</a>" in visitor.see("/review")


def test_all_of_one_kind(place: Place, visitor: Visitor) -> None:
    workers(place, 2)
    place.leave(a_handoff(card=None), "2026-11-14-1000-lost.md")
    place.ingest()
    assert 'name="all"' not in visitor.see("/review")
    assert 'name="all"' in visitor.see("/review?reason=no-such-card")
    page = visitor.see("/review/-/several?reason=no-such-card&all=1&page=1")
    assert "lost" not in page
    visitor.press(page, "approve")
    assert place.cards() == ["worker-0.md", "worker-1.md"]
    page = visitor.see("/review/-/several?reason=no-target&all=1")
    assert "must be fixed first" in shown_text(page)
    assert all(not form.buttons for form in Reader(page).forms)


def test_what_ingest_would_file_by_now_is_filed_and_the_rest_waits(place: Place, visitor: Visitor) -> None:
    ids = workers(place, 2)
    write_card(place, "worker-0", "Worker 0 reads queue q0.", topic="Worker 0")
    page = visitor.see("/review/-/several?" + urlencode([("draft", one) for one in ids]))
    said = shown_text(visitor.press(page, "retry").text)
    assert [path.stem for path in place.drafts()] == [ids[1]]
    assert "1 of 2 filed" in said
    assert "no-such-card" in said


# Who may, and what is there for the keyboard.


def test_for_looking_only_there_is_no_form_that_changes_anything(place: Place) -> None:
    wanted = doubtful(place)
    visitor = Visitor(place, read_only=True)
    for path in (
        "/review",
        f"/review/{wanted}",
        f"/review/{wanted}/edit",
        f"/review/-/several?draft={wanted}",
        f"/review/-/several?do=reject&draft={wanted}",
    ):
        page = visitor.see(path)
        assert all(form.method != "post" or not form.buttons for form in Reader(page).forms)
        assert 'type="checkbox"' not in page
    fields = [("csrf", KEYS.form), ("do", "approve")]
    for path in (f"/review/{wanted}", f"/review/{wanted}/edit", "/review/-/several"):
        assert visitor.send(path, fields).status_code == 403
    assert len(place.drafts()) == 1
    visitor.close()


def test_a_form_without_the_sites_word_does_nothing(place: Place, visitor: Visitor) -> None:
    wanted = doubtful(place)
    before = dict(tree(place.workspace))
    for csrf in ("", "0" * 64):
        for path in (f"/review/{wanted}", f"/review/{wanted}/edit", "/review/-/several"):
            fields = [("csrf", csrf), ("do", "approve"), ("draft", wanted), ("text", "x"), *saws(visitor, wanted)]
            assert visitor.send(path, fields).status_code == 400
    assert visitor.send(f"/review/{wanted}", [("csrf", KEYS.form), ("do", "explode")]).status_code == 400
    assert dict(tree(place.workspace)) == before


def test_every_key_of_a_page_is_listed_and_means_one_thing(place: Place, visitor: Visitor) -> None:
    ids = workers(place, 3)
    done = visitor.press(visitor.see(f"/review/{ids[0]}"), "reject").headers["location"]
    for path in ("/review", done, f"/review/{ids[1]}/edit", f"/review/-/several?draft={ids[1]}"):
        page = visitor.see(path)
        keys = [key for key in Reader(page).keys if not key.startswith("g ")]
        assert len(keys) == len(set(keys))
        listed = page.partition('<dialog id="keys"')[2]
        for key in keys:
            assert f"<kbd>{key.lower()}</kbd>" in listed, (path, key)
    assert {"a", "e", "t", "x", "X", "n", "u", "z"} <= set(Reader(visitor.see(done)).keys)


def test_odd_names_of_drafts_are_addresses(place: Place, visitor: Visitor) -> None:
    folder = place.workspace / "memory" / "handoff-inbox"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("a b#c?d%z&e", "ünïcode", "several", "-", 'quote"s<b>'):
        (folder / f"{name}.md").write_text(a_handoff(title="By hand"))
    links = [link for link in Reader(visitor.see("/review")).links if link.startswith("/review/")]
    assert len(set(links)) == 5
    for link in set(links):
        page = visitor.see(link)
        assert visitor.press(page, "reject").status_code == 303
    assert place.drafts() == []


# Listing.


class CountingVault(MemoryFiles):
    """Counts what is read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.paths: list[str] = []

    def read(self, path: str) -> FileOnDisk | None:
        self.paths.append(path)
        return super().read(path)


def test_drafts_that_did_not_change_are_not_read_again(place: Place) -> None:
    ids = [put_draft(place, number) for number in range(4)]
    for wanted in ids:
        os.utime(draft_file(place, wanted), (1_700_000_000, 1_700_000_000))
    vault = CountingVault(str(place.workspace))
    known: dict[str, object] = {}
    first = list(iter_drafts(vault, known))  # type: ignore[arg-type] # what it holds is not looked at
    assert len(vault.paths) == 4
    assert list(iter_drafts(vault, known)) == first  # type: ignore[arg-type]
    assert len(vault.paths) == 4
    file = draft_file(place, ids[2])
    file.write_text(file.read_text().replace("writer: claude", "writer: other!"))
    draft_file(place, ids[0]).unlink()
    again = list(iter_drafts(vault, known))  # type: ignore[arg-type]
    assert [draft.id for draft in again] == ids[1:]
    assert [draft.writer for draft in again] == ["claude", "other!", "claude"]
    assert vault.paths[4:] == [f"memory/handoff-inbox/{ids[2]}.md"]
    assert set(known) == {f"{ids[1]}.md", f"{ids[3]}.md"}  # one that is new may change unseen, and is not kept
    vault.close()


def test_a_draft_is_found_without_reading_the_others(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [put_draft(place, number) for number in range(6)]
    with place.open() as workspace:
        paths: list[str] = []
        vault = workspace.context.transaction.vault
        read = vault.read

        def counted(path: str) -> FileOnDisk | None:
            paths.append(path)
            return read(path)

        monkeypatch.setattr(vault, "read", counted)
        workspace.review.show(ids[3], exact=True)
        workspace.review.show(ids[3][:-1])
    there = {path for path in paths if "handoff-inbox" in path and (place.workspace / path).exists()}
    assert there == {f"memory/handoff-inbox/{ids[3]}.md"}


# Side by side.


LINES = st.lists(
    st.sampled_from(["", "a", "b", "one two three", "one 2 three", "x\u200by", "\ttab", "é ü"]), max_size=30
)


def joined(sides: Sides, side: str) -> list[str]:
    cells = [row.left if side == "left" else row.right for row in sides.rows]
    there = [cell for cell in cells if cell is not None]
    assert [cell.number for cell in there] == list(range(1, len(there) + 1))
    return ["".join(piece.text for piece in cell.pieces) for cell in there]


@given(old=LINES, new=LINES)
@settings(max_examples=300, deadline=None)
def test_all_lines_of_both_sides_are_there_in_order(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines).encode() for lines in (old, new))
    sides = compare(before, after, context=None)
    assert joined(sides, "left") == [printable(line, newlines=True) for line in old]
    assert joined(sides, "right") == [printable(line, newlines=True) for line in new]
    for row in sides.rows:
        if row.kind == "same":
            assert row.left is not None
            assert row.right is not None
            assert old[row.left.number - 1] == new[row.right.number - 1]
    brief = compare(before, after)
    kept = {row for row in brief.rows if row.kind == "changed"}
    assert kept == {row for row in sides.rows if row.kind == "changed"}
    hidden = sum(row.hidden for row in brief.rows)
    assert len(brief.rows) - sum(row.kind == "gap" for row in brief.rows) + hidden == len(sides.rows) or old == new


@given(old=st.text(max_size=60), new=st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_what_is_not_marked_in_two_lines_is_the_same_in_both(old: str, new: str) -> None:
    sides = compare(old.encode("utf-8", "replace"), new.encode("utf-8", "replace"), context=None)
    for row in sides.rows:
        if row.left and row.right and any(piece.is_changed for piece in (*row.left.pieces, *row.right.pieces)):
            left = "".join(piece.text for piece in row.left.pieces if not piece.is_changed)
            right = "".join(piece.text for piece in row.right.pieces if not piece.is_changed)
            assert left == right


def test_words_that_changed_are_marked_and_lines_find_their_partners() -> None:
    sides = compare(b"the port is 8443 here\nlast\n", b"a whole new line\nthe port is 9443 here\nlast\n")
    new, changed, last = sides.rows
    assert new.left is None
    assert changed.left is not None
    assert changed.right is not None
    assert [piece.text for piece in changed.left.pieces if piece.is_changed] == ["8443"]
    assert [piece.text for piece in changed.right.pieces if piece.is_changed] == ["9443"]
    assert last.kind == "same"


def test_a_large_text_is_compared_line_by_line_and_what_is_shown_is_limited() -> None:
    count = int(MOST_COMPARED**0.5) * 10
    same = "".join(f"same {number}\n" for number in range(count))
    sides = compare(same.encode(), (same + "one more\n").encode())  # however long, alike is cheap
    assert (sides.removed, sides.added, sides.note) == (0, 1, "")
    assert sides.rows[-1].right is not None
    sides = compare(same.encode(), f"first\n{same.replace('same 777', 'new 777')}last\n".encode())
    assert (sides.removed, sides.added) == (11, 13)
    other = "".join(f"other {number}\n" for number in range(count))
    sides = compare(same.encode(), other.encode(), most=50)
    assert (sides.removed, sides.added, len(sides.rows), sides.is_cut) == (count, count, 50, True)
    long = compare(b"a b " * 50_000, b"b a c " * 50_000)
    assert (long.removed, long.added) == (1, 1)


def test_no_file_no_text_and_only_line_ends() -> None:
    assert compare(None, b"x\n").only == "right"
    assert compare(b"x\n", None).only == "left"
    assert compare(b"x\n", b"x\r\n").note == "Only line ends differ."
    assert compare(b"x", b"x\n").note == "Only line ends differ."
    assert compare(b"\xff\x00", b"text").rows[0].left is not None
    assert compare(b"", None).rows == ()


# What a page remembers, and how it says when.


def test_what_was_shown_is_kept_within_bounds() -> None:
    shown = ShownFiles()
    texts = [bytes([number]) * 900_000 for number in range(20)]
    for text in texts:
        shown.add(text)
        shown.add(text)
    found = [text for text in texts if shown.find(sha256(text).hexdigest()) == text]
    assert found == texts[-len(found) :]
    assert 1 <= sum(map(len, found)) <= ShownFiles.MAX_BYTES
    shown.add(None)
    shown.add(b"x" * (ShownFiles.MAX_FILE_BYTES + 1))
    assert shown.find("") is None


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2026-11-15T11:59:50Z", "a moment"),
        ("2026-11-15T11:58:00Z", "2 minutes"),
        ("2026-11-15T10:30:00Z", "90 minutes"),
        ("2026-11-14T12:00:00Z", "24 hours"),
        ("2026-11-03T12:00:00Z", "12 days"),
        ("2026-12-01T12:00:00Z", "a moment"),
        ("no day", "unknown"),
        ("", "unknown"),
    ],
)
def test_an_age_in_words(at: str, said: str) -> None:
    assert age_of(at, NOW) == said


def test_the_cards_that_are_offered_as_targets(place: Place) -> None:
    """Those that share most words first, then others; a card that came or went is noticed."""
    folder = place.workspace / "memory" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(MAX_SUGGESTED_CARDS):
        (folder / f"note-{number:03}.md").write_text("x\n")
    names = CardNames()
    with place.open() as workspace:
        assert names.like(workspace, {"staging", "proxy"}) == [
            f"note-{number:03}.md" for number in range(MAX_SUGGESTED_CARDS)
        ]
        for name in ("zz-proxy", "staging-PROXY", "staging-of-staging", "unstaging"):
            (folder / f"{name}.md").write_text("x\n")
        offered = names.like(workspace, {"staging", "proxy"})
        assert offered[:3] == ["staging-PROXY.md", "staging-of-staging.md", "zz-proxy.md"]
        assert offered[3:] == [f"note-{number:03}.md" for number in range(MAX_SUGGESTED_CARDS - 3)]
        (folder / "staging-PROXY.md").unlink()
        assert names.like(workspace, {"staging", "proxy"})[0] == "staging-of-staging.md"
