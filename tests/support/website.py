"""The site as its tests use it: the real `truekeep serve` in a process of its own, and a real Chromium that looks.

Whatever a page says on its console, asks for on the network or throws is written down; `Window.check` says that nothing
of it is out of order.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, sync_playwright

from tests.support.helpers import PATIENCE
from tests.support.programs import find, need
from truekeep.interfaces.web.local_site import LOG

_LINK = re.compile(r"(http://(\S+?))/\?token=(\S+)")


class Server:
    """A running `truekeep serve`."""

    def __init__(self, process: subprocess.Popen[str], link: str, log: Path) -> None:
        found = _LINK.fullmatch(link)
        assert found is not None, link
        self.process = process
        self.link = link
        self.log = log
        self.url, self.host, self.token = found.groups()
        self.port = int(self.host.rpartition(":")[2])

    @contextmanager
    def visitor(self) -> Iterator[httpx.Client]:
        """Somebody who came in by the link."""
        with httpx.Client(base_url=self.url, follow_redirects=True, timeout=PATIENCE) as client:
            assert client.get(self.link).url.query == b""
            yield client

    def csrf(self, client: httpx.Client, path: str) -> str:
        """The word that the forms of a page carry."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(path).text)
        assert found is not None, f"{path} has no form"
        return found[1]

    def raw(self, data: bytes) -> bytes:
        """What comes back for these very bytes, until the server closes or falls silent."""
        received = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            try:
                while piece := connection.recv(65_536):
                    received += piece
            except (TimeoutError, ConnectionResetError):
                pass
        return received

    def stop(self) -> str:
        """End it as Ctrl-C does; gives what it said on standard error."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE)
        return self.log.read_text()


@contextmanager
def served(workspace: Path, env: Mapping[str, str], *options: str) -> Iterator[Server]:
    """The site of a workspace, on a free port."""
    log = workspace.parent / f"serve-{time.monotonic_ns()}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "truekeep", "serve", "--port", "0", "--workspace", str(workspace), *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=dict(env),
        )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert _LINK.fullmatch(lines[1].strip()), f"{lines}\n{log.read_text()}"
        server = Server(process, lines[1].strip(), log)
        _await(server)
        yield server
        server.stop()
        bugs = workspace / ".truekeep" / "logs" / LOG
        assert (log.read_text(), bugs.read_text() if bugs.exists() else "") == ("", "")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def _await(server: Server) -> None:
    """Wait until it answers."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            httpx.get(f"{server.url}/static/style.css", timeout=PATIENCE)
            return
        except httpx.TransportError:
            assert time.monotonic() < until, server.log.read_text()
            time.sleep(0.05)


class Window:
    """A page of a browser, and everything that it did."""

    def __init__(self, server: Server, context: BrowserContext) -> None:
        self.server = server
        self.context = context
        self.said: list[str] = []  # warnings and errors on the console
        self.thrown: list[str] = []
        self.asked: list[str] = []  # every address that was asked for
        self.dialogs: list[str] = []
        self.strangers: list[str] = []  # windows that opened by themselves
        context.on("request", self._request)
        context.on("page", lambda page: self.strangers.append(page.url))
        context.on("console", self._console)
        context.on("dialog", self._dialog)
        context.on("weberror", lambda error: self.thrown.append(str(error.error)))
        self.page: Page = context.new_page()
        self.strangers.clear()
        self.page.set_default_timeout(1000 * PATIENCE)

    def _request(self, request: Request) -> None:
        self.asked.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def enter(self) -> Page:
        self.page.goto(self.server.link)
        return self.page

    def go(self, path: str) -> Page:
        self.page.goto(self.server.url + path)
        return self.page

    @property
    def path(self) -> str:
        parts = urlsplit(self.page.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def outside(self) -> list[str]:
        return [url for url in self.asked if urlsplit(url).netloc != self.server.host]

    def check(self, *, refused: tuple[int, ...] = ()) -> None:
        """Nothing left the site, nothing went wrong; `refused` are statuses that were asked for on purpose."""
        said = [one for one in self.said if not any(f"status of {status} " in one for status in refused)]
        wrong = self.outside() + said + self.thrown + self.dialogs + self.strangers
        assert not wrong, wrong


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """This system's Chromium. No name is looked up for it, whatever a page asks for."""
    need("chromium")
    flags = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost", *arguments]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=flags)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(browser: Browser, server: Server, **options: object) -> Iterator[Window]:
    """A window of its own, with cookies of its own. What it did is checked at the end unless the test failed."""
    context = browser.new_context(**options)  # type: ignore[arg-type] # handed on as they are
    try:
        opened = Window(server, context)
        opened.enter()
        yield opened
    finally:
        context.close()
