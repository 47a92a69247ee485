"""Measures what the history costs: `python -m benchmarks.history [--days N] [--json]`.

Made-up cameras at 10 frames/s, recorded minute by minute through the real storage under a moved
clock, and the last hour of them second by second; then each range is read as a page would.
"""

import asyncio
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.synthetic_history import minute, period
from edgebox.domain.requests import CameraId
from edgebox.storage.database import Storage
from edgebox.storage.periods import BOX, Period
from edgebox.web.history_routes import RANGES_MS

T = 1_790_000_000_000 // 86_400_000 * 86_400_000
MINUTE_MS = 60_000
ROUNDS = 40


def written_bytes() -> int:
    """Return what this process has written so far, log and file together."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["wchar"])


class Clock:
    """A wall clock that is moved."""

    def __init__(self) -> None:
        """Start at a midnight."""
        self.ms = T

    def __call__(self) -> int:
        """Return the instant, Unix milliseconds."""
        return self.ms


async def fill(storage: Storage, clock: Clock, days: int, cameras: int) -> dict[str, Any]:
    """Record some days; the last is written a minute at a time, as a box does."""
    rng = np.random.default_rng(1)
    pool = [period(rng) for _ in range(200)]
    minutes = [minute(pool, rng, cameras) for _ in range(50)]
    last_day = T + (days - 1) * 86_400_000
    rows_bytes = 0
    while clock.ms < T + days * 86_400_000:
        if clock.ms == last_day:
            rows_bytes, before_bytes = await used_bytes(storage), written_bytes()
            began_s = time.process_time()
        count = 60 if clock.ms < last_day else 1
        begin = clock.ms // MINUTE_MS
        storage.history.record_minutes({n: minutes[n % 50] for n in range(begin, begin + count)})
        clock.ms += count * MINUTE_MS
        await storage.flush()
    day_bytes = await used_bytes(storage) - rows_bytes
    return {
        "kept_mb_per_day": round(day_bytes / 1e6, 1),
        "written_mb_per_day": round((written_bytes() - before_bytes) / 1e6, 1),
        "write_amplification": round((written_bytes() - before_bytes) / day_bytes, 1),
        "cpu_ms_per_minute": round((time.process_time() - began_s) / 1440 * 1e3, 2),
    }


async def used_bytes(storage: Storage) -> int:
    """Return what the rows take, in whole pages."""
    ((pages,),) = await storage._writer.execute("PRAGMA page_count")
    return int(pages) * 4096


async def fill_seconds(storage: Storage, clock: Clock, cameras: int) -> None:
    """Record the last hour by the second."""
    rng = np.random.default_rng(2)
    pool = [period(rng, seconds=1) for _ in range(300)]
    for second in range(clock.ms // 1000 - 3_600, clock.ms // 1000):
        found: dict[CameraId, Period] = dict(minute(pool, rng, cameras))
        storage.history.record_second(second, found)
        await storage.flush()


async def query_ms(storage: Storage, clock: Clock, camera: CameraId) -> dict[str, Any]:
    """Return how long a chart of each range takes."""
    figures: dict[str, Any] = {}
    for name, span_ms in RANGES_MS.items():
        taken_ms, cpu_ms = [], []
        for _ in range(ROUNDS):
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            body = await storage.history.chart(camera, clock.ms - span_ms, clock.ms, 300)
            taken_ms.append((time.perf_counter() - began_s) * 1e3)
            cpu_ms.append((time.process_time() - began_cpu_s) * 1e3)
        median_ms = statistics.median(taken_ms)
        figures[name] = {
            "median_ms": round(median_ms, 1),
            "cpu_ms": round(statistics.median(cpu_ms), 1),
            "p99_ms": round(float(np.quantile(taken_ms, 0.99)), 1),
            "points": len(json.loads(body)["at_ms"]),
            "kb": round(len(body) / 1e3),
        }
    return figures


async def measure(days: int, cameras: int) -> dict[str, Any]:
    """Return all figures."""
    with tempfile.TemporaryDirectory() as folder:
        path, clock = Path(folder) / "box.sqlite3", Clock()
        storage = await Storage.open(path, now_ms=clock, buffer_rows_max=50_000)
        try:
            figures = await fill(storage, clock, days, cameras)
            figures["file_mb"] = round(path.stat().st_size / 1e6, 1)
            await fill_seconds(storage, clock, cameras)
            ((pages,),) = await storage._seconds.execute("PRAGMA page_count")
            figures["seconds_in_memory_mb"] = round(pages * 4096 / 1e6, 1)
            figures["of_a_camera"] = await query_ms(storage, clock, CameraId("gate-3"))
            figures["of_the_box"] = await query_ms(storage, clock, BOX)
        finally:
            await storage.close()
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "days": days,
        "cameras": cameras,
        **figures,
    }


@click.command()
@click.option("--days", default=30, show_default=True, help="How long the box has been running.")
@click.option("--cameras", default=16, show_default=True, help="How many it serves.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(days: int, cameras: int, as_json: bool) -> None:
    """Measure and print."""
    figures = asyncio.run(measure(days, cameras))
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for span, taken in value.items():
                print(f"  {span:4} {taken}")
        else:
            print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
