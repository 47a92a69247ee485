"""Specifications of executors: opening the same specification gives the same executor.

Limits: `edgebox.app.executor_setup` decides which executors a box has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor import SCORE_FLOOR, run_limit_s
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ExecutorSpecification, ModelExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import Provider


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """One executor in this process: where it runs, with what, and which families it holds."""

    id: ExecutorId
    """Its device and its number there: "cpu/0", "cuda:0/1"."""
    provider: Provider
    """The execution provider."""
    device_index: int = 0
    """Which GPU, as CUDA counts them; 0 for the CPU."""
    threads: int = 0
    """CPU threads that it computes with; 0: one for each of `cores`, else all cores but one."""
    thread_counts: tuple[int, ...] = ()
    """Thread counts that a batch may have on a CPU, rising to `threads`; empty: `threads` only."""
    cores: tuple[int, ...] = ()
    """CPU cores that its threads are pinned to; empty: they run on any."""
    families: tuple[str, ...] = ()
    """Names of the families that it holds; empty: all there are."""
    memory_limit_bytes: int = 0
    """Memory limit of its models; 0: no limit."""
    engine_folder: Path | None = None
    """Folder for TensorRT's engines; None: they are not stored."""
    cuda_graphs: bool = False
    """Whether runs are recorded as CUDA graphs where that changes no answer."""

    @property
    def device(self) -> str:
        """The device without the executor's number: "cpu", "cuda:0"."""
        return self.id.rpartition("/")[0]

    @property
    def is_remote(self) -> bool:
        """It runs in this process."""
        return False

    def holds(self, family: str) -> bool:
        """Return whether a family is to run there."""
        return not self.families or family in self.families

    def limit_s(self, families: Sequence[Family]) -> float:
        """Return how long opening it with these families may take."""
        files = sum(len(family.model_files) for family in families if self.holds(family.name))
        return run_limit_s(builds=self.provider == "tensorrt") * max(1, files)

    def open(self, families: Sequence[Family], *, score_floor: float) -> OnnxExecutor:
        """Open it with these families; see `open_executor`."""
        return OnnxExecutor(
            self.id,
            families,
            providers=self.provider,
            device_index=self.device_index,
            cpu_threads=self.threads,
            thread_counts=self.thread_counts,
            cores=self.cores,
            memory_limit_bytes=self.memory_limit_bytes,
            engine_folder=self.engine_folder,
            cuda_graphs=self.cuda_graphs,
            score_floor=score_floor,
        )


def open_executor(
    spec: ExecutorSpecification,
    families: Sequence[Family],
    *,
    score_floor: float = SCORE_FLOOR,
) -> ModelExecutor:
    """Open an executor with the families that its specification names.

    Blocks for 0.1 s on a CPU, seconds on a GPU or elsewhere. Its sessions are not warm yet.
    Families that cannot be opened there are in its `failed`, as long as one can.

    Args:
        spec: which.
        families: all families that the box serves.
        score_floor: detections below it are not reported.

    Raises:
        ModelError: none of its families can be opened there, or none of them is there.
    """
    held = [family for family in families if spec.holds(family.name)]
    if not held:
        raise ModelError(f"executor {spec.id} has none of its families")
    return spec.open(held, score_floor=score_floor)
