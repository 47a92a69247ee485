"""Runs a scenario for real: `edgebox serve`, one `edgebox camera` each, links that follow traces.

Every process is a program of its own; they share this machine's CLOCK_MONOTONIC, so instants of
all of them compare. The relay (links_relay.py) adds the round trips, and lets each camera in at
the scenario's moment. Cameras stream a little longer than the scenario says and what they capture
then is not counted, so that nothing is cut off at its end.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.links_machine import Machine, Usage
from benchmarks.links_network import Course, Network
from benchmarks.links_traces import as_csv, begun_at
from edgebox.config.config_file import load
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.requests import CameraId
from edgebox.runtime.entries import JournalEntry
from edgebox.runtime.recordings import RecordingFile
from edgebox.simulation.scenario import PERFECT, Scenario
from edgebox.simulation.senders import SenderKind
from edgebox.simulation.simulated_cameras import SimulatedCamera

LEAD_S = 5.0
"""From starting a camera's program to its joining; less than it waits for a connection."""
AFTER_S = 1.0
"""Beside the SLO, for which cameras stream on when the scenario is over."""
_READY_S = 120.0
_END_S = 20.0
_JOURNAL_S = 15.0
_TELL_S = 0.5
DATABASE = "box.sqlite3"
"""Of the box, in its folder."""
_BOX_LOG = "box.log"
_ROOT = Path(__file__).resolve().parents[1]
"""Where `benchmarks` can be imported from."""

Tell = Callable[[str, float], None]
"""Told what is being done, and which share of it is."""


@dataclass(frozen=True, slots=True)
class RealRun:
    """What a run left behind."""

    began_ns: int
    """The scenario's instant 0, by CLOCK_MONOTONIC."""
    frames: Mapping[CameraId, Sequence[dict[str, Any]]]
    """The lines of `edgebox camera --frames`."""
    journal: Sequence[JournalEntry]
    """The box's last minute."""
    machine: Machine


def write_config(scenario: Scenario, network: Network, folder: Path, profile_s: float) -> Path:
    """Write the configuration of a box that is what the scenario says; return the file.

    Raises:
        InvalidInputError: the scenario asks for what no real box or camera has.
    """
    if scenario.policy.bandwidth == PERFECT:
        raise InvalidInputError("policy.bandwidth: nobody knows a real link perfectly")
    if scenario.policy.sender is not SenderKind.WINDOW:
        raise InvalidInputError(
            f"policy.sender: edgebox camera has no sender {scenario.policy.sender!s}"
        )
    executors = 1 if scenario.hardware is None else len(scenario.hardware.profiles)
    planning = scenario.planning
    file = folder / "edgebox.toml"
    lines = [
        "[server]", f'host = "{network.box_host}"', f"port = {network.box_port}",
        "[access]", 'open_to = "everybody"',
        "[storage]", f'path = "{DATABASE}"',
        "[[executors]]", 'device = "cpu"', f"streams = {executors}",
        "[inference]", f"profile_s = {profile_s:g}",
        "[scheduler]", f'batching = "{scenario.policy.batching}"',
        f"variant_per_batch = {str(scenario.scheduling.variant_per_batch).lower()}",
        "[planner]", f'bandwidth = "{scenario.policy.bandwidth}"',
        f"interval_ms = {scenario.scheduling.planning_interval_ns // 1_000_000}",
        f"utilisation_max = {planning.utilisation_max}",
        f"uplink_utilisation_max = {planning.uplink_utilisation_max}",
        f"rate_min_hz = {planning.rate_min_hz}",
    ]  # fmt: skip
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if load(file).planning_parameters() != planning:
        raise InvalidInputError(
            "planner: a box's configuration has only interval_ms, utilisation_max, "
            "uplink_utilisation_max and rate_min_hz of these keys"
        )
    return file


@dataclass(frozen=True, slots=True)
class _Run:
    """What all cameras share."""

    network: Network
    folder: Path
    began_ns: int
    ports: Mapping[str, tuple[str, int]]


