"""Runs seeds, and finds the shortest run with the fewest kinds of faults that fails alike."""

import traceback
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import Camera
from edgebox.scheduling.events import ExecutorStarted, ExecutorStopped
from edgebox.scheduling.supervised import ExecutorState
from edgebox.simulation.faults.fault_kinds import SECOND, FaultKind, draw_box
from edgebox.simulation.faults.fault_simulation import FaultSimulation
from edgebox.simulation.faults.small_box import profiles

EVENTS_PER_SEED = 20_000
ADD_UP_EVERY = 500
BACK_WITHIN_NS = 200 * SECOND
"""Three back-offs of a minute at most, and an opening."""
WORK_WITHIN_NS = 120 * SECOND
STEP_NS = 5 * SECOND
NO_LIMIT = 1 << 60
CHECK_EVERY = 25
"""Calls from one derivation of all redundant state to the next. A contradiction stays, as a rule,
so that it is found a few calls later; the seed is then run again with a check after every call."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and how to see it again."""

    seed: int
    events: int
    """Calls of the Scheduler until the failure, the last one included, or until nothing broke any
    more where it failed after that."""
    kinds: tuple[FaultKind, ...]
    phase: str
    at_s: float
    error: str
    where: str
    """The line of code that found it."""


@dataclass(slots=True)
class SeedResult:
    """One run."""

    seed: int
    events: int
    ends: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    exited: bool = False
    digest: str = ""
    """Differs if anything went another way."""
    failure: Failure | None = None


def run_seed(
    seed: int,
    events: int = EVENTS_PER_SEED,
    only: Collection[FaultKind] | None = None,
    check_every: int = 1,
) -> SeedResult:
    """Run one seed for so many events with faults, then let the box recover and shut it down.

    Args:
        seed: of all randomness.
        events: calls of the Scheduler while things break.
        only: nothing else breaks; None: what the seed draws.
        check_every: all redundant state is derived anew after every so many calls.
    """
    box = draw_box(seed, only)
    phase, simulation, broken = "start", None, 0
    try:
        simulation = FaultSimulation(seed, box, check_every)
        phase = "faults"
        while simulation.events < events and not simulation.exited:
            simulation.run(min(events, simulation.events + ADD_UP_EVERY))
            simulation.checks.add_up()
        broken = simulation.events
        if not simulation.exited:
            phase = "recovery"
            recover(simulation)
        phase = "shutdown"
        simulation.stop()
        simulation.checks.all_ended()
    except Exception as error:  # whatever it is, it is what was looked for
        return _failed(seed, simulation, phase, error, broken)
    return _result(seed, simulation)


def search_seed(
    seed: int, events: int = EVENTS_PER_SEED, only: Collection[FaultKind] | None = None
) -> SeedResult:
    """Run one seed with few checks; if it fails, again with all of them, to find where it began."""
    found = run_seed(seed, events, only, CHECK_EVERY)
    if found.failure is None:
        return found
    again = run_seed(seed, events, only)
    return again if again.failure is not None else found


def recover(simulation: FaultSimulation) -> None:
    """Break nothing any more, and insist that all executors and cameras are served again.

    Raises:
        InvariantViolation: something stays as it was when it was broken.
    """
    simulation.heal()
    for camera in list(simulation.cameras.values())[2:]:
        if camera.connected:
            simulation.disconnect(camera)
    for camera in simulation.cameras.values():
        camera.wants = _modest(camera.wants)
        if camera in list(simulation.cameras.values())[:2]:
            simulation.connect(camera)
    until_ns = simulation.now_ns + BACK_WITHIN_NS
    while simulation.now_ns < until_ns and not simulation.exited:
        simulation.run(NO_LIMIT, simulation.now_ns + STEP_NS)
        if not (lost := _not_up(simulation)):
            break
    if simulation.exited:
        return
    _require(not lost, f"{', '.join(lost)}, though nothing is broken any more")
    for executor in simulation.executors:
        _work(simulation, executor)


