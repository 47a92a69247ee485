"""What comes of a batch that a server refuses: load and faults are told apart."""

import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor import ExecutorGoneError, HungError
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.remote.http_connection import CONNECT_LIMIT_S, ServerAddress
from edgebox.inference.remote.open_inference_executor import (
    REST_S,
    OpenInferenceExecutor,
    OpenInferenceSpec,
)
from edgebox.inference.remote.remote_executor import FIRST_BATCH_S
from edgebox.inference.remote.server_answers import Found, OverloadedError
from edgebox.inference.zoo import load_family
from edgebox.scheduling.supervised import OPEN_LIMIT_NS
from edgebox.vision.detections import Detections
from tests.end_to_end.protocol_server import ProtocolServer
from tests.end_to_end.test_residency import family_of_files

GATE = VariantName("gate-192")
CANVAS = np.zeros((192, 192, 3), np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return family_of_files(tmp_path / "gate", "gate", (192,))


@pytest.fixture
def server(folder: Path) -> ProtocolServer:
    return ProtocolServer({"gate_gate-192": folder / "gate-192.onnx"})


@pytest.fixture
def executor(folder: Path, server: ProtocolServer) -> Iterator[ModelExecutor]:
    family = load_family(folder)
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        opened = open_executor(spec, [family])
        yield opened
        opened.close()


@pytest.mark.parametrize(
    ("status", "code"), [(429, ""), (503, "too_busy"), (503, "queue"), (503, "infeasible")]
)
def test_a_server_with_too_much_to_do_is_slow_and_has_not_failed(
    executor: ModelExecutor, server: ProtocolServer, status: int, code: str
) -> None:
    server.refusal, server.refusal_code = status, code
    result = executor.submit(GATE, [CANVAS, CANVAS], 2).result()
    assert [len(each) for each in result.detections] == [0, 0]
    assert {row: each.reason for row, each in result.refused.items()} == {
        0: DropReason.OVERLOAD,
        1: DropReason.OVERLOAD,
    }
    assert "too much to do" in result.refused[0].text
    assert result.rest_s >= REST_S, "it would seem fast, and be given more"
    with pytest.raises(ModelError, match="too much to do"):
        executor.warm_each([(GATE, 1)])
    server.refusal = 0
    result = executor.submit(GATE, [CANVAS], 1).result()
    assert not result.refused


@pytest.mark.parametrize("invalid", [False, True])
def test_what_it_answered_before_is_kept_and_not_held_back(
    executor: ModelExecutor, monkeypatch: pytest.MonkeyPatch, invalid: bool
) -> None:
    assert isinstance(executor, OpenInferenceExecutor)
    answered = Detections.empty()
    refused = {1: Refused(DropReason.OVERLOAD, "it has too much to do")}
    if invalid:
        refused[0] = Refused(DropReason.INVALID, "no picture")

    def run(*batch: object) -> Found:
        raise OverloadedError("it has too much to do", ([answered, Detections.empty()], refused))

    monkeypatch.setattr(executor._models, "run", run)
    result = executor.submit(GATE, [CANVAS, CANVAS], 2).result()
    assert result.detections[0] is answered
    assert result.refused == refused
    assert (result.rest_s > 0) == invalid, "it rests unless it answered a part"


@pytest.mark.parametrize(("status", "code"), [(500, ""), (503, ""), (503, "failed"), (404, "")])
def test_any_other_refusal_is_a_failure(
    executor: ModelExecutor, server: ProtocolServer, status: int, code: str
) -> None:
    server.refusal, server.refusal_code = status, code
    with pytest.raises(ModelError, match="too much to do"):
        executor.submit(GATE, [CANVAS], 1).result()


@pytest.mark.parametrize("code", ["not_ready", "shutdown"])
def test_another_edgebox_that_is_starting_or_stopping_is_gone(
    executor: ModelExecutor, server: ProtocolServer, code: str
) -> None:
    server.refusal, server.refusal_code = 503, code
    with pytest.raises(ExecutorGoneError, match="too much to do"):
        executor.submit(GATE, [CANVAS], 1).result()


def test_an_answer_that_is_none_is_said_to_be_the_servers(
    executor: ModelExecutor, server: ProtocolServer
) -> None:
    server.refusal = 200
    with pytest.raises(
        ModelError, match=r"^127.0.0.1:\d+, gate_gate-192: the server's answer cannot be read: "
    ):
        executor.submit(GATE, [CANVAS], 1).result()


def test_its_refusal_is_told_at_once_however_long_it_is_to_rest(
    executor: ModelExecutor, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgebox.inference.remote.open_inference_executor.REST_S", 3600.0)
    server.refusal = 429
    result = executor.submit(GATE, [CANVAS], 1).result(60)
    assert result.rest_s == 3600
    assert result.took_ns < 60e9


def test_a_batch_that_hangs_has_no_limit_but_that_of_who_wants_it(
    executor: ModelExecutor, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgebox.inference.remote.open_inference_executor.RUN_LIMIT_S", 0.0)
    something = threading.Event()

    class Hanging(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            something.set()
            return super().wait(timeout)

    server.running = Hanging()
    future = executor.submit(GATE, [CANVAS], 1)
    future.add_done_callback(lambda _: something.set())
    something.wait()
    assert not future.done(), "it would count as failed, and the executor as up"
    executor.abandon()
    assert isinstance(future.exception(60), ModelError)
    server.running.set()


def test_a_first_batch_that_hangs_is_given_up_before_opening_counts_as_hanging(
    executor: ModelExecutor, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be wedged, as one whose driver keeps a thread, and end a box without others."""
    assert 2 * FIRST_BATCH_S + CONNECT_LIMIT_S < OPEN_LIMIT_NS / 1e9
    monkeypatch.setattr("edgebox.inference.remote.remote_executor.FIRST_BATCH_S", 0.01)
    server.running.clear()
    with pytest.raises(HungError, match="its server hangs"):
        executor.warm_each([(GATE, 1)])
    server.running.set()


@pytest.mark.parametrize(("passes_s", "ran"), [(0.0, 4), (FIRST_BATCH_S, 1)])
def test_first_batches_of_a_slow_server_end_in_time_and_are_at_least_one(
    executor: ModelExecutor, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch,
    passes_s: float, ran: int,
) -> None:  # fmt: skip
    clock = SimpleNamespace(monotonic=partial(next, count(0.0, passes_s)))
    monkeypatch.setattr("edgebox.inference.remote.remote_executor.time", clock)
    executor.warm_each([(GATE, size) for size in (1, 2, 4, 8)])
    assert server.batches == ran


@pytest.mark.parametrize(
    ("extensions", "status", "hinted"),
    [((), 500, True), (("binary_tensor_data",), 500, False), ((), 401, False), ((), 429, False)],
)
def test_a_refusal_says_that_binary_tensors_may_be_why_where_the_server_does_not_list_them(
    folder: Path, server: ProtocolServer, extensions: tuple[str, ...], status: int, hinted: bool
) -> None:
    server.extensions = extensions
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [load_family(folder)])
        try:
            executor.submit(GATE, [CANVAS], 1).result()  # one that takes them may not say so
            server.refusal = status
            try:
                said = str(executor.submit(GATE, [CANVAS], 1).result().refused)
            except ModelError as error:
                said = str(error)
            assert ("sends no others" in said) == hinted
        finally:
            executor.close()
