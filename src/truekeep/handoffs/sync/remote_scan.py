"""Scans another machine's inboxes with one shell script over ssh, and moves its filed handoffs to processed/.

The script runs in any POSIX shell (dash, busybox, bash, zsh, macOS); its output is lines of text. Our values appear in
the script only in single quotes. The output format does not let a file name imitate another line. Names and sizes are
not trusted; the caller checks them after fetching.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

MAX_FILES = 20_000  # per inbox and run
MAX_LINES = 100_000  # per machine
_RECEIPTS_PER_CALL = 50
_PLAIN = re.compile(r"[^A-Za-z0-9_./*?\[\]!-]+")
_HOME = re.compile(r"~[A-Za-z0-9._-]*(?=/|\Z)")

_WORDS = r"""
LC_ALL=C; export LC_ALL
unset IFS CDPATH GIT_DIR GIT_WORK_TREE GIT_CONFIG
newline='
'
sum=
for each in sha256sum "shasum -a 256"; do
  case $(printf x | $each 2>/dev/null) in 2d711642b726b044*"  -") sum=$each; break ;; esac
done
if stat -c %s / >/dev/null 2>&1; then how=-c what='f %s %Y %Z %n'; else how=-f what='f %z %m %c %N'; fi

say() { printf '%s\n' "$*"; }

# Stands in an inbox, unless a symlink led there.
enter() { cd "$1" 2>/dev/null && [ "$(pwd -P)" = "$1" ]; }

ready() { [ ! -L processed ] && { [ -d processed ] || mkdir processed; }; }

# Puts handoffs that were dealt with away: what sha256sum must say of them all, and their names. If it says otherwise of
# any, they are looked at one by one; what the host has not read stays, and so does all where there is no such tool.
put() {
  want=$1
  shift
  is_plain=1
  for name do
    if [ ! -f "$name" ] || [ -L "$name" ] || [ -e "processed/$name" ] || [ -L "processed/$name" ]; then
      is_plain=; break
    fi
  done
  if [ "$is_plain" ] && ready && [ "$($sum "$@" 2>/dev/null)" = "$want" ] && mv -n "$@" processed/; then return 0; fi
  for name do
    line=${want%%"$newline"*}; want=${want#*"$newline"}
    put_one "${name#./}" "${line%% ./*}"
  done
}

put_one() {
  if [ ! -f "./$1" ] || [ -L "./$1" ]; then return 0; fi
  said=$([ "$sum" ] && $sum <"./$1")
  case "$said " in
    "$2 "*) ;;
    " ") say "x stuck $at/$1"; return 0 ;;
    *) say "x changed $at/$1"; return 0 ;;
  esac
  to=$1; number=1
  while [ -e "processed/$to" ] || [ -L "processed/$to" ]; do
    number=$((number + 1)); to=${1%.md}-$number.md
    if [ "$number" -gt 999 ]; then break; fi
  done
  if ready; then mv -n "./$1" "processed/$to"; fi
  if [ -e "./$1" ]; then say "x stuck $at/$1"; fi
}

# Tells of a folder that a pattern gave, if any of these inboxes is in it.
look() {
  folder=$1; root=; shift
  for inbox do
    if [ ! -d "$folder/$inbox" ]; then continue; fi
    if [ ! "$root" ]; then
      root=$(cd "$folder" 2>/dev/null && pwd -P) || return 0
      case $root in *[[:cntrl:]]*) say "o root"; return 0 ;; esac
      url=$(git -C "$root" config --local --get remote.origin.url 2>/dev/null)
      case $url in *[[:cntrl:]]*) url= ;; esac
      say "r $root"
      say "u $url"
    fi
    say "i $inbox"
    (tell)
  done
}

