"""What the hooks of a session cost with 10,000 cards, beside a bare interpreter in the same rounds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from bench.ingest import fill, ours
from bench.measure import child, median, scratch, table
from bench.promises import keep
from truekeep.sessions.checkpoint import Checkpoint
from truekeep.workspace.workspace import Workspace

CARDS = 10_000
LESSONS = 100
ROUNDS = 15
PROMISED = ("session-start", "stop", "session-end")
SCRIPT = "from truekeep.__main__ import main; main()"  # what the installed console script does
EDIT = '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit","input":{}}]}}\n'


def main(_options: Sequence[str] = ()) -> None:
    with scratch() as folder:
        repo = _make_memory(folder)
        transcript = folder / "session.jsonl"
        transcript.write_text(EDIT * 20 + (json.dumps({"type": "attachment", "text": "tool_use " * 2_000}) + "\n") * 50)
        environment = {
            "HOME": str(folder), "TRUEKEEP_WORKSPACE": str(folder / "workspace"), "TRUEKEEP_NO_BACKGROUND": "1"
        }  # fmt: skip
        programs = {"python -c pass": "pass", "python -c 'import truekeep'": "import truekeep"}
        hooks = ("session-start", "user-prompt-submit", "pre-tool-use", "stop", "session-end")
        times: dict[str, list[float]] = {name: [] for name in (*programs, *hooks)}
        for number in count():
            for name, code in programs.items():
                times[name].append(child([sys.executable, "-c", code])[0])
            payload: dict[str, object] = {
                "session_id": f"s{number}",
                "cwd": str(repo),
                "transcript_path": str(transcript),
            }
            payload |= {"source": "startup", "prompt": "Why does the canary 4242 listen on port 14242?"}
            payload |= {"tool_name": "Bash", "tool_input": {"command": f"make step-{number} --dry-run"}}
            for name in hooks:
                command = [sys.executable, "-c", SCRIPT, "hook", name]
                times[name].append(child(command, given=json.dumps(payload), **environment)[0])
            if number == ROUNDS:  # the first round wrote bytecode
                break
        bare = median(times["python -c pass"][1:])
        rows = []
        for name, found in times.items():
            usual, best = median(found[1:]), min(found[1:])
            rows.append([name, f"{usual * 1000:.0f} ms", f"{best * 1000:.0f} ms", f"{usual / bare:.1f} x"])
        table([f"hooks with {CARDS:,} cards, CPU", "median", "least", "beside bare"], rows)
        print(f"  promised: under 100 ms for {', '.join(PROMISED)}")
        for name in PROMISED:
            keep(f"hooks.{name}", median(times[name][1:]) * 1000, f"python -c pass {bare * 1000:.0f} ms")
        print(f"  promised: pre-tool-use within 30 ms of a bare interpreter, with {LESSONS} corrections")
        beyond = (median(times["pre-tool-use"][1:]) - bare) * 1000
        keep("hooks.pre-tool-use", beyond, f"python -c pass {bare * 1000:.0f} ms")


def _make_memory(folder: Path) -> Path:
    """A workspace with cards of one repository, as ingest leaves it: indexed, verified, with a handover."""
    repo, workspace = folder / "repo", folder / "workspace"
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    subprocess.run(["git", "-C", str(repo), "remote", "add", "origin", "https://git.example/acme/app.git"], check=True)
    Workspace.init(workspace, repositories=[str(repo)])
    config = workspace / ".truekeep" / "config.toml"
    config.write_text(f'repositories = ["{repo}"]\n[recall]\nembedder = "none"\n')
    fill(repo, CARDS * 4 // 3)
    ours(workspace, repo)
    with Workspace.open(workspace) as opened:
        opened.sessions.checkpoint(
            Checkpoint(last_action="Split the parser.", next_actions="- Measure it", summary="Two halves."), root=repo
        )
    rows = "".join(f"| 2026-11-18 | Ran `make step-{number}` | ask first | |\n" for number in range(LESSONS))
    corrections = workspace / "memory" / "ops" / "corrections.md"
    corrections.parent.mkdir(parents=True, exist_ok=True)
    corrections.write_text(f"| Date | What went wrong | Instead | Applies to |\n|---|---|---|---|\n{rows}")
    with Workspace.open(workspace) as opened:
        opened.search.index()
        opened.verification.verify(system=False)
    return repo


if __name__ == "__main__":
    main()
