"""GET /v1/pipelines: the pipelines that cameras may run through. http-api.md."""

from typing import Any

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.cascades import Cascade
from edgebox.domain.pipelines import CROPS_MAX, CropOrder, Pipeline, PipelineStage
from edgebox.runtime.box import Box
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    Schema,
    array,
    described,
    nullable,
    one_of,
    record,
    tuple_of,
)
from edgebox.web.web_context import WebContext


async def _pipelines(context: WebContext, request: web.Request) -> web.Response:
    models = context.box.models
    pipelines = [_pipeline(context.box, each) for each in models.pipelines.values()]
    return json_response({"default": models.default_pipeline, "pipelines": pipelines})


def _pipeline(box: Box, pipeline: Pipeline) -> dict[str, Any]:
    records = (record for record in box.cameras.values() if record.connected)
    return {
        "name": pipeline.name,
        "cameras": sum(record.camera.pipeline == pipeline for record in records),
        "stages": [_stage(box, stage) for stage in pipeline.stages],
    }


def _stage(box: Box, stage: PipelineStage) -> dict[str, Any]:
    return {
        "name": stage.name,
        "family": stage.family,
        "task": box.families[stage.family].task,
        "after": stage.after,
        "labels": stage.labels,
        "score_min": stage.score_min,
        "side_min_px": stage.side_min_px,
        "region": stage.region,
        "margin": stage.margin,
        "crops_max": stage.crops_max,
        "order": stage.order,
        "variant": stage.variant,
        "once_per_track": stage.once_per_track,
        "cascade": _cascade(stage.cascade),
    }


def _cascade(cascade: Cascade | None) -> dict[str, Any] | None:
    if cascade is None:
        return None
    share, threshold = cascade.share, cascade.threshold
    if threshold is not None:
        share = round(cascade.curve.at_threshold(threshold).share, 4)
    elif share is not None:
        threshold = cascade.curve.at_share(share).threshold
    return {
        "name": cascade.name,
        "small": cascade.small,
        "large": cascade.large,
        "continues": cascade.continues,
        "threshold": threshold,
        "share": share,
    }


_STAGE = Schema(
    "PipelineStage",
    record(
        name=TEXT,
        family=TEXT,
        task=TEXT,
        after=described(array(TEXT), "The stages whose objects it is given; none: whole pictures"),
        labels=described(array(TEXT), "Classes of the objects that it is given; none: all"),
        score_min=SHARE,
        side_min_px=COUNT,
        region=described(
            nullable(tuple_of(SHARE, SHARE, SHARE, SHARE)),
            "Left, top, right and bottom as shares of the picture's sides; null: all of it",
        ),
        margin=NUMBER,
        crops_max=described(COUNT, f"At most {CROPS_MAX}"),
        order=one_of(*CropOrder),
        variant=described(nullable(TEXT), "The largest variant it runs on; null: any"),
        once_per_track=described(
            BOOLEAN, "Whether a tracked object is given to it once, and again if its crop is better"
        ),
        cascade=described(
            nullable(
                record(
                    name=TEXT,
                    small=TEXT,
                    large=TEXT,
                    continues=described(
                        BOOLEAN, "Whether it is given features of the first stage, not the picture"
                    ),
                    threshold=described(nullable(SHARE), "null: the plan sets it"),
                    share=described(nullable(SHARE), "The share of the pictures sent on by it"),
                )
            ),
            "Of a stage that is given the whole pictures that the first one is unsure about",
        ),
    ),
)
_PIPELINE = Schema(
    "Pipeline",
    record(
        name=TEXT,
        cameras=described(COUNT, "Connected cameras that run through it"),
        stages=described(array(_STAGE), "The first one first, each after those it comes after"),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/pipelines",
        answer=_pipelines,
        scope=Scope.VIEWER,
        summary="Pipelines of models that cameras may run through",
        answers=(
            Answer(
                "The pipelines; none before the box is ready.",
                record(
                    default=described(
                        nullable(TEXT), "For cameras that name neither a pipeline nor a family"
                    ),
                    pipelines=array(_PIPELINE),
                ),
            ),
        ),
    ),
)
