"""What runs before a box is ready, so that no frame meets a cold model."""

from pathlib import Path

import pytest

from edgebox.app.startup import warm
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import CPU, CUDA
from edgebox.inference.zoo import bundled_folders, load_family
from tests.inference.tiny_onnx import YOLOX_32, write_family

Runs = list[tuple[VariantName, int]]


@pytest.fixture
def executor(tmp_path: Path) -> OnnxExecutor:
    """Return one with two files: of the bundled family and of one with a single variant."""
    families = [load_family(bundled_folders()[0])]
    families.append(load_family(write_family(tmp_path, YOLOX_32)))
    return OnnxExecutor(0, families, cpu_threads=1)


def profiles(executor: OnnxExecutor) -> list[LatencyProfile]:
    return [
        LatencyProfile(name, ExecutorId("cpu/0"), {1: (5,), 2: (8,)}) for name in executor._families
    ]


@pytest.mark.parametrize("provider", [CPU, CUDA])
def test_a_cpu_runs_the_largest_of_each_file_and_a_gpu_everything(
    executor: OnnxExecutor, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    runs: Runs = []
    monkeypatch.setattr(executor, "warm_each", runs.extend)
    monkeypatch.setattr(executor, "provider", provider)
    known = profiles(executor)
    warm(executor, known)
    if provider == CPU:
        assert runs == [("street-608", 1), ("tiny-32", 1)]
    else:
        assert runs == [(each.variant, size) for each in known for size in (1, 2)]
    executor.close()