tell() {
  if ! enter "${root%/}/$inbox"; then say "o symlink"; return 0; fi
  if [ ! -r . ]; then say "o denied"; return 0; fi
  find . ! -name . -prune -name '*.[mM][dD]*' ! -name '[.~#]*' ! -name '*[[:cntrl:]]*' -type f -links 1 \
    -exec stat "$how" "$what" {} + 2>/dev/null | head -n "$most"
  odd=$(find . ! -name . -prune -name '*.[mM][dD]*' ! -name '[.~#]*' \
    \( -name '*[[:cntrl:]]*' -o ! -type f -o -links +1 \) -print 2>/dev/null | head -n 1)
  if [ "$odd" ]; then say "o odd"; fi
}
"""


_COPY = r"""
# Tells which state of memory was sent to this machine, and notes that it is still the latest one, if it is.
memory() {
  to=${XDG_STATE_HOME:-$HOME/.local/state}/truekeep/copy/incoming
  case $to in *[[:cntrl:]]*) return 0 ;; esac
  (umask 077; mkdir -p "$to/objects" 2>/dev/null)
  say "d $to"
  if [ -L "$to" ] || [ ! -f "$to/manifest" ]; then return 0; fi
  held=$(head -c 64 "$to/manifest" 2>/dev/null)
  say "c $held"
  if [ "$held" = "$1" ]; then
    umask 077
    if printf '%s\n' "$2" >"$to/head.json.new" 2>/dev/null; then mv -f "$to/head.json.new" "$to/head.json"; fi
  fi
}
"""


class Receipt(NamedTuple):
    """A processed handoff, with what the other machine needs to identify its own copy."""

    folder: str  # the inbox there
    name: str
    digest: str  # sha256sum


class RemoteHandoff(NamedTuple):
    """A handoff that waits on another machine, as reported by it."""

    root: str
    inbox: str
    name: str
    size: int
    modified: int
    changed: int

    @property
    def folder(self) -> str:
        return folder_of(self.root, self.inbox)


class RemoteScan(NamedTuple):
    """The result of scanning a machine."""

    machine: str
    between: tuple[int, int]  # the machine's clock before and after the scan
    origins: Mapping[str, str]  # origin URL by repository
    files: tuple[RemoteHandoff, ...]
    unmoved: Mapping[str, str]  # filed handoffs that were not moved, by path: "changed" or "stuck"
    odd: tuple[tuple[str, str], ...]  # inbox and warning code
    is_whole: bool  # False if a limit cut it short
    incoming: str = ""  # the folder for memory there; "" if it was not asked
    memory: str = ""  # the state of memory that was sent there last


def folder_of(root: str, inbox: str) -> str:
    return f"{root.rstrip('/')}/{inbox}"


# --- Script ---------------------------------------------------------------------------------------------------------


def render_script(
    patterns: Sequence[str],
    inboxes: Iterable[str],
    receipts: Iterable[Receipt],
    *,
    mark: str,
    memory: tuple[str, str] | None = None,
) -> bytes:
    """The script. It is one block, so a shell that got half of it does nothing; and nothing in it reads its input.

    `memory` is the latest state of memory and its head: whoever has this state is told that it is the latest.
    """
    folders = " ".join(_quote(inbox) for inbox in inboxes)
    lines = [
        _WORDS,
        *((_COPY,) if memory is not None else ()),
        f"most={MAX_FILES + 1}",
        "{",
        f"say {_quote(f'truekeep {mark}')}",
        'say "m $(uname -n)"',
        'say "t $(date +%s)"',
        *_puts(receipts),
        *((f"(memory {_quote(memory[0])} {_quote(memory[1])})",) if memory is not None else ()),
        "{ :",
        *(f'for found in {render_pattern(pattern)}; do look "$found" {folders}; done' for pattern in patterns),
        f"}} | head -n {MAX_LINES + 1}",
        'say "t $(date +%s)"',
        f"say {_quote(f'end {mark}')}",
        "exit 0",
        "} </dev/null",
        "",
    ]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _puts(receipts: Iterable[Receipt]) -> Iterator[str]:
    for folder, group in groupby(sorted(receipts), key=lambda receipt: receipt.folder):
        items = list(group)
        yield f'( at={_quote(folder)}; if enter "$at"; then :'
        for start in range(0, len(items), _RECEIPTS_PER_CALL):
            some = items[start : start + _RECEIPTS_PER_CALL]
            names = " ".join(_quote(f"./{item.name}") for item in some)
            digests = "\n".join(f"{item.digest}  ./{item.name}" for item in some)
            yield f"put {_quote(digests)} {names}"
        yield "fi )"


def render_pattern(pattern: str) -> str:
    """A pattern for paths, with everything that a shell would take for more than a pattern in quotes."""
    home = _HOME.match(pattern)
    start = home[0] if home else "" if pattern.startswith("/") else "./"
    rest = pattern[len(home[0]) :] if home else pattern
    return start + _PLAIN.sub(lambda match: _quote(match[0]), rest)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- The answer -----------------------------------------------------------------------------------------------------


class NoAnswer(Exception):
    """What came back is not a survey, or not all of one. `text` is the first of it."""

    def __init__(self, text: str, *, is_started: bool) -> None:
        super().__init__(text)
        self.text = text
        self.is_started = is_started


def parse_survey(answer: bytes, inboxes: Iterable[str], *, mark: str) -> RemoteScan:
    """The survey in an answer. Whatever a login prints before it is passed over."""
    text = answer.decode("utf-8", "surrogateescape")
    before, started, rest = text.partition(f"truekeep {mark}\n")
    body, ended, _ = rest.partition(f"\nend {mark}\n")
    if not started or not ended:
        raise NoAnswer((before or rest).strip()[:200], is_started=bool(started))
    known = set(inboxes)
    machine, root, inbox, incoming, memory = "", "", "", "", ""
    times: list[int] = []
    origins: dict[str, str] = {}
    files: dict[tuple[str, str, str], RemoteHandoff] = {}
    counts: dict[tuple[str, str], int] = {}
    unmoved: dict[str, str] = {}
    odd: list[tuple[str, str]] = []
    lines = body.split("\n")
    for line in lines:
        kind, _, value = line.partition(" ")
        if kind == "f" and root and inbox:
            found = _found(root, inbox, value)
            counts[root, inbox] = counts.get((root, inbox), 0) + 1
            if found is not None:
                files.setdefault((root, inbox, found.name), found)
        elif kind == "r":
            root, inbox = value if _is_path(value) else "", ""
        elif kind == "u" and root:
            origins.setdefault(root, value)
        elif kind == "i":
            inbox = value if value in known else ""
        elif kind == "x":
            why, _, path = value.partition(" ")
            unmoved[path] = why
        elif kind == "o":
            odd.append((folder_of(root, inbox), value))
        elif kind == "m":
            machine = value
        elif kind == "d" and not incoming:
            incoming = value if _is_path(value) else ""
        elif kind == "c" and not memory:
            memory = value
        elif kind == "t" and value.isascii() and value.isdigit():
            times.append(int(value[:18]))
    is_whole = len(lines) <= MAX_LINES and all(count <= MAX_FILES for count in counts.values())
    between = (times[0], times[-1]) if times else (0, 0)
    return RemoteScan(machine, between, origins, tuple(files.values()), unmoved, tuple(odd), is_whole, incoming, memory)


def _is_path(path: str) -> bool:
    """True if `pwd -P` could print this path."""
    return path.startswith("/") and not path.startswith("//") and os.path.normpath(path) == path


def _found(root: str, inbox: str, value: str) -> RemoteHandoff | None:
    parts = value.split(" ", 3)
    if len(parts) != 4 or not parts[3].startswith("./"):
        return None
    try:
        size, modified, changed = (int(part) for part in parts[:3] if len(part) < 20)
    except ValueError:
        return None
    return RemoteHandoff(root, inbox, parts[3][2:], size, modified, changed) if size >= 0 else None
