"""Measures a whole box: what its plan promises cameras, and what they see.

`edgebox serve` runs in a process of its own, with real sockets and JPEGs of a street. Cameras are
in other processes on the same machine (`ingest_client.py`); they send the size and the rate that
the box advises, and encode nothing.

planned_hz         frames/s that the plan gives the cameras, the mean over the measurement
planned_accuracy   mean accuracy of these frames, by the variant advised
seen_accuracy      mean accuracy of the answers on time, by the variant that they are from
promised           share on time that the plan is made for: batches that last longer are rarer
on_time            share on time of the frames that ended: answered or dropped
box, cameras       cores that each used
behind_p99_ms      how late the cameras' processes themselves were with frames
limit              what else than the box may have been the limit; empty: nothing
"""

import asyncio
import base64
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.dynamic_boxes import RunningBox, serving
from benchmarks.gpu_half import streets
from benchmarks.gpu_points import Setup
from benchmarks.gpu_results import Figures, Row
from benchmarks.ingest import quantiles_ms
from benchmarks.links_machine import living_s
from benchmarks.viewers import client
from edgebox.config.config_file import Config
from edgebox.domain.errors import ModelError
from edgebox.domain.picture_size import send_size
from edgebox.inference.family import Family
from edgebox.inference.machine import usable_cores
from edgebox.media.jpeg import encode, resize_rgb

RATE_HZ = 10.0
FRAMES_HZ_MAX = 400.0
"""Of one process of cameras."""
SETTLES_S = 8.0
SAMPLE_S = 1.0
PATIENCE_S = 400.0
"""Until the box is ready: it measures all variants."""
BUSY = 0.9
"""Share of a core, or of all, from which it was a limit."""
BEHIND_MS = 20.0
"""A camera's process that is later with frames at the P99 was itself a limit."""
WINDOW = 4
"""Frames that a camera has at the box without an ack."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is served."""

    slo_ms: float
    seconds: float
    executor: tuple[str, ...]
    """Further lines of the box's `[[executors]]`, such as "streams = 2"."""


def rows(setup: Setup, counts: Sequence[int], load: Load) -> Iterator[Row]:
    """Yield a row for each number of cameras."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_config(folder, setup, load)
        sizes = pictures(setup.family)
        also = "".join(f" {line}" for line in load.executor)
        for count in counts:

            def measure(count: int = count) -> Figures:
                return asyncio.run(_measure(setup.family, config, count, load, sizes))

            yield Row(f"{count} cameras{also}", measure)


def write_config(folder: Path, setup: Setup, load: Load) -> Path:
    """Write the box's configuration; return the file."""
    lines = [
        "[server]", "port = 0", "[access]", 'open_to = "everybody"',
        "[limits]", "cameras_max = 1000",
        "[storage]", 'path = "box.sqlite3"',
        "[inference]", f"profile_s = {20 if setup.device == 'cuda' else 4}",
        "[[executors]]", f'device = "{setup.device}"', *load.executor,
    ]  # fmt: skip
    file = folder / "edgebox.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def pictures(family: Family) -> dict[str, str]:
    """Return a street as a camera of 1280 x 720 px sends it, in base64, by every size advised."""
    rgb = streets(1)[0].rgb
    sizes = {send_size(1280, 720, variant) for variant in family.variants} | {(1280, 720)}
    return {
        f"{width_px}x{height_px}": base64.b64encode(
            encode(resize_rgb(rgb, width_px, height_px))
        ).decode()
        for width_px, height_px in sizes
    }


