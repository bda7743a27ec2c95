"""truekeep server webhook: addresses that are told when drafts wait."""

from __future__ import annotations

from pathlib import Path

import click

from truekeep.core.errors import BadInput
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.server_options import on_database, private_webhooks_option, public_url_option
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import style
from truekeep.interfaces.listener import parse_public_url

EXIT_PROBLEMS = 1


@click.group()
def webhook() -> None:
    """Tell an address when drafts begin to wait in a workspace.

    A server process sends a POST with JSON, signed as Standard Webhooks has it, with how many drafts wait. If it is not
    taken, it is tried six times more in 18 hours.

    Example: truekeep server webhook add platform https://chat.example.com/hooks/1
    """


@webhook.command()
@click.argument("workspace")
@click.argument("target", metavar="URL")
@click.option("--secret-file", metavar="FILE", help="Its first line signs messages. [default: a new secret]")
@click.option("--titles", is_flag=True, help="Name the new drafts: ids and titles.")
@public_url_option
@private_webhooks_option
@on_database
def add(
    workspace: str, target: str, secret_file: str | None, titles: bool, public_url: str, allow_private: bool, url: str
) -> None:
    """Add an address, and print the secret that signs its messages once.

    Messages tell the name of the workspace, how many drafts wait and how many are new, and with --public-url the link
    to the review page. Titles are text of memory: name them only to an address that may know it.

    Example: truekeep server webhook add platform https://chat.example.com/hooks/1
    """
    from truekeep.server.webhooks import add_webhook  # here: needs the extra

    secret = _read_secret(secret_file) if secret_file else ""
    site = parse_public_url(public_url) if public_url else ""
    number, made = add_webhook(
        url, workspace, target, secret=secret, with_titles=titles, site=site, allow_private=allow_private
    )
    lines: list[Shown] = [f"{style('added', fg='green')} webhook {number} of {workspace}"]
    if not secret:
        lines += [made, "  it signs the messages, and is shown only now"]
    lines.append(f"  next: truekeep server webhook test {number}")
    emit("server-webhook-add", {"id": number, "workspace": workspace, **({} if secret else {"secret": made})}, lines)


def _read_secret(path: str) -> str:
    try:
        with Path(path).expanduser().open(encoding="ascii", errors="replace") as file:
            return file.readline(1_000).strip()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="--secret-file names a file that you can read") from error


@webhook.command(name="list")
@on_database
def list_(url: str) -> None:
    """List webhooks, and if their last message was taken.

    Example: truekeep server webhook list
    """
    from truekeep.server.webhooks import list_webhooks  # here: needs the extra

    found = list_webhooks(url)
    rows = [
        [
            str(item.id), item.workspace, item.url, "titles" if item.with_titles else "counts",
            f"{item.last_sent:%Y-%m-%d %H:%M}" if item.last_sent else "never", str(item.waiting), str(item.failed),
            item.problem,
        ]
        for item in found
    ]  # fmt: skip
    headers = ["id", "workspace", "url", "tells", "last taken", "waiting", "failed", "problem"]
    emit("server-webhook-list", {"webhooks": found}, [Table(headers, rows)] if rows else ["no webhook yet"])


@webhook.command()
@click.argument("number", metavar="ID", type=click.IntRange(1))
@on_database
def remove(number: int, url: str) -> None:
    """Remove a webhook, with the messages that wait for it.

    Example: truekeep server webhook remove 2
    """
    from truekeep.server.webhooks import remove_webhook  # here: needs the extra

    remove_webhook(url, number)
    emit("server-webhook-remove", {"id": number}, [f"{style('removed', fg='green')} webhook {number}"])


@webhook.command()
@click.argument("number", metavar="ID", type=click.IntRange(1))
@private_webhooks_option
@on_database
def test(number: int, allow_private: bool, url: str) -> int:
    """Send a test message now, from this machine.

    Example: truekeep server webhook test 2
    """
    from truekeep.server.webhooks import send_test_message  # here: needs the extra

    problem = send_test_message(url, number, allow_private=allow_private)
    told = f"{style('not taken', fg='red')}: {problem}" if problem else style("taken", fg="green")
    emit("server-webhook-test", {"id": number, "taken": not problem, "problem": problem}, [told])
    return EXIT_PROBLEMS if problem else 0
