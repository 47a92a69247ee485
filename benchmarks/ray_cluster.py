"""A Ray cluster of several node processes on this machine, in a process of its own.

Run as a program it starts the cluster, prints its address, starts a node for each line that it
reads, and ends all of it when its input ends. Ray takes over signals and logging of the process
that uses it, so neither benchmarks nor tests import it.
"""

import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MODULE = "benchmarks.ray_cluster"
WORKER = "ray::RayWorker"
"""Begins the title of a worker's process."""


class RayCluster:
    """A running cluster."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the cluster did not start"
        return line

    def add_node(self) -> None:
        """Add a node with as much room as the others; it has joined when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.write("add\n")
        self._process.stdin.flush()
        self._line()

    def workers(self) -> set[int]:
        """Return the processes that hold executors: the title of each says so."""
        return {pid for pid in _descendants(self._process.pid) if _title(pid).startswith(WORKER)}


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def _descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # pid (name) state parent ...: the name may have blanks and brackets.
                after_name = (folder / "stat").read_text().rpartition(") ")[2]
                parents[int(folder.name)] = int(after_name.split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


@contextlib.contextmanager
def ray_cluster(nodes: int, workers_per_node: int = 1) -> Iterator[RayCluster]:
    """Run a cluster whose head has room for nothing, and so many nodes for workers."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(nodes), str(workers_per_node)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            # Its folder for all that it writes: it takes /tmp/ray to be there, which others make.
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder},
            start_new_session=True,
        )  # fmt: skip
        try:
            yield RayCluster(process)
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=20)
            process.kill()
            process.wait()


def _main(nodes: int, workers_per_node: int) -> None:
    cluster_utils: Any = importlib.import_module("ray.cluster_utils")
    # Nobody reads the workers' logs here, and no cloud is asked for more nodes.
    unneeded = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    head = {"num_cpus": 0, **unneeded}
    room = {"num_cpus": workers_per_node, "object_store_memory": 100_000_000}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    for _ in range(nodes):
        cluster.add_node(wait=False, **room)
    cluster.wait_for_nodes(timeout=180)  # a busy machine takes its time
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.add_node(**room)
        print("added", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
