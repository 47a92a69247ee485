"""The running box: its cameras, their pending frames and what viewers see.

Runs on the event loop. Sessions (web/) submit what cameras send; the driver delivers orders.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, RequestId
from edgebox.inference.family import Family
from edgebox.link.bandwidth import BandwidthEstimate, EstimatorKind
from edgebox.link.own_uplink import NoUplink
from edgebox.link.site_estimates import SiteEstimates
from edgebox.link.transit import TransitEstimator
from edgebox.runtime.availability import AbsentExecutor, unserved_because
from edgebox.runtime.box_event import BoxEvent
from edgebox.runtime.camera_placement import submit
from edgebox.runtime.camera_record import CameraRecord, Session
from edgebox.runtime.destinations import Destination
from edgebox.runtime.driver import Driver
from edgebox.runtime.frame_metrics import Metrics
from edgebox.runtime.frame_tracking import FrameTracking
from edgebox.runtime.frames import (
    Answer,
    ArrivedFrame,
    FrameResult,
    PendingFrame,
    note_refusal,
    one_shot_frame,
    one_shot_request,
)
from edgebox.runtime.last_plan import LastPlan
from edgebox.runtime.model_choice import ModelChoice
from edgebox.runtime.notices import Notices
from edgebox.runtime.observers import Observers
from edgebox.runtime.peers import NAMES_PER_CAMERA, Peers
from edgebox.runtime.refusals import (
    REFUSALS,
    BoxFullError,
    CameraInUseError,
    NoCapacityError,
    Refusals,
    UnavailableError,
)
from edgebox.runtime.shown_frames import ShownFrames
from edgebox.runtime.source_status import SourceStatus
from edgebox.scheduling.actions import Advise
from edgebox.scheduling.events import (
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    LinkMeasured,
)
from edgebox.tracking.settings import NOT_TRACKED, TrackingDefaults

_FORGET_NS = 600_000_000_000

Profiles = Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]
OnEnd = Callable[[PendingFrame, FrameResult], None]
Admission = Callable[[PlanningSnapshot, Camera], str | None]
"""Returns why a new camera would degrade others; None: it would not. Pure, runs in a thread."""


class Box:
    """The state that web/ and notifications/ share."""

    def __init__(
        self,
        *,
        name: str,
        version: str,
        cameras_max: int,
        unacknowledged_max: int,
        bandwidth: EstimatorKind,
        on_event: Callable[[BoxEvent], None],
        on_camera: Callable[[CameraRecord], None],
        admission: Admission | None = None,
        tracking: TrackingDefaults = NOT_TRACKED,
    ) -> None:
        """Start without cameras and without a driver; `attach` makes it ready.

        Args:
            name: what the page calls this box.
            version: edgebox's version.
            cameras_max: cameras that may be connected at the same time.
            unacknowledged_max: frames that a camera may send ahead of their acks.
            bandwidth: how the bandwidth of a link is estimated from frames' throughputs.
            on_event: called with each event, to be stored.
            on_camera: called with each camera that connects, to be stored.
            admission: checks whether a new camera would degrade others and is refused; None: no
                such check.
            tracking: which cameras are tracked, where nothing else is set on the box.
        """
        self.name = name
        self.version = version
        self.sites = SiteEstimates(lambda: BandwidthEstimate(rule=bandwidth))
        self.models = ModelChoice()
        self.cameras: dict[CameraId, CameraRecord] = {}
        self.overrides: dict[CameraId, Overrides] = {}
        """Settings made on the box, also for cameras that are not connected."""
        self.tracking = FrameTracking(tracking, self.overrides)
        self.shown = ShownFrames()
        self.observers: Observers[[CameraRecord, PendingFrame, FrameResult]] = Observers()
        """Called with each frame of a camera that has ended, after its camera was informed."""
        self.forgotten: Observers[[CameraId]] = Observers()
        """Called with each camera that somebody has forgotten."""
        self.sources: dict[CameraId, SourceStatus] = {}
        """The cameras whose pictures the box fetches itself."""
        self.absent: dict[ExecutorId, AbsentExecutor] = {}
        self._destinations: list[Destination] = []
        self.metrics = Metrics()
        self._peers = Peers(cameras_max, time.monotonic_ns)
        self.notices = Notices(self._peers, on_event)
        self._not_ready_because = "starting"
        self.started_ns = time.monotonic_ns()
        self.last_plan = LastPlan()
        self._profiles: Profiles = {}
        self._cameras_max, self._unacknowledged_max = cameras_max, unacknowledged_max
        self._on_camera = on_camera
        self._admission = admission
        self._opening = asyncio.Lock()
        self.refusals = Refusals(self._warn_of, time.monotonic_ns)
        self._driver: Driver | None = None

    def offer(self, models: ModelChoice) -> None:
        """Set the families and pipelines that are served."""
        self.models = models

    @property
    def families(self) -> Mapping[FamilyName, Family]:
        """The families that are served."""
        return self.models.families

    def attach(self, driver: Driver, profiles: Profiles) -> None:
        """Take the driver and its executors' profiles; from now on cameras may connect."""
        self._driver = driver
        self._profiles = profiles
        self._not_ready_because = ""

    def set_not_ready(self, because: str) -> None:
        """Refuse cameras and pictures from now on, for this reason."""
        self._not_ready_because = because

    @property
    def not_ready_because(self) -> str:
        """Why cameras are refused; empty: they may connect."""
        return self._not_ready_because

    @property
    def profiles(self) -> Profiles:
        """Each executor's profiles."""
        return self._profiles

    def set_profiles(
        self, executor: ExecutorId, profiles: Mapping[VariantName, LatencyProfile]
    ) -> None:
        """Replace the profiles of an executor."""
        before = self._profiles.get(executor, {})
        self._profiles = {**self._profiles, executor: profiles}
        if self._driver is not None:
            self._driver.measurements.profiles_changed(executor, before, profiles)

    @property
    def destinations(self) -> Sequence[Destination]:
        """The receivers of notifications."""
        return self._destinations

    def add_destination(self, destination: Destination) -> None:
        """Show a receiver of notifications on the page and in the metrics."""
        self._destinations.append(destination)

    @property
    def attached(self) -> bool:
        """Return whether there is a driver yet."""
        return self._driver is not None

    @property
    def driver(self) -> Driver:
        """The driver; only once the box is ready."""
        if self._driver is None:
            raise EdgeboxError(f"the box is not ready: {self.not_ready_because}")
        return self._driver

    @property
    def ready(self) -> bool:
        """Return whether cameras may connect."""
        return not self.not_ready_because

    def unserved_because(self, variants: Iterable[Variant] | None = None) -> str:
        """Return why no frame can be answered now, by these variants; empty: frames can be."""
        if self._driver is None or not self.ready:
            return self.not_ready_because
        names = None if variants is None else [variant.name for variant in variants]
        driver = self._driver
        return unserved_because(driver.scheduler.supervised, driver.clock_ns(), names)

    def _warn_of(self, text: str, camera: str | None, address: str) -> None:
        self.notices.publish_from(address, "warning", text, camera)

    def end_minute(self) -> None:
        """Publish how many notices were held back in this minute; forget cameras that left."""
        self.notices.end_minute(self.cameras)
        if self._driver is not None:
            self._driver.end_minute()
        self.forget_old_cameras()

    async def open_camera(
        self,
        camera: Camera,
        agent: str,
        instance: str | None,
        session: Session,
        *,
        pulled: bool = False,
    ) -> CameraRecord:
        """Connect a camera, `pulled` if the box fetches it; its first advice is in the record.

        Cameras that arrive together are admitted one after the other.

        Raises:
            CameraInUseError: another one with this name is connected.
            BoxFullError: no more cameras fit.
            NoCapacityError: other cameras would be degraded.
            UnavailableError: no executor that runs its family is up.
        """
        async with self._opening:
            self._check_names(camera.id, session.address)
            try:
                self._check_place(camera, instance)
                overrides = self.overrides.get(camera.id, NOTHING_SET)
                in_force = overrides.applied_to(camera, self.models.pipelines, self.families)
                await self._check_capacity(in_force)
                self._check_executors(in_force.family)
            except REFUSALS as error:
                self.refusals.add(camera.id, session.address, error)
                raise
            return self._take_on(camera, agent, instance, session, pulled)

    def _check_names(self, camera: CameraId, address: str) -> None:
        try:
            self._peers.named(address, camera)
        except BoxFullError as error:
            # The number of names is unbounded, so nothing is stored per name.
            self.refusals.counts[error.code] += 1
            self.notices.publish_from(address, "warning", f"a camera was refused: {error}", None)
            raise

    def _check_place(self, camera: Camera, instance: str | None) -> None:
        old = self.cameras.get(camera.id)
        before = None if old is None else old.session
        same = old is not None and instance is not None and instance == old.instance
        if before is not None and not same:
            raise CameraInUseError.of(camera.id, before.address)
        most = self._cameras_max
        if len(self.cameras) >= most and self.connected - (before is not None) >= most:
            raise BoxFullError.of(most)

    async def _check_capacity(self, camera: Camera) -> None:
        if self._admission is None:
            return
        snapshot = self.driver.scheduler.snapshot(self.driver.clock_ns())
        # Off the loop, like planning: it takes milliseconds where there are many cameras.
        why = await asyncio.to_thread(self._admission, snapshot, camera)
        if why is not None:
            raise NoCapacityError.of(camera.id, why)

    def _check_executors(self, family: FamilyName) -> None:
        served = self.families.get(family)
        because = "it was removed" if served is None else self.unserved_because(served.offered)
        if because:
            raise UnavailableError(f"{family} cannot run now: {because}. Try again")

    def _take_on(
        self, camera: Camera, agent: str, instance: str | None, session: Session, pulled: bool
    ) -> CameraRecord:
        old = self.cameras.get(camera.id)
        if old is not None and (before := old.session) is not None:
            self.close_camera(old, "connected again")
            before.replaced()
        overrides = self.overrides.get(camera.id, NOTHING_SET)
        record = CameraRecord(
            camera,
            agent,
            instance,
            session,
            overrides=overrides,
            pipelines=self.models.pipelines,
            families=self.families,
            unacknowledged_max=self._unacknowledged_max,
            opened_ns=self.driver.clock_ns(),
            link=TransitEstimator(
                NoUplink()
                if pulled
                else self.sites.join(camera.id, overrides.site or camera.site, session.address)
            ),
            pulled=pulled,
        )
        self.cameras[camera.id] = record
        self.driver.feed(CameraConnected(record.camera))
        self._on_camera(record)
        text = f"{camera.id} connected from {session.address}"
        self.notices.publish_from(session.address, "info", text, camera.id)
        return record

    def override(self, camera: CameraId, overrides: Overrides) -> None:
        """Override a camera's hello, at once and for as long as the box knows the camera.

        Frames that were captured before keep their deadlines.
        """
        if overrides == self.overrides.get(camera, NOTHING_SET):
            return
        self.overrides[camera] = overrides
        self.tracking.changed(camera)
        record = self.cameras.get(camera)
        if record is None:
            return
        site, now = record.camera.site, record.camera
        then = overrides.applied_to(record.requested, self.models.pipelines, self.families)
        if record.session and (then.family, then.pipeline) != (now.family, now.pipeline):
            kind = "model" if then.pipeline == now.pipeline else "pipeline"
            record.session.reconnect(f"its {kind} was changed on the box")  # for new labels
            return
        record.override(overrides)
        if record.camera.site != site and record.connected and not record.pulled:
            record.inferred = None
            record.override(overrides)
            record.link.bandwidth = self.sites.join(camera, record.camera.site, record.address)
        if record.session is not None and record.advice is not None:
            self.driver.feed(CameraChanged(record.camera))
            record.session.advised(record.advice)

    def forget(self, camera: CameraId) -> None:
        """Forget a camera that is not connected, and what was set for it."""
        self.overrides.pop(camera, None)
        if self._driver is not None:  # also while the box starts
            self._driver.cascades.forget(camera)
        self._let_go(camera)
        self.forgotten.notify(camera)

    def _let_go(self, camera: CameraId) -> None:
        self.cameras.pop(camera, None)
        self.shown.forget(camera)
        self.metrics.forget(camera)
        self.tracking.forget(camera)

    @property
    def connected(self) -> int:
        """Cameras that are connected now."""
        return sum(record.connected for record in self.cameras.values())

    def close_camera(self, record: CameraRecord, why: str) -> None:
        """Disconnect a camera; does nothing if it is not connected."""
        if record.session is None:
            return
        address, record.session = record.session.address, None
        record.left_ns = self.driver.clock_ns()
        record.left_because = why
        self.sites.leave(record.camera.id)
        self.driver.feed(CameraDisconnected(record.camera.id))
        self.tracking.departed(record.camera.id)  # after the last answer, which may come before
        self.notices.publish_from(
            address, "info", f"{record.camera.id} left: {why}", record.camera.id
        )
        self._bound_departed()

    def _bound_departed(self) -> None:
        """Forget those that left first, so that endless names make no endless documents."""
        left = sorted(
            (record.left_ns, camera)
            for camera, record in self.cameras.items()
            if record.left_ns is not None and not self.metrics.of(camera).counts.pending
        )
        for _, camera in left[: -NAMES_PER_CAMERA * self._cameras_max]:
            self._let_go(camera)

    def forget_old_cameras(self) -> None:
        """Forget cameras that left ten minutes ago."""
        horizon_ns = self.driver.clock_ns() - _FORGET_NS
        for camera, record in list(self.cameras.items()):
            if record.left_ns is not None and record.left_ns < horizon_ns:
                self._let_go(camera)

    def submit_frame(self, record: CameraRecord, arrived: ArrivedFrame, on_end: OnEnd) -> bool:
        """Submit a frame that has arrived completely.

        Args:
            record: its camera.
            arrived: the frame.
            on_end: called exactly once with the result, possibly before this returns.

        Returns:
            Whether the camera's clock should be measured again.
        """
        driver, now_ns = self.driver, self.driver.clock_ns()
        header, jpeg, picture_px = arrived.header, arrived.jpeg, arrived.picture_px
        pixels = picture_px[0] * picture_px[1] if picture_px else None
        if arrived.cut:
            update = record.frame_cut(header, now_ns)
        else:
            update = record.frame_arrived(header, arrived.arrival(now_ns), pixels)
        transit = update.transit
        metrics = self.metrics.of(record.camera.id)
        skipped = update.skipped
        metrics.captured(1 + skipped.total, skipped.total, now_ns, skipped.ordered)
        metrics.received(arrived.size_bytes, transit.carried)
        if not arrived.cut:
            self._note_sites()
            if (link := record.link.take_updates(now_ns)) is not None:
                driver.feed(LinkMeasured(record.camera.id, link))
        request = record.request(driver.next_request_id(), arrived, update, now_ns)
        # While the frame is here, its camera's family may change, and that may be removed.
        family, families = record.camera.family, self.families

        def ended(frame: PendingFrame, ending: FrameResult) -> None:
            ending = self.tracking.ended(frame, ending, families, family)
            note_refusal(frame, ending)
            metrics.ended(ending, driver.clock_ns(), families[family].labels)
            metrics.crops_ended(frame, ending)
            if isinstance(ending, Answer):
                self.shown.answered(frame, ending)
            on_end(frame, ending)
            self.observers.notify(record, frame, ending)

        frame = PendingFrame(
            request, jpeg, header.width_px, header.height_px, transit.return_ns, ended,
            number=header.frame, family=family, pipeline=record.camera.pipeline,
            tracker=self.tracking.tracker(record.camera.id, family),
        )  # fmt: skip
        if (refusal := arrived.refusal) is not None:
            frame.ended = True
            ended(frame, refusal)
        else:
            submit(frame, arrived.detected, record.offer, driver)
        if frame.refused is None:
            metrics.accepted(now_ns)
        return transit.suspicious

    def _note_sites(self) -> None:
        """Apply what was inferred about shared uplinks."""
        for camera, site, uplink in self.sites.take_updates():
            record = self.cameras[camera]
            record.inferred, record.link.bandwidth = site, uplink
            record.override(record.overrides)
            self.driver.feed(CameraChanged(record.camera))
            found = "no longer shares its uplink" if site is None else "shares the uplink"
            text = f"{camera} {found} with others from {record.address}, as its frames say"
            self.notices.publish_from(record.address, "info", text, camera)

    def submit_picture(
        self,
        picture: bytes | memoryview | NDArray[np.uint8], picture_px: tuple[int, int],
        variant: VariantName, deadline_ms: float,
        *,
        app: str, address: str, on_end: OnEnd, pipeline: Pipeline | None = None,
    ) -> RequestId:  # fmt: skip
        """Submit a program's single JPEG or (h, w, 3) RGB picture; `on_end` as above.

        `variant` is of the family of the pipeline's first stage, if there is a pipeline. `address`
        says who sent it: programs share the decoding threads by address.
        """
        request = one_shot_request(
            self.driver.next_request_id(), picture, picture_px, variant,
            app=app, now_ns=self.driver.clock_ns(), deadline_ms=deadline_ms, pipeline=pipeline,
        )  # fmt: skip
        self.driver.submit(one_shot_frame(request, picture, on_end, address))
        return request.id

    def advised(self, order: Advise) -> None:
        """Apply new advice."""
        record = self.cameras.get(order.camera)
        if record is None:
            return
        before, after = record.advice, order.advice
        record.advised(after, self.driver.clock_ns())
        session = record.session
        if before is not None and before.variant != after.variant and session is not None:
            was = self.driver.variants.get(before.variant)
            moved = "moved" if was is None else f"moved from {was.size_text}"
            text = f"{order.camera} {moved} to {after.reason}"  # begins with the size it has now
            self.notices.moved(session.address, order.camera, text)
        if session is not None and before is not None:
            session.advised(after)
