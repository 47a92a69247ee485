"""Controls full collections of Python's cyclic garbage collector: none while cameras are live.

A full collection stalls the event loop by tens of milliseconds. Young objects are still
collected automatically; full collections are requested when nothing is waiting.
"""

import gc

_NEVER = 1_000_000


def collect_on_request_only() -> None:
    """Treat the present objects as long-lived, and disable automatic full collections."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, _NEVER)
