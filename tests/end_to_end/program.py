"""Runs the `edgebox` command as a user does: another process, signals, exit codes, two streams."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner

from edgebox.commands.root import main
from tests.conftest import PATIENCE_S

SOURCE_TREE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended and what it said."""

    code: int | None
    out: str
    err: str

    def json(self) -> Any:
        """Return its output, which must be one JSON document and nothing else."""
        assert self.code == 0, self.err
        return orjson.loads(self.out)


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing is kept outside `home`, but for compiled modules.

    Programs trust no authority in it: tests connect to this machine only.
    """
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("EDGEBOX_") and k != "PYTHONDONTWRITEBYTECODE"
    }
    paths = [str(SOURCE_TREE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **kept,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        # aiohttp reads the system's certificates when it is imported: a tenth of a camera's start.
        "SSL_CERT_FILE": os.devnull,
        "SSL_CERT_DIR": os.devnull,
    }


async def start(home: Path, *arguments: str) -> asyncio.subprocess.Process:
    """Start `edgebox ARGUMENTS`."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home),
    )  # fmt: skip


async def finish(process: asyncio.subprocess.Process) -> Ended:
    """Wait for a program's end."""
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    return Ended(process.returncode, out.decode(), err.decode())


async def edgebox(home: Path, *arguments: str) -> Ended:
    """Run `edgebox ARGUMENTS` to its end."""
    return await finish(await start(home, *arguments))


def within_this_process(home: Path, *arguments: str) -> Ended:
    """Run `edgebox ARGUMENTS` to its end without starting a program, which takes half a second.

    What ends with an error that the command does not report is raised here.
    """
    runner = CliRunner(env={**environment(home)})
    mask = os.umask(0o022)
    try:
        ended = runner.invoke(main, arguments, catch_exceptions=False)
    finally:
        os.umask(mask)  # a command that keeps secrets has changed it
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


async def beside_the_loop(home: Path, *arguments: str) -> Ended:
    """Run `edgebox ARGUMENTS` within this process, while its loop serves what the command asks."""
    return await asyncio.to_thread(within_this_process, home, *arguments)


async def said(process: asyncio.subprocess.Process, text: str) -> str:
    """Read a program's standard error until a line has this text; return the line."""
    assert process.stderr is not None
    lines = []
    async with asyncio.timeout(PATIENCE_S):
        while line := (await process.stderr.readline()).decode():
            if text in line:
                return line
            lines.append(line)
    raise AssertionError(f"{text!r} was never said, but: {''.join(lines)}")


@contextlib.asynccontextmanager
async def serving(
    home: Path, *arguments: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run `edgebox serve` on a free port until the end; give the process and its address."""
    process = await start(home, "serve", *arguments)
    try:
        line = await said(process, "ready in")
        yield process, line.split(" s: ")[1].strip()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await finish(process)


def configured(home: Path, database: Path, *lines: str) -> Path:
    """Write a configuration with a test's database; return the file."""
    file = home / "edgebox.toml"
    file.write_text(
        "\n".join(
            [
                "[server]", "port = 0",
                "[access]", 'open_to = "everybody"',
                "[storage]", f'path = "{database}"',
                "[[executors]]", 'device = "cpu"',
                "[inference]", "profile_s = 1",
                *lines,
            ]
        )
    )  # fmt: skip
    return file
