"""Owns Jellyfish itself for benchmarks.adaptation: its client, its estimate, its planner.

Each executor is a worker with one variant, found by dynamic programming and simulated annealing
(`jellyfish/annealing`, problem P1); a camera's budget is what the network leaves of its
deadline, with no reserves. The client measures each request by its size and its smoothed round
trip, in which waiting behind earlier frames counts; the planner takes the harmonic mean of what
the client said over the last second (section 6). What the text leaves open is as in the system
that the authors published: how round trips are smoothed, and that a picture is also made smaller
when it would, by the newest estimate, leave the box less than two batches.

Limits: the plan is its, what runs when is not. Batches form on either executor, by the scheduler
under test, so a frame never waits for its own worker while another one is free.
"""

import random
from collections import deque
from dataclasses import dataclass, replace

from benchmarks.jellyfish.annealing import annealed_mapping
from edgebox.domain.model_family import Variant
from edgebox.domain.plans import Advice, Assignment, CameraSnapshot, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId
from edgebox.link.bandwidth import (
    WINDOW_NS,
    BytesPerPixel,
    LinkEstimate,
    message_bytes,
)
from edgebox.link.sender import Decision, Send, send_sizes
from edgebox.link.throughput_samples import BUSY_MIN_NS
from edgebox.planning.budgets import budget
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
)
from edgebox.planning.planner import Planner
from edgebox.planning.planner_parameters import PlanningParameters

QUALITY = 85


@dataclass(frozen=True, slots=True)
class Reading:
    """How the paper is read; each part can be left out to see what it does."""

    waiting_counts: bool = True
    """A request's time is from when it is handed over; otherwise, from when the link is free."""
    newest: bool = True
    """The client goes by its newest request; otherwise, by the last second's harmonic mean."""
    fits_deadline: bool = True
    """A picture must leave two batches of its deadline; otherwise, it must only be sustained."""


READINGS = {
    "jellyfish-plain": Reading(waiting_counts=False, newest=False, fits_deadline=False),
    "jellyfish-waiting": Reading(newest=False, fits_deadline=False),
    "jellyfish-newest": Reading(waiting_counts=False, fits_deadline=False),
    "jellyfish-text": Reading(fits_deadline=False),
}
"""Ways to read the paper; the last has what its text says, and not what only its code does."""


class ErrorFilter:
    """Smooths a series the more, the more its recent predictions have erred.

    Source: Kim and Noble, Mobile network estimation (MobiCom 2001), the error-based filter, here
    with its usual gain of 0.6 and the last ten errors.
    """

    def __init__(self, gain: float = 0.6, errors_max: int = 10) -> None:
        """Start with nothing seen."""
        self._gain = gain
        self._errors: deque[float] = deque(maxlen=errors_max)
        self._value: float | None = None

    def add(self, observed: float) -> float:
        """Learn from one observation; return the smoothed value."""
        if self._value is None:
            self._value = observed
            return observed
        error = abs(observed - self._value)
        if self._errors:
            error = self._gain * self._errors[-1] + (1 - self._gain) * error
        self._errors.append(error)
        share = error / max(self._errors) if error else 1.0
        self._value += share * (observed - self._value)
        return self._value


