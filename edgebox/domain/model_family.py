"""Model families, their variants and the execution times of these. Pure data."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import mul
from typing import Literal, NewType

ExecutorId = NewType("ExecutorId", str)
"""A device stream that runs one batch at a time: "cpu/0", "cuda:0/1"."""

VariantName = NewType("VariantName", str)
"""Unique on one box: "street-256"."""

FamilyName = NewType("FamilyName", str)

WeightsId = NewType("WeightsId", str)
"""One model file of a family, as an executor holds it: "street/street.onnx"."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One input size of one model family; a request runs on a variant."""

    name: VariantName
    family: FamilyName
    width_px: int
    height_px: int
    accuracy: float
    """The value that the planner maximises, in [0, 1]: measured here, else the manifest's."""
    accuracy_by_side: tuple[tuple[float, float], ...] = ()
    """For a model that looks at crops: (side, accuracy) with rising sides. The side is the square
    root of the object's area, in px of the picture that the crop is cut from; empty: not known."""

    def accuracy_at(self, side_px: float) -> float:
        """Return the accuracy on an object of a side: linear between the known sides.

        Beyond the first and the last of them it is theirs; if none is known it is `accuracy`.
        """
        known = self.accuracy_by_side
        at = bisect_left(known, (side_px,))
        if not known:
            return self.accuracy
        if at == 0 or at == len(known):
            return known[min(at, len(known) - 1)][1]
        (left_px, low), (right_px, high) = known[at - 1], known[at]
        return low + (high - low) * (side_px - left_px) / (right_px - left_px)

    @property
    def pixels(self) -> int:
        """Input pixels of one picture."""
        return self.width_px * self.height_px

    @property
    def size_text(self) -> str:
        """Its input's size as it stands in sentences for people: "256 × 160 px"."""
        return f"{self.width_px} × {self.height_px} px"

    def covers(self, width_px: int, height_px: int) -> bool:
        """Say whether a picture of this size fits into the input without shrinking."""
        return width_px <= self.width_px and height_px <= self.height_px


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file as an executor holds it: in memory completely or not at all."""

    id: WeightsId
    family: FamilyName
    size_bytes: int
    """Device memory it needs, its largest batch included."""
    pixels: int
    """Input pixels of the largest variant that runs on it."""
    variants: tuple[VariantName, ...]
    """The variants that run on it; switching between them costs nothing."""


@dataclass(frozen=True, slots=True)
class AccuracyReport:
    """The measured accuracy of one variant, its source, and its consequences."""

    kind: Literal["mAP", "F1"]
    """mAP@0.5:0.95 against labels, or F1 at IoU 0.5 against the family's largest variant."""
    accuracy: float
    """In [0, 1]."""
    error: float
    """Standard error over the pictures."""
    source: str
    """Where the pictures came from: a data set, a video, a camera."""
    pictures: int
    measured_at_ms: int
    dominated: str = ""
    """Why the planner does not use the variant; empty: it does."""
    details: Mapping[str, float] = field(default_factory=dict)
    """Further figures: mAP50, mAP75, small, medium, large; precision and recall for F1."""

    def origin(self) -> dict[str, str | int | float]:
        """Return how it was measured, as in documents for programs."""
        return {
            "kind": self.kind,
            "standard_error": round(self.error, 4),
            "source": self.source,
            "pictures": self.pictures,
            "measured_at_ms": self.measured_at_ms,
        }


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
"""The points of a distribution that a profile keeps."""

_MEAN_WEIGHTS = tuple(
    (after - before) / 2
    for before, after in zip(
        (QUANTILES[0], *QUANTILES[:-1]), (*QUANTILES[1:], QUANTILES[-1]), strict=True
    )
)
"""What each of these counts in the mean, by the line through them."""


