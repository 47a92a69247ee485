"""Models what a box's runtime does for pipelines: which crops a frame has, and what became of them.

Pure. The objects that a picture shows are found by its first stage, and each stage takes those of
its labels, as many as it may. A crop of a later detector shows one object. Pixels do not exist:
minimum sizes, scores and regions are not modelled. A cascade sends on the hardest pictures: how
hard one is, is drawn for each.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.pipelines import Pipeline, PipelineStage, StageName
from edgebox.domain.requests import CameraId, FrameId, Request, RequestId
from edgebox.simulation.objects import ObjectCounts
from edgebox.simulation.simulated_cameras import SimulatedCamera

CROP_PX = 64
"""The sides of objects whose size is not given."""


@dataclass(slots=True)
class FrameWork:
    """The objects of one frame at the box, and the executor time spent on them."""

    of_picture: Counter[StageName]
    """How many crops of the picture each stage takes."""
    crops: Counter[StageName]
    """How many crops each later stage takes: of the picture, and of crops."""
    answered: Counter[StageName] = field(default_factory=Counter)
    right: dict[StageName, float] = field(default_factory=dict)
    """How many of the answered crops are right, in expectation: the sum of their accuracies."""
    used_ns: float = 0.0
    hardness: float = 1.0
    """The quantile of its expected loss among all pictures: 0 is the hardest."""
    cascade: CascadeOutcome | None = None
    """What its cascade did; None: there is none, or it decided nothing."""

    @property
    def complete(self) -> bool:
        """Whether every crop was answered."""
        return self.answered == +self.crops


@dataclass(slots=True)
class ExecutorTime:
    """Executor time by what became of the frames that it was spent on."""

    complete_ns: float = 0.0
    """Frames answered in time, all their crops included."""
    partial_ns: float = 0.0
    """Frames answered in time, but without some of their crops."""
    wasted_ns: float = 0.0
    """Frames without an answer in time, and crops that ended after their frame."""


class SimulatedPipelines:
    """The frames of all cameras that are at the box, and their crops."""

    def __init__(
        self,
        cameras: Sequence[SimulatedCamera],
        next_id: Callable[[], RequestId],
        cascade_share: Callable[[CameraId], float],
        variants: Sequence[Variant] = (),
    ) -> None:
        """Begin without frames.

        Args:
            cameras: with their pipelines and objects.
            next_id: returns a number that no other request has.
            cascade_share: returns the planned share of a camera's pictures that are sent on.
            variants: that crops may run on.
        """
        self._variants = {variant.name: variant for variant in variants}
        self._sides = {spec.camera.id: spec.object_sides for spec in cameras}
        self._pipelines: Mapping[CameraId, Pipeline | None] = {
            spec.camera.id: spec.camera.pipeline for spec in cameras
        }
        self._objects: Mapping[CameraId, ObjectCounts | None] = {
            spec.camera.id: spec.objects for spec in cameras
        }
        self._difficulty = {spec.camera.id: spec.difficulty for spec in cameras}
        self._next_id = next_id
        self._cascade_share = cascade_share
        self._frames: dict[FrameId, FrameWork] = {}
        self._crops: dict[RequestId, Request] = {}
        self._sides_px: dict[RequestId, float] = {}
        """Sides of the objects of crops."""
        self._accuracy: dict[RequestId, float] = {}
        """Accuracy of the variants that crops ran on."""
        self.spent = ExecutorTime()

    def arrived(self, frame: Request, captured_ns: int) -> None:
        """Note a frame at the box."""
        pipeline, objects = self._pipelines[frame.camera], self._objects[frame.camera]
        of_picture = crops_of_picture(pipeline, objects, captured_ns)
        work = FrameWork(of_picture, all_crops(pipeline, of_picture))
        if pipeline is not None and pipeline.cascade_stage is not None:
            # Of the same picture it is the same, whatever came before.
            drawn = random.Random(f"{frame.camera} {captured_ns}").random()
            work.hardness = drawn ** self._difficulty[frame.camera]
        self._frames[FrameId(frame.id)] = work

    def crop(self, request: RequestId) -> Request | None:
        """Return a crop; None: the request is a frame, or has ended."""
        return self._crops.get(request)

    def ran(
        self, request: Request, variant: VariantName, share_ns: float, now_ns: int
    ) -> list[Request]:
        """Note the executor time of a batch's member; return the crops that it spawns."""
        if request.frame is not None and variant in self._variants:
            of_variant = self._variants[variant]
            self._accuracy[request.id] = of_variant.accuracy_at(self._sides_px[request.id])
        frame = self._frames.get(request.frame or FrameId(request.id))
        if frame is None:
            self.spent.wasted_ns += share_ns
            return []
        frame.used_ns += share_ns
        pipeline = self._pipelines[request.camera]
        if pipeline is None:
            return []
        share = self._cascade_share(request.camera)
        stage = _sends_on(pipeline, variant, frame, share) if request.stage is None else None
        if stage is not None:
            size_px = request.width_px, request.height_px
            return [self._spawn(request, stage, size_px, 0.0, now_ns)]
        return self._crops_of(request, pipeline, frame, now_ns)

    def cut_own(self, frame: Request, now_ns: int) -> list[Request]:
        """Return the crops of what a frame's first stage has found, though it was sent on."""
        pipeline = self._pipelines[frame.camera]
        assert pipeline is not None
        return self._crops_of(frame, pipeline, self._frames[FrameId(frame.id)], now_ns)

    def _crops_of(
        self, request: Request, pipeline: Pipeline, frame: FrameWork, now_ns: int
    ) -> list[Request]:
        of = request.stage or pipeline.first.name
        of_whole = request.stage is None or self._is_whole(pipeline, of)
        numbers = {
            stage: frame.of_picture[stage.name] if of_whole else 1
            for stage in pipeline.next_stages(of)
            if stage.cascade is None
        }
        return [
            self._spawn_crop(request, stage, self._side_px(request, at), now_ns)
            for stage, number in numbers.items()
            for at in range(number)
        ]

    @staticmethod
    def _is_whole(pipeline: Pipeline, stage: StageName) -> bool:
        """Say whether a later stage is given whole pictures."""
        found = pipeline.stage(stage)
        return found is not None and found.cascade is not None

    def _side_px(self, parent: Request, at: int) -> float:
        """Return the side of an object of a frame, or of that which a crop shows."""
        if parent.frame is not None and not parent.optional:
            return self._sides_px[parent.id]
        sides = self._sides[parent.camera]
        if not sides:
            return CROP_PX
        return sides[at % len(sides)] * sqrt(parent.width_px * parent.height_px)

    def _spawn_crop(
        self, parent: Request, stage: PipelineStage, side_px: float, now_ns: int
    ) -> Request:
        crop_px = max(1, round(side_px * (1 + 2 * stage.margin)))
        return self._spawn(parent, stage, (crop_px, crop_px), side_px, now_ns)

    def _spawn(
        self,
        parent: Request,
        stage: PipelineStage,
        size_px: tuple[int, int],
        side_px: float,
        now_ns: int,
    ) -> Request:
        crop = Request(
            id=self._next_id(),
            camera=parent.camera,
            app=parent.app,
            captured_ns=parent.captured_ns,
            arrival_ns=now_ns,
            deadline_ns=parent.deadline_ns,
            width_px=size_px[0],
            height_px=size_px[1],
            size_bytes=0,
            steps=parent.steps,
            frame=parent.frame or FrameId(parent.id),
            stage=stage.name,
            optional=stage.cascade is not None,
        )
        self._crops[crop.id] = crop
        self._sides_px[crop.id] = side_px
        return crop

    def crop_ended(self, request: RequestId, *, answered: bool) -> None:
        """Note the end of a crop."""
        crop = self._crops.pop(request)
        assert crop.frame is not None
        assert crop.stage is not None
        frame = self._frames.get(crop.frame)
        right = self._accuracy.pop(request, 0.0)
        del self._sides_px[request]
        if crop.optional:
            if answered and frame is not None:
                frame.cascade = CascadeOutcome.SENT_ON
        elif answered and frame is not None:
            frame.answered[crop.stage] += 1
            frame.right[crop.stage] = frame.right.get(crop.stage, 0.0) + right

    def frame_ended(self, request: RequestId, *, on_time: bool) -> FrameWork:
        """Return what became of a frame's crops."""
        frame = self._frames.pop(FrameId(request))
        if not on_time:
            self.spent.wasted_ns += frame.used_ns
        elif frame.complete:
            self.spent.complete_ns += frame.used_ns
        else:
            self.spent.partial_ns += frame.used_ns
        return frame


