"""ssh, as the routes call it: never asking a question, never waiting long, and its complaints in plain words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from truekeep.core.errors import BadSetup
from truekeep.handoffs.sync.runner import Unreachable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.processes import Ran
    from truekeep.handoffs.sync.routes import Route

_PORT = 22
FAILED = 255  # ssh's own exit code, as opposed to that of what it ran
_HOST = re.compile(r"[^\s\x00-\x1f\x7f/'\"-][^\s\x00-\x1f\x7f/'\"]*\Z")
_FIRST = ("BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no")
_LAST = ("ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")  # a route may say otherwise


def host_of(route: Route) -> str:
    """The machine that a route names, as ssh takes it and nothing else."""
    host = route.text("host")
    if not _HOST.match(host):
        raise BadSetup(
            f"{host[:60]!r} is no machine for ssh", hint="as ada@laptop, or a Host of your ssh configuration"
        )
    return host


def ssh_command(route: Route) -> list[str]:
    """ssh and its options; of two equal options ssh takes the first."""
    given = route.texts("ssh_options")
    if bad := [option for option in given if "\n" in option or "\0" in option or not option.strip()]:
        raise BadSetup(f"{bad[0][:60]!r} is no option of ssh", hint="as IdentityFile=~/.ssh/truekeep")
    command = ["ssh", "-T"]
    for option in (*_FIRST, *given, *_LAST):
        command += ["-o", option]
    port = route.number("port", 0)
    return [*command, "-p", str(port)] if port else command


_MEANINGS = (
    ("host identification has changed", "the host key of {host} has changed",
     "if it was set up anew: `ssh-keygen -R {key}`, then `{ssh}` by hand; if not, somebody answers in its place"),
    ("host key verification failed", "the host key of {host} is not known here",
     "`{ssh}` once by hand, and compare the key before you accept it"),
    ("permission denied", "{host} refuses the login", "`{copy}`, or name the key in --ssh-option"),
    ("too many authentication failures", "{host} refuses the login",
     "--ssh-option IdentitiesOnly=yes, and IdentityFile with the one key that it knows"),
    ("could not resolve hostname", "{host} is unknown: no such name", "look at the name; is the network there?"),
    ("connection refused", "{host} answers, but its ssh does not", "start sshd there, or look at --port"),
    ("timed out", "{host} does not answer", "is it on, and in this network?"),
    ("no route to host", "{host} does not answer", "is it on, and in this network?"),
    ("network is unreachable", "{host} does not answer", "is this machine in its network?"),
    ("bad configuration option", "ssh does not know an option of this route", "`truekeep sync status --json` shows it"),
    ("no answer within", "{host} took too long", "nothing is lost; the next run goes on"),
    ("connection closed", "{host} closed the connection", "nothing is lost; the next run goes on"),
    ("closed by remote host", "{host} closed the connection", "nothing is lost; the next run goes on"),
    ("connection reset", "the connection to {host} broke", "nothing is lost; the next run goes on"),
    ("broken pipe", "the connection to {host} broke", "nothing is lost; the next run goes on"),
)  # fmt: skip


def unreachable(host: str, ran: Ran, *, port: int = 0) -> Unreachable:
    """Why a machine was not reached, for a person."""
    said = ran.err.lower()
    given = f"-p {port} " if port else ""
    name = host.rpartition("@")[2]
    words_of = {
        "host": host,
        "ssh": f"ssh {given}{host}",
        "copy": f"ssh-copy-id {given}{host}",
        "key": f"'[{name}]:{port}'" if port and port != _PORT else name,  # as known_hosts has it
    }
    for words, problem, hint in _MEANINGS:
        if words in said:
            return Unreachable(problem.format(**words_of), hint.format(**words_of))
    told = f": {ran.last_words}" if ran.last_words else f" (exit {ran.code})"
    return Unreachable(f"{host} was not reached{told}", f"`{words_of['ssh']}` by hand shows more")
