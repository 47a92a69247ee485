"""Draws stories for a `World`: events of every kind, valid and invalid, in any order."""

import random
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import Assignment, Group, Plan
from edgebox.domain.requests import (
    BatchId,
    Camera,
    CameraId,
    DropReason,
    FrameId,
    LinkState,
    Request,
    RequestId,
)
from edgebox.scheduling.actions import (
    Abandon,
    Collect,
    Load,
    Open,
    Release,
    Retain,
    RunAgain,
    Sample,
    Unload,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CascadeMeasured,
    CropsPrepared,
    Event,
    ExecutorGone,
    ExecutorHung,
    ExecutorLent,
    ExecutorStarted,
    ExecutorStopped,
    LinkMeasured,
    LoadReturned,
    OpenFailed,
    PartialAnswered,
    PlanComputed,
    PlanFailed,
    ProfilesChanged,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    RequestsUnanswered,
    SampleCompleted,
    SampleFailed,
    ShutdownRequested,
    VariantsAvailable,
)
from edgebox.scheduling.policies import POLICIES
from edgebox.simulation.faults.judge import World
from edgebox.simulation.faults.small_box import (
    CAMERAS,
    EXECUTORS,
    PIPELINES,
    READ,
    VARIANTS,
    profiles,
)
from tests.scheduling.cascades import CURVE
from tests.scheduling.scene import FAMILY, MEDIAN_MS, MS, camera, name, request


def arrival(world: World, a: int, b: int) -> Event:
    # Ids are never given again, except that a living one may be repeated.
    at = world.next_id()
    if b % 11 == 0 and world.alive:
        at = next(iter(world.alive))
    shot = name(list(MEDIAN_MS)[b % 5]) if b % 7 == 0 else None
    who = "http" if shot else CAMERAS[a % 3]
    deadline_ms = world.now_ns / MS + (b % 13) * 10
    size = (40 * (1 + b % 16), 30 * (1 + a % 16))
    later = [(deadline_ms + 20 * (1 + b % 3), 0.5), (deadline_ms + 90, 0.2)][: a % 4]
    later = [] if a % 4 == 3 else later
    variant = (None, name(128), name(416), name(608), name(999))[(a + b) % 5]
    arrived = request(
        at, deadline_ms, of=who, size=size, variant=shot, later=later, advised=variant
    )
    return RequestArrived(arrived)


def prepared(world: World, a: int, b: int) -> RequestId:
    if world.preparing and b % 6:
        return world.preparing[a % len(world.preparing)]
    return RequestId(a % (len(world.variant) + 2))


def batch(world: World, a: int, b: int) -> BatchId:
    running = world.busy.get(EXECUTORS[a % 2])
    return running.batch if running is not None and b % 5 else BatchId(b)


def crops(world: World, number: int, executor: ExecutorId, a: int, b: int) -> list[Request]:
    """Draw crops of the members of a batch, of what its pipeline has next, and of others."""
    running = world.busy.get(executor)
    members = [world.alive[r] for r in running.requests] if running is not None else []
    if b % 7 == 0:  # of frames whose crops are on their way, whatever has just ended
        members += [frame.request for frame in world.joined.values()]
    if b % 9 == 0 and world.ended:
        members.append(request(max(world.ended), world.now_ns / MS + 50))
    out: list[Request] = []
    for at, of in enumerate(members):
        camera_of = world.cameras.get(of.camera)
        pipeline = None if camera_of is None else camera_of.pipeline
        if pipeline is not None:
            stages = [s.name for s in pipeline.next_stages(of.stage or pipeline.first.name)]
        else:
            stages = [READ] if b % 5 == 0 else []
        for stage in stages * ((a + b + at) % 4):
            out.append(
                replace(
                    of,
                    id=RequestId(number + len(out)),
                    arrival_ns=world.now_ns,
                    variant=None,
                    advised=None,
                    frame=FrameId(of.id) if of.frame is None else of.frame,
                    stage=stage,
                )
            )
    return out


def completed(world: World, a: int, b: int) -> Event:
    executor = EXECUTORS[a % 2]
    spawned = crops(world, world.next_id(), executor, a, b)
    running = world.busy.get(executor)
    if running is not None and not running.requests:
        return BatchCompleted(executor, running.batch, b * MS)
    return BatchCompleted(executor, batch(world, a, b), b * MS, tuple(spawned))


