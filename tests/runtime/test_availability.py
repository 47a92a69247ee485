"""Why nothing can run now, in words, by what supervision knows."""

import json
from pathlib import Path

import pytest

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import DropReason
from edgebox.runtime.availability import executor_state, is_wedged, unserved_because
from edgebox.runtime.frames import DROP_MESSAGES
from edgebox.scheduling.supervised import ExecutorState, Supervised
from tests.scheduling.scene import MS

FIRST, SECOND = ExecutorId("cpu/0"), ExecutorId("cpu/1")
GATE, YARD = VariantName("gate-32"), VariantName("yard-32")
NOW_NS = 5_000 * MS


def executor(state: ExecutorState, *variants: VariantName) -> Supervised:
    retry_ns = NOW_NS + 4_000 * MS if state is ExecutorState.WAITING else None
    return Supervised(state, frozenset(variants), retry_ns=retry_ns)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ExecutorState.OPENING, "cpu/0 is opening"),
        (ExecutorState.WAITING, "cpu/0 is waiting, and is opened again in 4 s"),
        (ExecutorState.WEDGED, "cpu/0 is wedged, and only a restart of edgebox helps"),
    ],
)
def test_the_state_of_who_could_run_it_is_the_reason(state: ExecutorState, said: str) -> None:
    executors = {FIRST: executor(state, GATE, YARD), SECOND: executor(ExecutorState.UP, YARD)}
    assert unserved_because(executors, NOW_NS) == ""
    assert unserved_because(executors, NOW_NS, [YARD]) == ""
    assert unserved_because(executors, NOW_NS, [GATE, YARD]) == ""
    because = unserved_because(executors, NOW_NS, [GATE])
    assert because == f"no executor that runs this model is up: {said}"
    assert is_wedged(executors, [GATE]) is (state is ExecutorState.WEDGED)
    assert not is_wedged(executors, [YARD])


@pytest.mark.parametrize(
    ("after_ns", "said"),
    [(-MS, "opened again now"), (0, "opened again now"), (MS, "again in 1 s"), (1_001 * MS, "2 s")],
)
def test_an_executor_that_is_due_is_opened_now_and_a_wait_is_never_told_too_short(
    after_ns: int, said: str
) -> None:
    of = Supervised(ExecutorState.WAITING, retry_ns=NOW_NS + after_ns)
    assert executor_state(FIRST, of, NOW_NS).endswith(said)


def test_what_nobody_has_is_said_to_be_so_and_not_called_wedged() -> None:
    executors = {FIRST: executor(ExecutorState.UP, YARD)}
    assert unserved_because(executors, NOW_NS, [GATE]).endswith("is up: none has it")
    assert not is_wedged(executors, [GATE])


def test_the_drop_in_the_protocols_description_is_one_that_the_box_sends() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/protocol.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith('{"type": "drop"'))
    shown = json.loads(line.replace("{...}", "{}"))
    assert shown["message"] == DROP_MESSAGES[DropReason(shown["reason"])]
