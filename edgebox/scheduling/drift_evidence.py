"""Decides what batches of a variant say of its executor's speed, beside those of other variants.

Pure. One variant alone does not say it where each runs an application of its own: how long that is
looks like a factor on the variant's profile. An executor is slow with all applications, so others
that do not agree with a factor prove that it is none. What was known of an application before
tells more than what was not.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import log2

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.attribution import (
    BINS_PER_OCTAVE,
    TOLERANCE,
    Attribution,
    ObservedBatch,
    VariantBatches,
    attribute,
    attribute_together,
)
from edgebox.scheduling.calibration import SlowPeriod
from edgebox.scheduling.drift import FAST, MEANWHILE_MIN, SLOW, WINDOW, DriftDetector, Drifted
from edgebox.scheduling.learning import Learning, Reference


@dataclass(slots=True)
class Watched:
    """The drift detection of one variant on one executor."""

    watch: DriftDetector
    reference: Reference | None = None
    """What was learned when its batches last agreed with it."""
    own: Reference | None = None
    """The reference, but for applications that were unknown then, the first measurements since: the
    length of their requests says nothing about the executor's speed."""
    known_ns: int = 0
    """When the reference was made."""
    agreed_since_ns: int | None = None
    """Since when batches have agreed with one reference after the other."""
    seen: deque[tuple[ObservedBatch, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    """The last batches, and when they ended."""
    unchecked: int = 0
    suspected: Drifted | None = None
    """What the last check found, before it has lasted long enough."""
    confirmed_ns: int | None = None
    """When batches last agreed with the corrected profile."""

    def begin_anew(self, *, agreed: bool = False) -> None:
        """Reset: compare batches with what is known from now on.

        Args:
            agreed: whether the last batches agreed with what was known before.
        """
        if not agreed:
            self.agreed_since_ns = None
        self.watch.clear()
        self.seen.clear()
        self.reference = self.own = self.suspected = None
        self.unchecked = 0

    @property
    def apps(self) -> frozenset[int]:
        """The applications of the last batches."""
        return frozenset(seen.app for seen, _ in self.seen)

    def measured(self, apps: Iterable[int]) -> bool:
        """Say whether anything was known of any of some applications when they were watched."""
        reference = self.reference
        return reference is not None and any(reference.measured[app] for app in apps)

    def tells(self, app: int, drifted: Drifted) -> bool:
        """Say whether an application was known, and ran as known, before a drift began."""
        since_ns = self.agreed_since_ns
        return self.measured([app]) and since_ns is not None and since_ns <= drifted.since_ns

    def ratio(self, of_another: Drifted) -> float | None:
        """Return what its profile is multiplied by when that of another variant has drifted.

        None: too few of its batches have run since.
        """
        own = self.watch.since(of_another.seen_ns)
        if own is None or own > SLOW or own < FAST:
            return own
        return 1.0


def attributed(watched: Watched, ran: VariantBatches) -> Attribution:
    """Say what explains a variant's last batches.

    Applications of which something was known before tell the speed. How long another one is
    was not known then: it tells only where no other runs.
    """
    found = attribute(ran)
    telling = [seen for seen in ran.batches if watched.measured([seen.app])]
    if len(telling) < MEANWHILE_MIN or watched.measured(found.agreeing):
        return found
    return attribute(replace(ran, batches=telling))


def factors_of_others(  # noqa: PLR0917
    learning: Learning,
    executor: ExecutorId,
    every: Mapping[VariantName, Watched],
    variant: VariantName,
    found: Attribution,
    drifted: Drifted,
) -> dict[str, float]:
    """Return the factors of applications that tell whether a variant's factor is the executor's.

    An executor is slow with all of them: where one does not agree, requests have changed. Where
    those that agree on the variant's factor were known before, others tell of which as much was
    known, and which had agreed with it until then. Where nothing was known of any that agrees, how
    long they are looks like a factor, and any other application tells.
    """
    names = learning.names(variant, found.agreeing)
    surely = every[variant].measured(found.agreeing)
    batches: dict[str, list[tuple[VariantName, ObservedBatch]]] = {}
    for name, watched in every.items():
        for seen, ended_ns in watched.seen:
            app = learning.name(name, seen.app)
            tells = not surely or watched.tells(seen.app, drifted)
            here = name == variant and surely  # `attribute` has weighed these
            if ended_ns >= drifted.seen_ns and app not in names and tells and not here:
                batches.setdefault(app, []).append((name, seen))
    return {
        app: _factor(learning, executor, of)
        for app, of in batches.items()
        if len(of) >= MEANWHILE_MIN
    }


def _factor(
    learning: Learning, executor: ExecutorId, batches: Iterable[tuple[VariantName, ObservedBatch]]
) -> float:
    """Return the factor that explains an application's batches on some variants best."""
    by_variant: dict[VariantName, list[ObservedBatch]] = {}
    for variant, seen in batches:
        by_variant.setdefault(variant, []).append(seen)
    ran = []
    for variant, of in by_variant.items():
        times = learning.times(executor, variant)
        if times is not None:
            ran.append(VariantBatches(of, times.profile_fixed_ns, times.profile_slope_ns))
    return attribute_together(ran)[0].factor if ran else 1.0


def untold(
    learning: Learning,
    every: Mapping[VariantName, Watched],
    variant: VariantName,
    found: Attribution,
    drifted: Drifted,
) -> dict[VariantName, frozenset[int]]:
    """Return the applications of each other variant whose batches do not tell its speed.

    They do not run on the one that has drifted, and how long they are was not known before.
    """
    names = learning.names(variant, found.agreeing)
    return {
        name: frozenset(
            app
            for app in of.apps
            if learning.name(name, app) not in names and not of.tells(app, drifted)
        )
        for name, of in every.items()
        if name != variant
    }


def informative(
    watched: Watched, ran: VariantBatches, slow_period: SlowPeriod
) -> list[ObservedBatch]:
    """Return a variant's batches in a slow period that say whether the executor was slow.

    They were compared with what was learned before the period. For an application of which nothing
    was learned, that is the profile, and its requests may always have been longer. Its batches
    outside the period say whether the profile holds for it.
    """
    reference, earlier = watched.reference, watched.known_ns <= slow_period.since_ns
    assert reference is not None
    within = [
        slow_period.since_ns <= ended_ns <= slow_period.until_ns for _, ended_ns in watched.seen
    ]
    inside, outside = (
        [seen for seen, is_within in zip(ran.batches, within, strict=True) if is_within is side]
        for side in (True, False)
    )
    profiled: frozenset[int] = frozenset()
    if inside and outside and not all(reference.measured):
        found = attribute(replace(ran, batches=outside))
        profiled = frozenset() if found.shifted else found.agreeing

    def is_informative(app: int) -> bool:
        if reference.measured[app]:
            return earlier
        return app in profiled and (earlier or reference.samples[app] == 0)

    return [seen for seen in inside if is_informative(seen.app)]


def alike(one: float, other: float) -> bool:
    """Say whether two factors differ by no more than `attribution` calls no news."""
    return abs(log2(one / other)) * BINS_PER_OCTAVE < TOLERANCE + 0.5
