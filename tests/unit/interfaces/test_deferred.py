"""What is put off until it is needed is the same as if it had been there all along."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.helpers import Place
from truekeep.core.deferred import clean_line


@given(st.text(alphabet=" \t\n\u3000\x1fab.", max_size=30))
@example("One plain line.")
@example(" one that begins with a space")
@example("")
@settings(max_examples=400, deadline=None)
def test_lines_are_cleaned_as_python_does_it(text: str) -> None:
    assert clean_line(text) == inspect.cleandoc(text)


def run_python(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_what_is_asked_of_it_loads_it_for_everybody() -> None:
    done = run_python(
        "import sys\nfrom truekeep.core.deferred import defer_inspect\ndefer_inspect()\n"
        "import inspect as first\nfrom dataclasses import dataclass\n"
        "assert first.cleandoc('A line.') == 'A line.' and 'ast' not in sys.modules\n"
        "assert first.cleandoc('Two\\n    lines.') == 'Two\\nlines.' and 'ast' in sys.modules\n"
        "import inspect as then\n"
        "assert first is not then and first.signature is then.signature and first.cleandoc is then.cleandoc\n"
        "assert not hasattr(first, 'no_such_thing')\n"
        "@dataclass\nclass Bare:\n    size: int\n"
        "print(Bare.__doc__)"
    )
    assert (done.stdout, done.stderr) == ("Bare(size: int)\n", "")


def test_one_that_is_loaded_stays() -> None:
    done = run_python(
        "import inspect\nfrom truekeep.core.deferred import defer_inspect\ndefer_inspect()\n"
        "import sys\nprint(sys.modules['inspect'] is inspect, inspect.cleandoc is not None)"
    )
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_an_ordinary_command_does_without_and_help_has_it(place: Place) -> None:
    program = (
        "import sys\nfrom truekeep.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print('ast' in sys.modules, file=sys.stderr)"
    )
    for arguments in (["ingest"], ["wake"]):
        done = run_python(program, *arguments, TRUEKEEP_WORKSPACE=str(place.workspace))
        assert (done.returncode, done.stderr) == (0, "False\n"), arguments
    done = run_python(program, "ingest", "--help")
    assert (done.returncode, done.stderr) == (0, "True\n")
    assert "File all pending handoffs" in done.stdout


def test_the_ending_of_a_command_is_its_status(place: Place) -> None:
    done = run_python("from truekeep.__main__ import main; main()", "no-such-command")
    assert done.returncode == 2
    assert "no-such-command" in done.stderr
