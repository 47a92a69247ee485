"""Jobs on models while the box runs: measuring and importing families.

Measuring uses the box's executors, so it runs only while no camera is connected; a camera that
connects ends it within one batch. Importing runs in another process; then the new family is served.
"""

import asyncio
import contextlib
import importlib.util
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgebox.app.borrowed_executors import LentExecutor, lent_report, taken
from edgebox.app.executor_profiles import (
    Profiles,
    change_profiles,
    executors_up,
    report_hung,
    with_unmeasured,
)
from edgebox.app.import_process import ImportOrder, import_in_process
from edgebox.app.live_families import LiveFamilies
from edgebox.app.startup import measure
from edgebox.config.config_file import Config
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.job_errors import (
    CamerasConnectedError,
    FamilyExistsError,
    MemoryLimitedError,
    NoImportsError,
)
from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.importing.folder import unfinished
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.zoo import bundled_folders
from edgebox.runtime.box import Box
from edgebox.runtime.job_runner import Finished, Job, Jobs
from edgebox.storage.database import Storage
from edgebox.web.web_context import Upload

_POLL_S = 0.02
"""Period at which a measurement checks for cameras."""
_WRITE_BYTES = 1 << 20


class ModelJobs:
    """Measures and imports for one box, one job at a time."""

    def __init__(self, config: Config, box: Box, storage: Storage) -> None:
        """Start without jobs."""
        self.jobs = Jobs()
        self._config = config
        self._box = box
        self._storage = storage
        self.live: LiveFamilies | None = None
        """Changes what is served; None: the box is not ready."""

    # -- measuring --------------------------------------------------------------------------

    def measure(self, family: Family) -> Job:
        """Begin to measure a family on every executor.

        Raises:
            BusyError: another job runs.
            CamerasConnectedError: it would take the executor from cameras.
            MemoryLimitedError: the memory is limited.
        """
        if self._config.inference.memory_limit_bytes:
            raise MemoryLimitedError(
                "inference.memory_limit_mb is set: stop the box and run `edgebox profile` instead"
            )
        self.jobs.check_free()
        if self._box.connected:
            raise CamerasConnectedError(
                f"{self._box.connected} cameras are connected, and measuring would take the "
                "executor from them; measure while none is connected"
            )
        return self.jobs.start("profile", family.name, lambda job: self._measure(family, job))

    async def _measure(self, family: Family, job: Job) -> Finished:
        tried: set[ExecutorId] = set()
        failures: dict[ExecutorId, EdgeboxError] = {}
        # One may be lost and replaced while another one is measured.
        while untried := self._holding(family, tried):
            executor, done, total = untried[0], len(tried), len(tried) + len(untried)
            tried.add(executor.id)

            def report(text: str, share: float, done: int = done, total: int = total) -> None:
                job.progress(text, (done + share) / total)

            try:
                found = await self._measured(family, executor, report)
                self._storage.save_profiles(fingerprint(executor, family), found)
            except EdgeboxError as error:  # such as of one that was lost meanwhile
                failures[executor.id] = error
                continue
            await self._use(executor.id, found)
        told = tuple(f"not measured on {executor}: {why}" for executor, why in failures.items())
        if len(failures) == len(tried):
            kinds = set(map(type, failures.values()))
            kind = CamerasConnectedError if kinds == {CamerasConnectedError} else ModelError
            raise kind("; ".join(told) or f"no executor is up that holds {family.name}")
        for text in told:
            self._box.notices.publish("warning", f"{family.name} was {text}")
        self._box.notices.publish(
            "info", f"{family.name} was measured again; planning uses the new times"
        )
        return Finished("measured; planning uses the new times", told)

    def _holding(self, family: Family, tried: Container[ExecutorId]) -> list[ModelExecutor]:
        """Return the executors that are up and hold a family, but for those that were tried."""
        return [
            each
            for each in executors_up(self._box)
            if family.name in each.families and each.id not in tried
        ]

    async def _measured(
        self, family: Family, executor: ModelExecutor, report: Any
    ) -> list[LatencyProfile]:
        """Measure in a thread for as long as no camera is connected."""
        if self._box.connected:
            raise taken()
        lent = LentExecutor(executor, lent_report(self._box.driver, executor.id))
        inference = self._config.inference
        thread = asyncio.ensure_future(asyncio.to_thread(measure, inference, lent, family, report))
        try:
            while not thread.done():
                await asyncio.wait((thread,), timeout=_POLL_S)
                if self._box.connected:
                    lent.take_back()
        finally:
            lent.take_back()
        try:
            return thread.result()
        except HungError:
            report_hung(self._box, executor)
            raise

    async def _use(self, executor: ExecutorId, found: Sequence[LatencyProfile]) -> None:
        """Make planning and scheduling use new times, as soon as the executor is idle."""

        def again(known: Profiles) -> Profiles:
            changed = dict(known)
            for profile in found:
                # Measured alone with all threads; interference and core factors are unchanged.
                before = known.get(profile.variant, profile)
                now = replace(
                    profile,
                    interference=before.interference,
                    interference_factors=before.interference_factors,
                    core_factors=before.core_factors,
                )
                changed[profile.variant] = with_unmeasured(now, known)
            return changed

        await change_profiles(self._box, executor, again)

    # -- importing --------------------------------------------------------------------------

    async def import_model(self, upload: Upload) -> Job:
        """Receive a model file, then begin to import it.

        Raises:
            EdgeboxError: the upload failed, or the file cannot be imported; nothing is stored.
        """
        self.jobs.check_free()
        models = self._config.inference.models_folder
        if upload.name in self._taken() or (models / upload.name).exists():
            raise FamilyExistsError(
                f"there is a family {upload.name!r} already; choose another name"
            )
        if importlib.util.find_spec("onnx") is None:
            raise NoImportsError(
                "importing needs the onnx package, which belongs to edgebox but is missing here: "
                "pip install onnx"
            )
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(unfinished(models))
            with self.jobs.receiving(upload.name):
                await _received(upload, folder / f"{upload.name}.onnx")
            held = stack.pop_all()

        async def work(job: Job) -> Finished:
            with held:
                return await self._import(upload, folder, job)

        try:
            return self.jobs.start("import", upload.name, work)
        except EdgeboxError:
            held.close()
            raise

    def _taken(self) -> list[str]:
        """Return the names of families there are, also of bundled ones that are not served."""
        return [*self._box.families, *(folder.name for folder in bundled_folders())]

    async def _import(self, upload: Upload, folder: Path, job: Job) -> Finished:
        done = await import_in_process(
            ImportOrder(
                files=(Path(f"{upload.name}.onnx"),),
                folder=folder,
                models=self._config.inference.models_folder,
                name=upload.name,
                taken=self._taken(),
                layout=upload.layout,
                licence=upload.licence,
            ),
            job.progress,
        )
        text = f"imported as {upload.name}: {done.title}, variants: {done.variants}; "
        text += await self._serve(upload.name, job)
        self._box.notices.publish("info", text)
        return Finished(text, done.told)

    async def _serve(self, name: str, job: Job) -> str:
        """Serve a family that was just imported; return in words since when."""
        folder = self._config.inference.models_folder / name
        try:
            if self.live is None:
                raise ModelError("the box is not ready")
            executors = await self.live.add(folder, job.progress)
        except EdgeboxError as error:
            return f"served from the box's next start on, which measures it ({error})"
        return f"served from now on, on {', '.join(executors)}"

    # -- removing, and the default ------------------------------------------------------------

    async def remove(self, name: str) -> None:
        """Serve a family no more, and delete it.

        Raises:
            BusyError: a job runs.
            FamilyInUseError: it is in use; the message says by what.
            ModelError: it was not imported, or cannot be deleted.
        """
        self.jobs.check_free()
        await self._running().remove(name)

    async def set_default(self, name: str) -> None:
        """Make a family that of cameras that name none.

        Raises:
            FamilyInUseError: the configuration file names another one.
            ModelError: it is not given pictures, or this cannot be stored.
        """
        await self._running().set_default(name)

    def _running(self) -> LiveFamilies:
        assert self.live is not None, "routes that change models need a box that is ready"
        return self.live


async def _received(upload: Upload, path: Path) -> None:
    """Write an upload to a file.

    Raises:
        ModelError: there is no room for it.
    """
    waiting = bytearray()
    try:
        with path.open("xb") as file:
            async for chunk in upload.chunks:
                waiting += chunk
                if len(waiting) >= _WRITE_BYTES:
                    await asyncio.to_thread(file.write, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(file.write, bytes(waiting))
    except OSError as error:
        raise ModelError(f"the file cannot be kept: {error.strerror}") from None
