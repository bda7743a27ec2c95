"""The entry point: the `truekeep` console script, and `python -m truekeep`."""

# Only modules that Python has already loaded: until leave_out_current_folder() ran, an import could come from the
# current folder.
import os
import sys


def main() -> None:
    try:
        status = _run(sys.argv[1:])
    except KeyboardInterrupt as error:  # while modules were being imported
        ignore_interrupts()
        from truekeep.interfaces.cli.app import report_error

        status = report_error(error, as_json="--json" in sys.argv)
    ignore_interrupts()  # the command is done; Ctrl-C must not turn its exit into a traceback
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    leave_out_current_folder()
    open_streams()
    if arguments[:1] == ["hook"] and not {"-h", "--help"} & set(arguments):
        # Harnesses wait for hooks at every prompt, so these do not load the command line.
        from truekeep.interfaces.hooks import main as run_hook

        return run_hook(arguments[1:])
    from truekeep.interfaces.cli.app import run

    return run(arguments)


def ignore_interrupts() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave_out_current_folder() -> None:
    """Keep the current folder out of sys.path: a repository may contain a json.py of its own.

    `python -m` puts it first, and so do empty and relative parts of PYTHONPATH (`:/opt/lib`).
    """
    relative = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(part)]
    if sys.flags.ignore_environment or not os.environ.get("PYTHONPATH"):
        relative = []
    if __name__ == "__main__" and not sys.flags.safe_path:
        relative.append("")
    try:
        folders = {os.path.abspath(part) for part in relative} | set(relative)
    except OSError:  # the current folder was deleted
        return
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [folder for folder in sys.path if folder not in folders or folder == own]


def open_streams() -> None:
    """Open /dev/null for standard streams that are closed (`>&-`, some daemons).

    Otherwise the next opened file, perhaps a card, would get descriptor 1 or 2, and child processes would write to it.
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
