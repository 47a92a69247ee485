"""Overload of a real box by real clients, by turns on several versions of edgebox:

    python -m benchmarks.overload_live [--part PART] [--code FOLDER]... [--turns N] [--json]

`edgebox serve` runs one variant of the bundled detector on one thread, in a process of its own, so
that its capacity is the same whatever it is sent. The clients are processes beside it on loopback.
Four established cameras, which obey their advice, are there all the time. Four parts:

goodput   36 cameras join that send 2, 4 and 10 times the box's capacity, whatever it advises and
          however long their frames wait
connect   500 cameras connect at once and send a frame a second, together more than the capacity
singles   64 programs ask for single pictures, each as soon as it is answered or refused
pages     50 pages are open, and four more cameras

goodput      answers on time per second, of all cameras
share        on-time share of the frames that the established cameras sent
recovery     from when the others leave until the established cameras have their share back
CPU          share of one core: the box, its event loop, the clients
per_cpu_s    answers on time per CPU second of the box, which other programs change little
"""

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import click
import uvloop

from benchmarks.dynamic_boxes import RunningBox, serving
from benchmarks.ingest import machine
from benchmarks.links_machine import living_s
from benchmarks.viewers import Client, client
from edgebox.inference.zoo import bundled_folders

VARIANT, FAMILY = "street-256", "one"
ESTABLISHED, CROWD, NEWCOMERS, PROGRAMS, PAGES = 4, 36, 500, 64, 50
FACTORS = (2.0, 4.0, 10.0)
WINDOW = 10_000
"""Frames that a camera of the crowd has at the box, unanswered: it never waits."""
SLO_MS = 500.0
WANTED_HZ = 400.0
"""What the established cameras would send in all, were they not advised to send less."""
LOAD = 0.75
"""Load of the established cameras where others should not be felt."""
RECOVERED = 0.95
"""The part of its earlier on-time share with which a camera has recovered."""
SETTLES_S = 4.0
STEP_S = 0.5
RECOVERY_MAX_S = 10.0
CONNECT_MAX_S = 60.0
PAGES_S = 60.0
"""The box says the lag of its last minute."""
_CONFIGURATION = """
[server]
port = 0
[access]
open_to = "everybody"
[storage]
path = "box.sqlite3"
[limits]
cameras_max = 1000
[inference]
families = ["family"]
family = "one"
profile_s = 4
[[executors]]
device = "cpu"
threads = 1
"""


def write_config(folder: Path) -> Path:
    """Write a box's configuration, with a family of one variant of the bundled one."""
    source, family = bundled_folders()[0], folder / "family"
    head, *variants = (source / "family.toml").read_text().split("[[variants]]")
    wanted = next(each for each in variants if f'"{VARIANT}"' in each)
    head = head.replace('name = "street"', f'name = "{FAMILY}"')
    family.mkdir()
    wanted = wanted.replace(VARIANT, f"{FAMILY}-256")
    (family / "family.toml").write_text(f"{head}[[variants]]{wanted}")
    for model in source.glob("*.onnx"):
        (family / model.name).symlink_to(model)
    file = folder / "edgebox.toml"
    file.write_text(_CONFIGURATION)
    return file


@dataclass(frozen=True, slots=True)
class Meter:
    """CPU times until an instant."""

    at_s: float
    box_s: float
    loop_s: float
    clients_s: float

    @classmethod
    def read(cls, box: RunningBox, clients: list[Client]) -> "Meter":
        """Read /proc."""
        loop = Path(f"/proc/{box.pid}/task/{box.pid}/schedstat").read_text().split()[0]
        seen_s = sum(each.cpu_s for each in clients)
        return cls(time.monotonic(), living_s(box.pid), int(loop) / 1e9, seen_s)

    def shares(self, before: "Meter") -> dict[str, float]:
        """Return the shares of a core since then."""
        passed_s = self.at_s - before.at_s
        return {
            name: round((getattr(self, f"{name}_s") - getattr(before, f"{name}_s")) / passed_s, 3)
            for name in ("box", "loop", "clients")
        }


def share(seen: dict[str, Any]) -> float:
    """Return the on-time share of what cameras sent."""
    on_time, sent = int(seen["on_time"]), int(seen["sent"])
    return round(on_time / max(1, sent), 3)


