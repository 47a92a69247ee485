"""Decides when to plan, and what advice each camera gets from a plan.

Owns the connected cameras, their links, the assignments and the advice in force. Pure: the planner
itself runs elsewhere, between a ComputePlan and a PlanComputed.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.picture_size import camera_send_size
from edgebox.domain.plans import Advice, Assignment, CameraSnapshot, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, LinkState, Request, SiteId
from edgebox.scheduling.actions import Advise, ComputePlan
from edgebox.scheduling.affinity import ExecutorAffinity
from edgebox.scheduling.connected_camera import NEVER_NS, ConnectedCamera
from edgebox.scheduling.crop_sides import CropSides
from edgebox.scheduling.events import CascadeMeasured
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.fan_out import FanOut
from edgebox.scheduling.ladders import Ladders, first_variant
from edgebox.scheduling.later_stage_costs import later_stages, other_later_s, planned_cascade
from edgebox.scheduling.ledger import LiveRequest, RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

FIRST_REASON = "first frames: the link is not measured yet"
NEW_FAMILY_REASON = "first frames with another model: not planned yet"


class Adaptation:
    """The core's part of the planning loop: it takes snapshots and turns plans into advice."""

    def __init__(
        self,
        parameters: SchedulerParameters,
        ladders: Ladders,
        affinity: ExecutorAffinity,
        times: ExecutionTimes,
        fan_out: FanOut,
    ) -> None:
        self._parameters = parameters
        self._fan_out = fan_out
        self.crop_sides = CropSides()
        """How large the objects are that each stage of a camera's pipeline is given."""
        self._ladders = ladders
        self._affinity = affinity
        self._latencies = times.latencies
        self._calibration = times.calibration
        self._expectations = times.expectations
        self.cameras: dict[CameraId, ConnectedCamera] = {}
        self._tightest_slo_ns: int | None = None
        """The shortest SLO, as every frame needs it; None: not known, or there is no camera."""
        self._in_snapshot: set[CameraId] | None = None
        """The cameras of the plan that is being computed, without those that changed meanwhile."""
        self._box_shares: dict[CameraId, float] = {}
        """The share of each camera's frames that the last plan counted for the box."""
        self._wanted = False
        self._urgent = False
        self._site_links: dict[SiteId, LinkState] = {}
        """The last reported link state of each site's uplink, from any of its cameras."""
        self._due_ns = 0
        self._planned_ns = 0
        self._took_ns = 0
        self._paid_ns = 0
        """When planning will have had no more than its share of the time so far."""
        self._planned_share = 0.0
        self._promised_part = 0.0
        """The part of it that is for cameras that are served."""

    @property
    def cameras_share(self) -> float:
        """The share of the executors' time that the plan in force gives to cameras."""
        planned = min(self._planned_share, self._parameters.utilisation_max)
        return planned if self.cameras else 0.0

    @property
    def promised_share(self) -> float:
        """The share of the executors' time that the plan in force gives to cameras that it serves,
        the others being best effort."""
        return self._promised_part * self.cameras_share

    def open(self, camera: Camera, now_ns: int) -> list[Advise]:
        """Add a camera and return its first advice."""
        self.cameras[camera.id] = ConnectedCamera(camera, LinkState())
        self._tightest_slo_ns = min(camera.slo_ns, self.tightest_slo_ns or camera.slo_ns)
        self._outdate(camera.id)
        return self._first_advice(self.cameras[camera.id], now_ns)

    def change(self, camera: Camera, now_ns: int) -> list[Advise]:
        """Apply new settings of a connected camera and request a plan at once.

        Until that plan arrives the plan in force stays, at no higher rate and on no larger variant
        than the new settings ask for. None is in force for another family: the camera is served
        like a new one.
        """
        connected = self.cameras[camera.id]
        if connected.camera.pipeline != camera.pipeline:
            self.crop_sides.forget(camera.id)
        connected.camera = camera
        self._tightest_slo_ns = None
        self._outdate(camera.id)
        given = connected.assignment
        if given is None:
            return self._first_advice(connected, now_ns)
        variant = self._ladders.named(given.variant)
        if variant is None or variant.family != camera.family:
            connected.unplan()
            return self._first_advice(connected, now_ns, NEW_FAMILY_REASON)
        if not self._runs(connected):
            return self._put_in_force(connected, now_ns)
        if given.rate_hz <= camera.rate_hz:
            return []
        connected.assignment = replace(given, rate_hz=camera.rate_hz)
        return self._advise(connected, connected.assignment, variant, now_ns)

    def close(self, camera: CameraId) -> None:
        """Remove a camera."""
        if self.cameras.pop(camera).camera.slo_ns == self._tightest_slo_ns:
            self._tightest_slo_ns = None
        self.crop_sides.forget(camera)
        self._outdate(camera)

    def _outdate(self, camera: CameraId) -> None:
        """Request a plan; one that is being computed does not apply to this camera."""
        self._wanted = True
        if self._in_snapshot is not None:
            self._in_snapshot.discard(camera)

    def cascade_share(self, camera: CameraId) -> float:
        """Return the share of a camera's pictures that its plan lets its cascade send on."""
        return self._fan_out.cascade_share(camera)

    def cascade_measured(self, event: CascadeMeasured) -> None:
        """Note the curve of a connected camera's cascade for its last pictures."""
        if event.camera in self.cameras:
            self._fan_out.cascade_measured(event.camera, event.curve)

    @property
    def assignments(self) -> dict[CameraId, Assignment]:
        """The assignment in force for each camera."""
        return {of: c.assignment for of, c in self.cameras.items() if c.assignment is not None}

    @property
    def advice(self) -> dict[CameraId, Advice]:
        """The last advice sent to each camera."""
        return {of: c.advice for of, c in self.cameras.items() if c.advice is not None}

    @property
    def wanted(self) -> Mapping[VariantName, int]:
        """The number of cameras to which the last plan gave each variant."""
        return Counter(c.planned.variant for c in self.cameras.values() if c.planned is not None)

    @property
    def tightest_slo_ns(self) -> int | None:
        """The shortest SLO of all connected cameras."""
        if self._tightest_slo_ns is None:
            slos_ns = (c.camera.slo_ns for c in self.cameras.values())
            self._tightest_slo_ns = min(slos_ns, default=None)
        return self._tightest_slo_ns

    def link_measured(self, camera: CameraId, link: LinkState) -> None:
        """Note the state of a link; if it fell far below what the plan used, plan again."""
        if (connected := self.cameras.get(camera)) is None:
            return
        connected.link = link
        if connected.camera.site is not None:
            self._site_links[connected.camera.site] = link
        if connected.planned_bps is not None and link.bandwidth_bps is not None:
            enough_bps = (1 - self._parameters.bandwidth_drop_threshold) * connected.planned_bps
            self._urgent = self._urgent or link.bandwidth_bps < enough_bps

    def finished(self, batch: RunningBatch, members: Iterable[LiveRequest], now_ns: int) -> None:
        """Learn from the frames of a batch by how much they exceeded the plan's expectation.

        The link is measured separately, and waiting for other batches is part of the plan. What
        remains is the time before the frame left its camera, beyond the usual, its decoding, and
        its batch's execution.
        """
        infer = batch.infer
        row = self._latencies.row(infer.executor, infer.variant)
        if row is None or infer.batch_size not in row.sizes:
            return
        # A batch that was given few threads takes longer on purpose.
        took_ns = (now_ns - batch.started_ns) / self._latencies.core_factor(infer)
        elapsed_ns = round(took_ns) - self._calibration.fixed_ns
        others, high_ns = self._others, dict[str, int]()
        for live in members:
            request = live.request
            counts = live.reason is None and request.frame is None
            connected = self.cameras.get(request.camera) if counts else None
            if connected is not None:
                if request.app not in high_ns:
                    high_ns[request.app] = self._expectations.high_ns(
                        infer.executor, infer.variant, request.app, infer.batch_size, others
                    )
                over_ns = elapsed_ns - high_ns[request.app]
                before_ns = _before_sending_ns(request) - connected.before_sending_ns
                decoding_ns = live.ready_ns - request.arrival_ns
                connected.overruns.add(max(0, before_ns + decoding_ns + over_ns))

    @property
    def _others(self) -> float:
        """The mean number of other running executors if the planner uses all its time."""
        return self._parameters.utilisation_max * (self._latencies.batches_at_once - 1)

    def expired(self, camera: CameraId) -> None:
        """Note that a frame of this camera could not be answered in time."""
        if (connected := self.cameras.get(camera)) is not None:
            connected.overruns.add(NEVER_NS)

    def arrived(self, request: Request) -> None:
        """Note how long a frame took before its camera sent it."""
        if (connected := self.cameras.get(request.camera)) is not None:
            connected.before_sending.add(_before_sending_ns(request))

    def placed(self, camera: CameraId, *, at_camera: bool) -> None:
        """Note where the first stage of a frame runs."""
        if (connected := self.cameras.get(camera)) is not None:
            connected.at_camera.add(int(at_camera))

    def slowed(self) -> None:
        """Note that executors have become slower; plan again, as after a drop in bandwidth."""
        self._urgent = True

    def resources_changed(self, now_ns: int) -> list[Advise]:
        """Apply a change of variants or executors."""
        self._wanted = True
        return self.put_in_force((), now_ns)

    def planned(self, plan: Plan, now_ns: int) -> set[CameraId]:
        """Note a plan; ignore its assignments for cameras that changed since its snapshot.

        Returns:
            The cameras that have others: to be put in force once memories follow the plan.
        """
        snapshot_cameras, self._in_snapshot = self._in_snapshot, None
        self._affinity.planned(plan.groups)
        self._planned_share = plan.utilisation
        self._promised_part = self._part_of_served(plan)
        if snapshot_cameras is not None:
            self._took_ns = now_ns - self._planned_ns
            rested_ns = round(self._took_ns / self._parameters.replan_share)
            self._paid_ns = max(self._paid_ns, self._planned_ns) + rested_ns
        planned: set[CameraId] = set()
        for camera, given in plan.assignments.items():
            connected = self.cameras.get(camera)
            if connected is None or snapshot_cameras is None or camera not in snapshot_cameras:
                continue
            if self._ladders.named(given.variant) is None:
                continue
            if connected.promised and not given.served:
                connected.unserved_ns = now_ns
            connected.promised = given.served
            self._fan_out.planned(camera, given)
            connected.planned = self._whole(given, connected.camera)
            planned.add(camera)
        return planned

    def put_in_force(self, planned: Collection[CameraId], now_ns: int) -> list[Advise]:
        """Advise cameras that were planned, and those that lack a variant that can run (now).

        To be called when what is in memory may have changed.
        """
        out: list[Advise] = []
        for camera, connected in self.cameras.items():
            if camera in planned or not self._runs(connected):
                out += self._put_in_force(connected, now_ns)
        return out

    def _runs(self, connected: ConnectedCamera) -> bool:
        """Say whether a camera's variant can run, or none can."""
        given, allowed = connected.assignment, self._ladders.allowed(connected.camera)
        return not allowed or any(given and each.name == given.variant for each in allowed)

    def _put_in_force(self, connected: ConnectedCamera, now_ns: int) -> list[Advise]:
        """Assign what its plan gave a camera, or what a new one is given, as far as it can run."""
        given, camera = connected.planned, connected.camera
        if given is None:
            before = connected.assignment
            return self._first_advice(connected, now_ns, before.reason if before else FIRST_REASON)
        wanted = self._ladders.named(given.variant)
        if wanted is None:
            connected.unplan()
            return self._first_advice(connected, now_ns, NEW_FAMILY_REASON)
        given = replace(given, rate_hz=min(given.rate_hz, camera.rate_hz))
        variant = self._ladders.stand_in(wanted, camera) or wanted
        if variant != wanted:
            allowed = self._ladders.limited(wanted, camera)
            given = given if allowed == wanted else _limited(given, allowed)
            given = given if variant == allowed else _substitute(given, variant)
        if self._is_smaller(variant, connected.assignment):
            connected.lowered_ns = now_ns
        connected.assignment = given
        return self._advise(connected, given, variant, now_ns)

    def _part_of_served(self, plan: Plan) -> float:
        """Return the part of the planned time that is for cameras that are served."""
        of_served = {False: 0.0, True: 0.0}
        for given in plan.assignments.values():
            known = self._expectations.single_request(given.variant, "")
            of_served[given.served] += given.rate_hz * (0.0 if known is None else known.usual_ns)
        return of_served[True] / (sum(of_served.values()) or 1.0)

    def _whole(self, given: Assignment, camera: Camera) -> Assignment:
        """Return an assignment with the rate of all frames, also of those placed at the camera."""
        share = self._box_shares.get(given.camera, 1.0)
        if share >= 1:
            return given
        return replace(given, rate_hz=min(camera.rate_hz, round(given.rate_hz / share, 3)))

    def _is_smaller(self, variant: Variant, than: Assignment | None) -> bool:
        before = None if than is None else self._ladders.named(than.variant)
        return before is not None and variant.pixels < before.pixels

    def plan_failed(self) -> None:
        """Keep the plan in force; the next plan is requested at its usual time."""
        self._in_snapshot = None

    def next_plan_ns(self) -> int | None:
        """Return when to request the next plan; None: not before an event.

        A change is planned for at once. Where changes come without end, as when hundreds of cameras
        connect, plans that follow at once may be ahead of planning's share of the time by an
        interval; then one plan is for all changes until it is due.
        """
        if self._in_snapshot is not None or not self.cameras or not self._latencies.all_known:
            return None
        if self._wanted:
            return max(0, self._paid_ns - self._parameters.planning_interval_ns)
        rested_ns = self._planned_ns + round(self._took_ns / self._parameters.replan_share)
        if self._urgent:
            soon_ns = self._planned_ns + self._parameters.replan_min_ns
            return max(rested_ns, min(self._due_ns, soon_ns))
        return max(rested_ns, self._due_ns)

    def compute_plan(self, now_ns: int) -> ComputePlan:
        """Take a snapshot and request a plan; no other one is requested before its answer."""
        self._wanted = self._urgent = False
        self._planned_ns = now_ns
        self._due_ns = now_ns + self._parameters.planning_interval_ns
        self._in_snapshot = set(self.cameras)
        self._box_shares = {camera: c.box_share for camera, c in self.cameras.items()}
        sites = {connected.camera.site for connected in self.cameras.values()}
        self._site_links = {site: of for site, of in self._site_links.items() if site in sites}
        for connected in self.cameras.values():
            connected.planned_bps = self._link_of(connected).bandwidth_bps
        return ComputePlan(self.snapshot(now_ns))

    def _link_of(self, connected: ConnectedCamera) -> LinkState:
        """Return a camera's link; for a site, the last state reported by any of its cameras."""
        newest = self._site_links.get(connected.camera.site) if connected.camera.site else None
        if newest is None:
            return connected.link
        return replace(
            connected.link,
            bandwidth_bps=newest.bandwidth_bps,
            throughput_stability=newest.throughput_stability,
        )

    def snapshot(self, now_ns: int) -> PlanningSnapshot:
        """Return all that planning may know now."""
        return PlanningSnapshot(
            taken_ns=now_ns,
            cameras=tuple(self._camera_snapshot(c) for c in self.cameras.values()),
            variants=self._ladders.offered,
            profiles=self._latencies.all_known,
            slowdown=self._latencies.slowdowns,
            fixed_ns=self._calibration.fixed_ns,
            groups=self._affinity.groups,
            others=self._others,
            executor_shares={
                executor: device.share
                for device in self._latencies.concurrency.values()
                if device.share < 1
                for executor in device.executors
            },
            applications=self._expectations.learned(
                (c.camera.app for c in self.cameras.values()), self._latencies.all_known
            ),
        )

    def _camera_snapshot(self, connected: ConnectedCamera) -> CameraSnapshot:
        camera, fan_out = connected.camera, self._fan_out
        later = later_stages(camera, self._ladders, fan_out, self.crop_sides)
        cascade = planned_cascade(camera, self._ladders, fan_out)
        return CameraSnapshot(
            _on_box(camera, connected.box_share),
            self._link_of(connected),
            connected.assignment,
            connected.lowered_ns,
            connected.overrun_ns,
            before_sending_ns=connected.before_sending_ns,
            later_ns=fan_out.after_first_ns(camera),
            later=later,
            other_later_s=other_later_s(camera, later, cascade, fan_out),
            later_frames=1 / connected.box_share,
            cascade=cascade,
            unserved_ns=connected.unserved_ns,
        )

    def _first_advice(
        self, connected: ConnectedCamera, now_ns: int, reason: str = FIRST_REASON
    ) -> list[Advise]:
        camera = connected.camera
        variant = first_variant(
            self._ladders.allowed(camera),
            camera,
            self._expectations,
            camera.slo_ns * self._parameters.first_slo_share,
            self._parameters.first_pixels_max,
        )
        if variant is None:
            return []
        connected.assignment = Assignment(
            camera.id, variant.name, camera.rate_hz, self._parameters.quality, True, reason
        )
        return self._advise(connected, connected.assignment, variant, now_ns)

    def _advise(
        self, connected: ConnectedCamera, assignment: Assignment, variant: Variant, now_ns: int
    ) -> list[Advise]:
        camera, old = connected.camera, connected.advice
        width_px, height_px = camera_send_size(camera, variant)
        bandwidth_bps = self._link_of(connected).bandwidth_bps
        advice = Advice(
            variant=variant.name,
            width_px=width_px,
            height_px=height_px,
            rate_hz=assignment.rate_hz,
            quality=assignment.quality,
            bandwidth_bps=two_digits(bandwidth_bps) if bandwidth_bps is not None else 0,
            reason=assignment.reason,
        )
        if old is not None and not self._should_send(old, advice, now_ns - connected.advised_ns):
            return []
        connected.advice, connected.advised_ns = advice, now_ns
        return [Advise(camera.id, advice)]

    def _should_send(self, old: Advice, new: Advice, age_ns: int) -> bool:
        if old == new:
            return False
        step_bps = abs(new.bandwidth_bps - old.bandwidth_bps)
        return (
            (old.variant, old.width_px, old.height_px, old.rate_hz, old.quality)
            != (new.variant, new.width_px, new.height_px, new.rate_hz, new.quality)
            or step_bps > self._parameters.bandwidth_step * old.bandwidth_bps
            or age_ns >= self._parameters.advice_refresh_ns
        )


def two_digits(value: float) -> int:
    """Round to two significant digits, so that noise in an estimate causes no new advice."""
    if value < 1:
        return 0
    return int(round(value, 1 - math.floor(math.log10(value))))


def _before_sending_ns(request: Request) -> int:
    """Return how long a frame took until its camera sent it; 0: that is not known."""
    return 0 if request.sent_ns is None else max(0, request.sent_ns - request.captured_ns)


def _on_box(camera: Camera, share: float) -> Camera:
    """Return a camera with the rates of the frames whose first stage runs on the box."""
    if share >= 1:
        return camera
    return replace(camera, rate_hz=camera.rate_hz * share, min_rate_hz=camera.min_rate_hz * share)


def _limited(given: Assignment, variant: Variant) -> Assignment:
    """Return the assignment to use until a camera that takes no larger variant is planned."""
    reason = f"{variant.size_text}, the largest size that its pipeline allows: not planned yet"
    return replace(given, variant=variant.name, reason=reason)


def _substitute(given: Assignment, variant: Variant) -> Assignment:
    """Return the assignment to use until the assigned variant is in memory."""
    reason = f"{variant.size_text} until {given.variant} is in memory; then {given.reason}"
    return replace(given, variant=variant.name, reason=reason)
