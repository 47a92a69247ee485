"""Whatever a server answers costs its executor alone, and is told as one error."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebox import __version__
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.fingerprint import family_print, reading_print
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec
from edgebox.inference.zoo import load_family
from tests.end_to_end.test_residency import family_of_files

GATE = VariantName("gate-192")
CONFIG = "/v2/models/gate/config"
TENSORS = "/v2/models/gate_gate-192"
INFER = "/v2/models/gate-192/infer"
EDGEBOX = {"name": "edgebox", "version": __version__}
OTHER = {"name": "other", "version": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return family_of_files(tmp_path / "gate", "gate", (192,))


@pytest.fixture
def answers() -> dict[str, Any]:
    """Return what the server says, by path."""
    return {}


@pytest.fixture
def spec(answers: dict[str, Any]) -> Iterator[OpenInferenceSpec]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name is theirs

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as there
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = ServerAddress(f"http://127.0.0.1:{server.server_address[1]}")
    yield OpenInferenceSpec(ExecutorId("x/0"), address, "{family}_{variant}")
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    "said",
    [
        {"/v2": EDGEBOX, CONFIG: {"parameters": [1]}},
        {"/v2": EDGEBOX, CONFIG: {"parameters": {"fingerprint": "x"}}},
        {"/v2": EDGEBOX, CONFIG: {"parameters": {"frame_bytes_max": {"string_value": "9" * 9999}}}},
        {"/v2": OTHER, TENSORS: {"inputs": [5]}},
        {"/v2": OTHER, TENSORS: {"inputs": 5}},
        {"/v2": OTHER, TENSORS: {"inputs": [{"name": "images", "datatype": 5, "shape": "x"}]}},
    ],
)
def test_one_that_says_nonsense_of_itself_cannot_be_opened(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any], said: dict[str, Any]
) -> None:
    answers |= said
    with pytest.raises(ModelError):
        open_executor(spec, [load_family(folder)])


def test_a_family_that_another_box_reads_otherwise_cannot_run_there(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any]
) -> None:
    family = load_family(folder)
    parameters = {"fingerprint": {"string_value": family_print(family)}}
    answers |= {
        "/v2": EDGEBOX,
        CONFIG: {"parameters": parameters},
        "/v2/repository/index": [{"name": "gate-192"}],
    }
    open_executor(spec, [family]).close()  # it does not say how it reads it
    parameters["reading"] = {"string_value": reading_print(family)}
    open_executor(spec, [family]).close()
    swapped = replace(family, input=replace(family.input, order="bgr"))
    parameters["reading"] = {"string_value": reading_print(swapped)}
    with pytest.raises(ModelError, match=r"family\.toml of gate says otherwise"):
        open_executor(spec, [family])


@pytest.mark.parametrize("reverse", [False, True])
def test_another_edgebox_has_the_same_labels_in_the_same_order(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any], reverse: bool
) -> None:
    family = load_family(folder)
    labels = family.labels[::-1] if reverse else family.labels
    said = {"fingerprint": family_print(family), "labels": json.dumps(labels)}
    answers |= {
        "/v2": EDGEBOX,
        CONFIG: {"parameters": {name: {"string_value": text} for name, text in said.items()}},
        "/v2/repository/index": [{"name": "gate-192"}],
    }
    if reverse:
        with pytest.raises(ModelError, match="has other labels for the family 'gate'"):
            open_executor(spec, [family])
    else:
        open_executor(spec, [family]).close()


def test_what_it_says_is_shown_as_a_line_of_text(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any]
) -> None:
    answers |= {"/v2": OTHER, TENSORS: {"inputs": [{"name": "\x1b[31m\n" * 99_999}]}}
    with pytest.raises(ModelError) as raised:
        open_executor(spec, [load_family(folder)])
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1_000


def outputs(**changes: Any) -> dict[str, Any]:
    """Return an answer with one detection on the one picture of a batch."""
    given = {
        "boxes": ("FP32", [[[1.0, 2.0, 30.0, 40.0]]]),
        "scores": ("FP32", [[0.9]]),
        "labels": ("INT64", [[1]]),
        "counts": ("INT64", [1]),
    }
    tensors = [
        {"name": name, "datatype": kind, "shape": list(np.shape(data)), "data": data}
        for name, (kind, data) in {**given, **changes}.items()
    ]
    outcome = {"name": "outcomes", "datatype": "BYTES", "shape": [1], "data": ["on_time"]}
    return {"outputs": [*tensors, outcome]}


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": ("INT64", [[999]])},
        {"labels": ("INT64", [[-1]])},
        {"labels": ("FP32", [[1.0]])},
        {"boxes": ("FP32", [[[1.0, 2.0, None, 40.0]]])},
        {"scores": ("FP32", [[None]])},
        {"boxes": ("FP32", [[[1.0, 2.0, 30.0]]])},
        {"counts": ("INT64", [2])},
        {"embeddings": ("FP32", [[[1.0, 0.0]]])},
    ],
)
def test_detections_that_the_family_cannot_have_fail_their_batch(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any], changes: dict[str, Any]
) -> None:
    family = load_family(folder)
    answers |= {
        "/v2": EDGEBOX,
        CONFIG: {"parameters": {"fingerprint": {"string_value": family_print(family)}}},
        "/v2/repository/index": [{"name": "gate-192"}],
        INFER: outputs(),
    }
    executor = open_executor(spec, [family])
    canvas = np.zeros((192, 192, 3), np.uint8)
    try:
        (found,) = executor.submit(GATE, [canvas], 1).result().detections
        assert found.labels.tolist() == [1]
        answers[INFER] = outputs(**changes)
        with pytest.raises(ModelError, match="cannot be read"):
            executor.submit(GATE, [canvas], 1).result()
    finally:
        executor.close()
