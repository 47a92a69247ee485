"""Decides whether executors shall work apart, and which cameras on which of them. Pure.

Where all executors serve everybody, the tightest deadline bounds everybody's batches. Apart, those
with tight deadlines have executors of their own, and the others' batches may be long (Jellyfish
has one variant per executor for that). A group of executors takes turns at a few variants
(`turns.py`), which are its own: no variant is in two groups, so that a camera follows its variant.

The search: cameras in the order of how tight they are, or of how much they could have at best, are
cut in two, executors likewise, and the parts planned by `turn_selection`, or `alone` where a part
has an executor for each of its cameras; one of them first, the other with what variants are left.
The best cut's parts are then cut again. Limits: parts are neighbours in one of the orders, and
executors that have the same variants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgebox.domain.models import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.planning.alone import AloneSelection, best_alone
from edgebox.planning.candidates import Candidates, Level
from edgebox.planning.capacity import Bench
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.selection import Chosen, Refusal
from edgebox.planning.turn_selection import TurnSelection, best_in_turns, kept_in_turns

_CUTS_MAX = 8
"""At about so many places in all cameras are cut at first, then nearer to the best of these."""
_FINEST = 16
"""Of more cameras than this, a sixteenth more or less is near enough."""
_QUICK_TESTS = 1000
"""So many tests, by the number of cameras and splits of executors, value a part of a cut."""
_QUICK_TESTS_MIN = 8

Variants = frozenset[VariantName]


@dataclass(frozen=True, slots=True)
class Ways:
    """What each camera could be given: where executors are shared, and with one to itself."""

    sharing: Sequence[Candidates]
    alone: Sequence[Candidates] = ()
    """Empty: nobody may have one."""


@dataclass(frozen=True, slots=True)
class Part:
    """Executors that work apart, and what they do."""

    executors: tuple[ExecutorId, ...]
    members: tuple[int, ...]
    """The cameras, by their numbers."""
    selection: TurnSelection | AloneSelection
    """What these get, in their order."""

    @property
    def variants(self) -> Variants:
        """What it runs."""
        return frozenset(level.variant.name for level in self.selection.levels)


class Apart(Chosen):
    """Levels that groups of executors, each in its own turns, can serve."""

    def __init__(self, ways: Ways, parts: Sequence[Part], bench: Bench) -> None:
        cameras, at = [*ways.sharing], [0] * len(ways.sharing)
        for part in parts:
            for camera, level in zip(part.members, part.selection.levels, strict=True):
                if level.alone:
                    cameras[camera] = ways.alone[camera]
                at[camera] = cameras[camera].levels.index(level)
        super().__init__(cameras, at)
        self.parts = tuple(parts)
        self._bench = bench

    @property
    def groups(self) -> tuple[Group, ...]:
        """The executors, what they run, and how far they may help each other out."""
        return tuple(
            Group(
                part.executors,
                tuple(sorted(part.variants)),
                part.selection.lends_ns,
            )
            for part in self.parts
        )

    @property
    def utilisation(self) -> float:
        """Planned share of all executors' time."""
        busy = sum(part.selection.utilisation * len(part.executors) for part in self.parts)
        return busy / len(self._bench.executors)

    def sharing(self, camera: int) -> tuple[int, tuple[ExecutorId, ...] | None]:
        """Return how many cameras share the executors of a camera's part, and these."""
        part = self._part(camera)
        return len(part.members), part.executors

    def refusal(self, camera: int, level: Level, parameters: PlanningParameters) -> Refusal | None:
        """Say what forbids a camera to have this level where that is run, or else where it is."""
        part = next((p for p in self.parts if level.variant.name in p.variants), self._part(camera))
        members = part.members if camera in part.members else (*part.members, camera)
        if level.alone and members == part.members:
            return part.selection.refusal(members.index(camera), level, parameters)
        selection = TurnSelection(
            [self.cameras[each] for each in members],
            [self.at[each] for each in members],
            self._bench.timing(part.executors),
        )
        refused = selection.refusal(members.index(camera), level, parameters)
        if refused is None or refused.who is None:
            return refused
        return replace(refused, who=members[refused.who])

    def _part(self, camera: int) -> Part:
        return next(part for part in self.parts if camera in part.members)


