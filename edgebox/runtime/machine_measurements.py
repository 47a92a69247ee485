"""Measures what concerns the whole process: the event loop's lag and the machine's energy."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from edgebox.runtime.energy_meter import EnergyMeter
from edgebox.runtime.looplag import LoopLag

_PERIOD_S = 1.0
_WINDOW_S = 60


@dataclass(frozen=True, slots=True)
class Energy:
    """What a counter or sensor has measured since the start."""

    source: str
    """As the hardware names it, such as `package-0` or `VDD_IN`."""
    total_j: float
    power_w: float | None
    """The mean of the last minute; None: not known yet."""


class EnergySampler:
    """Reads an `EnergyMeter` once a second, in a thread of its own: reading a sensor blocks."""

    def __init__(self, meter: EnergyMeter, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Start with nothing measured."""
        self._meter = meter
        self._clock_ns = clock_ns
        self._readings: dict[str, deque[tuple[int, float]]] = {}
        """By source: when, and the energy since the start in J, of the last minute."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, if there is anything to read."""
        if self._meter.names:
            self._thread = threading.Thread(target=self._run, name="energy", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop within a reading."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def sample(self) -> None:
        """Read all sources once."""
        now_ns = self._clock_ns()
        read = self._meter.read(now_ns)
        with self._lock:
            for source, total_j in read.items():
                self._readings.setdefault(source, deque()).append((now_ns, total_j))
            for of in self._readings.values():
                # Of one that cannot be read any more the last reading stays, for its total.
                while len(of) > 1 and now_ns - of[0][0] > _WINDOW_S * 1_000_000_000:
                    of.popleft()

    @property
    def energy(self) -> list[Energy]:
        """What each source has measured; empty where nothing can be read."""
        with self._lock:
            return [_energy(source, readings) for source, readings in self._readings.items()]

    def _run(self) -> None:
        self.sample()
        while not self._stopped.wait(_PERIOD_S):
            self.sample()


def _energy(source: str, readings: deque[tuple[int, float]]) -> Energy:
    (first_ns, first_j), (last_ns, last_j) = readings[0], readings[-1]
    took_s = (last_ns - first_ns) / 1e9
    return Energy(source, last_j, (last_j - first_j) / took_s if took_s > 0 else None)


class MachineMeasurements:
    """The event loop's lag and the machine's energy."""

    def __init__(
        self,
        on_stall: Callable[[int, int], None] | None = None,
        meter: EnergyMeter | None = None,
    ) -> None:
        """Start with nothing measured.

        Args:
            on_stall: see `LoopLag`.
            meter: the machine's; None: what this machine has.
        """
        self.lag = LoopLag(on_stall)
        self._sampler = EnergySampler(meter or EnergyMeter())

    @property
    def energy(self) -> list[Energy]:
        """What each counter and sensor of the machine has measured; empty: there is none."""
        return self._sampler.energy

    def start(self) -> None:
        """Begin measuring on the running loop."""
        self.lag.start()
        self._sampler.start()

    def stop(self) -> None:
        """Stop measuring."""
        self.lag.stop()
        self._sampler.stop()
