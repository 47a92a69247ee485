"""The important figures, compared with the committed ones: python -m benchmarks.regression.

In about five minutes. What is simulated must come out the same. What is timed is a ratio of two
things in one run: to a fixed piece of Python work, to bare ONNX Runtime, to another library. Other
programs only ever make such a figure worse, so one that seems worse is measured again, up to three
times, and the best counts. Ends with status 1 if any is worse than its tolerance allows.

--update    commit what is measured now, instead
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path

import click
import uvloop
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks import adaptation, decisions, ingest, overload, planning, scheduler
from benchmarks.ingest import machine, picture
from benchmarks.peers.__main__ import measure as measure_peer
from benchmarks.peers.known import PEERS
from edgebox.media.jpeg import decode

RESULTS = Path(__file__).with_name("results") / "regression.json"
TRIES = 3
SAME = 0.002
"""Simulations are rounded to three places."""
CPU = 0.15
WALL = 0.2
MEMORY = 0.05
PEER_S = 3.0
STREAM_S = 4.0
STREAM_CAMERAS = 8
CORES_OF_PEERS = 2
START_MAX_S = 120

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a figure may be from the committed one."""

    share: float = 0.0
    """Of the committed figure; a timed figure may be so much worse."""
    more_is_better: bool = False
    absolute: float = 0.0
    """In the figure's unit, either way: of a simulation, which must come out the same."""

    def holds(self, committed: float, now: float) -> bool:
        """Return whether a figure is as good as the committed one."""
        if self.absolute:
            return abs(now - committed) <= self.absolute
        worse = committed - now if self.more_is_better else now - committed
        return worse <= self.share * abs(committed)

    def better(self, one: float, other: float) -> float:
        """Return the better of two measurements."""
        return max(one, other) if self.more_is_better else min(one, other)


@dataclass(frozen=True, slots=True)
class Part:
    """Figures that are measured together."""

    measure: Callable[[], Figures]
    tolerances: dict[str, Tolerance]


def reference_us() -> float:
    """Return the CPU time of a fixed piece of Python work: calls, a heap of tuples, look-ups."""

    def work() -> int:
        seen: dict[int, int] = {}
        for number in range(2_000):
            key = number * 7_919 % 509
            seen[key] = max(seen.get(key, 0), min(number, key))
        return len(sorted(seen.items(), key=lambda pair: -pair[1]))

    took = []
    for _ in range(50):
        started_ns = time.thread_time_ns()
        work()
        took.append((time.thread_time_ns() - started_ns) / 1e3)
    return statistics.median(took)


def core() -> Figures:
    """Return what the core costs, in thousandths of the reference work."""
    before_us = reference_us()
    us = {
        policy: decisions.measure(
            policy, cameras=1_000, rate_hz=10.0, apps=1, variants=1, executors=1, seconds=2.0
        )["us_per_frame"]
        for policy in ("adaptive", "edf")
    }
    waiting = scheduler.measure(100, 1_000, "adaptive", scheduler.ONE_PX)
    plan_ms = planning.plan_ms(100, 2, 1.0, (1, 2, 3), new=True)
    per_mille = 1_000 * 2 / (before_us + reference_us())
    return {
        "core: a frame of 1,000 cameras": us["adaptive"] * per_mille,
        "core: the same, adaptive / edf": us["adaptive"] / us["edf"],
        "core: a decision with 100 waiting": waiting["BatchCompleted"]["p50_us"] * per_mille,
        "core: a plan for 100 cameras": plan_ms * 1e3 * per_mille,
    }


def streamed() -> Figures:
    """Return what a frame costs the event loop, in thousandths of the reference work.

    Eight cameras send as fast as they are answered, over real sockets; nothing is inferred.
    """
    before_us = reference_us()
    found = uvloop.run(ingest.throughput(STREAM_S, "adaptive", ingest.order_of(STREAM_CAMERAS)))
    per_mille = 1_000 * 2 / (before_us + reference_us())
    return {"stream: a frame on the event loop": found["loop_cpu_us_per_frame"] * per_mille}


