"""A small server of the Open Inference Protocol, from its public description: it runs ONNX files.

Tests tell it to hang, to be slow and to refuse.
"""

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

_TYPES = {"tensor(uint8)": "UINT8", "tensor(float)": "FP32", "tensor(int64)": "INT64"}
_DTYPES = {"UINT8": np.uint8, "FP32": np.float32, "INT64": np.int64}


@dataclass
class ProtocolServer:
    """Models by name, and how the server behaves."""

    models: Mapping[str, Path]
    token: str = ""
    delay_s: float = 0.0
    refusal: int = 0
    """Status of every inference; 0: it is run."""
    refusal_code: str = ""
    """The `code` beside the error of every refusal; empty: it has none."""
    running: threading.Event = field(default_factory=threading.Event)
    """Cleared while every inference hangs."""
    batches: int = 0
    port: int = 0
    extensions: tuple[str, ...] = ("binary_tensor_data",)
    version: str = "1"
    changes: dict[str, Any] = field(default_factory=dict)
    """What the metadata say in place of the truth."""

    def __post_init__(self) -> None:
        self.running.set()
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # more of them wait for each other by computing
        self._sessions = {
            path: ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            for path in set(self.models.values())
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Listen, on the same port each time; at the end all connections end."""
        connections: list[Any] = []

        class Handler(_Handler):
            server_of = self

            def setup(handler) -> None:  # noqa: N805 - `self` is the outer one
                connections.append(handler.request)
                super().setup()

        http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        http.daemon_threads = True
        self.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            http.shutdown()
            for connection in connections:
                with suppress(OSError):  # it has ended already
                    connection.shutdown(2)
            http.server_close()
            thread.join()

    def metadata(self, model: str) -> dict[str, Any]:
        session = self._sessions[self.models[model]]
        found: dict[str, Any] = {"name": model, "platform": "onnxruntime_onnx"}
        for kind, tensors in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            found[kind] = [
                {
                    "name": each.name,
                    "datatype": _TYPES[each.type],
                    "shape": [size if isinstance(size, int) else -1 for size in each.shape],
                }
                for each in tensors
            ]
        return {**found, **self.changes}

    def infer(self, model: str, head: Mapping[str, Any], binary: bytes) -> tuple[bytes, bytes]:
        self.running.wait()
        time.sleep(self.delay_s)
        session = self._sessions[self.models[model]]
        feeds = {}
        for each in head["inputs"]:
            size = each["parameters"]["binary_data_size"]
            dtype = np.dtype(_DTYPES[each["datatype"]])
            assert size == math.prod(each["shape"]) * dtype.itemsize
            feeds[each["name"]] = np.frombuffer(binary[:size], dtype).reshape(each["shape"])
            binary = binary[size:]
        assert not binary
        names = [each["name"] for each in head["outputs"]]
        outputs, behind = [], b""
        for name, array in zip(names, session.run(names, feeds), strict=True):
            data = array.tobytes()
            outputs.append(
                {
                    "name": name,
                    "datatype": next(k for k, v in _DTYPES.items() if v == array.dtype),
                    "shape": list(array.shape),
                    "parameters": {"binary_data_size": len(data)},
                }
            )
            behind += data
        self.batches += 1
        document = {"model_name": model, "model_version": self.version, "outputs": outputs}
        return json.dumps(document).encode(), behind


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server_of: ProtocolServer

    def do_GET(self) -> None:
        model = self.path.removeprefix("/v2/models/")
        if self._refused():
            return
        if self.path == "/v2":
            extensions = self.server_of.extensions
            self._answer(200, {"name": "test", "version": "1", "extensions": extensions})
        elif model in self.server_of.models:
            self._answer(200, self.server_of.metadata(model))
        else:
            self._answer(404, {"error": "not found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._refused():
            return
        if self.server_of.refusal:
            code = self.server_of.refusal_code
            document = {"error": "too much to do", **({"code": code} if code else {})}
            self._answer(self.server_of.refusal, document)
            return
        length = int(self.headers["Inference-Header-Content-Length"])
        model = self.path.removeprefix("/v2/models/").removesuffix("/infer")
        head, behind = self.server_of.infer(model, json.loads(body[:length]), body[length:])
        self._send(200, head + behind, {"Inference-Header-Content-Length": str(len(head))})

    def _refused(self) -> bool:
        token = self.server_of.token
        refused = bool(token) and self.headers["Authorization"] != f"Bearer {token}"
        if refused:
            self._answer(401, {"error": "who are you?"})
        return refused

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(document).encode(), {})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # who asked has gone
            self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as there
        """Say nothing."""
