"""Finds text that gives orders to the model that reads a card, instead of telling its reader something.

A handoff that asks for standing consent, for silence towards the user, or for a check to be switched off gets a label,
so that it is shown last and is never the only ground for an action. The phrases (`phrases/injection.*.toml`) catch
plain attempts only: an attacker who takes trouble gets past them, so text without a label is not safe. This module only
finds; `handoffs/policy.py` decides what is quarantined.

In a workspace that its owner and their agents write, orders are common and meant: what may be run, what needs no
question, how something is installed. `find_planted` is for such files. It reports only what nobody writes for their own
agents, and nothing in the files that are made of instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from truekeep.text.encodings import iter_decoded
from truekeep.text.instruction_files import is_instruction_file
from truekeep.text.linear_regex import compile_linear
from truekeep.text.phrases import expand_names, load_phrases
from truekeep.text.program_text import find_program_lines
from truekeep.text.unicode import SPACED_LETTERS, clip, fold, is_plain, reveal_hidden

MAX_EXCERPT = 120
MAX_PER_KIND = 20
MAX_NEGATED_PER_KIND = (
    64  # requests that a negation turns round; more in one text are taken as orders, to bound the work
)

_PLANTED_KINDS = ("override", "concealment", "exfiltration", "authority")
_BANS_BY_STRANGERS = ("concealment", "authority")
_OWN_RULES = ("rules/", "skills/", ".learnings/")
_MEMORY_NAMES = ("MEMORY.md", "HANDOVER.md")  # agents read them at every start, and write them, too
KINDS = ("override", "consent", "concealment", "weakening", "remote-code", "exfiltration", "authority")

_GAP = r"(?:[\s*_>\"'`~]+)"
_WORD = r"[^\s.;:!?]+"
# A line break alone does not end a clause: prose is wrapped.
_CLAUSE_END = r"[\t\x20*_\"'`]*(?:[.,;:!?)<|]|-->|\n[\t\x20]*(?:[-*+>#\n\d]|\z)|\z)| (?:{CONJUNCTION})\b"
_NEGATION_WINDOW = 80  # bytes in front of a request
_REGEX_MEMORY = 64 << 20  # RE2 needs room for the states of a few hundred phrases at once
_LOCAL_HOSTS = ("localhost", "127.0.0.1")  # a package index there is the user's own
# What their vendors' own documents pipe into a shell.
_INSTALLERS = frozenset(
    (
        "astral.sh",
        "bun.sh",
        "claude.ai",
        "cli.github.com",
        "deb.nodesource.com",
        "deno.land",
        "fly.io",
        "get.docker.com",
        "get.k3s.io",
        "get.pnpm.io",
        "get.sdkman.io",
        "install.python-poetry.org",
        "mise.run",
        "ollama.com",
        "openclaw.ai",
        "pyenv.run",
        "rclone.org",
        "sh.rustup.rs",
        "starship.rs",
        "tailscale.com",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A phrase that gives the model an order, and the line it starts on."""

    kind: str
    excerpt: str
    line: int


def find_instructions(text: str) -> tuple[Instruction, ...]:
    """Every phrase that tries to steer the reader, at most one of a kind per line, in the order of the lines."""
    return _find(text, KINDS, ("requests", "marks"))


def find_planted(path: str, text: str) -> tuple[Instruction, ...]:
    """Orders in a memory file of a workspace that its owner would not have written for their own agents.

    Not reported: the owner's instruction files, what a harness kept of sessions, and what only quotes or describes an
    order. A mailing came from outside, so every order in it counts.
    """
    name = path.rpartition("/")[2]
    if path.startswith(_OWN_RULES) or (is_instruction_file(path) and name not in _MEMORY_NAMES):
        return ()
    every = find_instructions(text)
    if not every:
        return ()
    programs = find_program_lines(text)
    planted = (*_find(text, _PLANTED_KINDS, ("requests",)), *_find(text, _BANS_BY_STRANGERS, ("marks",)))
    own = {(item.line, item.kind) for item in planted}
    lines = text.split("\n")
    return tuple(
        item
        for item in every
        if programs.get(item.line) == "mail"
        or (programs.get(item.line) != "session" and (item.line, item.kind) in own and not _is_told(lines, item))
    )