async def run_for_real(
    scenario: Scenario, network: Network, folder: Path, config: Path, tell: Tell
) -> RealRun:
    """Run a scenario from the box's start to its end.

    Args:
        scenario: its cameras' families must be known to the box.
        network: where.
        folder: for what the programs write.
        config: the box's.
        tell: called with the progress.

    Raises:
        EdgeboxError: a program failed, with what it said.
    """
    tell("the box starts and measures this machine", 0.0)
    async with _box(network, config, folder) as (box, address):
        tell("the box starts and measures this machine", 1.0)
        began_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        async with _relay(scenario, network, folder, began_ns, address) as ports:
            run = _Run(network, folder, began_ns, ports)
            usage = Usage()
            frames = await _all_cameras(scenario, run, tell)
            machine = usage.since()
        entries = await asyncio.to_thread(_read_journal, await _journal(box, folder))
    return RealRun(began_ns, frames, entries, machine)


async def _all_cameras(
    scenario: Scenario, run: _Run, tell: Tell
) -> dict[CameraId, list[dict[str, Any]]]:
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_tell_time(scenario, run.began_ns, tell))
            cameras = {
                spec.camera.id: tasks.create_task(_camera(spec, at, scenario, run))
                for at, spec in enumerate(scenario.cameras)
            }
            await asyncio.wait(cameras.values())
            watching.cancel()
    except ExceptionGroup as group:
        # One that failed is enough to say.
        failures, others = group.split(EdgeboxError)
        if failures is None or others is not None:
            raise
        raise failures.exceptions[0] from None
    return {camera: task.result() for camera, task in cameras.items()}


async def _tell_time(scenario: Scenario, began_ns: int, tell: Tell) -> None:
    cameras = len(scenario.cameras)
    what = f"{cameras} {'camera streams' if cameras == 1 else 'cameras stream'}"
    while True:
        done = (time.monotonic_ns() - began_ns) / scenario.duration_ns
        tell(what, min(1.0, max(0.0, done)))
        await asyncio.sleep(_TELL_S)


# -- the programs -------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _program(command: Sequence[str], log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program; at the end of the block it is asked to end, and made to."""
    with log.open("wb") as complaints:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            # Ctrl-C reaches the whole terminal; these are ended here alone.
            start_new_session=True,
            cwd=_ROOT,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_END_S):
                await process.communicate()
        except TimeoutError:
            raise EdgeboxError(f"{log.stem} did not stop within {_END_S:g} s; killed") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _failed(what: str, process: asyncio.subprocess.Process, log: Path) -> EdgeboxError:
    said = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:] or ["no message"]
    return EdgeboxError(f"{what} ended with code {process.returncode}: {said[0]}")


def _edgebox(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "edgebox", *arguments]


@contextlib.asynccontextmanager
async def _box(
    network: Network, config: Path, folder: Path
) -> AsyncIterator[tuple[asyncio.subprocess.Process, tuple[str, int]]]:
    command = network.at_box(_edgebox("serve", "--config", str(config), "--json"))
    log = folder / _BOX_LOG
    async with _program(command, log) as process:
        assert process.stdout is not None
        said = b""
        try:
            async with asyncio.timeout(_READY_S):
                # The document is indented, so its last line is the only one that is a brace.
                while not said.endswith(b"\n}\n"):
                    line = await process.stdout.readline()
                    if not line:
                        await process.wait()
                        raise _failed("the box", process, log)
                    said += line
        except TimeoutError:
            raise EdgeboxError(f"the box was not ready within {_READY_S:g} s") from None
        host, _, port = orjson.loads(said)["url"].rpartition("/")[2].partition(":")
        yield process, (host, int(port))


@contextlib.asynccontextmanager
async def _relay(
    scenario: Scenario, network: Network, folder: Path, began_ns: int, box: tuple[str, int]
) -> AsyncIterator[dict[str, tuple[str, int]]]:
    ports = [
        {
            "camera": spec.camera.id,
            "host": network.relay_host(spec.camera.id),
            "port": 0,
            "delay_ns": spec.rtt_ns // 2,
            "opens_ns": began_ns + let_in_ns(spec),
        }
        for spec in scenario.cameras
    ]
    request = orjson.dumps({"box": box, "cameras": ports}).decode()
    command = network.at_box([sys.executable, "-m", "benchmarks.links_relay", request])
    log = folder / "relay.log"
    async with _program(command, log) as process:
        assert process.stdout is not None
        said = await asyncio.wait_for(process.stdout.readline(), _READY_S)
        if not said:
            await process.wait()
            raise _failed("the relay", process, log)
        yield {camera: (host, port) for camera, (host, port) in orjson.loads(said).items()}


