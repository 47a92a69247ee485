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
import orjson

from edgebox.app.offline_profiling import measure_and_store
from edgebox.config.config_file import Config
from edgebox.domain.model_family import LatencyProfile

_MEASURED = "measured.sqlite3"
_PATIENCE_S = 60.0


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


def write_config(folder: Path, lines: str, policy: str) -> Path:
    """Write a box's configuration into a folder of its own; return the file.

    Args:
        folder: made if it is not there.
        lines: of the configuration, about its models.
        policy: of batching.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "edgebox.toml"
    text = (
        "[server]\nport = 0\n[access]\nopen_to = 'everybody'\n"
        # The plan says what is sent, and only deadlines shall say what is dropped.
        "[limits]\nunacknowledged_max = 64\npending_per_camera_max = 1000\npending_max = 10000\n"
        f'[storage]\npath = "{_MEASURED}"\n'
        f'[[executors]]\ndevice = "cpu"\nthreads = 1\n'
        f'[scheduler]\nbatching = "{policy}"\n{lines}'
    )
    file.write_text(text, encoding="utf-8")
    return file


async def measure(config: Config) -> dict[str, LatencyProfile]:
    """Measure the machine as a box would; its database has the profiles, by variant they come back.

    Raises:
        EdgeboxError: the models or the database cannot be used.
    """
    measured = await measure_and_store(config)
    return {profile.variant: profile for _, _, found in measured for profile in found}


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
async def serving(
    policy: str,
    config: Path,
    messages: int | None = None,
    code: Path | None = None,
    patience_s: float = _PATIENCE_S,
) -> AsyncIterator[RunningBox]:
    """Run `edgebox serve` with a configuration until the end.

    Args:
        policy: what to call it.
        config: the file.
        messages: descriptor that gets what it tells people; None: this process's stderr.
        code: the checkout that is run; None: this one.
        patience_s: how long it may take to be ready.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", "serve", "--config", str(config), "--json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=messages,
        cwd=code,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = b""
        async with asyncio.timeout(patience_s):
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
