"""Owns when Python's cyclic garbage collector may look at everything: never beside live cameras.

A full collection stalls the event loop by tens of milliseconds. What is young is still collected as
it comes; full collections are asked for, by whoever knows that nobody waits.
"""

import gc

_NEVER = 1_000_000


def collect_on_request_only() -> None:
    """Take what lives now for long-lived, and do not look at all of it again unasked."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, _NEVER)
