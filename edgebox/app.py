"""The composition root: builds every part of a box, starts and stops them in order.

Nothing else wires parts together. Order of a start: database, web server (which says "not ready"),
models, executors, profiles (from the database, or measured), core and driver; then cameras are
welcome.
"""

import asyncio
import contextlib
import functools
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from edgebox import __version__
from edgebox.config import Config, InferenceParameters
from edgebox.domain.errors import InvariantViolation, ModelError
from edgebox.domain.models import ExecutorId, LatencyProfile
from edgebox.domain.requests import CameraId
from edgebox.inference.executor import OnnxExecutor
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.profiler import ProfilingLimits, profile
from edgebox.inference.sessions import CPU
from edgebox.inference.zoo import bundled_folders, imported_folders, load_zoo
from edgebox.link.bandwidth import Rule
from edgebox.link.deadlines import written_steps
from edgebox.planning.admission import refusal
from edgebox.planning.planner import plan
from edgebox.runtime.box import Admission, Box, BoxEvent
from edgebox.runtime.cameras import CameraRecord
from edgebox.runtime.driver import Driver
from edgebox.runtime.journal import Journal
from edgebox.runtime.looplag import LoopLag
from edgebox.runtime.preparation import CanvasPool
from edgebox.runtime.recordings import keep
from edgebox.runtime.rollup import MINUTE_MS, MinuteRollup
from edgebox.scheduling.events import ExecutorStarted, VariantsOffered
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.storage.database import Storage
from edgebox.web.server import Server

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""

_STOP_PATIENCE_S = 3.0
_NEVER = 1_000_000
_COLLECT_MINUTES = 10
_SWITCH_INTERVAL_S = 0.001
"""How long another Python thread may keep the event loop from running: a fifth of the default."""


