"""What a box logs: lines for programs, and readers of the log that stand still."""

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import orjson
import pytest

from edgebox.domain.errors import ConfigError
from tests.commands.test_logs import parsed
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import configured, edgebox, environment, finish, start
from tests.end_to_end.test_faults_while_serving import STOP_MAX_S
from tests.pipes import full_pipe


@pytest.mark.parametrize("form", ["json", "logfmt"])
async def test_every_line_of_a_box_is_for_programs(
    tmp_path: Path, database: Path, form: str
) -> None:
    config = configured(tmp_path, database, "[log]", f'format = "{form}"', 'level = "info"')
    read = orjson.loads if form == "json" else parsed
    process = await start(tmp_path, "serve", "--config", str(config))
    assert process.stderr is not None
    found: list[dict[str, str]] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not any(line["message"].startswith("ready in") for line in found):
                found.append(read((await process.stderr.readline()).decode().rstrip("\n")))
    finally:
        process.send_signal(signal.SIGTERM)
        ended = await finish(process)
    found += [read(line) for line in ended.err.splitlines()]
    assert ended.code == 0
    assert found[-1]["message"].startswith("stopped: 0 frames")
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in found)


async def test_an_error_at_the_start_is_a_line_for_programs(tmp_path: Path, database: Path) -> None:
    config = configured(tmp_path, database, "bundled = ['x']")
    ended = await edgebox(tmp_path, "serve", "--config", str(config), "--log-format", "json")
    assert ended.code == ConfigError.exit_code
    last = orjson.loads(ended.err.splitlines()[-1])
    assert last["level"] == "error"
    assert "no family 'x' comes with edgebox" in last["message"]


async def test_a_box_whose_log_nobody_reads_serves_and_stops(
    tmp_path: Path, database: Path
) -> None:
    config = configured(tmp_path, database, "[log]", 'level = "debug"')
    with full_pipe() as (_, write):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "edgebox", "serve", "--config", str(config), "--json",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=write,
            env=environment(tmp_path),
        )  # fmt: skip
        assert process.stdout is not None
        said = b""
        async with asyncio.timeout(PATIENCE_S):
            while not said.endswith(b"\n}\n"):
                line = await process.stdout.readline()
                assert line, "the box ended"
                said += line
        url = orjson.loads(said)["url"]
        async with aiohttp.ClientSession() as client, client.get(f"{url}/healthz") as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_MAX_S):
            await process.communicate()
    assert process.returncode == 0
