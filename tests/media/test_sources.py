"""Frame sources: real folders and videos, made on the spot; errors that say what to do."""

import builtins
import io
import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import ExifTags, Image, ImageOps

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.source_address import SourceAddress, SourceKind, read_address
from edgebox.media import losses
from edgebox.media.containers import SourceError, measured_path_ns, open_container
from edgebox.media.jpeg import encode
from edgebox.media.pacing import LEFT_OUT_MAX_S, Pacer
from edgebox.media.picture_stream import LiveStream
from edgebox.media.sources import FrameSource, PictureSource, open_source, read_picture
from edgebox.media.video import LiveSource, VideoFileSource
from tests.conftest import PATIENCE_S


def level(frame: np.ndarray[Any, Any]) -> int:
    return round(float(frame.mean()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        Image.new("RGB", (64, 48), (number * 50,) * 3).save(tmp_path / f"{number}.png")
    (tmp_path / "notes.txt").write_text("not a picture")
    return tmp_path


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 10 frames at 25 fps, ever brighter."""
    path = tmp_path_factory.mktemp("video") / "brighter.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 25)
        for number in range(10):
            pixels = np.full((64, 96, 3), 20 + number * 20, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def test_a_folder_is_played_in_order_at_its_rate(folder: Path) -> None:
    source = open_source(str(folder), 50.0, loop=False)
    assert (source.width_px, source.height_px) == (64, 48)
    began_s = time.monotonic()
    frames = list(source.frames())
    took_s = time.monotonic() - began_s
    assert [level(frame) for frame in frames] == [0, 50, 100, 150]
    assert all(frame.shape == (48, 64, 3) and frame.dtype == np.uint8 for frame in frames)
    assert took_s >= 3 / 50


def test_a_folder_loops(folder: Path) -> None:
    source = open_source(str(folder), 500.0)
    frames = source.frames()
    levels = [level(next(frames)) for _ in range(9)]
    source.close()
    assert set(levels) <= {0, 50, 100, 150}
    assert levels[0] == 0
    assert list(frames) == []


def test_pictures_of_another_size_are_scaled_to_the_first(folder: Path) -> None:
    Image.new("RGB", (10, 10)).save(folder / "z.jpg")
    frames = list(open_source(str(folder), 200.0, loop=False).frames())
    assert {frame.shape for frame in frames} == {(48, 64, 3)}


def test_one_picture_is_a_source_too(folder: Path) -> None:
    frames = open_source(str(folder / "2.png"), 200.0).frames()
    assert [level(next(frames)) for _ in range(3)] == [100, 100, 100]


def test_a_maker_that_is_too_slow_leaves_periods_out() -> None:
    made: list[int] = []

    def slowly(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        made.append(number)
        time.sleep(0.05)
        return np.zeros((2, 2, 3), np.uint8)

    source = PictureSource((2, 2), 100.0, slowly)
    frames = source.frames()
    for _ in range(4):
        next(frames)
    assert made[0] == 0
    assert all(later - earlier >= 4 for earlier, later in itertools.pairwise(made))


def test_a_video_is_played_in_real_time(video: Path) -> None:
    source = open_source(str(video), None, loop=False)
    assert (source.width_px, source.height_px) == (96, 64)
    began_s = time.monotonic()
    levels = [level(frame) for frame in source.frames()]
    took_s = time.monotonic() - began_s
    assert len(levels) == 10
    assert levels == sorted(levels)
    assert abs(levels[0] - 20) < 8
    assert 9 / 25 <= took_s < PATIENCE_S


def test_a_video_is_thinned_to_the_rate_and_loops(video: Path) -> None:
    source = open_source(str(video), 10.0)
    frames = source.frames()
    began_s = time.monotonic()
    levels = [level(next(frames)) for _ in range(7)]
    took_s = time.monotonic() - began_s
    source.close()
    assert 0.5 <= took_s < PATIENCE_S
    assert any(later < earlier for earlier, later in itertools.pairwise(levels))


def test_a_video_of_one_picture_loops(tmp_path: Path) -> None:
    path = tmp_path / "one.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        pixels = np.full((64, 96, 3), 20, np.uint8)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    assert len(list(VideoFileSource(path, None, loop=False).frames())) == 1
    frames = VideoFileSource(path, None, loop=True).frames()
    assert len(list(itertools.islice(frames, 3))) == 3


def test_a_video_is_sampled_evenly(video: Path) -> None:
    whole = VideoFileSource(video, None, loop=False)
    levels = [level(frame) for frame in whole.sampled(5)]
    np.testing.assert_allclose(levels, [20, 60, 100, 140, 180], atol=8)
    assert len(list(whole.sampled(1_000))) == 10
    assert [level(frame) for frame in whole.sampled(1)] == levels[:1]


def test_close_ends_a_source_that_waits() -> None:
    source = PictureSource((2, 2), 0.01, lambda _: np.zeros((2, 2, 3), np.uint8))
    frames = source.frames()
    next(frames)
    threading.Timer(0.05, source.close).start()
    began_s = time.monotonic()
    assert list(frames) == []
    assert time.monotonic() - began_s < PATIENCE_S


def test_a_live_source_keeps_only_the_newest(video: Path) -> None:
    # A file read without pacing stands for a stream that is faster than its reader.
    source = LiveSource(SourceAddress(SourceKind.FILE, str(video)))
    assert (source.width_px, source.height_px) == (96, 64)
    seen: list[int] = []

    def read(frames: Iterator[np.ndarray[Any, Any]]) -> None:
        for frame in frames:
            seen.append(level(frame))
            assert source._reader is not None
            source._reader.join(PATIENCE_S)  # it reads all others meanwhile

    with pytest.raises(InvalidInputError, match="the other side ended the stream"):
        read(source.frames())
    source.close()
    assert 1 <= len(seen) <= 2
    assert seen == sorted(seen)
    assert abs(seen[-1] - 200) < 8


@contextmanager
def mjpeg_camera(frames: int, connections: int) -> Iterator[str]:
    """Serve a camera's MJPEG over HTTP that hangs up after some frames; yield its address."""
    left = connections

    class Stream(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
            self.end_headers()
            for number in range(frames):
                picture = encode(np.full((48, 64, 3), 40 + 10 * number, np.uint8))
                self.wfile.write(
                    b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%b\r\n"
                    % (len(picture), picture)
                )
                time.sleep(0.02)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/stream.mjpg"
    finally:
        server.shutdown()
        server.server_close()


class Soon:
    """Tries a source again after a moment."""

    def wait_s(self) -> float:
        return 0.05

    def reset(self) -> None:
        """Do nothing."""


def test_a_network_camera_that_hangs_up_is_called_again_and_again() -> None:
    with mjpeg_camera(frames=12, connections=2) as address:
        then_ms = 1_500_000_000_000
        source = LiveSource(
            read_address(address)[0], retry=Soon(), wall_ns=lambda: then_ms * 1_000_000
        )
        assert (source.width_px, source.height_px) == (64, 48)
        levels: list[int] = []

        def lost() -> bool:
            return source.trouble is not None and source.trouble.remedy == losses.FAULTY.remedy

        def close_when_lost() -> None:
            deadline_s = time.monotonic() + PATIENCE_S
            while not lost() and time.monotonic() < deadline_s:
                time.sleep(0.01)
            source.close()

        threading.Thread(target=close_when_lost).start()
        levels.extend(level(frame) for frame in source.frames())
    assert source.trouble is not None
    assert source.trouble.text.startswith(losses.lost_text(then_ms, ""))
    assert source.trouble.remedy
    starts = [later < earlier for earlier, later in itertools.pairwise(levels)]
    assert sum(starts) == 1
    assert len(levels) >= 8


def test_a_stream_that_is_not_to_be_called_again_ends() -> None:
    with mjpeg_camera(frames=12, connections=1) as address:
        source = LiveSource(read_address(address)[0])
        with pytest.raises(InvalidInputError, match=r"ended the stream|the connection broke off"):
            list(source.frames())
    source.close()


def test_close_ends_a_live_source(video: Path) -> None:
    with mjpeg_camera(frames=500, connections=1) as address:
        source = open_source(address, 10.0)
        frames = source.frames()
        next(frames)
        source.close()
        assert list(frames) == []


def test_the_scene_is_a_source() -> None:
    source: FrameSource = open_source("scene:7", 10.0, size_px=(320, 180))
    assert (source.width_px, source.height_px) == (320, 180)
    frame = next(source.frames())
    assert frame.shape == (180, 320, 3)
    assert frame.dtype == np.uint8
    again = next(open_source("scene:7", 10.0, size_px=(320, 180)).frames())
    assert np.array_equal(frame, again)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scene:x", "seed must be a whole number"),
        ("/no/such/file.mp4", "no such file or folder"),
        ("~nobody-of-this-name/clip.mp4", "there is no user 'nobody-of-this-name'"),
        ("/dev/video99", "no such camera on this machine"),
        ("gopher://camera", r"the source must be an address like rtsp://"),
        ("rtsp://127.0.0.1:9/stream", "rtsp://127.0.0.1:9: connection refused"),
    ],
)
def test_sources_that_are_not_there(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        open_source(text, 10.0)


def test_files_that_are_no_pictures(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no pictures in this folder"):
        open_source(str(tmp_path))
    text = tmp_path / "text.mp4"
    text.write_text("hello " * 100)
    with pytest.raises(InvalidInputError, match="the file is no video"):
        open_source(str(text))
    with pytest.raises(InvalidInputError, match="it is none of JPEG, PNG, "):
        read_picture(text)
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8nothing")
    with pytest.raises(InvalidInputError, match=r"broken\.jpg: not a picture"):
        open_source(str(tmp_path))


@pytest.mark.parametrize("rate_hz", [0.0, -1.0, 1001.0, float("nan")])
def test_rates_that_cannot_be(rate_hz: float) -> None:
    with pytest.raises(InvalidInputError, match="rate must be above 0"):
        open_source("scene:", rate_hz)


def test_without_pyav_the_error_says_what_to_install(
    video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without_av(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "av":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_av)
    with pytest.raises(InvalidInputError, match=r"pip install av"):
        open_source(str(video))


def test_a_file_with_too_many_pixels_says_how_many_are_taken(tmp_path: Path) -> None:
    wanted = "at most 65500 px a side and 179.0 million pixels are taken; scale it down first"
    for name, size in (("large.png", (16_000, 12_000)), ("bomb.png", (20_000, 20_000))):
        Image.new("1", size).save(tmp_path / name)
        with pytest.raises(InvalidInputError, match=wanted):
            read_picture(tmp_path / name)


def test_a_png_whose_chunks_are_broken_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "broken.png"
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    content = path.read_bytes()
    # Of the second part of the picture, whose name is another then.
    at = content.index(b"IDAT", content.index(b"IDAT") + 4)
    path.write_bytes(content[:at] + b"V(o\xfc" + content[at + 4 :])
    with pytest.raises(InvalidInputError, match="not a picture that can be read: it is broken"):
        read_picture(path)


def test_what_a_video_says_of_itself_need_not_be_text(video: Path, tmp_path: Path) -> None:
    path = tmp_path / "titled.mkv"
    with av.open(str(video)) as before, av.open(str(path), "w") as after:
        after.metadata["title"] = "QQQQ"
        stream = after.add_stream_from_template(before.streams.video[0])
        for packet in before.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                after.mux(packet)
    content = path.read_bytes()
    assert b"QQQQ" in content
    path.write_bytes(content.replace(b"QQQQ", b"\xe9\xe8Q\xff"))
    assert (VideoFileSource(path, None, loop=False).width_px) == 96


def test_only_files_are_opened_as_files(video: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SourceError, match="the file is no video"):
        open_container(SourceAddress(SourceKind.FILE, str(pipe)))
    with pytest.raises(SourceError, match="there is no such file"):
        open_container(SourceAddress(SourceKind.FILE, "http://127.0.0.1:1/x.mp4"))
    odd = tmp_path / "12:30.mp4"
    odd.write_bytes(video.read_bytes())
    with open_container(SourceAddress(SourceKind.FILE, str(odd))) as container:
        assert container.streams.video[0].width == 96


def test_a_pipe_is_refused_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)

    def opened(path: Path, *_: object) -> io.BytesIO:
        raise AssertionError("whoever opens a pipe waits until somebody writes into it")

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(InvalidInputError, match="the file is no video; name a video file"):
        open_source(str(pipe), 10.0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_turned_as_its_exif_says(tmp_path: Path, orientation: int) -> None:
    seen = np.zeros((32, 48, 3), np.uint8)
    seen[:16, :24] = 255
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    # Turning by the opposite orientation is how the camera stores it.
    turned = Image.fromarray(seen)
    turned.getexif()[ExifTags.Base.Orientation] = {6: 8, 8: 6}.get(orientation, orientation)
    path = tmp_path / "photo.jpg"
    ImageOps.exif_transpose(turned).save(path, exif=exif, quality=95)
    upright = read_picture(path, upright=True)
    assert upright.shape == seen.shape
    assert np.abs(upright.astype(int) - seen).mean() < 8
    assert read_picture(path).shape[:2] == ((32, 48) if orientation < 5 else (48, 32))


def test_a_photo_whose_exif_is_broken_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    Image.new("RGB", (48, 32)).save(path, exif=b"Exif\x00\x00MM\x00*\x00\x00\xff\xff")
    assert read_picture(path, upright=True).shape == (32, 48, 3)
    Image.new("RGB", (48, 32)).save(path, exif=b"Exif\x00\x00no note")
    assert read_picture(path, upright=True).shape == (32, 48, 3)


@pytest.mark.parametrize("host", ["cam..local", "a" * 70])
def test_a_host_that_no_name_can_be_is_a_name_that_is_not_found(host: str) -> None:
    address, _ = read_address(f"rtsp://{host}/stream")
    with pytest.raises(SourceError, match="there is no machine of that name"):
        measured_path_ns(address)


def test_a_decoder_that_fails_in_a_way_of_its_own_ends_a_live_source_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(stream: LiveStream, packet: object) -> list[object]:
        raise RuntimeError("a defect")

    monkeypatch.setattr(LiveStream, "_decoded", breaks)
    with mjpeg_camera(frames=100, connections=1) as address:
        source = LiveSource(read_address(address)[0])
        failed: list[BaseException] = []

        def read() -> None:
            try:
                next(source.frames())
            except BaseException as error:
                failed.append(error)

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        reading.join(PATIENCE_S)
        source.close()
    [error] = failed
    assert isinstance(error, SourceError)
    assert error.cause.reason == "it could not be decoded (RuntimeError)"


def test_of_a_video_that_is_decoded_too_slowly_some_frames_come_all_the_same() -> None:
    now_s = 0.0
    pacer = Pacer(lambda: now_s)
    given: list[float] = []
    # 25 frames a second, each of which takes 0.2 s to decode: five times too slow.
    for number in range(500):
        now_s += 0.2
        if not pacer.misses(number / 25):
            assert pacer.wait(number / 25)
            given.append(now_s)
    waits_s = np.diff(given)
    assert waits_s.max() <= LEFT_OUT_MAX_S + 0.2
    # Who falls behind for a moment has all of them again.
    now_s = 0.0
    pacer = Pacer(lambda: now_s)
    assert pacer.wait(0.0)
    now_s = 0.8
    assert pacer.misses(0.04)
    assert not pacer.misses(0.4)
