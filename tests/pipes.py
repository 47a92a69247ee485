"""Pipes that nobody reads."""

import contextlib
import os
from collections.abc import Iterator


def fill(write: int) -> int:
    """Write until a pipe takes no more; return how many bytes it holds."""
    os.set_blocking(write, False)
    filled = 0
    for chunk in (4096, 1):  # the second for the last bytes, which a large write leaves
        with contextlib.suppress(BlockingIOError):
            while True:
                filled += os.write(write, b"x" * chunk)
    os.set_blocking(write, True)
    return filled


@contextlib.contextmanager
def full_pipe() -> Iterator[tuple[int, int]]:
    """Give both ends of a pipe that takes no more."""
    read, write = os.pipe()
    fill(write)
    try:
        yield read, write
    finally:
        os.close(read)
        os.close(write)
