"""Owns the network of a run: namespaces, veth pairs and tbf; the loopback where they are missing.

The box lives in one namespace, each camera in another, with a pair of virtual interfaces in
between. A token bucket (tbf) at the camera's end is the uplink; its rate follows the trace. Needs
root, `ip` and `tc`. What is made is removed at the end; what a killed run left behind, at the
beginning of the next.
"""

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.links_traces import rate_changes
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.link.shaping import BandwidthTrace

_PREFIX = "edgebox-links-"
_FOLDER = Path("/run/netns")
_TIMEOUT_S = 10.0
_MTU_BYTES = 576
"""A token bucket lets the first packet of a frame through at once, so packets are small."""
_ETHERNET_BYTES, _TCP_BYTES = 14, 52
_PACKET_BYTES = _MTU_BYTES + _ETHERNET_BYTES
_WIRE_SHARE = _PACKET_BYTES / (_MTU_BYTES - _TCP_BYTES)
"""Bytes on the wire for one of TCP's load: a trace says what a link carries of frames, so tbf gets
this much more."""
_BURST_BYTES = _PACKET_BYTES + 10
"""What a link saves up while idle: tbf drops packets above it, and rounds."""
_LIMIT_BYTES = 8_000_000
"""More than a camera's window ever holds: nothing is lost."""
_RATE_MIN_BPS = 1000
"""Stands for 0, which tbf does not know."""
_CAMERAS_MAX = 256
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True)
class Course:
    """What an uplink carries from when to when, by CLOCK_MONOTONIC."""

    trace: BandwidthTrace
    start_ns: int
    """Where in the trace it begins."""
    from_ns: int
    until_ns: int


