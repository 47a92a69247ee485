"""The composition root: builds all parts of a box, starts and stops them in order.

Nothing else wires parts together. Order of a start: database, web server (which answers "not
ready"), models, executors, profiles (from the database, or measured), core and driver; then
cameras may connect.
"""

import asyncio
import functools
import gc
import sys
import time
from pathlib import Path

from edgebox import __version__
from edgebox.app.access_setup import access_control, proxy_warnings
from edgebox.app.background_tasks import BackgroundTasks
from edgebox.app.box_failure import BoxFailure
from edgebox.app.configured_pipelines import make_pipelines
from edgebox.app.cpu_fallback import CpuFallback
from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_replacement import ExecutorReplacer
from edgebox.app.executor_setup import Opened, open_executors
from edgebox.app.family_watch import FamilyWatch, Folder, look_into
from edgebox.app.history_setup import history_recorder
from edgebox.app.interference_profiles import Progress
from edgebox.app.late_executors import LateExecutors, defer_unmeasured
from edgebox.app.live_families import LiveFamilies
from edgebox.app.model_jobs import ModelJobs
from edgebox.app.remembered_learning import RememberedLearning
from edgebox.app.served_families import ServedFamilies, tell_of_missing_models
from edgebox.app.source_setup import pulled_cameras, stored_hello
from edgebox.app.startup import ModelInventory, load_families, measured
from edgebox.app.storage_notices import StorageNotices
from edgebox.app.tracking_setup import ZoneNotices, missing_classes, tracking_defaults
from edgebox.config.config_file import Config
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.overrides import NOTHING_SET
from edgebox.domain.requests import CameraId
from edgebox.inference.machine import usable_cores
from edgebox.inference.memory import give_back
from edgebox.inference.model_executor import ModelExecutor
from edgebox.ingest.pulled_cameras import PulledCameras
from edgebox.link.bandwidth import EstimatorKind
from edgebox.link.override_messages import changed, written
from edgebox.notifications.dispatcher import NotificationDispatcher
from edgebox.planning.camera_admission import refusal
from edgebox.planning.planner import plan
from edgebox.runtime.box import Admission, Box
from edgebox.runtime.box_event import BoxEvent
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.decode_queue import decode_threads
from edgebox.runtime.drift_messages import drift_text
from edgebox.runtime.driver import Driver
from edgebox.runtime.garbage import collect_on_request_only
from edgebox.runtime.history_recorder import HistoryRecorder
from edgebox.runtime.journal import Journal
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.runtime.minute_period import MinutePeriod
from edgebox.runtime.model_choice import served
from edgebox.runtime.preparation import CanvasPool
from edgebox.runtime.recordings import keep
from edgebox.scheduling.actions import ReportDrift
from edgebox.scheduling.events import ExecutorStarted, VariantsAvailable
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.storage.database import Storage
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.web.feed import Feed
from edgebox.web.fleet import fleet_member
from edgebox.web.fleet_member import FleetMember
from edgebox.web.server import Server
from edgebox.web.state_document import StateCache
from edgebox.web.tls import tls_context
from edgebox.web.web_context import WebContext
from edgebox.web.zmq_detector import missing_family

_STOP_PATIENCE_S = 3.0
_COLLECT_MINUTES = 10
_SEE_CAMERAS_MINUTES = 10
SWITCH_INTERVAL_S = 0.001
"""Python's thread switch interval: a fifth of the default, for a responsive event loop."""


