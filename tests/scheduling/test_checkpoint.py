"""A state that was written down goes on as the original would have; nothing else is read."""

import random
from array import array
from collections import Counter, defaultdict, deque
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.requests import DropReason
from edgebox.scheduling.applications import APPS_MAX
from edgebox.scheduling.checkpoint import Nodes, StateError, read_state, write_state
from edgebox.scheduling.events import (
    CameraConnected,
    ExecutorStarted,
    RequestSampled,
    VariantsAvailable,
)
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler import Scheduler
from edgebox.simulation.faults.judge import World
from edgebox.simulation.faults.small_box import EXECUTORS, PIPELINES, fresh, profiles
from tests.scheduling.random_events import MAKERS, SELDOM, Drawn, policies, steps
from tests.scheduling.scene import FAMILY, camera


def through_text(scheduler: Scheduler) -> Scheduler:
    return read_state(orjson.loads(orjson.dumps(write_state(scheduler))))


@settings(max_examples=150, deadline=None)
@given(steps, policies, st.floats(0, 1))
def test_a_restored_scheduler_goes_on_as_the_original(
    drawn: Drawn, policy: str, share: float
) -> None:
    world = World(policy, check_every=SELDOM)
    world.tell(VariantsAvailable(FAMILY))
    for executor in EXECUTORS:
        world.tell(ExecutorStarted(executor, profiles(executor, 31)))
    world.tell(CameraConnected(replace(camera("gate-1"), pipeline=PIPELINES[2])))
    restored, length = through_text(world.scheduler), len(world.journal)
    for number, (kind, a, b, later_ns) in enumerate(drawn):
        world.pass_time(world.now_ns + later_ns)
        world.tell(MAKERS[kind](world, a, b))
        if number == round(share * len(drawn)):
            restored, length = through_text(world.scheduler), len(world.journal)
            check_invariants(restored)
    for number, (now_ns, event, actions) in enumerate(world.journal[length:]):
        assert restored.handle(event, now_ns) == actions
        if number % SELDOM == 0:
            check_invariants(restored)
    check_invariants(restored)
    assert restored.next_wakeup_ns() == world.scheduler.next_wakeup_ns()


