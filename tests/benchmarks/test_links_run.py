"""A short real run from end to end, by either shaping, and what is left of one that is stopped."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks.links_network import remove_leftovers, why_not
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import SOURCE_TREE

NO_TC = why_not()
SCENARIO = """
duration_s = 4
warmup_s = 1
profiles = "database"

[[cameras]]
name = "yard"
count = 2
family = "street"
slo_ms = 5000
rate_hz = 5
width_px = 320
height_px = 180
rtt_ms = 10
phase_ms = 50
mbps = [6, 3]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "yard.toml"
    path.write_text(SCENARIO, "utf-8")
    return path


async def start(home: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.links", "--profile-s", "1", *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=SOURCE_TREE,
        env={**os.environ, "TMPDIR": str(home)},
    )  # fmt: skip


def running(of: int) -> list[int]:
    """Return the processes that a benchmark started, by whatever way, and itself."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                environ = (folder / "environ").read_bytes()
            except OSError:
                continue
            if f"EDGEBOX_TEST_RUN={of}".encode() in environ.split(b"\0"):
                found.append(int(folder.name))
    return found


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def check(run: dict[str, Any], shaping: str) -> None:
    assert run["shaping"] == shaping
    for column in ("simulated", "as_measured", "real"):
        of = run[column]["all"]
        ended = of["on_time"] + of["late"] + sum(of["dropped"].values()) + of["departed"]
        # Two cameras for three seconds at 5 frames/s; the real machine may be busy.
        assert of["captured"] == ended
        assert (1 if column == "real" else 20) <= of["captured"] <= 32
        assert of["on_time"] > 0
        assert 0 < of["accuracy"] < 1
        assert 0 < run[column]["utilisation"]["cpu/0"] <= 1
    # The uplinks really are slow: a small picture's bits take some milliseconds.
    assert run["real"]["all"]["latency_ms"]["sending"]["mean"] > 10
    cameras = run["measured"]["cameras"]
    assert set(cameras) == {"yard-1", "yard-2"}
    assert all(of["encode_ms"][1] > 0 for of in cameras.values())
    assert run["measured"]["slowdown"]["cpu/0"] > 0
    assert run["cores_busy"]["by_this_benchmark"] > 0


@pytest.mark.parametrize(
    "shaping",
    ["daemon", pytest.param("tc", marks=pytest.mark.skipif(NO_TC is not None, reason=f"{NO_TC}"))],
)
async def test_the_same_scenario_simulated_and_for_real(
    scenario: Path, tmp_path: Path, measured: Path, shaping: str
) -> None:
    written = tmp_path / "links.json"
    known = ["--known", str(measured)] if shaping == "tc" else []
    process = await start(
        tmp_path, str(scenario), "--shaping", shaping, "--json", "--out", str(written), *known
    )
    out, err = await asyncio.wait_for(process.communicate(), 3 * PATIENCE_S)
    assert process.returncode == 0, err
    document = orjson.loads(out)
    assert document == orjson.loads(written.read_bytes())
    [run], [summed] = document["runs"], document["summary"]
    assert summed["miss_rate"]["real"] == run["real"]["all"]["miss_rate"]
    assert run["scenario"] == "yard.toml"
    check(run, shaping)
    assert names_in(tmp_path) == ["links.json", "yard.toml"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
async def test_nothing_is_left_of_a_run_that_is_stopped(
    scenario: Path,
    tmp_path: Path,
    measured: Path,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDGEBOX_TEST_RUN", str(os.getpid()))
    process = await start(tmp_path, str(scenario), "--known", str(measured))
    assert process.stderr is not None
    # The progress on what is no terminal is a line each; this one says that cameras start.
    async with asyncio.timeout(PATIENCE_S):
        while b"2 cameras stream" not in (line := await process.stderr.readline()):
            assert line, "it ended by itself"
    assert len(running(os.getpid())) > 1
    process.send_signal(number)
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 130
    assert err.endswith(b"stopped; everything is cleaned up\n")
    assert running(os.getpid()) == []
    assert names_in(tmp_path) == ["yard.toml"]
    assert not [name for name in names_in(Path("/run/netns")) if f"-{process.pid}-" in name]


@pytest.mark.skipif(NO_TC is not None, reason=f"{NO_TC}")
async def test_what_a_killed_run_left_is_removed_and_the_living_stay() -> None:
    killed = await asyncio.create_subprocess_exec("true")
    await killed.wait()
    left, own = f"edgebox-links-{killed.pid}-0", f"edgebox-links-{os.getpid()}-test"
    for space in (left, own):
        await (await asyncio.create_subprocess_exec("ip", "netns", "add", space)).wait()
    inside = await asyncio.create_subprocess_exec(
        "ip", "netns", "exec", left, "sh", "-c", "echo inside; exec sleep 60",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert inside.stdout is not None
    try:
        assert await asyncio.wait_for(inside.stdout.readline(), PATIENCE_S) == b"inside\n"
        remove_leftovers()
        assert await asyncio.wait_for(inside.wait(), PATIENCE_S) == -signal.SIGKILL
        spaces = names_in(Path("/run/netns"))
        assert left not in spaces
        assert own in spaces
    finally:
        await (await asyncio.create_subprocess_exec("ip", "netns", "del", own)).wait()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["{folder}/none.toml"], "none.toml: there is no such file"),
        (["{folder}/yard.toml", "--out", "{folder}/no/x"], "x: cannot be written"),
        (["{folder}/wrong.toml"], "policy.sender: edgebox camera has no sender obedient"),
    ],
)
async def test_what_is_wrong_is_said_in_a_line(
    scenario: Path, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    wrong = scenario.with_name("wrong.toml")
    wrong.write_text(f'policy = {{ sender = "obedient" }}\n{SCENARIO}', "utf-8")
    given = [argument.format(folder=tmp_path) for argument in arguments]
    process = await start(tmp_path, *given, "--shaping", "daemon", "--json")
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 1
    assert out == b""
    assert complaint in err.decode().replace("\n", " ")
    assert b"Traceback" not in err