async def _measure(
    family: Family, config: Path, cameras: int, load: Load, sizes: Mapping[str, str]
) -> Figures:
    accuracies: dict[str, float] = {variant.name: variant.accuracy for variant in family.variants}
    processes = math.ceil(cameras * RATE_HZ / FRAMES_HZ_MAX)
    log = config.parent / "log"
    with log.open("ab") as messages:
        try:
            async with AsyncExitStack() as stack:
                box = await stack.enter_async_context(
                    serving("box", config, messages.fileno(), patience_s=PATIENCE_S)
                )
                clients = []
                for number in range(processes):
                    # As many each as possible, one more in the first ones.
                    mine = cameras // processes + (number < cameras % processes)
                    order = {
                        "prefix": f"camera-{number}-", "cameras": mine,
                        "frames_hz": mine * RATE_HZ, "slo_ms": load.slo_ms, "obey": True,
                        "window": WINDOW, "width_px": 1280, "height_px": 720,
                        "jpeg": sizes["1280x720"], "sizes": dict(sizes),
                    }  # fmt: skip
                    clients.append(await stack.enter_async_context(client(box.url, **order)))
                await asyncio.sleep(SETTLES_S)
                plans = asyncio.create_task(_plans(box, load.seconds))
                box_s = living_s(box.pid)
                seen = await asyncio.gather(*(each.measured(load.seconds) for each in clients))
                box_cores = (living_s(box.pid) - box_s) / load.seconds
                return figures(
                    await plans, seen, accuracies, seconds=load.seconds, box_cores=box_cores
                ) | {"processes": processes}
        except (RuntimeError, TimeoutError) as error:
            sys.stderr.write(log.read_text(encoding="utf-8"))
            raise ModelError(f"the box or its cameras failed: {error}") from error


async def _plans(box: RunningBox, seconds: float) -> list[list[tuple[str, float]]]:
    """Return what the plan gave each connected camera, sampled: the variant and the rate."""
    samples = []
    for _ in range(max(1, round(seconds / SAMPLE_S) - 1)):
        state = await box.state()
        samples.append(
            [
                (camera["advice"]["variant"], camera["advice"]["rate_hz"])
                for camera in state["cameras"]
                if camera["connected"]
            ]
        )
        await asyncio.sleep(SAMPLE_S)
    return samples


def figures(
    plans: Sequence[Sequence[tuple[str, float]]],
    seen: Sequence[Mapping[str, Any]],
    accuracies: Mapping[str, float],
    *,
    seconds: float,
    box_cores: float,
) -> Figures:
    """Return what the plan promised beside what cameras saw.

    Args:
        plans: of each sample, the variant and rate of each camera.
        seen: what each process of cameras saw.
        accuracies: by variant.
        seconds: how long it was measured.
        box_cores: that the box used.
    """
    planned_hz = statistics.mean(sum(rate for _, rate in plan) for plan in plans)
    worth_hz = statistics.mean(
        sum(accuracies[variant] * rate for variant, rate in plan) for plan in plans
    )
    answers: dict[str, int] = {}
    for each in seen:
        for variant, count in each["variants"].items():
            answers[variant] = answers.get(variant, 0) + count
    on_time = sum(answers.values())
    sent = sum(each["sent"] for each in seen)
    dropped = sum(each["dropped"] for each in seen)
    ended = dropped + sum(len(each["answer_ns"]) for each in seen)
    answer_ms = quantiles_ms([ns for each in seen for ns in each["answer_ns"]])
    shares = [each["cpu_s"] / seconds for each in seen]
    behind_ms = max(quantiles_ms(each["behind_ns"])["p99"] for each in seen)
    return {
        "planned_hz": planned_hz,
        "sent_hz": sent / seconds,
        "promised": Config().scheduler.high_quantile,
        "on_time": on_time / max(1, ended),
        "planned_accuracy": worth_hz / max(1e-9, planned_hz),
        "seen_accuracy": sum(accuracies[name] * count for name, count in answers.items())
        / max(1, on_time),
        "answer_p50_ms": answer_ms["p50"],
        "answer_p99_ms": answer_ms["p99"],
        "dropped": dropped,
        "skipped": sum(each["skipped"] for each in seen),
        "box": box_cores,
        "cameras": sum(shares),
        "behind_p99_ms": behind_ms,
        "limit": limit(max(shares), behind_ms, box_cores + sum(shares), usable_cores()),
        "variants": answers,
    }


def limit(busiest: float, behind_ms: float, used: float, cores: int) -> str:
    """Return what else than the box may have been the limit; empty: nothing.

    Args:
        busiest: cores that the busiest process of cameras used.
        behind_ms: how late a process of cameras was with its frames, P99.
        used: cores that the box and the cameras used together.
        cores: that there are.
    """
    if busiest > BUSY:
        return "a process of cameras used a whole core"
    if used > BUSY * cores:
        return "the box and the cameras used all cores"
    if behind_ms > BEHIND_MS:
        return "the cameras were late themselves"
    return ""
