"""The servers that are compared, and how each is installed, started and asked."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.client import request_of
from edgebox.inference.zoo import bundled_folders
from edgebox.media.jpeg import encode
from edgebox.scene.street_camera import Scene

ROOT = Path(__file__).parents[2]
VARIANT = "street-256"
WIDTH_PX, HEIGHT_PX = 256, 160
DEADLINE_MS = 100.0
STARTS_S = 120.0
INSTALLS_S = 900.0


class UnavailableError(Exception):
    """A peer cannot be measured here; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how a running peer is asked."""

    port: int
    path: str
    headers: dict[str, str]
    body: bytes

    def order(self) -> dict[str, Any]:
        """Return this for the load generator."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "path": self.path,
            "headers": self.headers,
            "body": base64.b64encode(self.body).decode(),
        }


@dataclass(frozen=True, slots=True)
class Bare:
    """What bare ONNX Runtime does on the core."""

    rate_hz: float
    median_ms: float
    p99_ms: float


Ask = Callable[[], tuple[str, dict[str, str], bytes]]
"""Returns path, headers and body of a request."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One server."""

    ask: Ask
    command: tuple[str, ...] = ()
    """Run with `{python}`, `{model}`, `{height}`, `{width}` and `{port}` filled in."""
    packages: tuple[str, ...] | None = None
    """What its environment needs; None: it runs in that of edgebox."""
    config: str | None = None
    """Of edgebox."""
    jpeg: bool = False
    """Whether it is asked with a JPEG: bare ONNX Runtime decodes one, too, then."""
    environment: dict[str, str] = field(default_factory=dict)


def pixels() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the picture that is sent, (h, w, 3)."""
    return Scene(7, WIDTH_PX, HEIGHT_PX).render(0.0).rgb


def octets() -> tuple[str, dict[str, str], bytes]:
    """Ask with raw pixels and nothing else."""
    return "/predict", {"Content-Type": "application/octet-stream"}, pixels().tobytes()


def form() -> tuple[str, dict[str, str], bytes]:
    """Ask with a file of a form."""
    head = (
        '--part\r\nContent-Disposition: form-data; name="pixels"; filename="pixels"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + pixels().tobytes() + b"\r\n--part--\r\n"
    return "/predict", {"Content-Type": "multipart/form-data; boundary=part"}, body


def open_inference(model: str, tensor: str, shape: list[int]) -> Ask:
    """Ask by the Open Inference Protocol, with its binary extension."""

    def ask() -> tuple[str, dict[str, str], bytes]:
        raw = pixels().tobytes()
        one = {
            "name": tensor, "datatype": "UINT8", "shape": shape,
            "parameters": {"binary_data_size": len(raw)},
        }  # fmt: skip
        asked = {"binary_data_output": True, "deadline_ms": DEADLINE_MS}
        head = json.dumps({"inputs": [one], "parameters": asked}).encode()
        headers = {
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(head)),
        }
        return f"/v2/models/{model}/infer", headers, head + raw

    return ask


def open_inference_json() -> tuple[str, dict[str, str], bytes]:
    """Ask by the Open Inference Protocol, with the tensor as JSON."""
    data = pixels().reshape(-1).tolist()
    shape = [1, HEIGHT_PX, WIDTH_PX, 3]
    one = {"name": "images", "datatype": "UINT8", "shape": shape, "data": data}
    body = json.dumps({"inputs": [one]}).encode()
    return "/v2/models/street/infer", {"Content-Type": "application/json"}, body


def as_jpeg() -> tuple[str, dict[str, str], bytes]:
    """Ask edgebox with a JPEG."""
    path = f"/v1/infer?variant={VARIANT}&deadline_ms={DEADLINE_MS:g}"
    return path, {"Content-Type": "image/jpeg"}, encode(pixels())


_EDGEBOX = """
[server]
port = {port}
[access]
open_to = "everybody"
[storage]
path = ":memory:"
[inference]
profile_s = 3
[scheduler]
batching = "{policy}"
[[executors]]
device = "cpu"
threads = 1
"""
_PIXELS = open_inference(VARIANT, "pixels", [1, HEIGHT_PX, WIDTH_PX, 3])
_ARGUMENTS = ("{model}", "{height}", "{width}", "{port}")


def _module(name: str) -> tuple[str, ...]:
    return ("{python}", "-m", f"benchmarks.peers.servers.{name}", *_ARGUMENTS)


PEERS: dict[str, Peer] = {
    "minimal aiohttp": Peer(octets, _module("minimal")),
    "edgebox /v2": Peer(_PIXELS, config=_EDGEBOX.replace("{policy}", "adaptive")),
    "edgebox /v2, edf": Peer(_PIXELS, config=_EDGEBOX.replace("{policy}", "edf")),
    "edgebox /v1/infer": Peer(as_jpeg, config=_EDGEBOX.replace("{policy}", "adaptive"), jpeg=True),
    "LitServe": Peer(form, _module("litserve_server"), ("litserve", "python-multipart")),
    "BentoML": Peer(
        form,
        ("{python}", "-m", "bentoml", "serve", "benchmarks.peers.servers.bentoml_server:Detector",
         "--host", "127.0.0.1", "--port", "{port}"),
        ("bentoml",),
    ),
    "MLServer": Peer(open_inference_json, _module("mlserver_server"), ("mlserver",)),
    "Ray Serve": Peer(
        octets,
        _module("ray_server"),
        ("ray[serve]",),
        environment={"RAY_SERVE_ENABLE_HA_PROXY": "1", "RAY_SERVE_USE_GRPC_BY_DEFAULT": "1"},
    ),
    "Triton": Peer(
        open_inference("street", "images", [1, HEIGHT_PX, WIDTH_PX, 3]),
        _module("triton_server"),
        ("nvidia-pytriton",),
    ),
}  # fmt: skip


async def bare(core: int, seconds: float, *, decoded: bool) -> Bare:
    """Run bare ONNX Runtime on a core, one picture after another.

    Args:
        core: its only one.
        seconds: for so long.
        decoded: whether each picture is decoded from a JPEG before.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.peers.servers.bare",
        str(_model()), str(HEIGHT_PX), str(WIDTH_PX), str(seconds), str(int(decoded)),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )  # fmt: skip
    out, _ = await process.communicate(as_jpeg()[2] if decoded else pixels().tobytes())
    return Bare(*json.loads(out))


