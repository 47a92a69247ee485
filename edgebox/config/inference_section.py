"""Which models run, and how they are measured: the section [inference] of the configuration."""

import os
from dataclasses import dataclass
from pathlib import Path

from edgebox.config.keys import key as _key
from edgebox.domain.home_folder import expanded


def data_folder() -> Path:
    """Return the folder for what a box keeps, unless the configuration names another.

    Raises:
        ConfigError: it would be in the home folder, and there is none.
    """
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return expanded(data) / "edgebox"


@dataclass(frozen=True, slots=True)
class InferenceParameters:
    """Which models run, and how they are measured."""

    families: tuple[str, ...] = _key(
        (), "Folders of further model families, relative to this file; each has a family.toml"
    )
    models: str = _key(
        "",
        "Folder in which edgebox models import stores families for serve, relative to "
        "this file; empty: edgebox/models in $XDG_DATA_HOME or ~/.local/share",
        may_be_empty=True,
    )
    bundled: tuple[str, ...] = _key(
        ("street",),
        "Model families that come with edgebox and are served; the default family always is. "
        "There are street, a detector, and vehicles, which classifies crops",
    )
    family: str = _key("street", "Default model family, for cameras that name none")
    pipeline: str = _key(
        "",
        "Default pipeline, for cameras that name neither a pipeline nor a family; empty: these "
        "run on the default family only",
        may_be_empty=True,
    )
    memory_limit_mb: float = _key(
        0.0,
        "Megabytes of memory for the models of one device, shared by its executors; with "
        "a limit, variants in use and their neighbours in size stay loaded, and others "
        "are loaded when the plan needs them; 0: no limit",
        low=0,
        high=1_000_000,
    )
    batch_size_max: int = _key(16, "Largest batch that is profiled and used", low=1, high=128)
    decode_threads: int = _key(0, "Threads for JPEG, at least 2; 0: by the cores", low=0, high=512)
    profile_s: float = _key(
        10.0, "Seconds for measuring a machine at its first start", low=1, high=3600
    )

    @property
    def models_folder(self) -> Path:
        """The folder of imported families with the default filled in."""
        return Path(self.models) if self.models else data_folder() / "models"

    @property
    def engine_folder(self) -> Path:
        """The folder in which TensorRT keeps what it built."""
        return data_folder() / "tensorrt"

    @property
    def memory_limit_bytes(self) -> int:
        """What the models of one device may take; 0: no limit."""
        return round(self.memory_limit_mb * 1e6)
