"""Work, counted and not timed: the same number on any machine, however busy it is.

Counted are the lines and calls of Python, and the characters that a method of str or bytes goes through: all of them,
or those from where a search starts to what it finds.
What C code does by itself (a pattern of `re` that backtracks) is not; a text so long that such work would take hours
shows that, and `unless_endless` ends it.
"""

from __future__ import annotations

import ast
import functools
import linecache
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

_WHOLE = frozenset(
    "casefold decode encode expandtabs isascii lower replace split splitlines strip swapcase translate upper".split()  # noqa: SIM905
)
_SEARCHES = frozenset(("find", "index", "rfind", "rindex", "count"))
_PLAIN = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Load, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop),
    *(ast.IfExp, ast.JoinedStr, ast.FormattedValue),
)
_GETTERS = frozenset(("start", "end", "len"))  # calls that may be made once more
_CHARACTERS = 16  # that count as one step
ENDLESS = 120.0  # seconds of CPU, for what takes one or two


class Endless(Exception):
    """Something did not end."""


@contextmanager
def unless_endless(
    seconds: float = ENDLESS, timer: int = signal.ITIMER_VIRTUAL, sign: int = signal.SIGVTALRM
) -> Iterator[None]:
    """Give up on what does not end: no measure of speed, only of whether it ends at all. Counts this process's time."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise Endless(f"not done after {seconds} s")

    before = signal.signal(sign, give_up)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(sign, before)


def count_work(act: Callable[[], object]) -> int:
    """The steps that an act takes in this thread."""
    steps = 0

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal steps
        steps += 1
        return line

    def call(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal steps
        steps += 1
        if event == "c_call" and isinstance(arg.__self__, (str, bytes, bytearray)):
            if arg.__name__ in _WHOLE:
                steps += len(arg.__self__) // _CHARACTERS
            elif arg.__name__ in _SEARCHES:
                steps += _count_searched(frame, arg) // _CHARACTERS

    traced, profiled = sys.gettrace(), sys.getprofile()
    sys.settrace(line)
    sys.setprofile(call)
    try:
        act()
    finally:
        sys.setprofile(profiled)
        sys.settrace(traced)
    return steps


def _count_searched(frame: FrameType, method: Any) -> int:
    """How many characters a search goes through; the whole text where its arguments cannot be told."""
    text = method.__self__
    arguments = _find_arguments(frame.f_code, frame.f_lasti)
    if arguments is None:
        return len(text)
    given = [eval(argument, frame.f_globals, frame.f_locals) for argument in arguments]
    start, end, _ = slice(*(*given[1:], None, None)[:2]).indices(len(text))
    if method.__name__ == "count":
        return max(0, end - start)
    backwards = method.__name__.startswith("r")
    found: int = (text.rfind if backwards else text.find)(*given)
    if found < 0:
        return max(0, end - start)
    return end - found if backwards else found - start


@functools.cache
def _find_arguments(code: CodeType, instruction: int) -> list[CodeType] | None:
    """The arguments of the call at an instruction, if evaluating them again changes nothing."""
    line, last, column, end = list(code.co_positions())[instruction // 2]
    if line is None or last is None or column is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(line, last + 1)]
    lines[-1] = lines[-1][:end]
    try:
        call = ast.parse(b"".join((b"(", lines[0][column:], *lines[1:], b")")), mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call) or call.keywords or not all(map(_is_plain, call.args)):
        return None
    return [compile(ast.Expression(argument), code.co_filename, "eval") for argument in call.args]


def _is_plain(argument: ast.expr) -> bool:
    for node in ast.walk(argument):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _GETTERS:
                return False
        elif not isinstance(node, _PLAIN):
            return False
    return True


def assert_about_linear(act: Callable[[int], object], small: int, *, times: int = 6, huge: int = 0) -> None:
    """Six times the input is about six times the work, not thirty-six times; and a huge one comes to its end."""
    act(small)  # compiled patterns, imports
    base = count_work(lambda: act(small))
    grown = count_work(lambda: act(small * times))
    assert grown < base * times * 1.5 + 100, f"{base} steps became {grown} for {times} times the input"
    if huge:
        with unless_endless():
            act(huge)
