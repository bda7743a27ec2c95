"""The way of memory in a contact: what the host sends, and what a producer receives. rsync is driven here, too.

By rsync over ssh the host sends objects first, the head last.

The ssh call that looks for handoffs also says which state that machine has, so nothing new costs no call at all. Else
rsync brings the objects that are missing there, and a second call of ssh puts the head in its place and lets truekeep
there install it, or say why not. Where it cannot be started so, that machine installs it itself when its memory is
next asked for.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from truekeep.core.errors import TruekeepError
from truekeep.handoffs.sync.processes import run_tool
from truekeep.handoffs.sync.publication import OBJECTS
from truekeep.handoffs.sync.runner import Unreachable
from truekeep.handoffs.sync.ssh import FAILED, remote_shell, rsync_host, ssh_command, unreachable
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.copy_install import CopyReport, PublicationSource
    from truekeep.handoffs.sync.publication_store import Publication
    from truekeep.handoffs.sync.routes import Route
    from truekeep.handoffs.sync.runner import LocalMachine

_INSTALL = """
umask 077
cd {folder} || exit 9
printf '%s\\n' {route} >route.json.new && mv -f route.json.new route.json || exit 9
printf '%s\\n' {head} >head.json.new && mv -f head.json.new head.json || exit 9
printf '%s' {manifest} >manifest.new && mv -f manifest.new manifest || exit 9
{tidy}
PATH=$HOME/.local/bin:$PATH
command -v truekeep >/dev/null 2>&1 || exit 8
said=$(truekeep sync receive </dev/null 2>&1 >/dev/null) && exit 0
printf '%s\\n' "$said" >&2
exit 7
"""


# Something became private: what is not of this state goes, also where no truekeep can be started.
_TIDY = """(
  cd objects 2>/dev/null || exit 0
  for name in *; do case " {names} " in *" $name "*) ;; *) rm -f "./$name" ;; esac; done
)"""


def publish_for(route: Route, here: LocalMachine) -> tuple[Publication | None, list[str]]:
    """The host's publication, if this route sends memory; and a note if there is none because of an error."""
    if here.publish is None or not route.shares_memory:
        return None, []
    try:
        return here.publish(route), []
    except TruekeepError as error:
        return None, [f"memory was not published for other machines: {error.message}"]


def told_published(published: Publication | None) -> dict[str, Any]:
    """What a contact of the host records about memory."""
    if published is None:
        return {}
    head = published.head
    return {"memory": head.as_of, "memory_files": head.files, "memory_masked": len(published.masked)}


def receive_memory(source: PublicationSource, route: Route, here: LocalMachine, notes: list[str]) -> CopyReport | None:
    """On a producer: install the memory that came by a paired route. A problem with it does not stop handoffs."""
    if here.receive is None or not route.text("host_key"):
        return None
    try:
        report = here.receive(source, route)
    except TruekeepError as error:
        notes.append(f"the copy of memory stays as it is: {error.message}; {error.hint}")
        return None
    notes += report.notes if report is not None else []
    return report


def told_memory(report: CopyReport | None) -> dict[str, Any]:
    """What a contact of a producer records about memory."""
    if report is None:
        return {}
    return {"memory": report.as_of, "memory_files": report.files, "memory_changed": max(0, report.changed)}


def push_memory(
    route: Route, here: LocalMachine, host: str, machine: str, folder: str, published: Publication
) -> list[str]:
    """Send a publication to the folder for it on a machine. Gives notes."""
    _send_objects(route, here, host, folder, published)
    head = published.head
    given = {"repos": route.texts("repos"), "every": route.number("every", 0) or None}
    script = _INSTALL.format(
        folder=shlex.quote(folder),
        route=shlex.quote(json.dumps({key: value for key, value in given.items() if value is not None})),
        head=shlex.quote(head.render().decode().strip()),
        manifest=shlex.quote(head.manifest),
        tidy=_TIDY.format(names=" ".join(published.objects)) if head.purged == head.sequence else "",
    )
    ran = run_tool([*ssh_command(route), "--", host, "sh -s"], seconds=here.seconds, given=script.encode())
    if ran.code in (FAILED, -1):
        raise unreachable(host, ran, port=route.number("port", 0))
    if ran.code == 8:
        return [f"{machine} has the memory, and installs it when `truekeep` is next used there"]
    if ran.code == 7:
        said = printable(" ".join(ran.err.rpartition("truekeep: ")[2].split()))[:600]
        return [f"{machine} has the memory, and did not install it: {said or 'its truekeep failed'}"]
    if not ran.ok:
        raise Unreachable(f"memory could not be written on {host}: {ran.last_words}", "check its disk and permissions")
    return []


def _send_objects(route: Route, here: LocalMachine, host: str, folder: str, published: Publication) -> None:
    """Send the objects that are not there yet. They are named by their digests, so one that is there is the same."""
    names = "".join(f"{name}\0" for name in published.objects).encode()
    command = [
        "rsync", remote_shell(route), "--files-from=-", "--from0", "--no-recursive", "--no-links", "--no-perms",
        "--no-owner", "--no-group", "--chmod=D700,F600", "--whole-file", "--ignore-existing", "--protect-args",
        "--timeout=60",
        f"{published.folder / OBJECTS}/", f"{rsync_host(host)}:{folder}/{OBJECTS}/",
    ]  # fmt: skip
    ran = run_tool(command, seconds=here.seconds * 5, given=names)
    if ran.ok:
        return
    said = ran.err.lower()
    if "no space left" in said or "quota exceeded" in said:
        raise Unreachable(f"no space left on {host} for the copy of memory", "free some space there; its copy stays")
    if ran.code in (FAILED, -1):
        raise unreachable(host, ran, port=route.number("port", 0))
    raise Unreachable(
        f"memory could not be sent to {host}: {ran.last_words or f'exit {ran.code}'}", "the next run tries again"
    )
