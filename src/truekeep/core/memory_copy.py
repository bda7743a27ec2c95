"""The copy of the canonical host's memory on another machine: where it is, whose it is, and how old.

    <state>/copy/current            a symlink to the generation in use
    <state>/copy/generations/<n>/   one whole state of the host, as a workspace that is only read
    <state>/copy/incoming/          what the host published last: head.json and objects
    <state>/copy/head.json          the last head for the generation in use: when the host said that it is current

A reader resolves `current` once, so it sees one generation to its end. Hooks import this module: it only reads.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.machine import own_state

if TYPE_CHECKING:
    from datetime import datetime

CURRENT = "current"
GENERATIONS = "generations"
INCOMING = "incoming"
HEAD = "head.json"
MARK = "copy.json"  # in the state folder of a generation: it makes the folder a copy
EVERY_MINUTES = 60  # a copy that was not confirmed for longer is stale: half an hour for the host's timer, and for ours
_STATE = ".truekeep"


class CopySource(NamedTuple):
    """Where a copy came from, and when the host last confirmed it."""

    host: str
    host_id: str
    as_of: str  # UTC, in the ledger's format
    sequence: int
    manifest: str
    route: str = ""
    every: int = EVERY_MINUTES
    private: int = 0  # files that stayed on the host
    edited: tuple[str, ...] = ()  # where edits of the copy were kept, the last time there were any

    def minutes_old(self, now: datetime) -> int | None:
        """Minutes since the host confirmed this state; None if its clock or ours cannot be right."""
        from datetime import datetime  # hooks that read no memory do without

        try:
            seconds = (now - datetime.fromisoformat(self.as_of)).total_seconds()
        except (ValueError, OverflowError, TypeError):
            return None
        return max(0, int(seconds // 60)) if seconds > -3600 else None

    def is_stale(self, now: datetime) -> bool:
        age = self.minutes_old(now)
        return age is None or age > self.every

    def in_words(self, now: datetime) -> str:
        """The source and its age: `as of 12 min ago, from desk`."""
        return f"as of {shown_minutes(self.minutes_old(now))}, from {self.host}"

    def warning(self, now: datetime) -> str:
        """What to do about a copy that is older than its interval, or of a time to come; "" if it is neither."""
        if not self.is_stale(now):
            return ""
        if self.minutes_old(now) is None:
            return f"the clock here or on {self.host} is wrong: `date` on both"
        return f"older than its interval of {self.every} min: {self._next_step(now)}"

    def _next_step(self, now: datetime) -> str:
        if _has_route(self.route):
            was_here = CopySource.minutes_old(self._replace(as_of=_last_contact(self.route)), now)
            if was_here is not None and was_here <= self.every:  # it was asked, and had nothing later
                return f"`truekeep sync run` on {self.host}, and `date` on both"
            return "`truekeep sync run` here"
        if not self.route or is_sent():
            return f"`truekeep sync run` on {self.host}"
        return f"the route {self.route} that brought it was removed here, `truekeep connect machine` makes one"

    def note(self, now: datetime) -> str:
        """The source and its age, and a warning if it is stale."""
        return "; ".join(filter(None, (self.in_words(now), self.warning(now))))


def shown_minutes(minutes: int | None) -> str:
    """An age in words."""
    if minutes is None:
        return "an unknown time"
    if minutes < 2:
        return "just now"
    if minutes < 120:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 2880 else f"{minutes // 1440} days ago"


def copy_root() -> str:
    """The folder of this user's copy; it may not exist."""
    return os.path.join(own_state(), "copy")


def find_copy() -> str:
    """The generation in use; "" if there is none."""
    path = os.path.realpath(os.path.join(copy_root(), CURRENT))
    return path if os.path.isfile(os.path.join(path, _STATE, MARK)) else ""


def is_sent() -> bool:
    """True if the host sends memory here by itself, by rsync."""
    return os.path.isfile(os.path.join(copy_root(), INCOMING, HEAD))


def _has_route(name: str) -> bool:
    """True if sync.toml of this machine has a route of this name. Its own parser is too heavy for hooks."""
    try:
        with open(os.path.join(own_state(), "sync.toml"), encoding="utf-8") as file:
            return any(line.strip() in (f"[{name}]", f'["{name}"]') for line in file)
    except (OSError, ValueError):
        return False


def _last_contact(route: str) -> str:
    """When a route of this machine last worked, by its own clock; "" if it is not known."""
    found = _read(os.path.join(own_state(), "contacts", f"{route}.json")) or {}
    return str(found.get("last_ok_at", ""))


def is_copy(path: str | os.PathLike[str]) -> bool:
    """True if a workspace is a copy of the host's, and not the host's own."""
    return os.path.lexists(os.path.join(path, _STATE, MARK))


def read_source(path: str | os.PathLike[str]) -> CopySource | None:
    """The source of a copy; None for a workspace that is not one."""
    given = _read(os.path.join(path, _STATE, MARK)) if is_copy(path) else None
    if given is None:
        return None if not is_copy(path) else _source({})
    source = _source(given)
    # path is <root>/generations/<n>: a head beside them, or one that the host sent since, may confirm this generation
    root = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    times = [source.as_of]
    for place in (root, os.path.join(root, INCOMING)):
        head = _read(os.path.join(place, HEAD)) or {}
        if source.manifest and head.get("manifest") == source.manifest:
            times.append(str(head.get("as_of", "")))
        if place == root and head.get("host_id") == source.host_id:  # its signature was verified
            source = source._replace(host=str(head.get("host") or source.host))  # it may have a new name since
    return source._replace(as_of=_latest(times))


def _latest(times: list[str]) -> str:
    """The latest time; one to come only where there is no other: the host's clock was wrong for a while."""
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    return max([at for at in times if at and at <= soon] or times)


def live_path(path: str | os.PathLike[str]) -> str:
    """The path of a workspace; for any generation of the copy here, the one that is in use now."""
    given = os.path.realpath(path)
    generations = os.path.realpath(os.path.join(copy_root(), GENERATIONS))
    return find_copy() or given if os.path.dirname(given) == generations else os.fspath(path)


def has_news() -> bool:
    """True if the host sent something here that is not completely installed yet. Costs two small reads."""
    sent = _read(os.path.join(copy_root(), INCOMING, HEAD))
    if sent is None:
        return False
    done = _read(os.path.join(copy_root(), HEAD)) or {}  # the last file that an installation writes
    if not find_copy():
        return True
    return not _is_earlier(sent, done) and any(sent.get(name) != done.get(name) for name in ("manifest", "host"))


def _is_earlier(sent: dict[str, Any], done: dict[str, Any]) -> bool:
    """True if a later state of the same host came by another route since."""
    if sent.get("host_id") != done.get("host_id"):
        return False
    orders = [[head.get("generation"), head.get("sequence")] for head in (sent, done)]
    is_known = all(type(number) is int for order in orders for number in order)
    return is_known and orders[0] < orders[1]


def now_utc() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def _source(given: dict[str, Any]) -> CopySource:
    def text(key: str) -> str:
        value = given.get(key)
        return value if isinstance(value, str) else ""

    def number(key: str, default: int) -> int:
        value = given.get(key)
        return value if type(value) is int else default

    edited = given.get("edited")
    return CopySource(
        host=text("host") or "the host",
        host_id=text("host_id"),
        as_of=text("as_of"),
        sequence=number("sequence", 0),
        manifest=text("manifest"),
        route=text("route"),
        every=number("every", EVERY_MINUTES),
        private=number("private", 0),
        edited=tuple(map(str, edited)) if isinstance(edited, list) else (),
    )


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(65_536))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
