"""Owns the step from trained weights to files: the ONNX graph and its manifest, family.toml.

Limits: writes only where told; reads nothing but the network it is given.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.export import Dim

from models.street.network import LABELS, Detector, StreetNet
from models.training.graph_files import write_graph
from models.training.layers import fused

SIZE_MULTIPLE_PX = 32
FILL = 114
WIDTHS_PX = tuple(range(128, 609, 32))


@dataclass(frozen=True)
class VariantScore:
    """What one input size reaches on held-out scenes."""

    width_px: int
    height_px: int
    accuracy: float  # mAP@0.5:0.95
    map50: float
    map75: float


def canvas_height_px(width_px: int) -> int:
    """Return the height of the 16:9 canvas, rounded up to the size multiple."""
    return -(-width_px * 9 // (16 * SIZE_MULTIPLE_PX)) * SIZE_MULTIPLE_PX


def export_onnx(network: StreetNet, path: Path) -> None:
    """Write the detector as one ONNX file with dynamic batch, height and width."""
    detector = Detector(fused(copy.deepcopy(network).float().eval())).eval()
    example = torch.zeros((2, 96, 128, 3), dtype=torch.uint8)
    axes = {0: Dim("batch"), 1: 32 * Dim("rows32"), 2: 32 * Dim("columns32")}
    write_graph(detector, {"images": (example, axes)}, ["boxes", "scores", "labels"], path)


def write_manifest(onnx_path: Path, manifest_path: Path, variants: Sequence[VariantScore]) -> None:
    """Write family.toml for the ONNX file beside it."""
    text = "People and vehicles in synthetic street scenes: demos, tests, planning"
    lines = manifest_lines(onnx_path, "street", text, variants)
    manifest_path.write_text("\n".join(lines) + "\n")


def manifest_lines(
    onnx_path: Path, name: str, description: str, variants: Sequence[VariantScore]
) -> list[str]:
    """Return the lines of a manifest."""
    digest = hashlib.sha256(onnx_path.read_bytes()).hexdigest()
    labels = ", ".join(f'"{label}"' for label in LABELS)
    lines = [
        f'name = "{name}"',
        'task = "detect"',
        f'file = "{onnx_path.name}"',
        f'sha256 = "{digest}"',
        'licence = "Apache-2.0"',
        f'description = "{description}"',
        "synthetic = true",
        f"labels = [{labels}]",
        "",
        "[input]",
        'layout = "nhwc"',
        'dtype = "uint8"',
        'order = "rgb"',
        'fit = "letterbox_top_left"',
        f"fill = {FILL}",
        f"size_multiple_px = {SIZE_MULTIPLE_PX}",
        "",
        "[output]",
        'decoder = "boxes_scores_labels"  # boxes xyxy in input px, scores, labels',
    ]
    for variant in variants:
        lines += [
            "",
            "[[variants]]",
            f'name = "{name}-{variant.width_px}"',
            f"width_px = {variant.width_px}",
            f"height_px = {variant.height_px}",
            f"accuracy = {variant.accuracy:.4f}  # mAP@0.5:0.95",
            f"map50 = {variant.map50:.4f}",
            f"map75 = {variant.map75:.4f}",
        ]
    return lines
