"""Follows every frame from its capture to its one end, and nothing may wait for ever."""

from collections import Counter
from collections.abc import Sequence

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import BatchId, CameraId, Request, RequestId
from edgebox.scheduling.actions import Abandon, Action, Drop, Finish, Infer
from edgebox.scheduling.events import BatchCompleted, Event, SampleCompleted
from edgebox.scheduling.supervised import (
    LATE_FROM_NS,
    LATE_NS,
    LIMIT_DOUBLINGS_MAX,
    Limit,
)
from edgebox.scheduling.supervision import LIMIT_FACTOR
from edgebox.simulation.faults.faulty_camera import FaultyCamera
from edgebox.simulation.faults.judge import World
from edgebox.simulation.faults.small_box import MEDIAN_MS, MS, SPREAD

_SLOWEST_NS = round(max(MEDIAN_MS.values()) * 4 * SPREAD[-1] * MS)
"""A batch of four of the largest variant, by its profile."""


class FrameChecks:
    """The frames that have not ended, and what executors have been doing for how long."""

    def __init__(self, world: World) -> None:
        """Start with no frame."""
        self._world = world
        self._frames: dict[RequestId, FaultyCamera] = {}
        self._requests: dict[RequestId, Request] = {}
        self._cameras: dict[CameraId, FaultyCamera] = {}
        self._limits: dict[ExecutorId, tuple[BatchId, int]] = {}
        self._longest_ns = _SLOWEST_NS
        self.losses: Counter[str] = Counter()
        """Executors that were lost, with the cause."""
        self.on_time: set[CameraId] = set()
        """Cameras whose frames were answered on time since this was emptied."""
        self.ran: set[ExecutorId] = set()
        """Executors that completed a batch since this was emptied."""

    def captured(self, camera: FaultyCamera) -> None:
        """Note a new frame."""
        self._cameras[camera.wants.id] = camera
        camera.captured += 1
        camera.on_way += 1

    def arrived(self, camera: FaultyCamera, request: Request) -> None:
        """Note that a frame comes to the box now."""
        camera.on_way -= 1
        self._frames[request.id] = camera
        self._requests[request.id] = request

    def lost(self, camera: FaultyCamera) -> None:
        """Note that what a camera had on the way will never come."""
        camera.ends["sender"] += camera.on_way
        camera.on_way = 0

    def follow(self, event: Event | None, actions: Sequence[Action]) -> None:
        """Take in one call and its orders.

        Raises:
            InvariantViolation: a frame ended twice or never, or something waits for ever.
        """
        if isinstance(event, BatchCompleted):
            self.ran.add(event.executor)
        if isinstance(event, BatchCompleted | SampleCompleted):
            self._longest_ns = max(self._longest_ns, event.took_ns)
        for action in actions:
            if isinstance(action, Finish):
                self._end(action.request, str(action.outcome))
            elif isinstance(action, Drop) and action.request in self._frames:
                self._end(action.request, str(action.reason))
            elif isinstance(action, Infer):
                self._began(action)
            elif isinstance(action, Abandon):
                self.losses[f"{action.executor} {action.cause}"] += 1
        if self._requests or self._world.busy:
            self._nothing_waits()

    def add_up(self) -> None:
        """Insist that every captured frame has ended once, is on its way, or is at the box."""
        self._world.check()
        pending: dict[CameraId, int] = {}
        for camera in self._frames.values():
            pending[camera.wants.id] = pending.get(camera.wants.id, 0) + 1
        at_box = {of.id for of in self._world.alive.values() if of.frame is None}
        at_box |= self._world.joined.keys()
        _require(at_box == self._frames.keys(), "the box has other frames than those not ended")
        for camera in self._cameras.values():
            known = camera.ends.total() + camera.on_way + pending.get(camera.wants.id, 0)
            _require(
                camera.captured == known,
                f"{camera.wants.id} captured {camera.captured} frames, of which {known} are known",
            )

    def all_ended(self) -> None:
        """Insist that nothing is left after a shutdown."""
        self.add_up()
        world = self._world
        _require(not self._frames, f"{len(self._frames)} frames never ended")
        _require(not world.alive and not world.joined, "requests never ended")
        _require(not world.retained, "inputs are kept after the shutdown")
        _require(world.scheduler.next_wakeup_ns() is None, "a timer runs after the shutdown")

    def _end(self, request: RequestId, how: str) -> None:
        camera = self._frames.pop(request, None)
        _require(camera is not None, f"frame {request} ended twice or never came")
        assert camera is not None
        del self._requests[request]
        camera.ends[how] += 1
        if how == "on_time":
            self.on_time.add(camera.wants.id)

    def _began(self, infer: Infer) -> None:
        limit = self._world.scheduler.supervised[infer.executor].limit
        _require(limit is not None, f"a batch on {infer.executor} has no limit")
        assert limit is not None
        self._limits[infer.executor] = infer.batch, self._checked_ns(limit)

    def _checked_ns(self, limit: Limit) -> int:
        """Return the instant of a batch's limit, which may not be too far away."""
        least_ns = self._world.scheduler.parameters.batch_limit_min_ns
        most_ns = max(least_ns, LIMIT_FACTOR * self._longest_ns) << LIMIT_DOUBLINGS_MAX
        waits_ns = limit.at_ns - limit.began_ns
        _require(waits_ns <= most_ns, f"a batch may take {waits_ns / 1e9:.0f} s")
        return limit.at_ns

    def _nothing_waits(self) -> None:
        """Insist that lost executors were noticed, and that no frame waits beyond its deadline."""
        now_ns = self._world.now_ns
        for executor, infer in self._world.busy.items():
            batch, at_ns = self._limits[executor]
            if batch == infer.batch and now_ns > at_ns + LATE_FROM_NS:
                limit = self._world.scheduler.supervised[executor].limit
                if limit is not None and limit.derived and not limit.extended:
                    at_ns = self._checked_ns(limit)
                    self._limits[executor] = batch, at_ns
                # A late wake-up gives its work a second more, once.
                extended = limit is not None and limit.extended and now_ns < limit.at_ns
                _require(
                    extended or now_ns < at_ns + LATE_NS,
                    f"a batch on {executor} runs {(now_ns - at_ns) / 1e9:.1f} s beyond its limit",
                )
        late = [r for r, of in self._requests.items() if now_ns > of.last_deadline_ns]
        if not late:
            return
        running = {member for infer in self._world.busy.values() for member in infer.requests}
        for number in late:
            late_ns = now_ns - self._requests[number].last_deadline_ns
            what = f"frame {number} waits {late_ns / 1e6:.1f} ms after its deadline"
            _require(number in running, what)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvariantViolation(message)
