"""Executors of a running box that measurements use: the core hears of all their work."""

from concurrent.futures import Future

import numpy as np
import pytest

from edgebox.app.borrowed_executors import LentExecutor, PacedExecutor, lent_report
from edgebox.domain.job_errors import CamerasConnectedError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.null_executor import NullExecutor
from tests.runtime.driving import Bench
from tests.scheduling.scene import CPU

VARIANT = VariantName("street-128")
PICTURE = np.zeros((1, 1, 3), np.uint8)


class _Waiting(NullExecutor):
    """An executor whose batches end when the test says so."""

    def __init__(self) -> None:
        super().__init__(ExecutorId("cpu/0"), batch_ns=1)
        self.batches: list[Future[BatchResult]] = []

    def submit(self, *_: object, **__: object) -> Future[BatchResult]:
        self.batches.append(Future())
        return self.batches[-1]


def test_the_core_hears_of_a_measured_batch_from_its_beginning_to_its_end() -> None:
    executor, reports = _Waiting(), list[bool]()
    PacedExecutor(executor, reports.append, lambda: False).submit(VARIANT, [PICTURE], 1)
    assert reports == [True]
    executor.batches[0].set_exception(ValueError("broken"))
    assert reports == [True, False]


def test_a_batch_of_one_that_was_taken_back_still_runs() -> None:
    executor, reports = _Waiting(), list[bool]()
    lent = LentExecutor(executor, reports.append)
    measured = lent.submit(VARIANT, [PICTURE], 1)
    lent.take_back()
    with pytest.raises(CamerasConnectedError):
        measured.result(0)
    assert reports == [True]
    executor.batches[0].set_exception(ValueError("broken"))
    assert reports == [True, False]


def test_an_executor_that_takes_no_batch_has_none() -> None:
    executor, reports = NullExecutor(ExecutorId("cpu/0"), batch_ns=1), list[bool]()
    executor.close()
    paced = PacedExecutor(executor, reports.append, lambda: False)
    assert paced.submit(VARIANT, [PICTURE], 1).exception(0) is not None
    assert reports == [True, False]


async def test_the_core_hears_of_it_before_anything_else_happens() -> None:
    bench = Bench(NullExecutor(CPU))
    lent_report(bench.driver, CPU)(True)
    assert bench.driver.scheduler.supervised[CPU].lent_ns is None
    bench.driver.feed(None)
    assert bench.driver.scheduler.supervised[CPU].lent_ns is not None
    await bench.driver.stop(1)