class Network(Protocol):
    """Where a box and its cameras run."""

    box_host: str
    """Where the box listens."""
    box_port: int
    """0: any free port."""
    shapes: bool
    """Whether it shapes uplinks; else the camera daemon has to."""

    def at_box(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one beside the box."""

    def at_camera(self, camera: str, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one beside a camera."""

    def relay_host(self, camera: str) -> str:
        """Return the box's address as seen from a camera."""

    async def follow(self, camera: str, course: Course) -> None:
        """Let a camera's uplink follow a course to its end."""


class Loopback:
    """No network of its own: cameras shape their uplinks themselves."""

    box_host, box_port, shapes = "127.0.0.1", 0, False

    def at_box(self, command: Sequence[str]) -> list[str]:
        """Return the command as it is."""
        return list(command)

    def at_camera(self, camera: str, command: Sequence[str]) -> list[str]:
        """Return the command as it is."""
        return list(command)

    def relay_host(self, camera: str) -> str:
        """Return the loopback's address."""
        return self.box_host

    async def follow(self, camera: str, course: Course) -> None:
        """Do nothing: the daemon does it."""


class Namespaces:
    """A star of namespaces, the box's in the middle."""

    box_host, box_port, shapes = "127.0.0.1", 8787, True

    def __init__(self, cameras: Sequence[str]) -> None:
        """Name everything; `namespaces` makes it.

        Raises:
            InvalidInputError: there are more cameras than networks.
        """
        if len(cameras) > _CAMERAS_MAX:
            raise InvalidInputError(
                f"tc can shape at most {_CAMERAS_MAX} uplinks here, not {len(cameras)}"
            )
        own = f"{_PREFIX}{os.getpid()}"
        self.box = f"{own}-box"
        self.of = {camera: f"{own}-{at}" for at, camera in enumerate(cameras)}
        self._number = {camera: at for at, camera in enumerate(cameras)}

    def commands(self) -> Iterator[str]:
        """Yield what `ip` has to do once the namespaces themselves are there."""
        yield f"-n {self.box} link set lo up"
        for camera, space in self.of.items():
            at = self._number[camera]
            yield (
                f"link add cam{at} mtu {_MTU_BYTES} netns {self.box} type veth "
                f"peer name uplink mtu {_MTU_BYTES} netns {space}"
            )
            yield f"-n {self.box} addr add {self.relay_host(camera)}/24 dev cam{at}"
            yield f"-n {space} addr add 10.201.{at}.2/24 dev uplink"
            yield f"-n {self.box} link set cam{at} up"
            yield f"-n {space} link set lo up"
            yield f"-n {space} link set uplink up"

    def at_box(self, command: Sequence[str]) -> list[str]:
        """Return the command within the box's namespace."""
        return ["ip", "netns", "exec", self.box, *command]

    def at_camera(self, camera: str, command: Sequence[str]) -> list[str]:
        """Return the command within a camera's namespace."""
        return ["ip", "netns", "exec", self.of[camera], *command]

    def relay_host(self, camera: str) -> str:
        """Return the box's end of a camera's pair."""
        return f"10.201.{self._number[camera]}.1"

    async def follow(self, camera: str, course: Course) -> None:
        """Change tbf's rate at each step of the trace."""
        space = self.of[camera]
        process = await asyncio.create_subprocess_exec(
            "tc", "-n", space, "-batch", "-",
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        knocking = _socket_within(space)
        try:
            verb = "add"
            span_ns = course.until_ns - course.from_ns
            for at_ns, bps in rate_changes(course.trace, course.start_ns, span_ns):
                wait_ns = course.from_ns + at_ns - time.monotonic_ns()
                await asyncio.sleep(max(0, wait_ns) / 1e9)
                if process.returncode is not None:
                    said = (await process.stderr.read()).decode().strip()
                    raise EdgeboxError(f"tc does not change the uplink of {camera}: {said}")
                process.stdin.write(f"{_tbf(verb, bps)}\n".encode())
                verb = "change"
                # tbf does not look at a new rate before the next packet comes.
                await asyncio.sleep(0.001)
                knocking.sendto(b"", (self.relay_host(camera), 9))
        finally:
            knocking.close()
            process.stdin.close()
            await process.wait()


def _tbf(verb: str, bps: float) -> str:
    rate_bps = max(_RATE_MIN_BPS, round(bps * _WIRE_SHARE))
    # A bucket holds at least what the kernel's clock lets through between two of its looks.
    burst_bytes = max(_BURST_BYTES, rate_bps // 8 // 1000)
    bucket = f"rate {rate_bps}bit burst {burst_bytes} limit {_LIMIT_BYTES}"
    return f"qdisc {verb} dev uplink root tbf {bucket}"


def _socket_within(space: str) -> socket.socket:
    """Return a UDP socket of another namespace; it stays there wherever its process is."""
    libc = ctypes.CDLL(None, use_errno=True)
    with (_FOLDER / space).open("rb") as there, Path("/proc/thread-self/ns/net").open("rb") as here:
        if libc.setns(there.fileno(), _CLONE_NEWNET):
            raise EdgeboxError(f"{space}: cannot be entered: {os.strerror(ctypes.get_errno())}")
        try:
            return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        finally:
            libc.setns(here.fileno(), _CLONE_NEWNET)


@contextlib.asynccontextmanager
async def namespaces(cameras: Sequence[str]) -> AsyncIterator[Namespaces]:
    """Make the namespaces of these cameras and of their box, and remove them at the end.

    Raises:
        EdgeboxError: the kernel does not let us; in one sentence.
    """
    remove_leftovers()
    network = Namespaces(cameras)
    spaces = [network.box, *network.of.values()]
    try:
        for space in spaces:
            _ip("netns", "add", space)
        for command in network.commands():
            _ip(*command.split())
        yield network
    finally:
        _remove(spaces)


def why_not() -> str | None:
    """Say why links cannot be shaped by tc here; None: they can. Tries it."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} of iproute2 cannot be found"
    probe = f"{_PREFIX}{os.getpid()}-probe"
    try:
        _ip("netns", "add", probe)
        _ip("-n", probe, "link", "add", "uplink", "type", "veth", "peer", "name", "other")
        _run("tc", "-n", probe, *_tbf("add", 1e6).split())
        _ip("netns", "exec", probe, "true")
    except EdgeboxError as error:
        return str(error)
    finally:
        _remove([probe])
    return None


def remove_leftovers() -> None:
    """Remove the namespaces of runs that were killed, and end what still runs in them."""
    spaces = sorted(_FOLDER.glob(f"{_PREFIX}*")) if _FOLDER.is_dir() else []
    _remove(space.name for space in spaces if not _alive(space.name))


def _alive(space: str) -> bool:
    return Path(f"/proc/{space.removeprefix(_PREFIX).partition('-')[0]}").exists()


def _remove(spaces: Iterable[str]) -> None:
    """Remove namespaces, and with them their interfaces."""
    for space in spaces:
        if not (_FOLDER / space).exists():
            continue
        with contextlib.suppress(EdgeboxError, ProcessLookupError):
            for pid in _ip("netns", "pids", space).split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(EdgeboxError):
            _ip("netns", "del", space)


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str) -> str:
    """Run a short command; return what it says.

    Raises:
        EdgeboxError: it failed, with what it says of it.
    """
    try:
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EdgeboxError(f"{' '.join(command)}: {error}") from None
    if ended.returncode:
        said = ended.stderr.strip().splitlines()[:1] or [f"ended with code {ended.returncode}"]
        raise EdgeboxError(f"{' '.join(command)}: {said[0]}")
    return ended.stdout
