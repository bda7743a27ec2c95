"""`make demo`: the main job, played end to end by the program itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    """In a copy of its folder, so that a person's own demo-home stays."""
    shutil.copytree(ROOT / "demo", tmp_path / "demo")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "demo/run.sh"],
        cwd=tmp_path,
        env={**os.environ, "PATH": programs},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout.rstrip().endswith("docs/commands.md")
