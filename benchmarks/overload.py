"""Ten times the load by cameras that ignore advice: python -m benchmarks.overload [--json]

Virtual time, the same on every machine: the real core, planner and decode queue decide; decoding
and inference take given times. Four established cameras use nine tenths of one executor and obey
their advice. Then a crowd joins for a while that sends whatever it is told. `overload_live` has the
real server.

goodput    frames answered on time per second, of all cameras, as a share of the executor's capacity
share      on-time share of the established cameras
recovery   from when the crowd leaves until the established cameras have nearly their share back

`--ablation` changes one rule of decoding at a time.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush
from itertools import count
from types import ModuleType

import click

from benchmarks.changed_constant import changed
from edgebox.config.config_file import Config
from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.requests import Camera, CameraId, Outcome, Request, RequestId
from edgebox.link.receive_budget import ReceiveBudget
from edgebox.planning.planner import plan
from edgebox.runtime import decode_queue, decoded_ahead
from edgebox.runtime.decode_queue import Deferrable, FairQueue, Taken
from edgebox.runtime.decoded_ahead import DecodedAhead
from edgebox.scheduling.actions import Advise, ComputePlan, Drop, Finish, Infer, Prepare
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CameraDisconnected,
    Event,
    ExecutorStarted,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
    VariantsAvailable,
)
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler

MS = 1_000_000
S = 1_000_000_000
FAMILY = FamilyName("model")
VARIANT = Variant(VariantName("model-128"), FAMILY, 128, 128, 1.0)
EXECUTOR = ExecutorId("timer/0")
SLO_NS = 500 * MS
PLAN_NS = 10 * MS
RECOVERED = 0.95
"""The part of its earlier on-time share with which a camera has recovered."""
STEP_NS = 500 * MS


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment."""

    factor: float = 10.0
    """Load of all cameras while the crowd is there, in capacities of the executor."""
    crowd: int = 36
    established: int = 4
    load: float = 0.9
    """Load of the established cameras, in capacities."""
    crowd_decode_ms: float | None = None
    """Decoding of a crowd's picture; None: as of the others."""
    frame_ms: float = 20.0
    """Inference of a frame."""
    decode_ms: float = 4.0
    threads: int = 2
    slowed: float = 0.0
    """By how much each thread that decodes makes a batch longer, where they share cores."""
    held: bool = True
    """Whether decoding waits while enough frames are decoded."""
    cut: bool = True
    """Whether frames beyond their camera's advice are refused as they arrive."""
    before_s: int = 10
    during_s: int = 10
    after_s: int = 20


