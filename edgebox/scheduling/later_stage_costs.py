"""Tells planning what the later stages of a camera's pipeline cost and gain. Pure.

For each later stage whose crops are known: how many a frame has, how large their objects are, and
what each variant would take of the executors' time. Planning chooses among the variants of a family
only if each of them has its accuracy by the side of the object. Otherwise nothing says what a
smaller one costs, and crops run on the stage's largest variant.
"""

from collections.abc import Iterable

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import PipelineStage
from edgebox.domain.plans import LaterStage, LaterVariant, PlannedCascade
from edgebox.domain.requests import Camera
from edgebox.scheduling.crop_sides import CropSides
from edgebox.scheduling.fan_out import FanOut
from edgebox.scheduling.ladders import Ladders


def later_stages(
    camera: Camera, ladders: Ladders, fan_out: FanOut, sides: CropSides
) -> tuple[LaterStage, ...]:
    """Return the later stages of a camera's pipeline whose crops are known."""
    if camera.pipeline is None:
        return ()
    stages = (_stage(camera, each, ladders, fan_out, sides) for each in camera.pipeline.stages[1:])
    return tuple(stage for stage in stages if stage is not None)


def planned_cascade(camera: Camera, ladders: Ladders, fan_out: FanOut) -> PlannedCascade | None:
    """Return a camera's cascade if planning chooses its share and both its models are loaded."""
    cascade = camera.cascade
    if cascade is None or not cascade.planned:
        return None
    large = ladders.named(cascade.large)
    if large is None or ladders.stand_in(large) is not large:
        return None
    return PlannedCascade(
        cascade.small,
        large,
        fan_out.curve(camera.id, cascade),
        fan_out.picture_s(cascade.large),
        fan_out.cascade_reserved(camera.id),
    )


def other_later_s(
    camera: Camera, known: Iterable[LaterStage], cascade: PlannedCascade | None, fan_out: FanOut
) -> tuple[tuple[FamilyName, float], ...]:
    """Return the executors' time for one frame of each later stage with nothing to choose.

    Args:
        camera: with a pipeline or without one.
        known: its later stages whose crops are known.
        cascade: what planning chooses of its cascade; None: nothing.
        fan_out: what later stages take.
    """
    counted = {stage.name for stage in known}
    found = (
        (stage.family, fan_out.present_s(camera, stage))
        for stage in (camera.pipeline.stages[1:] if camera.pipeline is not None else ())
        if stage.name not in counted and (cascade is None or stage.cascade is None)
    )
    return tuple((family, taken_s) for family, taken_s in found if taken_s > 0)


def _stage(
    camera: Camera, stage: PipelineStage, ladders: Ladders, fan_out: FanOut, sides: CropSides
) -> LaterStage | None:
    top, current = fan_out.top_variant(stage), fan_out.variant_of(camera, stage)
    crops, known = fan_out.mean_crops(camera.id, stage.name), sides.quantiles(camera.id, stage.name)
    if top is None or current is None or crops <= 0 or not known or stage.cascade is not None:
        return None
    ladder = ladders.of(stage.family)
    at = next(at for at, variant in enumerate(ladder) if variant.name == top)
    allowed = ladder[: at + 1]
    if not all(variant.accuracy_by_side for variant in allowed):
        allowed = allowed[-1:]
    variants = tuple(
        LaterVariant(each, fan_out.executor_s(camera, stage, each.name)) for each in allowed
    )
    return LaterStage(stage.name, crops, known, variants, current)
