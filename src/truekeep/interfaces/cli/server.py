"""truekeep server: a team's memory in PostgreSQL; truekeep token: who may use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.core.machine import own_state
from truekeep.interfaces.cli.app import EXIT_INTERRUPTED
from truekeep.interfaces.cli.options import in_workspace
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.server_openid import link, links, openid_options, openid_settings, unlink
from truekeep.interfaces.cli.server_options import (
    data_option,
    database_option,
    on_database,
    private_webhooks_option,
    public_url_option,
)
from truekeep.interfaces.cli.server_webhook import webhook
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.interfaces.listener import in_url, listen, parse_address, parse_public_url

if TYPE_CHECKING:
    from truekeep.server.administration import ServerStatus
    from truekeep.workspace.workspace import Workspace

PORT = 8381
ROLES = ("reader", "writer", "reviewer", "owner")


@click.group()
def server() -> None:
    """Serve one memory to a team, from PostgreSQL.

    The database keeps the files, the ledger, the queue of handoffs and who may do what; any number of server processes
    on any machines serve it. It needs `pip install 'truekeep[server]'` and PostgreSQL 16 or newer.

    Example: truekeep server init --name memory.example.com
    """


for command in (webhook, link, links, unlink):
    server.add_command(command)


@server.command()
@click.option("--name", default="team", show_default=True, metavar="NAME", help="Name of the deployment in copies.")
@on_database
def init(url: str, name: str) -> None:
    """Prepare a database. Run by its owner; a second time it only migrates.

    Example: truekeep server init --database postgresql://postgres@localhost/truekeep
    """
    from truekeep.server.administration import init_deployment  # here: needs the extra

    made = init_deployment(url, name)
    ran = f", {many(len(made.migrations), 'migration')} ran" if made.migrations else ""
    emit(
        "server-init", made,
        [
            f"{style('ready', fg='green')} {made.name}{ran}",
            "  next: `truekeep server import NAME`, `truekeep server grant ACCOUNT NAME owner`,",
            "  `truekeep token create ACCOUNT`, `truekeep server run`",
        ],
    )  # fmt: skip


@server.command()
@on_database
def migrate(url: str) -> None:
    """Bring the schema of the database up to date. Servers may run meanwhile.

    Example: truekeep server migrate
    """
    from truekeep.server.database import migrate as run_migrations  # here: needs the extra

    ran = run_migrations(url)
    emit("server-migrate", {"migrations": ran}, [*(f"ran {name}" for name in ran)] or ["nothing to do"])


@server.command()
@on_database
def status(url: str) -> None:
    """Show the workspaces of a deployment.

    Example: truekeep server status
    """
    from truekeep.server.administration import read_status  # here: needs the extra

    found = read_status(url)
    emit("server-status", found, _render_status(found))


def _render_status(found: ServerStatus) -> Iterator[Shown]:
    yield f"{found.name}, schema {found.schema}"
    rows = [
        [
            item.name, str(item.version), str(item.files), f"{item.size / 1e6:.1f} MB", str(item.waiting),
            str(item.failed), str(item.members), item.holder or "nobody",
        ]
        for item in found.workspaces
    ]  # fmt: skip
    if rows:
        yield Table(["workspace", "version", "files", "size", "waiting", "failed", "members", "written by"], rows)
        for item in found.workspaces:
            if item.webhooks_failed or item.webhooks_waiting:
                told = f"{item.webhooks_waiting} waiting, {item.webhooks_failed} given up"
                yield f"webhooks of {item.name}: {told}; `truekeep server webhook list` says why"
    else:
        yield "no workspace yet: `truekeep server import NAME` or `truekeep server create NAME`"


@server.command(name="import")
@click.argument("name")
@click.option("--with-history", is_flag=True, help="Bring the history, also where something is private.")
@database_option
@in_workspace
def import_(opened: Workspace, name: str, with_history: bool, url: str) -> None:
    """Bring the workspace of this machine to the server as NAME, with its history.

    The folder stays as it is. What copies on other machines do not get stays here: files that `[sync] private` names,
    SOUL.md, the USER.md of others, and lines that say the same. Then the history stays as well, since it has earlier
    texts of every file. Settings that name paths or addresses of this machine are left out. From then on, change memory
    through the server.

    Example: truekeep server import platform
    """
    from truekeep.server.administration import import_workspace  # here: needs the extra

    done = import_workspace(url, name, opened, with_history=with_history)
    lines = [f"{style('imported', fg='green')} {many(done.files, 'file')} as {name}"]
    if done.left_out:
        lines.append(f"  left out, as private or too large: {_some(done.left_out)}")
    if done.masked:
        lines.append(f"  lines left out, as private files say them: {_some(done.masked)}")
    if not done.ledger and (done.left_out or done.masked):
        lines.append("  the history stayed here, as it may have what is private: --with-history brings it")
    emit("server-import", done, lines)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:10]) + (f" and {len(paths) - 10} more" if len(paths) > 10 else "")


@server.command()
@click.argument("name")
@on_database
def create(name: str, url: str) -> None:
    """Make an empty workspace.

    Example: truekeep server create platform
    """
    from truekeep.server.administration import create_workspace  # here: needs the extra

    create_workspace(url, name)
    emit("server-create", {"workspace": name}, [f"{style('made', fg='green')} {name}"])


@server.command()
@click.argument("name")
@click.argument("folder")
@on_database
def export(name: str, folder: str, url: str) -> None:
    """Write a workspace into an empty folder, byte for byte, with its ledger.

    Example: truekeep server export platform ./platform
    """
    from truekeep.server.administration import export_workspace  # here: needs the extra

    count = export_workspace(url, name, Path(folder).expanduser())
    line = f"{style('wrote', fg='green')} {many(count, 'file')}; `truekeep init {folder}` makes it a workspace"
    emit("server-export", {"workspace": name, "folder": folder, "files": count}, [line])


@server.command()
@click.argument("account")
@click.argument("workspace")
@click.argument("role", type=click.Choice((*ROLES, "none")))
@on_database
def grant(account: str, workspace: str, role: str, url: str) -> None:
    """Give an account a role in a workspace; none takes it away.

    A reader reads, a writer hands in too, a reviewer decides on drafts too, an owner sees the audit log too.

    Example: truekeep server grant ada platform reviewer
    """
    from truekeep.server.accounts import set_grant  # here: needs the extra

    set_grant(url, account, workspace, role)
    told = f"{account} has no role in {workspace} now" if role == "none" else f"{account} is {role} of {workspace}"
    emit("server-grant", {"account": account, "workspace": workspace, "role": role}, [told])


@server.command()
@on_database
def members(url: str) -> None:
    """List who has which role where.

    Example: truekeep server members
    """
    from truekeep.server.accounts import list_grants  # here: needs the extra

    found = list_grants(url)
    data = [{"account": account, "workspace": workspace, "role": role} for account, workspace, role in found]
    rows = [[item["workspace"], item["account"], item["role"]] for item in data]
    emit(
        "server-members", {"members": data}, [Table(["workspace", "account", "role"], rows)] if rows else ["nobody yet"]
    )


@server.command()
@click.option("--revoke", metavar="ID", default="", help="End this program: its tokens are refused from now on.")
@on_database
def clients(revoke: str, url: str) -> None:
    """List programs that got access by OAuth, or end one.

    A program registers itself, and a person allows it one workspace. `truekeep token list` shows its tokens.

    Example: truekeep server clients
    """
    from truekeep.server.oauth import list_clients, revoke_client  # here: needs the extra

    if revoke:
        revoke_client(url, revoke)
        emit("server-clients", {"revoked": revoke}, [f"{style('revoked', fg='green')} {revoke}"])
        return
    found = list_clients(url)
    rows = [
        [item.id, item.name, ", ".join(item.redirects), str(item.allowed), "revoked" if item.revoked_at else ""]
        for item in found
    ]
    headers = ["id", "name", "answers go to", "allowed", ""]
    emit("server-clients", {"clients": found}, [Table(headers, rows)] if rows else ["no program yet"])


@server.command()
@click.argument("workspace")
@on_database
def retry(workspace: str, url: str) -> None:
    """Try handoffs again that could not be filed.

    Example: truekeep server retry platform
    """
    from truekeep.server.administration import retry_failed  # here: needs the extra

    count = retry_failed(url, workspace)
    emit("server-retry", {"workspace": workspace, "handoffs": count}, [f"{many(count, 'handoff')} will be tried again"])


@server.command()
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port; 0 picks a free one."
)
@data_option
@click.option("--tls-cert", metavar="FILE", help="Certificate; with --tls-key, serve HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front of this address does TLS.")
@public_url_option
@openid_options
@private_webhooks_option
@click.pass_context
def run(
    ctx: click.Context, /, url: str, host: str, port: int, data: str, tls_cert: str | None, tls_key: str | None,
    behind_proxy: bool, public_url: str, allow_private: bool, **oidc: Any,
) -> None:  # fmt: skip
    """Serve the workspaces of a database until stopped.

    Several processes may serve one database, each with a --data of its own. /healthz tells if this one works, /metrics
    has figures for Prometheus. Pages for people are at the same address.

    Example: truekeep server run --host 0.0.0.0 --behind-proxy --public-url https://memory.example.com
    """
    address = parse_address(host)
    if bool(tls_cert) != bool(tls_key):
        raise BadInput("a certificate needs its key, and a key its certificate", hint="give both, or none")
    if not address.is_loopback and not tls_cert and not behind_proxy:
        raise BadInput(
            f"{host} can be reached from other machines, and tokens would go over the network in clear text",
            hint="--tls-cert and --tls-key; or --behind-proxy, if a proxy does TLS",
        )
    public_url = parse_public_url(public_url) if public_url else ""
    from truekeep.interfaces.api.run import serve_team  # here: needs the extra

    listener = listen(str(address), port)
    here = f"{'https' if tls_cert else 'http'}://{in_url(str(address))}:{listener.getsockname()[1]}"
    if not public_url and not behind_proxy and not address.is_unspecified:
        public_url = here
    told = f"serving at {here}; press Ctrl-C to stop"
    try:
        serve_team(
            url, _data_folder(data), listener,
            tls=(tls_cert, tls_key), public_url=public_url, openid=openid_settings(public_url, **oidc),
            allow_private_webhooks=allow_private, announce=lambda: echo(told), report=_report,
        )  # fmt: skip
    except KeyboardInterrupt:
        echo("stopped", err=True)
        ctx.exit(EXIT_INTERRUPTED)


def _data_folder(given: str) -> Path:
    return Path(given).expanduser() if given else Path(own_state()) / "server"


def _report(line: str) -> None:
    echo(line, err=True)


@server.command()
@database_option
@data_option
@private_webhooks_option
@click.pass_context
def worker(ctx: click.Context, /, url: str, data: str, allow_private: bool) -> None:
    """Do what waits in the workspaces of a database, and answer no requests.

    It files handoffs, carries out decisions and sends webhooks, as every `server run` does; so it is of use where those
    are busy answering. It takes the lease of a workspace like them, and another process takes over if it ends.

    Example: truekeep server worker --data /var/lib/truekeep-worker
    """
    from truekeep.server.worker import run_worker  # here: needs the extra

    told = "working; press Ctrl-C to stop"
    try:
        run_worker(
            url, _data_folder(data),
            allow_private_webhooks=allow_private, announce=lambda: echo(told), report=_report,
        )  # fmt: skip
    except KeyboardInterrupt:
        echo("stopped", err=True)
        ctx.exit(EXIT_INTERRUPTED)


@click.group()
def token() -> None:
    """Make, list and revoke tokens for a team server.

    Example: truekeep token create ada --role reviewer
    """


@token.command(name="create")
@click.argument("account")
@click.option("--workspace", "inside", metavar="NAME", default="", help="Only for this workspace.")
@click.option(
    "--role", type=click.Choice(ROLES), default="owner", help="Never more than this role, whatever the account has."
)
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True, help="Days until it expires.")
@click.option("--label", default="", metavar="TEXT", help="What it is for.")
@on_database
def create_token(account: str, inside: str, role: str, days: int, label: str, url: str) -> None:
    """Make a token for an account, and print it once.

    Example: truekeep token create ada --workspace platform --role writer --days 30
    """
    from truekeep.server.accounts import list_grants, make_token  # here: needs the extra

    number, made = make_token(url, account, workspace=inside, role=role, days=days, label=label)
    lines = [made, "  it is shown only now; `truekeep login URL` asks for it"]
    if not any(who == account and inside in ("", name) for who, name, _ in list_grants(url)):
        where = f"in {inside}" if inside else "in any workspace"
        lines.append(f"  {account} has no role {where} yet: `truekeep server grant {account} {inside or 'NAME'} ROLE`")
    emit("token-create", {"id": number, "account": account, "token": made}, lines)


@token.command(name="list")
@on_database
def list_(url: str) -> None:
    """List tokens, without the tokens themselves.

    Example: truekeep token list
    """
    from truekeep.server.accounts import list_tokens  # here: needs the extra

    found = list_tokens(url)
    rows = [
        [
            str(item.id), item.account, item.workspace or "all", item.role,
            f"{item.label} (OAuth)" if item.is_oauth else item.label,
            "revoked" if item.revoked_at else f"until {item.expires_at:%Y-%m-%d}" if item.expires_at else "for ever",
            f"{item.last_used}" if item.last_used else "never",
        ]
        for item in found
    ]  # fmt: skip
    headers = ["id", "account", "workspace", "at most", "label", "valid", "last used"]
    emit("token-list", {"tokens": found}, [Table(headers, rows)] if rows else ["no token yet"])


@token.command()
@click.argument("number", type=click.IntRange(1))
@on_database
def revoke(number: int, url: str) -> None:
    """End a token at once.

    Example: truekeep token revoke 3
    """
    from truekeep.server.accounts import revoke_token  # here: needs the extra

    revoke_token(url, number)
    emit("token-revoke", {"id": number}, [f"{style('revoked', fg='green')} token {number}"])
