"""Runs with fixed buffers on a device, replayed as CUDA graphs where that changes no answer.

A session that records (`Session.records`) replays a run from its second on: all kernels are
launched by one call, and ONNX Runtime does nothing for each operator. A replay reads and writes the
addresses that it was recorded with, so every input shape has buffers of its own on the device.

- The first run of a shape is an ordinary one. ONNX Runtime may then move what earlier recordings
  refer to, so they are all dropped, and recorded again at the next run of their shape.
- The second run is recorded, and kept only if replays with two inputs in turn give the answers of
  ordinary runs. Whatever fails makes all runs of the session ordinary ones.

Nothing here knows CUDA: on a CPU the same calls run without a recording, which is how they are
tested. Limits: one thread runs a session that records, because ONNX Runtime keeps recordings by
thread. A replay cannot be stopped between two operators.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.inference.onnx_runtime import onnx_runtime
from edgebox.inference.recording_gate import RECORDING_S, RecordingGate
from edgebox.inference.session_store import Tensors, run_bound
from edgebox.inference.sessions import CPU, Session, brief, run_options

RUN_SHARE = 5
"""Runs' time that a recording may take: ONNX Runtime runs twice, records, and replays."""
BUFFER_BYTES_MAX = 128 << 20
"""Buffers of one session's recordings on the device."""
RELATIVE_TOLERANCE = 1e-3
"""Half precision's and TF32's step. A replay launches the very kernels of an ordinary run, so that
only the order of atomic additions can make a difference."""
ABSOLUTE_TOLERANCE = 1e-5
"""Of an output's largest value: what is next to zero differs by more than its own step."""