async def measured(box: RunningBox, seconds: float, *clients: Client) -> dict[str, Any]:
    """Return what clients see, the established cameras first."""
    before = Meter.read(box, list(clients))
    first, *others = await asyncio.gather(*(each.measured(seconds) for each in clients))
    everybody = [first, *others]
    on_time = sum(each["on_time"] for each in everybody)
    cpu = Meter.read(box, list(clients)).shares(before)
    return {
        "offered_hz": round(sum(each["sent"] for each in everybody) / seconds, 1),
        "goodput_hz": round(on_time / seconds, 1),
        "first_hz": round(first["on_time"] / seconds, 1),
        "share": share(first),
        "cpu": cpu,
        "per_cpu_s": round(on_time / seconds / max(cpu["box"], 1e-3), 1),
    }


async def recovery_s(first: Client, before: float) -> float | None:
    """Return how long the established cameras take to recover; None: too long."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < RECOVERY_MAX_S:
        if share(await first.measured(STEP_S)) >= RECOVERED * before:
            return round(time.monotonic() - began_s - STEP_S, 1)
    return None


async def goodput(box: RunningBox, seconds: float) -> dict[str, Any]:
    """Measure at capacity, and with cameras that ignore advice."""
    async with client(box.url, **_cameras("first-", ESTABLISHED, WANTED_HZ, obey=True)) as first:
        await asyncio.sleep(2 * SETTLES_S)
        found = {"1": await measured(box, seconds, first)}
        capacity_hz = found["1"]["goodput_hz"]
        for factor in FACTORS:
            beyond_hz = factor * capacity_hz - found["1"]["offered_hz"]
            async with client(box.url, **_cameras("crowd-", CROWD, beyond_hz)) as crowd:
                await asyncio.sleep(SETTLES_S)
                during = await measured(box, seconds, first, crowd)
            used = during["per_cpu_s"] / max(found["1"]["per_cpu_s"], 1e-9)
            during["of_capacity_per_cpu_s"] = round(used, 3)
            during["of_capacity"] = round(during["goodput_hz"] / capacity_hz, 3)
            during["recovery_s"] = await recovery_s(first, found["1"]["share"])
            found[f"{factor:g}"] = during
            await asyncio.sleep(SETTLES_S)
    return found


def _cameras(prefix: str, number: int, frames_hz: float, *, obey: bool = False) -> dict[str, Any]:
    return {
        "prefix": prefix,
        "cameras": number,
        "frames_hz": frames_hz,
        "obey": obey,
        "window": 2 if obey else WINDOW,
        "slo_ms": SLO_MS,
    }


async def _capacity_hz(box: RunningBox) -> float:
    """Return what cameras that obey are advised to send in all."""
    async with client(box.url, **_cameras("probe-", ESTABLISHED, WANTED_HZ, obey=True)) as probe:
        await asyncio.sleep(2 * SETTLES_S)
        return float((await measured(box, SETTLES_S, probe))["goodput_hz"])


async def connect(box: RunningBox, seconds: float) -> dict[str, Any]:
    """Measure while many cameras connect at once."""
    order = _cameras("first-", ESTABLISHED, LOAD * await _capacity_hz(box), obey=True)
    many = _cameras("many-", NEWCOMERS, float(NEWCOMERS), obey=True)
    async with client(box.url, **order) as first:
        await asyncio.sleep(SETTLES_S)
        found: dict[str, Any] = {"before": await measured(box, seconds, first)}
        before = Meter.read(box, [first])
        async with client(box.url, **many) as crowd:
            connecting = asyncio.create_task(_connecting(crowd))
            sent = on_time = 0
            while not connecting.done():
                seen = await first.measured(STEP_S)
                sent, on_time = sent + seen["sent"], on_time + seen["on_time"]
            found["connecting"] = await connecting
            found["connecting"]["share"] = share({"sent": sent, "on_time": on_time})
            passed_s = time.monotonic() - before.at_s
            used = Meter.read(box, [first, crowd]).shares(before)
            found["connecting"]["cpu_s"] = {k: round(v * passed_s, 2) for k, v in used.items()}
            found["after"] = await measured(box, seconds, first, crowd)
        found["recovery_s"] = await recovery_s(first, found["before"]["share"])
    return found


async def _connecting(crowd: Client) -> dict[str, Any]:
    """Wait until all cameras of a crowd are in; return how long it took from the first connect."""
    welcomed_s: list[float] = []
    began_s = time.monotonic()
    while len(welcomed_s) < NEWCOMERS and time.monotonic() - began_s < CONNECT_MAX_S:
        welcomed_s = [ns / 1e9 for ns in (await crowd.measured(STEP_S))["welcome_ns"]]
    return {"cameras": len(welcomed_s), "last_s": round(max(welcomed_s, default=0.0), 2)}


async def singles(box: RunningBox, seconds: float) -> dict[str, Any]:
    """Measure while programs ask for single pictures."""
    order = _cameras("first-", ESTABLISHED, LOAD * await _capacity_hz(box), obey=True)
    async with client(box.url, **order) as first:
        await asyncio.sleep(SETTLES_S)
        found: dict[str, Any] = {"before": await measured(box, seconds, first)}
        async with client(box.url, singles=PROGRAMS, slo_ms=SLO_MS) as programs:
            await asyncio.sleep(SETTLES_S)
            before = Meter.read(box, [programs])
            during, asked = await asyncio.gather(
                measured(box, seconds, first), programs.measured(seconds)
            )
            during["cpu"]["programs"] = Meter.read(box, [programs]).shares(before)["clients"]
            during["singles_answered_hz"] = round(asked["answered"] / seconds, 1)
            during["singles_refused_hz"] = round(asked["refused"] / seconds, 1)
            found["during"] = during
        found["recovery_s"] = await recovery_s(first, found["before"]["share"])
    return found


async def pages(box: RunningBox, seconds: float) -> dict[str, Any]:
    """Measure the event loop's lag without pages and with many; `seconds` is not used."""
    del seconds
    order = _cameras("first-", 2 * ESTABLISHED, LOAD * await _capacity_hz(box), obey=True)
    found: dict[str, Any] = {}
    async with client(box.url, **order) as first:
        await asyncio.sleep(SETTLES_S)
        found["without"] = await measured(box, PAGES_S, first)
        found["without"]["loop_lag_ms"] = await _lag_ms(box)
        async with client(box.url, viewers=PAGES) as viewers:
            await asyncio.sleep(SETTLES_S)
            during, seen = await asyncio.gather(
                measured(box, PAGES_S, first), viewers.measured(PAGES_S)
            )
            during["loop_lag_ms"] = await _lag_ms(box)
            during["shown_hz"] = round(seen["shown"] / PAGES_S, 1)
            during["cpu"]["viewers"] = round(viewers.cpu_s / (PAGES_S + SETTLES_S), 3)
            found["with"] = during
    return found


