"""Owns what a level for each camera adds up to: executors' time, longest batch, least slack. Pure.

Two things couple the cameras: a frame may have to wait for the longest batch of any camera, and
all share the executors' time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgebox.domain.models import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.planning.candidates import Candidates, Level
from edgebox.planning.capacity import Timing
from edgebox.planning.parameters import PlanningParameters


@dataclass(frozen=True, slots=True)
class Refusal:
    """What forbids a camera to rise: time that is missing, or somebody who would wait too long."""

    missing_share: float = 0.0
    """Of the executors' time."""
    who: int | None = None
    """The camera whose frames would wait too long, by its number."""
    over_ns: int = 0
    """By how much they would."""


class Chosen(ABC):
    """A level for each camera, and why none is higher."""

    def __init__(self, cameras: Sequence[Candidates], at: Sequence[int]) -> None:
        self.cameras = cameras
        """What each could be given."""
        self.at = list(at)
        """What each has, as a number among its levels."""

    @property
    def levels(self) -> list[Level]:
        """What each camera has."""
        return [c.levels[at] for c, at in zip(self.cameras, self.at, strict=True)]

    @property
    def accuracy_rate(self) -> float:
        """What is maximised: accuracy times rate, over all cameras (Jellyfish, Eq. 2)."""
        return sum(level.variant.accuracy * level.rate_hz for level in self.levels)

    @property
    def served(self) -> int:
        """How many cameras are more than best effort."""
        return sum(c.served for c in self.cameras)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Executors that work apart; none do, all serve everybody."""
        return ()

    def sharing(self, camera: int) -> tuple[int, tuple[ExecutorId, ...] | None]:
        """Return how many cameras, it among them, share which executors; None: all there are."""
        return len(self.cameras), None

    @property
    @abstractmethod
    def utilisation(self) -> float:
        """Planned share of the executors' time."""

    @abstractmethod
    def refusal(self, camera: int, level: Level, parameters: PlanningParameters) -> Refusal | None:
        """Say what forbids a camera to rise to this level; None: nothing does."""


class Selection(Chosen):
    """Levels of any sizes, within a part of the time, and what all can wait for."""

    def __init__(
        self,
        cameras: Sequence[Candidates],
        at: Sequence[int],
        timing: Mapping[VariantName, Timing],
        window_ns: int,
    ) -> None:
        super().__init__(cameras, at)
        self._timing = timing
        self.window_ns = window_ns
        """The time in which batches gather."""
        self._rates: dict[VariantName, float] = {}
        for level in self.levels:
            name = level.variant.name
            self._rates[name] = self._rates.get(name, 0.0) + level.rate_hz
        self._shares = {name: self._share(name, rate) for name, rate in self._rates.items()}
        self.blocker_ns = max(level.single_ns for level in self.levels)
        """The longest batch that anyone may have to wait for."""
        self.slack_ns = min(
            (level.slack_ns for c, level in zip(cameras, self.levels, strict=True) if c.served),
            default=self.blocker_ns,
        )
        """The longest batch that every served camera can wait for."""

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time."""
        return sum(self._shares.values())

    def above(self, camera: int) -> Level | None:
        """Return the next level of a camera."""
        levels = self.cameras[camera].levels
        at = self.at[camera] + 1
        return levels[at] if at < len(levels) else None

    def utilisation_at(self, camera: int, level: Level) -> float:
        """Return the utilisation if one camera had another level."""
        changed = self._shares | self._changed(camera, level)
        return sum(changed.values())

    def blocks(self, level: Level) -> bool:
        """Say whether a camera that rises to this level would make anyone wait too long."""
        return max(self.blocker_ns, level.single_ns) > min(self.slack_ns, level.slack_ns)

    def refusal(self, camera: int, level: Level, parameters: PlanningParameters) -> Refusal | None:
        """Say what forbids a camera to rise to this level; None: nothing does."""
        if self.blocks(level):
            waits_ns = min(self.slack_ns, level.slack_ns)
            over_ns = max(self.blocker_ns, level.single_ns) - waits_ns
            who = camera
            if self.slack_ns <= level.slack_ns:
                levels = self.levels
                served = (at for at, c in enumerate(self.cameras) if c.served)
                who = min(served, key=lambda at: levels[at].slack_ns)
            return Refusal(who=who, over_ns=over_ns)
        has_px = self.cameras[camera].has_px
        above = has_px is not None and level.variant.pixels > has_px
        limit = parameters.utilisation_upgrade if above else parameters.utilisation_max
        missing = self.utilisation_at(camera, level) - limit
        return Refusal(missing_share=missing) if missing > 0 else None

    def move(self, camera: int, to: int) -> None:
        """Give a camera another of its levels."""
        level = self.cameras[camera].levels[to]
        old = self.cameras[camera].levels[self.at[camera]].variant.name
        self._shares.update(self._changed(camera, level))
        self._rates[old] -= level.rate_hz
        self._rates[level.variant.name] = self._rates.get(level.variant.name, 0.0) + level.rate_hz
        self.at[camera] = to
        self.blocker_ns = max(self.blocker_ns, level.single_ns)
        if self.cameras[camera].served:
            self.slack_ns = min(self.slack_ns, level.slack_ns)

    def _changed(self, camera: int, level: Level) -> dict[VariantName, float]:
        old, new = self.cameras[camera].levels[self.at[camera]].variant.name, level.variant.name
        if old == new:
            return {}
        return {
            old: self._share(old, self._rates[old] - level.rate_hz),
            new: self._share(new, self._rates.get(new, 0.0) + level.rate_hz),
        }

    def _share(self, variant: VariantName, rate_hz: float) -> float:
        # What is left of a sum of floats after all its terms are gone is not a rate.
        if rate_hz < 1e-9:
            return 0.0
        return self._timing[variant].share(rate_hz, self.window_ns)