Arrays = Mapping[str, NDArray[Any]]
_Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class FixedRuns:
    """Runs of one session that records."""

    def __init__(
        self,
        session: Session,
        device_index: int,
        gate: RecordingGate,
        stop: Any = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Start with nothing recorded.

        Args:
            session: only this object runs it.
            device_index: which GPU.
            gate: what keeps recordings apart from other work.
            stop: the result of `run_options`, to stop ordinary runs from another thread.
            clock_ns: what runs are timed with.
        """
        self.session = session
        self.failed = ""
        """Why nothing of this session may be recorded any more; empty: it may."""
        self._device = ("cpu" if session.provider == CPU else "cuda", device_index)
        self._gate = gate
        self._stop = stop or run_options()
        self._clock_ns = clock_ns
        self._seen: set[_Shapes] = set()
        self._ordinary: set[_Shapes] = set()
        """Shapes that are not recorded."""
        self._recorded: dict[_Shapes, _FixedRun] = {}
        self._recordings = 0

    @property
    def recorded(self) -> int:
        """How many shapes are replayed."""
        return len(self._recorded)

    def run(self, tensors: Tensors) -> list[NDArray[Any]]:
        """Run the session once, and return its outputs on the host.

        Args:
            tensors: its input, or its inputs by name.
        """
        if isinstance(tensors, np.ndarray):
            tensors = {self.session.input_name: tensors}
        shapes = tuple((name, tensor.shape) for name, tensor in tensors.items())
        fixed = self._recorded.get(shapes)
        if fixed is not None:
            with self._gate.working():
                return fixed.run(tensors)
        if shapes not in self._seen:
            self._seen.add(shapes)
            with self._gate.working():
                self._recorded.clear()
        elif not self.failed and shapes not in self._ordinary:
            return self._record(shapes, tensors)
        return self._run_ordinarily(tensors)

    def _run_ordinarily(self, tensors: Arrays) -> list[NDArray[Any]]:
        with self._gate.working():
            return run_bound(self.session, tensors, self._stop)

    def _record(self, shapes: _Shapes, tensors: Arrays) -> list[NDArray[Any]]:
        """Run ordinarily, and record a run of this shape if that is worth it and safe."""
        other_tensors = {name: _unlike(tensor) for name, tensor in tensors.items()}
        other = self._run_ordinarily(other_tensors)
        started_ns = self._clock_ns()
        outputs = self._run_ordinarily(tensors)
        took_ns = self._clock_ns() - started_ns
        size_bytes = sum(each.nbytes for each in (*tensors.values(), *outputs))
        held_bytes = sum(each.size_bytes for each in self._recorded.values())
        if (
            RUN_SHARE * took_ns > RECORDING_S * 1e9  # would keep other executors waiting
            or held_bytes + size_bytes > BUFFER_BYTES_MAX
            or not _alike(outputs, other)  # sizes of the outputs depend on the picture
            or agree(outputs, other)  # a replay that ignores its input could not be told
        ):
            self._ordinary.add(shapes)
            return outputs
        with self._gate.recording() as alone:
            if not alone:
                self._ordinary.add(shapes)
                return outputs
            self._recordings += 1
            fixed: _FixedRun | None = None
            try:
                fixed = _FixedRun(self.session, tensors, outputs, self._device, self._recordings)
                fixed.run(tensors)
            except Exception as error:  # ONNX Runtime's exception classes share no base
                self.failed = f"a run cannot be recorded: {brief(error)}"
                fixed = None  # its buffers are freed while this has the GPUs to itself
                return outputs
        self._check(fixed, ((other_tensors, other), (tensors, outputs), (other_tensors, other)))
        if not self.failed:
            self._recorded[shapes] = fixed
        with self._gate.working():
            del fixed
        return outputs

    def _check(
        self, fixed: "_FixedRun", runs: tuple[tuple[Arrays, list[NDArray[Any]]], ...]
    ) -> None:
        """Replay with inputs in turn; `failed` says if an answer is another one."""
        for tensors, expected in runs:
            try:
                with self._gate.working():
                    found = fixed.run(tensors)
            except Exception as error:  # ONNX Runtime's exception classes share no base
                self.failed = f"a recorded run fails: {brief(error)}"
                return
            if not agree(expected, found):
                self.failed = "a recorded run gives other answers"
                return


class _FixedRun:
    """A run of one shape: buffers on the device, and the number of its recording."""

    def __init__(
        self,
        session: Session,
        tensors: Arrays,
        outputs: list[NDArray[Any]],
        device: tuple[str, int],
        number: int,
    ) -> None:
        """Take memory on the device for inputs and outputs of these shapes."""
        make = onnx_runtime().OrtValue.ortvalue_from_shape_and_type
        self.size_bytes = sum(each.nbytes for each in (*tensors.values(), *outputs))
        self._session = session.session
        self._binding = session.session.io_binding()
        self._options = run_options(number)
        self._inputs = {
            name: make(tensor.shape, tensor.dtype.type, *device) for name, tensor in tensors.items()
        }
        self._outputs = [make(each.shape, each.dtype.type, *device) for each in outputs]
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for output, value in zip(session.session.get_outputs(), self._outputs, strict=True):
            self._binding.bind_ortvalue_output(output.name, value)

    def run(self, tensors: Arrays) -> list[NDArray[Any]]:
        """Copy inputs to the device, run, and copy outputs to the host."""
        for name, tensor in tensors.items():
            self._inputs[name].update_inplace(tensor)
        self._session.run_with_iobinding(self._binding, self._options)
        return [np.array(value.numpy()) for value in self._outputs]


def _unlike(tensor: NDArray[Any]) -> NDArray[Any]:
    """Return noise of a tensor's shape and type."""
    noise = np.random.default_rng(0)
    if tensor.dtype.kind == "f":
        return noise.standard_normal(tensor.shape, np.float32).astype(tensor.dtype)
    return noise.integers(0, 256, tensor.shape, np.uint8).astype(tensor.dtype)


def _alike(some: list[NDArray[Any]], others: list[NDArray[Any]]) -> bool:
    """Return whether outputs are numbers of the same shapes."""
    return [(each.shape, each.dtype) for each in some] == [
        (each.shape, each.dtype) for each in others
    ] and all(each.dtype.kind in "fiub" for each in some)


def agree(expected: list[NDArray[Any]], found: list[NDArray[Any]]) -> bool:
    """Return whether all outputs are the same but for what rounding may change."""
    for one, other in zip(expected, found, strict=True):
        wanted = np.asarray(one, np.float64)
        largest = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
        if not np.allclose(
            np.asarray(other, np.float64),
            wanted,
            RELATIVE_TOLERANCE,
            ABSOLUTE_TOLERANCE * float(largest),
            equal_nan=True,
        ):
            return False
    return True
