"""A smaller variant for a burst, live: `python -m benchmarks.variant_per_batch_live [--turns 4]`.

Two boxes that differ in `scheduler.variant_per_batch` only take turns on this machine, with the
same profiles of the bundled street family and the same cameras: three that stream all the time, and
three that join for a second and a half, every five seconds. Printed: the share of the frames that
was not on time, the mean accuracy of the answers, and their product, the accuracy-weighted goodput
relative to that of answering every frame on the largest variant.

Limits: the cameras compute on the same cores; other programs of this machine disturb deadlines.
"""

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click

from benchmarks.dynamic_boxes import RunningBox, serving
from benchmarks.vertical_live import copy_database
from edgebox.app.offline_profiling import measure_and_store
from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera
from edgebox.config.config_file import load
from edgebox.domain.model_family import VariantName
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.media.sources import PictureSource
from edgebox.media.typical import typical_pictures

CAMERAS = 3
BURST_S, EVERY_S = 1.5, 5.0
SLO_MS = 200.0


@dataclass
class Answered:
    """What a box answered in its turns."""

    captured: int = 0
    on_time: int = 0
    variants: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    def add(self, summary: Summary) -> None:
        """Add what came of a camera's frames; those whose camera left do not count."""
        self.captured += summary.captured - summary.dropped.get("departed", 0)
        self.on_time += summary.on_time
        self.variants.update(summary.variants)
        self.missed["late"] += summary.late
        self.missed.update({why: n for why, n in summary.dropped.items() if why != "departed"})

    def document(self, accuracies: Mapping[VariantName, float]) -> dict[str, object]:
        """Return the figures."""
        answers = sum(self.variants.values())
        accuracy = sum(
            accuracies[VariantName(name)] * n for name, n in self.variants.items()
        ) / max(1, answers)
        share = self.on_time / max(1, self.captured)
        return {
            "captured": self.captured,
            "missed_share": round(1 - share, 4),
            "missed": {why: count for why, count in self.missed.items() if count},
            "accuracy": round(accuracy, 4),
            "goodput": round(share * accuracy / max(accuracies.values()), 4),
        }


def write_config(folder: Path, *, per_batch: bool, used: float, database: Path) -> Path:
    """Write a box's configuration; return the file."""
    folder.mkdir(exist_ok=True)
    file = folder / "edgebox.toml"
    file.write_text(
        f'[server]\nport = 0\n[access]\nopen_to = "everybody"\n'
        f'[storage]\npath = "{database}"\n[inference]\nprofile_s = 20\n'
        f"[planner]\nutilisation_max = {used}\n"
        f"[scheduler]\nvariant_per_batch = {str(per_batch).lower()}\n",
        encoding="utf-8",
    )
    return file


def camera(box: RunningBox, name: str, rate_hz: float, seconds: float) -> Camera:
    """Return a camera that streams for so long."""
    pictures = typical_pictures()
    height_px, width_px = pictures[0].shape[:2]
    return Camera(
        PictureSource(
            (width_px, height_px),
            rate_hz,
            lambda number: pictures[number % len(pictures)],
            round(seconds * rate_hz),
        ),
        box.url.replace("http", "ws", 1),
        name=name,
        slo_ms=SLO_MS,
        rate_hz=rate_hz,
        min_rate_hz=rate_hz,
    )


async def turn(box: RunningBox, rate_hz: float, turn_s: float, answered: Answered) -> None:
    """Let the cameras stream for a while, and note what came of their frames."""

    async def burst(number: int) -> list[Summary]:
        await asyncio.sleep(number * EVERY_S)
        joining = [
            camera(box, f"motion-{at}", 2 * rate_hz / CAMERAS, BURST_S) for at in range(CAMERAS)
        ]
        return list(await asyncio.gather(*(each.run() for each in joining)))

    steady = [camera(box, f"steady-{at}", rate_hz / CAMERAS, turn_s) for at in range(CAMERAS)]
    bursts = [burst(number) for number in range(1, int(turn_s / EVERY_S))]
    found, more = await asyncio.gather(
        asyncio.gather(*(each.run() for each in steady)), asyncio.gather(*bursts)
    )
    for summary in [*found, *(each for of in more for each in of)]:
        answered.add(summary)


async def compare(rate_hz: float, used: float, turn_s: float, turns: int) -> dict[str, object]:
    """Return the figures of both boxes."""
    family = load_zoo(bundled_folders()).family("street")
    accuracies = {variant.name: variant.accuracy for variant in family.variants}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = folder / "measured.sqlite3"
        config = write_config(folder / "first", per_batch=False, used=used, database=measured)
        await measure_and_store(load(config, {}))
        async with AsyncExitStack() as stack:
            boxes: dict[bool, RunningBox] = {}
            for per_batch in (False, True):
                own = folder / str(per_batch) / "box.sqlite3"
                config = write_config(own.parent, per_batch=per_batch, used=used, database=own)
                await asyncio.to_thread(copy_database, measured, own)
                boxes[per_batch] = await stack.enter_async_context(serving(own.parent.name, config))
            answered = {False: Answered(), True: Answered()}
            for number in range(turns):
                for per_batch in (False, True) if number % 2 == 0 else (True, False):
                    await turn(boxes[per_batch], rate_hz, turn_s, answered[per_batch])
    return {
        "rate_hz": rate_hz,
        "utilisation_max": used,
        "load_average": [round(each, 2) for each in os.getloadavg()],
        "without": answered[False].document(accuracies),
        "with": answered[True].document(accuracies),
    }


@click.command()
@click.option("--rate-hz", default=15.0, show_default=True, help="Of the steady cameras together.")
@click.option("--utilisation-max", default=0.9, show_default=True)
@click.option("--turn-s", default=30.0, show_default=True)
@click.option("--turns", default=4, show_default=True)
def main(*, rate_hz: float, utilisation_max: float, turn_s: float, turns: int) -> None:
    """Print misses, accuracy and goodput without and with a variant for each batch."""
    found = asyncio.run(compare(rate_hz, utilisation_max, turn_s, turns))
    click.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
