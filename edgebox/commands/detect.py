"""`edgebox detect`: a family on pictures, no server needed. Thin: reads, runs, prints, draws.

Imports what a command needs when it runs.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from edgebox.commands.console import clear_errors, out, print_json
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.domain.errors import InvalidInputError, ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgebox.inference.family import Family
    from edgebox.inference.onnx_executor import OnnxExecutor
    from edgebox.vision.detections import Detections

_SCORE_MIN = 0.3


@click.command()
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--family",
    help="Model family; edgebox models list shows the families.  [default: the default family]",
)
@click.option("--variant", help="Variant of the family.  [default: the largest]")
@click.option(
    "--score",
    "score_min",
    type=click.FloatRange(0.001, 1),
    default=_SCORE_MIN,
    show_default=True,
    help="Least score of a detection.",
)
@click.option(
    "--draw",
    type=click.Path(path_type=Path),
    help="Write the picture with its boxes to this file; a folder for several. Folders are made.",
)
@CONFIG
@JSON
def detect(
    *,
    images: tuple[Path, ...],
    family: str | None,
    variant: str | None,
    score_min: float,
    draw: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Print what a family detects on IMAGES: JPEG, PNG, BMP or WebP files, or folders of them."""
    from edgebox.app.executor_setup import open_one
    from edgebox.app.family_folders import known_folders
    from edgebox.config.config_file import load
    from edgebox.inference.zoo import load_zoo

    with clear_errors("detect"):
        config = load(config_file)
        zoo = load_zoo(known_folders(config.inference))
        try:
            chosen = zoo.family(family or config.inference.family)
        except ModelError as error:
            raise ModelError("\n".join([str(error), *map(str, zoo.problems)])) from None
        chosen.insist_on_pictures()
        images = pictures_of(images)
        targets = draw_targets(images, draw)
        documents, used = list[dict[str, Any]](), ""
        with closing(open_one(config, chosen, score_floor=score_min)) as executor:
            seen = _detected(executor, chosen, variant, images)
            # One after the other: a folder's pictures together may be larger than the memory.
            for each, target in zip(seen, targets, strict=True):
                if target is not None:
                    each.draw(chosen, target)
                if as_json:
                    documents.append(each.document(chosen))
                else:
                    each.show(chosen)
                used = each.variant
    if as_json:
        print_json(
            {
                "family": chosen.name,
                "variant": used,
                "provider": executor.provider,
                "pictures": documents,
            }
        )


@dataclass(frozen=True)
class _DetectedFrame:
    """One picture and what was found on it."""

    path: Path
    rgb: "NDArray[np.uint8]"
    variant: str
    found: "Detections"
    took_ms: float

    def document(self, family: "Family") -> dict[str, Any]:
        rows = zip(self.found.boxes, self.found.scores, self.found.labels, strict=True)
        return {
            "file": str(self.path),
            "width_px": self.rgb.shape[1],
            "height_px": self.rgb.shape[0],
            "inference_ms": round(self.took_ms, 2),
            "detections": [
                {
                    "label": family.labels[label],
                    "label_id": int(label),
                    "score": round(float(score), 4),
                    "box": [round(float(side), 1) for side in box],
                    **({"attribute": family.attribute_names[label]} if family.attributes else {}),
                }
                for box, score, label in rows
            ],
            **self._embedded(),
        }

    def _embedded(self) -> dict[str, Any]:
        if self.found.embeddings is None:
            return {}
        rows = self.found.embeddings.tolist()
        return {"embeddings": [[round(value, 6) for value in row] for row in rows]}

    def show(self, family: "Family") -> None:
        height, width = self.rgb.shape[:2]
        out.print(
            f"[bold]{escape(self.path.name)}[/] {width} × {height} px, {self.variant}, "
            f"{self.took_ms:.1f} ms: {len(self.found) or 'nothing'} found"
        )
        for row in self.document(family)["detections"]:
            box = f"  at {row['box']}" if family.task == "detect" else ""
            of = f"{row['attribute']}: " if "attribute" in row else ""
            out.print(f"  {row['score']:.2f} {of}{row['label']}{box}", markup=False)
        if self.found.embeddings is not None:
            for values in self.found.embeddings.tolist():
                numbers = " ".join(f"{value:.3f}" for value in values[:6])
                out.print(f"  {len(values)} numbers: {numbers} ...", markup=False)

    def draw(self, family: "Family", target: Path) -> None:
        from edgebox.media.drawing import draw_boxes, save_picture

        labels = [family.labels[label] for label in self.found.labels]
        texts = [
            f"{label} {100 * score:.0f} %"
            for label, score in zip(labels, self.found.scores, strict=True)
        ]
        save_picture(draw_boxes(self.rgb, self.found.boxes, texts, labels), target)


def pictures_of(images: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the files that are named, and the pictures of the folders that are, by name.

    Raises:
        InvalidInputError: a folder has none.
    """
    from edgebox.media.sources import PICTURE_SUFFIXES

    found: list[Path] = []
    for image in images:
        if not image.is_dir():
            found.append(image)
            continue
        inside = sorted(path for path in image.iterdir() if path.suffix.lower() in PICTURE_SUFFIXES)
        if not inside:
            endings = ", ".join(sorted(PICTURE_SUFFIXES))
            raise InvalidInputError(f"{image}: this folder has no pictures ({endings})")
        found += inside
    return tuple(found)


def draw_targets(images: tuple[Path, ...], draw: Path | None) -> list[Path | None]:
    """Return where each picture is drawn to; the folder is made.

    Raises:
        InvalidInputError: several pictures would go into one file, or over one of themselves.
    """
    if draw is None:
        return [None] * len(images)
    if len(images) == 1 and draw.suffix and not draw.is_dir():
        targets = [draw]
    else:
        targets = [draw / f"{image.stem}.png" for image in images]
        if len(set(targets)) < len(targets):
            raise InvalidInputError(
                f"--draw {draw}: two pictures have the same name and would be drawn over"
            )
    here = {image.resolve() for image in images}
    for target in targets:
        if target.resolve() in here:
            raise InvalidInputError(f"{target}: would be drawn over itself; name another file")
    try:
        targets[0].parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"--draw {draw}: this folder cannot be made: {error.strerror}"
        ) from None
    return list(targets)


def _detected(
    executor: "OnnxExecutor", family: "Family", variant_name: str | None, images: tuple[Path, ...]
) -> "Iterator[_DetectedFrame]":
    import numpy as np

    from edgebox.domain.model_family import VariantName
    from edgebox.media.jpeg import lay_into
    from edgebox.media.sources import read_picture
    from edgebox.vision.letterbox import Placement

    variant = family.variants[-1]
    if variant_name is not None:
        variant = family.variant(VariantName(variant_name))
    width, height, how = variant.width_px, variant.height_px, family.input
    batch_size = family.batch_sizes(1)[0]
    # The first run of a session is not what later ones take.
    executor.warm([variant.name], [batch_size])
    for path in images:
        rgb = read_picture(path, upright=True)
        canvas = np.empty((height, width, 3), np.uint8)
        lay_into(rgb, canvas, how.fill, how.fit)
        result = executor.submit(variant.name, [canvas], batch_size).result()
        source = (rgb.shape[1], rgb.shape[0])
        placed = Placement.on_canvas(*source, width, height, how.fit)
        found = placed.to_source(result.detections[0], *source)
        order = np.argsort(-found.scores, kind="stable")
        yield _DetectedFrame(path, rgb, variant.name, found.select(order), result.took_ns / 1e6)
