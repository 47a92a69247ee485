"""Measures what an open page costs the box: `python -m benchmarks.viewers [--browser] [--json]`.

`edgebox serve` in a process of its own, 16 cameras at 10 frames/s in another, and by turns nobody
and one viewer of the overview: a program that reads the page's WebSocket as the page does, or a
real Chromium. The turns of a round follow each other, so what the machine does meanwhile meets
both; the server's CPU time is its process's, threads included.
"""

import asyncio
import base64
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import click
import uvloop

from benchmarks.cheap_model import FAMILY, write_family
from benchmarks.dynamic_boxes import serving
from benchmarks.ingest import CLIENT, PICTURE_PX, machine, picture, quantiles_ms
from benchmarks.links_machine import living_s

TARGET_PERCENT = 15.0
SLO_MS = 2_000.0
"""Far off: a frame that a busy machine makes late would be one that costs less."""
WINDOW = 8
SETTLE_S = 2.0
PATIENCE_S = 30.0
MODELS = ("cheap", "bundled")


class Client:
    """A process of benchmarks/ingest_client.py: cameras, a viewer, or both."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Use `client`."""
        self._process = process

    @property
    def cpu_s(self) -> float:
        """The CPU time of the process."""
        return living_s(self._process.pid)

    async def measured(self, seconds: float) -> dict[str, Any]:
        """Return what it sees in so many seconds.

        Raises:
            RuntimeError: it has failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"begin\n")
        await asyncio.sleep(seconds)
        self._process.stdin.write(b"end\n")
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE_S)
        if not line:
            raise RuntimeError("a client's process failed; see above")
        seen: dict[str, Any] = json.loads(line)
        return seen


@asynccontextmanager
async def client(url: str, **order: Any) -> AsyncIterator[Client]:
    """Run a client of the box at `url` meanwhile; the order is `ingest_client.Order`'s."""
    width_px, height_px = PICTURE_PX
    whole = {
        "port": int(url.rstrip("/").rpartition(":")[2]),
        "cameras": 0, "frames_hz": 0.0, "window": WINDOW, "slo_ms": SLO_MS,
        "jpeg": base64.b64encode(picture()).decode(), "width_px": width_px, "height_px": height_px,
        **order,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CLIENT),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(whole).encode() + b"\n")
        yield Client(process)
    finally:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE_S)
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def a_program(url: str) -> AsyncIterator[Callable[[float], Any]]:
    """View as the page does, without drawing; give what counts the frames it is shown a second."""
    async with client(url, viewers=1) as viewer:

        async def shown_hz(seconds: float) -> float:
            seen = await viewer.measured(seconds)
            return float(seen["shown"] / seconds)

        yield shown_hz


@asynccontextmanager
async def a_browser(url: str) -> AsyncIterator[Callable[[float], Any]]:
    """View with a real Chromium; give what counts the frames it draws a second."""
    from benchmarks.browser import launched  # noqa: PLC0415 - playwright only where it is needed

    async with launched() as browser:
        page = await browser.new_page(viewport={"width": 1600, "height": 1000})
        await page.goto(url)
        await page.wait_for_selector("canvas[data-frames]")

        async def drawn() -> int:
            frames: list[int] = await page.locator("canvas[data-frames]").evaluate_all(
                "all => all.map((one) => Number(one.dataset.frames))"
            )
            return sum(frames)

        async def shown_hz(seconds: float) -> float:
            before = await drawn()
            await asyncio.sleep(seconds)
            return (await drawn() - before) / seconds

        yield shown_hz


async def turn(pid: int, cameras: Client, viewer: Any, seconds: float) -> dict[str, Any]:
    """Measure one turn: the server's CPU time and the frames' latency."""
    await asyncio.sleep(SETTLE_S)
    began_s, cpu_s = time.monotonic(), living_s(pid)
    seen, shown_hz = await asyncio.gather(
        cameras.measured(seconds), viewer(seconds) if viewer else asyncio.sleep(0, 0.0)
    )
    percent = 100 * (living_s(pid) - cpu_s) / (time.monotonic() - began_s)
    return {
        "cpu_percent": round(percent, 2),
        "answer_ms": quantiles_ms(seen["answer_ns"]),
        "ack_ms": quantiles_ms(seen["ack_ns"]),
        "sent": seen["sent"],
        "skipped": seen["skipped"],
        "dropped": seen["dropped"],
        "shown_hz": round(shown_hz, 1),
    }


