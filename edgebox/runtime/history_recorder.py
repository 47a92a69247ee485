"""Records the box's history: once a second it passes the latest figures to storage.

Runs on the event loop and only adds up; storage writes in its own threads.
"""

import asyncio
from collections.abc import Callable, Mapping

from edgebox.domain.requests import CameraId
from edgebox.runtime.rollup import Interval, Rollup
from edgebox.storage.history import History
from edgebox.storage.levels import MINUTE

_SECOND_MS = 1_000


class HistoryRecorder:
    """The recorder of a box, from start to stop."""

    def __init__(
        self,
        rollup: Rollup,
        history: History,
        *,
        links: Callable[[], Mapping[CameraId, float | None]],
        on_minute: Callable[[], None],
        wall_ms: Callable[[], int],
        clock_ns: Callable[[], int],
    ) -> None:
        """Begin now.

        Args:
            rollup: adds up the box's metrics.
            history: stores the periods.
            links: returns the estimated uplink bandwidths of the connected cameras, bit/s.
            on_minute: called after each minute's periods were passed to storage.
            wall_ms: the wall clock, Unix milliseconds; it may be set at any time.
            clock_ns: a monotonic clock.
        """
        self._rollup = rollup
        self._history = history
        self._links = links
        self._on_minute = on_minute
        self._wall_ms = wall_ms
        self._clock_ns = clock_ns
        self._began_ms = wall_ms()
        self._began_ns = clock_ns()
        self._uncounted_ns = 0

    async def run(self) -> None:
        """Record every second until cancelled."""
        while True:
            await asyncio.sleep((_SECOND_MS - self._wall_ms() % _SECOND_MS) / 1e3)
            self.tick()

    def tick(self) -> None:
        """Record the time since the last call.

        It belongs to the second in which it began, by the wall clock of that moment. So each frame
        is counted once, whether the timer was early or late and even if the clock was set. If a
        busy box missed a whole second, each frame belongs to the second in which it was counted.
        """
        now_ms, now_ns = self._wall_ms(), self._clock_ns()
        began_ms, began_ns = self._began_ms, self._began_ns
        elapsed_ms, self._uncounted_ns = divmod(
            now_ns - self._began_ns + self._uncounted_ns, 1_000_000
        )
        self._began_ms, self._began_ns = now_ms, now_ns
        stretch = Interval(began_ms, began_ns, elapsed_ms)
        for second, periods in self._rollup.take(stretch, self._links()).items():
            self._history.record_second(second, periods)
        finished = self._rollup.finished(now_ms // _SECOND_MS)
        if finished:
            self._history.record_minutes(finished, running=now_ms // MINUTE.step_ms)
            self._on_minute()

    def forget(self, camera: CameraId) -> None:
        """Record no more of what a camera has counted so far, but for the whole box."""
        self._rollup.forget(camera)

    def close(self) -> None:
        """Record the rest, including the minute that has not ended."""
        self.tick()
        self._history.record_minutes(self._rollup.rest())
