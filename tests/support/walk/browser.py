"""Somebody who reviews in a browser: a real Chromium before the real `truekeep serve`, by keys."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from playwright.sync_api import Page, expect

from tests.integration.web.test_browser import awake, leap
from tests.support.programs import find
from tests.support.walk.world import Machine
from tests.support.website import Server, chromium, window


class Reviewer(Protocol):
    """Decides what waits for a person."""

    def reject(self, draft: str, *, reason: str, because: tuple[str, ...]) -> None:
        """Look at a draft, see why it waits, and turn it down."""
        ...

    def mend_and_approve(self, draft: str, *, old: str, new: str, because: tuple[str, ...]) -> None:
        """Look at a draft, see why it waits, say it right, and file it."""
        ...


@contextmanager
def a_reviewer(machine: Machine) -> Iterator[Reviewer]:
    """In the browser where there is one; else by the command line."""
    with machine.world.playing("reviewer"):
        if find("chromium") is None:
            yield AtTerminal(machine)
            return
        with _served(machine) as server, chromium() as browser, window(browser, server) as opened:
            yield InBrowser(machine, opened.page)
            opened.check()


@contextmanager
def _served(machine: Machine) -> Iterator[Server]:
    command = "truekeep serve --port 0"
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=machine.cwd, env=machine.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        said = machine.world.plain("".join(lines))
        machine.world.typed(machine, "truekeep serve", said)
        log = machine.base / "serve.log"
        log.touch()
        yield Server(process, lines[1].strip(), log)
    finally:
        process.terminate()
        process.communicate(timeout=120)


class InBrowser:
    """By the keys that the pages show."""

    def __init__(self, machine: Machine, page: Page) -> None:
        self._machine, self._page = machine, page

    def reject(self, draft: str, *, reason: str, because: tuple[str, ...]) -> None:
        self._open(draft, because)
        awake(self._page)
        self._page.keyboard.press("X")
        expect(self._page.get_by_label("Why it is rejected")).to_be_focused()
        self._page.keyboard.type(reason)
        leap(self._page, "Enter")
        expect(self._page.locator(".told")).to_contain_text("Rejected")
        self._tell(f"`g r` opens the queue. On the hostile draft, `X` turns it down, with the reason “{reason}”.")

    def mend_and_approve(self, draft: str, *, old: str, new: str, because: tuple[str, ...]) -> None:
        self._open(draft, because)
        leap(self._page, "e")
        text = self._page.locator("#text")
        assert old in text.input_value()
        text.fill(text.input_value().replace(old, new))
        leap(self._page, "Escape", "a")
        expect(self._page.locator(".told")).to_contain_text(draft)
        self._tell(f"On the wrong one, `e` edits: `{old}` becomes `{new}`. `Escape` leaves the text, `a` approves it.")

    def _open(self, draft: str, because: tuple[str, ...]) -> None:
        leap(self._page, "g", "r")
        with self._page.expect_navigation(url=re.compile(f"/review/{draft}-")):
            self._page.locator(f'main a[href*="/review/{draft}-"]').first.click()
        for words in because:
            expect(self._page.locator("main")).to_contain_text(words)

    def _tell(self, text: str) -> None:
        self._machine.world.tell(text)


class AtTerminal:
    """The same verbs, typed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def reject(self, draft: str, *, reason: str, because: tuple[str, ...]) -> None:
        self._machine.types(f"truekeep review show {draft}", *because)
        self._machine.types(f"truekeep review reject {draft} --reason '{reason}'", "rejected")

    def mend_and_approve(self, draft: str, *, old: str, new: str, because: tuple[str, ...]) -> None:
        self._machine.types(f"truekeep review show {draft}", *because)
        self._machine.types(f"EDITOR=\"sed -i 's/{old}/{new}/'\" truekeep review edit {draft}", "changed")
        self._machine.types(f"truekeep review approve {draft}", "promoted")
