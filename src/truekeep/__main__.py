"""truekeep, and python -m truekeep. Hooks, searches and shells that complete a word come in here without loading
the command line: somebody waits for them."""

# Nothing but what Python has loaded by itself, not even __future__: the current folder may still be searched.
import gc
import os
import sys

_GARBAGE = 5_000  # objects between two looks for garbage: what is imported is none, and most commands make little


def main() -> None:
    try:
        _main()
    except KeyboardInterrupt as error:  # while parts of truekeep were loaded, or between two of them
        ignore_interrupts()
        from truekeep.interfaces.cli.app import tell

        sys.exit(tell(error, as_json="--json" in sys.argv))


def _main() -> None:
    leave_out_current_folder()
    open_streams()
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv[2:]):
        if "later" not in sys.argv:
            gc.disable()  # gone before there is anything to collect
        from truekeep.interfaces.hooks import main as hook

        status = hook(sys.argv[2:])
        os._exit(status)  # all is written and closed; taking the interpreter apart would cost a tenth of the time
    if sys.argv[1:3] == ["completion", "--values"]:  # somebody pressed Tab
        from truekeep.interfaces.completion import answer as complete

        sys.stdout.write(complete(sys.argv[3:]))
        return
    if "search" in sys.argv[1:4]:
        gc.disable()  # as above
        from truekeep.interfaces.fast_search import answer, parse_search

        if (asked := parse_search(sys.argv[1:])) is not None:
            status = 0
            try:
                answer(asked)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the command line knows how to say it
                from truekeep.interfaces.cli.app import tell

                status = tell(error, as_json=asked.as_json)
            os._exit(status)
        gc.enable()
    gc.set_threshold(_GARBAGE)
    from truekeep.core.deferred import defer_inspect

    defer_inspect()
    from truekeep.interfaces.cli.app import run

    status = run(sys.argv[1:])
    ignore_interrupts()  # all is done and said; Python would show where it stood, and die of the signal
    gc.freeze()  # else the interpreter looks through all that is loaded for cycles before it ends
    sys.exit(status)


def ignore_interrupts() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave_out_current_folder() -> None:
    """Import nothing from the folder that one works in: a repository may hold a json.py of its own.

    `python -m` puts that folder first, and so do the empty and the relative parts of PYTHONPATH (`:/opt/lib`).
    """
    relative = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(part)]
    if sys.flags.ignore_environment or not os.environ.get("PYTHONPATH"):
        relative = []
    if __name__ == "__main__" and not sys.flags.safe_path:
        relative.append("")
    try:
        folders = {os.path.abspath(part) for part in relative} | set(relative)
    except OSError:  # the current folder is gone, and nothing can be in it
        return
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [folder for folder in sys.path if folder not in folders or folder == own]


def open_streams() -> None:
    """Stand in for the standard streams that were closed before truekeep began (`>&-`, some daemons).

    The next file opened would get their number, and a child that complains would write into it: into a card, say.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()
