"""Owns an executor's sessions by file: opens them on one device, adds and drops them meanwhile.

Which thread adds and drops is the caller's choice, one at a time; a session that runs while it is
dropped lives until it is done. Limits: it decides nothing about what should be in memory.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.inference.cuda_libraries import cuda_runtime
from edgebox.inference.family import Family, ModelFile
from edgebox.inference.memory import device_used_bytes, give_back, resident_bytes
from edgebox.inference.sessions import (
    CPU,
    Provider,
    ProviderChoice,
    Session,
    brief,
    open_session,
    runtime_version,
)

_TRIED: Mapping[ProviderChoice, tuple[Provider, ...]] = {
    "auto": ("cuda", "cpu"),
    "cuda": ("cuda",),
    "tensorrt": ("tensorrt", "cuda", "cpu"),
    "cpu": ("cpu",),
}
"""In order; all families run on the first that can run every one of them."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How sessions are opened."""

    providers: ProviderChoice = "auto"
    cpu_threads: int = 1
    device_index: int = 0
    memory_limit_bytes: int = 0
    """Above 0: sessions are opened by `load`, and one alone may take no more than this."""
    engine_folder: Path | None = None
    """Where TensorRT keeps what it built."""


class SessionStore:
    """Sessions of one executor."""

    def __init__(self, families: Sequence[Family], settings: StoreSettings) -> None:
        """Open all sessions; with a memory limit only the first, to see where it runs.

        Raises:
            ModelError: one cannot be opened, or CUDA was insisted on and is not usable.
        """
        self._settings = settings
        self._files = {file.path: (file, of) for of in families for file in of.model_files}
        first = families[0].model_files[:1]
        wanted = first if settings.memory_limit_bytes else tuple(f for f, _ in self._files.values())
        self._sessions: dict[Path, Session] = {}
        self.note = ""
        """Why sessions are not where they were hoped to be; empty: they are."""
        tried = _TRIED[settings.providers]
        for provider in tried:
            try:
                self._sessions = {file.path: self._open(file, provider) for file in wanted}
            except ModelError as error:
                if provider == tried[-1]:
                    insisted = f' (providers = "{provider}" was asked for)'
                    raise ModelError(f"{error}{insisted if provider != 'cpu' else ''}") from error
                self.note = f"{self.note}; {error}" if self.note else str(error)
                continue
            self._on: Provider = provider
            break
        self.provider = next(iter(self._sessions.values())).provider
        self._cuda: ctypes.CDLL | None = cuda_runtime() if self.provider != CPU else None
        if settings.memory_limit_bytes:
            self.drop(first[0].path)

    def session(self, file: ModelFile) -> Session:
        """Return a file's session.

        Raises:
            ModelError: it is not in memory.
        """
        try:
            return self._sessions[file.path]
        except KeyError:
            raise ModelError(f"{file.path.name} is not in memory") from None

    def load(self, path: Path) -> None:
        """Open a file beside what runs. Blocks; does nothing where it is there.

        Raises:
            ModelError: it cannot be opened on this executor's device any more.
        """
        if path not in self._sessions:
            self._sessions[path] = self._open(self._files[path][0], self._on)

    def drop(self, path: Path) -> None:
        """Let a session go and give its memory back."""
        self._sessions.pop(path, None)
        give_back()

    def clear(self) -> None:
        """Let all sessions go."""
        self._sessions.clear()

    def used_bytes(self) -> int | None:
        """Return what is in use of the memory that sessions take; None: it is not known."""
        return resident_bytes() if self._cuda is None else device_used_bytes(self._cuda)

    def _open(self, file: ModelFile, provider: Provider) -> Session:
        settings, family = self._settings, self._files[file.path][1]
        engines = settings.engine_folder
        if engines is not None:
            # Engines fit one release of the library and one model only, and nothing checks that.
            engines = engines / runtime_version() / file.sha256[:16]
        session = open_session(
            file.path,
            provider,
            settings.cpu_threads,
            settings.device_index,
            arena_bytes_max=settings.memory_limit_bytes,
            engines=engines,
        )
        if provider != "cpu":
            _try(session, family, file, provider)
        return session


def _try(session: Session, family: Family, file: ModelFile, provider: Provider) -> None:
    """Run a session once: a GPU too old for it fails only then."""
    variant = next(v for v in family.variants if family.files[v.name] == file)
    shape = family.input.shape(family.batch_size_fixed or 1, variant.width_px, variant.height_px)
    try:
        run_bound(session, np.zeros(shape, family.input.dtype))
    except Exception as error:  # ONNX Runtime's exception classes share no base but Exception
        name = "TensorRT" if provider == "tensorrt" else "CUDA"
        raise ModelError(f"{name} cannot run {family.name}: {brief(error)}") from error


def run_bound(session: Session, tensor: NDArray[Any]) -> list[NDArray[Any]]:
    """Run a session through I/O binding: input read in place, outputs brought to the host."""
    binding = session.session.io_binding()
    binding.bind_cpu_input(session.input_name, tensor)
    for output in session.session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.session.run_with_iobinding(binding)
    outputs: list[NDArray[Any]] = binding.copy_outputs_to_cpu()
    return outputs
