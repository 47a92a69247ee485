"""Runs with fixed buffers, on a CPU: what is recorded, and what takes it back."""

import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import VariantName
from edgebox.inference import fixed_runs, onnx_executor, session_runs, session_store
from edgebox.inference.family import Family
from edgebox.inference.fixed_runs import BUFFER_BYTES_MAX, FixedRuns, agree
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.recording_gate import GATE, RecordingGate
from edgebox.inference.session_store import run_bound
from edgebox.inference.sessions import Session, cuda_options, open_session, run_options
from edgebox.inference.zoo import bundled_folders, load_zoo
from tests.conftest import PATIENCE_S

SHORT = lambda: 0  # noqa: E731 - a clock by which every run is short


@pytest.fixture(scope="module")
def street() -> Family:
    return load_zoo(bundled_folders()).family("street")


@pytest.fixture(scope="module")
def session(street: Family) -> Session:
    return open_session(street.model_files[0].path, "cpu", 1, records=True)


def pictures(family: Family, batch_size: int, seed: int, at: int = 0) -> NDArray[Any]:
    variant = family.variants[at]
    shape = family.input.shape(batch_size, variant.width_px, variant.height_px)
    return np.random.default_rng(seed).integers(0, 256, shape).astype(family.input.dtype)


class Wrong:
    """An InferenceSession whose recorded runs are not what they should be."""

    def __init__(self, real: Any, kind: str) -> None:
        self._real, self._kind = real, kind
        self._replays = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def run_with_iobinding(self, binding: Any, options: Any) -> None:
        if options.get_run_config_entry("gpu_graph_id") == "-1":
            self._real.run_with_iobinding(binding, options)
            return
        if self._kind == "raises":
            raise RuntimeError("operation not permitted when stream is capturing")
        if self._kind == "raises later" and self._replays:
            raise RuntimeError("an illegal memory access was encountered")
        if self._kind != "stale" or not self._replays:
            self._real.run_with_iobinding(binding, options)
        self._replays += 1


def wrong(session: Session, kind: str) -> Session:
    return Session(Wrong(session.session, kind), session.input_name, session.provider, True)


def test_the_second_run_of_a_shape_is_recorded_and_answers_stay_the_same(
    street: Family, session: Session
) -> None:
    runs = FixedRuns(session, 0, RecordingGate(), clock_ns=SHORT)
    counts, kept = [], []
    for seed in range(4):
        tensor = pictures(street, 2, seed)
        kept.append((runs.run(tensor), run_bound(session, tensor)))
        counts.append(runs.recorded)
    assert counts == [0, 1, 1, 1]
    assert not runs.failed
    for found, expected in kept:  # outputs of an earlier run are not those of a later one
        assert agree(expected, found)


def test_a_new_shape_drops_what_was_recorded(street: Family, session: Session) -> None:
    runs = FixedRuns(session, 0, RecordingGate(), clock_ns=SHORT)
    for _ in range(2):
        runs.run(pictures(street, 1, 0))
    assert runs.recorded == 1
    runs.run(pictures(street, 2, 0))
    assert runs.recorded == 0
    for size in (1, 2):
        tensor = pictures(street, size, 7)
        assert agree(run_bound(session, tensor), runs.run(tensor))
    assert runs.recorded == 2


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("raises", "a run cannot be recorded: operation not permitted when stream is capturing"),
        ("raises later", "a recorded run fails: an illegal memory access was encountered"),
        ("stale", "a recorded run gives other answers"),
    ],
)
def test_a_recording_that_fails_changes_no_answer(
    street: Family, session: Session, kind: str, why: str
) -> None:
    runs = FixedRuns(wrong(session, kind), 0, RecordingGate(), clock_ns=SHORT)
    for seed in range(4):
        tensor = pictures(street, 1, seed)
        assert agree(run_bound(session, tensor), runs.run(tensor))
        assert runs.failed == (why if seed else "")
    assert runs.recorded == 0


