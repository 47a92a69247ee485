"""Memory as this machine tells it."""

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from edgebox.inference.memory import device_used_bytes, give_back, resident_bytes


def test_what_is_touched_is_resident_and_what_is_freed_is_not() -> None:
    before = resident_bytes()
    if before is None:
        pytest.skip("this system does not report resident memory")
    held = np.ones(64 << 20, np.uint8)
    during = resident_bytes()
    del held
    give_back()
    after = resident_bytes()
    assert during is not None
    assert after is not None
    assert during - before > 60 << 20
    assert during - after > 60 << 20


def test_a_system_that_does_not_tell_is_unknown(tmp_path: Path) -> None:
    assert resident_bytes(tmp_path / "statm") is None
    (tmp_path / "statm").write_text("words")
    assert resident_bytes(tmp_path / "statm") is None


@pytest.mark.parametrize(("status", "used"), [(0, 30), (2, None)])
def test_a_gpu_tells_what_is_used_by_anybody(status: int, used: int | None) -> None:
    def info(free: Any, total: Any) -> int:
        free._obj.value, total._obj.value = 70, 100
        return status

    chosen = [0]

    def current(device: Any) -> int:
        device._obj.value = chosen[-1]
        return 0

    def choose(device: int) -> int:
        chosen.append(device)
        return 0

    calls = SimpleNamespace(cudaMemGetInfo=info, cudaGetDevice=current, cudaSetDevice=choose)
    assert device_used_bytes(cast("ctypes.CDLL", calls), 2) == used
    assert chosen == [0, 2, 0]
