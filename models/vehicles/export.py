"""Owns the step from trained weights to files: the ONNX graph and its manifest, family.toml."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.export import Dim

from models.training.graph_files import write_graph
from models.training.layers import fused
from models.vehicles.network import ATTRIBUTES, Classifier, VehicleNet

SIZE_MULTIPLE_PX = 16
SIDES_PX = (32, 48, 64, 96)


@dataclass(frozen=True)
class VariantScore:
    """What one input size reaches on held-out scenes, as shares of crops."""

    side_px: int
    accuracy: float  # every attribute right
    of_attributes: tuple[float, ...]  # each attribute by itself
    by_side: tuple[tuple[float, float], ...]  # px of the object as sent; every attribute right


def export_onnx(network: VehicleNet, path: Path) -> None:
    """Write the classifier as one ONNX file with dynamic batch, height and width."""
    classifier = Classifier(fused(copy.deepcopy(network).float().eval())).eval()
    example = torch.zeros((2, 32, 48, 3), dtype=torch.uint8)
    multiple = SIZE_MULTIPLE_PX
    axes = {0: Dim("batch"), 1: multiple * Dim("rows"), 2: multiple * Dim("columns")}
    write_graph(classifier, {"images": (example, axes)}, ["logits"], path)


def write_manifest(onnx_path: Path, manifest_path: Path, variants: Sequence[VariantScore]) -> None:
    """Write family.toml for the ONNX file beside it."""
    digest = hashlib.sha256(onnx_path.read_bytes()).hexdigest()
    lines = [
        'name = "vehicles"',
        'task = "classify"',
        f'file = "{onnx_path.name}"',
        f'sha256 = "{digest}"',
        'licence = "Apache-2.0"',
        'description = "Type and colour of vehicles in crops of synthetic street scenes"',
        "synthetic = true",
        "",
        "[input]",
        'layout = "nhwc"',
        'dtype = "uint8"',
        'order = "rgb"',
        'fit = "stretch"',
        f"size_multiple_px = {SIZE_MULTIPLE_PX}",
        "",
        "[output]",
        'decoder = "class_logits"  # the attributes\' logits side by side',
    ]
    for name, labels in ATTRIBUTES:
        listed = ", ".join(f'"{label}"' for label in labels)
        lines += ["", "[[attributes]]", f'name = "{name}"', f"labels = [{listed}]"]
    for variant in variants:
        shares = ", ".join(
            f"{name} {share:.3f}"
            for (name, _), share in zip(ATTRIBUTES, variant.of_attributes, strict=True)
        )
        by_side = ", ".join(f"[{side:.1f}, {share:.3f}]" for side, share in variant.by_side)
        lines += [
            "",
            "[[variants]]",
            f'name = "vehicles-{variant.side_px}"',
            f"width_px = {variant.side_px}",
            f"height_px = {variant.side_px}",
            f"accuracy = {variant.accuracy:.4f}  # every attribute right; {shares}",
            f"accuracy_by_side = [{by_side}]",
        ]
    manifest_path.write_text("\n".join(lines) + "\n")
