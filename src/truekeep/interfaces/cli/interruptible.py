"""Commands that clean up when they are stopped: SIGTERM is handled like Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from truekeep.interfaces.cli.app import EXIT_INTERRUPTED
from truekeep.interfaces.cli.terminal import echo


class InterruptibleGroup(click.Group):
    """A command group that prints what a stopped command left. `stopped_messages`: by the name of the command."""

    def __init__(self, *args: Any, stopped_messages: dict[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._stopped_messages = stopped_messages

    def invoke(self, ctx: click.Context) -> Any:
        with _sigterm_as_interrupt():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                echo(self._stopped_messages.get(ctx.invoked_subcommand or "", "stopped"), err=True)
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from None


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM. Only the main thread can change signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the cleanup
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
