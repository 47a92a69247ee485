"""A growing list of ONNX operators: names, constants, and differences between opsets.

Limits: opset 11 or later.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

OPSET_MIN = 11

_REDUCE_AXES_ARE_INPUTS = 18
_SQUEEZE_AXES_ARE_INPUTS = 13

INT64 = int(TensorProto.INT64)
FLOAT = int(TensorProto.FLOAT)


class Operators:
    """Operators to be added to a graph; each method adds some and returns the result's name."""

    def __init__(self, opset: int, taken: set[str]) -> None:
        """Start empty.

        Args:
            opset: of the graph they are for.
            taken: names in use there.
        """
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._taken = set(taken)
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def name(self, wanted: str) -> str:
        """Return an unused name."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def constant(self, values: ArrayLike, dtype: Any) -> str:
        """Return a constant; equal ones are one."""
        array: NDArray[Any] = np.array(values, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.name(f"edgebox/constant_{len(self._known)}")
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def ints(self, *values: int) -> str:
        """Return a constant of one axis."""
        return self.constant(values, np.int64)

    def floats(self, values: ArrayLike) -> str:
        """Return a constant of floats."""
        return self.constant(values, np.float32)

    def add(self, kind: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Add one operator with one result."""
        return self.add_many(kind, 1, *inputs, result=result, **attributes)[0]

    def add_many(
        self, kind: str, results: int, *inputs: str, result: str = "", **attributes: Any
    ) -> list[str]:
        """Add one operator with several results."""
        names = [result or self.name(f"edgebox/{kind}") for _ in range(results)]
        node_name = self.name(f"edgebox/{kind}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(kind, list(inputs), names, node_name, **attributes))
        return names

    def cast(self, value: str, to: int, result: str = "") -> str:
        """Convert to another type."""
        return self.add("Cast", value, to=to, result=result)

    def reshape(self, value: str, *dims: int) -> str:
        """Give another shape; 0 keeps an axis, -1 is what is left."""
        return self.add("Reshape", value, self.ints(*dims))

    def expand(self, value: str, dims: str) -> str:
        """Repeat along axes of length 1."""
        return self.add("Expand", value, dims)

    def slice(self, value: str, axis: int, start: int, stop: int | None) -> str:
        """Take a stretch of one axis."""
        end = np.iinfo(np.int64).max if stop is None else stop
        return self.add("Slice", value, self.ints(start), self.ints(int(end)), self.ints(axis))

    def unsqueeze(self, value: str, axis: int) -> str:
        """Insert an axis of length 1."""
        if self.opset >= _SQUEEZE_AXES_ARE_INPUTS:
            return self.add("Unsqueeze", value, self.ints(axis))
        return self.add("Unsqueeze", value, axes=[axis])

    def squeeze(self, value: str, axis: int) -> str:
        """Take an axis of length 1 away."""
        if self.opset >= _SQUEEZE_AXES_ARE_INPUTS:
            return self.add("Squeeze", value, self.ints(axis))
        return self.add("Squeeze", value, axes=[axis])

    def largest(self, value: str, axis: int) -> str:
        """Return the largest along an axis, which goes away."""
        if self.opset >= _REDUCE_AXES_ARE_INPUTS:
            return self.add("ReduceMax", value, self.ints(axis), keepdims=0)
        return self.add("ReduceMax", value, axes=[axis], keepdims=0)

    def length(self, value: str, axis: int) -> str:
        """Return the length of an axis, as one axis of length 1."""
        return self.slice(self.add("Shape", value), 0, axis, axis + 1)

    def concat(self, axis: int, *values: str) -> str:
        """Join along an axis."""
        return self.add("Concat", *values, axis=axis)

    def at_most(self, value: str, most: int) -> str:
        """Return the smaller of an integer and a number."""
        bound = self.ints(most)
        return self.add("Where", self.add("Less", value, bound), value, bound)

    def best(self, scores: str, most: str) -> tuple[str, str]:
        """Return the best scores along the last axis and where they were."""
        values, places = self.add_many("TopK", 2, scores, most, axis=-1, largest=1, sorted=1)
        return values, places

    def filled(self, dims: str, value: float | int, dtype: Any) -> str:
        """Return a tensor of one number."""
        number = numpy_helper.from_array(np.array([value], dtype))
        return self.add("ConstantOfShape", dims, value=number)

    def rows(self, value: str, places: str, axis: int, columns: int) -> str:
        """Return some rows (b, k, columns) of (b, rows, columns), or (b, columns, rows).

        Args:
            value: the rows.
            places: (b, k) which.
            axis: of the rows, 1 or 2.
            columns: how many.
        """
        wanted = self.unsqueeze(places, 3 - axis)
        dims = (1, 1, columns) if axis == 1 else (1, columns, 1)
        wanted = self.expand(wanted, self.ints(*dims))
        taken = self.add("GatherElements", value, wanted, axis=axis)
        return taken if axis == 1 else self.add("Transpose", taken, perm=[0, 2, 1])
