"""`truekeep config`: the settings of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from truekeep.core.errors import BadInput, BadSetup
from truekeep.interfaces.cli.complete_values import complete_settings
from truekeep.interfaces.cli.options import in_workspace, wants_json
from truekeep.interfaces.cli.output import Shown, emit, short_path, show
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import ask_yes_no, can_ask, print_error, style

if TYPE_CHECKING:
    from truekeep.workspace.settings import ConfigSetting, SettingChange, Value
    from truekeep.workspace.workspace import Workspace

key_argument = click.argument("key", shell_complete=complete_settings)


@click.group(no_args_is_help=True)
def config() -> None:
    """Show and change the settings of a workspace.

    Settings are in .truekeep/config.toml; docs/operations.md describes each. A change takes effect with the next
    command.

    Example: truekeep config set limits.review_days 45
    """


@config.command("list")
@click.option("--all", "everything", is_flag=True, help="Also show settings that have their default.")
@in_workspace
def list_(opened: Workspace, everything: bool) -> None:
    """List the settings that you changed.

    Example: truekeep config list --all
    """
    settings = [setting for setting in opened.settings.list() if everything or setting.is_set]
    data = {"path": opened.settings.path, "settings": settings}
    emit("config", data, _render_list(settings, everything=everything), is_long=True)


def _render_list(settings: list[ConfigSetting], *, everything: bool) -> Iterator[Shown]:
    if settings:
        rows = [
            [setting.key, _shown(setting.value), "" if setting.is_set else style("default", dim=True)]
            for setting in settings
        ]
        yield Table(["setting", "value", ""], rows, whole=(0,))
    else:
        yield "every setting has its default"
    if everything:
        yield "`truekeep handoff lint --codes` lists the policies and their defaults"
    else:
        yield "`truekeep config list --all` also shows the defaults"


@config.command()
@key_argument
@in_workspace
def get(opened: Workspace, key: str) -> None:
    """Print the value of a setting: a list one item a line.

    Example: truekeep config get limits.review_days
    """
    setting = opened.settings.get(key)
    emit("config-get", setting, setting.value if isinstance(setting.value, list) else [_shown(setting.value)])


@config.command(name="set")
@key_argument
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@in_workspace
def set_(opened: Workspace, key: str, values: tuple[str, ...]) -> None:
    """Change a setting.

    A list takes several values and is replaced as a whole. A value that does not fit changes nothing.

    Example: truekeep config set repositories '~/repos/*' ~/work/shop
    """
    _emit_change(opened.settings.set(key, values))


@config.command()
@key_argument
@in_workspace
def unset(opened: Workspace, key: str) -> None:
    """Remove a setting, so that its default holds again.

    Example: truekeep config unset limits.review_days
    """
    _emit_change(opened.settings.unset(key))


@config.command()
@in_workspace
def edit(opened: Workspace) -> None:
    """Edit the settings in your editor ($VISUAL or $EDITOR).

    What you save is checked before it is written. If it cannot be used, you can correct it or leave everything as it
    was.
    """
    if wants_json() or not can_ask():
        raise BadInput("not a terminal, so no editor can be opened", hint="use `truekeep config set`")
    before = opened.settings.read_text()
    text = before
    while (edited := click.edit(text, extension=".toml")) is not None and edited != before:
        try:
            opened.settings.replace_text(before, edited)
        except BadSetup as error:
            print_error(error)
            ask_yes_no("edit again?", default=True, abort=True)
            text = edited
        else:
            show([f"{short_path(opened.settings.path)}: saved"])
            return
    show(["nothing was changed"])


@config.command()
@in_workspace
def path(opened: Workspace) -> None:
    """Print where the settings are.

    Example: cat "$(truekeep config path)"
    """
    emit("config-path", {"path": opened.settings.path}, [str(opened.settings.path)])


def _emit_change(change: SettingChange) -> None:
    now = _with_origin(change.after)
    emit("config-change", change, [f"{change.key} is now {now} (was {_with_origin(change.before)})"])


def _with_origin(setting: ConfigSetting) -> str:
    if setting.value is None:
        return "not set"
    return _shown(setting.value) + ("" if setting.is_set else ", the default")


def _shown(value: Value | None) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return str(value) or "none"
