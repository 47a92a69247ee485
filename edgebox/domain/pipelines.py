"""Pipelines: stages of models, each on crops of what an earlier stage found. Pure data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import NewType

from edgebox.domain.cascades import Cascade
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import FamilyName, VariantName

PipelineName = NewType("PipelineName", str)
StageName = NewType("StageName", str)

CROPS_MAX = 64
"""The most crops that one frame may send to one stage."""


class CropOrder(StrEnum):
    """Which objects are preferred where a frame has more than a stage takes."""

    SCORE = "score"
    """The most certain ones."""
    AREA = "area"
    """The largest ones."""


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One stage: a model family and the objects that it is given.

    The first stage of a pipeline takes whole pictures; `after` is empty. Every other stage takes a
    crop for each object that one of the stages in `after` found and that passes its filters, or,
    with a cascade, some pictures once more.
    """

    name: StageName
    family: FamilyName
    after: tuple[StageName, ...] = ()
    labels: tuple[str, ...] = ()
    """Classes of the objects that it takes; empty: all."""
    score_min: float = 0.25
    """Objects that score less are not taken."""
    side_min_px: int = 8
    """Objects whose shorter side has fewer pixels in the picture as sent are not taken."""
    region: tuple[float, float, float, float] | None = None
    """(left, top, right, bottom), each in [0, 1] of the picture's sides: only objects whose centre
    is inside are taken; None: the whole picture."""
    margin: float = 0.1
    """Added to the crop at each side, as a share of the object's own side."""
    crops_max: int = 16
    """Objects taken of one frame, in all answers of earlier stages together."""
    order: CropOrder = CropOrder.SCORE
    """Which objects are taken where there are more."""
    variant: VariantName | None = None
    """The largest variant it runs on; None: the largest of its family."""
    once_per_track: bool = False
    """Whether a tracked object is taken once, and again when its crop is better."""
    cascade: Cascade | None = None
    """It takes whole pictures that the first stage is unsure about, and what it finds takes the
    place of what that one found; None: it takes crops of objects."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A directed acyclic graph of stages with one first stage.

    Raises:
        InvalidInputError: the graph is none: no stage, a name twice, an unknown name in `after`,
            a cycle, or more than one first stage; or a cascade is at a place where it cannot be.
    """

    name: PipelineName
    stages: tuple[PipelineStage, ...]
    """The first stage first, every other one after all in its `after`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", _in_order(self.name, self.stages))
        _check_cascade(self.name, self.stages)

    @property
    def first(self) -> PipelineStage:
        """The stage that takes whole pictures."""
        return self.stages[0]

    @property
    def cascade_stage(self) -> PipelineStage | None:
        """The stage whose objects take the place of the first one's; None: there is none."""
        return next((stage for stage in self.stages if stage.cascade is not None), None)

    @property
    def cascade(self) -> Cascade | None:
        """The cascade of one of its stages; None: there is none."""
        stage = self.cascade_stage
        return None if stage is None else stage.cascade

    @property
    def last_stages(self) -> tuple[StageName, ...]:
        """The stages that no other comes after."""
        return tuple(stage.name for stage in self.stages if not self.next_stages(stage.name))

    def stage(self, name: StageName | None) -> PipelineStage | None:
        """Return a stage; None: there is none of this name."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def next_stages(self, name: StageName) -> tuple[PipelineStage, ...]:
        """Return the stages that take the objects of a stage."""
        return tuple(stage for stage in self.stages if name in stage.after)


def _check_cascade(name: PipelineName, stages: Sequence[PipelineStage]) -> None:
    """Check that the objects of one of two stages are those that all others are given."""
    found = [stage for stage in stages if stage.cascade is not None]
    if not found:
        return
    first, cascade = stages[0], found[0]
    if len(found) > 1:
        raise InvalidInputError(
            f"pipeline {name!r} has several stages with a cascade "
            f"({', '.join(stage.name for stage in found)}); it can have one"
        )
    if cascade.after != (first.name,):
        raise InvalidInputError(
            f"stage {cascade.name!r} of pipeline {name!r} has a cascade, so it must come after "
            f"{first.name!r} only, which is given whole pictures"
        )
    for stage in stages:
        both = {first.name, cascade.name}
        if stage != cascade and len(both & set(stage.after)) == 1:
            raise InvalidInputError(
                f"stage {stage.name!r} of pipeline {name!r} must come after both "
                f"{first.name!r} and {cascade.name!r}: an answer has the objects of one of them"
            )


def _in_order(name: PipelineName, stages: Sequence[PipelineStage]) -> tuple[PipelineStage, ...]:
    """Return the stages in topological order; stages that are not ordered stay as they were."""
    if not stages:
        raise InvalidInputError(f"pipeline {name!r} has no stages")
    known: dict[StageName, PipelineStage] = {}
    for stage in stages:
        if stage.name in known:
            raise InvalidInputError(f"pipeline {name!r} has two stages {stage.name!r}")
        known[stage.name] = stage
    for stage in stages:
        for earlier in stage.after:
            if earlier not in known:
                raise InvalidInputError(
                    f"stage {stage.name!r} of pipeline {name!r} comes after {earlier!r}, which is "
                    f"none of its stages ({', '.join(known)})"
                )
    try:
        order = list(TopologicalSorter({s.name: s.after for s in stages}).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise InvalidInputError(f"the stages of pipeline {name!r} form a cycle: {circle}") from None
    first = [stage.name for stage in stages if not stage.after]
    if len(first) > 1:
        raise InvalidInputError(
            f"pipeline {name!r} has several stages that take whole pictures "
            f"({', '.join(first)}); all but one must come after another"
        )
    return tuple(known[each] for each in order)
