"""An executor that hangs, raises, is slow, and opens and loads badly, as its faults say."""

import random
from collections.abc import Collection
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.actions import Infer, Sample
from edgebox.simulation.faults.fault_kinds import MS, SECOND, FaultKind, Faults
from edgebox.simulation.faults.small_box import MEDIAN_MS, name, profiles


@dataclass(frozen=True, slots=True)
class Ending:
    """When work comes back, and how."""

    after_ns: int
    """Until the core is told."""
    took_ns: int
    well: bool
    hangs: bool = False
    """It comes back as soon as nothing is broken any more."""
    gone: bool = False
    """What ran it has ended: it fails, and nothing else runs there."""


class FaultyExecutor:
    """What happens to the orders of one executor."""

    def __init__(self, executor: ExecutorId, rng: random.Random, faults: Faults) -> None:
        """Start without a fault."""
        self.id = executor
        self.faults = faults
        self.generation = 0
        """Counts openings; loads of an earlier one have no executor any more."""
        self.bad_variant: VariantName | None = None
        self.raises_once = self.ends_once = False
        self._rng = rng
        self._slowdown = 1.0
        self._profiles = {each.variant: each for each in profiles(executor, 31)}

    def begin(self, kind: FaultKind) -> None:
        """Draw what a fault that begins is like."""
        rng = self.faults.rng(kind)
        if kind is FaultKind.RAISE:
            self.raises_once = True
        elif kind is FaultKind.GONE:
            self.ends_once = True
        elif kind is FaultKind.SLOW:
            self._slowdown = rng.choice((1.5, 3.0, 12.0, 100.0))
        elif kind is FaultKind.VARIANT:
            self.bad_variant = name(rng.choice(list(MEDIAN_MS)))

    def run(self, order: Infer | Sample, now_ns: int) -> Ending:
        """Return how a batch ends that starts now."""
        rows = self._profiles[order.variant].quantiles_ns
        took_ns = self._rng.choice(rows[order.batch_size])
        if self._active(FaultKind.SLOW, now_ns):
            took_ns = round(took_ns * self._slowdown)
        after_ns = took_ns + 300_000
        if self._active(FaultKind.HANG, now_ns):
            return self._hanging(FaultKind.HANG, took_ns, now_ns)
        if self._active(FaultKind.VARIANT, now_ns) and order.variant == self.bad_variant:
            if self.faults.rng(FaultKind.VARIANT).random() < 0.5:
                return self._hanging(FaultKind.VARIANT, took_ns, now_ns)
            return Ending(after_ns, took_ns, False)
        if self.ends_once and not self.faults.healed:
            self.ends_once = False
            return Ending(after_ns, took_ns, False, gone=True)
        if self.raises_once and not self.faults.healed:
            self.raises_once = False
            return Ending(after_ns, took_ns, False)
        return Ending(after_ns, took_ns, not self._active(FaultKind.FAILING, now_ns))

    def _hanging(self, kind: FaultKind, took_ns: int, now_ns: int) -> Ending:
        rng = self.faults.rng(kind)
        after_ns = rng.choice(
            (2 * took_ns, 3 * SECOND, self.faults.until_ns(kind, self.id) - now_ns, 3600 * SECOND)
        )
        return Ending(max(1, after_ns), after_ns, rng.random() < 0.5, hangs=True)

    def open(self, now_ns: int) -> Ending:
        """Return how opening it again ends."""
        took_ns = self._rng.randint(100, 2000) * MS
        if not self._active(FaultKind.OPENING, now_ns):
            return Ending(took_ns, took_ns, True)
        rng = self.faults.rng(FaultKind.OPENING)
        if rng.random() < 0.3:
            after_ns = rng.choice((61, 700)) * SECOND
            return Ending(after_ns, after_ns, rng.random() < 0.5, hangs=True)
        return Ending(took_ns, took_ns, rng.random() < 0.3)

    def load(self, now_ns: int) -> Ending:
        """Return how loading weights ends."""
        took_ns = self._rng.randint(20, 900) * MS
        if not self._active(FaultKind.MEMORY, now_ns):
            return Ending(took_ns, took_ns, True)
        rng = self.faults.rng(FaultKind.MEMORY)
        if rng.random() < 0.3:
            after_ns = rng.choice((61, 700)) * SECOND
            return Ending(after_ns, after_ns, rng.random() < 0.5, hangs=True)
        return Ending(took_ns, took_ns, rng.random() < 0.5)

    def profiles_when_opened(self, now_ns: int) -> tuple[LatencyProfile, ...]:
        """Return what it can run once it is open: not always everything."""
        mask = 31
        if self._active(FaultKind.OPENING, now_ns):
            mask = self.faults.rng(FaultKind.OPENING).choice((31, 31, 1, 6, 30))
        return profiles(self.id, mask)

    def _active(self, kind: FaultKind, now_ns: int) -> bool:
        return self.faults.active(kind, self.id, now_ns)


def known(of: Collection[LatencyProfile]) -> list[VariantName]:
    """Return the variants of profiles."""
    return [profile.variant for profile in of]