UNANSWERED = DropReason.OVERLOAD, DropReason.OVERLOAD, DropReason.FAILED, DropReason.INVALID


def unanswered(world: World, a: int, b: int) -> Event:
    """Have a batch come back without an answer to members, some or all."""
    executor = EXECUTORS[a % 2]
    running = world.busy.get(executor)
    members = running.requests if running is not None else (RequestId(b),)
    some = members[b % 3 == 0 and len(members) > 1 :]
    reason = UNANSWERED[b % len(UNANSWERED)]
    rests_ns = b * MS if reason is DropReason.OVERLOAD and len(some) == len(members) else 0
    return RequestsUnanswered(executor, batch(world, a, b), some, reason, rests_ns)


def crops_prepared(world: World, a: int, b: int) -> Event:
    """Report crops, all or some, and at times something else or one of them twice."""
    cut = [r for r in world.preparing if world.alive[r].frame is not None]
    if b % 4 == 0:
        cut = cut[: a % 4]
    if b % 8 == 0:
        cut = [*cut, *cut[:1], RequestId(a)]
    return CropsPrepared(tuple(cut), b * MS if b % 3 else None)


def sampled(world: World, b: int) -> tuple[ExecutorId, BatchId]:
    running = world.sampling
    if running is not None and b % 5:
        return running.executor, running.batch
    return EXECUTORS[b % 2], BatchId(b)


def plan(world: World, a: int, b: int) -> Event:
    variant = name(list(MEDIAN_MS)[b % 5])
    assignments = [
        Assignment(CameraId(c), variant, 1 + b % 3, 85, True, f"{b % 4}") for c in CAMERAS[: a % 4]
    ]
    given = {each.camera: each for each in assignments}
    return PlanComputed(Plan(world.now_ns, given, groups=groups(a, b)))


def groups(a: int, b: int) -> tuple[Group, ...]:
    """Give each executor some of the variants, one of which may be nobody's."""
    if b % 3 == 0:
        return ()
    px = list(MEDIAN_MS)
    cut = 1 + b % 4
    one = Group((EXECUTORS[a % 2],), tuple(map(name, px[:cut])), b % 7 * 5 * MS)
    other = Group((EXECUTORS[1 - a % 2],), tuple(map(name, px[cut + b % 2 :])), b % 5 * 10 * MS)
    return (one, other)


def limited(world: World, a: int, b: int) -> Event | None:
    """Limit an executor's memory; a box does that only when it starts, before anything runs."""
    if world.alive or world.busy or world.sampling:
        return None
    executor = EXECUTORS[a % 2]
    return world.held.limited(executor, world.loaded.get(executor, ()), 1 + b % 4, a)


def camera_of(a: int, b: int) -> Camera:
    made = camera(CAMERAS[a % 3], slo_ms=20 + b * 5, rate_hz=1 + b, min_accuracy=0.5 * (b % 2))
    return replace(made, pipeline=PIPELINES[(a + b) % 4])


def link(a: int, b: int) -> Event:
    state = LinkState(bandwidth_bps=b * 1e5, rtt_ns=a * MS)
    return LinkMeasured(CameraId(CAMERAS[a % 3]), state)


