"""A QR code of a link, for a terminal."""

from __future__ import annotations

_BORDER = 2  # modules


def render_qr_code(link: str) -> list[str]:
    """The lines to print; two rows of modules are one line. Light is the colour of the text, dark the ground's."""
    from io import StringIO

    import segno

    drawn = StringIO()
    segno.make(link, error="l", micro=False).terminal(out=drawn, border=_BORDER, compact=True)
    return [line for line in drawn.getvalue().splitlines() if line]
