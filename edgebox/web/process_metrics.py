"""Metrics of the process, for Prometheus: memory, descriptors, threads, tasks."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client import ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric

_THREADS = Path("/proc/self/task")


def task_count() -> int:
    """Return how many tasks the running loop has that have not ended."""
    return len(asyncio.all_tasks())


def process_families(tasks: int) -> Iterator[Metric]:
    """Yield the figures of this process; where there is no /proc only what Python knows.

    Args:
        tasks: of the event loop, counted on it.
    """
    yield from ProcessCollector(registry=None).collect()
    yield GaugeMetricFamily("edgebox_tasks", "Tasks of the event loop.", value=tasks)
    with suppress(OSError):
        threads = len(list(_THREADS.iterdir()))
        yield GaugeMetricFamily(
            "edgebox_threads", "Threads of the process, libraries' included.", value=threads
        )
    yield GaugeMetricFamily(
        "edgebox_python_blocks",
        "Blocks of memory that Python objects occupy.",
        value=sys.getallocatedblocks(),
    )
