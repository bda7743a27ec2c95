"""Build hooks: the wheel records its commit, and the README on the package index has working links.

`truekeep --version` shows the commit; an sdist carries the note, so that its wheel is the same. Relative links of the
README become links to `Source` of [project.urls], or plain text without one.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NOTE = "src/truekeep/commit.txt"
_FENCE = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        note = Path(self.root) / NOTE
        if version == "editable":
            return
        if not note.exists():
            commit = self._commit()
            if not commit:
                return
            self._folder = tempfile.TemporaryDirectory()
            note = Path(self._folder.name) / "commit.txt"
            note.write_text(f"{commit}\n", encoding="ascii")
        place = NOTE if self.target_name == "sdist" else NOTE.removeprefix("src/")
        build_data["force_include"][str(note)] = place

    def _commit(self) -> str:
        """The commit of this checkout; "" if the sources are only a subfolder of some other checkout."""
        if not (Path(self.root) / ".git").exists():
            return ""
        try:
            asked = subprocess.run(
                ["git", "rev-parse", "HEAD"], cwd=self.root, capture_output=True, text=True, check=True, timeout=10
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return asked.stdout.strip()


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme_alone(text, source)}


def readme_alone(text: str, source: str) -> str:
    """The README without relative links. Code blocks are unchanged."""
    parts = _FENCE.split(text)
    return "".join(
        part if part.startswith("```") else _LINK.sub(lambda link: _led(link, source), part) for part in parts
    )


def _led(link: re.Match[str], source: str) -> str:
    is_picture, shown, path = bool(link[1]), link[2], link[3]
    if source:
        return f"{link[1]}[{shown}]({source.rstrip('/')}/{'raw' if is_picture else 'blob'}/main/{path})"
    return f"*{shown}*" if is_picture else shown
