"""Handles Ctrl-C, SIGTERM and SIGHUP, which a terminal sends that is closed.

The first ends cleanly, a later one at once.
"""

import asyncio
import signal
from collections.abc import Callable

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IMPATIENT_AFTER_S = 0.5
"""Signals within this time count as one: tools such as `timeout` signal a process and its group."""


def end_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end this process: SIGHUP only if `nohup` does not have it ignored."""
    return tuple(
        number
        for number in END_SIGNALS
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    )


def on_end_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first signal; half a second later signals have their default effect."""
    loop, numbers = asyncio.get_running_loop(), end_signals()

    def let_go() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def ask() -> None:
        stop()
        loop.call_later(_IMPATIENT_AFTER_S, let_go)

    for number in numbers:
        loop.add_signal_handler(number, ask)
