"""The timeline: what it shows is what the core ordered, whatever happens."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import BatchId, DropReason, Outcome, RequestId
from edgebox.runtime.timeline_recorder import KEPT_MAX, SLOT_NS, WINDOW_NS, Recent, Timeline
from edgebox.scheduling.actions import (
    Action,
    Advise,
    Collect,
    Drop,
    Finish,
    Infer,
    Prepare,
    Retain,
    RunAgain,
    Sample,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CameraDisconnected,
    Event,
    ExecutorStarted,
    ExecutorStopped,
    RequestArrived,
    RequestPrepared,
    RequestSampled,
    SampleCompleted,
    VariantsAvailable,
)
from edgebox.simulation.faults.judge import World
from tests.runtime.recorded import Life, eventful
from tests.scheduling.random_events import SELDOM, Drawn, played, policies, steps
from tests.scheduling.scene import (
    CPU,
    FAMILY,
    MEDIAN_MS,
    MS,
    Bench,
    camera,
    name,
    profile,
    request,
)

Journal = list[tuple[int, Event | None, list[Action]]]


def watched(journal: Journal) -> Timeline:
    """Return a timeline that has seen these calls."""
    timeline = Timeline()
    for now_ns, event, actions in journal:
        timeline.see(now_ns, event, actions)
    assert timeline.failure == ""
    return timeline


def seen(life: Life) -> Timeline:
    return watched([(e.now_ns, e.event, list(e.actions)) for e in life.entries])


@settings(max_examples=150, deadline=None)
@given(steps, policies)
def test_whatever_happens_the_timeline_shows_it(drawn: Drawn, policy: str) -> None:
    """Playing what was drawn takes nearly all of the time: once does for all that must hold."""
    world = played(drawn, policy, SELDOM)
    batches_shown_are_batches_run(world)
    what_runs_is_what_the_core_says_runs(world)
    every_ending_is_shown_once_and_counts_agree(world)
    queues_are_the_longest_of_each_slot(world)


def batches_shown_are_batches_run(world: World) -> None:
    timeline = watched(world.journal)
    _, over = timeline.batches.after(0)
    shown = {b.id: b for b in (*over, *timeline.running.values())}
    assert len(shown) == len(over) + len(timeline.running)
    last_ns = world.now_ns - WINDOW_NS
    ordered = {
        action.batch: (now_ns, action)
        for now_ns, _, actions in world.journal
        for action in actions
        if isinstance(action, Infer | Sample)
    }
    assert timeline.batches.total + len(timeline.running) == len(ordered)
    for batch, (now_ns, order) in ordered.items():
        if batch not in shown:
            assert now_ns <= last_ns or timeline.batches.total > KEPT_MAX
            continue
        drawn_batch = shown[batch]
        of = order.requests if isinstance(order, Infer) else (order.request,)
        assert tuple(r.id for r in drawn_batch.requests) == of
        assert (drawn_batch.executor, drawn_batch.variant) == (order.executor, order.variant)
        assert drawn_batch.batch_size == order.batch_size
        assert drawn_batch.ordered_ns == now_ns
        assert drawn_batch.sample is isinstance(order, Sample)


def what_runs_is_what_the_core_says_runs(world: World) -> None:
    timeline = watched(world.journal)
    running = {e: b.id for e, b in timeline.running.items() if not b.sample}
    of_core = world.scheduler.running.items()
    assert running == {e: infer.batch for e, infer in of_core if infer.requests}, "others rest"
    sampling = [b.id for b in timeline.running.values() if b.sample]
    assert sampling == ([] if world.sampling is None else [world.sampling.batch])


def every_ending_is_shown_once_and_counts_agree(world: World) -> None:
    ended: Counter[tuple[RequestId, str]] = Counter()
    timeline = Timeline()
    shown: Counter[tuple[RequestId, str]] = Counter()
    again: Counter[tuple[RequestId, str]] = Counter()
    numbers = [0, 0]
    deadlines_ns: dict[RequestId, int] = {}
    collected: set[RequestId] = set()
    for now_ns, event, actions in world.journal:
        timeline.see(now_ns, event, actions)
        if isinstance(event, RequestArrived):
            deadlines_ns.setdefault(event.request.id, event.request.deadline_ns)
        if isinstance(event, BatchCompleted):
            deadlines_ns.update((crop.id, crop.deadline_ns) for crop in event.spawned)
        for action in actions:
            # The batch of a joined frame is over before its frame is: that is what is shown.
            if isinstance(action, Collect):
                late = now_ns > deadlines_ns[action.request]
                ended[action.request, "late" if late else "on_time"] += 1
                collected.add(action.request)
            elif isinstance(action, RunAgain):
                again[action.request, "overload" if action.refused else "failed"] += 1
            elif isinstance(action, Finish | Drop) and action.request not in collected:
                ending = action.outcome if isinstance(action, Finish) else action.reason
                ended[action.request, ending.value] += 1
        numbers[0], batches = timeline.batches.after(numbers[0])
        numbers[1], drops = timeline.drops.after(numbers[1])
        shown.update(item for batch in batches for item in batch.endings.items())
        shown.update((drop.request.id, drop.reason.value) for drop in drops)
        for batch in batches:
            assert batch.closed_ns == now_ns >= batch.ordered_ns
            for of in batch.requests:
                if (how := batch.endings.get(of.id)) in ("on_time", "late"):
                    assert (how == "late") == (batch.closed_ns > of.deadline_ns)
    for batch in timeline.running.values():
        shown.update(batch.endings.items())
    assert shown == ended + again
    assert max(ended.values(), default=1) == 1


def queues_are_the_longest_of_each_slot(world: World) -> None:
    timeline = watched(world.journal)
    end_ns = world.now_ns + 3 * SLOT_NS
    timeline.pass_time(end_ns)
    lengths = lengths_over_time(world.journal)
    # By the variant that each was prepared for: where it runs instead is said as it starts.
    assert timeline.waiting == (lengths[-1][1] if lengths else Counter())
    assert sum(timeline.waiting.values()) == len(waiting_of(world))
    _, slots = timeline.queues.after(0)
    for slot, until_ns in zip(slots, [*(s.at_ns for s in slots[1:]), end_ns], strict=True):
        before = [counts for at_ns, counts in lengths if at_ns < slot.at_ns][-1:]
        during = [counts for at_ns, counts in lengths if slot.at_ns <= at_ns < until_ns]
        longest: Counter[VariantName] = Counter()
        for counts in (*before, *during):
            longest |= counts
        assert slot.longest == longest


def waiting_of(world: World) -> set[RequestId]:
    running = {r for infer in world.scheduler.running.values() for r in infer.requests}
    return set(world.alive) - running


def lengths_over_time(journal: Journal) -> list[tuple[int, Counter[VariantName]]]:
    """Count again, from all orders up to each, who waits for what."""
    variants: dict[RequestId, VariantName] = {}
    found = []
    for now_ns, _, actions in journal:
        for action in actions:
            match action:
                case Prepare(request, variant) | RunAgain(request, variant):
                    variants[request] = variant
                case Infer(_, _, _, requests, _):
                    for taken in requests:
                        del variants[taken]
                case Drop(request, _):
                    variants.pop(request, None)
            found.append((now_ns, Counter(variants.values())))
    return found


def test_a_batch_tells_who_was_in_it_and_how_it_ended() -> None:
    timeline = seen(eventful())
    _, (first, second, failed, two_of_one, departed) = timeline.batches.after(0)
    assert first.ordered_ns == 11 * MS
    assert first.closed_ns == 20 * MS
    assert first.endings == {1: "on_time"}
    assert second.endings == {2: "late"}
    assert failed.endings == {5: "failed"}
    assert two_of_one.endings == {6: "on_time"}
    assert departed.endings == {7: "departed"}
    _, drops = timeline.drops.after(0)
    assert [(d.request.id, d.reason) for d in drops] == [
        (3, DropReason.INFEASIBLE),
        (4, DropReason.INVALID),
        (8, DropReason.DEPARTED),
    ]
    assert [d.variant is None for d in drops] == [True, False, True]
    assert timeline.running == {}
    assert timeline.variants == tuple(variant.name for variant in FAMILY)
    assert timeline.executors == (CPU,)


class Watched(Bench):
    """A core, and the timeline that watches it."""

    def __init__(self) -> None:
        super().__init__([])
        self.timeline = Timeline()
        self(VariantsAvailable(FAMILY), 0)
        self(ExecutorStarted(CPU, (profile(256),)), 0)

    def __call__(self, event: Event | None, at_ms: float) -> list[Action]:
        actions = super().__call__(event, at_ms)
        if hasattr(self, "timeline"):
            ordered = [order for order in actions if isinstance(order, Infer | Sample)]
            expected_ns = [self.scheduler.expected_ns(order) for order in ordered]
            self.timeline.see(round(at_ms * MS), event, actions, expected_ns)
        return actions

    def expected_ms(self, number: int, app: str = "default") -> float:
        """Return what one request is expected to take that runs at once."""
        at_ms = 10_000.0 * number
        sent = request(number, at_ms + 5_000, app=app, arrival_ms=at_ms, variant=name(256))
        self(RequestArrived(sent), at_ms)
        self(RequestPrepared(sent.id, 0), at_ms)
        expected_ns = self.timeline.running[CPU].expected_ns
        assert expected_ns is not None
        batch = self.timeline.running[CPU].id
        self(BatchCompleted(CPU, batch, round(expected_ns)), at_ms + expected_ns / MS)
        assert self.timeline.failure == ""
        return expected_ns / MS


def test_expected_times_are_those_the_core_reckons_with() -> None:
    core = Watched()
    assert core.expected_ms(1) == MEDIAN_MS[256]
    for _ in range(200):
        core(RequestSampled(CPU, name(256), "long", 4 * MEDIAN_MS[256] * MS), 20_000)
    assert core.expected_ms(3, "long") == pytest.approx(4 * MEDIAN_MS[256], rel=0.05)
    assert core.expected_ms(4) == pytest.approx(MEDIAN_MS[256], rel=0.05)
    times = core.scheduler.times
    before_ns = times.expectations.batch_ns(CPU, name(256), ["long"], 1, 0.5)
    times.latencies.set_slowdown(CPU, 1.5)
    after_ns = times.expectations.batch_ns(CPU, name(256), ["long"], 1, 0.5)
    assert before_ns is not None
    assert after_ns == pytest.approx(1.5 * before_ns)


def test_nothing_is_expected_of_an_executor_that_is_gone() -> None:
    core = Watched()
    expectations = core.scheduler.times.expectations
    assert expectations.batch_ns(CPU, name(256), ["default"], 1, 0.5) is not None
    assert expectations.batch_ns(CPU, name(608), ["default"], 1, 0.5) is None
    core(ExecutorStopped(CPU), 1)
    assert expectations.batch_ns(CPU, name(256), ["default"], 1, 0.5) is None


def test_when_an_executor_really_ran_is_learnt_of_the_batch_it_runs_only() -> None:
    life = Life()
    life.open()
    life.frame(1, 10, 300)
    timeline = seen(life)
    (batch,) = timeline.running.values()
    timeline.ran(CPU, batch.id, 12 * MS, 20 * MS)
    timeline.ran(CPU, BatchId(batch.id + 1), 1, 2)
    assert (batch.started_ns, batch.ended_ns) == (12 * MS, 20 * MS)


def test_a_change_of_plan_has_what_was_before_and_why() -> None:
    life = Life()
    life.open()
    timeline = seen(life)
    (first,) = timeline.changes.after(0)[1]
    assert first.before is None
    assert first.camera == "gate-1"
    after = first.after
    again = Advise(first.camera, after)
    timeline.see(life.now_ns, None, [again])
    assert timeline.changes.total == 1
    timeline.see(life.now_ns, CameraDisconnected(first.camera), [])
    timeline.see(life.now_ns, CameraConnected(camera()), [again])
    assert timeline.changes.after(1)[1][0].before is None


@given(st.lists(st.integers(0, WINDOW_NS), max_size=60), st.data())
def test_recent_things_are_read_on_from_any_number(gaps_ns: list[int], data: st.DataObject) -> None:
    recent: Recent[int] = Recent()
    instants: list[int] = []
    now_ns = 0
    for number, gap_ns in enumerate(gaps_ns):
        now_ns += gap_ns
        instants.append(now_ns)
        recent.add(now_ns, number)
    kept = [n for n, at_ns in enumerate(instants) if at_ns >= now_ns - WINDOW_NS]
    after = data.draw(st.integers(0, len(gaps_ns)))
    limit = data.draw(st.integers(1, 60))
    number, found = recent.after(after, limit)
    assert found == [n for n in kept if n >= after][:limit]
    assert number == (found[-1] + 1 if found else max(after, len(gaps_ns) - len(kept)))
    assert recent.total == len(gaps_ns)


def test_it_is_bounded() -> None:
    recent: Recent[int] = Recent()
    for number in range(KEPT_MAX + 10):
        recent.add(number, number)
    assert recent.after(0)[1] == list(range(10, KEPT_MAX + 10))


def test_a_defect_of_its_own_is_told_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    timeline = Timeline()
    timeline.see(0, None, [Prepare(RequestId(1), name(256))])
    timeline.see(1, None, [Infer(CPU, BatchId(1), name(256), (RequestId(1),), 1)])
    assert timeline.failure == "KeyError: 1"
    timeline.see(2, VariantsAvailable(FAMILY), [])
    assert timeline.variants == ()
    assert "the timeline has stopped" in caplog.text


@pytest.mark.parametrize("end", [SampleCompleted(CPU, BatchId(2), MS), ExecutorStopped(CPU)])
def test_a_sample_is_shown_as_one(end: Event) -> None:
    timeline = Timeline()
    first = request(1, 300)
    one, again = (BatchId(1), (first.id,)), BatchId(2)
    timeline.see(0, RequestArrived(first), [Prepare(first.id, name(256))])
    timeline.see(1, None, [Infer(CPU, one[0], name(256), one[1], 1)])
    ended: list[Action] = [Retain(first.id), Finish(first.id, BatchId(1), Outcome.ON_TIME)]
    timeline.see(2, None, [*ended, Sample(CPU, again, name(256), first.id, 1)])
    sample = timeline.running[CPU]
    assert (sample.sample, sample.requests, sample.expected_ns) == (True, (first,), None)
    timeline.see(3, end, [])
    assert timeline.running == {}
    assert timeline.batches.after(1)[1] == [sample]
    assert (sample.closed_ns, sample.endings) == (3, {})
