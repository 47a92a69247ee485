"""Who writes never waits for who reads; what is thrown away is counted."""

import os
import threading
from collections.abc import Iterator

import pytest

from edgebox.runtime.background_stream import BackgroundStream
from tests.conftest import PATIENCE_S
from tests.pipes import fill


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give both ends of a pipe; the reading end may be closed meanwhile."""
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        try:
            os.close(end)
        except OSError:
            assert end == read


def test_texts_arrive_whole_and_in_order(pipe: tuple[int, int]) -> None:
    read, write = pipe
    stream = BackgroundStream(write, lambda count: None)
    texts = [f"{number} ä\ud800\n" for number in range(1000)]
    for text in texts:
        stream.write(text)
    assert stream.drain(PATIENCE_S)
    with os.fdopen(os.dup(read), "rb") as reader:
        os.set_blocking(reader.fileno(), False)
        assert reader.read().decode() == "".join(f"{n} ä\\ud800\n" for n in range(1000))


def test_what_nobody_reads_is_thrown_away_and_counted(pipe: tuple[int, int]) -> None:
    read, write = pipe
    lost: list[int] = []
    told = threading.Event()

    def tell(count: int) -> None:
        lost.append(count)
        told.set()

    filled = fill(write)
    stream = BackgroundStream(write, tell, bytes_max=1000)
    for _ in range(30):
        stream.write("y" * 100)
    assert not stream.drain(0.01)
    while filled:
        filled -= len(os.read(read, filled))
    assert told.wait(PATIENCE_S)
    assert stream.drain(PATIENCE_S)
    assert lost == [20]
    assert os.read(read, 5000) == b"y" * 1000


def test_a_reader_that_has_gone_is_no_error(pipe: tuple[int, int]) -> None:
    read, write = pipe
    stream = BackgroundStream(write, lambda count: None)
    os.close(read)
    stream.write("nobody reads this")
    assert stream.drain(PATIENCE_S)
    stream.write("nor this")
    assert stream.drain(PATIENCE_S)
