"""The `edgebox` command, also as `python -m edgebox`.

A box that is told to stop while its libraries are still being imported, which takes seconds on a
small machine, ends as it would later: in order, with status 0. Any other command that is
interrupted then ends at once, by the signal.
"""

import gc
import os
import signal
import sys


def _open_closed_streams() -> None:
    """Let standard streams that are closed lead nowhere.

    Otherwise the next file that is opened, such as a database, has the number of one of them, and
    what is told is written into it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest number that is free
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def main() -> None:
    """Run the command line."""
    _open_closed_streams()
    interrupts = signal.getsignal(signal.SIGINT)
    if sys.argv[1:2] == ["serve"]:
        # Nothing has begun that would have to be ended. The loop's own handlers follow.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: os._exit(0))
    elif interrupts is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no stack trace of an import
    # What numpy multiplies here is small, and a further thread takes 0.07 s of a core to start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # what an import makes stays
    from edgebox.commands.root import main as commands

    gc.freeze()
    gc.enable()
    if sys.argv[1:2] != ["serve"]:
        signal.signal(signal.SIGINT, interrupts)
    try:
        commands()
    finally:
        # All memory goes with the process. To look for garbage in it took a tenth of a second.
        gc.freeze()


if __name__ == "__main__":
    main()
