"""Owns the parts of a scenario file about pipelines and the objects that cameras see.

Pure. Every error is one line that names file, line and key.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from edgebox.domain.cascades import Cascade, CascadeCurve, CascadeName, CascadePoint, Decider
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import FieldReader
from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.pipelines import CROPS_MAX, Pipeline, PipelineName, PipelineStage, StageName
from edgebox.simulation.objects import ObjectCounts, constant, parse_object_counts

_PLAIN = PipelineStage(StageName(""), FamilyName(""))


def read_pipelines(
    top: FieldReader,
    families: Collection[FamilyName] | None,
    variants: Collection[Variant] | None,
) -> dict[str, Pipeline]:
    """Return the pipelines by name.

    Args:
        top: the scenario.
        families: there are; None: not known yet.
        variants: there are; None: not known yet.

    Raises:
        InvalidInputError: the first mistake, with file, line and key.
    """
    found: dict[str, Pipeline] = {}
    for entry in top.objects("pipelines", default=[]):
        name = entry.nonempty("name")
        if name in found:
            raise entry.wrong("name", f"there are two pipelines named {name!r}")
        entries = entry.objects("stages", default=[])
        stages = [_stage(each, families, variants) for each in entries]
        try:
            found[name] = Pipeline(PipelineName(name), tuple(stages))
        except InvalidInputError as error:
            raise entry.wrong("stages", str(error)) from None
        last = found[name].cascade_stage
        if last is not None and last.cascade is not None:
            small = last.cascade.small
            if found[name].first.variant != small:
                raise entry.wrong("stages", f"the first one must have the variant {small!r}")
        entry.refuse_unknown()
    return found


def _stage(
    entry: FieldReader,
    families: Collection[FamilyName] | None,
    variants: Collection[Variant] | None,
) -> PipelineStage:
    family = entry.nonempty("family")
    if families is not None and family not in families:
        raise entry.wrong("family", f"there is no variant of a family named {family!r}")
    variant = entry.nonempty("variant", "") if "variant" in entry else ""
    if variant and variants is not None and variant not in {each.name for each in variants}:
        raise entry.wrong("variant", f"there is no variant named {variant!r}")
    stage = PipelineStage(
        name=StageName(entry.nonempty("name")),
        family=FamilyName(family),
        after=tuple(map(StageName, entry.texts("after"))) if "after" in entry else (),
        labels=tuple(entry.texts("labels")) if "labels" in entry else (),
        crops_max=entry.integer("crops_max", 1, CROPS_MAX, _PLAIN.crops_max),
        variant=VariantName(variant) if variant else None,
        cascade=_cascade(entry, VariantName(variant), variants),
    )
    entry.refuse_unknown()
    return stage


def _cascade(
    entry: FieldReader, variant: VariantName, variants: Collection[Variant] | None
) -> Cascade | None:
    """Return a stage's cascade, whose large model is the stage's variant; None: it has none."""
    if "small" not in entry:
        return None
    small = entry.nonempty("small")
    known = {each.name: each for each in variants or ()}
    for name, key in ((small, "small"), (variant, "variant")):
        if name not in known:
            raise entry.wrong(key, "must name a variant of this file where a stage has a cascade")
    rows = entry.items("curve", default=[])
    if not all(isinstance(row, list) and len(row) == 3 for row in rows):
        raise entry.wrong("curve", "must be a list of [threshold, share, loss]")
    points = []
    for at, row in enumerate(rows):
        numbers = FieldReader((*entry.path, "curve"), {str(at): row}).numbers(
            str(at), 0, 1, length=3
        )
        points.append(CascadePoint(*numbers))
    try:
        curve = CascadeCurve(tuple(points))
    except InvalidInputError as error:
        raise entry.wrong("curve", str(error)) from None
    if "share" in entry and "threshold" in entry:
        raise entry.wrong("share", "excludes threshold; without both, the plan chooses the share")
    large = known[variant]
    return Cascade(
        CascadeName(entry.nonempty("name")),
        VariantName(small),
        variant,
        (large.width_px, large.height_px),
        Decider((), 0.0),
        0.0,
        curve,
        entry.number("threshold", 0, 1) if "threshold" in entry else None,
        entry.number("share", 0, 1) if "share" in entry else None,
    )


def read_pipeline_of(entry: FieldReader, pipelines: Mapping[str, Pipeline]) -> Pipeline | None:
    """Return the pipeline that a camera names; None: it names none."""
    if "pipeline" not in entry:
        return None
    name = entry.nonempty("pipeline")
    if name not in pipelines:
        raise entry.wrong("pipeline", f"there is no pipeline named {name!r}")
    return pipelines[name]


def read_objects(entry: FieldReader, read: Callable[[str], str]) -> ObjectCounts | None:
    """Return what a camera's pictures show; None: nothing that a stage takes."""
    if "objects" not in entry:
        return None
    if not isinstance(entry.raw("objects"), str):
        return constant(entry.integer("objects", 0, 100_000))
    file = entry.nonempty("objects")
    video = entry.nonempty("objects_video") if "objects_video" in entry else None
    start_s = entry.number("objects_start_s", 0, 1e6, 0.0)
    return replace(parse_object_counts(read(file), file, video), start_ns=round(start_s * 1e9))


def read_object_sides(entry: FieldReader) -> tuple[float, ...]:
    """Return the sides of a camera's objects, as shares of the picture's; empty: not given."""
    if "object_sides" not in entry:
        return ()
    return tuple(entry.numbers("object_sides", 0.001, 1))
