"""Options of the commands of a team server."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from truekeep.interfaces.cli.options import json_flag

database_option = click.option(
    "--database",
    "url",
    envvar="TRUEKEEP_DATABASE",
    default="",
    metavar="URL",
    help="PostgreSQL, as postgresql://USER@HOST/NAME. [default: $TRUEKEEP_DATABASE]",
)
data_option = click.option(
    "--data", metavar="DIR", default="", help="Folder for working folders. [default: below the state folder]"
)
private_webhooks_option = click.option(
    "--allow-private-webhooks",
    "allow_private",
    envvar="TRUEKEEP_ALLOW_PRIVATE_WEBHOOKS",
    is_flag=True,
    help="Let webhooks go to addresses that are not on the open network. [default: $TRUEKEEP_ALLOW_PRIVATE_WEBHOOKS]",
)
public_url_option = click.option(
    "--public-url",
    envvar="TRUEKEEP_PUBLIC_URL",
    default="",
    metavar="URL",
    help="The address that browsers and clients use. [default: $TRUEKEEP_PUBLIC_URL]",
)


def on_database(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --database and --json."""

    @json_flag
    @database_option
    @wraps(command)
    def run(**given: Any) -> Any:
        return command(**given)

    return run
