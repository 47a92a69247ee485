"""A server that is replaced while its executor is open is compared with the families again."""

from http.client import BadStatusLine, HTTPConnection, IncompleteRead
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor import ConnectionBrokenError, ExecutorGoneError
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec
from edgebox.inference.zoo import load_family
from tests.end_to_end.protocol_server import ProtocolServer
from tests.end_to_end.test_residency import family_of_files

GATE = VariantName("gate-96")
CANVAS = np.zeros((96, 96, 3), np.uint8)
OTHER: dict[str, Any] = {"outputs": [{"name": "boxes", "datatype": "FP16", "shape": [-1, 100, 4]}]}


def test_one_that_was_replaced_between_two_batches_is_refused_until_it_is_as_before(
    tmp_path: Path,
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (96,))
    server = ProtocolServer({"gate_gate-96": folder / "gate-96.onnx"})
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [load_family(folder)])
        executor.submit(GATE, [CANVAS], 1).result()
    try:
        with server.serving():
            executor.submit(GATE, [CANVAS], 1).result()
        server.changes = OTHER
        with server.serving():
            for _ in range(2):
                with pytest.raises(ModelError, match="is FP32 here and FP16 there"):
                    executor.submit(GATE, [CANVAS], 1).result()
        server.changes = {}
        with server.serving():
            executor.submit(GATE, [CANVAS], 1).result()
    finally:
        executor.close()


def test_one_that_takes_no_connections_any_more_is_gone(tmp_path: Path) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (96,))
    server = ProtocolServer({"gate_gate-96": folder / "gate-96.onnx"})
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [load_family(folder)])
        executor.submit(GATE, [CANVAS], 1).result()
    try:
        with pytest.raises(ExecutorGoneError, match=r"cannot be reached: connection refused"):
            executor.submit(GATE, [CANVAS], 1).result()
    finally:
        executor.close()


@pytest.mark.parametrize(
    ("error", "of_the_connection"),
    [(IncompleteRead(b"ha", 2), True), (BadStatusLine("?"), True), (TimeoutError(), False)],
)
def test_a_connection_that_breaks_is_told_apart_from_a_batch_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, of_the_connection: bool
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (96,))
    server = ProtocolServer({"gate_gate-96": folder / "gate-96.onnx"})
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [load_family(folder)])
        try:
            with monkeypatch.context() as broken:
                broken.setattr(HTTPConnection, "getresponse", Mock(side_effect=error))
                with pytest.raises(ModelError, match="cannot be reached") as raised:
                    executor.submit(GATE, [CANVAS], 1).result()
            assert isinstance(raised.value, ConnectionBrokenError) is of_the_connection
            executor.submit(GATE, [CANVAS], 1).result()
        finally:
            executor.close()


def test_a_model_that_is_exchanged_while_the_connection_lasts_is_compared_again(
    tmp_path: Path,
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (96,))
    server = ProtocolServer({"gate_gate-96": folder / "gate-96.onnx"})
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [load_family(folder)])
        try:
            executor.submit(GATE, [CANVAS], 1).result()
            server.changes, server.version = OTHER, "2"
            for _ in range(2):
                with pytest.raises(ModelError, match="is FP32 here and FP16 there"):
                    executor.submit(GATE, [CANVAS], 1).result()
            server.changes = {}
            executor.submit(GATE, [CANVAS], 1).result()
            server.changes = OTHER  # nobody asks
            executor.submit(GATE, [CANVAS], 1).result()
        finally:
            executor.close()


def test_one_that_stays_is_compared_once(tmp_path: Path) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (96,))
    server = ProtocolServer({"gate_gate-96": folder / "gate-96.onnx"})
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [load_family(folder)])
        server.changes = OTHER  # nobody asks
        try:
            for _ in range(3):
                executor.submit(GATE, [CANVAS], 1).result()
        finally:
            executor.close()


def test_a_family_that_was_dropped_is_not_asked_for_again(tmp_path: Path) -> None:
    gate, yard = (load_family(family_of_files(tmp_path / of, of, (96,))) for of in ("gate", "yard"))
    files = {f"{of.name}_{of.name}-96": of.model_files[0].path for of in (gate, yard)}
    server = ProtocolServer(files)
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = open_executor(spec, [gate, yard])
    try:
        executor.drop_family(yard)
        assert executor.families == ("gate",)
        del files["yard_yard-96"]
        with server.serving():  # a new connection: what it holds is compared
            executor.submit(GATE, [CANVAS], 1).result()
    finally:
        executor.close()
