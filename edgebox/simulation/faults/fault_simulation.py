"""Runs the Scheduler and the planner under virtual time while executors, links, cameras, memory and
the planner break at random.

A discrete-event loop: models of the driver's parts carry out the Scheduler's orders, and the faults
of a seed decide what goes wrong (`fault_kinds`). After every call the `World` judges all orders and
checks all redundant state; `fault_checks` follows every frame. Once its events are used up nothing
breaks any more, and the box must recover: all executors are back, each gets work, cameras are
answered on time, and a shutdown ends every frame.

Pure: the same seed gives the same run, event by event.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import Assignment, Group, Plan, PlanningSnapshot
from edgebox.domain.requests import CameraId, FrameId, Request, RequestId
from edgebox.planning.planner import plan
from edgebox.scheduling.actions import (
    Action,
    Advise,
    ComputePlan,
    ExitProcess,
    Infer,
    Load,
    Open,
    Prepare,
    Sample,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    Event,
    ExecutorGone,
    ExecutorStarted,
    ExecutorStopped,
    LinkMeasured,
    LoadFailed,
    LoadReturned,
    OpenFailed,
    PlanComputed,
    PlanFailed,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
    VariantsAvailable,
    WeightsLoaded,
)
from edgebox.simulation.faults.fault_checks import FrameChecks
from edgebox.simulation.faults.fault_kinds import MS, SECOND, Box, FaultKind, Faults
from edgebox.simulation.faults.faulty_camera import FaultyCamera
from edgebox.simulation.faults.faulty_executor import Ending, FaultyExecutor, known
from edgebox.simulation.faults.judge import World
from edgebox.simulation.faults.small_box import EXECUTORS, FAMILY, MEDIAN_MS, name, profiles

_OF_EXECUTORS = (
    FaultKind.HANG, FaultKind.RAISE, FaultKind.FAILING, FaultKind.SLOW, FaultKind.VARIANT,
    FaultKind.OPENING, FaultKind.STOP, FaultKind.MEMORY, FaultKind.GONE,
)  # fmt: skip
_OF_CAMERAS = (FaultKind.LINK, FaultKind.CLOCK, FaultKind.GREED, FaultKind.CHURN)
_ITERATIONS_MAX = 200
_PLANNED_SHARE = 0.01
"""Share of the plans that the planner makes; the others are drawn, which is far quicker."""
_CROPS_MAX = 12


class FaultSimulation:
    """One run of one seed."""

    def __init__(
        self, seed: int, box: Box, check_every: int = 1, *, keeps_journal: bool = False
    ) -> None:
        """Prepare a run.

        Args:
            seed: of all randomness.
            box: what the seed has drawn.
            check_every: all redundant state is derived anew after every so many calls.
            keeps_journal: the world keeps every call and its orders.
        """
        self.box = box
        self.world = World(box.policy, keeps_journal=keeps_journal, check_every=check_every)
        self.faults = Faults(seed, box)
        self.checks = FrameChecks(self.world)
        self.events = 0
        """Calls of the Scheduler so far."""
        self.exited = False
        """Whether the process was ordered to end: no executor could be opened again."""
        self._rng = random.Random(f"{seed}/world")
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._number = count(1)
        self._wake_ns: int | None = None
        self._stalled_until_ns = 0
        self._hanging: dict[int, Callable[[], None]] = {}
        """What comes back as soon as nothing is broken any more."""
        self.executors = {
            executor: FaultyExecutor(executor, random.Random(f"{seed}/{executor}"), self.faults)
            for executor in EXECUTORS[: box.executors]
        }
        self.cameras = {
            camera.wants.id: camera
            for camera in (
                FaultyCamera.drawn(number, random.Random(f"{seed}/{number}"), self.faults)
                for number in range(box.cameras)
            )
        }
        self._start()

    def _start(self) -> None:
        self.tell(VariantsAvailable(FAMILY))
        for executor in self.executors:
            self._started(executor, ExecutorStarted(executor, profiles(executor, 31)))
        for camera in self.cameras.values():
            self._at(self._rng.randint(0, 500) * MS, lambda of=camera: self.connect(of))  # type: ignore[misc]
        for kind in sorted(self.box.kinds):
            self._at(self.faults.next_ns(kind, 0), lambda of=kind: self._break(of))  # type: ignore[misc]

    # -- The loop

    @property
    def now_ns(self) -> int:
        """The instant of the last call."""
        return self.world.now_ns

    def run(self, events_max: int, until_ns: int | None = None) -> None:
        """Go on until so many calls were made, or until an instant."""
        while self._heap and self.events < events_max and not self.exited:
            if until_ns is not None and self._heap[0][0] > until_ns:
                self.world.now_ns = max(self.world.now_ns, until_ns)
                break
            at_ns, _, happen = heappop(self._heap)
            self.world.now_ns = max(self.world.now_ns, at_ns, self._stalled_until_ns)
            happen()

    def heal(self) -> None:
        """Break nothing any more: what hangs comes back soon, and clocks tell the time."""
        self.faults.healed = True
        self._stalled_until_ns = 0
        for happen in self._hanging.values():
            self._after(self._rng.randint(1, 1000) * MS, happen)
        self._hanging.clear()

    def _at(self, at_ns: int, happen: Callable[[], None]) -> None:
        heappush(self._heap, (at_ns, next(self._order), happen))

    def _after(self, wait_ns: int, happen: Callable[[], None]) -> None:
        self._at(self.now_ns + max(1, wait_ns), happen)

    def _come_back(self, ending: Ending, happen: Callable[[], None]) -> None:
        """Have work come back when it should; if it hangs, at the latest when nothing does."""
        number = next(self._number)

        def once() -> None:
            if self._hanging.pop(number, None) is not None:
                happen()

        if ending.hangs:
            self._hanging[number] = happen
            self._after(ending.after_ns, once)
        else:
            self._after(ending.after_ns, happen)

    def tell(self, event: Event | None) -> None:
        """Tell the Scheduler of an event, carry out what it orders, and set the timer."""
        self.events += 1
        actions = self.world.tell(event)
        self.checks.follow(event, actions)
        crops: dict[FrameId, list[RequestId]] = {}
        for action in actions:
            crop = self.world.alive.get(action.request) if isinstance(action, Prepare) else None
            if crop is not None and crop.frame is not None:
                crops.setdefault(crop.frame, []).append(crop.id)
            else:
                self._carry_out(action)
        for of_frame in crops.values():
            self._cut(tuple(of_frame))
        self._set_timer()

    def _set_timer(self) -> None:
        due_ns = self.world.due_ns
        if due_ns == self._wake_ns:
            return
        self._wake_ns = due_ns
        if due_ns is not None:
            self._at(due_ns, lambda: self._wake(due_ns))

    def _wake(self, at_ns: int) -> None:
        if self._wake_ns == at_ns:
            self._wake_ns = None
            self.tell(None)

    # -- Orders

    def _carry_out(self, action: Action) -> None:
        match action:
            case Prepare():
                self._decode(action)
            case Infer():
                ending = self.executors[action.executor].run(action, self.now_ns)
                self._come_back(ending, lambda: self._ended(action, ending))
            case Sample():
                ending = self.executors[action.executor].run(action, self.now_ns)
                self._come_back(ending, lambda: self._sampled(action, ending))
            case Open(executor):
                opening = self.executors[executor].open(self.now_ns)
                self._come_back(opening, lambda: self._opened(executor, opening))
            case Load():
                self._load(action)
            case Advise(camera, advice):
                if camera in self.cameras:
                    self.cameras[camera].advice = advice
            case ComputePlan(snapshot):
                self._plan(snapshot)
            case ExitProcess():
                self.exited = True

    def _decode(self, order: Prepare) -> None:
        took_ns = self._rng.randint(1, 4) * MS
        event: Event = RequestPrepared(order.request, took_ns)
        if self.faults.active(FaultKind.DECODING, "", self.now_ns):
            rng = self.faults.rng(FaultKind.DECODING)
            drawn = rng.random()
            if drawn < 0.1:
                return  # the thread is replaced, and nobody waits for this picture any more
            took_ns = rng.choice((MS, 30 * MS, 400 * MS, 5 * SECOND))
            event = RequestPrepared(order.request, took_ns)
            if drawn < 0.4:
                event = RequestRejected(order.request)
        self._after(took_ns, lambda: self.tell(event))

    def _cut(self, crops: tuple[RequestId, ...]) -> None:
        if self.faults.active(FaultKind.STAGE, "", self.now_ns):
            rng = self.faults.rng(FaultKind.STAGE)
            if rng.random() < 0.2:
                return
            crops = tuple(crop for crop in crops if rng.random() < 0.9)
        took_ns = self._rng.randint(500, 1500) * 1000
        self._after(took_ns, lambda: self.tell(CropsPrepared(crops, took_ns)))

    def _ended(self, infer: Infer, ending: Ending) -> None:
        running = self.world.busy.get(infer.executor)
        runs = running is not None and running.batch == infer.batch
        if not ending.well:
            if ending.gone and runs:
                self.tell(ExecutorGone(infer.executor))
            self.tell(BatchFailed(infer.executor, infer.batch))
            return
        spawned = self._crops(infer) if runs else ()
        self.tell(BatchCompleted(infer.executor, infer.batch, ending.took_ns, spawned))

    def _crops(self, infer: Infer) -> tuple[Request, ...]:
        """Return what the next stages of the members' pipelines look at."""
        world, out = self.world, list[Request]()
        number = world.next_id()
        most = _CROPS_MAX if self.faults.active(FaultKind.STAGE, "", self.now_ns) else 3
        for member in infer.requests:
            of = world.alive[member]
            pipeline = world.pipelines.get(RequestId(of.frame or of.id))
            if pipeline is None or member in world.cancelled or member in world.unneeded:
                continue
            for stage in pipeline.next_stages(of.stage or pipeline.first.name):
                for _ in range(self._rng.randint(0, most)):
                    crop = replace(
                        of,
                        id=RequestId(number + len(out)),
                        arrival_ns=self.now_ns,
                        variant=None,
                        advised=None,
                        frame=of.frame or FrameId(of.id),
                        stage=stage.name,
                    )
                    out.append(crop)
        return tuple(out)

    def _sampled(self, sample: Sample, ending: Ending) -> None:
        if ending.well:
            self.tell(SampleCompleted(sample.executor, sample.batch, ending.took_ns))
        else:
            self.tell(SampleFailed(sample.executor, sample.batch))

    def _opened(self, executor: ExecutorId, opening: Ending) -> None:
        if not opening.well and not self.faults.healed:
            self.tell(OpenFailed(executor))
            return
        found = self.executors[executor].profiles_when_opened(self.now_ns)
        self._started(executor, ExecutorStarted(executor, found, opening.took_ns))

    def _started(self, executor: ExecutorId, event: ExecutorStarted) -> None:
        self.executors[executor].generation += 1
        memory = None
        if FaultKind.MEMORY in self.box.kinds:
            rng = self.faults.rng(FaultKind.MEMORY)
            files, more = rng.randint(1, 4), rng.randrange(16)
            memory = self.world.held.limited(executor, known(event.profiles), files, more)
        self.tell(replace(event, memory=memory))

    def _load(self, order: Load) -> None:
        executor = self.executors[order.executor]
        generation, ending = executor.generation, executor.load(self.now_ns)

        def ended() -> None:
            if executor.generation != generation:
                self.tell(LoadReturned(order.executor))
            elif ending.well:
                self.tell(WeightsLoaded(order.executor, order.weights))
            else:
                self.tell(LoadFailed(order.executor, order.weights))

        self._come_back(ending, ended)

    def _plan(self, snapshot: PlanningSnapshot) -> None:
        took_ns = self._rng.randint(1, 8) * MS
        event: Event
        if self.faults.active(FaultKind.PLANNER, "", self.now_ns):
            rng = self.faults.rng(FaultKind.PLANNER)
            took_ns = rng.choice((1, took_ns, 2 * SECOND, 20 * SECOND))
            event = (
                PlanFailed()
                if rng.random() < 0.5
                else PlanComputed(self._drawn_plan(rng, (0.1, 99.0)))
            )
        elif self._rng.random() < _PLANNED_SHARE:
            event = PlanComputed(plan(snapshot, _ITERATIONS_MAX))
        else:
            event = PlanComputed(self._drawn_plan(self._rng, (1.0, 5.0, 15.0)))
        self._after(took_ns, lambda: self.tell(event))

    def _drawn_plan(self, rng: random.Random, rates_hz: Sequence[float]) -> Plan:
        sides = list(MEDIAN_MS)
        given = {
            CameraId(camera): Assignment(
                CameraId(camera),
                name(rng.choice(sides)),
                rng.choice(rates_hz),
                85,
                served=rng.random() < 0.8,
                reason="",
            )
            for camera in self.cameras
            if rng.random() < 0.7
        }
        cut = rng.randint(0, len(sides))
        groups = tuple(
            Group((executor,), tuple(map(name, of)), rng.choice((0, 20, 900)) * MS)
            for executor, of in zip(self.executors, (sides[:cut], sides[cut:]), strict=False)
        )
        utilisation = rng.choice((0.0, 0.5, 0.95, 1.5))
        return Plan(self.now_ns, given, utilisation, groups if rng.random() < 0.5 else ())

    # -- Cameras

    def connect(self, camera: FaultyCamera) -> None:
        """Have a camera say hello."""
        camera.reconnect()
        self.checks.lost(camera)
        camera.answer_ping(self.now_ns)
        self.tell(CameraConnected(camera.wants))
        connection = camera.connection
        self._after(50 * MS, lambda: self._capture(camera, connection))
        self._after(SECOND, lambda: self._ping(camera, connection))

    def disconnect(self, camera: FaultyCamera) -> None:
        """Have a camera leave; what it has on the way is lost."""
        camera.connection += 1
        camera.connected = False
        self.checks.lost(camera)
        self.tell(CameraDisconnected(camera.wants.id))

    def _ping(self, camera: FaultyCamera, connection: int) -> None:
        if camera.connection == connection:
            camera.answer_ping(self.now_ns)
            self._after(SECOND, lambda: self._ping(camera, connection))

    def _capture(self, camera: FaultyCamera, connection: int) -> None:
        if camera.connection != connection or not camera.connected:
            return
        self.checks.captured(camera)
        stamp_ns = camera.clock_ns(self.now_ns)
        transit_ns = camera.rng.randint(2, 60) * MS
        if self.faults.active(FaultKind.LINK, camera.wants.id, self.now_ns):
            # Nothing arrives while it is cut, then all of it at once.
            transit_ns = max(
                transit_ns,
                min(
                    self.faults.until_ns(FaultKind.LINK, camera.wants.id) - self.now_ns, 9 * SECOND
                ),
            )
        self._after(transit_ns, lambda: self._arrive(camera, connection, stamp_ns))
        self._after(camera.period_ns(self.now_ns), lambda: self._capture(camera, connection))

    def _arrive(self, camera: FaultyCamera, connection: int, stamp_ns: int) -> None:
        if camera.connection != connection:
            return
        request = camera.request(self.world.next_id(), stamp_ns, self.now_ns)
        link = camera.link(self.now_ns)
        if link is not None:
            self.tell(LinkMeasured(camera.wants.id, link))
        self.checks.arrived(camera, request)
        self.tell(RequestArrived(request))

    # -- Faults

    def _break(self, kind: FaultKind) -> None:
        if self.faults.healed:
            return
        targets: Collection[str] = [""]
        if kind in _OF_EXECUTORS:
            targets = list(self.executors)
        elif kind in _OF_CAMERAS:
            targets = list(self.cameras)
        target = self.faults.begin(kind, targets, self.now_ns)
        self._at(self.faults.next_ns(kind, self.now_ns), lambda: self._break(kind))
        if kind in _OF_EXECUTORS:
            self.executors[ExecutorId(target)].begin(kind)
        if kind is FaultKind.STOP:
            self._stop_and_start(ExecutorId(target))
        elif kind is FaultKind.CLOCK:
            self.cameras[CameraId(target)].jump()
        elif kind is FaultKind.CHURN:
            self._churn(self.cameras[CameraId(target)])
        elif kind is FaultKind.STALL:
            stall_ns = self.faults.rng(kind).choice((20 * MS, 300 * MS, 3 * SECOND, 90 * SECOND))
            self._stalled_until_ns = self.now_ns + stall_ns

    def _stop_and_start(self, executor: ExecutorId) -> None:
        if executor not in self.world.loaded:
            return
        self.tell(ExecutorStopped(executor))
        event = ExecutorStarted(executor, profiles(executor, 31))
        wait_ns = self.faults.rng(FaultKind.STOP).randint(1, 5000) * MS
        self._after(wait_ns, lambda: self._started(executor, event))

    def _churn(self, camera: FaultyCamera) -> None:
        rng = self.faults.rng(FaultKind.CHURN)
        drawn = rng.random()
        if drawn < 0.4 and camera.connected:
            self.disconnect(camera)
            wait_ns = rng.choice((100 * MS, 5 * SECOND, 100 * SECOND))
            connection = camera.connection
            self._after(wait_ns, lambda: self._return(camera, connection))
        elif drawn < 0.7 and camera.connected:
            self.tell(CameraChanged(camera.changed(rng)))
        else:
            self.connect(camera)  # also where the box believes it is still connected

    def _return(self, camera: FaultyCamera, connection: int) -> None:
        if camera.connection == connection:
            self.connect(camera)

    # -- After the faults

    def stop(self) -> None:
        """Shut the box down; running batches may finish."""
        for camera in self.cameras.values():
            camera.connection += 1
            camera.connected = False
            self.checks.lost(camera)
        self.tell(ShutdownRequested())
        for infer in list(self.world.busy.values()):
            self.tell(BatchCompleted(infer.executor, infer.batch, MS))
        if self.world.sampling is not None:
            of = self.world.sampling
            self.tell(SampleCompleted(of.executor, of.batch, MS))
