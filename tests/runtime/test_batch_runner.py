"""What the core is told of batches that fail, and of those that a server refuses."""

from collections.abc import Callable
from concurrent.futures import Future
from unittest.mock import Mock

import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId, DropReason, RequestId
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor import ConnectionBrokenError, ExecutorGoneError
from edgebox.inference.executor_thread import BatchResult
from edgebox.runtime.batch_runner import BatchRunner
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.events import BatchCompleted, BatchFailed, ExecutorGone, RequestsUnanswered
from edgebox.vision.detections import Detections

Told = BatchCompleted | BatchFailed | ExecutorGone | RequestsUnanswered

FAR = ExecutorId("far/0")
BATCH = BatchId(1)


def at_once(call: Callable[[], None]) -> None:
    call()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelError("no"), [BatchFailed(FAR, BATCH)]),
        (ConnectionBrokenError("no"), [BatchFailed(FAR, BATCH, disconnected=True)]),
        (ExecutorGoneError("no"), [ExecutorGone(FAR), BatchFailed(FAR, BATCH)]),
    ],
)
def test_the_core_is_told_whose_fault_a_failure_is(error: ModelError, told: list[Told]) -> None:
    failed: Future[None] = Future()
    failed.set_exception(error)
    heard: list[Told] = []
    runner = BatchRunner(
        {FAR: Mock(submit=Mock(return_value=failed))}, at_once,
        later=Mock(), feed=heard.append, on_unanswered=Mock(), on_result=Mock(), on_error=Mock(),
    )  # fmt: skip
    runner.run(Infer(FAR, BATCH, VariantName("gate-32"), (RequestId(1),), 1), [])
    assert heard == told


class Resting:
    """A server that refused a batch, and rests."""

    def __init__(self, *reasons: DropReason, abandons: bool = False) -> None:
        found = [Detections.empty() for _ in reasons]
        refused = {row: Refused(reason, "too much to do") for row, reason in enumerate(reasons)}
        done: Future[BatchResult] = Future()
        done.set_result(BatchResult(found, 0, 5, refused=refused, rest_s=0.4))
        self.heard: list[Told] = []
        self.unanswered = Mock()
        self.rests: list[tuple[float, Callable[[], None]]] = []
        self.runner = BatchRunner(
            {FAR: Mock(submit=Mock(return_value=done))}, at_once,
            later=lambda delay_s, call: self.rests.append((delay_s, call)),
            feed=self._hear, on_unanswered=self.unanswered, on_result=Mock(),
            on_error=Mock(),
        )  # fmt: skip
        self.abandons = abandons
        requests = tuple(RequestId(number) for number in range(1, len(reasons) + 1))
        self.runner.run(Infer(FAR, BATCH, VariantName("gate-32"), requests, len(requests)), [])

    def _hear(self, event: Told) -> None:
        self.heard.append(event)
        if self.abandons:
            self.runner.abandon(FAR)


def test_a_refused_batch_ends_once_its_server_has_rested() -> None:
    resting = Resting(DropReason.OVERLOAD)
    refused = (RequestId(1),), DropReason.OVERLOAD, 400_000_000
    assert resting.heard == [RequestsUnanswered(FAR, BATCH, *refused)]
    assert resting.unanswered.call_args.args[0] == RequestId(1)
    assert resting.runner.executor_of(RequestId(1)) is None, "its input may be used elsewhere"
    ((delay_s, rested),) = resting.rests
    assert delay_s == 0.4
    rested()
    assert resting.heard[1:] == [BatchCompleted(FAR, BATCH, 5 + 400_000_000)]


def test_an_executor_that_is_lost_while_it_rests_is_told_as_late() -> None:
    resting = Resting(DropReason.OVERLOAD)
    resting.runner.abandon(FAR)
    resting.rests[0][1]()
    assert len(resting.heard) == 2


def test_an_executor_that_is_lost_because_it_refuses_rests_from_nothing() -> None:
    lost = Resting(DropReason.OVERLOAD, abandons=True)
    lost.rests[0][1]()
    assert len(lost.heard) == 2


def test_it_rests_as_well_if_the_only_picture_that_it_did_not_refuse_for_load_is_invalid() -> None:
    resting = Resting(DropReason.OVERLOAD, DropReason.INVALID)
    assert resting.heard == [
        RequestsUnanswered(FAR, BATCH, (RequestId(1),), DropReason.OVERLOAD, 400_000_000),
        RequestsUnanswered(FAR, BATCH, (RequestId(2),), DropReason.INVALID),
    ]
    resting.rests[0][1]()
    assert resting.heard[2:] == [BatchCompleted(FAR, BATCH, 5 + 400_000_000)]
