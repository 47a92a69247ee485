"""Metrics of the crops that later stages of pipelines take, for Prometheus."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from prometheus_client.core import CounterMetricFamily, Metric

from edgebox.domain.requests import CameraId
from edgebox.runtime.frame_metrics import CameraMetrics, CropCounts


@dataclass(frozen=True, slots=True)
class CropNumbers:
    """A copy of one camera's figures."""

    camera: str
    stages: Mapping[str, CropCounts]
    partial: int
    """Answers without some stage for some object."""
    cascade: Mapping[str, int]
    """Answers by what their cascade did."""

    @classmethod
    def of(cls, camera: CameraId, metrics: CameraMetrics) -> Self:
        """Copy the figures of a camera."""
        stages = {str(stage): counts.copy() for stage, counts in metrics.crops.items()}
        return cls(camera, stages, metrics.partial, metrics.cascade.copy())


def crop_families(cameras: Sequence[CropNumbers]) -> Iterator[Metric]:
    """Yield the metrics of cameras; those without a pipeline have no crops."""
    crops = CounterMetricFamily(
        "edgebox_crops",
        "Crops of frames for later stages of a pipeline: answered, or dropped for a reason.",
        labels=["camera", "stage", "outcome", "reason"],
    )
    partial = CounterMetricFamily(
        "edgebox_frames_partial",
        "Answers without some stage of the pipeline for some object.",
        labels=["camera"],
    )
    remembered = CounterMetricFamily(
        "edgebox_objects_remembered",
        "Objects that a stage was not asked about again, because it knew their track.",
        labels=["camera", "stage"],
    )
    cascade = CounterMetricFamily(
        "edgebox_cascade_answers",
        "Answers of cascades: kept (the small model was sure enough), sent_on (of the large model) "
        "or missed (of the small model, the large one being too late).",
        labels=["camera", "outcome"],
    )
    for of in cameras:
        for outcome, count in sorted(of.cascade.items()):
            cascade.add_metric([of.camera, outcome], count)
        partial.add_metric([of.camera], of.partial)
        for stage, counts in of.stages.items():
            crops.add_metric([of.camera, stage, "answered", ""], counts.answered)
            for reason, count in sorted(counts.dropped.items()):
                crops.add_metric([of.camera, stage, "dropped", reason], count)
            if counts.remembered:
                remembered.add_metric([of.camera, stage], counts.remembered)
    yield from (crops, partial, remembered, cascade)
