"""A box that is told to stop before it has begun."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_S
from tests.end_to_end.program import environment, finish

_STUCK_IMPORT = """
import time
print("importing", flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_it_ends_with_0_while_its_libraries_are_imported(
    tmp_path: Path, number: signal.Signals
) -> None:
    # In the place of a library that every box imports: so the signal comes while it does.
    (tmp_path / "click.py").write_text(_STUCK_IMPORT)
    environ = environment(tmp_path)
    environ["PYTHONPATH"] = f"{tmp_path}:{environ['PYTHONPATH']}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", "serve",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.stdout.readline() == b"importing\n"
    process.send_signal(number)
    ended = await finish(process)
    assert (ended.code, ended.err) == (0, "")
