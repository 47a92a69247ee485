"""Owns the step from trained exit heads to files: two families, each with graph and manifest.

`street-exit` is given pictures; its graph has the exit's answer and the features for `street-rest`,
which answers from them as the whole detector does.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch.export import Dim

from models.street.exit_network import ExitHead, FirstPart, SecondPart
from models.street.export import VariantScore, manifest_lines
from models.street.network import StreetNet
from models.training.graph_files import write_graph
from models.training.layers import fused

ANSWER = ("boxes", "scores", "labels")
FEATURES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "stage8": {"fine": (32, 4), "coarse": (64, 8)},
    "level8": {"fine": (32, 4), "coarse": (48, 8)},
}
"""By place: channels and stride of each tensor between the parts."""
FIRST, SECOND = "street-exit", "street-rest"


def export_parts(network: StreetNet, head: ExitHead, out: Path) -> tuple[Path, Path]:
    """Write both graphs into folders of their own, with dynamic batch, height and width."""
    paths = tuple(out / name / f"{name}.onnx" for name in (FIRST, SECOND))
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    names = tuple(FEATURES[head.place])
    batch, rows, columns = Dim("batch"), Dim("rows32"), Dim("columns32")
    pictures = torch.zeros((2, 96, 128, 3), dtype=torch.uint8)
    first = FirstPart(network, fused(copy.deepcopy(head).float().eval())).eval()
    write_graph(
        first,
        {"images": (pictures, {0: batch, 1: 32 * rows, 2: 32 * columns})},
        (*ANSWER, *names),
        paths[0],
    )
    with torch.no_grad():
        features = first(pictures)[len(ANSWER) :]
    write_graph(
        SecondPart(network, head.place).eval(),
        {
            name: (tensor.clone(), {0: batch, 2: 32 // stride * rows, 3: 32 // stride * columns})
            for (name, (_, stride)), tensor in zip(
                FEATURES[head.place].items(), features, strict=True
            )
        },
        ANSWER,
        paths[1],
    )
    return paths[0], paths[1]


def write_part_manifest(path: Path, place: str, variants: Sequence[VariantScore]) -> None:
    """Write the manifest of a part beside its graph; its accuracies are those of its answers."""
    first = path.stem == FIRST
    text = (
        "First part of the street detector: an answer at its exit, and features for street-rest"
        if first
        else "Second part of the street detector: the whole one's answer, from features"
    )
    lines = manifest_lines(path, path.stem, text, variants)
    if not first:
        lines.insert(1, f'after = "{FIRST}"')
    for name, (channels, stride_px) in FEATURES[place].items():
        lines += [
            "",
            "[[features]]",
            f'name = "{name}"',
            f"channels = {channels}",
            f"stride_px = {stride_px}",
        ]
    (path.parent / "family.toml").write_text("\n".join(lines) + "\n")
