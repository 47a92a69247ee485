"""The original model: its input, and a session to run it for comparison.

Opened from bytes, so that ONNX Runtime has no folder to look for further files in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.files import SIDE_MAX_PX, SourceFile
from edgebox.inference.importing.layouts import Preprocessing
from edgebox.inference.machine import usable_cores
from edgebox.inference.onnx_runtime import onnx_runtime
from edgebox.inference.sessions import CPU, brief, session_options
from edgebox.inference.tensors import Canvas

Arrays = list[NDArray[Any]]

OUTPUTS_MAX = 64
BATCH_MAX = 64
"""The largest fixed batch: every frame waits until it is full, or is computed that often."""

_PICTURE_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_NUMBER_TYPES = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}

_OUTPUT_TYPES = frozenset(
    f"tensor({kind})"
    for kind in (
        *("float", "float16", "double", "bool"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)

_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Div", "BatchNormalization"))
_REARRANGING = frozenset(
    ("Transpose", "Split", "Concat", "Gather", "Slice", "Cast", "Identity", "Reshape")
)


@dataclass(frozen=True, slots=True)
class Input:
    """One input; axes are lengths, or None where any will do."""

    name: str
    role: Literal["pictures", "sizes", "mask"]
    dtype: Any
    axes: tuple[int | None, ...]


class Original:
    """A model file, opened."""

    def __init__(self, source: SourceFile) -> None:
        """Open it.

        Raises:
            ModelError: ONNX Runtime cannot open it, or its input is not pictures.
        """
        self.source = source
        path = source.path
        ort = onnx_runtime()
        try:
            ort.set_default_logger_severity(4)
            self._session = ort.InferenceSession(
                source.model.SerializeToString(), session_options(usable_cores()), [CPU]
            )
        except Exception as error:  # its exception classes share no base but Exception
            raise ModelError(f"{path}: ONNX Runtime cannot open it: {brief(error)}") from error
        found = [self._input(tensor) for tensor in self._session.get_inputs()]
        pictures = [each for each in found if each.role == "pictures"]
        if len(pictures) != 1:
            raise ModelError(f"{path}: has {len(pictures)} inputs for pictures, not one")
        self.pictures = pictures[0]
        self.extras = [each for each in found if each.role != "pictures"]
        self.channels_last = self.pictures.axes[3] == 3 and self.pictures.axes[1] != 3
        axes = self.pictures.axes
        if 3 not in (axes[1], axes[3]) and (axes[1] is not None or axes[3] is not None):
            raise ModelError(
                f"{path}: takes pictures of shape {_shown(axes)}; edgebox feeds three colours"
            )
        self.outputs = self._readable_outputs()
        self.ranks: dict[str, int] = {}
        """Number of axes of each output, by name, as the last run had them; empty before it."""

    def _readable_outputs(self) -> tuple[str, ...]:
        outputs = self._session.get_outputs()
        if len(outputs) > OUTPUTS_MAX:
            raise ModelError(
                f"{self.source.path}: has {len(outputs)} outputs; at most {OUTPUTS_MAX} are read"
            )
        for output in outputs:
            if output.type not in _OUTPUT_TYPES:
                raise ModelError(
                    f"{self.source.path}: its output {output.name!r} is {output.type}; edgebox "
                    "reads tensors of numbers"
                )
        return tuple(output.name for output in outputs)

    @property
    def batch_declared(self) -> int | None:
        """The only batch size that its input declares; None: any."""
        return self.pictures.axes[0]

    @property
    def size_declared_px(self) -> tuple[int | None, int | None]:
        """Width and height that its input declares; None: any."""
        rows, columns = (1, 2) if self.channels_last else (2, 3)
        return self.pictures.axes[columns], self.pictures.axes[rows]

    def normalises(self) -> bool:
        """Return whether the graph does arithmetic with its pictures before any convolution."""
        known = {self.pictures.name}
        for node in self.source.model.graph.node:
            if not known & set(node.input):
                continue
            if node.op_type in _ARITHMETIC:
                return True
            if node.op_type not in _REARRANGING:
                return False
            known |= set(node.output)
        return False

    def _input(self, tensor: Any) -> Input:
        # A length of 0 or below, as some exporters write it, says nothing.
        axes = tuple(
            length if isinstance(length, int) and length > 0 else None for length in tensor.shape
        )
        kind = str(tensor.type)
        if len(axes) == 4 and kind in _PICTURE_TYPES:
            if axes[0] is not None and axes[0] > BATCH_MAX:
                raise ModelError(
                    f"{self.source.path}: takes {axes[0]} pictures at once, as it was exported; at "
                    f"most {BATCH_MAX} are fed. Export it for single pictures"
                )
            if any(length is not None and length > SIDE_MAX_PX for length in axes):
                raise ModelError(
                    f"{self.source.path}: takes pictures of {_shown(axes)}; sides are at most "
                    f"{SIDE_MAX_PX} px"
                )
            return Input(tensor.name, "pictures", _PICTURE_TYPES[kind], axes)
        if kind in _NUMBER_TYPES and len(axes) == 2 and axes[1] in (2, None):
            return Input(tensor.name, "sizes", _NUMBER_TYPES[kind], axes)
        if kind in _NUMBER_TYPES and len(axes) == 3 and "mask" in tensor.name:
            return Input(tensor.name, "mask", _NUMBER_TYPES[kind], axes)
        raise ModelError(
            f"{self.source.path}: has an input {tensor.name!r} of {kind} and shape {_shown(axes)}, "
            "which edgebox does not know how to feed"
        )

    def run(
        self, canvases: Sequence[Canvas], how: Preprocessing, *, nudged_to: float | None = None
    ) -> Arrays:
        """Run a batch of (h, w, 3) RGB canvases.

        Args:
            canvases: the pictures.
            how: how they are fed.
            nudged_to: every number that is fed is moved to the next one in this direction.

        Raises:
            ModelError: ONNX Runtime fails.
        """
        batch, (height, width) = len(canvases), canvases[0].shape[:2]
        try:
            feed = self.feed(canvases, how)
            if nudged_to is not None and self.pictures.dtype is not np.uint8:
                exact = feed[self.pictures.name]
                feed[self.pictures.name] = np.nextafter(exact, exact.dtype.type(nudged_to))
            outputs: Arrays = self._session.run(None, feed)
        except Exception as error:  # as above
            raise ModelError(
                f"{self.source.path}: fails on {batch} pictures of {width} × {height} px: "
                f"{brief(error)}"
            ) from error
        self.ranks = {n: array.ndim for n, array in zip(self.outputs, outputs, strict=True)}
        return outputs

    def feed(self, canvases: Sequence[Canvas], how: Preprocessing) -> dict[str, NDArray[Any]]:
        """Return all inputs for a batch of (h, w, 3) RGB canvases, prepared in plain numpy."""
        stacked = np.stack(canvases)
        batch, height, width = stacked.shape[:3]
        feed = {self.pictures.name: self._prepared(stacked, how)}
        for extra in self.extras:
            if extra.role == "sizes":
                feed[extra.name] = np.tile(np.array([width, height], extra.dtype), (batch, 1))
            else:
                sides = (extra.axes[1] or height, extra.axes[2] or width)
                feed[extra.name] = np.ones((batch, *sides), extra.dtype)
        return feed

    def _prepared(self, pictures: NDArray[np.uint8], how: Preprocessing) -> NDArray[Any]:
        ordered = pictures if how.order == "rgb" else pictures[..., ::-1]
        if self.pictures.dtype is not np.uint8:
            # One rounding for each operation, as the models' authors compute it.
            mean, std = np.array(how.mean, np.float32), np.array(how.std, np.float32)
            values = (ordered.astype(np.float32) / np.float32(how.divisor) - mean) / std
            ordered = values.astype(self.pictures.dtype)
        return np.ascontiguousarray(
            ordered if self.channels_last else ordered.transpose(0, 3, 1, 2)
        )


def _shown(axes: Sequence[int | None]) -> str:
    return "[" + ", ".join("any" if length is None else str(length) for length in axes) + "]"
