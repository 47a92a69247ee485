"""What executors have in common whose batches run on another machine.

Their threads spend their time waiting for an answer. A thread that waits for one that does not come
is freed by ending the channel, so nothing of it stays behind.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.inference.executor import THREADS, FamilyExecutor, blank_canvas, come_back
from edgebox.inference.executor_thread import ExecutorThread
from edgebox.inference.family import Family

Clock = Callable[[], int]

FIRST_BATCH_S = 25.0
"""How long a first batch may take, and after how long no further one begins. Both together are
below the limit for opening a lost executor again: what reaches that is taken for a thread that
hangs in a driver, and is wedged."""


class Channel(Protocol):
    """A way to the other machine, used by one thread at a time."""

    def shut(self) -> None:
        """End what waits for an answer, from another thread; nothing is asked any more."""

    def close(self) -> None:
        """Let go of it."""


class RemoteExecutor(FamilyExecutor):
    """Runs batches elsewhere, one at a time."""

    note = ""
    cpu_threads = 0
    shares_machine = False

    def __init__(
        self, executor_id: ExecutorId, channel: Channel, clock_ns: Clock = time.monotonic_ns
    ) -> None:
        """Hold nothing yet; `_serve` starts the thread."""
        self.id = executor_id
        self.failed: Mapping[FamilyName, ModelError] = {}
        """Families that cannot run there, and why."""
        self._channel = channel
        self._clock_ns = clock_ns

    def _serve(self, held: Sequence[Family], failed: Mapping[FamilyName, ModelError]) -> None:
        """Start the thread, with the families that can run there."""
        self.failed = failed
        for family in held:
            self._hold(family)
        self._worker = ExecutorThread(f"{THREADS}{self.id}", self._run, on_end=self._channel.close)

    def warm_each(self, runs: Sequence[tuple[VariantName, int]]) -> None:
        """Run these once, as many as there is time for: the first shows that batches are answered.

        Blocks.

        Raises:
            ModelError: one failed.
        """
        until_s = time.monotonic() + FIRST_BATCH_S
        for number, (name, size) in enumerate(runs):
            if number and time.monotonic() >= until_s:
                break
            first = self.submit(name, [blank_canvas(self._family(name).variant(name))] * size, size)
            come_back(first, self, f"a first batch of {name}", FIRST_BATCH_S)

    def load(self, path: Path, runs: Sequence[tuple[VariantName, int]] = ()) -> None:
        """Do nothing: what is in memory there is not this box's to decide."""

    def unload(self, path: Path) -> None:
        """Do nothing: what is in memory there is not this box's to decide."""

    def is_loaded(self, variant: VariantName) -> bool:
        """Return whether a batch of a variant can run."""
        return variant in self._families

    def memory_used_bytes(self) -> int | None:
        """Return None: it is not this machine's."""
        return None

    def abandon(self) -> None:
        """Take no more batches, fail those that wait, and end the channel."""
        self._worker.end()
        self._channel.shut()
