"""Features: the tensors that the first part of a network gives its second part.

A network with an exit is two families: the first part is given pictures and answers, and its graph
has features as further outputs; the second part is given those in place of a picture, and answers
as the whole network would. Both manifests describe the features, so that each can be checked alone.

Limits: features are float32 with axes (batch, channels, rows, columns), at a stride of the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.field_reader import FieldReader
from edgebox.domain.model_family import Variant

Features = tuple[NDArray[np.float32], ...]
"""Features of one picture, each (channels, rows, columns)."""

_KEYS = ("channels", "name", "stride_px")
_FLOAT = "tensor(float)"


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """One tensor between the parts of a network."""

    name: str
    """Name of the first part's output and of the second part's input."""
    channels: int
    stride_px: int
    """Input pixels, across and down, for each of its cells."""

    def shape(self, variant: Variant) -> tuple[int, int, int]:
        """Return channels, rows and columns at a variant's input size."""
        return (
            self.channels,
            variant.height_px // self.stride_px,
            variant.width_px // self.stride_px,
        )

    def __str__(self) -> str:
        """Return it in words, for error messages."""
        return f'"{self.name}" with {self.channels} channels at stride {self.stride_px}'


def read_features(top: FieldReader, multiple_px: int) -> tuple[FeatureSpec, ...]:
    """Return the features that a manifest describes; none: its network has no parts.

    Args:
        top: the manifest.
        multiple_px: that all input sizes are multiples of.

    Raises:
        ModelError: a mistake, with file and key.
    """
    if "features" not in top:
        return ()
    found: list[FeatureSpec] = []
    for table in top.objects("features"):
        table.refuse_unknown(_KEYS)
        spec = FeatureSpec(
            table.nonempty("name"),
            table.integer("channels", 1, 65_536),
            table.integer("stride_px", 1, 1024),
        )
        if multiple_px % spec.stride_px:
            raise table.wrong(
                "stride_px",
                f"must divide input.size_multiple_px ({multiple_px}), not {spec.stride_px}",
            )
        if any(spec.name == other.name for other in found):
            raise table.wrong("name", f"is used twice: {spec.name!r}")
        found.append(spec)
    if not found:
        raise top.wrong("features", "must be [[features]] tables, or be left out")
    return tuple(found)


def graph_mistake(specs: Sequence[FeatureSpec], tensors: Sequence[Any], which: str) -> str:
    """Return how a graph's inputs or outputs differ from a manifest's features; empty: they fit.

    Args:
        specs: the features, in order.
        tensors: ONNX Runtime's descriptions of as many inputs or outputs.
        which: "inputs" or "outputs", for the text.
    """
    wanted, names = [spec.name for spec in specs], [tensor.name for tensor in tensors]
    if wanted != names:
        return f"its {which} for [[features]] are {_listed(names)}, not {_listed(wanted)}"
    for spec, tensor in zip(specs, tensors, strict=True):
        shape = list(tensor.shape)
        if tensor.type != _FLOAT:
            return f'"{spec.name}" is {tensor.type}; features must be {_FLOAT}'
        if len(shape) != 4 or (isinstance(shape[1], int) and shape[1] != spec.channels):
            return f"{spec} does not fit the shape {shape} of the graph's"
    return ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "none"


def part_mistake(first: Sequence[FeatureSpec], second: Sequence[FeatureSpec]) -> str:
    """Return why a second part cannot be given a first part's features; empty: it can."""
    if len(first) != len(second):
        return f"it is given {len(second)} tensors, and the first part has {len(first)}"
    for given, wanted in zip(first, second, strict=True):
        if given != wanted:
            return f"it is given {wanted}, and the first part has {given}"
    return ""


def stacked(
    specs: Sequence[FeatureSpec], variant: Variant, given: Sequence[Features], batch_size: int
) -> dict[str, NDArray[np.float32]]:
    """Return the input tensors of a second part, padded with the last picture's features.

    A batch of one is a view of what the first part left, without a copy.

    Raises:
        ValueError: no features, more than `batch_size`, or some of another shape.
    """
    if not 1 <= len(given) <= batch_size:
        raise ValueError(f"features of {len(given)} pictures do not fit a batch of {batch_size}")
    out: dict[str, NDArray[np.float32]] = {}
    for at, spec in enumerate(specs):
        rows = [features[at] for features in given]
        for row in rows:
            if row.shape != spec.shape(variant) or row.dtype != np.float32:
                raise ValueError(
                    f"{variant.name} takes features {spec.name!r} {spec.shape(variant)} float32, "
                    f"not {row.shape} {row.dtype}"
                )
        rows += rows[-1:] * (batch_size - len(rows))
        out[spec.name] = rows[0][None] if batch_size == 1 else np.stack(rows)
    return out


def stand_in(specs: Sequence[FeatureSpec], variant: Variant) -> Features:
    """Return features of no picture: half normal noise, as they are after a rectifier."""
    rng = np.random.default_rng(0)
    return tuple(
        np.abs(rng.standard_normal(spec.shape(variant), dtype=np.float32)) for spec in specs
    )