def kept_apart(
    cameras: Sequence[Candidates],
    bench: Bench,
    parameters: PlanningParameters,
    tests_max: int,
    *,
    lone: Sequence[Candidates] = (),
) -> Apart | None:
    """Keep the groups in force and what cameras have, as `kept_in_turns` does; None: it fails.

    Whose variant is in no group (a camera that is new, say) joins the group with the next smaller
    one, or else the smallest one.
    """
    if not bench.groups or {e for g in bench.groups for e in g.executors} != set(bench.executors):
        return None
    ways = Ways(cameras, lone)
    parts: list[Part] = []
    for group, members in zip(bench.groups, _at_home(ways, bench.groups), strict=True):
        if not members:
            continue
        barred = {v for other in bench.groups if other is not group for v in other.variants}
        barred |= {v for part in parts for v in part.variants}
        kept: TurnSelection | AloneSelection | None = _best_alone(
            ways, members, group.executors, barred, parameters
        )
        having = _without(cameras, members, barred)
        if kept is None and having is not None:
            kept = kept_in_turns(having, bench.timing(group.executors), parameters, tests_max)
        if kept is None:
            return None
        parts.append(Part(group.executors, tuple(members), kept))
    return Apart(ways, parts, bench) if len(parts) > 1 else None


def _at_home(ways: Ways, groups: Sequence[Group]) -> list[list[int]]:
    """Return the cameras of each group."""
    pixels = {v.name: v.pixels for c in ways.sharing for v in (level.variant for level in c.levels)}
    homes = sorted(
        (pixels[name], number)
        for number, group in enumerate(groups)
        for name in group.variants
        if name in pixels
    )
    members: list[list[int]] = [[] for _ in groups]
    for group, there in zip(groups, members, strict=True):
        having = [at for at, of in enumerate(ways.alone) if _variant_now(of) in group.variants]
        if len(having) <= len(group.executors):
            there.extend(having)  # alone, at what may be larger than they could have otherwise
    placed = {at for there in members for at in there}
    for at, of in enumerate(ways.sharing):
        if at in placed:
            continue
        has_px = of.levels[of.current].variant.pixels
        below = [number for px, number in homes if px <= has_px] or [n for _, n in homes[:1]] or [0]
        members[below[-1]].append(at)
    return members


def _variant_now(of: Candidates) -> VariantName | None:
    return None if of.snapshot.current is None else of.snapshot.current.variant


def best_apart(
    cameras: Sequence[Candidates],
    bench: Bench,
    parameters: PlanningParameters,
    tests_max: int,
    *,
    lone: Sequence[Candidates] = (),
) -> Apart | None:
    """Search for groups and levels; None: none work, or there is nobody to be apart from.

    O(C T (n + V B)) for C cuts and T tests of each, n cameras, V sizes of B batches.

    Args:
        cameras: what each could be given.
        bench: the executors.
        parameters: the tunables.
        tests_max: bound on the assignments tried of each part in the end.
        lone: what each could be given with an executor to itself; empty: nobody may have one.
    """
    if len(cameras) < 2 or len(bench.executors) < 2:
        return None
    ways = Ways(cameras, lone)
    parts = _Search(ways, bench, parameters, tests_max).divided(_orders(cameras))
    return None if parts is None else Apart(ways, parts, bench)


def _orders(cameras: Sequence[Candidates]) -> list[tuple[int, ...]]:
    """Return the cameras by rising time to compute at their smallest sizes, and by largest size."""

    def tightness(at: int) -> tuple[int, int]:
        return cameras[at].levels[0].budget.compute_ns, cameras[at].levels[-1].variant.pixels

    def ambition(at: int) -> tuple[int, int]:
        level = cameras[at].levels[-1]
        return level.variant.pixels, level.budget.compute_ns

    numbers = range(len(cameras))
    orders = [tuple(sorted(numbers, key=key)) for key in (tightness, ambition)]
    return list(dict.fromkeys(orders))


def _worth(parts: Sequence[Part]) -> float:
    return sum(part.selection.accuracy_rate for part in parts)


def _of_others(parts: Sequence[Part], part: Part) -> Variants:
    return frozenset(v for other in parts if other is not part for v in other.variants)


def _without(
    cameras: Sequence[Candidates], members: Sequence[int], barred: Variants | set[VariantName]
) -> list[Candidates] | None:
    """Return some cameras with the levels that are left to them; None: one has none left."""
    out = []
    for at in members:
        of = cameras[at]
        levels = tuple(level for level in of.levels if level.variant.name not in barred)
        if not levels:
            return None
        out.append(of if len(levels) == len(of.levels) else replace(of, levels=levels))
    return out


Half = tuple[Sequence[int], tuple[ExecutorId, ...]]
"""Cameras, and the executors that shall serve them."""