def simulated(name: str) -> Figures:
    """Return figures of cameras that ignore advice."""
    found = overload.measure(overload.SETTINGS[name])
    return {
        f"overload, {name}: goodput": found.goodput_of_capacity,
        f"overload, {name}: first cameras": found.share,
    }


def adapted(link: str) -> Figures:
    """Return figures of cameras behind a link, in closed loop."""
    found = adaptation.measure(
        "8-cameras-100-ms-15-hz", adaptation.MADE_UP[link], adaptation.OURS, 1
    )
    return {
        f"adaptation, {link}: misses": round(found["miss_rate"], 3),
        f"adaptation, {link}: accuracy": round(found["accuracy"], 3),
    }


def decoding() -> Figures:
    """Return the CPU time of decoding a picture, next to Pillow's."""
    jpeg = picture()

    def pillow() -> None:
        Image.open(BytesIO(jpeg)).convert("RGB").load()

    def median_ns(work: Callable[[], object]) -> float:
        took = []
        for _ in range(60):
            started_ns = time.thread_time_ns()
            work()
            took.append(time.thread_time_ns() - started_ns)
        return statistics.median(took)

    return {"decoding / Pillow": median_ns(partial(decode, jpeg)) / median_ns(pillow)}


def start() -> Figures:
    """Return how soon a box with known profiles answers, next to imports alone, and its memory."""
    imports = "import aiohttp, numpy, onnxruntime"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _answered(folder)  # it measures its models
        took, mb = zip(*(_answered(folder) for _ in range(3)), strict=True)
        bare = []
        for _ in range(3):
            started_s = time.monotonic()
            subprocess.run([sys.executable, "-c", imports], check=True)
            bare.append(time.monotonic() - started_s)
    return {
        "start to first answer / imports": min(took) / min(bare),
        "memory after it, MB": statistics.median(mb),
    }


def _answered(folder: Path) -> tuple[float, float]:
    """Start a box, have it answer a picture, end it; return seconds until then and MB."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = f'[server]\nport = {port}\n[access]\nopen_to = "everybody"\n'
    (folder / "edgebox.toml").write_text(config)
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    command = [sys.executable, "-m", "edgebox", "serve", "--config", "edgebox.toml"]
    started_s = time.monotonic()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as box:
        try:
            _ask(f"http://127.0.0.1:{port}/v1/infer?deadline_ms=5000")
            took_s = time.monotonic() - started_s
            status = Path(f"/proc/{box.pid}/status").read_text()
        finally:
            box.terminate()
    rss_kb = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return took_s, int(rss_kb) / 1e3


def _ask(url: str) -> None:
    """Have a picture answered, as soon as the box takes it."""
    until_s = time.monotonic() + START_MAX_S
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(url, picture()), timeout=60).read()
        except OSError:  # it does not listen yet, or is not ready
            if time.monotonic() > until_s:
                raise
            time.sleep(0.02)
        else:
            return


def served(name: str) -> Figures:
    """Return figures of a box next to bare ONNX Runtime."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure_peer(PEERS[name], Path(folder), Path(folder), PEER_S))
    median_ms = statistics.mean(found["bare"]["median_ms"])
    return {
        f"{name}: latency / bare": found["latency_ms"]["median"] / median_ms,
        f"{name}: throughput / bare": found["throughput"],
        f"{name}: goodput at 3x / bare": found["goodput"]["3"],
    }


