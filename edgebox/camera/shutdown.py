"""Owns what Ctrl-C and SIGTERM mean: end in order; asked again a moment later, end at once."""

import asyncio
import signal
from collections.abc import Callable

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IMPATIENT_AFTER_S = 0.5
"""Tools such as `timeout` signal a process and its group: that is one request, not two."""


def on_end_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first signal; from half a second later, signals do what they always do."""
    loop = asyncio.get_running_loop()

    def let_go() -> None:
        for number in END_SIGNALS:
            loop.remove_signal_handler(number)

    def ask() -> None:
        stop()
        loop.call_later(_IMPATIENT_AFTER_S, let_go)

    for number in END_SIGNALS:
        loop.add_signal_handler(number, ask)
