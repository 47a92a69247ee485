"""Decides the contents of generated workloads: distributions of execution time, and arrivals.

The kinds are those of Orloj's evaluation (arXiv 2209.00159, section 5.2 and appendix A): k-modal,
unequal peaks, early exits, static, and in addition lognormal. The paper gives neither its constants
nor its trace, so the modes, c0, c1 and the bursts are edgebox's: compare orderings, not levels.

Pure: the generator of randomness is an argument.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edgebox.domain.errors import InvalidInputError
from edgebox.simulation.workload import Job, Model, Workload

BATCH_SIZES = (1, 2, 4, 8, 16)
C1 = 0.25
HISTORY_SAMPLES = 1000
"""The number of samples of all applications together."""

_MODES_MS = (10.0, 100.0)
_BURST_MEANS = 15
"""Time between two changes of the arrival rate, in mean execution times."""

_BURST_SHAPE = 8.0
"""Shape of the gamma distribution of rates: their standard deviation is about a third of their
mean."""


@dataclass(frozen=True, slots=True)
class Component:
    """One application: its share of the requests and the distribution of its execution times."""

    app: str
    share: float
    draw: Callable[[random.Random], float]


def _normal(mean_ms: float, std_ms: float) -> Callable[[random.Random], float]:
    return lambda rng: max(0.1 * mean_ms, rng.gauss(mean_ms, std_ms))


def _lognormal(median_ms: float, sigma: float) -> Callable[[random.Random], float]:
    return lambda rng: min(median_ms * rng.lognormvariate(0, sigma), 40 * median_ms)


def _exits(times_ms: Sequence[float], shares: Sequence[float]) -> Callable[[random.Random], float]:
    return lambda rng: rng.choices(times_ms, shares)[0] * rng.uniform(0.98, 1.02)


def _constant(time_ms: float) -> Callable[[random.Random], float]:
    return lambda rng: time_ms


def _modal(stds_ms: Sequence[float], shares: Sequence[float] | None = None) -> list[Component]:
    low, high = _MODES_MS
    count = len(stds_ms)
    centres = np.linspace(low, high, count) if count > 1 else [(low + high) / 2]
    shares = shares or [1 / count] * count
    return [
        Component(f"mode-{at + 1}", share, _normal(float(centre), std))
        for at, (centre, std, share) in enumerate(zip(centres, stds_ms, shares, strict=True))
    ]


def _kinds() -> dict[str, list[Component]]:
    kinds = {f"modal-{count}": _modal([2.0] * count) for count in range(1, 9)}
    kinds |= {
        "bimodal-narrow": _modal([1.0, 1.0]),
        "bimodal-wide": _modal([4.0, 4.0]),
        "bimodal-wide-narrow": _modal([4.0, 1.0]),
        "bimodal-narrow-wide": _modal([1.0, 4.0]),
        "mostly-short": _modal([2.0, 2.0], [0.8, 0.2]),
        "mostly-long": _modal([2.0, 2.0], [0.2, 0.8]),
        "rare-long": _modal([2.0, 2.0], [0.95, 0.05]),
        "lognormal": [Component("text", 1.0, _lognormal(40, 0.5))],
        "lognormal-2": [
            Component("chat", 0.6, _lognormal(20, 0.4)),
            Component("summary", 0.4, _lognormal(80, 0.3)),
        ],
        "early-exit": [Component("video", 1.0, _exits((12, 30, 60), (0.6, 0.25, 0.15)))],
        "early-exit-2": [
            Component("day", 0.6, _exits((10, 25, 60), (0.7, 0.25, 0.05))),
            Component("night", 0.4, _exits((10, 25, 60), (0.1, 0.3, 0.6))),
        ],
        "static": [Component("camera", 1.0, _constant(40.0))],
    }
    return kinds


KINDS: dict[str, list[Component]] = _kinds()


def make_workload(
    kind: str,
    *,
    load: float,
    slo_multiple: float,
    requests: int,
    rng: random.Random,
    c1: float = C1,
    workers: int = 1,
) -> Workload:
    """Generate a workload.

    Args:
        kind: one of `KINDS`.
        load: relative to the throughput of the workers with full batches of average requests,
            16 / (c0 + 16 * c1 * mean) per worker, with c0 = (1 - c1) * mean.
        slo_multiple: deadlines in multiples of the P99 of the execution times.
        requests: the number of requests.
        rng: the generator of randomness.
        c1: the part of a batch's time that grows with its size.
        workers: the number of parallel workers.

    Raises:
        InvalidInputError: there is no such kind.
    """
    if kind not in KINDS:
        raise InvalidInputError(f"there is no kind {kind!r} (there are: {', '.join(KINDS)})")
    return workload_of(
        KINDS[kind],
        load=load,
        slo_multiple=slo_multiple,
        requests=requests,
        rng=rng,
        c1=c1,
        workers=workers,
    )


def workload_of(
    components: Sequence[Component],
    *,
    load: float,
    slo_multiple: float,
    requests: int,
    rng: random.Random,
    c1: float = C1,
    workers: int = 1,
) -> Workload:
    """Generate a workload of these applications; otherwise as `make_workload`."""
    past = [_drawn(components, rng) for _ in range(HISTORY_SAMPLES)]
    times = np.array([exec_ms for _, exec_ms in past])
    mean_ms, slo_ms = float(times.mean()), slo_multiple * float(np.quantile(times, 0.99))
    c0_ms, largest = (1 - c1) * mean_ms, BATCH_SIZES[-1]
    rate_per_ms = load * workers * largest / (c0_ms + largest * c1 * mean_ms)
    model = Model(round(c0_ms, 6), c1, BATCH_SIZES, workers, slo_multiple)
    history: dict[str, list[float]] = {component.app: [] for component in components}
    for app, exec_ms in past:
        history[app].append(round(exec_ms, 6))
    jobs = []
    for number, at_ms in zip(range(requests), _arrivals(rate_per_ms, mean_ms, rng), strict=False):
        app, exec_ms = _drawn(components, rng)
        jobs.append(Job(number, round(at_ms, 6), app, round(exec_ms, 6), round(slo_ms, 6)))
    return Workload(model, {app: tuple(of) for app, of in history.items()}, tuple(jobs))


def _drawn(components: Sequence[Component], rng: random.Random) -> tuple[str, float]:
    component = rng.choices(components, [c.share for c in components])[0]
    return component.app, component.draw(rng)


def _arrivals(rate_per_ms: float, mean_ms: float, rng: random.Random) -> Iterator[float]:
    """Yield the instants of Poisson arrivals whose rate changes at times."""
    at_ms, until_ms, rate = 0.0, 0.0, rate_per_ms
    while True:
        gap_ms = rng.expovariate(rate)
        if at_ms + gap_ms >= until_ms:
            at_ms, until_ms = until_ms, until_ms + _BURST_MEANS * mean_ms
            rate = rate_per_ms * max(0.02, rng.gammavariate(_BURST_SHAPE, 1 / _BURST_SHAPE))
            continue
        at_ms += gap_ms
        yield at_ms
