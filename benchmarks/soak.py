"""A box for hours, with real frames: python -m benchmarks.soak --samples FILE --hours 2 [--json]

`edgebox serve` in a process of its own, on a folder that is removed at the end. In this process
real cameras stream JPEGs to it over loopback: some stay, one over a link that changes every second;
some come and go, under one name or many. Programs send single pictures and read the API, and a page
is opened and closed. What the box needs is sampled: memory, descriptors, threads, tasks, the
database and its log. Printed is how each developed: the slope over the second half, and its 95 %
interval.

The exit status is 1 if a slope is above its bound, if a client failed, or if frames were lost count
of. Every sample is written to FILE at once; without --hours, the samples in FILE are read.
"""

import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import click
import uvloop
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.cheap_model import FAMILY, write_family
from benchmarks.dynamic_boxes import RunningBox, serving
from benchmarks.ingest import machine
from benchmarks.links_machine import living_s
from benchmarks.soak_load import Load
from benchmarks.soak_slopes import Quantity, slopes, table
from edgebox.camera.shutdown import on_end_signals

MB = 1e6
QUANTITIES = (
    # The whole of what is resident: shares of it (Pss) change with what other programs map.
    Quantity("resident", "MB", MB, 4.0),
    Quantity("private memory", "MB", MB, 4.0),
    Quantity("python blocks", "1000", 1e3, 20.0),
    Quantity("descriptors", "", 1, 1.0),
    Quantity("threads", "", 1, 0.5),
    Quantity("tasks", "", 1, 1.0),
    Quantity("database", "MB", MB, 10.0),
    Quantity("database log", "MB", MB, 2.0),
    Quantity("messages", "MB", MB, 0.1),
    Quantity("other files", "MB", MB, 0.1),
    Quantity("clients", "MB", MB, None),
    Quantity("cpu", "% core", 1, None),
)
MODELS = ("bundled", "cheap")
DATABASE = "box.sqlite3"
SAMPLES_KEPT = 120
"""Samples in the document: a run's own file has all of them."""


def write_config(folder: Path, model: str) -> Path:
    """Write the box's configuration; return the file."""
    lines = [
        "[server]", "port = 0", "[access]", 'open_to = "everybody"',
        "[storage]", f'path = "{DATABASE}"',
        "[[executors]]", 'device = "cpu"', "threads = 1",
        "[inference]", "profile_s = 5",
    ]  # fmt: skip
    if model == "cheap":
        family = write_family(folder / FAMILY)
        lines += [f'families = ["{family.as_posix()}"]', f'family = "{FAMILY}"']
    file = folder / "edgebox.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


class Sampler:
    """Reads what a box needs, from /proc, its folder and its metrics."""

    def __init__(self, box: RunningBox, folder: Path) -> None:
        """Begin now."""
        self._box = box
        self._folder = folder
        self._began_s = self._at_s = time.monotonic()
        self._cpu_s = living_s(box.pid)

    async def sample(self) -> dict[str, float]:
        """Return one sample."""
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{self._box.url}/metrics") as response,
        ):
            scraped = values(await response.text())
        proc = Path(f"/proc/{self._box.pid}")
        now_s, cpu_s = time.monotonic(), living_s(self._box.pid)
        percent = 100 * (cpu_s - self._cpu_s) / max(1e-3, now_s - self._at_s)
        self._at_s, self._cpu_s = now_s, cpu_s
        memory = smaps(proc)
        return {
            "at_s": round(now_s - self._began_s, 1),
            "resident": memory["Rss"],
            "private memory": memory["Private_Clean"] + memory["Private_Dirty"],
            "python blocks": scraped["edgebox_python_blocks"],
            "descriptors": _entries(proc / "fd"),
            "threads": _entries(proc / "task"),
            "tasks": scraped["edgebox_tasks"],
            **self._files(),
            "clients": smaps(Path("/proc/self"))["Rss"],
            "cpu": round(percent, 2),
            "captured": scraped["captured"],
            "on time": scraped["on time"],
            "late": scraped["late"],
            "dropped": scraped["dropped"],
            "pending": scraped["edgebox_queue_length"],
        }

    def _files(self) -> dict[str, int]:
        """Return the sizes of what lies in the box's folder."""
        kinds = {
            DATABASE: "database",
            f"{DATABASE}-wal": "database log",
            "messages.txt": "messages",
        }
        sizes = dict.fromkeys([*kinds.values(), "other files"], 0)
        for file in self._folder.rglob("*"):
            if file.is_file() and file.suffix != ".onnx":
                sizes[kinds.get(file.name, "other files")] += file.stat().st_size
        return sizes


def _entries(folder: Path) -> int:
    return len(list(folder.iterdir()))


