"""A camera with a pipeline on a small box, and crops of its frames."""

from collections.abc import Iterable
from dataclasses import replace

from edgebox.domain.cascades import Cascade
from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.domain.requests import Camera, FrameId, Request, RequestId
from tests.scheduling.scene import MS, STREET, camera

FIND, READ, CHECK = StageName("find"), StageName("read"), StageName("check")


def stage(
    name: str,
    *after: str,
    variant: VariantName | None = None,
    cascade: Cascade | None = None,
) -> PipelineStage:
    after_names = tuple(map(StageName, after))
    return PipelineStage(StageName(name), STREET, after_names, variant=variant, cascade=cascade)


def pipeline(*stages: PipelineStage) -> Pipeline:
    return Pipeline(PipelineName("gates"), stages)


CHAIN = pipeline(stage("find"), stage("read", "find"), stage("check", "read"))


def camera_with(of: Pipeline | None, slo_ms: int = 300) -> Camera:
    return replace(camera(slo_ms=slo_ms), pipeline=of)


def crops(
    frame: Request, stage: StageName, ids: Iterable[int], at_ms: float
) -> tuple[Request, ...]:
    """Return crops of a frame, cut at this instant."""
    return tuple(
        replace(
            frame,
            id=RequestId(number),
            arrival_ns=round(at_ms * MS),
            width_px=64,
            height_px=64,
            frame=FrameId(frame.id),
            stage=stage,
        )
        for number in ids
    )
