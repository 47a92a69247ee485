"""Writes the folder of a made-up detector's family: its ONNX file and its manifest."""

import hashlib
from pathlib import Path


def write_detector(folder: Path, name: str, side_px: int, content: bytes) -> Path:
    """Write a family of one square variant, into a folder made if it is not there; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(content)
    (folder / "family.toml").write_text(
        f"""\
name = "{name}"
task = "detect"
file = "{name}.onnx"
sha256 = "{hashlib.sha256(content).hexdigest()}"
licence = "Apache-2.0"
labels = ["thing"]
[input]
layout = "nhwc"
dtype = "uint8"
order = "rgb"
[output]
decoder = "boxes_scores_labels"
[[variants]]
name = "{name}-{side_px}"
width_px = {side_px}
height_px = {side_px}
accuracy = 0.5
""",
        encoding="utf-8",
    )
    return folder
