"""Says what of a running box uses a family, so that it stays."""

from collections.abc import Sequence

from edgebox.domain.job_errors import FamilyInUseError
from edgebox.domain.pipelines import Pipeline
from edgebox.runtime.box import Box


def check_box_without(box: Box, name: str) -> None:
    """Check that no pipeline and no camera of a box uses a family.

    Raises:
        FamilyInUseError: one does.
    """
    if pipeline := _pipeline(box, name):
        raise FamilyInUseError(f"{pipeline} uses {name}")
    if using := _cameras(box, name):
        raise FamilyInUseError(
            f"{name} is used by {_shortened(using)}; give these cameras another model first, or "
            "disconnect them"
        )


def used_by(box: Box, name: str) -> str:
    """Return which pipeline or cameras of a box use a family; empty: none does."""
    if pipeline := _pipeline(box, name):
        return pipeline
    using = _cameras(box, name)
    return "".join(using) if len(using) < 2 else f"each of {_shortened(using)}"


def _pipeline(box: Box, name: str) -> str:
    """Return the first pipeline that uses a family; empty: none does."""
    having = (each for each in box.models.pipelines.values() if _has(each, name))
    return next((f"the pipeline {each.name}" for each in having), "")


def _cameras(box: Box, name: str) -> list[str]:
    """Return the cameras that use a family: connected ones, those that it was set for, and those
    that the box fetches, which come back when their source does."""
    using = {
        camera
        for camera, record in box.cameras.items()
        if record.connected and (record.camera.family == name or _has(record.camera.pipeline, name))
    }
    using |= {camera for camera, each in box.overrides.items() if each.family == name}
    using |= {camera for camera, source in box.sources.items() if source.family == name}
    return sorted(using)


def _has(pipeline: Pipeline | None, name: str) -> bool:
    return pipeline is not None and any(stage.family == name for stage in pipeline.stages)


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