class _Search:
    """What is common to all cuts of one search."""

    def __init__(
        self,
        ways: Ways,
        bench: Bench,
        parameters: PlanningParameters,
        tests_max: int,
    ) -> None:
        self._ways = ways
        self._bench = bench
        self._parameters = parameters
        self._tests_max = tests_max
        pieces = len(ways.sharing) * (len(bench.executors) - 1)
        self._quick_tests = max(_QUICK_TESTS_MIN, _QUICK_TESTS // pieces)
        self._known: dict[tuple[frozenset[int], tuple[ExecutorId, ...], Variants], Part | None] = {}

    def divided(self, orders: Sequence[Sequence[int]]) -> list[Part] | None:
        """Return the best way found to divide cameras in one of these orders; None: none works."""
        cuts = [self._cut(order, self._bench.executors, frozenset()) for order in orders]
        parts = list(max((cut for cut in cuts if cut is not None), key=_worth, default=()))
        at = 0
        while at < len(parts):  # each part again, as long as that brings anything
            part = parts[at]
            again = self._cut(part.members, part.executors, _of_others(parts, part))
            if again is not None and _worth(again) > part.selection.accuracy_rate:
                parts[at : at + 1] = again
            else:
                at += 1
        for at, part in enumerate(parts):  # for longer, now that it is decided
            others = _of_others(parts, part)
            longer = self._solved(part.members, part.executors, others, self._tests_max)
            if longer and longer.selection.accuracy_rate > part.selection.accuracy_rate:
                parts[at] = longer
        return parts or None

    def _cut(
        self, order: Sequence[int], executors: tuple[ExecutorId, ...], barred: Variants
    ) -> tuple[Part, Part] | None:
        """Return the best way found to cut cameras and executors in two; None: none works."""
        found = (
            self._cut_at(order, executors[:first], executors[first:], barred)
            for first in range(1, len(executors))
        )
        return max((cut for cut in found if cut is not None), key=_worth, default=None)

    def _cut_at(
        self,
        order: Sequence[int],
        first: tuple[ExecutorId, ...],
        second: tuple[ExecutorId, ...],
        barred: Variants,
    ) -> tuple[Part, Part] | None:
        """Return the best place found to cut the cameras, between these executors."""
        cuts = max(2, _CUTS_MAX // (len(self._bench.executors) - 1))
        step = max(1, len(order) // cuts)
        finest = max(1, len(order) // _FINEST)
        places = list(range(step, len(order), step))
        tried: dict[int, tuple[Part, Part] | None] = {}
        while True:
            for at in places:
                if 0 < at < len(order) and at not in tried:
                    tried[at] = self._both((order[:at], first), (order[at:], second), barred)
            found = {at: cut for at, cut in tried.items() if cut is not None}
            if step <= finest or not found:
                return max(found.values(), key=_worth, default=None)
            step = max(finest, step // 2)
            best = max(found, key=lambda at: _worth(found[at]))
            places = [best - step, best + step]

    def _both(self, one: Half, other: Half, barred: Variants) -> tuple[Part, Part] | None:
        """Plan two parts. What both would run, one of them has to do without."""
        first = self._quickly(*one, barred)
        second = None if first is None else self._quickly(*other, barred)
        if first is None or second is None:
            return None
        if first.variants.isdisjoint(second.variants):
            return first, second
        behind = self._quickly(*other, barred | first.variants)
        before = self._quickly(*one, barred | second.variants)
        found = [(first, behind)] if behind is not None else []
        found += [(before, second)] if before is not None else []
        return max(found, key=_worth, default=None)

    def _quickly(
        self, members: Sequence[int], executors: tuple[ExecutorId, ...], barred: Variants
    ) -> Part | None:
        key = frozenset(members), executors, barred
        if key not in self._known:
            self._known[key] = self._solved(members, executors, barred, self._quick_tests)
        return self._known[key]

    def _solved(
        self,
        members: Sequence[int],
        executors: tuple[ExecutorId, ...],
        barred: Variants,
        tests_max: int,
    ) -> Part | None:
        found: list[TurnSelection | AloneSelection | None] = [
            _best_alone(self._ways, members, executors, barred, self._parameters)
        ]
        having = _without(self._ways.sharing, members, barred)
        if having is not None:
            timing = self._bench.timing(executors)
            found.append(best_in_turns(having, timing, self._parameters, tests_max))
        some = [each for each in found if each is not None]
        best = max(some, key=lambda of: (of.served, of.accuracy_rate), default=None)
        return None if best is None else Part(executors, tuple(members), best)


def _best_alone(
    ways: Ways,
    members: Sequence[int],
    executors: tuple[ExecutorId, ...],
    barred: Variants | set[VariantName],
    parameters: PlanningParameters,
) -> AloneSelection | None:
    if not ways.alone or len(members) > len(executors):
        return None
    having = _without(ways.alone, members, barred)
    return None if having is None else best_alone(having, len(executors), parameters)
