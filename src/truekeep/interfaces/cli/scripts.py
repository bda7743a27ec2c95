"""Writes the completion scripts from the commands themselves, for bash (3.2 on), zsh and fish. Run by `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from truekeep.interfaces.cli.app import COMMANDS, cli
from truekeep.interfaces.completion import SHELLS

_DIR, _FILE = "@dir", "@file"
_BY_METAVAR = {"DIR": _DIR, "[PATH]": _DIR, "[WORKSPACE]": _DIR, "CARD": "@cards", "FILE": _FILE, "ARCHIVE": _FILE}
_ARGUMENTS = {
    "draft": "@drafts",
    "drafts": "@drafts",
    "file": "@memory",
    "place": "@memory",
    "files": _FILE,
    "archive": _FILE,
    "deltas": _FILE,
    "one": _FILE,
    "other": _FILE,
}
_NAMED = {
    "get": "@memory",
    "claims": _FILE,
    "card show": "@cards",
    "card confirm": "@cards",
    "card drop": "@cards",
    "sync remove": "@routes",
    "sync run": "@routes",
    "handoff new --card": "@cards",
}


class Option(NamedTuple):
    """One option. Its kind: None for a flag, `@…` for names, else the words to choose from, with commas."""

    names: tuple[str, ...]
    kind: str | None
    told: str


class CommandNode(NamedTuple):
    """A command, or a group, and what may follow."""

    path: str
    words: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    argument: str


def places() -> list[CommandNode]:
    with click.Context(cli) as ctx:
        return list(_places(cli, "", ctx))


def _places(command: click.Command, path: str, ctx: click.Context) -> Iterator[CommandNode]:
    children: dict[str, click.Command] = {}
    if command is cli:
        children = {name: child for name in COMMANDS if (child := cli.get_command(ctx, name)) is not None}
    elif isinstance(command, click.Group):
        children = dict(command.commands)
    shown = {name: child for name, child in children.items() if not child.hidden}
    words = tuple((name, _first(child.get_short_help_str(200))) for name, child in shown.items())
    options = [_option(path, item) for item in command.params if isinstance(item, click.Option) and not item.hidden]
    options.append(Option(("-h", "--help"), None, "Show this message and exit"))
    arguments = [_argument(path, item) for item in command.params if isinstance(item, click.Argument)]
    yield CommandNode(path, words, tuple(options), arguments[0] if arguments else "")
    for name, child in shown.items():
        yield from _places(child, f"{path} {name}".strip(), ctx)


def _option(path: str, option: click.Option) -> Option:
    names = tuple(sorted((*option.opts, *option.secondary_opts), key=len))
    return Option(names, None if option.is_flag else _kind(path, option), _first(option.help or ""))


def _kind(path: str, option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return ",".join(option.type.choices)
    return _NAMED.get(f"{path} {option.opts[-1]}", _BY_METAVAR.get(str(option.metavar), ""))


def _argument(path: str, argument: click.Argument) -> str:
    if isinstance(argument.type, click.Choice):
        return ",".join(argument.type.choices)
    known = _NAMED.get(path) or _BY_METAVAR.get(str(argument.metavar))
    return known or _ARGUMENTS.get(str(argument.name), "")


def _first(text: str) -> str:
    """The first sentence, in one line, without anything that a shell would take for more than text."""
    line = " ".join(text.split()).partition(". ")[0].rstrip(".")
    return "".join(char for char in line if char not in "'\"\\`$[]:;")[:100]


_HEAD = "# What the shell completes of truekeep. Made by `make docs` from the commands; do not edit.\n"

_BASH = """\
_truekeep_add() {  # each line of standard input that begins as the word does
    local line
    while IFS= read -r line; do
        case $line in "$cur"*) COMPREPLY+=("$line") ;; esac
    done
}