@dataclass(slots=True)
class Counted:
    """Frames by the half second of their capture."""

    captured: dict[int, int] = field(default_factory=dict)
    on_time: dict[int, int] = field(default_factory=dict)

    def share(self, from_ns: int, until_ns: int) -> float:
        """Return the on-time share of the frames captured in an interval."""
        steps = range(from_ns // STEP_NS, until_ns // STEP_NS)
        captured = sum(self.captured.get(step, 0) for step in steps)
        return sum(self.on_time.get(step, 0) for step in steps) / max(1, captured)


class Overload:
    """A box under virtual time."""

    def __init__(self, setting: Setting) -> None:
        """Start with the executor and no cameras."""
        config = Config()
        self._setting = setting
        self._parameters = config.planning_parameters()
        self._scheduler = Scheduler(config.scheduler_parameters(), make_policy("adaptive"))
        self._queue = FairQueue(setting.threads)
        self._ahead = DecodedAhead()
        self._events: list[tuple[int, int, Callable[[], Iterable[Event]]]] = []
        self._order = count()
        self._ids = count(1)
        self._requests: dict[RequestId, Request] = {}
        self._ordered_ns: dict[RequestId, int] = {}
        """When the decoding of each frame was ordered."""
        self._decoding = 0
        self._started: list[RequestId] = []
        """The frame whose decoding has just begun."""
        self._connected: set[CameraId] = set()
        self._budgets: dict[CameraId, ReceiveBudget] = {}
        self._advised_hz: dict[CameraId, float] = {}
        self._released_ns = 0
        self._held = False
        self._now_ns = 0
        self.first, self.all = Counted(), Counted()
        self.decoded = 0
        frame_ns = round(setting.frame_ms * MS)
        profile = LatencyProfile(VARIANT.name, EXECUTOR, {1: (frame_ns,) * len(QUANTILES)})
        self._step([VariantsAvailable((VARIANT,)), ExecutorStarted(EXECUTOR, (profile,))])

    def join(self, camera: CameraId, rate_hz: float, from_ns: int, until_ns: int) -> None:
        """Let a camera connect, send, and leave. Those that are there first obey their advice."""
        period_ns = round(S / rate_hz)
        self._budgets[camera] = ReceiveBudget(Config().limits.unacknowledged_max)

        def connect() -> Iterable[Event]:
            self._connected.add(camera)
            yield CameraConnected(
                Camera(camera, "default", FAMILY, SLO_NS, min(100.0, rate_hz), 128, 128)
            )

        def leave() -> Iterable[Event]:
            self._connected.discard(camera)
            yield CameraDisconnected(camera)

        self._at(from_ns, connect)
        self._at(until_ns, leave)

        def send() -> Iterable[Event]:
            obeyed_hz = self._advised_hz.get(camera, rate_hz) if is_first(camera) else rate_hz
            next_ns = self._now_ns + max(period_ns, round(S / obeyed_hz))
            if next_ns < until_ns:
                self._at(next_ns, send)
            yield from self._arrival(camera)

        self._at(from_ns + period_ns, send)

    def run(self, until_ns: int) -> None:
        """Run until an instant."""
        while True:
            wake_ns = self._scheduler.next_wakeup_ns()
            due_ns = self._events[0][0] if self._events else until_ns
            self._now_ns = max(self._now_ns, min(due_ns, wake_ns or due_ns))
            if self._now_ns >= until_ns:
                return
            facts: list[Event] = []
            while self._events and self._events[0][0] <= self._now_ns:
                facts += heappop(self._events)[2]()
            self._step(facts)

    def _at(self, at_ns: int, what: Callable[[], Iterable[Event]]) -> None:
        heappush(self._events, (at_ns, next(self._order), what))

    def _arrival(self, camera: CameraId) -> Iterable[Event]:
        now_ns, number = self._now_ns, RequestId(next(self._ids))
        request = Request(
            id=number, camera=camera, app="default", captured_ns=now_ns, arrival_ns=now_ns,
            deadline_ns=now_ns + SLO_NS, width_px=128, height_px=128, size_bytes=10_000,
        )  # fmt: skip
        self._count(request, on_time=False)
        taken = self._budgets[camera].take(now_ns, SLO_NS)
        if taken or not self._setting.cut:
            self._requests[number] = request
            yield RequestArrived(request)

    def _count(self, request: Request, on_time: bool) -> None:
        step = request.captured_ns // STEP_NS
        for counted in (self.all, self.first) if is_first(request.camera) else (self.all,):
            of = counted.on_time if on_time else counted.captured
            of[step] = of.get(step, 0) + 1

    def _step(self, facts: list[Event]) -> None:
        for action in self._scheduler.handle_together(facts, self._now_ns):
            match action:
                case Prepare(request):
                    self._prepare(request)
                case Infer():
                    self._infer(action)
                case Finish(request):
                    self._end(request, action.outcome is Outcome.ON_TIME)
                case Drop(request):
                    self._end(request, on_time=False)
                case Advise(camera, advice):
                    self._budgets[camera].advised(advice.rate_hz, self._now_ns)
                    self._advised_hz[camera] = advice.rate_hz
                case ComputePlan(snapshot):
                    found = PlanComputed(plan(snapshot, 1_000, parameters=self._parameters))
                    self._at(self._now_ns + PLAN_NS, lambda found=found: [found])  # type: ignore[misc]
                    self._ahead.deadline(self._scheduler.tightest_slo_ns)
                case _:
                    pass
        held = self._ahead.is_enough(1) and bool(self._scheduler.running) and self._setting.held
        if self._held and not held:
            self._released_ns = self._now_ns
        self._held = held
        self._queue.hold(held)
        self._decode()

    def _prepare(self, number: RequestId) -> None:
        ordered_ns = self._now_ns
        decoding = Deferrable(
            lambda _: self._started.append(number), lambda: number not in self._requests
        )
        self._ordered_ns[number] = ordered_ns
        self._queue.put(self._requests[number].camera, decoding)

    def _decode(self) -> None:
        while self._decoding < self._setting.threads and (taken := self._queue.take()) is not None:
            taken.work()
            number = self._started.pop()
            self._decoding += 1
            self._at(
                self._now_ns + self._decodes_ns(number),
                lambda taken=taken, number=number, began_ns=self._now_ns: self._decoded(  # type: ignore[misc]
                    taken, number, began_ns
                ),
            )

    def _decodes_ns(self, number: RequestId) -> int:
        crowd_ms = self._setting.crowd_decode_ms
        if crowd_ms is None or is_first(self._requests[number].camera):
            return round(self._setting.decode_ms * MS)
        return round(crowd_ms * MS)

    def _decoded(self, taken: Taken, number: RequestId, began_ns: int) -> Iterable[Event]:
        self._decoding -= 1
        self.decoded += 1
        self._queue.done(taken, self._now_ns - began_ns)
        ordered_ns = self._ordered_ns.pop(number)
        if number in self._requests:
            work = taken.work
            waited = self._held or self._released_ns >= ordered_ns
            waited = waited or (isinstance(work, Deferrable) and work.behind)
            self._ahead.decoded(number)
            yield RequestPrepared(number, self._now_ns - (began_ns if waited else ordered_ns))

    def _infer(self, infer: Infer) -> None:
        self._ahead.taken(infer.requests)
        slower = 1 + self._setting.slowed * self._decoding
        took_ns = round(self._setting.frame_ms * MS * slower)

        def completed() -> Iterable[Event]:
            self._ahead.ran(len(infer.requests), took_ns)
            yield BatchCompleted(infer.executor, infer.batch, took_ns)

        self._at(self._now_ns + took_ns, completed)

    def _end(self, number: RequestId, on_time: bool) -> None:
        request = self._requests.pop(number)
        self._ahead.taken((number,))
        if on_time:
            self._count(request, on_time=True)


def is_first(camera: CameraId) -> bool:
    """Return whether a camera was there first."""
    return camera.startswith("first-")


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one setting."""

    before_share: float
    """On-time share of the established cameras before the crowd comes."""
    goodput_of_capacity: float
    share: float
    """On-time share of the established cameras while the crowd is there."""
    recovery_s: float | None
    """None: they did not recover."""
    decoded: int
    """Frames that were decoded in all."""


def measure(setting: Setting) -> Measured:
    """Measure before, while and after the crowd is there."""
    box = Overload(setting)
    capacity_hz = 1e3 / setting.frame_ms
    begin_ns, end_ns = setting.before_s * S, (setting.before_s + setting.during_s) * S
    last_ns = end_ns + setting.after_s * S
    for number in range(setting.established):
        rate_hz = setting.load * capacity_hz / setting.established
        box.join(CameraId(f"first-{number}"), rate_hz, number * 7 * MS, last_ns)
    for number in range(setting.crowd):
        rate_hz = (setting.factor - setting.load) * capacity_hz / setting.crowd
        box.join(CameraId(f"crowd-{number}"), rate_hz, begin_ns + number * 3 * MS, end_ns)
    box.run(last_ns)
    before = box.first.share(2 * S, begin_ns)
    # The crowd's first second is part of it: that is when the box is surprised.
    during = sum(
        box.all.on_time.get(step, 0) for step in range(begin_ns // STEP_NS, end_ns // STEP_NS)
    )
    recovery_s = next(
        (
            (at_ns - end_ns) / S
            for at_ns in range(end_ns, last_ns - STEP_NS, STEP_NS)
            if box.first.share(at_ns, at_ns + STEP_NS) >= RECOVERED * before
        ),
        None,
    )
    return Measured(
        before_share=round(before, 3),
        goodput_of_capacity=round(during / setting.during_s / capacity_hz, 3),
        share=round(box.first.share(begin_ns, end_ns), 3),
        recovery_s=recovery_s,
        decoded=box.decoded,
    )


SETTINGS = {
    "decoding on other cores": Setting(),
    "the same, decoding is slow": Setting(decode_ms=16.0),
    "decoding shares the executor's cores": Setting(slowed=0.5),
    "five times the load": Setting(factor=5.0),
    "twice the load": Setting(factor=2.0, crowd=8),
    "one camera at 1,000 Hz": Setting(factor=20.6, crowd=1, load=0.6, slowed=0.5),
    "one camera with pictures that take 300 ms": Setting(
        factor=0.8, crowd=1, load=0.6, slowed=0.5, crowd_decode_ms=300.0
    ),
}


ABLATIONS: dict[str, tuple[ModuleType, str, float]] = {
    "the oldest first": (decode_queue, "_NEWEST_FIRST", 1e9),
    "the newest first, always": (decode_queue, "_NEWEST_FIRST", 1),
    "decoded ahead for .1 of the deadline": (decoded_ahead, "DEADLINE_SHARE", 0.1),
    "decoded ahead for .5 of the deadline": (decoded_ahead, "DEADLINE_SHARE", 0.5),
    "decoded ahead for all of the deadline": (decoded_ahead, "DEADLINE_SHARE", 1.0),
}
"""Constants with values that take away what they are for."""


def ablated() -> dict[str, dict[str, object]]:
    """Return the figures of every setting with one constant changed at a time."""
    found = {}
    for what, change in ABLATIONS.items():
        for name, setting in SETTINGS.items():
            with changed(*change):
                found[f"{name}, {what}"] = asdict(measure(setting))
    return found


@click.command()
@click.option("--ablation", is_flag=True, help="With one rule of decoding changed at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(*, ablation: bool, as_json: bool) -> None:
    """Measure goodput under overload by cameras that ignore advice."""
    document = {name: asdict(measure(setting)) for name, setting in SETTINGS.items()}
    if ablation:
        document |= ablated()
    if as_json:
        click.echo(json.dumps(document))
        return
    for name, figures in document.items():
        click.echo(f"{name}: {json.dumps(figures)}")


if __name__ == "__main__":
    main()