async def rounds(
    url: str,
    pid: int,
    view: Callable[[str], AbstractAsyncContextManager[Callable[[float], Any]]],
    cameras: Client,
    *,
    seconds: float,
    count: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the turns without and with a viewer, in pairs that take turns to begin."""
    without, viewed = [], []

    async def alone() -> None:
        without.append(await turn(pid, cameras, None, seconds))

    async def watched() -> None:
        async with view(url) as viewer:
            viewed.append(await turn(pid, cameras, viewer, seconds))

    for number in range(count):
        for part in (alone, watched) if number % 2 == 0 else (watched, alone):
            await part()
    return without, viewed


def summary(without: list[dict[str, Any]], viewed: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a viewer adds: medians over the pairs of turns."""

    def added(*path: str) -> float:
        def value(found: Any) -> float:
            for name in path:
                found = found[name]
            return float(found)

        pairs = zip(without, viewed, strict=True)
        return round(statistics.median(value(two) - value(one) for one, two in pairs), 2)

    return {
        "added_percent_of_a_core": added("cpu_percent"),
        "added_answer_ms": {name: added("answer_ms", name) for name in ("p50", "p99")},
        "added_ack_ms": {name: added("ack_ms", name) for name in ("p50", "p99")},
        "target": f"added_percent_of_a_core <= {TARGET_PERCENT:g}",
    }


def write_config(folder: Path, model: str) -> Path:
    """Write the box's configuration; return the file."""
    lines = [
        "[server]", "port = 0", "[access]", 'open_to = "everybody"',
        "[limits]", f"unacknowledged_max = {WINDOW}",
        "[storage]", 'path = "box.sqlite3"',
        "[[executors]]", 'device = "cpu"',
        "[inference]", "profile_s = 3",
    ]  # fmt: skip
    if model == "cheap":
        family = write_family(folder / FAMILY)
        lines += [f'families = ["{family.as_posix()}"]', f'family = "{FAMILY}"']
    file = folder / "edgebox.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


async def measure(
    model: str, cameras: int, rate_hz: float, *, browser: bool, seconds: float, count: int
) -> dict[str, Any]:
    """Return the turns and what a viewer adds."""
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), model)
        async with (
            serving(model, config) as box,
            client(box.url, cameras=cameras, frames_hz=cameras * rate_hz) as load,
        ):
            view = a_browser if browser else a_program
            without, viewed = await rounds(
                box.url, box.pid, view, load, seconds=seconds, count=count
            )
    return {"without": without, "with": viewed, **summary(without, viewed)}


def table(found: dict[str, Any]) -> str:
    """Return the figures for people."""
    lines = [f"{'':16}{'CPU, % of a core':>18}{'answer P50':>12}{'P99, ms':>9}{'shown/s':>9}"]
    for name in ("without", "with"):
        lines += [
            f"{name:16}{each['cpu_percent']:18.1f}{each['answer_ms']['p50']:12.1f}"
            f"{each['answer_ms']['p99']:9.1f}{each['shown_hz']:9.1f}"
            for each in found[name]
        ]
    added = found["added_answer_ms"]
    lines.append(
        f"{'a viewer adds':16}{found['added_percent_of_a_core']:18.1f}{added['p50']:12.1f}"
        f"{added['p99']:9.1f}   (medians of the pairs; at most {TARGET_PERCENT:g} %)"
    )
    return "\n".join(lines)


@click.command()
@click.option("--model", default=MODELS[0], show_default=True, type=click.Choice(MODELS))
@click.option("--browser", is_flag=True, help="View with a headless Chromium.")
@click.option("--cameras", default=16, show_default=True)
@click.option("--rate-hz", default=10.0, show_default=True, help="Of each camera.")
@click.option("--seconds", default=10.0, show_default=True, help="Of each turn.")
@click.option("--rounds", "count", default=5, show_default=True, help="A turn without and with.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    model: str,
    *,
    browser: bool,
    cameras: int,
    rate_hz: float,
    seconds: float,
    count: int,
    as_json: bool,
) -> None:
    """Measure what an open overview costs a box with live cameras."""
    about = {
        "machine": machine(), "model": model, "viewer": "chromium" if browser else "program",
        "cameras": cameras, "rate_hz": rate_hz, "seconds": seconds,
    }  # fmt: skip
    found = uvloop.run(
        measure(model, cameras, rate_hz, browser=browser, seconds=seconds, count=count)
    )
    if as_json:
        click.echo(json.dumps({**about, **found}, indent=1))
    else:
        click.echo(f"{json.dumps(about)}\n{table(found)}")


if __name__ == "__main__":
    main()
