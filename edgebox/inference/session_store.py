"""An executor's sessions by file: opens them on one device, adds and removes them later.

A session computes with as many threads as it was opened with, so a CPU executor whose batches may
have several thread counts has a session of each file for each of them.

The caller adds and removes from one thread at a time. A session that is removed while it runs lives
until its run ends. Limits: others decide what should be in memory.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import FamilyName, Variant
from edgebox.inference.cuda_libraries import cuda_runtime_library
from edgebox.inference.cuda_runtime import CudaRuntime
from edgebox.inference.family import Family, ModelFile
from edgebox.inference.machine import pinned
from edgebox.inference.memory import give_back, resident_bytes
from edgebox.inference.recording_gate import GATE
from edgebox.inference.sessions import (
    CPU,
    CUDA,
    Provider,
    Session,
    brief,
    open_session,
    run_options,
    runtime_version,
)

_TRIED: Mapping[Provider, tuple[Provider, ...]] = {
    "cpu": ("cpu",),
    "cuda": ("cuda",),
    "tensorrt": ("tensorrt", "cuda"),
}
"""In order; all families run on the first that can run any of them. From a GPU to the CPU is
another executor: that is not decided here."""


Tensors = NDArray[Any] | Mapping[str, NDArray[Any]]
"""The input of a model that has one, or its inputs by name."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Settings for opening sessions."""

    provider: Provider = "cpu"
    cpu_threads: int = 1
    device_index: int = 0
    memory_limit_bytes: int = 0
    """Above 0: `load` opens sessions, and a single one may take no more than this."""
    engine_folder: Path | None = None
    """Folder for TensorRT's engines."""
    cores: tuple[int, ...] = ()
    """Cores that sessions' threads are pinned to; empty: any core."""
    thread_counts: tuple[int, ...] = ()
    """Thread counts below `cpu_threads` that a batch may have too, on a CPU."""
    records: bool = False
    """Whether runs may be recorded, where ONNX Runtime can record a model's."""


