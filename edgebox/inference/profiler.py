"""Decides how to measure an executor: which batch sizes pay, and how long they take.

Blocks for its budget; run it off the event loop. It measures what the scheduler uses: the time
for which a batch occupies the executor (`BatchResult.took_ns`), not the model alone.
"""

import random
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median

from edgebox.domain.model_family import LatencyProfile, Variant, VariantName, monotone, quantiles_of
from edgebox.inference.executor import Executor, come_back
from edgebox.inference.sessions import CPU
from edgebox.inference.tensors import Canvas

QUICK_S = 10.0
"""Enough to start with on two CPU cores; a longer budget only adds rounds."""

_EXPLORING_RUNS = 3
_ROUNDS_MIN = 5
_ROUNDS_MAX = 1000
_HICCUP = 3.0
"""Times the median above which a sample is the machine's doing, not the model's."""
_HICCUPS_SHARE = 0.05

Progress = Callable[[float], None]
Pictures = Callable[[Variant], Sequence[Canvas]]
"""Different pictures as a variant takes them: what cameras may see, not noise."""


@dataclass(frozen=True, slots=True)
class ProfilingLimits:
    """When to stop measuring, and when larger batches stop being worth it."""

    budget_s: float = QUICK_S
    batch_ns_max: int = 300_000_000
    """The search ends with a batch that takes longer: no deadline allows more."""
    gain_min: float = 0.03
    """On a CPU a larger batch must save this share of the time per picture."""


@dataclass(frozen=True, slots=True)
class _Point:
    """One thing to measure."""

    variant: Variant
    batch_size: int
    canvases: Iterator[Canvas]
    """Without end: one picture after the other."""


def profile(
    executor: Executor,
    variants: Sequence[Variant],
    batch_sizes: Sequence[int],
    limits: ProfilingLimits | None = None,
    progress: Progress = lambda share: None,
    *,
    pictures: Pictures,
    networks: Mapping[VariantName, Hashable] | None = None,
) -> list[LatencyProfile]:
    """Measure the variants of one family on one executor.

    First every variant's batch grows until that no longer pays (these runs also warm what they
    measure and are discarded); then rounds over everything, each in another order so that a noisy
    second does not fall on one variant alone, until the budget is spent. Each run takes the next
    picture, so that the distribution covers different pictures.

    Args:
        executor: idle; nothing else may use it meanwhile.
        variants: of one family.
        batch_sizes: candidates, rising.
        limits: when to stop.
        progress: called with the share done, 0 to 1.
        pictures: what is run.
        networks: what each variant runs on; None: all on the same. A larger input is certain to
            take longer only on the same network.

    Returns:
        One profile per variant in rising order of pixels, made monotone over batch and, within a
        network, over pixels.

    Raises:
        ModelError: a batch failed, or the executor was closed meanwhile.
    """
    limits = limits or ProfilingLimits()
    started_s = time.monotonic()
    points: list[_Point] = []
    candidates = tuple(batch_sizes)
    for done, variant in enumerate(sorted(variants, key=lambda v: v.pixels)):
        progress(0.3 * done / len(variants))
        worthwhile = _worthwhile(executor, variant, candidates, limits, pictures(variant))
        # Per picture, larger inputs gain less from batching: what did not pay here will not there.
        candidates = candidates[: len(worthwhile)]
        points += worthwhile
    samples_ns = _in_rounds(executor, points, limits, started_s, progress)
    rows: dict[VariantName, dict[int, tuple[int, ...]]] = {variant.name: {} for variant in variants}
    for point, times_ns in zip(points, samples_ns, strict=True):
        kept = without_hiccups(times_ns)
        rows[point.variant.name][point.batch_size] = quantiles_of(kept)
    made = {name: LatencyProfile(name, executor.id, row) for name, row in rows.items()}
    pixels = {variant.name: variant.pixels for variant in variants}
    alike: dict[Hashable, list[LatencyProfile]] = {}
    for name, of_variant in made.items():
        alike.setdefault(None if networks is None else networks[name], []).append(of_variant)
    lifted = [each for group in alike.values() for each in monotone(group, pixels)]
    return sorted(lifted, key=lambda each: pixels[each.variant])


def _in_rounds(
    executor: Executor,
    points: Sequence[_Point],
    limits: ProfilingLimits,
    started_s: float,
    progress: Progress,
) -> list[list[int]]:
    """Return what each point takes, in ns, until the budget that counts from the start is spent."""
    samples_ns: list[list[int]] = [[] for _ in points]
    shuffled = random.Random(0)
    for done in range(_ROUNDS_MAX):
        spent = (time.monotonic() - started_s) / limits.budget_s
        if done >= _ROUNDS_MIN and spent >= 1.0:
            break
        # Where batches are slow, the rounds that there must be take longer than the budget.
        share = max(min(spent, done / _ROUNDS_MIN), done / _ROUNDS_MAX)
        progress(0.3 + 0.7 * min(1.0, share))
        for at in shuffled.sample(range(len(points)), len(points)):
            samples_ns[at].append(_run_ns(executor, points[at]))
    progress(1.0)
    return samples_ns


def without_hiccups(samples_ns: Sequence[int]) -> list[int]:
    """Leave out the few samples far above the median, at most a twentieth (but always one).

    A pause of the whole machine that falls on one variant would otherwise be its P99, and through
    `monotone` that of every larger one. Real slowness is more frequent than that, and stays.
    """
    ordered = sorted(samples_ns)
    bound = _HICCUP * median(ordered)
    allowed = max(1, int(_HICCUPS_SHARE * len(ordered)))
    while allowed and ordered[-1] > bound:
        ordered.pop()
        allowed -= 1
    return ordered


def _worthwhile(
    executor: Executor,
    variant: Variant,
    batch_sizes: Sequence[int],
    limits: ProfilingLimits,
    pictures: Sequence[Canvas],
) -> list[_Point]:
    """Return the batch sizes of a variant that are worth having; the first one always is."""
    points: list[_Point] = []
    each_before = float("inf")
    for size in batch_sizes:
        point = _Point(variant, size, cycle(pictures))
        # All of one picture: what is asked is what the size costs, not what is seen.
        same = [pictures[0]] * size
        times_ns = [_took_ns(executor, point, same) for _ in range(1 + _EXPLORING_RUNS)][1:]
        each = min(times_ns) / size
        # On a GPU the next size may gain again, so only a CPU stops here, a Ray worker's as well.
        if points and CPU in executor.provider and each > (1.0 - limits.gain_min) * each_before:
            break
        points.append(point)
        if min(times_ns) > limits.batch_ns_max:
            break
        each_before = each
    return points


def _run_ns(executor: Executor, point: _Point) -> int:
    return _took_ns(executor, point, list(islice(point.canvases, point.batch_size)))


def _took_ns(executor: Executor, point: _Point, canvases: Sequence[Canvas]) -> int:
    name = point.variant.name
    future = executor.submit(name, canvases, point.batch_size)
    return come_back(future, executor, f"a batch of {name}").took_ns
