"""Owns the boxes of a comparison: `edgebox serve` in one process per policy, alike in all else.

All have the same profiles, measured once. Between their turns they idle.
"""

import asyncio
import contextlib
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import orjson

from benchmarks.dynamic_model import FAMILY, STEPS_MAX, picture
from edgebox.app.startup import measure_and_store
from edgebox.config.config_file import Config
from edgebox.domain.model_family import LatencyProfile
from edgebox.inference.executor import OnnxExecutor
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode

_MEASURED = "measured.sqlite3"
_RUNS = 7
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Alone:
    """What pictures take alone, by the number of steps they need."""

    steps: tuple[int, ...]
    took_ms: tuple[float, ...]

    def ms(self, steps: int) -> float:
        """Return what one picture takes; linear between those that were measured."""
        return float(np.interp(steps, self.steps, self.took_ms))


@dataclass(frozen=True, slots=True)
class RunningBox:
    """One box that is ready."""

    policy: str
    url: str
    pid: int

    @property
    def stream(self) -> str:
        """Where its cameras connect."""
        return self.url.replace("http", "ws", 1) + "/v1/stream"

    async def state(self) -> dict[str, Any]:
        """Return what it tells programs about itself."""
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{self.url}/v1/state") as response,
        ):
            document: dict[str, Any] = await response.json()
            return document


def write_config(folder: Path, families: Path, policy: str, profile_s: float) -> Path:
    """Write a box's configuration into a folder of its own; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "edgebox.toml"
    lines = [
        "[server]", "port = 0",
        # The plan says what is sent, and only deadlines shall say what is dropped.
        "[limits]", "unacknowledged_max = 64",
        "pending_per_camera_max = 1000", "pending_max = 10000",
        "[storage]", f'path = "{_MEASURED}"',
        "[inference]", f'families = ["{families.as_posix()}"]', f'family = "{FAMILY}"',
        f"profile_s = {profile_s}",
        "[[executors]]", 'device = "cpu"', "threads = 1",
        "[scheduler]", f'batching = "{policy}"',
    ]  # fmt: skip
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


async def measure(config: Config) -> LatencyProfile:
    """Measure the machine as a box would; its database has the profiles, the family's comes back.

    Raises:
        EdgeboxError: the model or the database cannot be used.
    """
    measured = await measure_and_store(config)
    return next(found for family, _, (found, *_) in measured if family.name == FAMILY)


def measure_alone(family_folder: Path) -> Alone:
    """Measure what single pictures take; blocks for a second or two.

    The quickest of some runs: what else the machine does must not make the load another.
    """
    family = load_family(family_folder)
    executor = OnnxExecutor(0, [family], providers="cpu", cpu_threads=1)
    name = family.variants[0].name
    steps = (1, *range(10, STEPS_MAX + 1, 10))
    took_ns: dict[int, list[int]] = {of: [] for of in steps}
    for _ in range(_RUNS):
        for of, times_ns in took_ns.items():
            canvas = decode(picture(of))
            times_ns.append(executor.submit(name, [canvas], 1).result().took_ns)
    executor.close()
    return Alone(steps, tuple(min(times) / 1e6 for times in took_ns.values()))


@contextlib.asynccontextmanager
async def boxes(folder: Path, configs: dict[str, Path]) -> AsyncIterator[list[RunningBox]]:
    """Run a box for each policy until the end.

    Args:
        folder: has the database with the profiles.
        configs: by policy, each in a folder of its own.
    """
    async with contextlib.AsyncExitStack() as stack:
        running = []
        for policy, config in configs.items():
            await asyncio.to_thread(_copy_database, folder, config.parent)
            running.append(await stack.enter_async_context(serving(policy, config)))
        yield running


@contextlib.asynccontextmanager
async def serving(policy: str, config: Path) -> AsyncIterator[RunningBox]:
    """Run `edgebox serve` with a configuration until the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", "serve", "--config", str(config), "--json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = b""
        async with asyncio.timeout(_PATIENCE_S):
            # The document is indented, so its last line is the only one that is a brace.
            while not said.endswith(b"\n}\n"):
                line = await process.stdout.readline()
                if not line:
                    raise RuntimeError(f"the box with {policy!r} did not start; see above")
                said += line
        yield RunningBox(policy, orjson.loads(said)["url"], process.pid)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


def _copy_database(of: Path, to: Path) -> None:
    for file in of.glob(f"{_MEASURED}*"):  # the write-ahead log, too
        shutil.copy(file, to / file.name)
