"""This box as one of a fleet: what it reports, whom it redirects, what it tells cameras.

Lives on the event loop. The decisions are those of `edgebox/fleet`; this hands them what the box
knows. Nothing here waits for another box.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from edgebox.domain.access import Identity, Login
from edgebox.domain.model_family import FamilyName
from edgebox.domain.overrides import NOTHING_SET
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId
from edgebox.fleet.box_report import REPORT_PERIOD_NS, BoxName, BoxReport, KnownBoxes, Service
from edgebox.fleet.redirect import Placing, redirect_connected, redirect_hello
from edgebox.fleet.returned_cameras import ReturnedCameras
from edgebox.fleet.ticket import camera_ticket, has_ended, read_camera_ticket
from edgebox.inference.family import Family
from edgebox.link.failover import BOXES_MAX
from edgebox.link.fleet_messages import BoxPlace, OtherBoxes, Redirect
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.service_rate import frames_per_s_max
from edgebox.runtime.box import Box
from edgebox.web.fleet_settings import FleetSettings

_log = logging.getLogger(__name__)
_RATES_PERIOD_S = 10.0
"""How often it is looked at what the executors can do."""
_TOLD_PERIOD_S = 60.0
"""How often cameras are told of the other boxes again, with new tickets."""
_FORGET_PERIOD_S = 3_600.0
"""How often settings that were removed long ago are forgotten. The first time is not at the start:
what was removed while the box was in no fleet may have an old version, and others are to hear of
it."""
_NS = 1_000_000_000


class Movable(Protocol):
    """The connection of a camera that follows redirects."""

    @property
    def identity(self) -> Identity:
        """What the camera showed, from which its tickets descend."""

    def redirect(self, message: Redirect) -> None:
        """Send the camera to another box."""

    def tell(self, message: OtherBoxes) -> None:
        """Tell it where it may go if it loses this box."""


def service_of(
    family: FamilyName, pipeline: Pipeline | None, families: Mapping[FamilyName, Family]
) -> Service:
    """Return what a camera needs of a box: its model, or its pipeline with all models."""

    def sha256(name: FamilyName) -> str:
        found = families.get(name)
        return "removed" if found is None else found.sha256

    if pipeline is None:
        return Service(f"{family} {sha256(family)}")
    models = [sha256(stage.family) for stage in pipeline.stages]
    return Service(" ".join([f"pipeline {pipeline.name}", *models]))


class FleetMember:
    """One box of a fleet."""

    def __init__(
        self,
        box: Box,
        settings: FleetSettings,
        *,
        secret: str,
        cameras_max: int,
        parameters: PlanningParameters,
    ) -> None:
        """Know no other box; `listens` says where this one is.

        Args:
            box: this one.
            settings: those of cameras, which all boxes share.
            secret: what all boxes of the fleet share.
            cameras_max: how many cameras may be connected.
            parameters: the planner's.
        """
        self.secret = secret
        self.settings = settings
        self.known = KnownBoxes()
        self._returned = ReturnedCameras()
        self.draining = False
        self.left_out: dict[str, str] = {}
        """Addresses at which no box gives a report, and why (`FleetExchange`)."""
        self.asked_at: dict[str, BoxName] = {}
        """The boxes that gave reports, by the addresses at which they were asked."""
        self._box = box
        self._cameras_max = cameras_max
        self._parameters = parameters
        self._name, self._place = BoxName(box.name), BoxPlace("")
        self._rates: dict[FamilyName, float] = {}
        self._movable: dict[CameraId, Movable] = {}
        self._rng = random.Random()
        self.close_ended: Callable[[], None] = lambda: None
        """Closes the connections of cameras whose tickets are valid no more."""
        self.on_shown: Callable[[str], None] = lambda token: None
        """Called with the id of a token for which a ticket is given."""

    @property
    def name(self) -> BoxName:
        """The name of this box, of which each of a fleet has another."""
        return self._name

    def listens(self, address: str, fingerprint: str | None) -> None:
        """Take where this box is reached, and its certificate's fingerprint."""
        self._name = BoxName(f"{self._box.name} at {address}")
        self._place = BoxPlace(address, fingerprint)
        self.settings.name = self._name

    async def run(self) -> None:
        """Move cameras that are better off elsewhere, one at a time, until cancelled."""
        looked_s = told_s = -1e9
        forgot_s = time.monotonic()
        while True:
            await asyncio.sleep(REPORT_PERIOD_NS / _NS)
            if not self._box.ready:
                continue
            now_s = time.monotonic()
            try:
                if now_s - looked_s >= _RATES_PERIOD_S:
                    looked_s = now_s
                    await self.look()
                if now_s - told_s >= _TOLD_PERIOD_S:
                    told_s = now_s
                    for camera, session in self._movable.items():
                        session.tell(self.others(camera, session.identity))
                    self.close_ended()
                if now_s - forgot_s >= _FORGET_PERIOD_S:
                    forgot_s = now_s
                    self.settings.forget_old()
                self._consider_one()
            except Exception:  # tried again at the next look, whatever it was
                _log.exception("the fleet's cameras were not looked at")

    async def look(self) -> None:
        """Find out how many frames/s of each family the executors can answer."""
        driver = self._box.driver
        snapshot = driver.scheduler.snapshot(driver.clock_ns())
        families = list(self._box.families)
        self._rates = await asyncio.to_thread(_rates, snapshot, families, self._parameters)

    # -- what others are told ----------------------------------------------------------------

    def report(self, about: Iterable[CameraId] | None = None) -> BoxReport:
        """Return what this box says of itself; `about`: of these cameras only."""
        box = self._box
        load, services = self._load_and_services() if box.ready else (0.0, {})
        now_ns = box.driver.clock_ns() if box.attached else 0
        names = box.cameras if about is None else about
        absent_s = {}
        for name in names:
            record = box.cameras.get(name)
            if record is not None and not record.pulled:
                left_ns = record.left_ns
                absent_s[name] = 0.0 if left_ns is None else max(0.0, (now_ns - left_ns) / _NS)
        return BoxReport(
            self._name,
            self._place.address,
            load,
            services,
            box.connected,
            self._cameras_max,
            draining=self.draining or not box.ready,
            ready=box.ready or self.draining,
            version=box.version,
            absent_s=absent_s,
            fingerprint=self._place.fingerprint,
            settings=self.settings.replicated.digest(),
        )

    def others(self, camera: CameraId, identity: Identity) -> OtherBoxes:
        """Return where a camera that showed who it is may go if it loses this box."""
        fresh = [box for box in self.known.fresh(time.monotonic_ns()) if not box.draining]
        drawn = self._rng.sample(fresh, min(BOXES_MAX, len(fresh)))
        places = tuple(BoxPlace(box.address, box.fingerprint) for box in drawn)
        return OtherBoxes(places, self._ticket(camera, identity))

    # -- tickets of cameras -------------------------------------------------------------------

    def read(self, ticket: str) -> tuple[CameraId, Login] | None:
        """Return the camera that was sent here with this ticket, and its login; None: not valid."""
        found = read_camera_ticket(self.secret, ticket, time.time())
        if found is None or not self.allows(found.login):
            return None
        return CameraId(found.camera), found.login

    def allows(self, login: Login) -> bool:
        """Say whether what descends from a login is valid: no box is known to have revoked it."""
        revoked = self.settings.replicated.is_revoked(login.token)
        return not revoked and not has_ended(login, time.time())

    def _ticket(self, camera: CameraId, identity: Identity) -> str:
        """Return a ticket for a camera that is here.

        What it showed here is valid now. So a token counts as shown now, and a ticket does not:
        what is given in its place ends with it.
        """
        now_s = time.time()
        token = "" if identity.token is None else identity.token.id
        if identity.login is None:
            self.on_shown(token)
        login = identity.login or Login(token, round(now_s))
        return camera_ticket(self.secret, camera, login, now_s)

    # -- cameras -----------------------------------------------------------------------------

    def redirect_hello(
        self, camera: Camera, redirects: int | None, identity: Identity
    ) -> Redirect | None:
        """Return where a camera that says hello is to go; None: it is served here."""
        if redirects is None or not self._rates:
            return None
        if box := self._returned.came(camera.id, redirects, time.monotonic_ns()):
            self._box.notices.publish(
                "warning",
                f"{camera.id} was sent to {box} and came back: can cameras reach it at that "
                "address (fleet.address there), and do the clocks agree?",
                camera.id,
            )
        overrides = self._box.overrides.get(camera.id, NOTHING_SET)
        camera = overrides.applied_to(camera, self._box.models.pipelines, self._box.families)
        found = redirect_hello(
            self._placing(camera, redirects),
            self.report([camera.id]),
            self.known,
            time.monotonic_ns(),
            self._rng,
        )
        return None if found is None else self._sent(camera, identity, found.to, found.reason)

    def redirect_connected(self, camera: Camera, identity: Identity) -> Redirect | None:
        """Return where a camera that is connected is to go; None: it stays."""
        here = self.report([camera.id])
        placing = self._placing(camera)
        if placing.service not in here.services and not here.draining:
            return None  # it is not known yet what it takes
        found = redirect_connected(placing, here, self.known, time.monotonic_ns(), self._rng)
        return None if found is None else self._sent(camera, identity, found.to, found.reason)

    def joined(self, camera: CameraId, session: Movable) -> None:
        """Take in a camera that follows redirects, and tell it of the other boxes."""
        self._movable[camera] = session
        session.tell(self.others(camera, session.identity))

    def left(self, camera: CameraId, session: Movable) -> None:
        """Forget a camera's connection."""
        if self._movable.get(camera) is session:
            del self._movable[camera]

    def leaving(self, session: Movable) -> Redirect | None:
        """Return where the camera of a connection is to go as the box stops; None: anywhere."""
        for camera, known in self._movable.items():
            if known is session and (record := self._box.cameras.get(camera)) is not None:
                return self.redirect_connected(record.camera, session.identity)
        return None

    def _consider_one(self) -> None:
        """Send one camera away, if it is better off elsewhere."""
        if not self._movable:
            return
        camera = self._rng.choice([*self._movable])
        record, session = self._box.cameras.get(camera), self._movable[camera]
        if record is None:
            return
        if (to := self.redirect_connected(record.camera, session.identity)) is not None:
            session.redirect(to)

    def _placing(self, camera: Camera, redirects: int = 0) -> Placing:
        service = service_of(camera.family, camera.pipeline, self._box.families)
        avoided = self._returned.avoided(camera.id, time.monotonic_ns())
        return Placing(camera.id, service, camera.rate_hz, redirects, avoided)

    def _sent(self, camera: Camera, identity: Identity, to: BoxReport, why: str) -> Redirect:
        service = service_of(camera.family, camera.pipeline, self._box.families)
        self.known.sent(to.box, to.load_of(service, camera.rate_hz))
        self._returned.sent(camera.id, to.box, time.monotonic_ns())
        _log.info("%s is sent to %s: %s", camera.id, to.address, why)
        ticket = self._ticket(camera.id, identity)
        return Redirect(BoxPlace(to.address, to.fingerprint), ticket, why)

    def _load_and_services(self) -> tuple[float, dict[Service, float]]:
        box, rates = self._box, self._rates
        services = {
            service_of(name, None, box.families): rates[name]
            for name in box.families
            if rates.get(name)
        }
        for pipeline in box.models.pipelines.values():
            if rates.get(pipeline.first.family):
                service = service_of(pipeline.first.family, pipeline, box.families)
                services[service] = rates[pipeline.first.family]
        load = sum(
            record.camera.rate_hz / rates[record.camera.family]
            for record in box.cameras.values()
            if record.connected and rates.get(record.camera.family)
        )
        return load, services


def _rates(
    snapshot: PlanningSnapshot, families: list[FamilyName], parameters: PlanningParameters
) -> dict[FamilyName, float]:
    return {family: frames_per_s_max(snapshot, family, parameters) for family in families}