def let_in_ns(spec: SimulatedCamera) -> int:
    """Return when a camera is let in: two round trips later it takes its first picture."""
    return spec.opens_ns + spec.phase_ns - spec.rtt_ns


def counted_until_ns(spec: SimulatedCamera, scenario: Scenario) -> int:
    """Return when a camera's pictures count no more."""
    return min(spec.closes_ns or scenario.duration_ns, scenario.duration_ns)


async def _camera(
    spec: SimulatedCamera, at: int, scenario: Scenario, run: "_Run"
) -> list[dict[str, Any]]:
    """Run one camera from before its joining to its end; return what it wrote of its frames."""
    in_ns = run.began_ns + let_in_ns(spec)
    await asyncio.sleep(max(0.0, (in_ns - time.monotonic_ns()) / 1e9 - LEAD_S))
    spare_ns = spec.camera.slo_ns + round(AFTER_S * 1e9)
    until_ns = run.began_ns + counted_until_ns(spec, scenario) + spare_ns
    course = Course(spec.trace, spec.trace_start_ns, run.began_ns + spec.opens_ns, until_ns)
    following = asyncio.create_task(run.network.follow(spec.camera.id, course))
    written, log = run.folder / f"camera-{at}.jsonl", run.folder / f"camera-{at}.log"
    command = _camera_command(spec, at, run, written, (until_ns - in_ns) / 1e9)
    try:
        async with _program(run.network.at_camera(spec.camera.id, command), log) as process:
            ending = asyncio.create_task(process.wait())
            # A link that cannot be shaped ends the run, too.
            await asyncio.wait({ending, following}, return_when=asyncio.FIRST_EXCEPTION)
            if following.done():
                following.result()
            await ending
        if process.returncode:
            raise _failed(f"camera {spec.camera.id}", process, log)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return [orjson.loads(line) for line in written.read_bytes().splitlines()]


def _camera_command(
    spec: SimulatedCamera, at: int, run: "_Run", written: Path, duration_s: float
) -> list[str]:
    camera = spec.camera
    host, port = run.ports[camera.id]
    command = _edgebox(
        "camera", f"scene:{at + 1}", "--server", f"ws://{host}:{port}", "--name", camera.id,
        "--slo-ms", f"{camera.slo_ns / 1e6:g}", "--rate-hz", f"{camera.rate_hz:g}",
        "--size", f"{camera.width_px}x{camera.height_px}", "--app", camera.app,
        "--family", camera.family, "--min-accuracy", f"{camera.min_accuracy:g}",
        "--duration", f"{duration_s:.3f}", "--frames", str(written), "--json",
    )  # fmt: skip
    if not run.network.shapes:
        trace = run.folder / f"camera-{at}.csv"
        # The daemon's link begins with the box's welcome, that is with the first picture.
        welcome_ns = spec.trace_start_ns + spec.phase_ns + spec.rtt_ns
        trace.write_text(as_csv(begun_at(spec.trace, welcome_ns)), "utf-8")
        command += ["--link", str(trace)]
    return command


async def _journal(box: asyncio.subprocess.Process, folder: Path) -> Path:
    """Let the box write its journal, and return the file.

    Raises:
        EdgeboxError: it did not, or it has ended.
    """
    if box.returncode is not None:
        raise _failed("the box", box, folder / _BOX_LOG)
    box.send_signal(signal.SIGUSR1)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_JOURNAL_S):
            while True:
                if written := await asyncio.to_thread(_journals, folder):
                    return written[-1]
                await asyncio.sleep(0.05)
    raise EdgeboxError(f"the box wrote no journal within {_JOURNAL_S:g} s")


def _journals(folder: Path) -> list[Path]:
    return sorted(folder.glob("edgebox-journal-*.jsonl.gz"))


def _read_journal(path: Path) -> list[JournalEntry]:
    return list(RecordingFile(path).entries())
