"""Streams of decoded pictures: what may happen in several threads at once."""

import itertools
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from edgebox.domain.source_address import SourceAddress, SourceKind
from edgebox.media.containers import SourceError
from edgebox.media.jpeg import encode
from edgebox.media.picture_stream import DecodedPicture, FileStream, LiveStream, Undecoded
from tests.conftest import PATIENCE_S

SILENT_S = 0.1
TASKS, FILES = Path("/proc/self/task"), Path("/proc/self/fd")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[DecodedPicture]:
    """Return a few pictures of one stream, all different."""
    path = tmp_path_factory.mktemp("video") / "noise.mp4"
    noise = np.random.default_rng(0).integers(0, 256, (6, 360, 640, 3), dtype=np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=50)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 50)
        for pixels in noise:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    opened = FileStream(SourceAddress(SourceKind.FILE, str(path)))
    try:
        return list(itertools.islice(opened.pictures(lambda _: True), 4))
    finally:
        opened.close()


def test_brightness_and_pictures_are_scaled_in_two_threads_at_once(
    pictures: list[DecodedPicture],
) -> None:
    bright, coloured = pictures[:2], pictures[2:]
    as_luma = [each.luma(64, 36) for each in bright]
    as_rgb = [each.rgb(320, 180) for each in coloured]
    same: list[bool] = []

    def look() -> None:
        for _ in range(400):
            same.extend(map(np.array_equal, as_luma, [each.luma(64, 36) for each in bright]))

    def convert() -> None:
        for _ in range(50):
            same.extend(map(np.array_equal, as_rgb, [each.rgb(320, 180) for each in coloured]))

    # As a camera with a motion gate does: its reader looks, and another thread encodes.
    threads = [threading.Thread(target=each, daemon=True) for each in (look, convert)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert all(same)


@pytest.mark.skipif(not TASKS.is_dir(), reason="only Linux lists a process's threads")
def test_scaling_starts_no_threads(pictures: list[DecodedPicture]) -> None:
    before = set(TASKS.iterdir())  # threads of earlier tests may end meanwhile
    pictures[0].rgb(160, 90)
    pictures[0].luma(32, 18)
    assert not set(TASKS.iterdir()) - before


class DamagingCamera(BaseHTTPRequestHandler):
    """Sends 30 white pictures, some of them cut off, as MJPEG over HTTP."""

    cut_off_every = 3

    def do_GET(self) -> None:
        whole = encode(np.full((360, 640, 3), 255, np.uint8), 85)
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=next")
        self.end_headers()
        for number in range(30):
            picture = whole[: len(whole) // 2] if number % self.cut_off_every == 0 else whole
            head = f"--next\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
            self.wfile.write(head.encode() + picture + b"\r\n")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as there
        """Say nothing."""


class DamagingAll(DamagingCamera):
    """Cuts off all."""

    cut_off_every = 1


def darkest_of_each(camera: type[DamagingCamera]) -> list[int]:
    """Return the brightness of the darkest place of each picture that is decoded."""
    with ThreadingHTTPServer(("127.0.0.1", 0), camera) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        stream = LiveStream(SourceAddress(SourceKind.NETWORK, url))
        darkest: list[int] = []
        with pytest.raises(SourceError):
            darkest.extend(int(each.luma(64, 36).min()) for each in stream.pictures(lambda _: True))
        server.shutdown()
    return darkest


def test_a_damaged_picture_of_a_camera_costs_itself_alone() -> None:
    darkest = darkest_of_each(DamagingCamera)
    assert len(darkest) > 15
    assert min(darkest) > 200


def test_what_is_left_is_shown_of_a_camera_that_damages_all_its_pictures() -> None:
    darkest = darkest_of_each(DamagingAll)
    assert len(darkest) > 15
    assert max(darkest) < 200


class Damaged:
    """A packet of which no picture can be decoded."""

    def decode(self) -> list[object]:
        raise av.error.InvalidDataError(1, "damaged")


class Whole:
    """A packet with a picture."""

    def decode(self) -> list[object]:
        return ["a picture"]


@pytest.mark.parametrize("alone", [True, False], ids=["without references", "with references"])
@pytest.mark.parametrize("rate_hz", [25.0, 1.0, 0.1])
def test_a_stream_is_given_up_after_many_packets_and_some_time_at_any_rate(
    rate_hz: float, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = 0
    clock = SimpleNamespace(monotonic_ns=lambda: now_ns)
    monkeypatch.setattr("edgebox.media.picture_stream.time", clock)
    stream = LiveStream.__new__(LiveStream)
    stream.address, stream.codec = SourceAddress(SourceKind.NETWORK, "http://camera/x"), "mjpeg"
    stream._undecoded = Undecoded()
    stream._tolerant, stream._damages_all = None, alone

    def tried(packet: Damaged | Whole, times: int) -> None:
        nonlocal now_ns
        for _ in range(times):
            stream._decoded(packet)
            now_ns += round(1e9 / rate_hz)

    if alone:
        tried(Damaged(), 8)
        assert stream._tolerant is not None, "what is left of its pictures is shown"
        stream._tolerant = SimpleNamespace(decode=lambda packet: packet.decode())
    tried(Damaged(), 8)
    tried(Whole(), 1)
    tried(Damaged(), 8)
    with pytest.raises(SourceError, match="cannot be decoded any more"):
        tried(Damaged(), 200)
    assert now_ns > 5e9


class Sounding:
    """A container whose video stops, while its sound goes on."""

    def demux(self, *wanted: SimpleNamespace) -> Iterator[SimpleNamespace]:
        """Yield packets; of some streams only if they are given, as PyAV does."""
        for number in itertools.count():
            stream = SimpleNamespace(index=int(number > 0))
            if not wanted or stream.index in {each.index for each in wanted}:
                yield SimpleNamespace(stream=stream, pts=None, is_keyframe=False)
            time.sleep(0.01)

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("closes", [False, True])
def test_a_source_whose_sound_goes_on_without_video_has_broken_off(
    closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgebox.media.picture_stream.SILENCE_S", 60.0 if closes else SILENT_S)
    stream = LiveStream.__new__(LiveStream)
    stream.address = SourceAddress(SourceKind.NETWORK, "http://camera/stream.ts")
    stream._container, stream._closed = Sounding(), False
    stream._is_read, stream._changing = False, threading.Lock()
    codec = SimpleNamespace(codec=SimpleNamespace(intra_only=True))
    stream._stream = SimpleNamespace(index=0, codec_context=codec)
    monkeypatch.setattr(LiveStream, "_capture_of", lambda stream, packet: 0)
    ended: list[str] = []

    def read() -> None:
        try:
            list(stream.pictures(lambda _: False))
            ended.append("closed")
        except SourceError as error:
            ended.append(error.cause.reason)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    if closes:
        time.sleep(SILENT_S)
        stream.close()
    reading.join(PATIENCE_S)
    assert ended == ["closed" if closes else "nothing was received for 0.1 s"]


@pytest.mark.parametrize("kind", [FileStream, LiveStream])
def test_a_stream_that_nobody_reads_is_closed(
    tmp_path: Path, kind: type[FileStream] | type[LiveStream]
) -> None:
    path = tmp_path / "picture.mjpeg"
    path.write_bytes(encode(np.full((48, 64, 3), 255, np.uint8), 85))
    before = set(open_files())
    opened = kind(SourceAddress(SourceKind.FILE, str(path)))
    assert str(path) in set(open_files()) - before
    opened.close()
    opened.close()
    assert str(path) not in open_files()
    assert list(opened.pictures(lambda _: True)) == []


def open_files() -> list[str]:
    return [str(each.readlink()) for each in FILES.iterdir() if each.is_symlink()]