class App:
    """One box, from its configuration to its end."""

    def __init__(
        self, config: Config, *, on_progress: Progress | None = None, journal: Journal | None = None
    ) -> None:
        """Nothing is opened before `start`.

        Args:
            config: what to build.
            on_progress: told about long work during the start, in any thread.
            journal: records every decision; a fresh one of a minute if not given.
        """
        self.config = config
        self.lag = LoopLag()
        self.journal = journal or Journal()
        self.ready_s: float | None = None
        """How long the start took."""
        self.failed = asyncio.Event()
        """Set when the core has contradicted itself: stop this box, then start another one."""
        self.failure: InvariantViolation | None = None
        """What has happened then, and where it is recorded."""
        self.profiled = False
        """Whether profiles had to be measured."""
        self._on_progress = on_progress
        self._storage: Storage | None = None
        self._box: Box | None = None
        self._server: Server | None = None
        self._driver: Driver | None = None
        self._executors: list[OnnxExecutor] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._minutes_since_collection = 0
        self._rollup: MinuteRollup | None = None
        self._minute_ms = 0
        """When the minute that is being counted began, Unix milliseconds."""

    @property
    def box(self) -> Box:
        """The running box."""
        assert self._box is not None, "the app was not started"
        return self._box

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None, "the app was not started"
        return self._server.port

    @property
    def url(self) -> str:
        """Where the page is, as seen from this machine."""
        host = self.config.server.host
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    # -- start ------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Open the database and listen; the page answers from here on, cameras wait for `start`.

        Raises:
            StorageError: the database cannot be used.
            EdgeboxError: the port cannot be listened on.
        """
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        config = self.config
        storage = await Storage.open(
            config.storage.file,
            minute_retention_days=config.storage.minute_retention_days,
            event_retention_days=config.storage.event_retention_days,
        )
        self._storage = storage
        self._box = Box(
            name=config.server.name,
            version=__version__,
            cameras_max=config.limits.cameras_max,
            bandwidth=Rule(config.planner.bandwidth),
            on_event=self._store_event,
            on_camera=self._store_camera,
            admission=self._admission(),
        )
        self._server = Server(self._box, config.limits, self.lag, self.journal)
        try:
            await self._server.start(config.server.host, config.server.port)
        except BaseException:
            await storage.close()
            raise
        self.lag.start()

    def _admission(self) -> Admission | None:
        if self.config.planner.admission != "refuse":
            return None
        return functools.partial(refusal, parameters=self.config.planning_parameters())

    async def start(self) -> None:
        """Do all that `listen` does, then load, profile and warm the models.

        Raises:
            EdgeboxError: with what a user can do about it.
        """
        began_s = time.monotonic()
        if self._server is None:
            await self.listen()
        try:
            await self._start_models()
        except BaseException:
            await self.stop()
            raise
        # What lives now lives long; a full collection stalls the loop by tens of milliseconds, so
        # it comes when nobody is connected, or after ten minutes (`_every_minute`).
        gc.collect()
        gc.freeze()
        gc.set_threshold(700, 10, _NEVER)
        self.ready_s = time.monotonic() - began_s

    async def _start_models(self) -> None:
        inference = self.config.inference
        families, problems = await asyncio.to_thread(load_families, inference)
        for problem in problems:
            self._leave_out(problem)
        families = [await self._judged(family) for family in families]
        self._executors = await asyncio.to_thread(open_executors, inference, families)
        families, profiles = await self._measured(families)
        self.box.offer(families, inference.family)
        variants = {v.name: v for family in families for v in family.offered}
        driver = Driver(
            Scheduler(
                self.config.scheduler_parameters(),
                # Always the same seed: a journal must replay to the same actions.
                make_policy(self.config.scheduler.batching, random.Random(0)),
            ),
            executors=self._executors,
            variants=variants,
            canvases=CanvasPool({family.name: family.input for family in families}),
            decode_threads=self.config.inference.decode_threads or _default_decode_threads(),
            planner=functools.partial(plan, parameters=self.config.planning_parameters()),
            on_advice=self.box.advised,
            on_plan=self.box.planned,
            on_failure=self._fail,
            journal=self.journal,
        )
        driver.start()
        self._driver = driver
        driver.feed(VariantsOffered(tuple(variants.values())))
        for executor in self._executors:
            offered = tuple(p for p in profiles[executor.id] if p.variant in variants)
            driver.feed(ExecutorStarted(executor.id, offered))
        self.box.attach(
            driver, {key: {p.variant: p for p in found} for key, found in profiles.items()}
        )
        self._rollup = MinuteRollup(self.box.metrics, variants)
        self._minute_ms = _wall_clock_ms()
        self._tasks.append(asyncio.create_task(self._every_minute(), name="rollup"))

    async def _judged(self, family: Family) -> Family:
        """Return a family with what was found out about its variants on this box."""
        assert self._storage is not None
        return family.judged(await self._storage.load_judgements(family.name, family.sha256))

    def _leave_out(self, problem: ModelError) -> None:
        self.box.note("error", f"a model family is left out: {problem}")

    async def _measured(
        self, families: Sequence[Family]
    ) -> tuple[list[Family], dict[ExecutorId, list[LatencyProfile]]]:
        """Return the families that run on every executor, and each executor's profiles of them.

        A family can open and still fail on its first batch: it is left out like a broken file.

        Raises:
            ModelError: the default family fails.
        """
        running: list[Family] = []
        profiles: dict[ExecutorId, list[LatencyProfile]] = {e.id: [] for e in self._executors}
        for family in families:
            try:
                found = [await self._profiles_of(e, family) for e in self._executors]
            except ModelError as error:
                if family.name == self.config.inference.family:
                    raise
                self._leave_out(error)
                continue
            running.append(family)
            for executor, of_family in zip(self._executors, found, strict=True):
                profiles[executor.id] += of_family
        return running, profiles

    async def _profiles_of(self, executor: OnnxExecutor, family: Family) -> list[LatencyProfile]:
        """Return a family's profiles, measured now unless the database has them; warm it."""
        assert self._storage is not None
        key = fingerprint(executor, family)
        names = {variant.name for variant in family.variants}
        found = [
            stored
            for stored in await self._storage.load_profiles(key)
            if stored.executor == executor.id and stored.variant in names
        ]
        if {stored.variant for stored in found} != names:
            found = await asyncio.to_thread(
                measure, self.config.inference, executor, family, self._progress
            )
            self._storage.save_profiles(key, found)
            self.profiled = True
        await asyncio.to_thread(_warm, executor, found)
        return found

    def _progress(self, text: str, share: float) -> None:
        self.box.not_ready_because = f"{text} ({share:.0%})"
        if self._on_progress is not None:
            self._on_progress(text, share)

    # -- while it runs ----------------------------------------------------------------------

    def _store_event(self, event: BoxEvent) -> None:
        camera = None if event.camera is None else CameraId(event.camera)
        if self._storage is not None:
            self._storage.record_event(event.level, event.text, camera)

    def _store_camera(self, record: CameraRecord) -> None:
        camera = record.camera
        if self._storage is not None:
            self._storage.record_camera(
                camera.id,
                {
                    "app": camera.app,
                    "family": camera.family,
                    "slo_ms": written_steps(camera.slo_ns, camera.steps),
                    "rate_hz": camera.rate_hz,
                    "width_px": camera.width_px,
                    "height_px": camera.height_px,
                    "min_accuracy": camera.min_accuracy,
                    "min_rate_hz": camera.min_rate_hz,
                    "agent": record.agent,
                },
            )

    async def _every_minute(self) -> None:
        while True:
            left_ms = _minute_of(self._minute_ms) + MINUTE_MS - _wall_clock_ms()
            # Bounded: the wall clock may be set back.
            await asyncio.sleep(min(max(left_ms, 0), MINUTE_MS) / 1e3)
            self._roll_up()

    def _roll_up(self) -> None:
        """Store what was counted since the last time; the first and the last minute are shorter.

        Rows are named by when their minute began, so each instant must be used once only: a
        timer that fires early, or a restart within a minute, must not replace what was counted.
        """
        storage, rollup = self._storage, self._rollup
        assert storage is not None
        assert rollup is not None
        # First, so that the roll-up sees them gone before they can come back.
        self.box.forget_old_cameras()
        storage.record_minutes(rollup.take(self._minute_ms, self.box.driver.clock_ns()))
        next_ms = _minute_of(self._minute_ms) + MINUTE_MS
        self._minute_ms = max(next_ms, _minute_of(_wall_clock_ms()))
        self._minutes_since_collection += 1
        if self._minutes_since_collection >= _COLLECT_MINUTES or not self.box.connected:
            gc.collect()
            self._minutes_since_collection = 0
        if storage.last_error:
            self.box.note(
                "error", f"the database cannot be written ({storage.last_error}); serving goes on"
            )

    # -- the journal --------------------------------------------------------------------------

    async def write_journal(self) -> Path | None:
        """Write the journal beside the database and tell people; None: it could not be."""
        file = self.config.storage.file
        folder = Path() if file == ":memory:" else Path(file).parent
        return await keep(self.journal, folder.absolute(), self.box.note)

    def _fail(self, violation: InvariantViolation) -> None:
        self.box.not_ready_because = str(violation)
        self._tasks.append(asyncio.create_task(self._end_clearly(violation), name="failure"))

    async def _end_clearly(self, violation: InvariantViolation) -> None:
        self.box.note("error", f"{violation}; the box stops")
        path = await self.write_journal()
        where = f"; the journal is in {path}" if path else ""
        self.failure = InvariantViolation(
            f"{violation}{where}. This is a defect of edgebox: please report it with the journal",
            violation.tail,
        )
        self.failed.set()

    # -- stop -------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Answer what runs, say goodbye to cameras, and close everything. Idempotent."""
        if self._box is not None:
            self._box.not_ready_because = "stopping"
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if self._driver is not None:
            await self._driver.stop(_STOP_PATIENCE_S)
            self._driver = None
        if self._server is not None:
            await self._server.stop()
        if self._rollup is not None:
            self._roll_up()
            self._rollup = None
        for executor in self._executors:
            with contextlib.suppress(ModelError):
                await asyncio.to_thread(executor.close)
        self._executors.clear()
        self.lag.stop()
        if self._storage is not None:
            await self._storage.close()
            self._storage = None


