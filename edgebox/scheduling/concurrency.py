"""Decides how many batches run at once on each device, from the measured interference.

Pure. With n batches at once, each takes `LatencyProfile.slowed(n - 1)` times its time, so a device
answers g(n) = n / slowed(n - 1) times as much as with one batch at a time. With interference
that grows by k for each other batch, g(n) = n / (1 + k (n - 1)): it stays at 1 for k = 1, and
reaches at most 1 / k. More batches at once make each of them longer, so deadlines pay for the gain.
The limit is the largest n up to which every further batch at once adds enough: `GAIN_MIN_ALIKE`
where all variants take about as long, and `GAIN_MIN` where they do not, because a short batch then
need not wait for a long one. In simulation that is the best number, or nearly, for every k from
0.15 to 1 (docs/explanation/scheduling.md has the figures).

Source: OctopInf (arXiv 2502.01277), which limits a GPU by the sum of its models' utilisation; ours
is limited by the measured throughput, because utilisation does not say what two models cost each
other. Executors of different devices are never limited.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName, device_of

GAIN_MIN = 0.05
"""What one more batch at once must add, in units of the throughput of one batch at a time."""
GAIN_MIN_ALIKE = 0.2
"""The same where all variants take about as long."""
ALIKE = 2.0
"""The greatest ratio of the times of two variants, for one picture, that take about as long.

`GAIN_MIN_ALIKE` for all would run two batches at once in place of three in `benchmarks.pipelines`
at k = 0.6 and load 1.4: .799 of the objects that can be answered, in place of .867
(`--concurrent-batches 2`).
"""


@dataclass(frozen=True, slots=True)
class DeviceConcurrency:
    """How many batches run at once on one device, and why."""

    device: str
    executors: tuple[ExecutorId, ...]
    """The executors that share the device."""
    gains: tuple[float, ...]
    """The throughput with 1, 2, ... batches at once, relative to one at a time."""
    limit: int
    """Maximum number of batches at once, at least 1 and at most the number of executors."""
    configured: bool = False
    """Whether the configuration sets the limit."""

    @property
    def share(self) -> float:
        """The mean share of the time in which each of the executors may run."""
        return self.limit / len(self.executors)

    @property
    def reason(self) -> str:
        """One clause for a person: why this many."""
        count = len(self.executors)
        if count == 1:
            return "it has one executor"
        if self.configured:
            return "scheduler.concurrent_batches says so"
        if self.limit == 1:
            return f"{count} at once would answer only {self.gains[-1]:.2f} times as much as one"
        found = f"{self.limit} at once answer {self.gains[self.limit - 1]:.2f} times as much as one"
        if self.limit < count:
            found += f", {count} would answer {self.gains[-1]:.2f} times as much"
        return found


def throughput_gains(profiles: Iterable[LatencyProfile], executors: int) -> tuple[float, ...]:
    """Return g(1) to g(executors), the mean over these profiles with a known interference."""
    known = [profile for profile in profiles if profile.has_interference]
    if not known:
        return tuple(map(float, range(1, executors + 1)))
    return tuple(n * fmean(1 / of.slowed(n - 1) for of in known) for n in range(1, executors + 1))


def gain_min(profiles: Iterable[LatencyProfile]) -> float:
    """Return what one more batch at once of these variants must add."""
    times_ns = [profile.quantile_ns(min(profile.batch_sizes), 0.5) for profile in profiles]
    alike = not times_ns or max(times_ns) < ALIKE * min(times_ns)
    return GAIN_MIN_ALIKE if alike else GAIN_MIN


def concurrent_batches(gains: Sequence[float], least: float = GAIN_MIN_ALIKE) -> int:
    """Return the number of batches at once up to which each further one is worthwhile.

    Args:
        gains: the throughput with 1, 2, ... batches at once; at least one entry.
        least: what each further one must add.
    """
    steps = enumerate(pairwise(gains), 1)
    return next((n for n, (gain, more) in steps if more - gain < least), len(gains))


def device_concurrency(
    known: Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]], configured: int = 0
) -> dict[str, DeviceConcurrency]:
    """Return the limit of each device.

    Args:
        known: the profiles of each executor's variants.
        configured: a limit for every device; 0: by the measured interference.
    """
    devices: dict[str, list[ExecutorId]] = {}
    for executor in known:
        devices.setdefault(device_of(executor), []).append(executor)
    found = {}
    for device, executors in devices.items():
        profiles = [profile for executor in executors for profile in known[executor].values()]
        gains = throughput_gains(profiles, len(executors))
        by_gain = concurrent_batches(gains, gain_min(profiles))
        limit = min(configured, len(executors)) or by_gain
        found[device] = DeviceConcurrency(device, tuple(executors), gains, limit, configured > 0)
    return found
