"""Streams of decoded pictures: what may happen in several threads at once."""

import itertools
import threading
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from edgebox.domain.source_address import SourceAddress, SourceKind
from edgebox.media.picture_stream import DecodedPicture, FileStream
from tests.conftest import PATIENCE_S

TASKS = Path("/proc/self/task")


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
    before = len(list(TASKS.iterdir()))
    pictures[0].rgb(160, 90)
    pictures[0].luma(32, 18)
    assert len(list(TASKS.iterdir())) == before