def _parts() -> dict[str, Part]:
    timed, more = Tolerance(CPU), Tolerance(WALL, more_is_better=True)
    same, wall = Tolerance(absolute=SAME), Tolerance(WALL)
    parts = {
        "core": Part(
            core,
            {
                "core: a frame of 1,000 cameras": timed,
                "core: the same, adaptive / edf": timed,
                "core: a decision with 100 waiting": timed,
                "core: a plan for 100 cameras": timed,
            },
        ),
        "stream": Part(streamed, {"stream: a frame on the event loop": timed}),
        "decoding": Part(decoding, {"decoding / Pillow": timed}),
        "start": Part(
            start,
            {"start to first answer / imports": wall, "memory after it, MB": Tolerance(MEMORY)},
        ),
    }
    for name in ("decoding on other cores", "decoding shares the executor's cores"):
        figures = (f"overload, {name}: goodput", f"overload, {name}: first cameras")
        parts[f"overload, {name}"] = Part(partial(simulated, name), dict.fromkeys(figures, same))
    for link in ("steps", "lte"):
        figures = (f"adaptation, {link}: misses", f"adaptation, {link}: accuracy")
        parts[f"adaptation, {link}"] = Part(partial(adapted, link), dict.fromkeys(figures, same))
    for name in ("edgebox /v2", "edgebox /v1/infer") if _has_cores() else ():
        tolerances = {f"{name}: latency / bare": wall}
        tolerances |= {f"{name}: {what} / bare": more for what in ("throughput", "goodput at 3x")}
        parts[name] = Part(partial(served, name), tolerances)
    return parts


def _has_cores() -> bool:
    return len(os.sched_getaffinity(0)) >= CORES_OF_PEERS


def measured(part: Part, committed: Figures) -> Figures:
    """Return a part's figures; of those that seem worse, the best of several measurements."""
    best = part.measure()
    for _ in range(TRIES - 1):
        worse = any(
            name in committed and not tolerance.holds(committed[name], best[name])
            for name, tolerance in part.tolerances.items()
            if not tolerance.absolute
        )
        if not worse:
            break
        again = part.measure()
        best = {name: part.tolerances[name].better(best[name], again[name]) for name in best}
    return best


def verdict(tolerance: Tolerance, committed: float | None, now: float) -> str:
    """Return what to say of a figure."""
    if committed is None:
        return "new"
    if not tolerance.holds(committed, now):
        return "differs" if tolerance.absolute else "worse"
    better = tolerance.share and not Tolerance(tolerance.share, not tolerance.more_is_better).holds(
        committed, now
    )
    return "better" if better else "as committed"


@click.command()
@click.option("--part", "names", multiple=True, help="Only these; without: all.")
@click.option("--update", is_flag=True, help="Commit what is measured now.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(*, names: Iterable[str], update: bool, as_json: bool) -> None:
    """Compare the important figures with the committed ones."""
    parts, committed = _parts(), dict[str, float]()
    if RESULTS.exists():
        committed = json.loads(RESULTS.read_text())["figures"]
    if unknown := sorted(set(names) - set(parts)):
        raise click.UsageError(f"no part {', '.join(unknown)}; there are {', '.join(parts)}")
    found, verdicts = dict[str, float](), dict[str, str]()
    for at, name in enumerate(chosen := [each for each in parts if each in names or not names]):
        click.echo(f"{at + 1} of {len(chosen)}: {name}", err=True)
        part = parts[name]
        now = measured(part, {} if update else committed)
        found |= {figure: round(value, 3) for figure, value in now.items()}
        verdicts |= {
            figure: verdict(part.tolerances[figure], committed.get(figure), found[figure])
            for figure in now
        }
    document = {"machine": machine(), "figures": committed | found if names else found}
    if update:
        RESULTS.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    if as_json:
        click.echo(json.dumps({**document, "verdicts": verdicts}, indent=1))
    else:
        _show(committed, found, verdicts)
    if not update and {"worse", "differs"} & set(verdicts.values()):
        raise SystemExit(1)


def _show(committed: Figures, found: Figures, verdicts: dict[str, str]) -> None:
    table = Table("figure", "committed", "now", "")
    colours = {"worse": "red", "differs": "red", "better": "green"}
    for name, now in found.items():
        said = verdicts[name]
        before = f"{committed[name]:g}" if name in committed else ""
        table.add_row(name, before, f"{now:g}", said, style=colours.get(said))
    Console().print(table)


if __name__ == "__main__":
    main()
