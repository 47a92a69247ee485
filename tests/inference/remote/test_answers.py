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
from edgebox.inference.family_prints import family_print, reading_print
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec
from edgebox.inference.zoo import load_family, read_graph
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
        "outcomes": ("BYTES", ["on_time"]),
    }
    tensors = [
        {"name": name, "datatype": kind, "shape": list(np.shape(data)), "data": data}
        for name, (kind, data) in {**given, **changes}.items()
    ]
    return {"outputs": tensors}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"labels": ("INT64", [[999]])}, "the model answered label 999"),
        ({"labels": ("INT64", [[-1]])}, "the model answered label -1"),
        ({"labels": ("FP32", [[1.0]])}, "output labels is of float32, not of INT64"),
        ({"boxes": ("FP32", [[[1.0, 2.0, None, 40.0]]])}, "boxes that are no finite numbers"),
        ({"scores": ("FP32", [[None]])}, "scores from nan to nan"),
        ({"boxes": ("FP32", [[[1.0, 2.0, 30.0]]])}, r"boxes came back as \(1, 1, 3\)"),
        ({"counts": ("INT64", [2])}, "output counts is from 2 to 2 of 1"),
        ({"counts": ("FP32", [1.0])}, "output counts is of float32, not of INT64"),
        ({"counts": ("INT64", [1, 0])}, r"output counts came back as \(2,\), not as \(1,\)"),
        ({"scores": ("FP32", [[0.9], [0.9]])}, r"output scores came back as \(2, 1\)"),
        ({"scores": ("FP32", [[1.5]])}, "scores from 1.5 to 1.5"),
        ({"scores": ("FP32", [[-0.1]])}, "scores from -0.1 to -0.1"),
        ({"scores": ("FP64", [[0.5]])}, "output scores is of float64, not of FP32"),
        ({"scores": ("BYTES", [["0.5"]])}, "output scores is of BYTES, not of FP32"),
        ({"outcomes": ("INT64", [1])}, "output outcomes is not 1 texts"),
    ],
)
def test_detections_that_the_family_cannot_have_fail_their_batch(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any], changes: dict[str, Any],
    why: str,
) -> None:  # fmt: skip
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
        about = r"^127\.0\.0\.1:\d+, gate-192: the server's answer cannot be read: "
        with pytest.raises(ModelError, match=f"{about}.*{why}"):
            executor.submit(GATE, [canvas], 1).result()
        answers[INFER] = outputs(boxes=("FP32", [[[-9.0, 2.0, 1e30, 40.0]]]))
        (found,) = executor.submit(GATE, [canvas], 1).result().detections
        assert found.boxes.tolist() == [[0, 2, 192, 40]], "as those of an executor here"
        parameters = {"fingerprint": family.served_print}
        answers[INFER] = {**outputs(), "parameters": parameters}
        executor.submit(GATE, [canvas], 1).result()
        parameters["fingerprint"] = replace(family, labels=family.labels[::-1]).served_print
        with pytest.raises(ModelError, match="has another family named 'gate' since"):
            executor.submit(GATE, [canvas], 1).result()
        answers[INFER] = outputs(outcomes=("BYTES", ["elsewhere"]))
        (refused,) = executor.submit(GATE, [canvas], 1).result().refused.values()
        assert refused.text == "the other box dropped it: elsewhere"
    finally:
        executor.close()


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("scores", {"datatype": "FP64"}, "output scores is of float64, not of FP32"),
        ("labels", {"datatype": "FP32"}, "output labels is of float32, not of INT64"),
        ("labels", {"shape": [1, 0], "data": []}, r"output labels came back as \(1, 0\)"),
        ("boxes", {"shape": [2, 50, 4]}, r"output boxes came back as \(2, 50, 4\)"),
        ("boxes", {"name": "other"}, "it has no output boxes"),
        ("scores", {"data": [7.0] * 100}, "scores from 7 to 7"),
        ("scores", {"data": [None] * 100}, "scores that are no finite numbers"),
    ],
)
def test_tensors_that_the_model_cannot_have_fail_their_batch(
    folder: Path, spec: OpenInferenceSpec, answers: dict[str, Any], *, name: str,
    change: dict[str, Any], why: str,
) -> None:  # fmt: skip
    family = load_family(folder)
    inputs, graph_outputs = read_graph(family.files[GATE])
    types = {"tensor(float)": "FP32", "tensor(int64)": "INT64", "tensor(uint8)": "UINT8"}
    said: dict[str, list[dict[str, Any]]] = {
        kind: [
            {
                "name": each.name,
                "datatype": types[each.type],
                "shape": [size if isinstance(size, int) else -1 for size in each.shape],
            }
            for each in tensors
        ]
        for kind, tensors in (("inputs", inputs), ("outputs", graph_outputs))
    }
    given: list[dict[str, Any]] = [
        {**of, "shape": [1, *of["shape"][1:]], "data": [0] * 100} for of in said["outputs"]
    ]
    given[0]["data"] = [1, 2, 30, 40] * 100
    answers |= {"/v2": OTHER, TENSORS: said, f"{TENSORS}/infer": {"outputs": given}}
    executor = open_executor(spec, [family])
    try:
        canvas = np.zeros((192, 192, 3), np.uint8)
        (found,) = executor.submit(GATE, [canvas], 1).result().detections
        assert len(found) == 0
        changed = [{**of, **change} if of["name"] == name else of for of in given]
        answers[f"{TENSORS}/infer"] = {"outputs": changed}
        about = r"^127\.0\.0\.1:\d+, gate_gate-192: the server's answer cannot be read: "
        with pytest.raises(ModelError, match=f"{about}.*{why}"):
            executor.submit(GATE, [canvas], 1).result()
    finally:
        executor.close()
