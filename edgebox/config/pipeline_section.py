"""The section that declares pipelines: which models look at what other models found.

Limits: which families, labels and variants there are is known only when these are loaded;
`app.configured_pipelines` checks that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgebox.config.keys import key, nearest, repeated
from edgebox.domain.cascades import Cascade
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import (
    CROPS_MAX,
    CropOrder,
    Pipeline,
    PipelineName,
    PipelineStage,
    StageName,
)
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED

_STAGE = PipelineStage(StageName(""), FamilyName(""))
_OF_CROPS = (
    "labels", "score_min", "side_min_px", "region", "margin", "crops_max", "order",
    "once_per_track",
)  # fmt: skip
"""Keys that say which objects a stage is given, and how they are cut out."""


@dataclass(frozen=True, slots=True)
class StageParameters:
    """One stage of a pipeline: a model family and the objects that it is given."""

    name: str = key(
        "",
        "Name of the stage, as results have it",
        pattern=NAME_PATTERN.pattern,
        wanted=NAME_WANTED,
    )
    family: str = key("", "Its model family")
    after: tuple[str, ...] = key(
        (),
        "The stages whose objects it is given, each as a crop; empty: it is the first stage, which "
        "is given whole pictures",
    )
    labels: tuple[str, ...] = key((), "Classes of the objects that it is given; empty: all")
    score_min: float = key(
        _STAGE.score_min, "Objects that score less are not given to it", low=0, high=1
    )
    side_min_px: int = key(
        _STAGE.side_min_px,
        "Objects whose shorter side has fewer pixels in the picture as sent are not given to it",
        low=1,
        high=65535,
    )
    region: tuple[float, ...] = key(
        (),
        "Left, top, right and bottom, each as a share of the picture's sides: only objects whose "
        "centre is inside are given to it; empty: the whole picture",
        of=float,
        low=0,
        high=1,
    )
    margin: float = key(
        _STAGE.margin,
        "Added to a crop at each side, as a share of the object's own side",
        low=0,
        high=1,
    )
    crops_max: int = key(
        _STAGE.crops_max, "Objects of one frame that are given to it", low=1, high=CROPS_MAX
    )
    order: str = key(
        str(_STAGE.order),
        "Which objects are given to it where there are more: the most certain, or the largest",
        choices=tuple(CropOrder),
    )
    variant: str = key(
        "", "The largest variant it runs on; empty: the largest of its family", may_be_empty=True
    )
    once_per_track: bool = key(
        _STAGE.once_per_track,
        "Whether an object of a tracked camera is given to it once, and again when its crop "
        "is better, until the answer is certain; results have what it said before",
    )

    cascade: str = key(
        "",
        "A cascade of `edgebox models cascade`: the stage is given the whole pictures that the "
        "first stage is unsure about, and what it finds takes the place of what that one found; "
        "empty: it is given crops",
        pattern=f"({NAME_PATTERN.pattern})?",
        wanted=f"{NAME_WANTED}, or empty",
        may_be_empty=True,
    )
    share: float = key(
        0.0,
        "With a cascade: the share of the pictures that is to be sent on to it, as measured when "
        "it was fitted; 0: by `threshold`, or as the plan chooses",
        low=0,
        high=1,
    )
    threshold: float = key(
        0.0,
        "With a cascade: pictures whose expected loss is greater are sent on; 0: by "
        "`share`, or as the plan chooses: as many as the executors have time for, where they gain "
        "most",
        low=0,
        high=1,
    )

    def stage(self, cascade: Cascade | None = None) -> PipelineStage:
        """Return the stage that this declares, with its cascade if that is known."""
        left, top, right, bottom = self.region or (0.0, 0.0, 1.0, 1.0)
        return PipelineStage(
            name=StageName(self.name),
            family=FamilyName(self.family),
            after=tuple(map(StageName, self.after)),
            labels=self.labels,
            score_min=self.score_min,
            side_min_px=self.side_min_px,
            region=(left, top, right, bottom) if self.region else None,
            margin=self.margin,
            crops_max=self.crops_max,
            order=CropOrder(self.order),
            variant=VariantName(self.variant) if self.variant else None,
            once_per_track=self.once_per_track,
            cascade=cascade,
        )


@dataclass(frozen=True, slots=True)
class PipelineParameters:
    """A pipeline: the first stage is given whole pictures, each other one crops of objects."""

    name: str = key(
        "",
        "Name of the pipeline, as cameras name it",
        pattern=NAME_PATTERN.pattern,
        wanted=NAME_WANTED,
    )
    stages: tuple[StageParameters, ...] = repeated(StageParameters)


def contradictions(pipelines: Sequence[PipelineParameters], default: str) -> Iterator[str]:
    """Yield what is wrong although each key alone is right, as far as no model tells it."""
    names: set[str] = set()
    for number, table in enumerate(pipelines):
        path = f"pipelines[{number}]"
        if not table.name:
            yield f"{path}.name: is needed"
        elif table.name in names:
            yield f'{path}.name: another pipeline is called "{table.name}", too'
        names.add(table.name)
        problems = [*_of_stages(path, table.stages)]
        yield from problems
        if not problems:
            try:
                Pipeline(PipelineName(table.name), tuple(s.stage() for s in table.stages))
            except InvalidInputError as error:
                yield f"{path}.stages: {error}"
    if default and default not in names:
        what = nearest(default, sorted(names))
        yield f'inference.pipeline: there is no pipeline "{default}"{what}'


def _of_stages(path: str, stages: Sequence[StageParameters]) -> Iterator[str]:
    names: set[str] = set()
    known = [stage.name for stage in stages]
    for number, stage in enumerate(stages):
        where = f"{path}.stages[{number}]"
        for name in ("name", "family"):
            if not getattr(stage, name):
                yield f"{where}.{name}: is needed"
        if stage.name and stage.name in names:
            yield f'{where}.name: another stage of this pipeline is called "{stage.name}", too'
        names.add(stage.name)
        for other in known:
            if other and stage.name.startswith(f"{other}."):
                yield (
                    f"{where}.name: must not begin with the name of another stage and a dot, "
                    f'"{other}.": /v2 names outputs in this way'
                )
        for earlier in stage.after:
            if earlier not in known:
                yield f'{where}.after: there is no stage "{earlier}"{nearest(earlier, known)}'
        for twice in sorted({each for each in stage.after if stage.after.count(each) > 1}):
            yield f'{where}.after: "{twice}" is there twice'
        first = [each.name for each in stages if not each.after]
        if stage.once_per_track and list(stage.after) != first:
            yield (
                f"{where}.once_per_track: only objects of the first stage are tracked; leave it "
                "out, or let the stage come after that one alone"
            )
        yield from (f"{where}.{each}" for each in _of_cascade(stage))
        if stage.region and not _is_region(stage.region):
            yield (
                f"{where}.region: must be left, top, right and bottom with left below right and "
                f"top below bottom, not {list(stage.region)}"
            )


def _of_cascade(stage: StageParameters) -> Iterator[str]:
    """Yield what is wrong with a stage's keys about cascades: key, colon, reason."""
    if not stage.cascade:
        for name in ("share", "threshold"):
            if getattr(stage, name):
                yield f"{name}: is of a cascade; name it with cascade, or leave this out"
        return
    if not stage.after:
        yield "cascade: the first stage is the cascade's small model; give it to the stage after it"
    if stage.share and stage.threshold:
        yield (
            "cascade: share and threshold exclude each other; without both, the plan chooses how "
            "many pictures are sent on"
        )
    defaults = StageParameters()
    for name in _OF_CROPS:
        if getattr(stage, name) != getattr(defaults, name):
            yield f"{name}: a stage with a cascade is given whole pictures; leave it out"


def _is_region(numbers: Sequence[float]) -> bool:
    if len(numbers) != 4:
        return False
    left, top, right, bottom = numbers
    return left < right and top < bottom
