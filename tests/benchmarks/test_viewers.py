"""What an open page costs: the figures, and the model that computes next to nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cheap_model import FOUND, write_family
from benchmarks.viewers import summary, table, write_config
from edgebox.config.config_file import load
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode, encode


def turn(cpu_percent: float, p50: float, p99: float) -> dict[str, Any]:
    ms = {"p50": p50, "p99": p99, "max": p99}
    return {"cpu_percent": cpu_percent, "answer_ms": ms, "ack_ms": ms, "shown_hz": 0.0}


def test_a_viewer_adds_the_median_of_the_pairs() -> None:
    without = [turn(20, 4, 10), turn(60, 9, 90), turn(22, 4, 11)]
    viewed = [turn(27, 5, 9), turn(61, 8, 30), turn(30, 5, 13)]
    found = summary(without, viewed)
    assert found["added_percent_of_a_core"] == 7
    assert found["added_answer_ms"] == {"p50": 1, "p99": -1}
    last = table({"without": without, "with": viewed, **found}).splitlines()[-1]
    assert last.split()[:6] == ["a", "viewer", "adds", "7.0", "1.0", "-1.0"]


@pytest.mark.parametrize("model", ["cheap", "bundled"])
def test_the_box_is_configured(tmp_path: Path, model: str) -> None:
    config = load(write_config(tmp_path, model), {})
    assert config.server.port == 0
    assert (config.inference.family == "cheap") == (model == "cheap")


def test_the_cheap_model_finds_the_same_in_every_picture_of_a_batch(tmp_path: Path) -> None:
    family = load_family(write_family(tmp_path / "cheap"))
    executor = OnnxExecutor(0, [family], providers="cpu", cpu_threads=1)
    try:
        canvas = decode(encode(np.zeros((320, 320, 3), np.uint8)))
        result = executor.submit(family.variants[0].name, [canvas] * 3, 3).result()
    finally:
        executor.close()
    assert [len(found) for found in result.detections] == [FOUND] * 3
