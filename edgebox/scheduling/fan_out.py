"""Owns how many crops each stage of a pipeline gets, and what the rest of a pipeline takes. Pure.

The time that a frame still needs after a stage depends on how many objects that stage will find.
That number is learned for each camera and stage from its last frames. A stage's own deadline is the
frame's, less a high quantile of the remaining path: so a frame that has waited until its crops can
no longer be answered is dropped before its first stage runs, not after it (as in PARD, Park et al.
2026).
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from edgebox.domain.cascades import Cascade, CascadeCurve
from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import PipelineStage, StageName
from edgebox.domain.plans import Assignment
from edgebox.domain.requests import Camera, CameraId, Request, UtilityStep
from edgebox.scheduling.calibration import RecentValues
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.expected_latencies import Row
from edgebox.scheduling.ladders import Ladders

FAN_OUT_WINDOW = 64
"""Frames of a camera over which the crops of a stage are counted.

With a quarter of them 6 % fewer objects are answered under overload; four times as many change
nothing (`benchmarks.pipelines --ablation`).
"""
FAN_OUT_QUANTILE = 0.9
"""The quantile of the crops that time is reserved for. Where frames with few objects are refused
under overload, the median answers as many objects."""


class FanOut:
    """The crops per frame of every camera's stages, and the times of remaining paths."""

    def __init__(self, ladders: Ladders, times: ExecutionTimes) -> None:
        self._ladders = ladders
        self._times = times
        self._crops: dict[CameraId, dict[StageName, RecentValues]] = {}
        self._proven: dict[CameraId, dict[StageName, RecentValues]] = {}
        """The same, from none on."""
        self._planned: dict[CameraId, Mapping[StageName, VariantName]] = {}
        self._cascade_shares: dict[CameraId, float] = {}
        self._cascade_reserved: dict[CameraId, float] = {}
        self._curves: dict[CameraId, CascadeCurve] = {}
        """The measured curves of cameras' cascades."""

    def observe(self, camera: Camera, crops: Mapping[StageName, int], *, cut: bool = True) -> None:
        """Note how many crops a frame had for each stage; a stage that is not listed had none.

        Args:
            camera: whose frame it was.
            crops: by stage.
            cut: whether its objects were cut; else only the cascade's stage was given something.
        """
        if camera.pipeline is None:
            return
        of = self._crops.setdefault(camera.id, {})
        proven = self._proven.setdefault(camera.id, {})
        for stage in camera.pipeline.stages[1:]:
            if not cut and stage.cascade is None:
                continue
            recent = of.get(stage.name)
            if recent is None:
                # What its first frame showed is the best guess: none would be one too small.
                recent = of[stage.name] = RecentValues(FAN_OUT_WINDOW, crops.get(stage.name, 0))
                proven[stage.name] = RecentValues(FAN_OUT_WINDOW, 0)
            recent.add(crops.get(stage.name, 0))
            proven[stage.name].add(crops.get(stage.name, 0))

    def forget(self, camera: CameraId) -> None:
        """Forget a camera."""
        self._crops.pop(camera, None)
        self._proven.pop(camera, None)
        self._planned.pop(camera, None)
        self._cascade_shares.pop(camera, None)
        self._cascade_reserved.pop(camera, None)
        self._curves.pop(camera, None)

    def planned(self, camera: CameraId, given: Assignment) -> None:
        """Set what a plan gives a camera's later stages; others have their largest variant."""
        self._planned[camera] = dict(given.later)
        self._cascade_shares[camera] = given.cascade_share or 0.0
        self._cascade_reserved[camera] = given.cascade_reserved or 0.0

    def cascade_share(self, camera: CameraId) -> float:
        """Return the share of a camera's pictures that its plan lets its cascade send on."""
        return self._cascade_shares.get(camera, 0.0)

    def cascade_reserved(self, camera: CameraId) -> float:
        """Return what first stages leave time for of that share."""
        return self._cascade_reserved.get(camera, 0.0)

    def cascade_measured(self, camera: CameraId, curve: CascadeCurve) -> None:
        """Note what the curve of a camera's cascade is for its last pictures."""
        self._curves[camera] = curve

    def curve(self, camera: CameraId, cascade: Cascade) -> CascadeCurve:
        """Return the curve of a camera's cascade: as measured, else as fitted."""
        return self._curves.get(camera, cascade.curve)

    def crops(self, camera: CameraId, stage: StageName) -> float:
        """Return the high quantile of the crops of a frame for a stage."""
        recent = self._crops.get(camera, {}).get(stage)
        return 0.0 if recent is None else recent.quantile(FAN_OUT_QUANTILE)

    def proven_crops(self, camera: CameraId, stage: StageName) -> float:
        """Return the mean number of crops of the last frames; those that never came had none.

        So a camera with few answered frames has fewer crops than it shows. Where cameras compete
        for an overloaded box, it does not displace others until it has shown objects for a while.
        """
        recent = self._proven.get(camera, {}).get(stage)
        return 0.0 if recent is None else recent.mean

    def mean_crops(self, camera: CameraId, stage: StageName) -> float:
        """Return the mean number of crops of a frame for a stage."""
        recent = self._crops.get(camera, {}).get(stage)
        return 0.0 if recent is None else recent.mean

    def top_variant(self, stage: PipelineStage) -> VariantName | None:
        """Return the largest loaded variant that a stage may run on; None: none is loaded.

        Where all that are loaded are larger than the stage's own, it is the smallest of them.
        """
        ladder = self._ladders.of(stage.family)
        own = None if stage.variant is None else self._ladders.named(stage.variant)
        top = self._ladders.stand_in(own or ladder[-1]) if ladder else None
        return None if top is None else top.name

    def variant_of(self, camera: Camera, stage: PipelineStage) -> VariantName | None:
        """Return the largest variant that a camera's crops run on; None: none is loaded.

        That is the planned one, if it is loaded and no larger than the stage's own.
        """
        top = self.top_variant(stage)
        planned = self._planned.get(camera.id, {}).get(stage.name)
        for variant in self._ladders.of(stage.family):
            if variant.name in (planned, top):
                return variant.name
        return top

    def after_first_ns(self, camera: Camera) -> int:
        """Return the time that the stages after the first usually take."""
        pipeline = camera.pipeline
        return 0 if pipeline is None else self.remaining_ns(camera, pipeline.first.name)

    def remaining_ns(self, camera: Camera, stage: StageName) -> int:
        """Return the time that the stages after this one usually take, on its longest path.

        Each takes the usual time of the fewest batches that hold the high quantile of its crops, on
        the fastest executor, and the time to cut crops before it. Nothing is kept for the large
        model of a cascade, because frames are answered without it, too.
        """
        if camera.pipeline is None:
            return 0
        return max(
            (
                self._stage_ns(camera, after)
                for after in camera.pipeline.next_stages(stage)
                if after.cascade is None and self.crops(camera.id, after.name) > 0
            ),
            default=0,
        )

    def present_s(self, camera: Camera, stage: PipelineStage) -> float:
        """Return the mean time of executors that a later stage takes for one frame, in seconds.

        Its crops of a frame are counted as one run of batches.
        """
        if stage.cascade is not None and stage.cascade.planned:
            return self.cascade_share(camera.id) * self.picture_s(stage.cascade.large)
        return self.executor_s(camera, stage, self.variant_of(camera, stage))

    def executor_s(
        self, camera: Camera, stage: PipelineStage, variant: VariantName | None
    ) -> float:
        """Return the time of executors that a stage takes for one frame, in seconds.

        Args:
            camera: whose frames they are.
            stage: one of its later stages.
            variant: that its crops run on; None: none.
        """
        crops, row = self.mean_crops(camera.id, stage.name), self._row(variant)
        if row is None or crops <= 0:
            return 0.0
        at = bisect_left(row.sizes, min(ceil(crops), row.sizes[-1]))
        return crops * row.median_ns[at] / min(crops, row.sizes[at]) / 1e9

    def picture_s(self, variant: VariantName) -> float:
        """Return the time of executors that a variant takes for one picture alone, in seconds."""
        row = self._row(variant)
        return 0.0 if row is None else row.median_ns[0] / row.sizes[0] / 1e9

    def _row(self, variant: VariantName | None) -> Row | None:
        return None if variant is None else self._times.latencies.best(variant)

    def _stage_ns(self, camera: Camera, stage: PipelineStage) -> int:
        row = self._row(self.variant_of(camera, stage))
        if row is None:
            return 0
        full, rest = divmod(round(self.crops(camera.id, stage.name)), row.sizes[-1])
        took_ns = full * row.median_ns[-1]
        if rest:
            took_ns += row.median_ns[bisect_left(row.sizes, rest)]
        return took_ns + self._times.calibration.fixed_ns + self.remaining_ns(camera, stage.name)


def with_reserve(request: Request, reserve_ns: int) -> Request:
    """Return a request whose deadlines are earlier by the time that later stages need."""
    if reserve_ns <= 0:
        return request
    steps = tuple(UtilityStep(step.by_ns - reserve_ns, step.utility) for step in request.steps)
    return replace(request, deadline_ns=request.deadline_ns - reserve_ns, steps=steps)
