"""Every way in which a source of pictures fails has a reason and a remedy of its own."""

import asyncio
import errno
import inspect
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from edgebox.domain.source_address import SourceAddress, SourceKind, read_address
from edgebox.media import losses
from edgebox.media.containers import SourceError, cause_of
from edgebox.media.losses import LossCause
from edgebox.media.picture_stream import open_stream
from tests.end_to_end.sources import write_video

CAMERA = SourceAddress(SourceKind.NETWORK, "rtsp://camera/stream")
SDP = (
    "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
    "m={media}\r\na=control:s0\r\n"
)


def of(url: str) -> LossCause:
    """Return why a source cannot be read; blocks."""
    address, credentials = read_address(url)
    with pytest.raises(SourceError) as caught:
        for _ in open_stream(address, credentials).pictures(lambda _: True):
            pass
    assert str(caught.value).endswith(f"{caught.value.cause.reason}; {caught.value.cause.remedy}")
    return caught.value.cause


def test_no_two_causes_have_the_same_reason_or_the_same_remedy() -> None:
    causes = [each for _, each in inspect.getmembers(losses, lambda of: isinstance(of, LossCause))]
    causes += [losses.timed_out(10), losses.silent(15)]
    assert len({each.reason for each in causes}) == len(causes) > 20
    assert len({each.remedy for each in causes}) == len(causes)


def test_files(tmp_path: Path) -> None:
    video = write_video(tmp_path / "video.mkv", "h264", seconds=1)
    (tmp_path / "noise.mp4").write_bytes(os.urandom(5_000))
    (tmp_path / "notes.txt").write_text("not a camera\n" * 500)
    (tmp_path / "cut.mkv").write_bytes(video.read_bytes()[:200])
    for name, cause in (
        ("missing.mp4", losses.NO_FILE),
        ("video.mkv/part", losses.NO_FILE),
        (".", losses.FOLDER),
        ("noise.mp4", losses.NOT_A_VIDEO_FILE),
        ("notes.txt", losses.NOT_A_VIDEO_FILE),  # FFmpeg would play it as a terminal
        ("cut.mkv", losses.BROKEN_FILE),
    ):
        assert of(f"file:{tmp_path / name}") == cause, name


def test_places_where_nothing_answers() -> None:
    assert of("webcam:97") == losses.NO_WEBCAM
    assert of("rtsp://nowhere.invalid/stream") == losses.NO_SUCH_NAME
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        assert of(f"rtsp://127.0.0.1:{taken.getsockname()[1]}/stream") == losses.REFUSED


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TimeoutError(), losses.timed_out(10)),
        (OSError(errno.EHOSTUNREACH, "No route to host"), losses.NO_ROUTE),
        (OSError(errno.EBUSY, "Device or resource busy"), losses.BUSY_WEBCAM),
        (PermissionError(errno.EACCES, "Permission denied"), losses.FORBIDDEN_FILE),
        (OSError(errno.ENOSPC, "No space"), LossCause("no space", losses.CHECK_ANY)),
    ],
)
def test_errors_of_the_system(error: OSError, cause: LossCause) -> None:
    assert cause_of(error, CAMERA) == cause


@asynccontextmanager
async def http_server(video: Path) -> AsyncIterator[str]:
    async def status(request: web.Request) -> web.StreamResponse:
        return web.Response(status=int(request.match_info["status"]))

    async def redirect(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(video.as_uri())

    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>log in</html>", content_type="text/html")

    async def file(request: web.Request) -> web.StreamResponse:
        return web.FileResponse(video)

    app = web.Application()
    app.add_routes([web.get("/redirect", redirect), web.get("/page", page), web.get("/file", file)])
    app.router.add_get("/{status}", status)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_answers_over_http(tmp_path: Path) -> None:
    video = write_video(tmp_path / "video.mkv", "h264", seconds=1)
    async with http_server(video) as place:
        for path, cause in (
            ("401", losses.WRONG_PASSWORD),
            ("403", losses.FORBIDDEN),
            ("404", losses.NOT_FOUND),
            ("429", losses.STREAM_REFUSED),
            ("503", losses.FAULTY),
            ("redirect", losses.REDIRECTED),
            ("page", losses.NOT_VIDEO),
            ("file", losses.ENDED),
        ):
            assert await asyncio.to_thread(of, f"http://{place}/{path}") == cause, path
        assert await asyncio.to_thread(of, f"https://{place}/file") == losses.NO_TLS


@asynccontextmanager
async def rtsp_server(answer: Callable[[str], str]) -> AsyncIterator[str]:
    """Answer each method with a status line and what follows it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).decode()
                (number,) = [line for line in asked.split("\r\n") if line.startswith("CSeq")]
                first, _, rest = answer(asked.split()[0]).partition("\r\n")
                writer.write(f"RTSP/1.0 {first}\r\n{number}\r\n{rest}\r\n".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"rtsp://127.0.0.1:{server.sockets[0].getsockname()[1]}/stream"


def described(media: str) -> Callable[[str], str]:
    """Return the answers of a camera that has one stream."""
    text = SDP.format(media=media)
    head = f"Content-Type: application/sdp\r\nContent-Length: {len(text)}\r\n\r\n"
    answers = {
        # What follows the length is cut to it, the last line end included.
        "DESCRIBE": f"200 OK\r\n{head}{text.removesuffix(chr(13) + chr(10))}",
        "SETUP": "200 OK\r\nSession: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
    }
    return lambda method: answers.get(method, "200 OK\r\n")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (lambda method: "401 Unauthorized\r\n", losses.WRONG_PASSWORD),
        (lambda method: "404 Not Found\r\n", losses.NOT_FOUND),
        (lambda method: "454 Session Not Found\r\n", losses.STREAM_REFUSED),
        (lambda method: "453 Not Enough Bandwidth\r\n", losses.STREAM_REFUSED),
        (described("video 0 RTP/AVP 96\r\na=rtpmap:96 FOOBAR/90000"), losses.UNKNOWN_CODEC),
        (described("audio 0 RTP/AVP 0"), losses.NO_VIDEO),
    ],
)
async def test_answers_over_rtsp(answer: Callable[[str], str], cause: LossCause) -> None:
    async with rtsp_server(answer) as url:
        assert await asyncio.to_thread(of, url) == cause