@contextlib.asynccontextmanager
async def serving(peer: Peer, folder: Path, environments: Path, core: int) -> AsyncIterator[Target]:
    """Run a peer on a core.

    Raises:
        UnavailableError: it cannot be installed or does not start.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = await asyncio.to_thread(_command, peer, folder, environments, port)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=log, stderr=log, cwd=folder, start_new_session=True,
            env={
                **os.environ, **peer.environment,
                "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder),
                "PEER_ARGUMENTS": f"{_model()} {HEIGHT_PX} {WIDTH_PX}",
            },
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )  # fmt: skip
    path, headers, body = peer.ask()
    target = Target(port, path, headers, body)
    try:
        await _answers(process, target, folder / "log")
        yield target
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        try:
            async with asyncio.timeout(10):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, 9)
            await process.wait()


def _model() -> Path:
    return bundled_folders()[0] / "street.onnx"


def _command(peer: Peer, folder: Path, environments: Path, port: int) -> list[str]:
    if peer.config is not None:
        file = folder / "edgebox.toml"
        file.write_text(peer.config.replace("{port}", str(port)))
        return [sys.executable, "-m", "edgebox", "serve", "--config", str(file)]
    python = sys.executable if peer.packages is None else _installed(peer.packages, environments)
    values = {
        "python": python, "model": str(_model()),
        "height": str(HEIGHT_PX), "width": str(WIDTH_PX), "port": str(port),
    }  # fmt: skip
    return [part.format(**values) for part in peer.command]


def _installed(packages: tuple[str, ...], environments: Path) -> str:
    """Return the Python of an environment with these packages; make it if it is not there."""
    folder = environments / packages[0].split("[")[0]
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists():
        return str(python)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "onnxruntime", "numpy", *packages]
        subprocess.run(pip, check=True, timeout=INSTALLS_S, capture_output=True)
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or b""
        raise UnavailableError(
            f"{packages[0]} could not be installed: {said.decode()[-200:] or error}"
        ) from None
    done.touch()
    return str(python)


async def _answers(process: asyncio.subprocess.Process, target: Target, log: Path) -> None:
    """Wait until it answers the question."""
    until_s = time.monotonic() + STARTS_S
    while time.monotonic() < until_s:
        if process.returncode is not None:
            break
        with contextlib.suppress(OSError, IndexError, ValueError):
            if await _status(target) == 200:
                return
        await asyncio.sleep(0.3)
    said = await asyncio.to_thread(log.read_text)
    raise UnavailableError(f"it does not answer; its log ends with {said[-300:]!r}")


async def _status(target: Target) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        writer.write(request_of(target.order()))
        async with asyncio.timeout(10):
            return int((await reader.readline()).split()[1])
    except TimeoutError:
        return 0
    finally:
        writer.close()
