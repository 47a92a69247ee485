"""Who writes never waits for who reads; what is thrown away is counted."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from edgebox.runtime.background_stream import BackgroundStream, stderr_in_background
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


def test_a_disk_that_was_full_costs_what_was_written_meanwhile(pipe: tuple[int, int]) -> None:
    read, write = pipe
    lost: list[int] = []
    told = threading.Event()

    def tell(count: int) -> None:
        lost.append(count)
        told.set()

    descriptor = os.open("/dev/full", os.O_WRONLY)
    stream = BackgroundStream(descriptor, tell)
    for _ in range(3):
        stream.write("there is no room for this\n")
    assert stream.drain(PATIENCE_S)
    os.dup2(write, descriptor)
    stream.write("there is room again\n")
    assert told.wait(PATIENCE_S)
    os.close(descriptor)
    assert lost == [3]
    assert os.read(read, 100) == b"there is room again\n"


def test_stderr_on_a_full_disk_is_no_error_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        with stderr_in_background(PATIENCE_S):
            click.echo("nobody reads this", err=True)
            assert sys.stderr is not full
        assert sys.stderr is full