def _is_told(lines: Sequence[str], item: Instruction) -> bool:
    """Whether a line quotes an order, or tells of one."""
    line = lines[item.line - 1] if item.line <= len(lines) else ""
    start = line.find(item.excerpt[:12])
    bare = line.strip().rstrip(",;)")
    is_string = len(bare) > 1 and bare[0] in "\"'" and bare[-1] == bare[0]  # in code, such as a test of a filter
    if (start > 0 and line[start - 1] in "\"'`“‘«「『") or line.lstrip().startswith("|") or is_string:
        return True
    return (
        _compiled(load_phrases("injection").any_of("told")).search(_lower(line.encode("utf-8", "replace"))) is not None
    )


def _find(text: str, kinds: tuple[str, ...], tables: tuple[str, ...]) -> tuple[Instruction, ...]:
    shown = text.encode("utf-8", "replace")
    # Emphasis inside a word (ig**no**re) hides it from a pattern, but not from a reader.
    disguised = [shown.translate(None, b"*")] if b"*" in shown else []
    disguised += _iter_disguises(shown)
    if is_plain(text) and all(_any_phrase().search(_lower(view)) is None for view in (shown, *disguised)):
        return ()
    found: dict[tuple[int, str], Instruction] = {}
    for view in (*_iter_views(text, shown), *disguised):
        lowered = _lower(view)
        if _any_phrase().search(lowered) is None:
            continue
        for kind in kinds:
            for start, end in _iter_phrases(kind, lowered, tables):
                line = 1 + view.count(b"\n", 0, start)
                if (line, kind) not in found:
                    found[line, kind] = Instruction(kind=kind, excerpt=_excerpt(view, start, end), line=line)
    return tuple(found[place] for place in sorted(found))


def _lower(view: bytes) -> bytes:
    # Strong emphasis would glue itself to the word: "_" counts as a letter at a word boundary.
    return view.lower().replace(b"__", b"  ")


def _iter_views(text: str, shown: bytes) -> Iterator[bytes]:
    """The text as given, with look-alike characters folded, and with hidden characters made visible.

    All views have the same line breaks, so line numbers agree.
    """
    yield shown
    yield fold(text, newlines=True).encode()
    revealed = reveal_hidden(text)
    if revealed != text:
        yield fold(revealed, newlines=True).encode()


def _iter_disguises(shown: bytes) -> Iterator[bytes]:
    """The text with encoded runs decoded, with digits read as letters, in rot13, and each line backwards.

    A reading model undoes all of these. Nobody's text gives an order in one of them by chance.
    """
    pieces: list[bytes] = []
    end = 0
    for run in iter_decoded(shown):
        pieces += (shown[end : run.start], b" ", _ONE_LINE.sub(b" ", run.text), b" ")
        end = run.end
    if pieces:
        yield b"".join((*pieces, shown[end:]))
    if _DIGIT_IN_A_WORD.search(shown) is not None:
        yield shown.translate(_LEET)
    yield shown.translate(_ROT13)
    yield b"\n".join(line[::-1] for line in shown.split(b"\n"))


_ONE_LINE = re.compile(rb"[\r\n]")
_DIGIT_IN_A_WORD = re.compile(rb"[A-Za-z][0134578$@][A-Za-z]")
_LEET = bytes.maketrans(b"0134578$@", b"oieastbsa")
_ROT13 = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", b"NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)