def device_of(executor: ExecutorId) -> str:
    """Return the device of an executor: its id without the number, `cuda:0` of `cuda:0/1`."""
    return executor.rpartition("/")[0] or executor


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """The execution-time distribution of one variant on one executor, by batch size.

    `quantiles_ns[batch_size]` holds one time per entry of `QUANTILES`, rising. Batch sizes that
    were not measured run padded to the next larger measured one, so they take as long as it.
    """

    variant: VariantName
    executor: ExecutorId
    quantiles_ns: Mapping[int, tuple[int, ...]]
    """Measured while the box's other executors are idle."""
    interference: float = 0.0
    """k: while n others run, a batch takes (1 + n k) times its time. 0: not measured."""
    interference_factors: tuple[float, ...] = ()
    """As measured: by what factor a batch takes longer while 1, 2, ... others run, each at least 1.
    Empty: by `interference`, which also holds beyond the last of them."""
    core_factors: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    """By number of CPU threads and batch size: by what factor a batch takes longer with so many
    threads than with all, with which `quantiles_ns` was measured. Each at least 1; 1 if not listed.
    The greatest number of threads is all of them. Empty: batches have no choice of threads."""

    @property
    def has_interference(self) -> bool:
        """Whether it was measured what other running executors cost its batches."""
        return bool(self.interference_factors) or self.interference > 0

    @property
    def thread_counts(self) -> tuple[int, ...]:
        """Numbers of threads that a batch may have, rising; empty: there is no choice."""
        return tuple(sorted(self.core_factors))

    def core_factor(self, batch_size: int, threads: int) -> float:
        """Return the factor of a batch with this many threads; `threads` 0: all.

        Batches that were not measured run padded to the next larger measured size.
        """
        by_size = self.core_factors.get(threads)
        if not by_size:
            return 1.0
        return by_size[min((n for n in by_size if n >= batch_size), default=max(by_size))]

    def slowed(self, others: float) -> float:
        """Return the interference factor of this many other running executors.

        Between two measured numbers of others it is interpolated.
        """
        factors = self.interference_factors
        if not factors:
            return 1.0 + self.interference * others
        known = (1.0, *factors)
        left = min(int(others), len(factors))
        if left == len(factors):
            return known[-1] + self.interference * (others - left)
        return known[left] + (known[left + 1] - known[left]) * (others - left)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Measured batch sizes, rising."""
        return tuple(sorted(self.quantiles_ns))

    def scaled(self, factor: float) -> "LatencyProfile":
        """Return the profile of an executor on which everything takes `factor` times as long."""
        rows = {n: tuple(round(factor * ns) for ns in of) for n, of in self.quantiles_ns.items()}
        return replace(self, quantiles_ns=rows)

    def quantile_ns(self, batch_size: int, q: float) -> int:
        """Return the time a batch takes with probability `q`, interpolated between quantiles.

        Raises:
            ValueError: `batch_size` is below 1 or above the largest measured size, or `q`
                is outside [0, 1].
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"q must be in [0, 1], not {q}")
        sizes = self.batch_sizes
        at = bisect_left(sizes, batch_size)
        if batch_size < 1 or at == len(sizes):
            raise ValueError(f"batch size {batch_size} is not profiled (sizes: {sizes})")
        times = self.quantiles_ns[sizes[at]]
        right = bisect_left(QUANTILES, q)
        if QUANTILES[right] == q:
            return times[right]
        left = right - 1
        share = (q - QUANTILES[left]) / (QUANTILES[right] - QUANTILES[left])
        return round(times[left] + share * (times[right] - times[left]))

    def mean_ns(self, batch_size: int) -> float:
        """Return the mean time of a batch of a measured size, by the same line as the quantiles."""
        times = self.quantiles_ns[batch_size]
        # From the least on, so that equal times have exactly their own mean.
        more = (time_ns - times[0] for time_ns in times)
        above_ns: float = sum(map(mul, _MEAN_WEIGHTS, more))
        return times[0] + above_ns

    def in_batches_ns(self, count: int, q: float) -> int:
        """Return the summed quantiles of the fewest batches that hold this many requests."""
        full, rest = divmod(count, self.batch_sizes[-1])
        took_ns = full * self.quantile_ns(self.batch_sizes[-1], q)
        return took_ns + (self.quantile_ns(rest, q) if rest else 0)


def monotone(
    profiles: Sequence[LatencyProfile], pixels: Mapping[VariantName, int]
) -> list[LatencyProfile]:
    """Raise measured times so that they never fall as the batch or the input grows.

    Noise on a shared machine can make a larger batch look faster, and a planner that uses such
    times oscillates. Only profiles of one executor and one family belong in one call.

    Args:
        profiles: one per variant, all with the same batch sizes.
        pixels: input pixels of each variant.

    Returns:
        The profiles in rising order of pixels, each quantile the running maximum over size and
        batch.
    """
    lifted: list[LatencyProfile] = []
    smaller: Mapping[int, tuple[int, ...]] = {}
    for profile in sorted(profiles, key=lambda p: pixels[p.variant]):
        rows: dict[int, tuple[int, ...]] = {}
        floor = (0,) * len(QUANTILES)
        for size in profile.batch_sizes:
            below = smaller.get(size, floor)
            times = profile.quantiles_ns[size]
            floor = tuple(max(row) for row in zip(times, floor, below, strict=True))
            rows[size] = floor
        lifted.append(replace(profile, quantiles_ns=rows))
        smaller = rows
    return lifted


def quantiles_of(samples_ns: Sequence[int]) -> tuple[int, ...]:
    """Return the `QUANTILES` of some measured times by linear interpolation.

    Raises:
        ValueError: no samples.
    """
    if not samples_ns:
        raise ValueError("no samples")
    ordered = sorted(samples_ns)
    last = len(ordered) - 1
    out = []
    for q in QUANTILES:
        left = int(q * last)
        right = min(left + 1, last)
        share = q * last - left
        out.append(round(ordered[left] + share * (ordered[right] - ordered[left])))
    return tuple(out)


def up_to(variants: Sequence[Variant], largest: Variant | None) -> Sequence[Variant]:
    """Return the variants that are no larger than one; the smallest if all are.

    Args:
        variants: of a family, smallest first.
        largest: the limit; None: there is none.
    """
    if largest is None:
        return variants
    return [each for each in variants if each.pixels <= largest.pixels] or variants[:1]