_truekeep_kind() {
    case $1 in
    '') ;;
    @dir) compopt -o filenames 2>/dev/null; _truekeep_add < <(compgen -d -- "$cur") ;;
    @file) compopt -o filenames 2>/dev/null; _truekeep_add < <(compgen -f -- "$cur") ;;
    @memory) compopt -o nospace 2>/dev/null; _truekeep_ask memory ;;
    @*) _truekeep_ask "${1#@}" ;;
    *) _truekeep_add < <(printf '%s\\n' ${1//,/ }) ;;
    esac
}

_truekeep_ask() {
    _truekeep_add < <(command "$program" completion --values "$1" "$cur" "$workspace" 2>/dev/null)
}

_truekeep() {
    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} workspace='' path='' kind='' is_value='' word entry i=1
    local words flags valued argument
    case $program in '~'/*) program=$HOME/${program#??} ;; esac
    COMPREPLY=()
    _truekeep_table ''
    while [ $i -lt $COMP_CWORD ]; do
        word=${COMP_WORDS[i]}
        i=$((i + 1))
        is_value=''
        case $word in
        -*)
            for entry in $valued; do
                [ "${entry%%:*}" = "$word" ] || continue
                [ "${COMP_WORDS[i]-}" = '=' ] && i=$((i + 1))
                if [ $i -ge $COMP_CWORD ]; then
                    is_value=1 kind=${entry#*:}
                    [ "$cur" = '=' ] && cur=''
                fi
                case $word in -w | --workspace) workspace=${COMP_WORDS[i]-} ;; esac
                i=$((i + 1))
                break
            done
            ;;
        *)
            for entry in $words; do
                [ "$entry" = "$word" ] || continue
                path=${path:+$path }$word
                _truekeep_table "$path"
                break
            done
            ;;
        esac
    done
    if [ -n "$is_value" ]; then
        _truekeep_kind "$kind"
    elif [ "${cur#-}" != "$cur" ]; then
        _truekeep_add < <(printf '%s\\n' $flags; for entry in $valued; do printf '%s\\n' "${entry%%:*}"; done)
    elif [ -n "$words" ]; then
        _truekeep_add < <(printf '%s\\n' $words)
    else
        _truekeep_kind "$argument"
    fi
}

complete -F _truekeep truekeep
"""

_ZSH = """\
_truekeep_kind() {
    local -a found
    case $1 in
    ('') return 1 ;;
    (@dir) _files -/ ;;
    (@file) _files ;;
    (@memory)
        found=(${(f)"$(command $program completion --values memory "$PREFIX" "$workspace" 2>/dev/null)"})
        compadd -S '' -a found
        ;;
    (@*)
        found=(${(f)"$(command $program completion --values ${1#@} "$PREFIX" "$workspace" 2>/dev/null)"})
        compadd -a found
        ;;
    (*) found=(${(s:,:)1}); compadd -a found ;;
    esac
}

_truekeep() {
    local program=${~words[1]} workspace='' place='' kind='' is_value='' word name
    local -a commands flags
    local -A valued
    local argument
    integer i=2
    _truekeep_table ''
    while (( i < CURRENT )); do
        word=${words[i]}
        (( i++ ))
        is_value=''
        if [[ $word == -* ]]; then
            if (( ${+valued[$word]} )); then
                if (( i >= CURRENT )); then is_value=1 kind=${valued[$word]}; fi
                if [[ $word == (-w|--workspace) ]]; then workspace=${(Q)words[i]}; workspace=${~workspace}; fi
                (( i++ ))
            fi
        else
            for name in $commands; do
                [[ ${name%%:*} == $word ]] || continue
                place=${place:+$place }$word
                _truekeep_table $place
                break
            done
        fi
    done
    if [[ -n $is_value ]]; then
        _truekeep_kind "$kind"
    elif [[ $PREFIX == -* ]]; then
        _describe -o -t options option flags
    elif (( $#commands )); then
        _describe -t commands command commands
    else
        _truekeep_kind "$argument"
    fi
}

if [[ ${funcstack[1]} == _truekeep ]]; then _truekeep "$@"; else compdef _truekeep truekeep; fi
"""

_FISH = """\
function __truekeep_path
    set -l place
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; and continue
        set -l longer (string trim -- "$place $word")
        contains -- $longer $__truekeep_places; and set place $longer
    end
    echo -- $place
end

function __truekeep_at
    test "$(__truekeep_path)" = "$argv[1]"
end

function __truekeep_values
    set -l workspace
    set -l words (commandline -opc)
    for i in (seq (count $words))
        contains -- $words[$i] -w --workspace; and set workspace $words[(math $i + 1)]
    end
    command $words[1] completion --values $argv[1] "$(commandline -ct)" "$workspace" 2>/dev/null
end

complete -c truekeep -e
complete -c truekeep -f
"""


def render_bash() -> str:
    lines = [_HEAD, "_truekeep_table() {", "    words= flags= valued= argument=", "    case $1 in"]
    for place in places():
        flags = [name for option in place.options if option.kind is None for name in option.names]
        options = [option for option in place.options if option.kind is not None]
        valued = [f"{name}:{option.kind}" for option in options for name in option.names]
        lines.append(f"    '{place.path}')")
        lines.append(f"        words='{' '.join(name for name, _ in place.words)}'")
        lines.append(f"        flags='{' '.join(flags)}'")
        lines.append(f"        valued='{' '.join(valued)}'")
        lines.append(f"        argument='{place.argument}'")
        lines.append("        ;;")
    return "\n".join([*lines, "    esac", "}", "", _BASH])


def render_zsh() -> str:
    lines = ["#compdef truekeep", _HEAD, "_truekeep_table() {", "    commands=() flags=() valued=() argument=''"]
    lines.append("    case $1 in")
    for place in places():
        lines.append(f"    ('{place.path}')")
        commands = [f"'{name}:{told}'" for name, told in place.words]
        lines.append(f"        commands=({' '.join(commands)})")
        told = [f"'{name}:{option.told}'" for option in place.options for name in option.names]
        lines.append(f"        flags=({' '.join(told)})")
        options = [option for option in place.options if option.kind is not None]
        valued = [f"'{name}' '{option.kind}'" for option in options for name in option.names]
        lines.append(f"        valued=({' '.join(valued)})")
        lines.append(f"        argument='{place.argument}'")
        lines.append("        ;;")
    return "\n".join([*lines, "    esac", "}", "", _ZSH])


def render_fish() -> str:
    found = places()
    known = " ".join(f"'{place.path}'" for place in found if place.path)
    lines = [_HEAD, f"set -g __truekeep_places {known}", "", _FISH]
    for place in found:
        begin = f"complete -c truekeep -n '__truekeep_at \"{place.path}\"'"
        lines.extend(f"{begin} -a {name} -d '{told}'" for name, told in place.words)
        if place.argument:
            lines.append(f"{begin}{_fish_kind(place.argument)}")
        for option in place.options:
            names = "".join(f" -{'l' if name.startswith('--') else 's'} {name.lstrip('-')}" for name in option.names)
            kind = "" if option.kind is None else _fish_kind(option.kind) or " -x"
            lines.append(f"{begin}{names}{kind} -d '{option.told}'")
    return "\n".join([*lines, ""])


def _fish_kind(kind: str) -> str:
    if kind == _DIR:
        return " -x -a '(__fish_complete_directories)'"
    if kind == _FILE:
        return " -r -F"
    if kind.startswith("@"):
        return f" -x -a '(__truekeep_values {kind.removeprefix('@')})'"
    return f" -x -a '{kind.replace(',', ' ')}'" if kind else ""


RENDERED = {"bash": render_bash, "zsh": render_zsh, "fish": render_fish}


def write_scripts(folder: Path) -> None:
    for shell, render in RENDERED.items():
        (folder / SHELLS[shell]).write_text(render(), encoding="utf-8")
