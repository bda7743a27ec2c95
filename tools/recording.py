"""The recording in the README: python -m tools.recording, or make recording; an animated picture of a terminal.

The commands are really run, in a terminal of their own, in the story that tools/shown.py tells. The picture is an SVG
whose lines appear one after the other, so it needs no player; who wants no motion sees the last screen.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tools.shown import ROOT, Stage, begin_shop, move_carts, write_carts_card, write_poisoned_handoff

RECORDING = ROOT / "docs" / "images" / "recording.svg"
COLUMNS, ROWS = 104, 19
CHARACTER, LINE, MARGIN = 8.4, 19, 16  # pixels, of a font of 14
A_LINE, A_COMMAND, TO_READ = 0.12, 0.9, 3.2  # seconds until the next line, after a command, after its last line
_TITLE = re.compile(r"\x1b\][^\x07]*\x07")


class Scene(NamedTuple):
    """One screen: a line that says what happens, a command and what it prints."""

    title: str
    command: str
    at: str = "."


STORY: Sequence[Scene] = (
    Scene(
        "Claude Code leaves what it learned as a handoff",
        "truekeep handoff new --type setup --title 'Staging sits behind a proxy' --card staging-proxy.md \\\n"
        "    --summary 'The proxy terminates TLS; direct connections are reset.' \\\n"
        "    --fact 'Staging answers on port 8443 only' --evidence 'files changed: deploy/proxy.conf'",
        "repos/shop",
    ),
    Scene("One machine files handoffs. What is doubtful waits for you", "truekeep ingest"),
    Scene(
        "Every session finds it, by words and by meaning", "truekeep search 'why are connections reset on staging' -n 2"
    ),
    Scene(
        "The code moves on. Memory is checked against it",
        "truekeep verify memory/cards/carts.md",
        ".openclaw/workspace",
    ),
    Scene("What moved is repaired; what is gone waits for you", "truekeep verify --fix"),
    Scene("Every line can be explained, and every change undone", "truekeep history -n 5"),
)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="truekeep-recording-") as folder:
        screens = list(play_story(Path(folder)))
    RECORDING.write_text(render_svg(screens), encoding="utf-8")
    print(f"{RECORDING.relative_to(ROOT)}: {len(screens)} screens")


def play_story(base: Path) -> Iterator[list[Text]]:
    """The lines of each screen."""
    stage = Stage(base, {})
    begin_shop(stage)
    stage.run("truekeep init --repo '~/repos/*'")
    write_poisoned_handoff(stage)
    write_carts_card(stage)
    for scene in STORY:
        if "ingest" in scene.command:
            stage.run("sleep 1.1")  # until nobody can be writing the handoff any more
        if "verify memory" in scene.command:
            move_carts(stage)
        printed = run_in_terminal(stage, scene)
        command = [Text(("$ " if not at else "") + line, "bold") for at, line in enumerate(scene.command.split("\n"))]
        yield [Text(f"# {scene.title}", "dim"), *command, *printed][:ROWS]


def run_in_terminal(stage: Stage, scene: Scene) -> list[Text]:
    """What a command prints on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    environment = stage.environment("desk") | {
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "TRUEKEEP_PAGER": "cat",
    }
    with subprocess.Popen(
        ["sh", "-c", scene.command],
        cwd=stage.home / scene.at,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,  # progress
    ):
        os.close(theirs)
        printed = b"".join(_read_all(ours))
    os.close(ours)
    text = _TITLE.sub("", printed.decode()).replace(str(stage.home), "~").replace("\r\n", "\n")
    lines = [Text.from_ansi(line) for line in text.rstrip("\n").split("\n")]
    for line in lines:
        line.truncate(COLUMNS, overflow="ellipsis")
    return lines


def _read_all(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the other end is closed
            return
        if not chunk:
            return
        yield chunk


def render_svg(screens: Sequence[Sequence[Text]]) -> str:
    starts: list[list[float]] = []
    now = 0.5
    for screen in screens:
        shown = []
        for number in range(len(screen)):
            shown.append(now)
            now += A_COMMAND if number < 2 else A_LINE
        now += TO_READ
        starts.append([*shown, now])
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    rules, groups = [], []
    for number, (screen, times) in enumerate(zip(screens, starts, strict=True)):
        is_last = number == len(screens) - 1
        lines = []
        for row, text in enumerate(screen):
            name = f"l{number}-{row}"
            rules.append(_rule(name, times[row], times[-1], total=now))
            lines.append(
                f'<g class="{"line last" if is_last else "line"}" style="animation-name:{name}">{_line(text, row)}</g>'
            )
        groups.append("".join(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-size="14" role="img">'
        "<title>truekeep in a terminal: a handoff is filed, found, checked against the code and repaired</title><style>"
        f"text{{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}"
        f".line{{opacity:0;animation-duration:{now:.2f}s;animation-iteration-count:infinite}}"
        "@media (prefers-reduced-motion:reduce){.line{animation:none}.last{opacity:1}}"
        f"{''.join(rules)}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{_hex(MONOKAI.background_color)}"/>{"".join(groups)}</svg>\n'
    )


def _rule(name: str, start: float, end: float, *, total: float) -> str:
    """A line is seen from its start to the end of its screen."""
    begin, finish = 100 * start / total, 100 * end / total
    before, until = f"{begin - 0.01:.2f}%", f"{finish - 0.01:.2f}%"
    hidden, seen = "{opacity:0}", "{opacity:1}"
    return f"@keyframes {name}{{0%,{before}{hidden}{begin:.2f}%,{until}{seen}{finish:.2f}%,100%{hidden}}}"


def _line(text: Text, row: int) -> str:
    y = MARGIN + (row + 0.75) * LINE
    pieces, column = [], 0
    for piece in text.divide(sorted({offset for span in text.spans for offset in (span.start, span.end)})):
        style = _style_of(piece)
        x = MARGIN + column * CHARACTER
        if piece.plain.strip():
            width = f' textLength="{len(piece.plain) * CHARACTER:.1f}"'
            pieces.append(f'<text x="{x:.1f}" y="{y:.1f}"{width}{_attributes(style)}>{escape(piece.plain)}</text>')
        column += piece.cell_len
    return "".join(pieces)


def _style_of(piece: Text) -> Style:
    styles = [span.style if isinstance(span.style, Style) else Style.parse(span.style) for span in piece.spans]
    base = piece.style if isinstance(piece.style, Style) else Style.parse(piece.style or "none")
    return Style.combine([base, *styles])


def _attributes(style: Style) -> str:
    colour = style.color.get_truecolor(MONOKAI) if style.color else MONOKAI.foreground_color
    bold = ' font-weight="bold"' if style.bold else ""
    dim = ' opacity="0.65"' if style.dim else ""
    return f' fill="{_hex(colour)}"{bold}{dim}'


def _hex(colour: ColorTriplet) -> str:
    return colour.hex


if __name__ == "__main__":
    main()
