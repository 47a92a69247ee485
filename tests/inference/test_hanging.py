"""What is run outside the scheduler's supervision, to warm and to measure, has a limit too."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import VariantName
from edgebox.inference import executor as module
from edgebox.inference import session_runs
from edgebox.inference.executor import THREADS, HungError, come_back
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.session_store import SessionStore
from edgebox.inference.zoo import load_zoo
from tests.conftest import PATIENCE_S
from tests.inference.unruly_model import SIDE_PX, VARIANT, write_family

RED = np.full((SIDE_PX, SIDE_PX, 3), (255, 0, 0), np.uint8)
NAME = VariantName(VARIANT)


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[OnnxExecutor]:
    (family,) = load_zoo([write_family(tmp_path / "unruly")]).families
    made = OnnxExecutor(0, [family], cpu_threads=1)
    yield made
    made.close()


def test_a_measured_batch_that_hangs_is_told_and_not_waited_for(
    executor: OnnxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RUN_LIMIT_S", 0.2)
    with pytest.raises(HungError, match="did not come back within 0 s: the device, its driver"):
        come_back(executor.submit(NAME, [RED], 1), executor, "a batch")
    assert HungError.exit_code == 75


def test_an_executor_that_hangs_is_closed_all_the_same(executor: OnnxExecutor) -> None:
    running = executor.submit(NAME, [RED], 1)
    while not running.running():
        pass  # until its thread has it, which is soon
    waiting = executor.submit(NAME, [RED], 1)
    executor.close()
    with pytest.raises(ModelError, match="the executor is closed"):
        waiting.result(0)
    with pytest.raises(ModelError, match="terminate flag"):
        running.result(10)


def test_one_that_was_abandoned_takes_no_more(executor: OnnxExecutor) -> None:
    executor.submit(NAME, [RED], 1)
    executor.abandon()
    with pytest.raises(ModelError, match="the executor is closed"):
        executor.submit(NAME, [RED], 1).result(0)


def test_abandoning_one_does_not_wait_for_its_memory(
    executor: OnnxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Event(), threading.Event()
    released_by: list[str] = []

    def clear(store: SessionStore) -> None:
        released_by.append(threading.current_thread().name)
        entered.set()
        go_on.wait()

    monkeypatch.setattr(SessionStore, "clear", clear)
    executor.submit(NAME, [RED], 1)
    executor.abandon()
    assert entered.wait(PATIENCE_S)
    assert threading.current_thread().name not in released_by
    assert all(name.startswith(THREADS) for name in released_by)
    go_on.set()


def test_one_is_abandoned_although_no_thread_can_be_started(
    executor: OnnxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    released = threading.Event()
    monkeypatch.setattr(SessionStore, "clear", lambda store: released.set())
    executor.submit(NAME, [RED], 1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        executor.abandon()
    assert released.wait(10), "its own thread releases what it holds when it ends"


def test_nothing_on_a_gpu_is_freed_while_a_batch_hangs_there(
    executor: OnnxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(SessionStore, "clear", lambda store: released.set())
    monkeypatch.setattr(session_runs, "run_bound", lambda *_: go_on.wait())
    executor.provider = "CUDAExecutionProvider"
    running = executor.submit(NAME, [RED], 1)
    while not running.running():
        pass  # until its thread has it, which is soon
    executor.abandon()
    releasing = [t for t in threading.enumerate() if t.name.startswith(f"{THREADS}release")]
    assert not releasing
    assert not released.is_set()
    go_on.set()
    assert released.wait(PATIENCE_S), "its own thread frees it when the batch has ended"
