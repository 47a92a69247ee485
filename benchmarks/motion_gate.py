"""What the motion gate saves on videos, and what it misses.

    python -m benchmarks.motion_gate VIDEO... [--rate-hz 10] [--tiles 1]

Pictures are taken at a rate, as a camera of the box takes them. With `--tiles 3` each video is cut
into 3 x 3 cameras, each of which sees its part: recordings are made where something happens, and
most cameras hang where little does. Saved is the share of pictures that are left out. A picture
that was left out is a miss if something in it has changed since the last picture that passed: an
area of 16 x 16 px, of a picture 640 px wide, whose mean brightness differs by `VISIBLE` levels when
what the whole picture has in common is taken off. That is about the smallest thing that a detector
finds at that size. The gate itself looks at cells of 10 x 10 px.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import click
import numpy as np
from numpy.typing import NDArray

from edgebox.vision.motion_gate import GRID_PX, MotionGate

WIDTH_PX = 640
AREA_PX = 16
VISIBLE = 15.0


@dataclass(slots=True)
class Figures:
    """What the gate did on one video."""

    pictures: int = 0
    passed: int = 0
    changed: int = 0
    """Pictures with something new since the last one that passed."""
    missed: int = 0
    """Those of them that were left out."""
    longest_miss_s: float = 0.0
    """The longest time until a picture passed after something new was left out."""


def pictures(
    path: Path, rate_hz: float, tiles: int
) -> Iterator[tuple[float, list[NDArray[np.uint8]]]]:
    """Yield (seconds, brightness of each tile, 640 px wide) at a rate."""
    due_s = 0.0
    with av.open(str(path)) as container:
        stream: Any = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            at_s = float(frame.time or 0.0)
            if at_s < due_s - 1e-3:
                continue
            due_s = max(due_s, at_s - 1 / rate_hz) + 1 / rate_hz
            height_px = round(frame.height * WIDTH_PX / frame.width / AREA_PX) * AREA_PX
            scaled = frame.reformat(
                WIDTH_PX * tiles, height_px * tiles, "gray", interpolation="AREA"
            )
            luma = scaled.to_ndarray()
            yield (
                at_s,
                [
                    np.ascontiguousarray(tile)
                    for row in np.split(luma, tiles, 0)
                    for tile in np.split(row, tiles, 1)
                ],
            )


def areas(luma: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the mean brightness of each area."""
    height_px, width_px = luma.shape
    blocks = luma.reshape(height_px // AREA_PX, AREA_PX, width_px // AREA_PX, AREA_PX)
    return np.asarray(blocks.mean((1, 3)), np.float64)


def grid(luma: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return what the gate looks at."""
    frame = av.VideoFrame.from_ndarray(luma, format="gray")
    return np.asarray(frame.reformat(*GRID_PX, "gray", interpolation="AREA").to_ndarray(), np.uint8)


class Watch:
    """The gate of one camera, and what came of it."""

    def __init__(self) -> None:
        self.figures = Figures()
        self._gate = MotionGate()
        self._passed: NDArray[np.float64] | None = None
        self._missed_since_s: float | None = None

    def see(self, at_s: float, luma: NDArray[np.uint8]) -> None:
        """Give the gate a picture."""
        figures, now = self.figures, areas(luma)
        change = np.zeros(1) if self._passed is None else now - self._passed
        changed = bool((np.abs(change - np.median(change)) > VISIBLE).any())
        figures.pictures += 1
        figures.changed += changed
        if self._gate.passes(grid(luma), round(at_s * 1e9)):
            figures.passed += 1
            if self._missed_since_s is not None:
                missed_s = at_s - self._missed_since_s
                figures.longest_miss_s = max(figures.longest_miss_s, missed_s)
            self._passed, self._missed_since_s = now, None
        elif changed:
            figures.missed += 1
            if self._missed_since_s is None:
                self._missed_since_s = at_s


def measured(path: Path, rate_hz: float, tiles: int) -> list[Figures]:
    """Run the gate over a video; return the figures of each tile."""
    watches = [Watch() for _ in range(tiles * tiles)]
    for at_s, seen in pictures(path, rate_hz, tiles):
        for watch, luma in zip(watches, seen, strict=True):
            watch.see(at_s, luma)
    return [watch.figures for watch in watches]


@click.command()
@click.argument("videos", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--rate-hz", default=10.0, show_default=True, help="Pictures a second.")
@click.option("--tiles", default=1, show_default=True, help="Cameras along each side.")
def main(videos: tuple[Path, ...], rate_hz: float, tiles: int) -> None:
    """Print a row for each of VIDEOS."""
    click.echo("| video | cameras | left out | least, most | missed of new | longest miss |")
    click.echo("|---|---|---|---|---|---|")
    for video in videos:
        found = measured(video, rate_hz, tiles)
        saved = [1 - of.passed / max(1, of.pictures) for of in found]
        missed, changed = sum(of.missed for of in found), sum(of.changed for of in found)
        click.echo(
            f"| {video.name} | {len(found)} | {np.mean(saved):.0%} | {min(saved):.0%}, "
            f"{max(saved):.0%} | {missed} of {changed} | "
            f"{max(of.longest_miss_s for of in found):.1f} s |"
        )


if __name__ == "__main__":
    main()
