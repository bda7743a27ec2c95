"""Long output in a pager, as git does it: only on a terminal, and only what is longer than the screen."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import click


class _TerminalBuffer(io.StringIO):
    """Keeps what is printed. Counts as a terminal, so that colours and table widths stay those of the terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def in_pager() -> Iterator[None]:
    """Show what is printed within in a pager if it is longer than the screen. Off with TRUEKEEP_PAGER=cat."""
    chosen = os.environ.get("TRUEKEEP_PAGER", os.environ.get("PAGER", "less"))
    if chosen in ("", "cat") or not (sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()):
        yield
        return
    buffer = _TerminalBuffer()
    try:
        with redirect_stdout(buffer):
            yield
    finally:
        _print(buffer.getvalue(), chosen)


def _print(text: str, pager: str) -> None:
    if text.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text)
        return
    os.environ["PAGER"] = pager
    os.environ.setdefault("LESS", "FRX")  # git's choice: leave if it fits, keep colours, leave the text on the screen
    context = click.get_current_context(silent=True)
    click.echo_via_pager(text, color=context is None or context.color is not False)