class SessionStore:
    """Sessions of one executor."""

    def __init__(self, families: Sequence[Family], settings: StoreSettings) -> None:
        """Open all sessions; with a memory limit only one family's, to see where it runs.

        Raises:
            ModelError: no family can be opened, or its provider is not usable here.
        """
        self._settings = settings
        self._files = {file.path: (file, of) for of in families for file in of.model_files}
        self._sessions: dict[Path, dict[int, Session]] = {}
        """By file and number of threads."""
        self.failed: dict[FamilyName, ModelError] = {}
        """Families that cannot be opened here, and why."""
        self.not_recorded: dict[Path, str] = {}
        """Files whose runs are not recorded although they were to be, and why."""
        self.note = ""
        """Why sessions are not where they were hoped to be; empty: they are."""
        tried = _TRIED[settings.provider]
        for provider in tried:
            self._on: Provider = provider
            self.failed = self._open_all(families)
            if self._sessions:
                break
            error = next(iter(self.failed.values()))
            if provider == tried[-1]:
                raise error
            self.note = f"{self.note}; {error}" if self.note else str(error)
        self.provider = next(iter(next(iter(self._sessions.values())).values())).provider
        library = cuda_runtime_library() if self.provider != CPU else None
        self.cuda = None if library is None else CudaRuntime(library, settings.device_index)
        """The CUDA runtime on the executor's GPU; None: it runs on the CPU, or there is none."""
        if settings.memory_limit_bytes:
            for path in list(self._sessions):
                self.drop(path)

    def _open_all(self, families: Sequence[Family]) -> dict[FamilyName, ModelError]:
        """Open what can be opened on the present provider; return what cannot.

        With a memory limit the first family that can be is enough.
        """
        failed = {}
        for family in families:
            files = family.model_files
            try:
                opened = {
                    file.path: self._open(file, self._on)
                    for file in (files[:1] if self._settings.memory_limit_bytes else files)
                }
            except ModelError as error:
                failed[family.name] = error
                continue
            self._sessions |= opened
            if self._settings.memory_limit_bytes:
                break
        return failed

    def session(self, file: ModelFile, threads: int = 0) -> Session:
        """Return a file's session with this many threads; 0: with all.

        Raises:
            ModelError: it is not in memory.
        """
        try:
            return self._sessions[file.path][threads or self._settings.cpu_threads]
        except KeyError:
            raise ModelError(f"{file.path.name} is not in memory") from None

    def has(self, path: Path) -> bool:
        """Return whether a file is in memory."""
        return path in self._sessions

    def load(self, path: Path) -> None:
        """Open a file while others run. Blocks; does nothing if it is open.

        Raises:
            ModelError: it cannot be opened on this executor's device any more.
        """
        if path not in self._sessions:
            self._sessions[path] = self._open(self._files[path][0], self._on)

    def add(self, family: Family) -> None:
        """Open the files of one more family while others run. Blocks.

        Raises:
            ModelError: one cannot be opened on this executor's device; none is kept then.
        """
        files = {file.path: (file, family) for file in family.model_files}
        self._files |= files
        opened = {path: self._open(file, self._on) for path, (file, _) in files.items()}
        self._sessions |= opened

    def remove(self, family: Family) -> None:
        """Let the sessions of a family go, and give their memory back.

        What another one of its name has put in their place stays.
        """
        for path in [path for path, (_, of) in list(self._files.items()) if of is family]:
            self._files.pop(path, None)
            self.not_recorded.pop(path, None)
            self.drop(path)

    def drop(self, path: Path) -> None:
        """Let a session go and give its memory back."""
        with working_on(self.provider):
            self._sessions.pop(path, None)
        give_back()

    def stop_recording(self, path: Path, why: str) -> None:
        """Open a file again, without recordings. Blocks.

        Raises:
            ModelError: it cannot be opened on this executor's device any more.
        """
        self.not_recorded[path] = why
        self._sessions[path] = self._open(self._files[path][0], self._on)

    def clear(self) -> None:
        """Let all sessions go."""
        with working_on(self.provider):
            self._sessions.clear()

    def used_bytes(self) -> int | None:
        """Return what is in use of the memory that sessions take; None: it is not known."""
        if self.provider == CPU:
            return resident_bytes()
        if self.cuda is None:
            return None
        with GATE.working():
            return self.cuda.used_bytes()

    def _open(self, file: ModelFile, provider: Provider) -> dict[int, Session]:
        settings, family = self._settings, self._files[file.path][1]
        # It may have been changed since the box started, and its profiles are of the old one.
        file.check()
        engines = settings.engine_folder
        if engines is not None:
            # Engines fit one release of the library and one model only, and nothing checks that.
            engines = engines / runtime_version() / file.sha256[:16]
        # A session's threads are started with it, and inherit where its maker may run.
        fewer = settings.thread_counts if provider == "cpu" else ()

        def opened(*, records: bool) -> dict[int, Session]:
            with pinned(settings.cores):
                return {
                    threads: open_session(
                        file.path,
                        provider,
                        threads,
                        settings.device_index,
                        arena_bytes_max=settings.memory_limit_bytes,
                        engines=engines,
                        records=records,
                    )
                    for threads in (settings.cpu_threads, *fewer)
                }

        with working_on(CPU if provider == "cpu" else CUDA):
            try:
                records = settings.records and file.path not in self.not_recorded
                sessions = opened(records=records)
            except ModelError as error:
                if not records:
                    raise
                # A model that ONNX Runtime cannot record is refused then, and runs otherwise.
                sessions = opened(records=False)
                self.not_recorded[file.path] = str(error)
            if provider != "cpu":
                _try(sessions[settings.cpu_threads], family, file, provider)
        return sessions


def working_on(provider: str) -> AbstractContextManager[None]:
    """Return what work with a provider's sessions is done in."""
    return nullcontext() if provider == CPU else GATE.working()


def _try(session: Session, family: Family, file: ModelFile, provider: Provider) -> None:
    """Run a session once: a GPU too old for it fails only then."""
    variant = next(v for v in family.variants if family.files[v.name] == file)
    try:
        blank = blank_tensors(family, variant, family.batch_size_fixed or 1)
        run_bound(session, blank, run_options())
    except Exception as error:  # ONNX Runtime's exception classes share no base but Exception
        name = "TensorRT" if provider == "tensorrt" else "CUDA"
        raise ModelError(f"{name} cannot run {family.name}: {brief(error)}") from error


def blank_tensors(family: Family, variant: Variant, batch_size: int) -> Tensors:
    """Return an input of a variant with nothing on it."""
    if family.after is None:
        shape = family.input.shape(batch_size, variant.width_px, variant.height_px)
        return np.zeros(shape, family.input.dtype)
    return {
        spec.name: np.zeros((batch_size, *spec.shape(variant)), np.float32)
        for spec in family.features
    }


def run_bound(session: Session, tensors: Tensors, stop: Any = None) -> list[NDArray[Any]]:
    """Run a session through I/O binding: input read in place, outputs brought to the host.

    Args:
        session: a model.
        tensors: its input, or its inputs by name.
        stop: the result of `run_options`, to stop this run from another thread; or None.
    """
    binding = session.session.io_binding()
    named = tensors if isinstance(tensors, Mapping) else {session.input_name: tensors}
    for name, tensor in named.items():
        binding.bind_cpu_input(name, tensor)
    for output in session.session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.session.run_with_iobinding(binding, stop)
    outputs: list[NDArray[Any]] = binding.copy_outputs_to_cpu()
    return outputs
