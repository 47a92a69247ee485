"""Decides which variant a request runs on, and whether it can be on time at all. Pure.

A frame of a pipeline is admitted if its first stage can be on time, and the executors can work off
its crops too; a frame of a camera that the plan promises nothing, if it takes nothing from those
that are promised something (`frame_admission`). A frame runs on the variant that leaves the time
for the later stages too, if there is one.
"""

from bisect import bisect_right
from collections.abc import Sequence

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.pipelines import Pipeline, PipelineStage
from edgebox.domain.plans import Assignment
from edgebox.domain.requests import Camera, DropReason, Request
from edgebox.scheduling.adaptation import Adaptation
from edgebox.scheduling.connected_camera import ConnectedCamera
from edgebox.scheduling.events import FrameDetected
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.fan_out import FanOut, with_reserve
from edgebox.scheduling.frame_admission import FrameAdmission
from edgebox.scheduling.joins import Joins
from edgebox.scheduling.ladders import Ladders
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.scheduling.supervision import Supervision
from edgebox.scheduling.trials import Trials


class Admission:
    """Chooses the variant of each request that arrives."""

    def __init__(
        self,
        times: ExecutionTimes,
        ladders: Ladders,
        adaptation: Adaptation,
        *,
        trials: Trials,
        supervision: Supervision,
        fan_out: FanOut,
        joins: Joins,
        frames: FrameAdmission,
    ) -> None:
        self._joins = joins
        self._frames = frames
        self._times = times
        self._fan_out = fan_out
        self._ladders = ladders
        self._adaptation = adaptation
        self._trials = trials
        self._supervision = supervision

    def choose(self, request: Request, now_ns: int) -> VariantName | DropReason:
        """Return the variant for a request, or the reason to drop it."""
        connected = self._adaptation.cameras.get(request.camera)
        ready_ns = now_ns + self._times.calibration.prepare_ns
        if request.stage is not None:
            return self._choose_for_stage(request, ready_ns)
        if request.variant is not None:
            single_request = self._times.expectations.single_request(request.variant, request.app)
            # There is no smaller variant to use instead, so the low quantile decides.
            fits = (
                single_request is not None
                and single_request.low_ns <= request.last_deadline_ns - ready_ns
            )
            if fits and self.refuses_single(request, now_ns):
                return DropReason.OVERLOAD
            if fits:
                return request.variant
            lost = self._supervision.is_lost(request.variant)
            return DropReason.FAILED if lost else DropReason.INFEASIBLE
        if connected is None:
            return DropReason.DEPARTED
        self._adaptation.arrived(request)
        self._adaptation.placed(request.camera, at_camera=False)
        return self._choose_for_frame(request, connected, now_ns, ready_ns)

    def refuses_single(self, request: Request, now_ns: int) -> bool:
        """Say whether there is no time for a program's picture, which names its variant."""
        share = self._adaptation.cameras_share
        return request.variant is not None and self._frames.refuses_single(
            request, request.variant, share, now_ns
        )

    def _choose_for_frame(
        self, request: Request, connected: ConnectedCamera, now_ns: int, ready_ns: int
    ) -> VariantName | DropReason:
        if self._is_lost(connected.camera.family):
            return DropReason.FAILED
        variant = choose_for_deadlines(
            request,
            connected.camera,
            connected.assignment,
            self._ladders.allowed(connected.camera),
            expectations=self._times.expectations,
            ready_ns=ready_ns,
            reserve_ns=self._fan_out.after_first_ns(connected.camera),
        )
        if variant is None:
            return DropReason.INFEASIBLE
        refused = self._frames.refuses(request, connected.camera, variant, now_ns)
        if not refused and not connected.promised:
            share = self._adaptation.promised_share
            refused = self._frames.refuses_unpromised(request, variant, share, now_ns)
        return DropReason.OVERLOAD if refused else variant

    def _choose_for_stage(self, request: Request, ready_ns: int) -> VariantName | DropReason:
        """Return the largest variant of a crop's stage, up to the planned one, whose time fits.

        A crop runs on the stage's variant even if it is smaller than that, because crops of
        different sizes share batches then.
        """
        pipeline = self._joins.pipeline_of(request)
        stage = None if pipeline is None else pipeline.stage(request.stage)
        if stage is None:
            return DropReason.QUEUE  # its frame has ended
        if self._is_lost(stage.family):
            return DropReason.FAILED
        if stage.cascade is not None:
            return self._choose_for_cascade(request, stage.cascade.large, ready_ns)
        top, chosen = self._largest_of(request, stage), None
        for variant in self._ladders.of(stage.family):
            known = self._times.expectations.single_request(variant.name, request.app)
            if known is not None and ready_ns + known.usual_ns <= request.deadline_ns:
                chosen = variant.name
            elif known is not None and chosen is None:
                fits = ready_ns + known.low_ns <= request.last_deadline_ns
                return variant.name if fits else DropReason.INFEASIBLE
            if variant.name == top:
                break
        return DropReason.INFEASIBLE if chosen is None else chosen

    def _choose_for_cascade(
        self, request: Request, large: VariantName, ready_ns: int
    ) -> VariantName | DropReason:
        """Return a cascade's large model if its usual time fits: no other improves the answer."""
        known = self._times.expectations.single_request(large, request.app)
        fits = known is not None and ready_ns + known.usual_ns <= request.deadline_ns
        return large if fits else DropReason.INFEASIBLE

    def _largest_of(self, crop: Request, stage: PipelineStage) -> VariantName | None:
        """Return the largest variant that a crop may run on, and learn how large its object is."""
        connected, frame = self._adaptation.cameras.get(crop.camera), self._joins.of(crop)
        if connected is None or frame is None or connected.camera.pipeline != frame.pipeline:
            return self._fan_out.top_variant(stage)
        if frame.batch is not None:  # crops that a camera cuts may be smaller than its picture's
            self._adaptation.crop_sides.observe(frame.request, crop, stage)
        return self._fan_out.variant_of(connected.camera, stage)

    def refuse_detected(
        self, event: FrameDetected, parameters: SchedulerParameters, now_ns: int
    ) -> DropReason | None:
        """Return why a frame whose first stage ran at its camera is dropped; None: it is taken.

        Nothing runs for the frame itself, so it needs no variant and no executor.
        """
        request = event.request
        self._adaptation.placed(request.camera, at_camera=True)
        if request.camera not in self._adaptation.cameras:
            return DropReason.DEPARTED
        if now_ns > request.last_deadline_ns:
            return DropReason.INFEASIBLE
        waiting = self._joins.detected_of(request.camera)
        return DropReason.OVERLOAD if waiting >= parameters.camera_pending_max else None

    def pipeline_of(self, request: Request) -> Pipeline | None:
        """Return the pipeline whose first stage a request is; None: it is of none, or a crop."""
        if request.frame is not None:
            return None
        connected = self._adaptation.cameras.get(request.camera)
        of_camera = None if connected is None else connected.camera.pipeline
        return request.pipeline or of_camera

    def for_policy(self, request: Request, variant: VariantName, now_ns: int) -> Request:
        """Return a request with the deadlines of its stage: earlier by what is needed after it.

        No more is reserved than was left when the request arrived. Otherwise frames that can still
        have a partial answer would be dropped.
        """
        connected = self._adaptation.cameras.get(request.camera)
        pipeline = self.pipeline_of(request) or self._joins.pipeline_of(request)
        # Nothing is known of the later stages of a pipeline that its camera has no more.
        if connected is None or pipeline is None or connected.camera.pipeline != pipeline:
            return request
        stage = request.stage or pipeline.first.name
        remaining_ns = self._fan_out.remaining_ns(connected.camera, stage)
        known = self._times.expectations.single_request(variant, request.app)
        usual_ns = 0 if known is None else round(known.usual_ns)
        ready_ns = now_ns + self._times.calibration.prepare_ns
        return with_reserve(request, min(remaining_ns, request.deadline_ns - ready_ns - usual_ns))

    def _is_lost(self, family: FamilyName) -> bool:
        return not self._ladders.of(family) and any(
            self._supervision.is_lost(variant.name)
            for variant in self._ladders.offered
            if variant.family == family
        )

    def variants(self, request: Request, variant: VariantName) -> tuple[VariantName, ...]:
        """Return the variant that was chosen for a request, and the smaller ones that it may run on
        instead, by falling size."""
        connected = self._adaptation.cameras.get(request.camera)
        chosen = self._ladders.named(variant)
        if request.variant is not None or request.optional or connected is None or chosen is None:
            return (variant,)
        ladder: Sequence[Variant] = self._ladders.of(chosen.family)
        if request.stage is None:
            ladder = _acceptable(connected.camera, variant, ladder)
        names = [each.name for each in ladder]
        at = names.index(variant) if variant in names else 0
        return (variant, *reversed(names[:at]))

    def larger_variants(self, request: Request, variant: VariantName) -> list[VariantName]:
        """Return the variants above a frame's own that its picture has the pixels for, by falling
        size.

        Up to the smallest that covers the picture as it was sent, because enlarging it more gains
        nothing. None for frames of a pipeline, whose later stages need the time, and none above the
        camera's own limit.
        """
        connected = self._adaptation.cameras.get(request.camera)
        chosen = self._ladders.named(variant)
        if (
            connected is None
            or chosen is None
            or request.variant is not None
            or request.stage is not None
            or request.optional
            or chosen.covers(request.width_px, request.height_px)
            or self.pipeline_of(request) is not None
        ):
            return []
        ladder = self._ladders.allowed(connected.camera)
        larger: list[VariantName] = []
        for each in ladder[bisect_right(ladder, chosen.pixels, key=lambda v: v.pixels) :]:
            larger.append(each.name)
            if each.covers(request.width_px, request.height_px):
                break
        return larger[::-1]

    def choose_for_trial(self, request: Request, now_ns: int) -> VariantName | None:
        """Return the variant for a trial of an infeasible request (`trials`); None: no trial.

        To be called only on a box that has nothing else to do.
        """
        variant, connected = request.variant, self._adaptation.cameras.get(request.camera)
        if variant is None and connected is not None:
            ladder = self._ladders.allowed(connected.camera)
            variant = smallest_variant(connected.camera, connected.assignment, ladder)
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
    """Choose the variant for a camera's frame; None: nothing fits.

    The assigned variant is chosen, or a smaller one that already covers the picture as it was sent
    (enlarging it gains nothing), or else the largest smaller one whose usual time for the frame's
    application still fits. Smaller ones are acceptable only if they are as accurate as the camera's
    minimum, or as the assigned one if that is less.

    Args:
        request: the frame.
        camera: its settings.
        assigned: the variant that its camera is given, or was when it sent the frame. Nothing fits
            if the ladder lacks it; `Adaptation` gives a camera one that can run.
        ladder: the loaded variants that the camera may have, smallest first.
        expectations: expected times by application.
        time_left_ns: until the deadline, decoding subtracted.
    """
    acceptable = _acceptable(camera, assigned, ladder)
    covers = (v.covers(request.width_px, request.height_px) for v in acceptable)
    enough = next((at for at, each in enumerate(covers, 1) if each), len(acceptable))
    for variant in reversed(acceptable[:enough]):
        single_request = expectations.single_request(variant.name, request.app)
        if single_request is not None and single_request.usual_ns <= time_left_ns:
            return variant.name
    return None


