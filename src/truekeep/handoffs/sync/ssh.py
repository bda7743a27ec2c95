"""Runs ssh without prompts and with short timeouts, and turns its errors into messages with a hint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from truekeep.core.errors import BadSetup
from truekeep.handoffs.sync.runner import Unreachable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.processes import Ran
    from truekeep.handoffs.sync.routes import Route

_PORT = 22
FAILED = 255  # exit code of ssh itself, not of the remote command
_HOST = re.compile(r"[^\s\x00-\x1f\x7f/'\"-][^\s\x00-\x1f\x7f/'\"]*\Z")
_FIRST = ("BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no")
_LAST = ("ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")  # a route's own options come first


def host_of(route: Route) -> str:
    """The route's host, checked to be only a host name for ssh."""
    host = route.text("host")
    if not _HOST.match(host):
        raise BadSetup(
            f"{host[:60]!r} is not an ssh host", hint="give user@host, or a Host from your ssh configuration"
        )
    return host


def ssh_command(route: Route) -> list[str]:
    """ssh and its options; if an option is given twice, ssh uses the first."""
    given = route.texts("ssh_options")
    if bad := [option for option in given if "\n" in option or "\0" in option or not option.strip()]:
        raise BadSetup(f"{bad[0][:60]!r} is not an ssh option", hint="give one such as IdentityFile=~/.ssh/truekeep")
    command = ["ssh", "-T"]
    for option in (*_FIRST, *given, *_LAST):
        command += ["-o", option]
    port = route.number("port", 0)
    return [*command, "-p", str(port)] if port else command


def rsync_host(host: str) -> str:
    """A host as rsync writes it: an address with colons in brackets."""
    user, at, name = host.rpartition("@")
    return f"{user}{at}[{name}]" if ":" in name and not name.startswith("[") else host


def remote_shell(route: Route) -> str:
    """rsync's option for ssh with the options of a route."""
    return "--rsh=" + " ".join("'" + word.replace("'", "''") + "'" for word in ssh_command(route))


_MEANINGS = (
    ("host identification has changed", "the host key of {host} has changed",
     "if it was reinstalled, run `ssh-keygen -R {key}` and then `{ssh}`; if not, another machine may be posing as it"),
    ("host key verification failed", "the host key of {host} is not known here",
     "run `{ssh}` once, and compare the key before you accept it"),
    ("permission denied", "{host} refuses the login", "run `{copy}`, or give the key with --ssh-option"),
    ("too many authentication failures", "{host} refuses the login",
     "use --ssh-option IdentitiesOnly=yes, and IdentityFile with the right key"),
    ("could not resolve hostname", "cannot resolve the host name {host}", "check the name and the network"),
    ("connection refused", "{host} refuses ssh connections", "start sshd there, or check --port"),
    ("timed out", "{host} does not answer", "check that it is on and in this network"),
    ("no route to host", "{host} does not answer", "check that it is on and in this network"),
    ("network is unreachable", "{host} does not answer", "check this machine's network"),
    ("bad configuration option", "ssh does not know an option of this route",
     "run `truekeep sync status --json` to see it"),
    ("no answer within", "{host} took too long", "nothing was lost; the next run continues"),
    ("connection closed", "{host} closed the connection", "nothing was lost; the next run continues"),
    ("closed by remote host", "{host} closed the connection", "nothing was lost; the next run continues"),
    ("connection reset", "the connection to {host} broke", "nothing was lost; the next run continues"),
    ("broken pipe", "the connection to {host} broke", "nothing was lost; the next run continues"),
)  # fmt: skip


def unreachable(host: str, ran: Ran, *, port: int = 0) -> Unreachable:
    """The error for a machine that could not be reached."""
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
    detail = f": {ran.last_words}" if ran.last_words else f" (exit {ran.code})"
    return Unreachable(f"cannot reach {host}{detail}", f"run `{words_of['ssh']}` to see more")