def values(text: str) -> dict[str, float]:
    """Return what a scrape has that is sampled."""
    found = dict.fromkeys(("captured", "on time", "late", "dropped"), 0.0)
    for family in text_string_to_metric_families(text):
        if family.name == "edgebox_box_frames":
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    outcome = sample.labels["outcome"].replace("_", " ")
                    found[outcome] += sample.value
                    found["captured"] += sample.value
        elif family.name in {"edgebox_python_blocks", "edgebox_tasks", "edgebox_queue_length"}:
            found[family.name] = family.samples[0].value
    return found


def smaps(proc: Path) -> dict[str, int]:
    """Return a process's memory in bytes, by the kernel's names."""
    lines = (proc / "smaps_rollup").read_text().splitlines()[1:]
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in map(str.split, lines)}


async def soak(
    hours: float, every_s: float, file: Path, about: dict[str, Any], *, seed: int
) -> None:
    """Run a box with its clients, or until SIGTERM; append each sample to a file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_config(folder, about["model"])
        with (folder / "messages.txt").open("wb") as messages, file.open("w") as out:
            async with serving("soak", config, messages.fileno()) as box:
                load = Load(box.url, about["cameras"], about["rate_hz"], random.Random(seed))
                sampler = Sampler(box, folder)
                out.write(json.dumps({"about": {**about, "pid": box.pid}}) + "\n")
                end_s = time.monotonic() + 3600 * hours
                stopped = asyncio.Event()
                on_end_signals(stopped.set)
                async with load.running():
                    while time.monotonic() < end_s and not stopped.is_set():
                        wait_s = min(every_s, max(0.0, end_s - time.monotonic()))
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(stopped.wait(), wait_s)
                        out.write(json.dumps(await sampler.sample()) + "\n")
                        out.flush()
                state = await box.state()
            ended = {"clients_saw": dict(load.counts), "box_counted": state["box"]["counts"]}
            ended["messages_bytes"] = messages.tell()
            out.write(json.dumps({"ended": ended}) + "\n")


def read(file: Path) -> dict[str, Any]:
    """Return a run's options, samples and end, as far as they were written."""
    run: dict[str, Any] = {"samples": []}
    for line in file.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):  # the last line may be half written
            each = json.loads(line)
            if "at_s" in each:
                run["samples"].append(each)
            else:
                run.update(each)
    return run


def adds_up(counts: dict[str, Any]) -> bool:
    """Return whether every frame has ended in one way."""
    dropped = sum(counts["dropped"].values())
    ended = counts["on_time"] + counts["late"] + dropped + counts["pending"]
    return bool(counts["captured"] == ended)


def document(run: dict[str, Any]) -> dict[str, Any]:
    """Return what a run showed.

    Raises:
        click.ClickException: it was too short.
    """
    samples = run["samples"]
    found = slopes(samples, QUANTITIES)
    if found is None:
        raise click.ClickException(f"{len(samples)} samples are too few; let it run longer")
    last = samples[-1]
    return {
        **run["about"],
        "hours": round(last["at_s"] / 3600, 2),
        "samples": len(samples),
        "on_time_share": round(last["on time"] / max(1, last["captured"]), 4),
        "slopes": {each.quantity.name: each.document() for each in found},
        **run.get("ended", {}),
        "series": samples[:: -(-len(samples) // SAMPLES_KEPT)],
    }


@click.command()
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="None: read the samples.")
@click.option("--samples", "file", type=click.Path(path_type=Path, dir_okay=False), required=True)
@click.option("--every-s", default=15.0, show_default=True, help="Between samples.")
@click.option("--model", default=MODELS[0], show_default=True, type=click.Choice(MODELS))
@click.option("--cameras", default=3, show_default=True, help="That stay; two come and go.")
@click.option("--rate-hz", default=1.0, show_default=True, help="Of each camera.")
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    *,
    hours: float | None,
    file: Path,
    every_s: float,
    model: str,
    cameras: int,
    rate_hz: float,
    seed: int,
    as_json: bool,
) -> None:
    """Let a box run for hours and see what grows."""
    if hours is not None:
        about = {"machine": machine(), "model": model, "cameras": cameras, "rate_hz": rate_hz}
        uvloop.run(soak(hours, every_s, file, about, seed=seed))
    run = read(file)
    shown = document(run)
    if as_json:
        click.echo(json.dumps(shown, indent=1))
    else:
        found = slopes(run["samples"], QUANTITIES)
        assert found is not None
        counted = {name: shown.get(name) for name in ("clients_saw", "box_counted")}
        click.echo(f"{shown['hours']} h, {shown['on_time_share']:.1%} on time; {counted}")
        click.echo(table(found))
    wrong = [name for name, each in shown["slopes"].items() if each["verdict"] == "ABOVE"]
    if "box_counted" in shown and not adds_up(shown["box_counted"]):
        wrong.append("counts")
    if wrong:
        click.echo(f"too much: {', '.join(wrong)}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