class JellyfishClient:
    """Sends every frame, as large as advised or as its link is believed to carry."""

    def __init__(self, camera: Camera, reading: Reading) -> None:
        """Start knowing nothing.

        Args:
            camera: whose frames.
            reading: of the paper.
        """
        self._camera = camera
        self._reading = reading
        self._advice: Advice | None = None
        self._weight = BytesPerPixel()
        self._handed: dict[int, int] = {}
        self._sent: dict[int, tuple[int, int, int]] = {}
        self._filter, self._filtered_pixels = ErrorFilter(), 0
        self._recent: deque[tuple[int, float]] = deque()
        self._last_arrival_ns = 0
        self._rtt_ns = 0
        self.batches_ns = 0
        """Time of two batches of its worker, as announced by the box; 0: it has no worker."""
        self.known_bps: float | None = None
        """The link's estimate that it sent to the box with its last frame."""

    def advised(self, advice: Advice) -> None:
        """Take on new advice."""
        self._advice = advice

    def answered(self, box_ns: int) -> None:
        """Learn nothing."""

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Send the frame."""
        while self._recent and self._recent[0][0] <= now_ns - WINDOW_NS and len(self._recent) > 1:
            self._recent.popleft()
        if self._recent:
            self.known_bps = len(self._recent) / sum(1 / bps for _, bps in self._recent)
        self._handed[frame] = now_ns
        width_px, height_px = self._size()
        return [Send(frame, width_px, height_px, QUALITY)]

    def _size(self) -> tuple[int, int]:
        sizes = send_sizes((self._camera.width_px, self._camera.height_px), self._advice)
        weight = self._weight.value()
        if self.known_bps is None or weight is None:
            return sizes[0]
        bps = self._recent[-1][1] if self._reading.newest else self.known_bps
        bits_max = bps / self._camera.rate_hz
        if self._reading.fits_deadline:
            left_ns = self._camera.slo_ns - self._rtt_ns - self.batches_ns
            bits_max = min(bits_max, self.known_bps * left_ns / 1e9)
        fitting = (of for of in sizes if message_bytes(weight, of[0] * of[1]) * 8 <= bits_max)
        return next(fitting, sizes[-1])

    def encoded(self, frame: int, size_bytes: int, pixels: int, sent_ns: int) -> None:
        """Note what a frame weighs that is being sent now."""
        self._weight.add(size_bytes, pixels)
        handed_ns = self._handed.pop(frame)
        start_ns = handed_ns if self._reading.waiting_counts else sent_ns
        self._sent[frame] = size_bytes, pixels, start_ns

    def acknowledged(self, frame: int, now_ns: int, base_ns: int) -> list[Decision]:
        """Learn what the link carried."""
        size_bytes, pixels, start_ns = self._sent.pop(frame)
        if not self._reading.waiting_counts:
            start_ns = max(start_ns, self._last_arrival_ns - base_ns)
        self._last_arrival_ns, self._rtt_ns = now_ns, base_ns
        if pixels != self._filtered_pixels:
            self._filter, self._filtered_pixels = ErrorFilter(), pixels
        busy_ns = self._filter.add(max(now_ns - base_ns - start_ns, BUSY_MIN_NS))
        self._recent.append((now_ns, size_bytes * 8 / busy_ns * 1e9))
        return []


class Jellyfish:
    """The system: plans as the paper does, each time from the mapping before."""

    def __init__(
        self, parameters: PlanningParameters, rng: random.Random, reading: Reading | None = None
    ) -> None:
        """Start with no mapping; only the quantile and the quality are taken from `parameters`.

        Args:
            parameters: of the box.
            rng: of the search.
            reading: of the paper; None: all of it.
        """
        self._parameters = replace(parameters, uplink_utilisation_max=1.0)
        self._rng = rng
        self._reading = reading or Reading()
        self._previous: Mapping | None = None
        self._clients: dict[CameraId, JellyfishClient] = {}

    def sender(self, camera: Camera, bandwidth: LinkEstimate) -> JellyfishClient:
        """Return what decides at a camera; it estimates its link by itself."""
        client = self._clients[camera.id] = JellyfishClient(camera, self._reading)
        return client

    def __call__(self, snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        """Compute a plan, from what the clients say of their links."""
        snapshot = self._as_reported(snapshot)
        variants = sorted(
            snapshot.variants, key=lambda variant: variant.width_px * variant.height_px
        )
        problem = self._problem(snapshot, variants)
        mapping = annealed_mapping(
            problem, self._rng, should_stop=lambda: False, previous=self._previous
        )
        self._previous = mapping
        worker_of = {c: worker for worker in mapping.workers for c in worker.cameras}
        assignments = {}
        for at, of in enumerate(snapshot.cameras):
            worker = worker_of.get(at)
            # Who is mapped to no worker goes on with the smallest pictures.
            index = worker.variant if worker else 0
            batch_ms = problem.variants[index].latency_ms[worker.batch - 1] if worker else 0.0
            self._clients[of.camera.id].batches_ns = round(2e6 * batch_ms)
            assignments[of.camera.id] = Assignment(
                camera=of.camera.id,
                variant=variants[index].name,
                rate_hz=of.camera.rate_hz,
                quality=self._parameters.quality,
                served=worker is not None,
                reason="mapped by Jellyfish",
            )
        return Plan(snapshot.taken_ns, assignments)

    def on(self, planner: Planner) -> Planner:
        """Return another planner that goes by what these clients say of their links."""
        return lambda snapshot, limit: planner(self._as_reported(snapshot), limit)

    def _as_reported(self, snapshot: PlanningSnapshot) -> PlanningSnapshot:
        cameras = (
            replace(of, link=replace(of.link, bandwidth_bps=self._clients[of.camera.id].known_bps))
            for of in snapshot.cameras
        )
        return replace(snapshot, cameras=tuple(cameras))

    def _problem(self, snapshot: PlanningSnapshot, variants: list[Variant]) -> MappingProblem:
        profiles = next(iter(snapshot.profiles.values()))
        sizes = profiles[variants[0].name].batch_sizes
        mapped = tuple(
            MappingVariant(
                variant.name,
                variant.width_px,
                variant.accuracy,
                tuple(
                    profiles[variant.name].quantile_ns(size, self._parameters.quantile) / 1e6
                    for size in sizes
                ),
            )
            for variant in variants
        )
        cameras = tuple(self._camera(of, snapshot, variants) for of in snapshot.cameras)
        return MappingProblem(len(snapshot.profiles), len(sizes), mapped, cameras)

    def _camera(
        self, of: CameraSnapshot, snapshot: PlanningSnapshot, variants: list[Variant]
    ) -> MappingCamera:
        budgets = []
        for variant in variants:
            found = budget(of.camera, of.link, variant, snapshot.fixed_ns, self._parameters)
            carried = of.link.bandwidth_bps is None or found.rate_hz >= of.camera.rate_hz
            budgets.append(max(0.0, found.compute_ns / 1e6) if carried else 0.0)
        return MappingCamera(of.camera.id, of.camera.rate_hz, tuple(budgets))
