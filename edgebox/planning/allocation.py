"""Owns what an option for each camera adds up to, and which constraint forbids a larger one. Pure.

An allocation has a *discipline*: how its executors are shared, and so which test says that
everybody is in time. `SharedAllocation` here mixes sizes and keeps a part of the time free;
`cycle_allocation` runs full batches in a cycle; `dedicated` gives every camera an executor;
`partition` divides executors into groups that each have a discipline of their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import PlanningParameters

BEST_EFFORT_SERVICE = 0.8
"""What a frame of a best-effort camera counts for, in frames that are planned to be in time."""

_ROUNDING = 1e-12
"""Share of the executors' time. Sums in another order differ by less, so a load of exactly the
limit always fits."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The constraint that forbids an option: executors' time, or somebody's deadline."""

    missing_share: float = 0.0
    """Share of the executors' time that is missing."""
    who: int | None = None
    """The camera whose frames would wait too long, by its number."""
    over_ns: int = 0
    """By how much they would."""


class Allocation(ABC):
    """An option for each camera, and why none is larger."""

    def __init__(self, cameras: Sequence[CameraOptions], at: Sequence[int]) -> None:
        self.cameras = cameras
        """What each could be given."""
        self.at = list(at)
        """What each has, as a number among its options."""

    @property
    def chosen(self) -> list[Option]:
        """What each camera has."""
        return [c.options[at] for c, at in zip(self.cameras, self.at, strict=True)]

    def chosen_of(self, camera: int) -> Option:
        """Return what one camera has."""
        return self.cameras[camera].options[self.at[camera]]

    @property
    def accuracy_rate(self) -> float:
        """Accuracy times rate, over all cameras (Jellyfish, Eq. 2)."""
        return sum(option.accuracy * option.rate_hz for option in self.chosen)

    @property
    def served(self) -> int:
        """How many cameras are more than best effort."""
        return sum(c.served for c in self.cameras)

    @property
    def service(self) -> float:
        """The share of the rate asked for that each camera gets, summed over all cameras."""
        return sum(
            service_of(c, option) for c, option in zip(self.cameras, self.chosen, strict=True)
        )

    def value(self, stay_bonus: float) -> float:
        """Return what is maximised: accuracy times rate, more where a camera keeps its variant."""
        return sum(
            option_value(c, option, stay_bonus)
            for c, option in zip(self.cameras, self.chosen, strict=True)
        )

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
    def needed_ns(self, camera: int) -> int:
        """Return what a served camera's frames need of its compute budget at most."""

    @abstractmethod
    def violation(
        self, camera: int, option: Option, parameters: PlanningParameters
    ) -> Violation | None:
        """Return the constraint that forbids to give a camera an option; None: none does."""


def service_of(camera: CameraOptions, option: Option) -> float:
    """Return the share of the rate asked for that an option gives a camera."""
    given = option.rate_hz / camera.snapshot.camera.rate_hz
    return given if camera.served else BEST_EFFORT_SERVICE * given


def option_value(camera: CameraOptions, option: Option, stay_bonus: float) -> float:
    """Return accuracy times rate of an option, `stay_bonus` times that of the variant in force."""
    current = camera.snapshot.current
    stays = current is not None and current.variant == option.variant.name
    return option.accuracy * option.rate_hz * (stay_bonus if stays else 1.0)


def window_ns(cameras: Iterable[CameraOptions]) -> int:
    """Return the time in which batches gather: half of the tightest budget at the smallest size."""
    tightest = min((c.options[0].budget.compute_ns for c in cameras if c.served), default=2)
    return max(1, tightest // 2)


class SharedAllocation(Allocation):
    """Any sizes side by side. Every camera can wait for the longest batch of any other one.

    Only batches that gather in `window_ns` are credited, and a part of the time is kept free.
    """

    def __init__(
        self,
        cameras: Sequence[CameraOptions],
        at: Sequence[int],
        timing: Mapping[VariantName, BatchTimes],
    ) -> None:
        super().__init__(cameras, at)
        self._timing = timing
        self.window_ns = window_ns(cameras)
        """The time in which batches gather."""
        chosen = self.chosen
        self._rates: dict[VariantName, float] = {}
        for option in chosen:
            name = option.variant.name
            self._rates[name] = self._rates.get(name, 0.0) + option.rate_hz
        self._shares = {name: self._share(name, rate) for name, rate in self._rates.items()}
        self.longest_ns = max(option.single_ns for option in chosen)
        """The longest batch that anyone may have to wait for."""
        self.slack_ns = min(
            (option.slack_ns for c, option in zip(cameras, chosen, strict=True) if c.served),
            default=self.longest_ns,
        )
        """The longest batch that every served camera can wait for."""
        self._raises = any(c.is_upgrade(o) for c, o in zip(cameras, chosen, strict=True))

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time."""
        return sum(self._shares.values())

    def needed_ns(self, camera: int) -> int:
        """Return the longest batch of anybody, and its own."""
        return self.longest_ns + self.chosen_of(camera).single_ns

    def blocks(self, option: Option) -> bool:
        """Say whether a camera that rises to this option would make anyone wait too long."""
        return max(self.longest_ns, option.single_ns) > min(self.slack_ns, option.slack_ns)

    def violation(
        self, camera: int, option: Option, parameters: PlanningParameters
    ) -> Violation | None:
        """Return the constraint that forbids a camera to rise to an option; None: none does."""
        if self.blocks(option):
            slack_ns = min(self.slack_ns, option.slack_ns)
            over_ns = max(self.longest_ns, option.single_ns) - slack_ns
            who = camera
            if self.slack_ns <= option.slack_ns and any(c.served for c in self.cameras):
                who = self._tightest
            return Violation(who=who, over_ns=over_ns)
        limit = parameters.utilisation_max
        if self._raises or self.cameras[camera].is_upgrade(option):
            limit = parameters.utilisation_upgrade
        missing = sum((self._shares | self._changed(camera, option)).values()) - limit
        return Violation(missing_share=missing) if missing > _ROUNDING else None

    def rise(self, camera: int, to: int) -> None:
        """Give a camera a larger one of its options."""
        option, old = self.cameras[camera].options[to], self.chosen_of(camera)
        self._shares.update(self._changed(camera, option))
        self._rates[old.variant.name] -= old.rate_hz
        self._rates[option.variant.name] = (
            self._rates.get(option.variant.name, 0.0) + option.rate_hz
        )
        self.at[camera] = to
        self._raises = self._raises or self.cameras[camera].is_upgrade(option)
        self.longest_ns = max(self.longest_ns, option.single_ns)
        if self.cameras[camera].served:
            self.slack_ns = min(self.slack_ns, option.slack_ns)

    @property
    def _tightest(self) -> int:
        """The camera with the least slack."""
        served = (at for at, c in enumerate(self.cameras) if c.served)
        return min(served, key=lambda at: self.chosen_of(at).slack_ns)

    def _changed(self, camera: int, option: Option) -> dict[VariantName, float]:
        """Return the shares of variants that change if a camera has an option."""
        has, name = self.chosen_of(camera), option.variant.name
        rates = {has.variant.name: self._rates[has.variant.name] - has.rate_hz}
        rates[name] = rates.get(name, self._rates.get(name, 0.0)) + option.rate_hz
        return {of: self._share(of, rate_hz) for of, rate_hz in rates.items()}

    def _share(self, variant: VariantName, rate_hz: float) -> float:
        # What is left of a sum of floats after all its terms are gone is not a rate.
        if rate_hz < 1e-9:
            return 0.0
        return self._timing[variant].share(rate_hz, self.window_ns)
