"""Several searches by one process: a question on each line of the input, an answer as JSON on each of the output."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout

from truekeep.interfaces.cli.app import run


def main(workspace: str) -> None:
    for question in map(json.loads, sys.stdin):
        shown = io.StringIO()
        with redirect_stdout(shown):
            status = run(["search", "-w", workspace, "--json", "--", question])
        if status:
            sys.exit(f"search ended with {status}: {question[:80]}")
        print(json.dumps(json.loads(shown.getvalue())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