def _acceptable(camera: Camera, assigned: VariantName, ladder: Sequence[Variant]) -> list[Variant]:
    """Return the variants that a camera's frame may run on, smallest first."""
    top = next((at for at, variant in enumerate(ladder) if variant.name == assigned), None)
    if top is None:
        return []
    floor = min(camera.min_accuracy, ladder[top].accuracy)
    return [variant for variant in ladder[: top + 1] if variant.accuracy >= floor]


def smallest_variant(
    camera: Camera, assignment: Assignment | None, ladder: Sequence[Variant]
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
    reserve_ns: int = 0,
) -> VariantName | None:
    """Choose the variant for the earliest deadline that any variant fits; None: none.

    A variant fits by its usual time, because a smaller one is safer. If none fits, the smallest one
    is chosen as long as the last deadline leaves the low quantile of its time
    (`SingleRequestTimes.low_ns`). The same rule decides before and after decoding whether a frame
    has expired.

    A frame that left before its camera received the plan in force runs on the variant it was sent
    for, if that still exists.

    `reserve_ns` is what later stages of a pipeline need: a variant that leaves it comes first.
    """
    if assignment is None:
        return None
    assigned = assignment.variant
    if any(variant.name == request.advised for variant in ladder):
        assigned = request.advised or assigned
    deadlines_ns = [request.deadline_ns, *(step.by_ns for step in request.steps)]
    if reserve_ns:
        deadlines_ns.insert(0, request.deadline_ns - reserve_ns)
    for deadline_ns in deadlines_ns:
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
    # There is no smaller variant to use instead, so the low quantile decides.
    smallest = next((v.name for v in _acceptable(camera, assigned, ladder)), None)
    single_request = (
        None if smallest is None else expectations.single_request(smallest, request.app)
    )
    fits = (
        single_request is not None and single_request.low_ns <= request.last_deadline_ns - ready_ns
    )
    return smallest if fits else None