def test_what_a_replay_could_not_be_told_by_is_not_recorded(
    street: Family, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = pictures(street, 1, 0)
    fixed = run_bound(session, tensor)
    monkeypatch.setattr("edgebox.inference.fixed_runs.run_bound", lambda *_: fixed)
    runs = FixedRuns(session, 0, RecordingGate(), clock_ns=SHORT)
    for _ in range(3):
        runs.run(tensor)
    assert (runs.recorded, runs.failed) == (0, "")


def test_outputs_whose_size_depends_on_the_picture_are_not_recorded(
    street: Family, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter((3, 5, 4, 3))
    monkeypatch.setattr(
        "edgebox.inference.fixed_runs.run_bound", lambda *_: [np.ones((next(sizes), 6))]
    )
    runs = FixedRuns(session, 0, RecordingGate(), clock_ns=SHORT)
    tensor = pictures(street, 1, 0)
    assert [len(runs.run(tensor)[0]) for _ in range(3)] == [3, 4, 3]
    assert (runs.recorded, runs.failed) == (0, "")


def test_a_run_that_would_keep_others_waiting_is_not_recorded(
    street: Family, session: Session
) -> None:
    ticks = iter(range(0, 10**12, 150_000_000))
    runs = FixedRuns(session, 0, RecordingGate(), clock_ns=lambda: next(ticks))
    for _ in range(3):
        runs.run(pictures(street, 1, 0))
    assert (runs.recorded, runs.failed) == (0, "")


def test_buffers_on_the_device_are_bounded(
    street: Family, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = pictures(street, 1, 0)
    needed = tensor.nbytes + sum(each.nbytes for each in run_bound(session, tensor))
    assert needed < BUFFER_BYTES_MAX
    monkeypatch.setattr("edgebox.inference.fixed_runs.BUFFER_BYTES_MAX", 2 * needed)
    runs = FixedRuns(session, 0, RecordingGate(), clock_ns=SHORT)
    for _ in range(2):
        for size in (1, 2):
            runs.run(pictures(street, size, 0))
    assert runs.recorded == 1


def test_nothing_is_recorded_while_others_work(street: Family, session: Session) -> None:
    gate = RecordingGate(patience_s=0.0)
    runs = FixedRuns(session, 0, gate, clock_ns=SHORT)
    with gate.working():
        for _ in range(2):
            runs.run(pictures(street, 1, 0))
    assert runs.recorded == 0


def test_work_waits_for_a_recording_and_not_for_one_that_hangs() -> None:
    gate, began = RecordingGate(PATIENCE_S), threading.Event()
    done: list[str] = []

    def work() -> None:
        began.set()
        with gate.working():
            done.append("work")

    thread = threading.Thread(target=work)
    with gate.recording() as alone:
        assert alone
        thread.start()
        began.wait(PATIENCE_S)
        done.append("recorded")
    thread.join(PATIENCE_S)
    assert done == ["recorded", "work"]

    hanging = RecordingGate(patience_s=0.0)
    with hanging.recording() as alone, hanging.recording() as second:
        assert (alone, second) == (True, False)
        with hanging.working():
            done.append("went on")
    assert done[-1] == "went on"
    with hanging.recording() as alone:
        assert alone


class Buffers:
    """What recordings hold: notes when it is freed whether nothing else may be recorded then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gate: RecordingGate) -> None:
        self.apart: list[bool] = []
        freed = self.apart.append

        class Noted(fixed_runs._FixedRun):
            def __del__(self) -> None:
                freed(gate._working > 0 or gate._recording)

        monkeypatch.setattr(fixed_runs, "_FixedRun", Noted)


@pytest.mark.parametrize("kind", ["new shape", "raises", "raises later", "stale"])
def test_buffers_are_freed_while_nothing_is_recorded(
    street: Family, session: Session, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = RecordingGate()
    buffers = Buffers(monkeypatch, gate)
    runs = FixedRuns(wrong(session, kind), 0, gate, clock_ns=SHORT)
    for size in (1, 1, 2):
        runs.run(pictures(street, size, 0))
    assert buffers.apart == [True]


def test_an_executor_frees_its_buffers_while_nothing_is_recorded(
    street: Family, recorder: OnnxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffers = Buffers(monkeypatch, GATE)
    for module in (onnx_executor, session_runs):  # as on a GPU
        monkeypatch.setattr(module, "working_on", lambda provider: GATE.working())
    (file,) = street.model_files
    name: VariantName = street.variants[0].name
    recorder.warm([name], [1])
    real = recorder._store.session(file)
    recorder._store._sessions[file.path] = {recorder.cpu_threads: wrong(real, "stale")}
    gone: list[bool] = []
    weakref.finalize(recorder._store.session(file).session, lambda: gone.append(GATE._working > 0))
    recorder.warm([name], [1])  # its session is opened again
    assert (gone, buffers.apart) == ([True], [True, True])
    recorder.warm([name], [1])
    recorder.close()
    assert buffers.apart == [True, True]
    assert not recorder._runs._fixed


@pytest.fixture
def recorder(street: Family, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnnxExecutor]:
    monkeypatch.setattr("edgebox.inference.fixed_runs.RUN_SHARE", 0)  # however slow this machine
    opened = OnnxExecutor(0, [street], cpu_threads=1, cuda_graphs=True, score_floor=0.0)
    yield opened
    opened.close()


def test_an_executor_that_records_answers_as_one_that_does_not(
    street: Family, recorder: OnnxExecutor
) -> None:
    variant = street.variants[0]
    recorder.warm([variant.name], [1, 2])
    plain = OnnxExecutor(0, [street], cpu_threads=1, score_floor=0.0)
    try:
        for seed in range(3):
            canvas = np.random.default_rng(seed).integers(
                0, 256, (variant.height_px, variant.width_px, 3), np.uint8
            )
            (found,), (expected,) = (
                each.submit(variant.name, [canvas], 2).result(PATIENCE_S).detections
                for each in (recorder, plain)
            )
            assert len(found) > 0
            np.testing.assert_array_equal(found.boxes, expected.boxes)
            np.testing.assert_array_equal(found.scores, expected.scores)
    finally:
        plain.close()
    (fixed,) = recorder._runs._fixed.values()
    assert fixed.recorded == 2
    assert recorder.note == ""
    assert recorder.device == f"{plain.device}, CUDA graphs"


def test_an_executor_opens_a_file_again_whose_recording_failed(
    street: Family, recorder: OnnxExecutor
) -> None:
    (file,) = street.model_files
    real = recorder._store.session(file)
    recorder._store._sessions[file.path] = {recorder.cpu_threads: wrong(real, "stale")}
    name: VariantName = street.variants[0].name
    recorder.warm([name], [1])
    assert recorder.note == (
        f"{file.path.name} runs without CUDA graphs: a recorded run gives other answers"
    )
    assert not recorder._store.session(file).records
    recorder.warm([name], [1])
    assert recorder.note.count("CUDA graphs") == 1
    recorder.drop_family(street)
    assert recorder.note == "", "what is gone is told of no more"


def test_a_model_that_cannot_be_recorded_is_opened_without(
    street: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *args: Any, records: bool = False, **options: Any) -> Session:
        if records:
            raise ModelError(f"{path}: the model has control flow nodes")
        return open_session(path, *args, **options)

    monkeypatch.setattr(session_store, "open_session", refuse)
    executor = OnnxExecutor(0, [street], cpu_threads=1, cuda_graphs=True)
    executor.close()
    assert "runs without CUDA graphs" in executor.note
    assert "control flow nodes" in executor.note


def test_nothing_is_recorded_where_memory_is_limited(street: Family) -> None:
    executor = OnnxExecutor(0, [street], cpu_threads=1, cuda_graphs=True, memory_limit_bytes=1)
    executor.close()
    assert executor.note == "no CUDA graphs: their memory is not within the limit"
    assert "CUDA graphs" not in executor.device


def test_runs_are_recorded_by_number_and_only_where_asked() -> None:
    assert run_options().get_run_config_entry("gpu_graph_id") == "-1"
    assert run_options(3).get_run_config_entry("gpu_graph_id") == "3"
    assert cuda_options(0, records=True)["enable_cuda_graph"] == "1"
    assert "enable_cuda_graph" not in cuda_options(0)
