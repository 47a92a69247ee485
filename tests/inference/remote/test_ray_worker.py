"""What runs in a Ray worker, run here: it needs no Ray."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor import blank_canvas
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.remote import ray_connection
from edgebox.inference.remote.ray_executor import RaySpec
from edgebox.inference.remote.ray_messages import Message, decode_result, encode_inputs
from edgebox.inference.remote.ray_worker import RayWorker, Reply, read_files
from edgebox.inference.tensors import EncodedPicture, ModelInput
from edgebox.inference.zoo import load_family
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_residency import family_of_files

SPEC = RaySpec(ExecutorId("ray:0/0"), "auto")


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Family:
    return load_family(family_of_files(tmp_path_factory.mktemp("files") / "gate", "gate", (128,)))


def order_for(family: Family) -> dict[str, Any]:
    """Return an order as it arrives at a worker."""
    told: dict[str, Any] = json.loads(json.dumps(SPEC.order([family], 0.05)))
    return told


def header_of(reply: Reply) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(reply[0])
    return header


def test_a_worker_finds_what_an_executor_here_finds(gate: Family) -> None:
    worker, order = RayWorker(), order_for(gate)
    told = header_of(worker.open(order, read_files(order["families"][0])))
    assert told["failed"] == {}
    variant = gate.variants[0]
    picture = EncodedPicture(street_jpeg(3), 640, 360)
    inputs: list[ModelInput] = [picture, blank_canvas(variant)]
    entries, buffers = encode_inputs(inputs)
    ordered = {"variant": variant.name, "batch_size": 4, "inputs": entries}
    header, content = worker.run(json.dumps(ordered).encode(), *map(bytes, buffers))
    found = decode_result(Message(json.loads(header), content), len(gate.labels), 0, 1).detections
    here = OnnxExecutor(ExecutorId("cpu/0"), [gate], cpu_threads=1, score_floor=0.05)
    wanted = here.submit(variant.name, inputs, 4).result(60).detections
    here.close()
    assert len(found) == 2
    assert len(found[0]) > 0
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one.boxes, other.boxes)
        assert np.array_equal(one.labels, other.labels)


def test_a_family_is_added_to_a_worker_that_runs(gate: Family, tmp_path: Path) -> None:
    yard = load_family(family_of_files(tmp_path / "yard", "yard", (64,)))
    worker, order, further = RayWorker(), order_for(gate), order_for(yard)
    worker.open(order, read_files(order["families"][0]))
    files = read_files(further["families"][0])
    name = yard.model_files[0].path.name
    changed = replace(files, contents={**files.contents, name: b"another"})
    assert "changed since the box" in header_of(worker.add(further, changed))["error"]
    assert header_of(worker.add(further, files)) == {}
    for variant in (*gate.variants, *yard.variants):
        entries, buffers = encode_inputs([blank_canvas(variant)])
        ordered = {"variant": variant.name, "batch_size": 1, "inputs": entries}
        assert "error" not in header_of(
            worker.run(json.dumps(ordered).encode(), *map(bytes, buffers))
        )


def test_a_family_that_is_dropped_runs_no_more(gate: Family, tmp_path: Path) -> None:
    yard = load_family(family_of_files(tmp_path / "yard", "yard", (64,)))
    worker, order, further = RayWorker(), order_for(gate), order_for(yard)

    def error_of(family: Family) -> str | None:
        (variant,) = family.variants
        entries, buffers = encode_inputs([blank_canvas(variant)])
        ordered = {"variant": variant.name, "batch_size": 1, "inputs": entries}
        reply = worker.run(json.dumps(ordered).encode(), *map(bytes, buffers))
        return header_of(reply).get("error")

    worker.open(order, read_files(order["families"][0]))
    worker.add(further, read_files(further["families"][0]))
    assert header_of(worker.drop(further)) == {}
    assert "no variant 'yard-64'" in (error_of(yard) or "")
    assert error_of(gate) is None
    assert header_of(worker.drop(further)) == {}, "there is nothing left to drop"
    assert header_of(worker.drop(order)) == {}
    assert "no variant 'gate-128'" in (error_of(gate) or "")


def test_what_goes_wrong_with_a_batch_is_the_answer(gate: Family) -> None:
    worker, order = RayWorker(), order_for(gate)
    worker.open(order, read_files(order["families"][0]))
    ordered = {"variant": "gate-999", "batch_size": 1, "inputs": []}
    assert "gate-999" in header_of(worker.run(json.dumps(ordered).encode()))["error"]


def test_another_release_of_edgebox_is_refused(gate: Family) -> None:
    order = {**order_for(gate), "version": "0.0.9"}
    told = header_of(RayWorker().open(order, read_files(order["families"][0])))
    assert "but the box is 0.0.9: install the same version on all nodes" in told["error"]


def test_other_files_than_those_of_the_box_are_refused(gate: Family) -> None:
    order = order_for(gate)
    files = read_files(order["families"][0])
    name = gate.model_files[0].path.name
    changed = replace(files, contents={**files.contents, name: b"another"})
    missing = replace(files, contents={k: v for k, v in files.contents.items() if k != name})
    assert "changed since the box started" in header_of(RayWorker().open(order, changed))["error"]
    assert "did not reach the worker" in header_of(RayWorker().open(order, missing))["error"]


def test_without_ray_the_error_says_what_to_install(
    gate: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_connection, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'edgebox\[ray\]'"):
        SPEC.open([gate], score_floor=0.05)


def test_a_box_never_imports_ray() -> None:
    """Not even one that is configured to use it: its library would end the box's process."""
    if util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: nothing could import it")
    program = (
        "import sys, edgebox.app.composition, edgebox.commands.root; "
        "assert 'edgebox.inference.remote.ray_executor' in sys.modules; "
        "sys.exit('ray' in sys.modules)"
    )
    folder = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", program], cwd=folder, check=False).returncode == 0
