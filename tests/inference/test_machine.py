"""What is read of the machine, from cgroup files of both versions."""

import os
from pathlib import Path

import pytest

from edgebox.inference.machine import (
    cgroup_cpu_limit,
    cgroup_memory_limit_bytes,
    memory_bytes,
    processor_name,
    usable_cores,
)


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "nonsense"}, None),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 0.5),
    ],
)
def test_cpu_limits(tmp_path: Path, files: dict[str, str], limit: float | None) -> None:
    root = put(tmp_path, files)
    assert cgroup_cpu_limit(root) == limit
    affinity = len(os.sched_getaffinity(0))
    assert usable_cores(root) == (affinity if limit is None else max(1, min(affinity, int(limit))))


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"memory.max": "max\n"}, None),
        ({"memory.max": "1073741824\n"}, 1 << 30),
        ({"memory/memory.limit_in_bytes": "2147483648"}, 2 << 30),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, None),
    ],
)
def test_memory_limits(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    assert cgroup_memory_limit_bytes(put(tmp_path, files)) == limit


def test_this_machine_has_a_name_and_memory() -> None:
    assert processor_name()
    memory = memory_bytes()
    assert memory is not None
    assert memory > 1 << 20
