"""Sync with a team server over HTTPS: handoffs are posted, and the copy of memory is fetched.

A handoff leaves its inbox when the server has it in its database; posting it again does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput, TruekeepError
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.mirror import name_repository, place_name
from truekeep.handoffs.sync.outbox import Outbox, opened_outbox
from truekeep.handoffs.sync.push_memory import receive_memory, told_memory
from truekeep.handoffs.sync.runner import LocalMachine, Unreachable
from truekeep.handoffs.sync.server_login import HttpPublication, TeamClient

if TYPE_CHECKING:
    from truekeep.handoffs.sync.routes import Route


def contact(route: Route, here: LocalMachine) -> Contact:
    """Run a route to a team server."""
    if here.is_host:
        raise Unreachable(
            "the workspace here is a canonical host of its own", hint="`truekeep server import` brings it to a server"
        )
    notes: list[str] = []
    with TeamClient.of_route(route, here.state, seconds=here.seconds) as client:
        published = HttpPublication(client)
        published.read_head()  # first: a server that is away, or a token that it refuses, ends the contact here
        sent = waiting = 0
        if route.texts("repos"):
            with opened_outbox(route, here) as outbox:
                sent, waiting = _hand_in(client, outbox, here, notes)
                notes += outbox.notes
        came = receive_memory(published, route, here, notes)
    return Contact(
        route.name, "", True, brought=sent, receipts=sent, waiting=waiting, machines=(here.machine,),
        notes=tuple(dict.fromkeys(notes)), **told_memory(came),
    )  # fmt: skip


def _hand_in(client: TeamClient, outbox: Outbox, here: LocalMachine, notes: list[str]) -> tuple[int, int]:
    """Post what waits. One that the server does not take stays where it is. Gives how many went, and how many stay."""
    done: dict[str, set[str]] = {}
    left = 0
    for outgoing in outbox.waiting():
        file = outgoing.file
        assert file.raw is not None
        repository = name_repository(here.machine, outgoing.remote, str(file.inbox.root))
        try:
            client.hand_in(
                file.raw, name=file.name, writer=file.inbox.writer, machine=here.machine, repository=repository
            )
        except BadInput as error:
            notes.append(f"{file.inbox.path / file.name} was not taken: {error.message}")
            left += 1
        except (Unreachable, TruekeepError) as error:
            notes.append(f"handoffs wait here: {error}")
            left += 1
            break  # what is true for this one is for the others
        else:
            place = place_name(here.machine, str(file.inbox.root))
            done.setdefault(place, set()).add(outgoing.digest)
    return outbox.clear(done, machine=here.machine), left