def _sends_on(
    pipeline: Pipeline, variant: VariantName, frame: FrameWork, planned_share: float
) -> PipelineStage | None:
    """Return the stage of the cascade that sends a frame on, and note it; None: none does.

    The box decides alike (`runtime.cascade_decisions`): by a threshold, and for answers of the
    cascade's small model alone.
    """
    cascade = pipeline.cascade
    if cascade is None or variant != cascade.small:
        return None
    threshold = cascade.threshold_with(planned_share)
    sent_on = frame.hardness < cascade.curve.at_threshold(threshold).share
    frame.cascade = CascadeOutcome.MISSED if sent_on else CascadeOutcome.KEPT
    return pipeline.cascade_stage if sent_on else None


def crops_of_picture(
    pipeline: Pipeline | None, objects: ObjectCounts | None, captured_ns: int
) -> Counter[StageName]:
    """Return how many crops each stage takes of a picture captured at this instant."""
    if pipeline is None or objects is None:
        return Counter()
    return Counter(
        {
            stage.name: min(stage.crops_max, objects.number(stage.labels, captured_ns))
            for stage in pipeline.next_stages(pipeline.first.name)
            if stage.cascade is None
        }
    )


def all_crops(pipeline: Pipeline | None, of_picture: Counter[StageName]) -> Counter[StageName]:
    """Return how many crops each stage takes in all: a crop shows one object."""
    out = Counter(of_picture)
    if pipeline is not None:
        for stage in pipeline.stages[1:]:
            out[stage.name] += sum(out[each] for each in stage.after)
    return out