async def _lag_ms(box: RunningBox) -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{box.url.rstrip('/')}/v1/state") as answer,
    ):
        return (await answer.json())["box"]["loop_lag_ms"]


Part = Callable[[RunningBox, float], Awaitable[dict[str, Any]]]
PARTS: dict[str, Part] = {each.__name__: each for each in (goodput, connect, singles, pages)}


async def turn(part: str, code: Path, seconds: float) -> dict[str, Any]:
    """Measure one version once."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        config = write_config(Path(folder))
        try:
            async with serving(part, config, log.fileno(), code) as box:
                return await PARTS[part](box, seconds)
        except RuntimeError:
            sys.stderr.write((Path(folder) / "log").read_text())
            raise


def medians(found: list[Any]) -> Any:
    """Return the medians of figures that are at the same places of documents."""
    if isinstance(found[0], dict):
        return {name: medians([each[name] for each in found]) for name in found[0]}
    known = [each for each in found if each is not None]
    return statistics.median(known) if len(known) == len(found) else None


async def run(part: str, codes: list[Path], seconds: float, turns: int) -> dict[str, Any]:
    """Measure all versions by turns; return all turns and the medians."""
    found: dict[str, list[dict[str, Any]]] = {str(code): [] for code in codes}
    for number in range(turns):
        for code in codes if number % 2 == 0 else reversed(codes):
            found[str(code)].append(await turn(part, code, seconds))
            click.echo(f"{part} {code} {json.dumps(found[str(code)][-1])}", err=True)
    return {code: {"medians": medians(of), "turns": of} for code, of in found.items()}


@click.command()
@click.option("--part", type=click.Choice(list(PARTS)), default="goodput", show_default=True)
@click.option(
    "--code",
    "codes",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A checkout whose box is measured, as often as wanted.  [default: this one]",
)
@click.option("--turns", default=3, show_default=True, help="Of each checkout.")
@click.option("--seconds", default=8.0, show_default=True, help="Of each measurement.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(*, part: str, codes: tuple[Path, ...], turns: int, seconds: float, as_json: bool) -> None:
    """Overload boxes."""
    with contextlib.suppress(KeyboardInterrupt):
        figures = uvloop.run(run(part, list(codes) or [Path()], seconds, turns))
        document = {"machine": machine(), "part": part, "seconds": seconds, "boxes": figures}
        click.echo(json.dumps(document, indent=None if as_json else 1))


if __name__ == "__main__":
    main()
