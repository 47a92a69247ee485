"""The bundled pipeline for real and simulated: `python -m benchmarks.pipelines_live [--rate-hz 5]`.

Starts `edgebox serve` with `street` and then `vehicles`, which measures this machine, and
`edgebox camera scene:SEED` for each camera. What the box found each second becomes the objects of
a scenario, which `edgebox simulate pipelines` runs with the box's own profiles. Both are printed.

Limits: cameras take a part of the same processor, which the simulation does not know; links carry
everything; a picture shows as many objects as the box found in it.
"""

import asyncio
import json
import signal
import socket
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import click

LABELS = ("car", "bus", "truck")
SEEDS = (11, 12, 13, 14)
"""Seeds of the streets that the cameras look at."""
WARMUP_S = 10
READY_S = 300
EDGEBOX = (sys.executable, "-m", "edgebox")
STAGES = f"""
name = "cars"
[[pipelines.stages]]
name = "street"
family = "street"
[[pipelines.stages]]
name = "vehicle"
family = "vehicles"
after = ["street"]
labels = {list(LABELS)}
crops_max = 32
"""

FILTERS = "score_min = 0.3\nside_min_px = 1\n"
"""So that every object of a result is looked at."""


@dataclass
class Seen:
    """What a box said of its frames, from the first one on."""

    until_s: float
    frames: Counter[str] = field(default_factory=Counter)
    """By outcome; `partial`: on time, without an answer for some object."""
    objects: int = 0
    """Answered by the last stage, on time."""
    counts: dict[str, dict[int, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """How many objects each answered picture of a camera showed, by second."""

    def note(self, result: dict[str, Any], at_s: float) -> None:
        """Note one result."""
        found = [each for each in result.get("detections", ()) if each["label"] in LABELS]
        if result["type"] == "result":
            self.counts[result["camera"]][int(at_s)].append(len(found))
        if not WARMUP_S <= at_s < self.until_s:
            return
        self.frames[result["outcome"]] += 1
        if result["outcome"] == "on_time":
            self.objects += sum("stages" in each for each in found)
            self.frames["partial"] += "missing" in result


@asynccontextmanager
async def serving(folder: Path, port: int) -> AsyncIterator[str]:
    """Run a box until the end of the block; yield its address once it is ready."""
    config = folder / "edgebox.toml"
    config.write_text(
        f'[server]\nport = {port}\n[access]\nopen_to = "everybody"\n'
        f'[storage]\npath = "box.sqlite3"\n'
        f'[[executors]]\ndevice = "cpu"\n[inference]\nprofile_s = 3\n[[pipelines]]{STAGES}{FILTERS}'
    )
    box = await asyncio.create_subprocess_exec(
        *EDGEBOX, "serve", "--config", str(config), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            for _ in range(READY_S):
                try:
                    async with client.get("/readyz") as answer:
                        if answer.status == 200:
                            break
                except aiohttp.ClientConnectionError:
                    pass
                await asyncio.sleep(1)
            else:
                raise click.ClickException(f"the box was not ready after {READY_S} s")
        yield f"127.0.0.1:{port}"
    finally:
        box.send_signal(signal.SIGTERM)
        await box.wait()


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def listen(address: str, seen: Seen) -> None:
    """Note all results, until cancelled."""
    began_s: float | None = None
    query = {"outcome": ["on_time", "late", "dropped"], "score_min": "0.3"}
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"http://{address}/v1/results", params=query) as socket,
    ):
        async for message in socket:
            result = json.loads(message.data)
            if result["type"] in {"result", "drop"}:
                now_s = asyncio.get_running_loop().time()
                began_s = now_s if began_s is None else began_s
                seen.note(result, now_s - began_s)


async def run_live(folder: Path, rate_hz: float, slo_ms: int, seconds: int) -> Seen:
    """Run box and cameras; return what the box said."""
    seen = Seen(seconds)
    async with serving(folder, free_port()) as address:
        listening = asyncio.create_task(listen(address, seen))
        cameras = [
            await asyncio.create_subprocess_exec(
                *EDGEBOX, "camera", f"scene:{seed}", "--server", f"ws://{address}",
                "--name", f"camera-{seed}", "--pipeline", "cars", "--rate-hz", str(rate_hz),
                "--slo-ms", str(slo_ms), "--duration", str(seconds), "--json",
                stdout=asyncio.subprocess.DEVNULL,
            )
            for seed in SEEDS
        ]  # fmt: skip
        for camera in cameras:
            await camera.wait()
        listening.cancel()
    return seen


def write_scenario(folder: Path, seen: Seen, rate_hz: float, slo_ms: int, seconds: int) -> Path:
    """Write the scenario of what was seen; return its file."""
    lines = ["at_s,video," + LABELS[0]]
    for camera, by_second in sorted(seen.counts.items()):
        for at_s, counts in sorted(by_second.items()):
            lines.append(f"{at_s},{camera},{round(sum(counts) / len(counts))}")
    (folder / "counts.csv").write_text("\n".join(lines) + "\n")
    cameras = [
        f'[[cameras]]\nname = "{camera}"\npipeline = "cars"\nslo_ms = {slo_ms}\n'
        f'rate_hz = {rate_hz}\nmbps = 1000\nobjects = "counts.csv"\nobjects_video = "{camera}"\n'
        for camera in sorted(seen.counts)
    ]
    file = folder / "scenario.toml"
    top = f'duration_s = {seconds}\nwarmup_s = {WARMUP_S}\nprofiles = "database"\n'
    file.write_text(f"{top}[[pipelines]]{STAGES}\n" + "\n".join(cameras))
    return file


async def simulate(folder: Path, scenario: Path) -> dict[str, Any]:
    """Return the figures of the simulation with the box's profiles."""
    program = await asyncio.create_subprocess_exec(
        *EDGEBOX, "simulate", "pipelines", str(scenario), "--json",
        "--config", str(folder / "edgebox.toml"), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await program.communicate()
    if program.returncode:
        raise click.ClickException("the simulation failed")
    found: dict[str, Any] = json.loads(out)["policies"][0]
    return found


async def compare(rate_hz: float, slo_ms: int, seconds: int) -> dict[str, Any]:
    """Return the figures of both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seen = await run_live(folder, rate_hz, slo_ms, seconds)
        scenario = write_scenario(folder, seen, rate_hz, slo_ms, seconds)
        simulated = await simulate(folder, scenario)
    counted_s = seconds - WARMUP_S
    at_box = sum(seen.frames[each] for each in ("on_time", "late", "dropped"))
    return {
        "rate_hz": rate_hz,
        "live": {
            "objects_per_s": round(seen.objects / counted_s, 2),
            "frames_at_box": at_box,
            "on_time": seen.frames["on_time"],
            "partial": seen.frames["partial"],
        },
        "simulated": {
            "objects_per_s": simulated["objects_per_s"],
            "frames_at_box": simulated["frames"]["at_box"],
            "on_time": simulated["frames"]["on_time"],
            "partial": simulated["frames"]["partial"],
        },
        "bound_objects_per_s": simulated["objects_bound_per_s"],
    }


@click.command()
@click.option("--rate-hz", "rates", type=float, multiple=True, default=(4.0, 12.0))
@click.option("--slo-ms", default=400, show_default=True)
@click.option("--seconds", default=60, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(rates: tuple[float, ...], slo_ms: int, seconds: int, as_json: bool) -> None:
    """Print what four cameras got on this machine, and what the simulation says of it."""
    found = [asyncio.run(compare(rate_hz, slo_ms, seconds)) for rate_hz in rates]
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for of in found:
        for kind in ("live", "simulated"):
            figures = of[kind]
            click.echo(
                f"{of['rate_hz']:g} Hz {kind:9}: {figures['objects_per_s']:.1f} objects/s, "
                f"{figures['on_time']} of {figures['frames_at_box']} frames on time, "
                f"{figures['partial']} of them in part"
            )


if __name__ == "__main__":
    main()