def kept(value: Any) -> Any:
    """Return what becomes of something that a policy keeps."""
    scheduler = fresh("edf")
    scheduler.policy.kept = value  # type: ignore[attr-defined]
    return through_text(scheduler).policy.kept  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        None, True, 2**63, -1.5, -0.0, float("inf"), "Tür 1", [1, [2, []]], (1, (2,)),
        {"a": 1, 2: ("b",), (3, "c"): None}, {1, "two"}, frozenset({3}),
        deque([1, 2], maxlen=5), deque(["a"]), Counter(a=2), DropReason.QUEUE,
        defaultdict(list, {"a": [1]}), np.float64(0.1), np.int32(-7),
        [0.5, -0.0, 1e308, 1e308], [0.5, float("-inf")], [0.5, 1], array("d", [0.1, -0.0]),
        array("d"), array("q", [-(2**62), 1]), array("H", [65535]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_a_policy_may_keep(value: Any) -> None:
    back = kept(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_arrays_come_back_writable_and_exact() -> None:
    matrix = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    back = kept(matrix)
    assert back.dtype == matrix.dtype
    assert back.tobytes() == matrix.tobytes()
    back[0] = 0
    assert kept(np.zeros((0, 2))).shape == (0, 2)
    assert kept(matrix.T).tolist() == matrix.T.tolist()


def learned(samples: int) -> Scheduler:
    """Return a core that knows so many applications and samples of each."""
    scheduler = fresh("adaptive")
    scheduler.handle(VariantsAvailable(FAMILY), 0)
    scheduler.handle(ExecutorStarted(EXECUTORS[0], profiles(EXECUTORS[0], 31)), 0)
    rng, variant = random.Random(1), FAMILY[0].name
    for at in range(1, samples + 1):
        for app in range(APPS_MAX):
            took_ns = round(rng.lognormvariate(15, 0.1))
            scheduler.handle(RequestSampled(EXECUTORS[0], variant, f"app {app}", took_ns), at)
    return scheduler


def test_a_state_is_written_by_what_there_is_and_not_by_each_sample() -> None:
    """So a checkpoint stops the event loop for milliseconds however many applications there are."""

    def parts(scheduler: Scheduler) -> int:
        return sum(map(len, write_state(scheduler)))

    few, many = learned(30), learned(60)
    for scheduler in (few, many):
        distributions = scheduler.times.learning.distributions(FAMILY[0].name)
        assert len(distributions) >= APPS_MAX
        assert sum(len(of.values) == of.samples for of in distributions) == APPS_MAX
    assert parts(many) == parts(few)


def test_order_bounds_and_factories_survive() -> None:
    assert list(kept({"b": 1, "a": 2})) == ["b", "a"]
    assert kept(deque([1], maxlen=3)).maxlen == 3
    assert kept(defaultdict(list))["new"] == []


def test_what_is_shared_stays_shared_and_circles_close() -> None:
    one: list[Any] = [1]
    one.append(one)
    back = kept({"a": one, "b": one})
    assert back["a"] is back["b"]
    assert back["a"][1] is back["a"]


def test_a_method_that_a_policy_handed_out_is_that_of_the_new_one() -> None:
    scheduler = fresh("edf")
    scheduler.policy.kept = scheduler.policy.expired  # type: ignore[attr-defined]
    back = through_text(scheduler).policy
    assert back.kept.__self__ is back  # type: ignore[attr-defined]
    assert back.kept.__func__ is type(back).expired


@pytest.mark.parametrize(
    "value",
    [
        [].append,
        World("edf").tell,
        lambda: 1,
        object(),
        iter([]),
        random.Random(3),
        np.array([object()]),
        array("b", [1]),
        defaultdict(lambda: 3),
        World,
    ],
)
def test_what_is_no_data_is_refused(value: Any) -> None:
    with pytest.raises(StateError, match="cannot be serialised"):
        kept(value)


def spoilt(**changed: Any) -> Nodes:
    """Return a written state in which the first SchedulerParameters are changed."""
    nodes = write_state(fresh("edf"))
    for node in nodes:
        if node[:2] == ["object", "scheduling.scheduler_parameters.SchedulerParameters"]:
            node[2].update(changed)
    return nodes


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([], "is no state"),
        ({"a": 1}, "is no state"),
        ([["dict"]], "is not the state of a scheduler"),
        ([["list", [7]]], "is no state"),
        ([["tuple", [0]]], "RecursionError"),
        ([["list", {"a": 1}]], "neither a value nor a reference"),
        ([["pickle", "x"]], "unknown kind, 'pickle'"),
        ([["object", "os.system", {}]], "names os.system"),
        ([["object", "scheduling.checkpoint.importlib", {}]], "no part of a scheduler"),
        ([["object", "scheduling..checkpoint.Nodes", {}]], "no part of a scheduler"),
        ([["object", "scheduling.orbit.Moon", {}]], "does not know"),
        ([["object", "scheduling.edf.Moon", {}]], "does not know"),
        ([["object", "scheduling.edf.EarliestDeadlineFirst", {}]], "not the state of a scheduler"),
        ([["object", "domain.requests.LinkState", {"rtt_ns": 1}]], "other fields"),
        ([["array", "|O", "AAAA", 1]], "is no state"),
        ([["numbers", "b", "|i1", "AAAA"]], "numbers of an unknown kind"),
        ([["enum", "domain.requests.Outcome", "NEVER"]], "is no state"),
        ([["method", 3, "bit_length"]], "cannot be serialised"),
        ([["method", [1], "moon"], ["object", "scheduling.edf.EarliestDeadlineFirst", {}]],
         "cannot be serialised"),
        (spoilt(moon=1), "other fields than this version"),
    ],
)  # fmt: skip
def test_what_is_no_state_is_refused(nodes: Any, says: str) -> None:
    with pytest.raises(StateError, match=says):
        read_state(nodes)
