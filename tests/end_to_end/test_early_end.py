"""A box or a command that is told to stop before it has begun."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_S
from tests.end_to_end.program import Ended, environment, finish

_STUCK_IMPORT = """
import time
print("importing", flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_it_ends_with_0_while_its_libraries_are_imported(
    tmp_path: Path, number: signal.Signals
) -> None:
    ended = await _ended_by(number, "serve", tmp_path)
    assert (ended.code, ended.err) == (0, "")


async def test_another_command_ends_by_the_signal_without_a_stack_trace(tmp_path: Path) -> None:
    ended = await _ended_by(signal.SIGINT, "doctor", tmp_path)
    assert (ended.code, ended.err) == (-signal.SIGINT, "")


async def _ended_by(number: signal.Signals, command: str, tmp_path: Path) -> Ended:
    """Send a command a signal while it imports its libraries."""
    # In the place of a library that every box imports: so the signal comes while it does.
    (tmp_path / "click.py").write_text(_STUCK_IMPORT)
    environ = environment(tmp_path)
    environ["PYTHONPATH"] = f"{tmp_path}:{environ['PYTHONPATH']}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.stdout.readline() == b"importing\n"
    process.send_signal(number)
    return await finish(process)
