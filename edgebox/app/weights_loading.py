"""Loads weights on executors of limited memory, with a time limit during the start.

While a box runs, `scheduling.supervision` limits the time.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from edgebox.domain.model_family import VariantName, WeightsId
from edgebox.inference.executor import HungError, run_limit_s
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.sessions import TENSORRT
from edgebox.runtime.threads import within


class WeightsLoader:
    """Loads files of an executor by their names in the core, and warms them."""

    def __init__(
        self,
        executor: ModelExecutor,
        files: Mapping[WeightsId, Path],
        runs: Mapping[WeightsId, Sequence[tuple[VariantName, int]]],
    ) -> None:
        """Start without loaded files; `runs`: the warm-up batches of each."""
        self._executor = executor
        self._files = files
        self._runs = runs

    def on(self, executor: ModelExecutor) -> "WeightsLoader":
        """Return the same loader for an executor that replaces this one."""
        return WeightsLoader(executor, self._files, self._runs)

    def load(self, weights: WeightsId) -> None:
        """Load weights and run them once.

        Raises:
            ModelError: they cannot be loaded.
        """
        self._executor.load(self._files[weights], self._runs[weights])

    def load_in_time(self, weights: WeightsId) -> None:
        """Do the same during the start, without supervision.

        Raises:
            ModelError: they cannot be loaded.
            HungError: the load hangs.
        """
        load_in_time(self._executor, self._files[weights], self._runs[weights])

    def unload(self, weights: WeightsId) -> None:
        """Unload weights."""
        self._executor.unload(self._files[weights])


def load_in_time(
    executor: ModelExecutor, path: Path, runs: Sequence[tuple[VariantName, int]] = ()
) -> None:
    """Load and run a file during the start, without supervision; blocks.

    Raises:
        ModelError: it cannot be opened, or a batch failed.
        HungError: the load hangs.
    """
    # Opening it, and each batch.
    limit_s = run_limit_s(builds=executor.provider == TENSORRT) * (1 + len(runs))
    try:
        within(limit_s, lambda: executor.load(path, runs), "load-first", lambda late: None)
    except TimeoutError:
        raise HungError(
            f"loading {path.name} on {executor.id} did not come back within {limit_s:.0f} s: the "
            "device or its driver hangs"
        ) from None
