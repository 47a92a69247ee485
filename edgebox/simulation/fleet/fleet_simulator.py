"""Runs boxes and cameras of a fleet under virtual time, under one redirect policy.

Modelled: round trips, the time a hello takes its box, reports that are old, cameras that notice the
loss of their box and try others, and what a box does for its cameras by its load (`box_model`). Not
modelled: single frames, networks that fail between boxes, and links that change.

Pure: the generator of randomness is an argument; the same seed gives the same run.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count

from edgebox.fleet.box_report import REPORT_PERIOD_NS
from edgebox.link.backoff import Backoff
from edgebox.link.failover import BOXES_MAX, SILENCE_MAX_S, BoxAddresses, connect_timeout_s
from edgebox.simulation.fleet.box_model import BoxModel
from edgebox.simulation.fleet.fleet_policies import PolicyFactory
from edgebox.simulation.fleet.population import FleetCamera
from edgebox.simulation.fleet.simulated_box import HELLO_NS, SimulatedBox
from edgebox.simulation.fleet.timetable import ARRIVALS_NS, DRAIN_NS, END_NS, FleetEvent, S, What

SAMPLE_NS = S // 4
"""How often it is looked at who is served."""
BOX_SIZES = (0.5, 1.0, 1.5)
"""Boxes differ: what they can do, in units of the measured one, each as often as the others."""


CONFIGURED = 2
"""How many boxes a camera is configured with: it is told of others in its welcome."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the fleet at an instant."""

    at_ns: int
    captured_hz: float
    """Frames/s of all cameras that have come, connected or not."""
    on_time_hz: float
    accuracy_hz: float
    """Accuracy times frames/s."""
    loads: tuple[float, ...]
    """Of the boxes that take cameras."""
    unconnected: int


@dataclass(slots=True)
class Loss:
    """Boxes that failed, and when their cameras were connected again."""

    event: FleetEvent
    waiting: set[int]
    took_ns: list[int] = field(default_factory=list)


@dataclass(slots=True)
class FleetRun:
    """What a run leaves."""

    samples: list[Sample] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    redirects_of_hellos: int = 0
    moves: int = 0
    """Connected cameras that were sent elsewhere, by boxes that do not drain."""
    redirects_max: int = 0
    """The most redirects of one hello."""
    hellos_most: int = 0
    """The most cameras that one box took in within a second."""


class _Camera:
    """A camera of the fleet, and where it is."""

    __slots__ = ("addresses", "attempt", "backoff", "came", "of")

    def __init__(self, of: FleetCamera, configured: Sequence[int], rng: random.Random) -> None:
        self.of = of
        self.addresses = BoxAddresses([str(number) for number in configured], rng)
        self.backoff = Backoff(rng)
        self.attempt = 0
        """Rises with each connection, so that what belonged to an earlier one is ignored."""
        self.came = False


