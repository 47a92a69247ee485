"""Whatever happens, in whatever order, every request ends exactly once and no order is absurd."""

import random
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgebox.domain.requests import (
    DropReason,
    Outcome,
)
from edgebox.scheduling.actions import (
    Action,
    Drop,
    Finish,
    Infer,
    Release,
    Retain,
    RunAgain,
    Sample,
    Unload,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    RequestArrived,
    SampleCompleted,
    ShutdownRequested,
)
from edgebox.scheduling.policies import POLICIES
from edgebox.scheduling.request_stages import TRANSITIONS, WAITING, Cause, Stage, Transition
from edgebox.scheduling.scheduler import Scheduler
from edgebox.simulation.faults.judge import World
from edgebox.simulation.faults.small_box import fresh
from tests.scheduling.random_events import (
    SELDOM,
    SOMETIMES,
    STALE,
    Drawn,
    calm_story,
    long_story,
    played,
    policies,
    steps,
)
from tests.scheduling.scene import MS


@settings(max_examples=300, deadline=None)
@given(steps, policies, st.integers(0, 2**32))
@example(calm_story(random.Random(3487)), "bentoml+variants", 1)  # woken early beside a delay
@example(long_story(random.Random(122)), "coral+variants", 1)  # asked while nothing is ready
def test_every_request_ends_exactly_once_and_a_replay_repeats_it(
    drawn: Drawn, policy: str, seed: int
) -> None:
    world = played(drawn, policy)
    world.tell(ShutdownRequested())
    for executor, infer in list(world.busy.items()):
        world.tell(BatchCompleted(executor, infer.batch, MS))
    if world.sampling is not None:
        world.tell(SampleCompleted(world.sampling.executor, world.sampling.batch, MS))
    assert world.retained == set()
    assert world.scheduler._sampling.running is None
    assert world.alive == {}
    arrived = {e.request.id for _, e, _ in world.journal if isinstance(e, RequestArrived)}
    arrived |= {
        crop.id for _, e, _ in world.journal if isinstance(e, BatchCompleted) for crop in e.spawned
    }
    assert world.ended == arrived
    assert world.joined == {}
    assert world.scheduler.next_wakeup_ns() is None
    assert list(world.scheduler._policy.pending()) == []
    if seed % 3:  # of 300 worlds 200 are enough, for it takes longer than all of the above
        check_a_replay_repeats_every_action_whoever_wakes_or_asks_it_between(world, seed)


def check_a_replay_repeats_every_action_whoever_wakes_or_asks_it_between(
    world: World, seed: int
) -> None:
    # One drawn seed: hypothesis takes longer for the instants one by one than the scheduler.
    rng, again, last_ns = random.Random(seed), fresh(world.policy), 0
    for now_ns, event, actions in world.journal:
        for early_ns in sorted(rng.randint(last_ns, now_ns) for _ in range(rng.randint(0, 3))):
            due_ns = again.next_wakeup_ns()
            if due_ns is None or early_ns < due_ns:
                assert again.handle(None, early_ns) == []
        assert again.handle(event, now_ns) == actions
        assert again.handle(None, now_ns) == []
        if rng.random() < 0.2:
            ask(again, actions, now_ns)
        last_ns = now_ns


def ask(scheduler: Scheduler, actions: list[Action], now_ns: int) -> None:
    """Ask all that the box asks for its page, its API and its records."""
    scheduler.snapshot(now_ns)
    for action in actions:
        if isinstance(action, (Infer, Sample)):
            scheduler.expected_ns(action)
    times = scheduler.times
    for variant, app, _ in list(times.learning.known_distributions()):
        for executor, profiles in times.latencies.all_known.items():
            if variant in profiles:
                times.expectations.single_request_percentiles(executor, variant, app)


@pytest.mark.long
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_random_events_reach_every_ending(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The properties above would be worth little if their worlds never got anywhere."""
    rng, seen, moved = random.Random(5), Counter[object](), set[tuple[Stage, Cause]]()

    def transition(stage: Stage, cause: Cause) -> Transition:
        moved.add((stage, cause))
        return TRANSITIONS[stage, cause]

    monkeypatch.setattr("edgebox.scheduling.ledger.transition", transition)
    never: set[object] = {Outcome.DROPPED, DropReason.SENDER, DropReason.PLAN}
    if not POLICIES[policy]().wants_samples:
        never |= {Retain, Release, Sample}
    seen[Unload] += 1  # seldom: crops keep most weights in use (test_residency is about it)
    reached: set[object] = {*Outcome, *DropReason, "batch", "partial", *SOMETIMES, *STALE}
    expected = reached - never
    seldom = {(Stage.READY, Cause.SHUTDOWN), (Stage.READY, Cause.TRIAL_EXPIRED)}
    # test_joins is about these.
    without_answer = Cause.OVERLOADED, Cause.REJECTED
    seldom |= {(s, cause) for s in (Stage.UNNEEDED, Stage.CANCELLED) for cause in without_answer}
    if policy == "clipper":
        seldom |= {(stage, Cause.EXPIRED) for stage in WAITING}
        seldom.add((Stage.PREPARING, Cause.TRIAL_EXPIRED))
    if policy == "coral":  # it runs little, and hardly ever on one that is then gone
        seen[RunAgain] += 1
        seldom |= {(Stage.RUNNING, cause) for cause in (Cause.RUNS_AGAIN, Cause.OVERLOADED)}
    to_reach = set(TRANSITIONS) - seldom - {(Stage.RECEIVED, Cause.REFUSED)}
    for number in range(80):
        if seen.keys() >= expected and moved >= to_reach:
            break
        story = calm_story(rng) if number % 5 == 0 else long_story(rng)
        world = played(story, policy, SELDOM)
        world.tell(ShutdownRequested())
        seen.update(+world.stale)
        for _, _, actions in world.journal:
            seen.update(a.outcome for a in actions if isinstance(a, Finish))
            seen.update("partial" for a in actions if isinstance(a, Finish) and a.missing)
            seen.update(a.reason for a in actions if isinstance(a, Drop))
            seen.update(type(a) for a in actions if isinstance(a, SOMETIMES))
            seen.update("batch" for a in actions if isinstance(a, Infer) and len(a.requests) > 1)
    assert set(seen) == expected
    assert to_reach <= moved <= to_reach | seldom