MAKERS: dict[str, Callable[[World, int, int], Event | None]] = {
    "arrived": arrival,
    "prepared": lambda w, a, b: RequestPrepared(prepared(w, a, b), b % 9 * MS),
    "rejected": lambda w, a, b: RequestRejected(prepared(w, a, b)),
    "completed": completed,
    "cut": crops_prepared,
    "unanswered": unanswered,
    "failed": lambda w, a, b: BatchFailed(EXECUTORS[a % 2], batch(w, a, b)),
    "sampled": lambda w, a, b: SampleCompleted(*sampled(w, b), a * MS, refused=b % 13 == 0),
    "sample_failed": lambda w, a, b: SampleFailed(*sampled(w, b)),
    "started": lambda w, a, b: ExecutorStarted(EXECUTORS[a % 2], profiles(EXECUTORS[a % 2], b)),
    "profiles": lambda w, a, b: ProfilesChanged(EXECUTORS[a % 2], profiles(EXECUTORS[a % 2], b)),
    "stopped": lambda w, a, b: ExecutorStopped(EXECUTORS[a % 2]),
    "hung": lambda w, a, b: ExecutorHung(EXECUTORS[a % 2]),
    "lent": lambda w, a, b: ExecutorLent(EXECUTORS[a % 2], b % 2 == 0),
    "gone": lambda w, a, b: ExecutorGone(EXECUTORS[a % 2]),
    "open_failed": lambda w, a, b: OpenFailed(EXECUTORS[a % 2]),
    "load_returned": lambda w, a, b: LoadReturned(EXECUTORS[a % 2]),
    "limited": limited,
    "load_ended": lambda w, a, b: w.held.ended(EXECUTORS[a % 2], a, b),
    "offered": lambda w, a, b: VariantsAvailable(FAMILY[: 1 + b % 5]),
    "opened": lambda w, a, b: CameraConnected(camera_of(a, b)),
    "changed": lambda w, a, b: CameraChanged(camera_of(a, b)),
    "closed": lambda w, a, b: CameraDisconnected(CameraId([*CAMERAS, "http"][b % 4])),
    "measured": lambda w, a, b: link(a, b),
    "planned": plan,
    "plan_failed": lambda w, a, b: PlanFailed(),
    "shutdown": lambda w, a, b: ShutdownRequested() if b % 16 == 0 else None,
    "partial": lambda w, a, b: PartialAnswered(a * MS),
    "cascade": lambda w, a, b: CascadeMeasured(CameraId(CAMERAS[a % 3]), CURVE),
    "wake": lambda w, a, b: None,
}
KINDS = (
    *MAKERS,
    *("arrived",) * 10,
    *("prepared",) * 8,
    *("completed",) * 5,
    *("cut",) * 5,
    *("load_ended",) * 3,
    "unanswered",
    "unanswered",
    "sampled",
    "opened",
    "planned",
)
SOMETIMES = (Collect, RunAgain, Retain, Release, Sample, Load, Unload, Abandon, Open)
"""Orders that only some worlds bring forth."""
STALE = (
    "RequestArrived", "RequestPrepared", "CropsPrepared", "RequestRejected", "RequestsUnanswered",
    "BatchCompleted", "BatchFailed", "SampleCompleted", "SampleFailed", "CameraChanged",
    "CameraDisconnected", "LinkMeasured", "ProfilesChanged",
)  # fmt: skip
LATER_NS = (*(0, 0, 1, MS, MS, 3 * MS) * 4, 17 * MS, 60 * MS, 700 * MS, 5000 * MS)
SELDOM = 7
"""Every how many calls all redundant state is derived anew where a test is about something else."""
Drawn = list[tuple[str, int, int, int]]


def long_story(rng: random.Random) -> Drawn:
    return [
        (rng.choice(KINDS), rng.randrange(32), rng.randrange(64), rng.choice(LATER_NS))
        for _ in range(200)
    ]


def calm_story(rng: random.Random) -> Drawn:
    """Bursts that are answered, with pauses in which an idle box may sample."""
    story: Drawn = [("opened", 1, 63, 0), ("opened", 2, 63, 0)]
    story += [("limited", at, rng.randrange(64), 0) for at in range(rng.randrange(3))]
    for _ in range(20):
        story += [("arrived", at % 3, 12, 0) for at in range(6)]
        story += [("prepared", 0, 1, 0)] * 6
        for at in range(6):
            story += [("completed", at % 2, rng.randint(1, 4), MS), ("cut", 0, 1, 0)]
        story += [("sampled", rng.randrange(8), 1, rng.choice(LATER_NS)) for _ in range(4)]
        for kind in ("planned", rng.choice(KINDS)):
            story.append((kind, rng.randrange(32), rng.randrange(64), MS))
    return story


steps = st.one_of(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.integers(0, 31),
            st.integers(0, 63),
            st.sampled_from(LATER_NS),
        ),
        max_size=120,
    ),
    st.integers(0, 2**32).map(random.Random).map(long_story),
    st.integers(0, 2**32).map(random.Random).map(calm_story),
)


policies = st.sampled_from([*sorted(POLICIES), *(f"{each}{VARIANTS}" for each in sorted(POLICIES))])


def played(drawn: Drawn, policy: str, check_every: int = 1) -> World:
    world = World(policy, check_every=check_every)
    world.tell(VariantsAvailable(FAMILY))
    for executor in EXECUTORS:
        world.tell(ExecutorStarted(executor, profiles(executor, 31)))
    world.tell(CameraConnected(replace(camera("gate-1"), pipeline=PIPELINES[2])))
    for kind, a, b, later_ns in drawn:
        world.pass_time(world.now_ns + later_ns)
        world.tell(MAKERS[kind](world, a, b))
    return world
