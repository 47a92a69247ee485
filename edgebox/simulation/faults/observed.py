"""What can be seen of a Scheduler from outside: who waits, who runs where, what has ended."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.plans import Group
from edgebox.domain.requests import (
    Camera,
    CameraId,
    Request,
    RequestId,
)
from edgebox.scheduling.actions import Action, ComputePlan, Infer, Sample
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    Event,
    ExecutorStarted,
    ExecutorStopped,
    OpenFailed,
    PlanComputed,
    PlanFailed,
    ProfilesChanged,
    RequestArrived,
    RequestPrepared,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
    VariantsAvailable,
)
from edgebox.scheduling.request_stages import Stage
from edgebox.scheduling.scheduler import Scheduler
from edgebox.simulation.faults.memory_judge import Held
from edgebox.simulation.faults.small_box import fresh


@dataclass
class Joined:
    """A frame whose crops are on their way, as the world has seen it."""

    request: Request
    collected: bool = False
    pending: dict[RequestId, StageName] = field(default_factory=dict)
    missing: set[StageName] = field(default_factory=set)


@dataclass
class Observed:
    """A Scheduler, and what was seen of its events and orders from outside."""

    policy: str
    scheduler: Scheduler = field(init=False)
    now_ns: int = 0
    journal: list[tuple[int, Event | None, list[Action]]] = field(default_factory=list)
    """Every call and its answer."""
    keeps_journal: bool = True
    check_every: int = 1
    """After every so many calls all redundant state is derived anew; orders are always judged."""
    due_ns: int | None = None
    """When the Scheduler wants to be called next."""
    _calls: int = 0
    loaded: dict[ExecutorId, dict[VariantName, LatencyProfile]] = field(default_factory=dict)
    changing: dict[ExecutorId, dict[VariantName, LatencyProfile]] = field(default_factory=dict)
    """What executors run once their batch or sample has ended."""
    excluded: dict[ExecutorId, set[VariantName]] = field(default_factory=dict)
    """The variants that are not run on an executor any more, because they hung there."""
    offered: set[VariantName] = field(default_factory=set)
    held: Held = field(default_factory=Held)
    busy: dict[ExecutorId, Infer] = field(default_factory=dict)
    alive: dict[RequestId, Request] = field(default_factory=dict)
    variant: dict[RequestId, VariantName] = field(default_factory=dict)
    preparing: list[RequestId] = field(default_factory=list)
    ready: set[RequestId] = field(default_factory=set)
    open: set[CameraId] = field(default_factory=set)
    groups: tuple[Group, ...] = ()
    plans: list[ComputePlan] = field(default_factory=list)
    tried: set[RequestId] = field(default_factory=set)
    """What seemed to have no chance, and was prepared all the same."""
    ended: set[RequestId] = field(default_factory=set)
    retained: set[RequestId] = field(default_factory=set)
    sampling: Sample | None = None
    opening: set[ExecutorId] = field(default_factory=set)
    stopping: bool = False
    cancelled: set[RequestId] = field(default_factory=set)
    """Requests whose camera left while they ran."""
    joined: dict[RequestId, Joined] = field(default_factory=dict)
    unneeded: set[RequestId] = field(default_factory=set)
    """Crops that ran when their frame ended."""
    cameras: dict[CameraId, Camera] = field(default_factory=dict)
    queued_until_ns: dict[RequestId, int] = field(default_factory=dict)
    """The last deadline that the policy knows of each waiting request; only with EDF."""
    stale: Counter[str] = field(default_factory=Counter)
    stages: dict[RequestId, Stage] = field(default_factory=dict)

    pipelines: dict[RequestId, Pipeline | None] = field(default_factory=dict)
    """The pipeline that each frame came with."""

    def __post_init__(self) -> None:
        self.scheduler = fresh(self.policy)

    def frames_waiting(self, camera: CameraId | None = None) -> int:
        """Return how many frames wait, of one camera or of all."""
        waiting = [self.alive[number] for number in (*self.preparing, *self.ready)]
        return sum(of.frame is None and camera in (None, of.camera) for of in waiting)

    def next_id(self) -> RequestId:
        """Return a number that no request has or had."""
        return RequestId(len(self.alive) + len(self.ended) + len(self.joined))

    def _note(self, event: Event | None) -> None:  # noqa: PLR0912 - one case a kind of event
        self.held.note(event)
        match event:
            case CropsPrepared():
                self.ready |= set(self.preparing).intersection(event.requests)
                self.preparing = [r for r in self.preparing if r not in event.requests]
            case RequestArrived():
                if event.request.id not in self.alive:
                    self.alive[event.request.id] = event.request
                    of = self.cameras.get(event.request.camera)
                    self.pipelines[event.request.id] = None if of is None else of.pipeline
            case RequestPrepared() if event.request in self.preparing:
                self.preparing.remove(event.request)
                self.ready.add(event.request)
            case ExecutorStarted() | ExecutorStopped() | OpenFailed():
                self._note_executor(event)
            case ProfilesChanged() if event.executor in self.loaded:
                self.changing[event.executor] = self._runnable(event)
            case SampleCompleted() | SampleFailed() if self.sampling is not None:
                if (self.sampling.executor, self.sampling.batch) == (event.executor, event.batch):
                    self.sampling = None
            case BatchCompleted() | BatchFailed():
                running = self.busy.get(event.executor)
                ran = running is not None and running.batch == event.batch
                if ran:
                    del self.busy[event.executor]
                if isinstance(event, BatchCompleted):
                    self._note_crops(event, running.requests if ran and running else ())
            case CameraConnected():
                self._cancel(event.camera.id if event.camera.id in self.open else None)
                self.open.add(event.camera.id)
                self.cameras[event.camera.id] = event.camera
            case CameraChanged() if event.camera.id in self.open:
                self.cameras[event.camera.id] = event.camera
            case CameraDisconnected():
                self._cancel(event.camera)
                self.open.discard(event.camera)
                self.cameras.pop(event.camera, None)
            case VariantsAvailable():
                before, self.offered = self.offered, {each.name for each in event.variants}
                for excluded in self.excluded.values():
                    excluded.difference_update(self.offered - before)
            case ShutdownRequested():
                self.stopping = True
            case PlanComputed():
                self.plans.clear()
                self.groups = event.plan.groups
            case PlanFailed():
                self.plans.clear()
            case _:
                pass
        self._change_profiles()

    def _change_profiles(self) -> None:
        sampling = None if self.sampling is None else self.sampling.executor
        for executor in [each for each in self.changing if each not in {*self.busy, sampling}]:
            self.loaded[executor] = self.changing.pop(executor)

    def _runnable(
        self, event: ExecutorStarted | ProfilesChanged
    ) -> dict[VariantName, LatencyProfile]:
        excluded = self.excluded.get(event.executor, ())
        return {p.variant: p for p in event.profiles if p.variant not in excluded}

    def _note_crops(self, event: BatchCompleted, members: Collection[RequestId]) -> None:
        gone = self.cancelled.intersection(members)
        departed = {self.alive[member].frame or member for member in gone}
        for crop in event.spawned:
            self.alive[crop.id] = crop
            if crop.frame in departed:
                self.cancelled.add(crop.id)
            assert crop.frame is not None
            assert crop.stage is not None
            root = RequestId(crop.frame)
            joins = root not in self.cancelled and self.pipelines.get(root) is not None
            if root in members and joins:
                self.joined.setdefault(root, Joined(self.alive[root]))
            if members and root in self.joined:
                self.joined[root].pending[crop.id] = crop.stage

    def _cancel(self, camera: CameraId | None) -> None:
        running = {member for infer in self.busy.values() for member in infer.requests}
        running -= self.unneeded
        self.cancelled |= {r for r in running if self.alive[r].camera == camera}

    def _note_executor(self, event: ExecutorStarted | ExecutorStopped | OpenFailed) -> None:
        self.opening.discard(event.executor)
        if isinstance(event, OpenFailed):
            return
        self._halt(event.executor)
        self.loaded.pop(event.executor, None)
        self.changing.pop(event.executor, None)
        if isinstance(event, ExecutorStopped):
            self.excluded.pop(event.executor, None)
        if isinstance(event, ExecutorStarted):
            self.loaded[event.executor] = self._runnable(event)

    def _halt(self, executor: ExecutorId) -> None:
        self.busy.pop(executor, None)
        if self.sampling is not None and self.sampling.executor == executor:
            self.sampling = None

    def _end(self, request: RequestId) -> None:
        del self.alive[request]
        assert request not in self.ended
        self.ended.add(request)
        self.ready.discard(request)
        if request in self.preparing:
            self.preparing.remove(request)
