"""Decides when to plan and what each camera is told of a plan.

Owns the connected cameras, their links, the assignments and the advice in force. Pure: the
planner itself runs elsewhere, between a ComputePlan and a PlanComputed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from edgebox.domain.model_family import ExecutorId, LatencyProfile, Variant, VariantName
from edgebox.domain.picture_size import send_size
from edgebox.domain.plans import Advice, Assignment, CameraSnapshot, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, LinkState, SiteId
from edgebox.scheduling.affinity import ExecutorAffinity
from edgebox.scheduling.calibration import RecentValues
from edgebox.scheduling.events import Advise, ComputePlan
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.ladders import Ladders, first_variant
from edgebox.scheduling.ledger import LiveRequest, RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

SURPLUS_WINDOW = 128
"""So many frames of a camera tell how much longer than planned they may take."""

SURPLUS_QUANTILE = 1 - 1 / (SURPLUS_WINDOW - 1)
"""All but the worst of them."""

_NEVER_NS = float(1 << 62)
"""Surplus of a frame that was not answered, and before anything is known."""

FIRST_REASON = "first frames: the link is not measured yet"


@dataclass(slots=True)
class ConnectedCamera:
    """A camera, what is known of it and what it has been told."""

    camera: Camera
    link: LinkState
    assignment: Assignment | None = None
    advice: Advice | None = None
    advised_ns: int = 0
    lowered_ns: int | None = None
    wanted: VariantName | None = None
    """What the last plan gave it, in memory or not."""
    planned_bps: float | None = None
    """The bandwidth that the last plan reckoned with."""
    surplus: RecentValues = field(default_factory=lambda: RecentValues(SURPLUS_WINDOW, _NEVER_NS))
    """How much longer than planned its last frames took, in ns."""

    @property
    def overrun_ns(self) -> int | None:
        """What the worst but one of its last frames took longer than planned; None: not known."""
        overrun_ns = self.surplus.quantile(SURPLUS_QUANTILE)
        return None if overrun_ns == _NEVER_NS else round(overrun_ns)


class Adaptation:
    """The slow loop's half inside the core: snapshots out, advice from plans."""

    def __init__(
        self,
        parameters: SchedulerParameters,
        ladders: Ladders,
        affinity: ExecutorAffinity,
        times: ExecutionTimes,
    ) -> None:
        self._parameters = parameters
        self._ladders = ladders
        self._affinity = affinity
        self._latencies = times.latencies
        self._calibration = times.calibration
        self._expectations = times.expectations
        self._variants: dict[VariantName, Variant] = {}
        self._profiles: dict[ExecutorId, Mapping[VariantName, LatencyProfile]] = {}
        self.cameras: dict[CameraId, ConnectedCamera] = {}
        self._in_snapshot: dict[CameraId, Camera] | None = None
        self._wanted = False
        self._broke = False
        self._site_links: dict[SiteId, LinkState] = {}
        """What was told last of the uplink of each site, by any of its cameras."""
        self._due_ns = 0
        self._planned_ns = 0
        self._took_ns = 0

    def open(self, camera: Camera, now_ns: int) -> list[Advise]:
        """Take in a camera and tell it what to start with."""
        self.cameras[camera.id] = ConnectedCamera(camera, LinkState())
        self._wanted = True
        return self._first_advice(self.cameras[camera.id], now_ns)

    def change(self, camera: Camera, now_ns: int) -> list[Advise]:
        """Take on other wishes of a connected camera: the next plan is asked for at once.

        Until it comes the plan in force stays, at no higher rate than is wished for now.
        """
        connected = self.cameras[camera.id]
        connected.camera = camera  # so that a plan on its way is void for this camera
        self._wanted = True
        given = connected.assignment
        if given is None:
            return self._first_advice(connected, now_ns)
        variant = self._variants.get(given.variant)
        if variant is None or given.rate_hz <= camera.rate_hz:
            return []
        connected.assignment = replace(given, rate_hz=camera.rate_hz)
        return self._advise(connected, connected.assignment, variant, now_ns)

    def close(self, camera: CameraId) -> None:
        """Forget a camera."""
        del self.cameras[camera]
        self._wanted = True

    @property
    def assignments(self) -> dict[CameraId, Assignment]:
        """What is in force for each camera."""
        return {of: c.assignment for of, c in self.cameras.items() if c.assignment is not None}

    @property
    def advice(self) -> dict[CameraId, Advice]:
        """What each camera was last told."""
        return {of: c.advice for of, c in self.cameras.items() if c.advice is not None}

    @property
    def wanted(self) -> Mapping[VariantName, int]:
        """How many cameras the last plan gives each variant to."""
        return Counter(c.wanted for c in self.cameras.values() if c.wanted is not None)

    @property
    def tightest_slo_ns(self) -> int | None:
        """The shortest time in which a connected camera wants its answers."""
        return min((c.camera.slo_ns for c in self.cameras.values()), default=None)

    def link_measured(self, camera: CameraId, link: LinkState) -> None:
        """Note what is now known of a link; one that broke its estimate is a reason to plan."""
        if (connected := self.cameras.get(camera)) is None:
            return
        connected.link = link
        if connected.camera.site is not None:
            self._site_links[connected.camera.site] = link
        if connected.planned_bps is not None and link.bandwidth_bps is not None:
            enough_bps = (1 - self._parameters.bandwidth_drop_threshold) * connected.planned_bps
            self._broke = self._broke or link.bandwidth_bps < enough_bps

    def finished(self, batch: RunningBatch, members: Iterable[LiveRequest], now_ns: int) -> None:
        """Learn from the frames of a batch how much longer than planned they took.

        Its link is known otherwise, and waiting for others is planned: what is left is the time
        before it left its camera, its decoding, and its batch's execution.
        """
        infer = batch.infer
        row = self._latencies.row(infer.executor, infer.variant)
        if row is None or infer.batch_size not in row.sizes:
            return
        elapsed_ns = now_ns - batch.started_ns - self._calibration.fixed_ns
        for live in members:
            request = live.request
            connected = None if live.departed else self.cameras.get(request.camera)
            if connected is not None:
                over_ns = elapsed_ns - self._expectations.high_ns(
                    infer.executor, infer.variant, request.app, infer.batch_size, self._others
                )
                sent_ns = request.captured_ns if request.sent_ns is None else request.sent_ns
                before_ns = sent_ns - request.captured_ns + live.ready_ns - request.arrival_ns
                connected.surplus.add(max(0, before_ns + over_ns))

    @property
    def _others(self) -> float:
        """How many executors run beside any one, on average, if as much is planned as may be."""
        return self._parameters.busy_share * max(0, len(self._profiles) - 1)

    def expired(self, camera: CameraId) -> None:
        """Note that a frame could not be answered in time."""
        if (connected := self.cameras.get(camera)) is not None:
            connected.surplus.add(_NEVER_NS)

    def slowed(self) -> None:
        """Note that executors have become slower: a reason to plan, like a link that broke."""
        self._broke = True

    def resources_changed(
        self, profiles: dict[ExecutorId, Mapping[VariantName, LatencyProfile]], now_ns: int
    ) -> list[Advise]:
        """Take in other variants or executors; advise cameras that had nothing to run on."""
        self._variants = {variant.name: variant for variant in self._ladders.offered}
        self._profiles = profiles
        self._wanted = True
        return [
            advise
            for connected in self.cameras.values()
            if connected.assignment is None
            for advise in self._first_advice(connected, now_ns)
        ]

    def planned(self, plan: Plan, now_ns: int) -> list[Advise]:
        """Put a plan into force; what it says of cameras that changed meanwhile is void."""
        asked, self._in_snapshot = self._in_snapshot, None
        self._affinity.planned(plan.groups)
        if asked is not None:
            self._took_ns = now_ns - self._planned_ns
        out: list[Advise] = []
        for camera, given in plan.assignments.items():
            connected = self.cameras.get(camera)
            if connected is None or asked is None or asked.get(camera) is not connected.camera:
                continue
            if (wanted := self._variants.get(given.variant)) is None:
                continue
            connected.wanted = given.variant
            variant = self._ladders.stand_in(wanted) or wanted
            assignment = given if variant == wanted else _instead(given, variant)
            if self._is_smaller(variant, connected.assignment):
                connected.lowered_ns = now_ns
            connected.assignment = assignment
            out.extend(self._advise(connected, assignment, variant, now_ns))
        return out

    def _is_smaller(self, variant: Variant, than: Assignment | None) -> bool:
        before = None if than is None else self._variants.get(than.variant)
        return before is not None and variant.pixels < before.pixels

    def plan_failed(self) -> None:
        """Keep the plan in force; the next one comes in its turn."""
        self._in_snapshot = None

    def next_plan_ns(self) -> int | None:
        """Return when the next plan is to be asked for; None: not before something happens."""
        if self._in_snapshot is not None or not self.cameras or not self._profiles:
            return None
        if self._wanted:
            return 0
        if self._broke:
            rest_ns = round(self._took_ns / self._parameters.replan_share)
            rest_ns = max(rest_ns, self._parameters.replan_min_ns)
            return min(self._due_ns, self._planned_ns + rest_ns)
        return self._due_ns

    def compute_plan(self, now_ns: int) -> ComputePlan:
        """Take a snapshot; until its answer comes no other plan is asked for."""
        self._wanted = self._broke = False
        self._planned_ns = now_ns
        self._due_ns = now_ns + self._parameters.planning_interval_ns
        self._in_snapshot = {camera: c.camera for camera, c in self.cameras.items()}
        sites = {connected.camera.site for connected in self.cameras.values()}
        self._site_links = {site: of for site, of in self._site_links.items() if site in sites}
        for connected in self.cameras.values():
            connected.planned_bps = self._link_of(connected).bandwidth_bps
        return ComputePlan(self.snapshot(now_ns))

    def _link_of(self, connected: ConnectedCamera) -> LinkState:
        """Return a camera's link; of a site's, what was told last of any of its cameras."""
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
            cameras=tuple(
                CameraSnapshot(c.camera, self._link_of(c), c.assignment, c.lowered_ns, c.overrun_ns)
                for c in self.cameras.values()
            ),
            variants=self._ladders.offered,
            profiles=self._profiles,
            slowdown=self._latencies.slowdowns,
            fixed_ns=self._calibration.fixed_ns,
            groups=self._affinity.groups,
            others=self._others,
            applications=self._expectations.learned(
                (c.camera.app for c in self.cameras.values()), self._profiles
            ),
        )

    def _first_advice(self, connected: ConnectedCamera, now_ns: int) -> list[Advise]:
        camera = connected.camera
        variant = first_variant(
            self._ladders.of(camera.family),
            camera,
            self._expectations,
            camera.slo_ns * self._parameters.first_slo_share,
            self._parameters.first_pixels_max,
        )
        if variant is None:
            return []
        connected.assignment = Assignment(
            camera.id, variant.name, camera.rate_hz, self._parameters.quality, True, FIRST_REASON
        )
        return self._advise(connected, connected.assignment, variant, now_ns)

    def _advise(
        self, connected: ConnectedCamera, assignment: Assignment, variant: Variant, now_ns: int
    ) -> list[Advise]:
        camera, old = connected.camera, connected.advice
        width_px, height_px = send_size(camera.width_px, camera.height_px, variant)
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
        if old is not None and not self._is_news(old, advice, now_ns - connected.advised_ns):
            return []
        connected.advice, connected.advised_ns = advice, now_ns
        return [Advise(camera.id, advice)]

    def _is_news(self, old: Advice, new: Advice, age_ns: int) -> bool:
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
    """Round to two significant digits, so that an estimate's noise is not news."""
    if value < 1:
        return 0
    return int(round(value, 1 - math.floor(math.log10(value))))


def _instead(given: Assignment, variant: Variant) -> Assignment:
    """Return what a camera gets until the variant that it was given is in memory."""
    reason = f"{given.reason}; {given.variant} is not in memory yet"
    return replace(given, variant=variant.name, reason=reason)
