"""truekeep server link, links, unlink: whom an OpenID provider's people are here; and the options of `run` for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.interfaces.cli.output import emit
from truekeep.interfaces.cli.server_options import on_database
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import style

if TYPE_CHECKING:
    from truekeep.server.sign_in import OpenIDSettings

SECRET_ENV = "TRUEKEEP_OIDC_CLIENT_SECRET"  # noqa: S105 - its name

_issuer_option = click.option(
    "--oidc-issuer",
    envvar="TRUEKEEP_OIDC_ISSUER",
    default="",
    metavar="URL",
    help="OpenID provider that people sign in with. [default: $TRUEKEEP_OIDC_ISSUER]",
)
_RUN_OPTIONS = (
    _issuer_option,
    click.option(
        "--oidc-client-id",
        envvar="TRUEKEEP_OIDC_CLIENT_ID",
        default="",
        metavar="ID",
        help="This server's client id there. [default: $TRUEKEEP_OIDC_CLIENT_ID]",
    ),
    click.option(
        "--oidc-secret-file",
        envvar="TRUEKEEP_OIDC_SECRET_FILE",
        default="",
        metavar="FILE",
        help=f"Its first line is the client secret; else ${SECRET_ENV} has it. [default: $TRUEKEEP_OIDC_SECRET_FILE]",
    ),
    click.option(
        "--oidc-domain",
        "oidc_domains",
        envvar="TRUEKEEP_OIDC_DOMAINS",
        multiple=True,
        metavar="DOMAIN",
        help="Make an account for whoever has a verified address there. [default: $TRUEKEEP_OIDC_DOMAINS]",
    ),
)


def openid_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name an OpenID provider."""
    return reduce(lambda made, option: option(made), reversed(_RUN_OPTIONS), command)


def openid_settings(
    public_url: str, *, oidc_issuer: str, oidc_client_id: str, oidc_secret_file: str, oidc_domains: tuple[str, ...]
) -> OpenIDSettings | None:
    """The provider that the options name; None without one."""
    if not oidc_issuer:
        return None
    if not oidc_client_id:
        raise BadInput("an OpenID provider knows this server by a client id", hint="--oidc-client-id ID")
    if not public_url:
        raise BadInput(
            "an OpenID provider sends people back to the public address, which is not given",
            hint="--public-url https://memory.example.com",
        )
    from truekeep.server.sign_in import OpenIDSettings  # here: needs the extra

    secret = os.environ.get(SECRET_ENV, "")
    if oidc_secret_file:
        try:
            lines = Path(oidc_secret_file).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise BadInput(f"{oidc_secret_file} cannot be read: {error}", hint="name a file with the secret") from error
        secret = lines[0].strip() if lines else ""
    return OpenIDSettings(
        issuer=oidc_issuer,
        client_id=oidc_client_id,
        client_secret=secret,
        domains=tuple(domain.lower().removeprefix("@") for domain in oidc_domains),
    )


@click.command()
@click.argument("account")
@click.option("--email", default="", metavar="ADDRESS", help="Whoever first signs in with this verified address.")
@click.option("--subject", default="", metavar="ID", help="Who has this subject at the provider.")
@_issuer_option
@on_database
def link(account: str, email: str, subject: str, oidc_issuer: str, url: str) -> None:
    """Let somebody of an OpenID provider sign in as an account.

    An address belongs to the first person who signs in with it; if somebody else gets it later, link again.

    Example: truekeep server link ada --email ada@example.com
    """
    from truekeep.server.sign_in import link as make_link  # here: needs the extra

    if not oidc_issuer:
        raise BadInput("no OpenID provider is named", hint="--oidc-issuer URL, or $TRUEKEEP_OIDC_ISSUER")
    make_link(url, account, oidc_issuer, subject=subject, email=email)
    data = {"account": account, "issuer": oidc_issuer, "subject": subject or None, "email": email or None}
    emit("server-link", data, [f"{style('linked', fg='green')} {subject or email} to {account}"])


@click.command()
@click.argument("account")
@on_database
def unlink(account: str, url: str) -> None:
    """End the links of an account, its sessions, and what it allowed programs.

    Example: truekeep server unlink ada
    """
    from truekeep.server.sign_in import unlink as end_links  # here: needs the extra

    count = end_links(url, account)
    emit("server-unlink", {"account": account, "links": count}, [f"ended {many(count, 'link')} of {account}"])


@click.command()
@on_database
def links(url: str) -> None:
    """List whom an OpenID provider's people are here.

    Example: truekeep server links
    """
    from truekeep.server.sign_in import list_links  # here: needs the extra

    found = list_links(url)
    rows = [[item.account, item.email or "", item.subject or "not signed in yet", item.issuer] for item in found]
    table = Table(["account", "e-mail", "subject", "provider"], rows)
    emit("server-links", {"links": found}, [table] if rows else ["nobody is linked"])
