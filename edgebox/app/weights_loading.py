"""Loads weights on executors of limited memory, and bounds how long that may take at a start.

While a box runs its supervision does that (`scheduling.supervision`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from edgebox.domain.model_family import VariantName, WeightsId
from edgebox.inference.executor import HungError, OnnxExecutor, run_limit_s
from edgebox.inference.sessions import TENSORRT
from edgebox.runtime.threads import within


class WeightsLoader:
    """Loads files of an executor under the names that the core knows, and warms them."""

    def __init__(
        self,
        executor: OnnxExecutor,
        files: Mapping[WeightsId, Path],
        runs: Mapping[WeightsId, Sequence[tuple[VariantName, int]]],
    ) -> None:
        """Load nothing yet; `runs`: the batches that warm each."""
        self._executor = executor
        self._files = files
        self._runs = runs

    def on(self, executor: OnnxExecutor) -> "WeightsLoader":
        """Return a loader of the same for an executor that takes the place of this one."""
        return WeightsLoader(executor, self._files, self._runs)

    def load(self, weights: WeightsId) -> None:
        """Bring weights in and run them once.

        Raises:
            ModelError: they cannot be loaded.
        """
        self._executor.load(self._files[weights], self._runs[weights])

    def load_in_time(self, weights: WeightsId) -> None:
        """Do the same where nobody supervises it.

        Raises:
            ModelError: they cannot be loaded.
            HungError: that does not come back.
        """
        load_in_time(self._executor, self._files[weights], self._runs[weights])

    def unload(self, weights: WeightsId) -> None:
        """Take weights out."""
        self._executor.unload(self._files[weights])


def load_in_time(
    executor: OnnxExecutor, path: Path, runs: Sequence[tuple[VariantName, int]] = ()
) -> None:
    """Bring a file into memory and run it, where nobody supervises the executor; blocks.

    Raises:
        ModelError: it cannot be opened, or a batch failed.
        HungError: that does not come back.
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