def family_folders(inference: InferenceParameters) -> list[Path]:
    """Return every folder with a family: bundled, named in the configuration, imported."""
    named = [Path(folder) for folder in inference.families]
    return [*bundled_folders(), *named, *imported_folders(inference.models_folder)]


def load_families(inference: InferenceParameters) -> tuple[list[Family], list[ModelError]]:
    """Return the families that can be served, and what is wrong with those that cannot.

    Raises:
        ModelError: none can, or not the default one.
    """
    zoo = load_zoo(family_folders(inference))
    problems = list(zoo.problems)
    if not zoo.families:
        why = "; ".join(map(str, problems)) or "no folder with a family.toml was found"
        raise ModelError(f"no model family can be served: {why}")
    zoo.family(inference.family)
    return list(zoo.families), problems


def open_executors(
    inference: InferenceParameters, families: Sequence[Family]
) -> list[OnnxExecutor]:
    """Open the executors of this machine; each tries the provider that the configuration allows.

    Raises:
        ModelError: a model cannot be opened, or CUDA was insisted on and is not usable.
    """
    executors: list[OnnxExecutor] = []
    for number in range(inference.executors_per_device):
        executor = OnnxExecutor(
            number,
            families,
            providers=inference.providers,
            cpu_threads=inference.cpu_threads,
        )
        executors.append(executor)
    return executors


