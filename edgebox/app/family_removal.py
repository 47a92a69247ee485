"""Decides whether an imported family may be removed, and removes it whole."""

import shutil
import tempfile
from pathlib import Path

from edgebox.app.family_folders import known_folders
from edgebox.config.config_file import Config
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.job_errors import FamilyInUseError
from edgebox.inference.family import MANIFEST
from edgebox.inference.importing.folder import UNFINISHED, family_name
from edgebox.inference.zoo import bundled_folders


def remove_family(config: Config, name: str, *, default: str | None = None) -> Path:
    """Delete an imported family; return the folder that is gone. Blocks.

    Args:
        config: the configuration.
        name: the family.
        default: the default family of a running box; None: that of the configuration.

    Raises:
        FamilyInUseError: it was not imported, is the default, or the configuration uses it.
        ModelError: there is none, or it cannot be deleted.
    """
    family_name(name, Path())  # it becomes a path
    check_unused(config, name, default=default)
    folder = config.inference.models_folder / name
    if not (folder / MANIFEST).is_file():
        raise _not_imported(config, name)
    try:
        # Out of sight at once, even if deleting is interrupted.
        gone = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
        folder.rename(gone / name)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be removed: {error.strerror}") from None
    shutil.rmtree(gone, ignore_errors=True)
    return folder


def check_unused(config: Config, name: str, *, default: str | None = None) -> None:
    """Check that the configuration does not use a family.

    Raises:
        FamilyInUseError: it does.
    """
    if name == (default or config.inference.family):
        raise FamilyInUseError(f"{name} is the default model; {_how_to_choose(config, name)}")
    for pipeline in config.pipelines:
        if any(stage.family == name for stage in pipeline.stages):
            raise FamilyInUseError(
                f"the pipeline {pipeline.name} uses {name}; take it out of {config.source} first"
            )
    for camera in config.cameras:
        if name == camera.family:
            raise FamilyInUseError(
                f"{camera.name} in [[cameras]] of {config.source} uses {name}; take it out there "
                "first"
            )
    for executors in config.executors:
        if name in executors.families:
            raise FamilyInUseError(
                f"[[executors]] of {config.source} name {name}; take it out there first"
            )
    if config.zmq_detector.endpoint and name == config.zmq_detector.family:
        raise FamilyInUseError(
            f"zmq_detector.family of {config.source} names {name}; take it out there first"
        )


def _how_to_choose(config: Config, name: str) -> str:
    """Say how another family becomes the default, by where this one was named."""
    match config.origins.get("inference.family"):
        case "file":
            return f"{config.source} sets inference.family: name another one there first"
        case "option":
            return "the box was started with --family: start it with another one first"
    if any(folder.name == name for folder in bundled_folders()):
        return "it comes with edgebox and stays; only imported families can be removed"
    return f"choose another one first: edgebox models default {InferenceParameters().family}"


def _not_imported(config: Config, name: str) -> EdgeboxError:
    if any(folder.name == name for folder in bundled_folders()):
        return FamilyInUseError(
            f"{name} comes with edgebox and stays; only imported families can be removed"
        )
    for folder in known_folders(config.inference):
        if folder.name == name:
            return FamilyInUseError(
                f"{name} is in {folder}, which inference.families of {config.source} names; take "
                "it out there"
            )
    return ModelError(
        f"there is no imported family {name!r} in {config.inference.models_folder}; edgebox models "
        "list shows those there are"
    )
