"""Decides which variant a request runs on, and whether it has any chance. Pure."""

from collections.abc import Sequence

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.plans import Assignment
from edgebox.domain.requests import Camera, DropReason, Request
from edgebox.scheduling.adaptation import Adaptation
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.ladders import Ladders
from edgebox.scheduling.supervision import Supervision
from edgebox.scheduling.trials import Trials


class Admission:
    """Chooses the variant of each request that arrives."""

    def __init__(
        self,
        times: ExecutionTimes,
        ladders: Ladders,
        adaptation: Adaptation,
        trials: Trials,
        supervision: Supervision,
    ) -> None:
        self._times = times
        self._ladders = ladders
        self._adaptation = adaptation
        self._trials = trials
        self._supervision = supervision

    def choose(self, request: Request, now_ns: int) -> VariantName | DropReason:
        """Return what a request runs on, or why it does not."""
        connected = self._adaptation.cameras.get(request.camera)
        ready_ns = now_ns + self._times.calibration.prepare_ns
        if request.variant is not None:
            alone = self._times.expectations.alone(request.variant, request.app)
            # Nothing smaller can be run instead, so it is tried if there is any chance at all.
            fits = alone is not None and alone.low_ns <= request.last_deadline_ns - ready_ns
            if fits:
                return request.variant
            lost = self._supervision.is_lost(request.variant)
            return DropReason.FAILED if lost else DropReason.INFEASIBLE
        if connected is None:
            return DropReason.DEPARTED
        if self._is_lost(connected.camera.family):
            return DropReason.FAILED
        variant = choose_for_deadlines(
            request,
            connected.camera,
            connected.assignment,
            self._ladders.of(connected.camera.family),
            expectations=self._times.expectations,
            ready_ns=ready_ns,
        )
        return DropReason.INFEASIBLE if variant is None else variant

    def _is_lost(self, family: FamilyName) -> bool:
        return not self._ladders.of(family) and any(
            self._supervision.is_lost(variant.name)
            for variant in self._ladders.offered
            if variant.family == family
        )

    def choose_without_chance(self, request: Request, now_ns: int) -> VariantName | None:
        """Return what an infeasible request is tried on all the same (`trials`); None: it is not.

        To be asked only on a box that has nothing else to do.
        """
        variant, connected = request.variant, self._adaptation.cameras.get(request.camera)
        if variant is None and connected is not None:
            ladder = self._ladders.of(connected.camera.family)
            variant = smallest_variant(request, connected.camera, connected.assignment, ladder)
        ready_ns = now_ns + self._times.calibration.prepare_ns
        if variant is None or not self._trials.begin(request, variant, ready_ns, now_ns):
            return None
        return variant


def choose_variant(
    request: Request,
    camera: Camera,
    assigned: VariantName,
    ladder: Sequence[Variant],
    *,
    expectations: Expectations,
    time_left_ns: int,
) -> VariantName | None:
    """Choose what a camera's frame runs on; None: nothing fits.

    The assigned variant, or a smaller one that already covers the picture as it was sent
    (enlarging it buys nothing), or else the largest smaller one whose usual time, by what is known
    of the frame's application, still fits.
    Smaller ones count only if they are as accurate as the camera asked for, or as what the
    plan gave it, if that is less.

    Args:
        request: the frame.
        camera: what it asked for.
        assigned: what the plan gives its camera; need not be loaded (any more).
        ladder: the loaded variants of the camera's family, smallest first.
        expectations: what applications are expected to take.
        time_left_ns: until the deadline, decoding taken off.
    """
    chosen: VariantName | None = None
    for variant in _acceptable(camera, assigned, ladder):
        alone = expectations.alone(variant.name, request.app)
        if alone is not None and alone.usual_ns <= time_left_ns:
            chosen = variant.name
        if variant.covers(request.width_px, request.height_px):
            break
    return chosen


def _acceptable(camera: Camera, assigned: VariantName, ladder: Sequence[Variant]) -> list[Variant]:
    """Return the variants that a camera's frame may run on, smallest first."""
    top = len(ladder)
    for at, variant in enumerate(ladder):
        if variant.name == assigned:
            top = at
            break
    else:
        top -= 1
    if top < 0:
        return []
    floor = min(camera.min_accuracy, ladder[top].accuracy)
    return [variant for variant in ladder[: top + 1] if variant.accuracy >= floor]


def smallest_variant(
    request: Request, camera: Camera, assignment: Assignment | None, ladder: Sequence[Variant]
) -> VariantName | None:
    """Return the smallest variant that a camera's frame may run on; None: there is none."""
    if assignment is None:
        return None
    return next((v.name for v in _acceptable(camera, assignment.variant, ladder)), None)


def choose_for_deadlines(
    request: Request,
    camera: Camera,
    assignment: Assignment | None,
    ladder: Sequence[Variant],
    *,
    expectations: Expectations,
    ready_ns: int,
) -> VariantName | None:
    """Choose the variant for the first of the deadlines that any variant fits; None: none.

    A variant fits by its usual time, because a smaller one is safer. The smallest is chosen where
    none does, as long as the last deadline leaves what a request is kept for while it waits
    (`Alone.low_ns`): a frame is given up by one rule, before it is decoded and after.

    A frame that left before its camera knew of the plan in force finishes on the variant it was
    made for, if that is still there.
    """
    if assignment is None:
        return None
    assigned = assignment.variant
    if any(variant.name == request.advised for variant in ladder):
        assigned = request.advised or assigned
    for deadline_ns in (request.deadline_ns, *(step.by_ns for step in request.steps)):
        variant = choose_variant(
            request,
            camera,
            assigned,
            ladder,
            expectations=expectations,
            time_left_ns=deadline_ns - ready_ns,
        )
        if variant is not None:
            return variant
    # Nothing smaller can be run instead, so it is tried while it has any chance at all.
    smallest = next((v.name for v in _acceptable(camera, assigned, ladder)), None)
    alone = None if smallest is None else expectations.alone(smallest, request.app)
    fits = alone is not None and alone.low_ns <= request.last_deadline_ns - ready_ns
    return smallest if fits else None
