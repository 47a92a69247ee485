"""Handles Ctrl-C and SIGTERM: the first ends cleanly, a later one at once."""

import asyncio
import signal
from collections.abc import Callable

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IMPATIENT_AFTER_S = 0.5
"""Signals within this time count as one: tools such as `timeout` signal a process and its group."""


def on_end_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first signal; half a second later signals have their default effect."""
    loop = asyncio.get_running_loop()

    def let_go() -> None:
        for number in END_SIGNALS:
            loop.remove_signal_handler(number)

    def ask() -> None:
        stop()
        loop.call_later(_IMPATIENT_AFTER_S, let_go)

    for number in END_SIGNALS:
        loop.add_signal_handler(number, ask)
