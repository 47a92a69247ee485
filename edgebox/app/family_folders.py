"""Decides which folders of model families a box serves, and which its commands know."""

from pathlib import Path

from edgebox.config.config_file import Config
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ConfigError, InvalidInputError, ModelError
from edgebox.inference.zoo import Zoo, bundled_folders, imported_folders


def known_folders(inference: InferenceParameters) -> list[Path]:
    """Return every folder with a family: bundled, named in the configuration, imported."""
    return [*bundled_folders(), *_own_folders(inference)]


def served_folders(config: Config) -> list[Path]:
    """Return the folders of the families that a box serves.

    Of the bundled ones these are the default family, those of `inference.bundled` and those of
    pipelines: others would cost a start, a profile and memory for nothing.

    Raises:
        ConfigError: `inference.bundled` names what does not come with edgebox, or
            `inference.families` a family instead of a folder.
    """
    inference = config.inference
    _refuse_names(config)
    bundled = {folder.name: folder for folder in bundled_folders()}
    for name in inference.bundled:
        # A broken installation without the default is an error about families, not about this key.
        if name not in bundled and name not in InferenceParameters().bundled:
            known = ", ".join(bundled) or "none"
            raise ConfigError(
                f"{config.source}: inference.bundled: no family {name!r} comes with edgebox "
                f"(there are {known})"
            )
    names = {inference.family, *inference.bundled}
    names |= {stage.family for pipeline in config.pipelines for stage in pipeline.stages}
    return [
        *(folder for name, folder in bundled.items() if name in names),
        *_own_folders(inference),
    ]


def check_default(config: Config, zoo: Zoo) -> None:
    """Check that the default family is there and is given pictures.

    Raises:
        ConfigError: it is not; the message says where its name is from.
    """
    try:
        zoo.family(config.inference.family).insist_on_pictures()
    except (ModelError, InvalidInputError) as error:
        named = {
            "option": "--family: ",
            "file": "inference.family: ",
            "stored": "the default model cannot be used (edgebox models default chooses one): ",
        }
        origin = config.origins.get("inference.family", "default")
        raise ConfigError(f"{named.get(origin, '')}{error}") from None


def _refuse_names(config: Config) -> None:
    """Refuse names of families where folders are wanted."""
    imported = imported_folders(config.inference.models_folder)
    known = {folder.name for folder in (*bundled_folders(), *imported)}
    for folder in map(Path, config.inference.families):
        if folder.name in known and not folder.exists():
            raise ConfigError(
                f"{config.source}: inference.families: there is no folder {folder}. The key takes "
                f"folders of families that are neither bundled nor imported; make {folder.name} "
                f'the default with inference.family = "{folder.name}"'
            )


def _own_folders(inference: InferenceParameters) -> list[Path]:
    named = [Path(folder) for folder in inference.families]
    return [*named, *imported_folders(inference.models_folder)]