def _not_up(simulation: FaultSimulation) -> list[str]:
    supervised = simulation.world.scheduler.supervised
    return [
        f"{executor} is {supervised[executor].state if executor in supervised else 'stopped'}"
        for executor in simulation.executors
        if executor not in supervised or supervised[executor].state is not ExecutorState.UP
    ]


def _modest(wants: Camera) -> Camera:
    """Return what any executor can answer in time."""
    return replace(wants, rate_hz=1.0, slo_ns=2 * SECOND, steps=(), pipeline=None, min_accuracy=0.0)


def _work(simulation: FaultSimulation, executor: ExecutorId) -> None:
    """Insist that an executor gets work where it is the only one, and answers on time."""
    others = [each for each in simulation.executors if each != executor]
    if not simulation.world.scheduler.supervised[executor].variants:
        return  # all of them hung there again and again
    for other in others:
        simulation.tell(ExecutorStopped(other))
    checks = simulation.checks
    checks.on_time.clear()
    checks.ran.clear()
    cameras = {camera.wants.id for camera in simulation.cameras.values() if camera.connected}
    until_ns = simulation.now_ns + WORK_WITHIN_NS
    while simulation.now_ns < until_ns and not (cameras <= checks.on_time and checks.ran):
        simulation.run(simulation.events + 50, until_ns)
    _require(executor in checks.ran, f"{executor} is up, and gets no work")
    never = ", ".join(sorted(cameras - checks.on_time))
    _require(not never, f"{never} is never answered on time by {executor}")
    for other in others:
        simulation.tell(ExecutorStarted(other, profiles(other, 31)))


def shrink(failure: Failure, events: int) -> Failure:
    """Return the same failure with fewer kinds of faults and events, as far as that is quick.

    Args:
        failure: of a run.
        events: the events that the run was given.
    """
    kinds = list(failure.kinds)
    best = failure
    for kind in failure.kinds:
        fewer = [each for each in kinds if each is not kind]
        found = run_seed(failure.seed, events, fewer).failure
        if found is not None and found.where == failure.where:
            kinds, best = fewer, found
    step = best.events // 2
    while step and best.phase != "faults":
        found = run_seed(best.seed, best.events - step, kinds).failure
        alike = found is not None and found.where == failure.where
        if found is not None and alike and found.events < best.events:
            best = found
            step = min(step, best.events // 2)
        else:
            step //= 2
    return best


def seeds(first: int, events: int, per_seed: int = EVENTS_PER_SEED) -> Iterable[tuple[int, int]]:
    """Return the seeds of a search, each with its events."""
    for number in range(-(-events // per_seed)):
        yield first + number, min(per_seed, events - number * per_seed)


def _failed(
    seed: int, simulation: FaultSimulation | None, phase: str, error: Exception, broken: int
) -> SeedResult:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rsplit('edgebox/', 1)[-1]}:{frame.lineno} {frame.line}"
    events = simulation.events if simulation is not None else 0
    failure = Failure(
        seed,
        events if phase in ("start", "faults") else broken,
        tuple(sorted(simulation.box.kinds)) if simulation is not None else (),
        phase,
        simulation.now_ns / SECOND if simulation is not None else 0.0,
        f"{type(error).__name__}: {error}",
        where,
    )
    return SeedResult(seed, events, failure=failure)


def _result(seed: int, simulation: FaultSimulation) -> SeedResult:
    out = SeedResult(seed, simulation.events, exited=simulation.exited)
    for camera in simulation.cameras.values():
        out.ends.update(camera.ends)
    out.losses.update(simulation.checks.losses)
    told = (
        f"{out.events} {simulation.now_ns} {sorted(out.ends.items())} {sorted(out.losses.items())}"
    )
    out.digest = sha256(told.encode()).hexdigest()[:16]
    return out


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvariantViolation(message)
