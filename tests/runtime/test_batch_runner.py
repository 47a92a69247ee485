"""What the core is told of batches that fail."""

from collections.abc import Callable
from concurrent.futures import Future
from unittest.mock import Mock

import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId, RequestId
from edgebox.inference.executor import ConnectionBrokenError, ExecutorGoneError
from edgebox.runtime.batch_runner import BatchRunner
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    ExecutorGone,
    Infer,
    RequestsRefused,
)

Told = BatchCompleted | BatchFailed | ExecutorGone | RequestsRefused

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
        later=Mock(), feed=heard.append, on_result=Mock(), on_error=Mock(),
    )  # fmt: skip
    runner.run(Infer(FAR, BATCH, VariantName("gate-32"), (RequestId(1),), 1), [])
    assert heard == told