class App:
    """One box, from its configuration to its end."""

    def __init__(
        self, config: Config, *, on_progress: Progress | None = None, journal: Journal | None = None
    ) -> None:
        """Prepare a box; `start` opens everything.

        Args:
            config: the configuration.
            on_progress: called with the progress of the start, in any thread.
            journal: records every decision; a new one of a minute if not given.

        Raises:
            ConfigError: a secret for a destination of events cannot be read.
        """
        self.config = config
        self.machine = MachineMeasurements(self._stalled)
        self.journal = journal or Journal()
        self.access = access_control(config)
        self.fingerprint: str | None = None
        """SHA-256 of the certificate, in hexadecimal; None: there is no TLS."""
        self.ready_s: float | None = None
        """How long the start took."""
        self.profiled = False
        """Whether profiles had to be measured."""
        self._failure = BoxFailure(lambda: self.box, self.write_journal)
        self._on_progress = on_progress
        self._storage: Storage | None = None
        self._box: Box | None = None
        self._server: Server | None = None
        self._driver: Driver | None = None
        self._outgoing = NotificationDispatcher(config)
        self._opened = Opened()
        self._tasks = BackgroundTasks(lambda text: self.box.notices.publish("error", text))
        self._collecting = MinutePeriod(_COLLECT_MINUTES)
        self._seeing = MinutePeriod(_SEE_CAMERAS_MINUTES)
        self._storage_notices: StorageNotices | None = None
        self._history_recorder: HistoryRecorder | None = None
        self._remembered_learning: RememberedLearning | None = None
        self._zone_notices: ZoneNotices | None = None
        self._model_jobs: ModelJobs | None = None
        self._cpu_fallback: CpuFallback | None = None
        self._late_executors: LateExecutors | None = None
        self._sources: PulledCameras | None = None

    @property
    def box(self) -> Box:
        """The running box."""
        assert self._box is not None, "the app was not started"
        return self._box

    @property
    def failed(self) -> asyncio.Event:
        """Set when this box cannot continue: stop it, then start another one."""
        return self._failure.happened

    @property
    def failure(self) -> EdgeboxError | None:
        """The error of `failed`: the core contradicted itself, or what it runs on hangs."""
        return self._failure.error

    @property
    def fleet(self) -> FleetMember | None:
        """This box as one of a fleet; None: it is alone."""
        assert self._server is not None, "the app was not started"
        return self._server.fleet

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None, "the app was not started"
        return self._server.port

    @property
    def url(self) -> str:
        """URL of the page on this machine."""
        host = self.config.server.host
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        scheme = "http" if self.fingerprint is None else "https"
        return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    # -- start ------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Open the database and listen; the page works from now on, cameras after `start`.

        Raises:
            StorageError: the database cannot be used, or another box uses it.
            EdgeboxError: the port cannot be listened on.
        """
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        config = self.config
        storage = await Storage.open(
            config.storage.file, limits=config.storage.limits(), serving=True
        )
        try:
            await self._listen(storage)
        except BaseException:
            # Its threads would keep the process alive.
            await storage.close()
            raise
        self.machine.start()

    def _stalled(self, start_ns: int, end_ns: int) -> None:
        self.box.sites.stalled(start_ns, end_ns)

    async def _listen(self, storage: Storage) -> None:
        config = self.config
        self._storage = storage
        self._box = Box(
            name=config.server.name,
            version=__version__,
            cameras_max=config.limits.cameras_max,
            unacknowledged_max=config.limits.unacknowledged_max,
            bandwidth=EstimatorKind(config.planner.bandwidth),
            on_event=self._store_event,
            on_camera=self._store_camera,
            admission=self._admission(),
            tracking=tracking_defaults(config),
        )
        for known in await storage.cameras():
            try:
                self._box.override(known.camera, changed(NOTHING_SET, known.overrides))
            except InvalidInputError as error:
                self._box.notices.publish(
                    "warning", f"the stored settings of {known.camera} are damaged: {error}"
                )
        if storage.unlocked:
            self._box.notices.publish(
                "warning",
                f"the database cannot be locked ({storage.unlocked}): see to it that no other box "
                "serves with it",
            )
        self._storage_notices = StorageNotices(storage, self._box.notices.publish)
        self._storage_notices.look()
        self._sources = await pulled_cameras(config, self._box, storage)
        states = StateCache(self._box, self.machine)
        jobs = self._model_jobs = ModelJobs(config, self._box, storage)
        feed = Feed(self._box)
        if warning := await self.access.load():
            self.box.notices.publish("error", warning)
        fleet = fleet_member(config, self._box, storage)
        if fleet is not None:
            await fleet.settings.load()
        self._server = Server(
            WebContext(
                self._box, config, storage, self.machine, self.journal, states, feed, jobs,
                self.access, self._sources, fleet,
            )
        )  # fmt: skip
        tls = await asyncio.to_thread(tls_context, config.server, config.storage.folder)
        self.fingerprint = None if tls is None else tls[1]
        await self._server.start(config.server.host, config.server.port, tls)
        self._tasks.start(self.access.run(), "look at the file of tokens")

    def _admission(self) -> Admission | None:
        if self.config.planner.admission != "refuse":
            return None
        return functools.partial(refusal, parameters=self.config.planning_parameters())

    async def start(self) -> None:
        """Do all that `listen` does, then load, profile and warm the models.

        Raises:
            EdgeboxError: the message says what a user can do.
        """
        began_s = time.monotonic()
        if self._server is None:
            await self.listen()
        try:
            await self._start_models()
        except BaseException:
            await self.stop()
            raise
        assert self._sources is not None
        self._sources.start()
        # From now on only when no camera is connected, or every ten minutes (`_every_minute`).
        collect_on_request_only()
        self.ready_s = time.monotonic() - began_s

    async def _start_models(self) -> None:
        at_start = await asyncio.to_thread(look_into, self.config.inference.models_folder)
        found = await self._find_models()
        known = ServedFamilies.of(found.families)
        await self._start_core(found, known)
        self._outgoing.start(self.box)
        self._start_tasks(known, at_start)

    async def _find_models(self) -> ModelInventory:
        """Open the executors, measure the families on them, and offer those that run."""
        inference, storage = self.config.inference, self._storage
        assert storage is not None
        self.box.set_not_ready("reading model families")
        families, problems = await asyncio.to_thread(load_families, self.config)
        pipelines, unmade = make_pipelines(self.config, families, problems)
        load_reports = storage.load_accuracy_reports
        families = [f.with_reports(await load_reports(f.name, f.sha256)) for f in families]
        self.box.set_not_ready("opening executors")
        self._opened = await asyncio.to_thread(open_executors, self.config, families)
        found = await measured(inference, storage, self._opened.executors, families, self._progress)
        defer_unmeasured(self._opened, found)
        self._opened.leave_out(found.hung)
        left_out = [f"a model family is left out: {problem}" for problem in problems]
        models, missing = served(
            found.families, inference.family, pipelines, inference.pipeline, unmade
        )
        for text in (*left_out, *self._opened.problems, *found.problems, *missing):
            self.box.notices.publish("error", text)
        self.profiled = found.profiled
        self.box.offer(models)
        tell_of_missing_models(self.box)
        classes = missing_classes(self.box, tracking_defaults(self.config))
        for text in (
            *classes,
            *missing_family(self.box, self.config.zmq_detector),
            *proxy_warnings(self.config),
        ):
            self.box.notices.publish("warning", text)
        return found

    async def _start_core(self, found: ModelInventory, known: ServedFamilies) -> None:
        """Start the core with the models found; from now on cameras may connect."""
        executors = self._opened.executors
        self._zone_notices = ZoneNotices(self.box)
        driver = self._driver = self._make_driver(found, known)
        driver.start()
        driver.feed(VariantsAvailable(tuple(known.variants.values())))
        for executor in executors:
            offered = tuple(p for p in found.profiles[executor.id] if p.variant in known.variants)
            driver.feed(ExecutorStarted(executor.id, offered))
        for limited in found.limits:
            driver.feed(limited)
        self.box.attach(
            driver, {key: {p.variant: p for p in of} for key, of in found.profiles.items()}
        )
        assert self._cpu_fallback is not None
        for hung in found.hung:
            self._cpu_fallback.needed(hung)
        assert self._storage is not None
        self._remembered_learning = RememberedLearning(
            self._storage,
            driver,
            self.box.families.values(),
            lambda text: self.box.notices.publish("warning", text),
        )
        await self._remembered_learning.restore()

    def _start_tasks(self, known: ServedFamilies, at_start: Folder) -> None:
        """Start what goes on beside serving cameras."""
        assert self._storage is not None
        assert self._model_jobs is not None
        assert self._remembered_learning is not None
        assert self._late_executors is not None
        self._model_jobs.live = LiveFamilies(
            self.config, self.box, self._storage, known, self._opened, self._remembered_learning
        )
        live = self._model_jobs.live
        watch = FamilyWatch(live, self._model_jobs.jobs, at_start)
        self._history_recorder = history_recorder(
            self.box,
            self._storage,
            known.variants,
            cameras_max=self.config.limits.cameras_max,
            on_minute=self._every_minute,
        )
        self._tasks.start(watch.run(), "look at the folder of models")
        self._tasks.start(live.run(), "withdrawal of removed models")
        self._tasks.start(live.missing.run(), "models that executors lack")
        self._tasks.start(self._late_executors.run(), "trials of executors that are not there yet")
        self._tasks.start(self._history_recorder.run(), "history")

    async def _restore_learning(self, executor: ModelExecutor) -> None:
        if self._remembered_learning is not None:
            await self._remembered_learning.restore_executor(executor)

    def _make_driver(self, found: ModelInventory, known: ServedFamilies) -> Driver:
        """Return a driver of the models found, which replaces lost executors."""
        assert self._storage is not None
        replacements = ExecutorReplacer(
            self._opened, known.families, found, lambda: self.box.profiles
        )
        adder = ExecutorAdder(
            self.box, replacements, known.families, prepare=(self.config.inference, self._storage)
        )
        self._late_executors = LateExecutors(self._opened, adder, self.box, self._restore_learning)
        self._cpu_fallback = CpuFallback(
            self.box,
            self._opened.cpu_fallbacks,
            adder,
            known.families,
            give_up=self._failure.no_executor_left,
        )
        return Driver(
            Scheduler(
                self.config.scheduler_parameters(usable_cores()),
                make_policy(self.config.scheduler.batching),
            ),
            executors=self._opened.executors,
            variants=known.variants,
            canvases=CanvasPool(known.inputs),
            labels=known.labels,
            decode_threads=decode_threads(self.config.inference.decode_threads),
            planner=functools.partial(plan, parameters=self.config.planning_parameters()),
            callbacks=Callbacks(
                on_advice=self.box.advised,
                on_plan=self.box.last_plan.replace,
                on_drift=self._report_drift,
                on_failure=self._failure.contradicted,
                on_give_up=self._cpu_fallback.give_up,
                on_not_opened=self._cpu_fallback.needed,
                on_decoding_hang=self._failure.decoding_hangs,
                notify=self.box.notices.publish,
            ),
            opener=replacements.open,
            loaders=found.loaders,
            journal=self.journal,
        )

    def _report_drift(self, drift: ReportDrift) -> None:
        ago_ms = (self.box.driver.clock_ns() - drift.since_ns) / 1e6
        since = time.strftime("%H:%M", time.localtime((wall_clock_ms() - ago_ms) / 1e3))
        self.box.notices.publish(*drift_text(drift, since))

    def _progress(self, text: str, share: float) -> None:
        self.box.set_not_ready(f"{text} ({share:.0%})")
        if self._on_progress is not None:
            self._on_progress(text, share)

    # -- while it runs ----------------------------------------------------------------------

    def _store_event(self, event: BoxEvent) -> None:
        camera = None if event.camera is None else CameraId(event.camera)
        if self._storage is not None:
            self._storage.record_event(event.level, event.text, camera)

    def _store_camera(self, record: CameraRecord) -> None:
        if self._storage is not None:
            camera = record.requested.id
            self._storage.record_camera(camera, stored_hello(record))
            if record.overrides != NOTHING_SET:  # another box may have made them
                self._storage.record_overrides(camera, written(record.overrides))

    def _every_minute(self) -> None:
        self.box.end_minute()
        if self._zone_notices is not None:
            self._zone_notices.end_minute()
        if self._remembered_learning is not None:
            self._remembered_learning.keep()
        if self._collecting.end_minute(early=not self.box.connected):
            gc.collect()
        if self._seeing.end_minute() and self._storage is not None:
            self._storage.see_cameras(n for n, of in self.box.cameras.items() if of.connected)
        if not self.box.connected:
            # What a crowd or an attack held is the C library's still.
            asyncio.get_running_loop().run_in_executor(None, give_back)
        if self._storage_notices is not None:
            self._storage_notices.look()

    # -- the journal --------------------------------------------------------------------------

    async def write_journal(self) -> Path | None:
        """Write the journal to the database's folder and publish a notice; None: it failed."""
        folder = self.config.storage.folder.absolute()
        return await keep(self.journal, folder, self.box.notices.publish)

    # -- stop -------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Finish running batches, disconnect cameras and close everything. Idempotent."""
        try:
            await self._stop_parts()
        finally:  # whatever went wrong: its threads would keep the process alive
            if self._storage is not None:
                await self.access.close()
                await self._storage.close()
                self._storage = None
                if self._storage_notices is not None:  # the last rows may have met damage
                    self._storage_notices.look()

    async def _stop_parts(self) -> None:
        if self._box is not None:
            self._box.set_not_ready("stopping")
        if self._sources is not None:
            await self._sources.stop()
            self._sources = None
        if self._model_jobs is not None:
            await self._model_jobs.jobs.stop()
            self._model_jobs = None
        if self._cpu_fallback is not None:
            await self._cpu_fallback.stop()
            self._cpu_fallback = None
        await self._tasks.stop()
        await self._failure.stop()
        if self._driver is not None:
            await self._driver.stop(_STOP_PATIENCE_S)
            if self._remembered_learning is not None:
                self._remembered_learning.keep()
                self._remembered_learning = None
            self._driver = None
        if self._server is not None:
            await self._server.stop()
        await self._outgoing.stop()
        if self._history_recorder is not None:
            self._history_recorder.close()
            self._history_recorder = None
        closing = map(asyncio.to_thread, self._opened.closings)
        await asyncio.gather(*closing, return_exceptions=True)
        self._opened = Opened()
        self.machine.stop()
