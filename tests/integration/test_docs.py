"""The documents against the program: links, commands, keys, codes, shapes and everything that is shown."""

from __future__ import annotations

import ast
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from tools.shown import JSON_PAGE, PAGES, ROOT, Stage, blocks_of, levelled, play, render_shapes

from truekeep.core import model
from truekeep.core.config import Config, parse_config
from truekeep.core.model import RULES
from truekeep.interfaces.cli.app import COMMANDS, cli
from truekeep.verify import link_claims
from truekeep.verify import verdict as verdicts

SOURCE = ROOT / "src" / "truekeep"
ALL_PAGES = (*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md")
OPERATIONS, MACHINES, VERIFICATION = (
    ROOT / "docs" / f"{name}.md" for name in ("operations", "machines", "verification")
)
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(SOURCE.rglob("*.py"))]


def words_in(node: ast.AST) -> set[str]:
    return {item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def constants_in(node: ast.AST) -> set[str]:
    """The values of the named reasons of verdicts."""
    named = {**vars(verdicts), **vars(link_claims)}
    names = (item.id for item in ast.walk(node) if isinstance(item, ast.Name) and item.id.isupper())
    return {value for name in names if isinstance(value := named.get(name), str)}


def called(name: str, within: Path = SOURCE) -> Iterator[ast.Call]:
    for path, tree in trees():
        if path.is_relative_to(within):
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield node


def table(page: Path, head: str) -> list[list[str]]:
    """The rows of the table that begins with this head."""
    text = page.read_text(encoding="utf-8")
    assert head in text, f"{page.name} has no table {head}"
    rows = []
    for line in text.split(head, 1)[1].split("\n")[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def codes(cells: list[str]) -> set[str]:
    return {code for cell in cells for code in _SPAN.findall(cell)}


# Links


def anchors(page: Path) -> set[str]:
    """The places in a page, as GitHub names them."""
    names = re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_SPAN.sub("", prose(page))):
        if link.startswith(("http:", "https:")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_page_is_in_the_index() -> None:
    named = set(_LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= named, "it wants a line there"


def test_the_words_are_those_of_the_program() -> None:
    assert model.__doc__ is not None
    assert model.__doc__.split("\n\n", 1)[1] in (ROOT / "docs" / "README.md").read_text(encoding="utf-8")


# Commands


def commands_in(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Every command line of ours that a page has: in blocks, and in inline code where it surely is one."""
    text = page.read_text(encoding="utf-8")
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            shown = re.sub(r"\s{2,}#.*", "", line.removeprefix("$ ")) if line.startswith(("$ ", "truekeep ")) else ""
            yield from _ours(shown)
    for span in _SPAN.findall(_FENCE.sub("", text)):
        first, _, rest = span.partition(" ")
        if "truekeep " in span and "\\" not in span:
            yield from _ours(span)
        elif first in COMMANDS and (" --" in span or rest.split(" ")[0] in children(first)):
            yield from _ours(f"truekeep {span}")


def _ours(line: str) -> Iterator[tuple[str, list[str]]]:
    for part in re.split(r"\s*(?:&&|\||;)\s*(?=(?:[^']*'[^']*')*[^']*$)", line):
        if part.startswith("truekeep "):
            yield part, shlex.split(re.sub(r"[\[\]]", "", part).split(" < ")[0].split(" > ")[0])[1:]


def children(name: str) -> list[str]:
    command = cli.get_command(click.Context(cli), name)
    return list(command.commands) if isinstance(command, click.Group) else []


def parse(arguments: list[str]) -> None:
    """As the program would, but for values: a command and options that are not there are errors."""
    command: click.Command = cli
    name = "truekeep"
    while True:
        context = click.Context(command, info_name=name, **cli.context_settings)  # help keeps its names once asked
        names = {option for given in command.params for option in (*given.opts, *given.secondary_opts)}
        taken = [*arguments]
        if isinstance(command, click.Group):
            at = next((number for number, word in enumerate(taken) if not word.startswith("-")), len(taken))
            child = command.get_command(context, taken[at]) if at < len(taken) else None
            if child is not None:
                command, name, arguments = child, taken[at], taken[at + 1 :]
                continue
            if command is cli or not command.invoke_without_command:
                assert at == len(taken) or taken[at].isupper(), f"no command {taken[at]}"
        command.make_parser(context).parse_args(taken)
        assert all(word.split("=")[0] in names | {"--help", "-h"} for word in taken if re.match(r"--\w", word))
        return


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "commands.md"], ids=lambda page: page.name)
def test_every_command_that_is_shown_can_be_given(page: Path) -> None:
    wrong = []
    for shown, arguments in commands_in(page):
        try:
            parse(arguments)
        except (click.UsageError, AssertionError) as error:
            wrong.append(f"{shown}: {error}")
    assert not wrong


def test_commands_are_really_looked_at() -> None:
    found = [shown for page in PAGES for shown, _ in commands_in(page)]
    assert len(found) > 200
    assert {shown.split()[1] for shown in found} >= set(COMMANDS)
    for wrong in (["ingest", "--quickly"], ["review", "accept", "x"], ["remember"], ["status", "--exitcode"]):
        with pytest.raises((click.UsageError, AssertionError)):
            parse(wrong)


def test_benches_and_targets_that_are_named_are_there() -> None:
    from bench import __path__ as place

    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    benches = set(re.findall(r'^    "([a-z-]+)": ', Path(place[0], "__main__.py").read_text(), re.MULTILINE))
    assert set(re.findall(r"python -m bench ([a-z][a-z-]*)", text)) <= benches
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)`", text)) <= targets


# Configuration and surroundings


def test_every_key_of_the_configuration_is_documented_and_no_other() -> None:
    keys = {"repositories": (), "[writers]": (), "[policy]": ()}
    for name in ("limits", "recall", "verify", "transcripts", "decay", "logs", "sync"):
        keys |= {f"{name}.{key}": default for key, default in getattr(Config(), name)._asdict().items()}
    rows = table(OPERATIONS, "| key | default | what |")
    assert [row[0].strip("`") for row in rows] == list(keys)
    for row in rows[3:]:
        name, key = row[0].strip("`").split(".")
        said = row[1].strip("`")
        assert (
            getattr(getattr(parse_config(f"[{name}]\n{key} = {said}\n", where="docs"), name), key)
            == keys[f"{name}.{key}"]
        )


def test_every_variable_is_documented_and_no_other() -> None:
    used = {word for _, tree in trees() for word in words_in(tree) if re.fullmatch(r"TRUEKEEP_[A-Z_]+", word)}
    listed = codes([row[0] for row in table(OPERATIONS, "| variable | what |")])
    assert {name for name in listed if name.startswith("TRUEKEEP_")} == used


# Codes


def test_every_exit_code_is_documented_and_no_other() -> None:
    raised = {0, click.UsageError.exit_code}
    for _, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Assign):
                continue
            names = [item.id for target in node.targets for item in ast.walk(target) if isinstance(item, ast.Name)]
            values = [item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)]
            if any(name.startswith("EXIT_") or name == "exit_code" for name in names):
                raised |= {value for value in values if type(value) is int}
    assert {int(row[0].strip("`")) for row in table(OPERATIONS, "| code | meaning |")} == raised


def test_every_error_is_documented_with_its_exit_code_and_no_other() -> None:
    documented = {row[0].strip("`"): int(row[1]) for row in table(OPERATIONS, "| code | exit | it means | do this |")}
    assert documented == {**_errors(), "usage": 2, "bug": 70, "stopped": 130}


def _errors() -> dict[str, int]:
    """Code and number of every error of ours, wherever it is defined; a number is its parent's unless it has one."""
    classes: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own: dict[str, Any] = {}
                for item in node.body:
                    if isinstance(item, ast.Assign):
                        target = item.targets[0]
                        names = target.elts if isinstance(target, ast.Tuple) else [target]
                        values = item.value.elts if isinstance(item.value, ast.Tuple) else [item.value]
                        for name, value in zip(names, values, strict=False):
                            if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                                own[name.id] = value.value
                classes[node.name] = ([base.id for base in node.bases if isinstance(base, ast.Name)], own)

    def find(name: str, key: str) -> Any:
        bases, own = classes.get(name, ([], {}))
        return own[key] if key in own else next((value for base in bases if (value := find(base, key))), None)

    def is_ours(name: str) -> bool:
        return name == "TruekeepError" or any(is_ours(base) for base in classes.get(name, ([], {}))[0])

    return {find(name, "code"): find(name, "exit_code") for name in classes if is_ours(name)}


def test_every_finding_has_a_rule() -> None:
    given = set()
    for call in called("Finding"):
        given |= {word for key in call.keywords if key.arg == "code" for word in words_in(key.value)}
    assert given - set(RULES) == {"proposed"}
    assert "`proposed`" in OPERATIONS.read_text(encoding="utf-8")


def test_every_alarm_is_documented_and_no_other() -> None:
    raised = {word for call in called("Alarm") for word in words_in(call.args[0])}
    assert codes([row[0] for row in table(MACHINES, "| alarm | it means | do this |")]) == raised


def test_every_reason_of_a_verdict_is_documented_and_no_other() -> None:
    given: dict[str, set[str]] = {}
    for verdict in ("confirmed", "moved", "changed", "gone", "unverifiable"):
        given[verdict] = {
            word
            for call in called(verdict, SOURCE / "verify")
            if len(call.args) > 1
            for word in (*words_in(call.args[1]), *constants_in(call.args[1]))
        }
    given["confirmed"] |= {"defined", "defined-in-tests"}  # handed on by a name
    given["gone"] |= {
        "only-mentioned",
        verdicts.REMOVED,
        verdicts.REMOVED_VALUE,
        verdicts.NO_LONGER_USED,
        verdicts.ONLY_IN_TESTS,
    }
    rows = table(VERIFICATION, "| verdict | reasons |")
    assert {row[0].strip("`"): {code for code in codes([row[1]]) if code != "--online"} for row in rows} == given


def test_every_rule_of_reconciliation_is_documented_and_no_other() -> None:
    from truekeep.maintenance.reconcile import REASONS

    assert codes([row[0] for row in table(OPERATIONS, "| rule | the stores | who wins |")]) == set(REASONS)


def test_every_tool_is_documented_and_no_other() -> None:
    given = {
        word for call in called("Tool") for key in call.keywords if key.arg == "name" for word in words_in(key.value)
    }
    assert given
    assert codes([row[0] for row in table(ROOT / "docs" / "search.md", "| tool | what it does |")]) == given


def test_what_security_rests_on_is_there() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 40
    assert not [name for name in named if f"def {name}(" not in tests]
    held = "".join(re.findall(r"\*\(.*?\)\*", text))
    files = set(re.findall(r"`([\w/]+\.py|[\w]+/)`", held))
    assert not [name for name in files if not (SOURCE / name).exists() and not (ROOT / "tests" / name).exists()]


def test_numbers_of_formats_are_those_that_are_written() -> None:
    from truekeep.core.formats import FORMATS, LEDGER, TRANSCRIPTS, WORKSPACE

    page = ROOT / "docs" / "format.md"
    rows = table(page, "| file | version | an earlier one is |")
    numbers = {"host": WORKSPACE, **{known.file: known.number for known in FORMATS.values()}}
    assert {row[0].strip("`"): int(row[1]) for row in rows} == numbers
    assert {row[0].strip("`") for row in rows if "derived" in row[2]} == {
        known.file for known in FORMATS.values() if known.is_derived
    }
    for heading, known in (("## Ledger", LEDGER), ("## Transcript archive", TRANSCRIPTS)):
        said = re.search(r"`user_version` (\d+)", page.read_text(encoding="utf-8").split(f"{heading}\n", 1)[1])
        assert said is not None
        assert int(said[1]) == known.number


# JSON


def test_every_kind_of_json_is_documented() -> None:
    calls = [*called("emit"), *called("print_json")]
    kinds = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert len(kinds) > 50
    documented = set(re.findall(r"^### truekeep\.([a-z-]+)/1$", JSON_PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert kinds <= documented


# What is shown


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    played = Stage(tmp_path_factory.mktemp("shown"), {block.name: block for page in PAGES for block in blocks_of(page)})
    play(played)
    return played


def test_what_is_shown_is_what_the_program_says(stage: Stage) -> None:
    assert set(stage.said) == set(stage.blocks)
    aged = [name for name, said in stage.said.items() if levelled(stage.blocks[name].text) != levelled(said)]
    for name in aged[:1]:  # with the difference, to begin with
        assert levelled(stage.blocks[name].text) == levelled(stage.said[name]), f"{aged}: `make shown` runs them anew"


def test_shapes_are_what_the_program_prints(stage: Stage) -> None:
    documented = JSON_PAGE.read_text(encoding="utf-8")
    for section in render_shapes(stage.shapes).split("\n### "):
        assert section.strip().removeprefix("### ") in documented, "`make shown` runs it anew"
    shown, _, by_hand = documented.partition("\n## Team server\n")  # the second needs a database
    kinds = re.compile(r"^### (\S+)$", re.MULTILINE)
    assert set(kinds.findall(shown)) == set(stage.shapes)
    assert by_hand
    assert not set(kinds.findall(by_hand)) & set(stage.shapes)


def test_no_path_of_this_machine_is_in_a_document() -> None:
    for page in ALL_PAGES:
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text, page.name
        assert os.uname().nodename == "desk" or f"@{os.uname().nodename}" not in text, page.name


# --- The layout ------------------------------------------------------------------------------------------------------


def test_the_architecture_lists_the_folders_in_the_order_of_their_imports() -> None:
    listed = re.findall(r"^\| `(\w+)/` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert [f"truekeep.{name}" for name in listed] == contract["layers"]
    assert sorted(listed) == sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_pages_for_developers_name_exist(name: str) -> None:
    folders = "|".join(path.parent.name for path in SOURCE.glob("*/__init__.py"))
    named = set(re.findall(rf"(?<![\w/.])(?:{folders})/\w[\w/.]*\w", (ROOT / name).read_text()))
    assert len(named) > 5
    missing = {path for path in named if not (SOURCE / path).exists() and not (SOURCE / f"{path}.py").exists()}
    assert missing == set()


def test_no_class_name_means_two_things() -> None:
    places: dict[str, list[str]] = {}
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
