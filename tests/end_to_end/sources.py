"""Sources for a box to fetch from: video files, a real RTSP server, MJPEG over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from aiohttp import encode_basic_auth, web
from numpy.typing import NDArray

from edgebox.media.jpeg import encode
from tests.programs import gstreamer_python

VIDEO_PX = (320, 180)
RATE_HZ = 10
SERVER = Path(__file__).resolve().parent.parent / "rtsp_server.py"
_ENCODERS = {"h264": "libx264", "h265": "libx265"}


def scene(number: int, size_px: tuple[int, int] = VIDEO_PX) -> NDArray[np.uint8]:
    """Return a (h, w, 3) RGB picture with a bar that moves."""
    width_px, height_px = size_px
    picture = np.full((height_px, width_px, 3), 90, np.uint8)
    left = number * 5 % (width_px - 30)
    picture[:, left : left + 30] = (210, 60, 60)
    return picture


def write_video(
    path: Path,
    codec: str,
    *,
    seconds: int = 60,
    size_px: tuple[int, int] = VIDEO_PX,
    moving: bool = True,
) -> Path:
    """Write a video of a codec, with a keyframe each second."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(_ENCODERS[codec], rate=RATE_HZ)
        stream.width, stream.height = size_px
        stream.pix_fmt = "yuv420p"
        stream.gop_size = RATE_HZ
        stream.options = {"preset": "ultrafast", "tune": "zerolatency"}
        if codec == "h265":
            stream.options |= {"x265-params": "log-level=none"}
        for number in range(seconds * RATE_HZ):
            frame = av.VideoFrame.from_ndarray(scene(number * moving, size_px), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_changing_video(path: Path, *parts: tuple[tuple[int, int], int]) -> Path:
    """Write one H.264 stream of parts, each with its pictures' size and its length in seconds."""
    with av.open(str(path), "w", format="mpegts") as container:
        stream: Any = None
        first = 0
        for (width_px, height_px), seconds in parts:
            encoder: Any = av.CodecContext.create("libx264", "w")
            if stream is None:
                stream = container.add_stream("libx264", rate=RATE_HZ)
                encoder = stream.codec_context
            encoder.width, encoder.height, encoder.pix_fmt = width_px, height_px, "yuv420p"
            encoder.time_base, encoder.gop_size = Fraction(1, RATE_HZ), RATE_HZ
            encoder.options = {"preset": "ultrafast", "tune": "zerolatency"}
            for number in range(first, first + seconds * RATE_HZ):
                picture = scene(number, (width_px, height_px))
                frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format="yuv420p")
                frame.pts, frame.time_base = number, encoder.time_base
                container.mux(_of(stream, encoder.encode(frame)))
            container.mux(_of(stream, encoder.encode(None)))
            first += seconds * RATE_HZ
    return path


def _of(stream: Any, packets: list[Any]) -> list[Any]:
    for packet in packets:
        packet.stream = stream
    return packets


class RtspServer:
    """GStreamer's RTSP server in a process of its own; it can be stopped and started again."""

    def __init__(self, pem: Path | None = None) -> None:
        """Prepare to serve; over TLS with a file that has a certificate and its key."""
        self.port = 0
        self._pem = pem
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where its stream is."""
        return f"rtsp{'s' if self._pem else ''}://127.0.0.1:{self.port}/stream"

    async def start(self, file: Path, codec: str, *login: str) -> None:
        """Serve a file at the same port as before; `login`: user and password."""
        command = [gstreamer_python(), str(SERVER), str(self.port), str(file), codec, *login]
        command += ["--tls", str(self._pem)] if self._pem else []
        self._process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        assert line.startswith("ready"), line
        self.port = int(line.split()[1])

    async def stop(self) -> None:
        """Stop serving, as if the camera's power was cut."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def rtsp(
    file: Path, codec: str, *login: str, pem: Path | None = None
) -> AsyncIterator[RtspServer]:
    """Serve a file meanwhile."""
    server = RtspServer(pem)
    await server.start(file, codec, *login)
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def changing_codec(first: Path, then: Path) -> AsyncIterator[str]:
    """Serve a live MPEG-TS over HTTP whose codec changes within a session; yield its address.

    Who connects after the change gets the second file only.
    """
    changed = False

    async def stream(request: web.Request) -> web.StreamResponse:
        nonlocal changed
        answer = web.StreamResponse(headers={"Content-Type": "video/mp2t"})
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            for file in [then] if changed else [first, then]:
                with av.open(str(file)) as container:
                    seconds = (container.duration or 0) / av.time_base
                data = file.read_bytes()
                changed = changed or file == then
                step = -(-len(data) // max(1, round(seconds * RATE_HZ)))
                for begin in range(0, len(data), step):
                    await answer.write(data[begin : begin + step])
                    await asyncio.sleep(1 / RATE_HZ)
        return answer

    async with _served(stream, "video.ts") as url:
        yield url


@contextlib.asynccontextmanager
async def mjpeg(login: tuple[str, str] | None = None) -> AsyncIterator[str]:
    """Serve a camera's MJPEG over HTTP meanwhile; yield its address."""

    async def stream(request: web.Request) -> web.StreamResponse:
        if login is not None:
            given = request.headers.get("Authorization", "")
            if given != encode_basic_auth(*login):
                refuse = {"WWW-Authenticate": 'Basic realm="camera"'}
                return web.Response(status=401, headers=refuse)
        answer = web.StreamResponse(
            headers={"Content-Type": "multipart/x-mixed-replace; boundary=frame"}
        )
        await answer.prepare(request)
        number = 0
        with contextlib.suppress(ConnectionError):
            while True:
                picture = encode(scene(number))
                head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}"
                await answer.write(f"{head}\r\n\r\n".encode() + picture + b"\r\n")
                number += 1
                await asyncio.sleep(1 / RATE_HZ)
        return answer

    async with _served(stream, "video") as url:
        yield url


@contextlib.asynccontextmanager
async def _served(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]], name: str
) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get(f"/{name}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/{name}"
    finally:
        await runner.cleanup()