def _iter_phrases(kind: str, view: bytes, tables: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for table in tables:
        phrases = _compiled_kind(table, kind)
        at = found = negated = 0
        while phrases is not None and found < MAX_PER_KIND and (match := phrases.search(view, at)) is not None:
            start, end = match.span()
            if table == "requests" and negated < MAX_NEGATED_PER_KIND and _is_harmless(kind, view, match):
                negated += 1
                at = start + 1
                continue
            # A phrase that starts a line may have matched the blank lines and the bullet before it.
            yield end - len(match.group().lstrip(b" \t\r\n>#*-")), end
            found += 1
            # Only the first phrase of a kind on a line is reported, so go on below this line.
            at = view.find(b"\n", end)
            if at < 0:
                break


def _is_harmless(kind: str, view: bytes, match: Any) -> bool:
    """Whether a negation turns a request round, or it only uses a package index on this machine."""
    start, end = match.span()
    before, inside = view[max(0, start - _NEGATION_WINDOW) : start], view[start:end]
    negation = load_phrases("injection").table("negation")
    if _compiled(rf"(?:{negation['before']}) (?:(?:{negation['fillers']}):? )*\z").search(before) is not None:
        return True
    is_without = _compiled(negation["without"]).search(inside) is not None
    if is_without and _compiled(rf"(?:{negation['in_clause']})[^.,;:!?]*\z").search(before) is not None:
        return True
    if kind == "weakening":
        return _compiled(negation["inside"]).search(inside) is not None
    if kind == "remote-code":
        indexes = [url for url in match.groups() if url]
        return all(map(_is_local, indexes)) if indexes else _runs_known_installers(inside)
    return _is_described(view, start, end)


_WEB_ADDRESS = re.compile(rb"https?://[^\s\"'`|)>]+")
_HARMLESS_OPTION = re.compile(rb"--tlsv1\.[0-3]\b|\\\r?\n")
_MAY_NAME_A_HOST = re.compile(rb"[./:$\\]|[0-9]{5}|0x")  # `curl evil.example/x https://astral.sh/…` gets both
_QUOTES = {b'"': b'"', b"'": b"'", b"`": b"`", b"\xe2\x80\x9c": b"\xe2\x80\x9d", b"\xe2\x80\x9e": b"\xe2\x80\x9c"}


def _is_described(view: bytes, start: int, end: int) -> bool:
    """Whether a phrase is in quotes, on a line that tells what is done about such phrases."""
    line_start, line_end = view.rfind(b"\n", 0, start) + 1, view.find(b"\n", end)
    before, after = view[line_start:start], view[end : line_end if line_end >= 0 else len(view)]
    closing = next((closing for opening, closing in _QUOTES.items() if before.endswith(opening)), None)
    return (
        closing is not None
        and closing in after
        and _compiled(load_phrases("injection").any_of("described")).search(before + after) is not None
    )


def _is_local(url: bytes) -> bool:
    host = _host(url)
    return any(host == known or host.endswith("." + known) for known in _LOCAL_HOSTS)


def _runs_known_installers(command: bytes) -> bool:
    """Whether a command gets nothing but vendors' installers, and from nowhere else by an option or a variable."""
    urls = _WEB_ADDRESS.findall(command)
    rest = _HARMLESS_OPTION.sub(b" ", _WEB_ADDRESS.sub(b" ", command))
    return bool(urls) and all(map(_is_installer, urls)) and _MAY_NAME_A_HOST.search(rest) is None


def _is_installer(url: bytes) -> bool:
    return url.startswith(b"https:") and _host(url) in _INSTALLERS


def _host(url: bytes) -> str:
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    return authority.rpartition(b"@")[2].partition(b":")[0].decode("utf-8", "replace")


def _excerpt(view: bytes, start: int, end: int) -> str:
    """The phrase and the rest of its line."""
    stop = view.find(b"\n", end)
    piece = view[start : min(stop if stop >= 0 else len(view), start + 4 * MAX_EXCERPT)]
    return clip(piece.decode("utf-8", "ignore"), MAX_EXCERPT)


@cache
def _any_phrase() -> Any:
    """One pattern for all phrases and for words spaced out letter by letter: most texts do not match it."""
    phrases = load_phrases("injection")
    every = "|".join((*phrases.table("requests").values(), *phrases.table("marks").values()))
    return compile_linear(f"(?m){_expand(every)}|{SPACED_LETTERS}", captures=False, memory=_REGEX_MEMORY)


@cache
def _compiled_kind(table: str, kind: str) -> Any:
    phrases = load_phrases("injection").table(table).get(kind)
    return _compiled(phrases) if phrases else None


@cache
def _compiled(phrase: str) -> Any:
    return compile_linear(f"(?m){_expand(phrase)}", memory=_REGEX_MEMORY)


def _expand(phrase: str) -> str:
    phrase = expand_names(phrase, load_phrases("injection").table("names") | {"END": _CLAUSE_END})
    for count in range(1, 10):
        phrase = phrase.replace(f"@{count} ", f"(?:{_WORD} ){{0,{count}}}")
    return phrase.replace(" ", _GAP)
