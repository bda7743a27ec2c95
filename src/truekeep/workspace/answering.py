"""The host's answer to a machine that syncs with it over ssh: takes handoffs, gives receipts and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truekeep.core import file_io
from truekeep.core.errors import Busy
from truekeep.handoffs.sync import protocol
from truekeep.handoffs.sync.contact_history import read_history
from truekeep.handoffs.sync.mirror import Mirror, slug
from truekeep.handoffs.sync.publication import OBJECTS
from truekeep.handoffs.sync.pull_rsync import HostAnswer, check_answering, read_offered
from truekeep.handoffs.sync.push_memory import publish_for
from truekeep.handoffs.sync.receipts import read_signer
from truekeep.handoffs.sync.routes import Option, Route, read_routes

if TYPE_CHECKING:
    from truekeep.handoffs.sync.runner import LocalMachine

FOLDER = "inbound"  # in the state folder: what machines put here by rsync; in it, a folder for each
_MIRROR = "inbound"


def answer_machine(side: LocalMachine, folder: str, login: str) -> HostAnswer:
    """Answer the machine with this folder; `login` is the person who works there."""
    base = side.state / FOLDER / check_answering(folder)
    file_io.make_private(base)
    with file_io.locked(str(base)) as is_locked:
        if not is_locked:
            raise Busy("the host answers this machine already", hint="wait until it has finished")
        source, mirror = protocol.FolderSource(base), Mirror.of(side.state, _MIRROR)
        taken = protocol.collect(source, mirror, side.writers)
        signer = read_signer()
        receipts = {
            place: {digest: signer.render(folder, [place], digest).decode() for digest in done}
            for place, done in protocol.find_done(source, mirror, side.writers)
        }
        held = read_offered(base)
    published, notes = publish_for(_route_for(side, folder, login), side)
    answer = HostAnswer(str(base), held, receipts, (*taken.notes, *notes), taken.waiting)
    if published is None:
        return answer
    head = published.head.render().strip()
    return answer._replace(objects=str(published.folder / OBJECTS), names=published.objects, head=head)


def _route_for(side: LocalMachine, folder: str, login: str) -> Route:
    """What this machine gets: what the host's route to it gives, else no more than any route gives."""
    routes = list(read_routes(side.state).values())
    own = [route for route in routes if route.via == "rsync" and _is_to(side, route, folder)]
    private = {pattern for route in own or routes for pattern in route.texts("private")}
    shares = all(route.shares_memory for route in own or routes)
    given: dict[str, Option] = {"host": f"{login}@{folder}", "private": tuple(sorted(private)), "memory": shares}
    return Route(f"answer-{folder}", "rsync", given)


def _is_to(side: LocalMachine, route: Route, folder: str) -> bool:
    """True if a route of the host leads to the machine with this folder, as far as their names tell."""
    last = read_history(side.state, route.name).last
    names = {route.name, *(last.machines if last is not None else ())}
    return folder.rpartition("-")[0] in {slug(name) or "machine" for name in names}
