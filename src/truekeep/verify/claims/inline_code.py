"""Claims in code: inline code, commands, imports and code blocks. Nothing is run."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from truekeep.verify.claims.patterns import (
    ASSIGNED,
    CALL,
    DECLARATION,
    FLAG,
    IDENTIFIER,
    IMPORT,
    MAX_CLAIM_CHARS,
    NAME,
    TOOLS,
    RawClaim,
    bare_path,
    identifier_claims,
    is_file,
    token_claims,
)
from truekeep.verify.claims.task_commands import task_claims

_PLACEHOLDERS = ("name", "value", "type")  # `type name = value` shows a syntax
_FORMULA = re.compile(r"[\w.]+\([^()]*\)\s*[=≈∝≤≥<>]\s*\S")  # `score(x) = a + b`: no code assigns to a call
# A regular expression for one name: `PROMISE_RE\s*=`, `function\s+runJob\b`.
_SEARCH_PATTERN = re.compile(
    rf"(?:\\b)?(?:(?:def|class|function|const|let|var|fn|func|type)(?:\\s[*+]|\\s))?(?P<name>{NAME})"
    r"(?=.*\\[sb(])(?:\\b|\\s[*+]?|\\?[=:({]| )*\Z"
)
SEARCHED = "a search"
_ONLY_CHANGES_FOLDER = re.compile(r"\s*(?:\$ +|> +)?(?:cd|pushd) +[^\s&;|]+\s*(?:#.*)?\Z")
_CHANGES_FOLDER = re.compile(r"\s*(?:\$ +|> +)?(?:cd|pushd) +([^\s&;|]+)")
_SEARCH_PROGRAMS = ("rg", "grep", "egrep", "ag", "ack")
_WITH_BLANKS = re.compile(r"[\w./@+() -]+\Z")
_SHELLS = frozenset(
    ("sh", "bash", "zsh", "fish", "shell", "console", "shell-session", "terminal", "powershell", "ps1", "cmd", "bat")
)
SETTING = "a setting"
IN_CODE = "a code block"
_LEAST_LETTERS = 8
_LONG_NAME = re.compile(
    r"(?<![\w.@$\"'/-])(?:@)?([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)(?![\w/\"'-])"
    r"|(?<![\w$])([a-z]+(?:[A-Z][a-z0-9]*|_[a-z0-9]+){2,})(?=\()"
)
_DEFINED = re.compile(
    r"(?<![\w.])(?:def|class|func|fn|fun|function|struct|enum|trait|interface|type|const|let|var|val|module|object"
    r"|record|protocol|namespace|impl)[ \t]+(\w+)"
)
ENTERED = "a change of folder"
_SETTING_FENCES = frozenset(("env", "dotenv", "ini", "properties", "conf", "config", "text", "txt", ""))
_SETTING_LINE = re.compile(
    r"(?:export +)?(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)="
    r"(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*|[^\s;&|]+(?: [A-Z][\w-]*)+)\s*(?:#.*)?\Z"
)
_CONTAINER_SETTING = re.compile(r"(?<=\s)(?:-e|--env)[ =]+[\"']?(?P<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?==|\s|\Z)")
_CODE_FENCES = frozenset(
    "py python python3 js javascript jsx ts typescript tsx go golang rs rust java kotlin scala c cpp c++ csharp "
    "cs ruby rb php "
    "swift dart elixir lua perl".split()
)


def inline_code_claims(code: str, offset: int) -> list[RawClaim]:
    """The claims of one span of inline code."""
    bare = code.strip()
    if not bare or len(bare) > MAX_CLAIM_CHARS:
        return []
    start = offset + code.index(bare)
    # `"quoted"`, `name,` and `name:` are the name.
    if len(bare) > 2 and bare[0] in "\"'" and bare[-1] == bare[0] and bare[0] not in bare[1:-1]:
        bare, start = bare[1:-1].strip(), start + 1
    trimmed = bare.rstrip(",;")
    if trimmed.endswith(":") and trimmed.count(":") == 1:
        trimmed = trimmed[:-1]
    if not trimmed:
        return []
    first, _, rest = trimmed.partition(" ")
    if (
        rest
        and "/" in first
        and not is_file(first)
        and is_file(rest.rpartition("/")[2])
        and _WITH_BLANKS.match(trimmed)
        and " -" not in trimmed
    ):
        return [RawClaim(start, start + len(trimmed), "path", bare_path(trimmed), "inline code")]
    if (match := _SEARCH_PATTERN.match(trimmed)) is not None:
        return _searched_claims(match["name"], start + match.start("name"))
    if " " in trimmed or "\t" in trimmed:
        return _words_of_code_claims(trimmed, start)
    return token_claims(trimmed, start, "inline code")


def _searched_claims(name: str, start: int) -> list[RawClaim]:
    """The name that a search looks for, if it can only be an identifier."""
    found = token_claims(name, start, SEARCHED)
    return [raw for raw in found if raw.kind in ("symbol", "env", "method") and not raw.is_weak]


def _words_of_code_claims(code: str, start: int) -> list[RawClaim]:
    """Inline code of several words: a declaration, an import, an assignment, or a command."""
    if (match := DECLARATION.match(code)) is not None and match[1] not in _PLACEHOLDERS:
        at = start + match.start(1)
        return [RawClaim(at, at + len(match[1]), "symbol", match[1], "a declaration")]
    if (match := IMPORT.match(code)) is not None:
        return _import_claims(match, start)
    if _FORMULA.match(code):
        return []
    if (call := CALL.match(code)) is not None:
        return [raw._replace(why="a call") for raw in identifier_claims(call[1] + "()", start, "a call")]
    if (match := ASSIGNED.match(code)) is not None and "_" in match[1] and " " in code[: match.end(1) + 2]:
        at = start + match.start(1)
        return [RawClaim(at, at + len(match[1]), "env", match[1], "an assignment")]
    return list(_commands_claims(code, start))


def _import_claims(match: re.Match[str], start: int) -> list[RawClaim]:
    module = match[1] or match[3]
    if match[1] is None:
        return [
            RawClaim(
                start + match.start(3),
                start + match.end(3),
                "symbol",
                module.split(".")[-1],
                "an import",
                owner=module,
                is_weak=True,
            )
        ]
    raws = []
    for name in re.finditer(NAME, match[2]):
        at = start + match.start(2) + name.start()
        raws.append(RawClaim(at, at + len(name[0]), "method", name[0], "an import", owner=module, is_weak=True))
    return raws


_WRITING_TOOLS = frozenset("ln cp mv rm touch mkdir rmdir truncate scp rsync".split())
_INTERPRETERS = frozenset("python python3 py node deno bun ruby php perl bash sh zsh uv npx tsx ts-node".split())


def _command_claims(code: str, start: int) -> Iterator[RawClaim]:
    """The paths, flags and scripts in a command."""
    words = [(match.start(), match[0]) for match in re.finditer(r"[^\s\"'()]+", code)]
    at = 0
    while at < len(words) and (
        words[at][1] in ("sudo", "time", "env", "nohup", "exec", "export", "set") or ASSIGNED.match(words[at][1])
    ):
        if (match := ASSIGNED.match(words[at][1])) is not None and "_" in match[1]:
            yield RawClaim(
                start + words[at][0], start + words[at][0] + len(match[1]), "env", match[1], "a command", is_weak=True
            )
        at += 1
    if at >= len(words):
        return
    program = words[at][1]
    tasks, is_all = task_claims(code, words[at][0], start)
    yield from tasks
    if is_all:
        return
    if program in _INTERPRETERS:
        script = next(
            (i for i in range(at + 1, len(words)) if not words[i][1].startswith("-") and words[i][1] != "run"), 0
        )
        if script and ("/" in words[script][1] or is_file(words[script][1])):
            at, program = script, words[script][1]
    if program == "git" and at + 1 < len(words) and words[at + 1][1] == "grep":
        at, program = at + 1, "grep"
    if program in _SEARCH_PROGRAMS:
        sought = next((word for word in words[at + 1 :] if not word[1].startswith("-")), None)
        if sought is not None:
            yield from (raw._replace(is_weak=True) for raw in _searched_claims(sought[1], start + sought[0]))
    if program in ("cd", "pushd") and len(words) == at + 2 and "/" in words[at + 1][1].strip("./"):
        position, word = words[at + 1]
        raws = [
            raw
            for raw in token_claims(word, start + position, ENTERED, is_command=True)
            if raw.end - raw.start == len(word)
        ]
        yield from (raw._replace(kind="directory") for raw in raws if raw.kind in ("path", "directory"))
        return
    if program in ("docker", "podman"):
        for match in _CONTAINER_SETTING.finditer(code):
            first, last = match.span("name")
            yield RawClaim(start + first, start + last, "env", match["name"], SETTING, is_weak=True)
    is_own = "/" in program or is_file(program)
    is_tool = program.lower() in TOOLS
    is_written = program in _WRITING_TOOLS
    if not is_tool and not is_own and not IDENTIFIER.match(program.replace("-", "_")):
        return
    for position, word in words[at:]:
        clean = word.rstrip(",;:|&")
        if clean.startswith("--"):
            if (match := FLAG.match(clean)) is not None:
                first = start + position
                yield RawClaim(
                    first, first + len(match[1]), "flag", match[1], "a command", owner=program, is_weak=not is_own
                )
        elif "/" in clean or is_file(clean):
            for raw in token_claims(clean, start + position, "a command", is_command=True):
                if raw.kind in ("path", "directory", "line", "bundle", "symbol", "method"):
                    # What a command names may be what it makes; only a sure shape is a claim.
                    is_bare = position != words[at][0] and "/" not in clean
                    if is_written and is_bare:
                        continue
                    yield raw._replace(is_weak=raw.is_weak or is_bare)


def fence_claims(line: str, info: str) -> list[RawClaim]:
    """A line of a code block: commands, imports, and paths that cannot be anything else."""
    bare = line.strip()
    if not bare or len(bare) > 1000 or "──" in bare:
        return []
    start = line.index(bare)
    prompt = re.match(r"(?:\$|>|%|❯|[\w.@~:/-]{0,40}\$) +", bare)
    if prompt is not None:
        bare, start = bare[prompt.end() :], start + prompt.end()
    if info in _SHELLS or prompt is not None:
        if bare.startswith("#"):
            return []
        return _setting_claims(bare, start) or list(_commands_claims(bare, start))
    if info in _CODE_FENCES:
        match = IMPORT.match(bare)
        imports = _import_claims(match, start) if match is not None and match[1] and match[1][0] != "." else []
        return imports or _names_in_code(bare, start)
    if info in _SETTING_FENCES and (settings := _setting_claims(bare, start)):
        return settings
    if not info:
        if " " not in bare and not bare.startswith("./"):
            return []  # one word to a line: a listing, or what a program printed
        raws = list(_commands_claims(bare, start))
        return [raw._replace(is_weak=True) for raw in raws if raw.kind in ("path", "line", "script", "flag")]
    return []


def _names_in_code(code: str, start: int) -> list[RawClaim]:
    """The types and calls of a line of code whose names are long; whose they are, only history can tell."""
    return [
        RawClaim(start + match.start(name), start + match.end(name), "symbol", match[name], IN_CODE, is_weak=True)
        for match in _LONG_NAME.finditer(code)
        for name in [1 if match[1] else 2]
        if len(match[name]) >= _LEAST_LETTERS
    ]


def defined_in_fences(text: str) -> set[str]:
    """The names that the code of a document defines for itself."""
    return {match[1] for match in _DEFINED.finditer(text)}


def _setting_claims(code: str, start: int) -> list[RawClaim]:
    """A line that gives a variable its value, and nothing else: a setting of whatever the document is about."""
    if (match := _SETTING_LINE.match(code)) is None:
        return []
    first, last = start + match.start("name"), start + match.end("name")
    return [RawClaim(first, last, "env", match["name"], SETTING, is_weak=True)]


def folder_after(line: str, folder: str | None = "") -> str | None:
    """The folder that a shell is in after a line, from where it began; None if that is not known."""
    for piece, _ in _pieces(line):
        if (match := _CHANGES_FOLDER.match(piece)) is None:
            continue
        is_plain = folder is not None and re.fullmatch(r"[\w.-][\w./-]*", match[1]) is not None
        path = posixpath.normpath(posixpath.join(folder or "", match[1])) if is_plain else ".."
        folder = None if path.startswith("..") else path.removeprefix(".")
    return folder


def folder_of_block(line: str, folder: str | None) -> str | None:
    """The folder of the next lines of a code block: only a `cd` alone on its line changes it, and only once."""
    if _ONLY_CHANGES_FOLDER.match(line) is None:
        return folder
    return folder_after(line) if folder == "" else None


def in_folder(raws: Iterable[RawClaim], folder: str | None) -> Iterator[RawClaim]:
    """The claims of a command that runs in a folder: its paths are counted from there, if that is known."""
    for raw in raws:
        if folder == "" or raw.kind not in ("path", "directory") or raw.name.startswith(("/", "~")):
            yield raw
        elif folder is not None:
            yield raw._replace(name=posixpath.normpath(posixpath.join(folder, raw.name)))


def _commands_claims(code: str, start: int) -> Iterator[RawClaim]:
    """The claims of the commands of a line."""
    folder: str | None = ""
    for piece, at in _pieces(code):
        yield from in_folder(_command_claims(piece, start + at), folder)
        folder = folder_after(piece, folder)


def _pieces(command: str) -> Iterator[tuple[str, int]]:
    """The commands of a line, cut at && and ; and |, with their offsets."""
    at = 0
    for match in re.finditer(r"&&|\|\|?|;", command):
        yield command[at : match.start()], at
        at = match.end()
    yield command[at:], at