class FleetSimulator:
    """One run; build a new one for the next."""

    def __init__(
        self,
        model: BoxModel,
        boxes: int,
        cameras: Sequence[FleetCamera],
        *,
        timetable: Sequence[FleetEvent],
        policy: PolicyFactory,
        rng: random.Random,
    ) -> None:
        self._model = model
        self._rng = rng
        self.boxes = [
            SimulatedBox(number, model.frames_per_s * BOX_SIZES[number % len(BOX_SIZES)])
            for number in range(boxes)
        ]
        for number in next(each.boxes for each in timetable if each.what is What.JOIN):
            self.boxes[number].up = False
        up = [box.number for box in self.boxes if box.up]
        some = min(CONFIGURED, len(up))
        self._cameras = [_Camera(of, rng.sample(up, some), rng) for of in cameras]
        self._policy = policy(self.boxes, rng)
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._now_ns = 0
        self._powerless: set[int] = set()
        self._accepted_in: dict[tuple[int, int], int] = {}
        self._plan_ahead(timetable)
        self.run = FleetRun()

    def rate_hz(self, camera: int) -> float:
        """Return the frames/s that a camera asks for."""
        return self._cameras[camera].of.rate_hz

    def progress(self) -> Iterator[float]:
        """Run to the end; yield the share that is done now and then."""
        while self._agenda and self._agenda[0][0] <= END_NS:
            self._now_ns, _, happen = heappop(self._agenda)
            happen()
            if self._now_ns % S == 0:
                yield self._now_ns / END_NS
        yield 1.0

    def _plan_ahead(self, timetable: Sequence[FleetEvent]) -> None:
        for number in range(len(self._cameras)):
            self._at(self._rng.randrange(ARRIVALS_NS), partial(self._come, number))
        for event in timetable:
            self._at(event.at_ns, partial(self._handle, event))
        for box in self.boxes:
            phase_ns = self._rng.randrange(REPORT_PERIOD_NS)
            self._at(phase_ns, partial(self._report, box))
        for at_ns in range(0, END_NS + 1, SAMPLE_NS):
            self._at(at_ns, self._sample)

    def _at(self, at_ns: int, what: Callable[[], None]) -> None:
        heappush(self._agenda, (at_ns, next(self._order), what))

    def _after(self, delay_ns: float, what: Callable[[], None]) -> None:
        self._at(self._now_ns + round(delay_ns), what)

    # -- boxes ------------------------------------------------------------------------------

    def _handle(self, event: FleetEvent) -> None:
        lost: set[int] = set()
        for number in event.boxes:
            box = self.boxes[number]
            match event.what:
                case What.JOIN:
                    box.up, box.draining = True, False
                    self._powerless.discard(number)
                case What.DRAIN:
                    box.draining = True
                    self._report_now(box)
                    for camera in box.cameras:
                        self._after(
                            self._rng.randrange(DRAIN_NS), partial(self._consider, camera, box)
                        )
                case What.CRASH | What.POWER | What.STOP:
                    lost |= set(self._end(box, event.what))
        if event.what in (What.CRASH, What.POWER):
            self.run.losses.append(Loss(event, lost))

    def _end(self, box: SimulatedBox, how: What) -> list[int]:
        """Have a box gone; its cameras notice at once, or by its silence."""
        box.up = False
        box.busy_until_ns = 0
        if how is What.POWER:
            self._powerless.add(box.number)
        lost = [*box.cameras]
        for number in lost:
            camera = self._leave(number, box)
            notice_ns = camera.of.rtt_ns / 2
            if how is What.POWER:
                # What it heard last is up to a ping older.
                notice_ns = (SILENCE_MAX_S - self._rng.random()) * 1e9
            self._after(notice_ns, partial(self._lost, number, camera.attempt))
        return lost

    def _report(self, box: SimulatedBox) -> None:
        self._after(REPORT_PERIOD_NS, partial(self._report, box))
        if not box.up:
            return
        self._report_now(box)
        if box.cameras and not box.draining:
            self._consider(self._rng.choice([*box.cameras]), box)

    def _report_now(self, box: SimulatedBox) -> None:
        self._policy.reported(box.report(self._now_ns), self._now_ns)

    def _consider(self, number: int, box: SimulatedBox) -> None:
        """Ask whether a connected camera is to move."""
        if number not in box.cameras:
            return
        to = self._policy.connected(number, self._cameras[number].of, box, self._now_ns)
        if to is None:
            return
        self.run.moves += not box.draining
        camera = self._leave(number, box)
        camera.addresses.redirected(str(to))
        self._after(camera.of.rtt_ns / 2, partial(self._connect, number, camera.attempt))

    # -- cameras ----------------------------------------------------------------------------

    def _come(self, number: int) -> None:
        camera = self._cameras[number]
        camera.came = True
        self._connect(number, camera.attempt)

    def _connect(self, number: int, attempt: int) -> None:
        """Open a connection, which takes two round trips, and say hello."""
        camera = self._cameras[number]
        if attempt != camera.attempt:
            return
        at = int(camera.addresses.current)
        if at in self._powerless:
            timeout_ns = connect_timeout_s(camera.of.rtt_ns) * 1e9
            self._after(timeout_ns, partial(self._lost, number, attempt))
        elif not self.boxes[at].up:
            self._after(camera.of.rtt_ns, partial(self._lost, number, attempt))
        else:
            self._after(2.5 * camera.of.rtt_ns, partial(self._arrive, number, attempt, at))

    def _arrive(self, number: int, attempt: int, at: int) -> None:
        """Have a hello arrive at a box, where it waits for those before it."""
        box = self.boxes[at]
        box.busy_until_ns = max(self._now_ns, box.busy_until_ns) + HELLO_NS
        self._at(box.busy_until_ns, partial(self._answer, number, attempt, at))

    def _answer(self, number: int, attempt: int, at: int) -> None:
        camera, box = self._cameras[number], self.boxes[at]
        if attempt != camera.attempt:
            return
        if not box.up:
            self._after(camera.of.rtt_ns / 2, partial(self._lost, number, attempt))
            return
        redirects = camera.addresses.redirects
        to = self._policy.hello(number, camera.of, box, redirects, self._now_ns)
        if to is not None:
            self.run.redirects_of_hellos += 1
            camera.addresses.redirected(str(to))
            self.run.redirects_max = max(self.run.redirects_max, redirects + 1)
            self._after(camera.of.rtt_ns / 2, partial(self._connect, number, attempt))
            return
        box.add(number, camera.of.rate_hz)
        camera.addresses.welcomed()
        camera.addresses.told(self._others(box))
        camera.backoff.reset()
        self._count_accepted(box)
        for loss in self.run.losses:
            if number in loss.waiting:
                loss.waiting.discard(number)
                loss.took_ns.append(self._now_ns - loss.event.at_ns)

    def _lost(self, number: int, attempt: int) -> None:
        """Go to another box."""
        camera = self._cameras[number]
        if attempt == camera.attempt:
            wait_s = camera.backoff.wait_s() if camera.addresses.lost() else 0.0
            self._after(wait_s * 1e9, partial(self._connect, number, attempt))

    def _leave(self, number: int, box: SimulatedBox) -> _Camera:
        camera = self._cameras[number]
        camera.attempt += 1
        box.remove(number, camera.of.rate_hz, self._now_ns)
        return camera

    def _others(self, box: SimulatedBox) -> list[str]:
        """Return the boxes that a welcome names."""
        others = [str(other.number) for other in self.boxes if other.serves and other is not box]
        return self._rng.sample(others, min(BOXES_MAX, len(others)))

    # -- figures ----------------------------------------------------------------------------

    def _count_accepted(self, box: SimulatedBox) -> None:
        key = box.number, self._now_ns // S
        self._accepted_in[key] = self._accepted_in.get(key, 0) + 1
        if self._now_ns > 2 * ARRIVALS_NS - S:
            self.run.hellos_most = max(self.run.hellos_most, self._accepted_in[key])

    def _sample(self) -> None:
        serving = [box for box in self.boxes if box.up]
        captured_hz = sum(camera.of.rate_hz for camera in self._cameras if camera.came)
        served_hz = sum(box.rate_hz for box in serving)
        loads = [box.load for box in serving]
        if self._policy.exact:  # all have the same load, without a move
            mean = served_hz / max(1e-9, sum(box.frames_per_s for box in serving))
            loads = [mean] * len(serving)
        of = [self._model.at(load) for load in loads]
        hz = [load * box.frames_per_s for load, box in zip(loads, serving, strict=True)]
        self.run.samples.append(
            Sample(
                self._now_ns,
                captured_hz,
                sum(each.on_time * rate for each, rate in zip(of, hz, strict=True)),
                sum(each.accuracy * rate for each, rate in zip(of, hz, strict=True)),
                tuple(load for load, box in zip(loads, serving, strict=True) if not box.draining),
                sum(camera.came for camera in self._cameras)
                - sum(len(box.cameras) for box in serving),
            )
        )
