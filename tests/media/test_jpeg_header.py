"""What a JPEG may cost: which pictures are refused before they are decoded, and which are not."""

import io
import struct
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from edgebox.domain.errors import InvalidInputError
from edgebox.media import jpeg
from edgebox.media.jpeg_header import (
    FRAME_LIMITS,
    PIXELS_MAX,
    SCANS_MAX,
    SEGMENTS_MAX,
    JpegLimits,
    read_header,
)
from edgebox.media.sources import FILE_LIMITS
from tests.media.hostile import many_scans, segment, with_header

NOISE = np.random.default_rng(0).integers(0, 256, (90, 160, 3), dtype=np.uint8)


def saved(mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(NOISE).convert(mode).save(out, "JPEG", **options)
    return out.getvalue()


def refused(data: bytes) -> str:
    """Return why a picture is refused, and insist that the codec was never asked."""
    with (
        mock.patch.object(Image, "open", side_effect=AssertionError("the codec was asked")),
        pytest.raises(InvalidInputError) as caught,
    ):
        jpeg.decode_into(data, np.zeros((32, 32, 3), np.uint8))
    with pytest.raises(InvalidInputError, match="JPEG"):
        jpeg.probe(memoryview(data))
    return str(caught.value)


def test_sixty_thousand_scans_are_refused() -> None:
    data = many_scans(1920, 1080, 60_000, scan_bytes=34)
    assert len(data) > 2_000_000
    assert "1920 × 1080 px in more than 100 scans" in refused(data)


@pytest.mark.parametrize("scans", [1, 10, SCANS_MAX])
def test_so_many_scans_are_decoded(scans: int) -> None:
    assert jpeg.decode(many_scans(64, 48, scans)).shape == (48, 64, 3)


def test_a_large_picture_may_have_fewer_scans() -> None:
    assert jpeg.probe(many_scans(4096, 4096, 20)) == (4096, 4096)
    assert "more than 20 scans" in refused(many_scans(4096, 4096, 21))
    assert "more than 80 scans" in refused(many_scans(2048, 2048, 81))


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"keep_rgb": True}])
def test_what_encoders_write_is_taken_at_any_size(mode: str, options: dict[str, Any]) -> None:
    largest = JpegLimits(scan_pixels_max=FRAME_LIMITS.scan_pixels_max * 160 * 90 // PIXELS_MAX)
    data = saved(mode, **options)
    read_header(data, largest)
    pillows = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), np.int16)
    apart = np.abs(jpeg.decode(data) - pillows).max()
    assert apart <= (1 if mode == "CMYK" else 0), "conversion from CMYK is rounded differently"


def test_scans_of_a_baseline_picture_count_where_the_codec_would_read_them() -> None:
    three = many_scans(64, 48, 200).replace(b"\xff\xc2", b"\xff\xc0", 1)
    assert jpeg.probe(three) == (64, 48)  # its one component is whole after the first scan
    at = three.index(b"\xff\xc0")
    of_two = three[: at + 9] + b"\x02\x01\x11\x00\x02\x11\x00" + three[at + 13 :]
    of_two = of_two[: at + 2] + struct.pack(">H", 14) + of_two[at + 4 :]
    assert "more than 100 scans" in refused(of_two)


@pytest.mark.parametrize(
    ("junk", "message"),
    [
        (b"\xff\xe5\x00\x02" * 500_000, f"more than {SEGMENTS_MAX} segments"),
        (b"\xff\xfe\x00\x02" * (SEGMENTS_MAX + 1), f"more than {SEGMENTS_MAX} segments"),
        (b"\xff\xd0" * 500_000, f"more than {SEGMENTS_MAX} segments"),
        (segment(0xDB, bytes((0, *[1] * 64)) * 1_000), "bytes of tables"),
        (segment(0xC4, bytes(60_000)), "bytes of tables"),
    ],
    ids=["APP5", "COM", "RST", "DQT", "DHT"],
)
def test_an_endless_header_is_refused(junk: bytes, message: str) -> None:
    assert message in refused(with_header(saved(), junk))


def test_fill_bytes_and_metadata_change_nothing_and_reach_no_parser() -> None:
    """Pillow reads EXIF, Photoshop's and several pictures' metadata in Python: for seconds."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x1a\x01\x05\0\xff\xff\xff\x0f\x08\0\0\0" * 5_000
    photoshop = b"Photoshop 3.0\0" + b"8BIM\x04\x04\x00\x00\x00\x00\x00\x00" * 5_000
    pictures = b"MPF\0II*\0\x08\0\0\0\xff\xff" + bytes(60_000)
    junk = b"".join((
        segment(0xE1, exif), segment(0xED, photoshop), segment(0xE2, pictures),
        segment(0xE2, b"ICC_PROFILE\0\x01\x01" + bytes(60_000)),
        segment(0xFE, b"\xff\xda" * 30_000), b"\xff" * 1_000_000,
    ))  # fmt: skip
    plain = saved(progressive=True)
    data = with_header(plain, junk)
    header = read_header(data)
    assert len(header.essence(data)) <= len(plain)
    assert np.array_equal(jpeg.decode(data), jpeg.decode(plain))


def test_what_a_telephone_appends_is_not_counted() -> None:
    plain = saved(progressive=True)
    film = b"\xff\xda" * 1_000
    assert np.array_equal(jpeg.decode(plain + film), jpeg.decode(plain))
    header = read_header(plain + film)
    assert header.essence(plain + film).endswith(b"\xff\xd9")


@given(comments=st.lists(st.sampled_from([b"\xff\xd9", b"\xff\xda", b"\xff"]), max_size=6))
def test_no_end_that_is_only_said_in_a_comment_hides_scans(comments: list[bytes]) -> None:
    hostile = many_scans(64, 48, SCANS_MAX + 1)
    second = hostile.index(b"\xff\xda", hostile.index(b"\xff\xda") + 2)
    data = hostile[:second] + segment(0xFE, b"".join(comments)) + hostile[second:]
    assert "scans" in refused(data)


@given(data=st.data())
def test_the_codec_never_sees_more_scans_than_allowed(data: st.DataObject) -> None:
    """Whatever is in it: what is handed on has no more places where a scan could begin."""
    parts = st.sampled_from([
        b"\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00", b"\xff\xda", b"\xff\xd9", b"\xff\xd8", b"\x00",
        b"\xff\xfe\x00\x05", b"\xff\xfe\xff\xff", b"\xff", b"\xff\xd0", b"\xff\xc4\x00\x03",
    ])  # fmt: skip
    tail = b"".join(data.draw(st.lists(parts, max_size=40)))
    plain = many_scans(64, 48, 2)[:-2] + tail
    limits = JpegLimits(scan_pixels_max=6 * 64 * 48)
    try:
        header = read_header(plain, limits)
    except InvalidInputError:
        return
    assert header.essence(plain).count(b"\xff\xda") <= 6


def test_a_local_file_may_be_larger_but_not_have_more_scans() -> None:
    read_header(many_scans(6000, 4000, 10), FILE_LIMITS)
    with pytest.raises(InvalidInputError, match="scans"):
        read_header(many_scans(64, 48, 60_000), FILE_LIMITS)
