"""Executors in workers of a Ray cluster: what they cost, and what their faults cost.

A real cluster of several node processes on this machine. For overhead and throughput the workers
wait in place of computing; for faults they run the bundled detector for a real box with cameras.

    python -m benchmarks.remote_ray [--part overhead|throughput|faults] [--json]
"""

import argparse
import asyncio
import importlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.ray_cluster import RayCluster, ray_cluster
from benchmarks.remote import (
    PART_S,
    WAIT_S,
    Shares,
    overhead_of,
    picture_of,
    scaling,
    with_cameras,
)
from edgebox.app.composition import App
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.remote.ray_executor import RayNeeds, RaySpec
from edgebox.inference.remote.ray_messages import encode_inputs
from edgebox.inference.zoo import bundled_folders, load_family

_ROUNDS = 400
_SECONDS = 4.0
_TEN_TIMES_SLOWER_S = (0.045, 0.005)
"""A worker is stopped for the first, and runs for the second."""


def opened(
    cluster: RayCluster, family: Family, count: int, wait_s: float, num_cpus: float
) -> list[ModelExecutor]:
    """Open executors whose workers only wait."""
    return [
        open_executor(
            RaySpec(
                ExecutorId(f"ray:{at}/0"),
                cluster.address,
                RayNeeds(num_cpus),
                wait_ns=round(wait_s * 1e9),
            ),
            [family],
        )
        for at in range(count)
    ]


def overhead(family: Family) -> dict[str, Any]:
    """Return medians of a batch through an executor and of the bare Ray call, alternating.

    The bare call carries the same bytes and is answered by as many.
    """
    ray: Any = importlib.import_module("ray")
    out: dict[str, Any] = {}
    with ray_cluster(2) as cluster:
        (executor,) = opened(cluster, family, 1, 0.0, 0.5)
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
        answer = b"{}" + bytes(200)

        class Bare:
            def run(self, *given: bytes) -> tuple[bytes, list[bytes]]:
                return answer, [b""] * 3

        actor = ray.remote(num_cpus=0.5)(Bare).remote()
        picture, variant = picture_of(family), family.variants[-1].name
        for size in (1, 4, 16):
            entries, buffers = encode_inputs([picture] * size)
            given = [json.dumps(entries).encode(), *map(bytes, buffers)]
            bare_ms: list[float] = []
            through_ms: list[float] = []
            for _ in range(_ROUNDS):
                began_s = time.perf_counter()
                ray.get(actor.run.remote(*given))
                bare_ms.append(1e3 * (time.perf_counter() - began_s))
                began_s = time.perf_counter()
                executor.submit(variant, [picture] * size, size).result()
                through_ms.append(1e3 * (time.perf_counter() - began_s))
            size_kb = sum(map(len, given)) / 1e3
            out[f"batch of {size}, {size_kb:.0f} kB"] = overhead_of(bare_ms, through_ms)
        executor.close()
        ray.shutdown()
    return out


def throughput(family: Family) -> dict[str, Any]:
    """Return batches a second through so many workers that wait 20 ms for each."""
    with ray_cluster(4, 2) as cluster:
        executors = opened(cluster, family, 8, WAIT_S, 1.0)
        out = scaling(executors, family, "workers", _SECONDS)
        for each in executors:
            each.close()
    return out


class _Slow:
    """Makes a process ten times slower while it is entered."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._slow, daemon=True)

    def _slow(self) -> None:
        stopped_s, running_s = _TEN_TIMES_SLOWER_S
        try:
            while not self._over.wait(running_s):
                os.kill(self._pid, signal.SIGSTOP)
                time.sleep(stopped_s)
                os.kill(self._pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # the box has had it ended

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()


async def faults(cameras: int) -> dict[str, Any]:
    """Return shares on time before, during and after each fault of one of two workers."""
    (folder,) = [each for each in bundled_folders() if each.name == "street"]
    out: dict[str, Any] = {}
    with ray_cluster(2) as cluster:

        async def work(app: App, shares: Shares) -> None:
            async def part() -> dict[str, float]:
                shares.part()
                await asyncio.sleep(PART_S)
                return shares.part()

            for fault in ("killed", "hung", "ten times slower"):
                before = await part()
                pid = min(cluster.workers())
                end = _inflict(fault, pid)
                during = await part()
                end()
                out[fault] = {"before": before, "during": during, "after": await part()}
                out[fault]["losses"] = {
                    str(name): text for name, text in app.box.driver.supervisor.last_losses.items()
                }
            out["batches"] = {
                str(key): meter.batches.total()
                for key, meter in app.box.driver.measurements.meters.items()
            }

        tables = [
            {"device": "cpu", "threads": 1},
            {"kind": "ray", "address": cluster.address, "count": 2},
        ]
        await with_cameras(folder, tables, cameras, work)
    return out


def _inflict(fault: str, pid: int) -> Callable[[], object]:
    """Begin a fault of a worker; return what ends it."""
    if fault == "ten times slower":
        slow = _Slow(pid)
        slow.begin()
        return slow.end
    os.kill(pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
    return lambda: None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("overhead", "throughput", "faults"))
    parser.add_argument("--cameras", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    (folder,) = [each for each in bundled_folders() if each.name == "street"]
    family = load_family(folder)
    out: dict[str, Any] = {}
    parts: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
        ("overhead", lambda: overhead(family)),
        ("throughput", lambda: throughput(family)),
        ("faults", lambda: asyncio.run(faults(options.cameras))),
    )
    for part, measure in parts:
        if options.part in (None, part):
            out[part] = measure()
            if not options.json:
                print(part)
                for row, figures in out[part].items():
                    print(f"  {row}: {figures}", flush=True)
    if options.json:
        print(json.dumps(out))


if __name__ == "__main__":
    main()
