"""Runs an executor's batches on its sessions, recorded where its store opens such sessions."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from edgebox.inference.family import ModelFile
from edgebox.inference.fixed_runs import FixedRuns
from edgebox.inference.recording_gate import GATE
from edgebox.inference.session_store import SessionStore, Tensors, run_bound, working_on
from edgebox.inference.sessions import run_options


class SessionRuns:
    """Runs on the sessions of one executor."""

    def __init__(self, store: SessionStore, device_index: int) -> None:
        """Start with nothing recorded; `device_index` is which GPU."""
        self._store = store
        self._device_index = device_index
        self._fixed: dict[Path, FixedRuns] = {}
        self._stop = run_options()

    def stop(self) -> None:
        """Request that what runs ends between two operators."""
        self._stop.terminate = True

    def once(self, file: ModelFile, tensors: Tensors, threads: int) -> list[NDArray[Any]]:
        """Run a file once, in any thread; nothing is recorded.

        Args:
            file: which.
            tensors: its input, or its inputs by name.
            threads: CPU threads; 0: all.

        Raises:
            ModelError: it is not in memory.
        """
        with working_on(self._store.provider):
            return run_bound(self._store.session(file, threads), tensors, self._stop)

    def run(self, file: ModelFile, tensors: Tensors, threads: int) -> list[NDArray[Any]]:
        """Run a file in the executor's thread; see `once`.

        When a recording fails the file is opened again, without recordings.
        """
        self._release_removed()
        if not self._store.session(file, threads).records:
            return self.once(file, tensors, threads)
        session = self._store.session(file, threads)
        fixed = self._fixed.get(file.path)
        if fixed is None or fixed.session is not session:
            with working_on(self._store.provider):  # what is recorded of an earlier session goes
                fixed = FixedRuns(session, self._device_index, GATE, self._stop)
                self._fixed[file.path] = fixed
        outputs = fixed.run(tensors)
        if fixed.failed:
            # What failed may have left the session in any state.
            why = fixed.failed
            with working_on(self._store.provider):
                del self._fixed[file.path], fixed
            self._store.stop_recording(file.path, why)
            with working_on(self._store.provider):
                del session
        return outputs

    def _release_removed(self) -> None:
        """Give back what recordings of files hold that were removed: this thread made them."""
        for path in [path for path in self._fixed if not self._store.has(path)]:
            with working_on(self._store.provider):
                del self._fixed[path]

    def release(self) -> None:
        """Give back what recordings hold; to be called within `working_on`."""
        self._fixed.clear()