def measure(
    inference: InferenceParameters,
    executor: OnnxExecutor,
    family: Family,
    on_progress: Progress | None,
) -> list[LatencyProfile]:
    """Measure a family on an executor for `inference.profile_s` seconds; blocks."""

    def report(share: float) -> None:
        if on_progress is not None:
            on_progress(f"measuring {family.name} on {executor.id}", share)

    return profile(
        executor,
        family.variants,
        family.batch_sizes(inference.batch_size_max),
        ProfilingLimits(budget_s=inference.profile_s),
        report,
        networks=family.files,
    )


async def measure_and_store(
    config: Config, on_progress: Progress | None = None, families: Sequence[Family] = ()
) -> list[tuple[Family, OnnxExecutor, list[LatencyProfile]]]:
    """Measure families on every executor anew and keep the profiles for the next start.

    Args:
        config: of the box.
        on_progress: told what is measured, and the share done.
        families: which; none: all that can be served.

    Raises:
        EdgeboxError: the models or the database cannot be used.
    """
    storage = await Storage.open(config.storage.file)
    executors: list[OnnxExecutor] = []
    measured = []
    try:
        if not families:
            families, _ = await asyncio.to_thread(load_families, config.inference)
        executors = await asyncio.to_thread(open_executors, config.inference, families)
        for executor in executors:
            for family in families:
                found = await asyncio.to_thread(
                    measure, config.inference, executor, family, on_progress
                )
                storage.save_profiles(fingerprint(executor, family), found)
                measured.append((family, executor, found))
    finally:
        for executor in executors:
            await asyncio.to_thread(executor.close)
        await storage.close()
    return measured


def _warm(executor: OnnxExecutor, profiles: Sequence[LatencyProfile]) -> None:
    """Run each variant once; a GPU picks its kernels by shape, so there each batch size too."""
    every_size = executor.provider != CPU
    for known in profiles:
        sizes = known.batch_sizes if every_size else known.batch_sizes[:1]
        executor.warm([known.variant], sizes)


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _minute_of(at_ms: int) -> int:
    return at_ms - at_ms % MINUTE_MS


def _default_decode_threads() -> int:
    # At least two, so that one camera's huge picture does not hold up everybody's.
    return max(2, min(4, (os.cpu_count() or 1) // 2))
