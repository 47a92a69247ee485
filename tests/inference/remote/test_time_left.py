"""A server is told the time left to a batch's deadline, whatever its pictures have become here."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor import RUN_LIMIT_S
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.executor_thread import BatchJob
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import (
    OpenInferenceExecutor,
    OpenInferenceSpec,
)
from edgebox.inference.remote.server_answers import Found
from edgebox.inference.tensors import EncodedPicture, ModelInput
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import encode
from edgebox.vision.detections import Detections
from tests.end_to_end.protocol_server import ProtocolServer
from tests.end_to_end.test_residency import family_of_files

GATE = VariantName("gate-192")
CANVAS = np.zeros((192, 192, 3), np.uint8)
NOW_NS = 5_000_000_000


@pytest.mark.parametrize("given", [CANVAS, EncodedPicture(encode(CANVAS), 192, 192)])
@pytest.mark.parametrize(
    ("deadline_ns", "left_s"), [(NOW_NS + 200_000_000, 0.2), (None, RUN_LIMIT_S)]
)
def test_the_time_left_is_that_of_the_batch(
    tmp_path: Path, given: ModelInput, deadline_ns: int | None, left_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = family_of_files(tmp_path / "gate", "gate", (192,))
    server = ProtocolServer({"gate_gate-192": folder / "gate-192.onnx"})
    told: list[float] = []

    def run(family: object, variant: object, job: BatchJob, left_s: float) -> Found:
        told.append(left_s)
        return [Detections.empty() for _ in job.inputs], {}

    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        executor = cast(Any, open_executor(spec, [load_family(folder)]))
        assert isinstance(executor, OpenInferenceExecutor)
        try:
            monkeypatch.setattr(executor, "_clock_ns", lambda: NOW_NS)
            monkeypatch.setattr(executor._models, "run", run)
            executor.submit(GATE, [given], 1, deadline_ns=deadline_ns).result()
        finally:
            executor.close()
    assert told == [left_s]
