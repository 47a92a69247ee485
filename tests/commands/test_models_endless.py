"""A model that never ends: a limit or Ctrl-C ends `edgebox models import`, and nothing stays."""

import signal
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, checker, helper

from tests.end_to_end.program import edgebox, finish, start
from tests.end_to_end.running import until

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")


def endless(path: Path) -> Path:
    """Write a model whose Loop has no limit and whose condition stays true."""
    shape = [1, 3, 64, 64]
    inner = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Identity", ["value"], ["same"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", TensorProto.FLOAT, shape),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("same", TensorProto.FLOAT, shape),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "always", "images"], ["output"], body=inner)],
        "endless",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        [helper.make_tensor("always", TensorProto.BOOL, [], [True])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def kept(home: Path) -> list[str]:
    models = home / "edgebox" / "models"
    return [each.name for each in models.iterdir()] if models.exists() else []


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(each) for each in text.split()]


def busy(process: int) -> bool:
    """Whether a process has computed for a while: more than starting takes."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) > 150  # its user time, in hundredths of a second


async def test_an_import_ends_at_its_limit_and_leaves_nothing(tmp_path: Path) -> None:
    model = endless(tmp_path / "endless.onnx")
    ended = await edgebox(tmp_path, "models", "import", str(model), "--time-limit-s", "4")
    assert ended.code == 1
    assert "edgebox models import: the import was not done after 4 s" in ended.err
    assert kept(tmp_path) == []


@LINUX
async def test_control_c_ends_an_import_at_once(tmp_path: Path) -> None:
    # A suite that runs in the background of a shell ignores it, and programs inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    model = endless(tmp_path / "endless.onnx")
    process = await start(tmp_path, "models", "import", str(model))
    signal.signal(signal.SIGINT, before)
    await until(lambda: any(map(busy, children(process.pid))), "the model to run")
    found = children(process.pid)
    process.send_signal(signal.SIGINT)
    ended = await finish(process)
    assert ended.code != 0
    assert "Traceback" not in ended.err
    assert not is_there(found[0])
    assert kept(tmp_path) == []
