"""Measures the event loop's lag: how late a short timer fires."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import numpy as np

PERIOD_S = 0.025
"""Long enough that an idle box sleeps, and short enough to see the stalls that matter to links
(`benchmarks.busy_sites`)."""
_SAMPLES = round(60 / PERIOD_S)
"""One minute of samples."""


class LoopLag:
    """A probe that runs on the loop it measures; one timer every 25 ms."""

    def __init__(self, on_stall: Callable[[int, int], None] | None = None) -> None:
        """Start with nothing measured.

        Args:
            on_stall: called with the start and the end of each interval in which the loop did
                nothing that was due, in ns of the monotonic clock.
        """
        self._on_stall = on_stall
        self._lags_ms: deque[float] = deque(maxlen=_SAMPLES)
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0

    def start(self) -> None:
        """Begin measuring on the running loop."""
        self._arm(asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due_s = time.monotonic() + PERIOD_S
        self._timer = loop.call_later(PERIOD_S, self._fired, loop)

    def _fired(self, loop: asyncio.AbstractEventLoop) -> None:
        # uvloop's timers may fire early: that is no lag.
        now_s = time.monotonic()
        self._lags_ms.append(max(0.0, (now_s - self._due_s) * 1e3))
        if now_s > self._due_s and self._on_stall is not None:
            self._on_stall(round(self._due_s * 1e9), round(now_s * 1e9))
        self._arm(loop)

    def quantiles_ms(self) -> dict[str, float] | None:
        """Return p50, p99, p999 and max over the last minute; None before the first sample."""
        if not self._lags_ms:
            return None
        p50, p99, p999, most = np.quantile(np.array(self._lags_ms), (0.5, 0.99, 0.999, 1.0))
        return {"p50": float(p50), "p99": float(p99), "p999": float(p999), "max": float(most)}
