"""JPEG in and out: sizes, placement, and that no bytes can do harm."""

import io
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from edgebox.domain.errors import InvalidInputError
from edgebox.media import jpeg
from edgebox.media.jpeg_header import SIDE_MAX_PX

FILL = 114


def gradient(width: int, height: int) -> NDArray[np.uint8]:
    """Return a smooth picture, which survives compression nearly unchanged."""
    rows = np.linspace(0, 255, height)[:, None]
    columns = np.linspace(0, 255, width)[None, :]
    channels = (rows + 0 * columns, columns + 0 * rows, (rows + columns) / 2)
    return np.stack(channels, axis=-1).astype(np.uint8)


def saved(mode: str, size: tuple[int, int] = (64, 48), **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(gradient(*size)).convert(mode).save(out, "JPEG", **options)
    return out.getvalue()


PLAIN = jpeg.encode(gradient(64, 48))


def huge(width: int, height: int) -> bytes:
    """Return a JPEG whose header claims another size."""
    at = PLAIN.index(b"\xff\xc0")
    return PLAIN[: at + 5] + height.to_bytes(2) + width.to_bytes(2) + PLAIN[at + 9 :]


@pytest.mark.parametrize("size", [(64, 48), (1, 1), (1280, 720), (8192, 1), (37, 501)])
def test_probe_reads_the_size(size: tuple[int, int]) -> None:
    for options in ({}, {"progressive": True}, {"quality": 5}, {"comment": b"\xff\xc0" * 50}):
        data = saved("RGB", size, **options)
        assert jpeg.probe(data) == size
        assert jpeg.probe(memoryview(data)) == size


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "not a JPEG"),
        (b"\xff", "not a JPEG"),
        (b"\x89PNG\r\n\x1a\n", "not a JPEG"),
        (b"\xff\xd8", "truncated"),
        (PLAIN[:50], "truncated"),
        (PLAIN[: PLAIN.index(b"\xff\xc0") + 7], "truncated"),
        (b"\xff\xd8\xff\xda\x00\x08", "before the picture's size"),
        (b"\xff\xd8\x00\x00\x00\x00", "no marker at byte 2"),
        (b"\xff\xd8\xff\xe0\x00\x01\x00", "a segment of 1 bytes"),
        (PLAIN.replace(b"\xff\xc0", b"\xff\xc3"), "SOF3 cannot be decoded"),
        (PLAIN.replace(b"\xff\xc0", b"\xff\xc9"), "SOF9 cannot be decoded"),
        (huge(30_000, 30_000), "30000 × 30000 px: at most 8192 px a side"),
        (
            huge(4097, 4096),
            "4097 × 4096 px: at most 8192 px a side and 16.8 million pixels are taken; scale it",
        ),
        (huge(8193, 10), "8193 × 10"),
        (huge(0, 10), "0 × 10"),
    ],
)
def test_wrong_headers(data: bytes, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        jpeg.probe(data)
    canvas = np.full((10, 10, 3), 7, np.uint8)
    with pytest.raises(InvalidInputError, match=complaint):
        jpeg.decode_into(data, canvas)
    assert (canvas == 7).all()


def test_an_absurd_header_costs_nothing() -> None:
    data = huge(30_000, 30_000)
    canvas = np.zeros((352, 608, 3), np.uint8)
    began_s = time.thread_time()
    for _ in range(100):
        with pytest.raises(InvalidInputError):
            jpeg.decode_into(data, canvas)
    assert time.thread_time() - began_s < 0.5


@given(data=st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"\xff\xd8" + tail))
def test_any_bytes_are_probed_or_refused(data: bytes) -> None:
    try:
        width, height = jpeg.probe(data)
    except InvalidInputError:
        return
    assert 1 <= width <= SIDE_MAX_PX
    assert 1 <= height <= SIDE_MAX_PX


@given(
    cut=st.integers(0, len(PLAIN)),
    at=st.integers(0, len(PLAIN) - 1),
    junk=st.binary(min_size=1, max_size=8),
)
def test_damaged_pictures_are_decoded_or_refused(cut: int, at: int, junk: bytes) -> None:
    canvas = np.zeros((32, 32, 3), np.uint8)
    for data in (PLAIN[:cut], PLAIN[:at] + junk + PLAIN[at + len(junk) :]):
        try:
            placement = jpeg.decode_into(data, canvas)
        except InvalidInputError:
            continue
        assert (placement.width_px, placement.height_px) == jpeg.probe(data)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_picture_is_refused(kept: float) -> None:
    data = jpeg.encode(np.random.default_rng(0).integers(0, 256, (240, 320, 3), dtype=np.uint8))
    with pytest.raises(InvalidInputError, match="truncated"):
        jpeg.decode(data[: int(len(data) * kept)])


def test_bytes_after_the_end_are_ignored() -> None:
    assert np.array_equal(jpeg.decode(PLAIN + b"\x00garbage\xff\xd8" * 9), jpeg.decode(PLAIN))


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
def test_other_colours_are_converted(mode: str) -> None:
    decoded = jpeg.decode(saved(mode, quality=95))
    expected = np.asarray(Image.fromarray(gradient(64, 48)).convert(mode).convert("RGB"))
    assert np.abs(decoded.astype(int) - expected.astype(int)).mean() < 3


@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    canvas_width=st.integers(1, 120),
    canvas_height=st.integers(1, 120),
    centred=st.booleans(),
)
def test_a_picture_fits_its_canvas_with_its_aspect_and_the_rest_is_filled(
    width: int, height: int, canvas_width: int, canvas_height: int, centred: bool
) -> None:
    data = jpeg.encode(np.full((height, width, 3), 250, np.uint8))
    canvas = np.zeros((canvas_height, canvas_width, 3), np.uint8)
    placement = jpeg.decode_into(data, canvas, FILL, "centre" if centred else "top_left")
    assert (placement.width_px, placement.height_px) == (width, height)
    scale = min(canvas_width / width, canvas_height / height)
    covered = canvas[..., 0] > 200
    rows, columns = np.flatnonzero(covered.any(1)), np.flatnonzero(covered.any(0))
    shown = (columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1)
    assert shown[0] == canvas_width or shown[1] == canvas_height
    assert abs(shown[0] - width * scale) <= 1
    assert abs(shown[1] - height * scale) <= 1
    assert (columns[0], rows[0]) == (placement.left_px, placement.top_px)
    assert (canvas[~covered] == FILL).all()
    if not centred:
        assert (placement.left_px, placement.top_px) == (0, 0)


@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    canvas_width=st.integers(1, 120),
    canvas_height=st.integers(1, 120),
    fit=st.sampled_from(["stretch", "cover"]),
)
def test_a_picture_can_fill_its_canvas_whole(
    width: int, height: int, canvas_width: int, canvas_height: int, fit: jpeg.Fit
) -> None:
    canvas = np.zeros((canvas_height, canvas_width, 3), np.uint8)
    white = np.full((height, width, 3), 250, np.uint8)
    decoded = jpeg.decode_into(jpeg.encode(white), canvas, FILL, fit)
    assert (canvas > 200).all()
    canvas[:] = 0
    assert jpeg.lay_into(white, canvas, FILL, fit) == decoded
    assert (canvas > 200).all()


def test_what_covers_is_cut_off_equally_on_both_sides() -> None:
    picture = gradient(300, 100)
    canvas = np.zeros((100, 100, 3), np.uint8)
    jpeg.lay_into(picture, canvas, FILL, "cover")
    assert np.array_equal(canvas, picture[:, 100:200])


def test_a_thin_picture_that_covers_costs_no_memory() -> None:
    canvas = np.zeros((512, 512, 3), np.uint8)
    started_s = time.thread_time()
    placement = jpeg.decode_into(jpeg.encode(np.zeros((1, 8192, 3), np.uint8)), canvas, 0, "cover")
    assert time.thread_time() - started_s < 1.0
    assert placement.placed_width_px == 8192 * 512


@pytest.mark.parametrize("size", [(320, 180), (1280, 720), (100, 56)])
def test_scaling_keeps_what_is_where(size: tuple[int, int]) -> None:
    canvas = np.zeros((180, 320, 3), np.uint8)
    jpeg.decode_into(jpeg.encode(gradient(*size), 95), canvas, FILL)
    assert np.abs(canvas[:178].astype(int) - gradient(320, 180)[:178].astype(int)).mean() < 3


def test_encode_obeys_the_quality() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    sizes = [len(jpeg.encode(noise, quality)) for quality in (20, 60, 90)]
    assert sizes == sorted(sizes)
    assert jpeg.probe(jpeg.encode(noise)) == (100, 100)


def test_resize() -> None:
    picture = gradient(320, 180)
    assert jpeg.resize_rgb(picture, 320, 180) is picture
    small = jpeg.resize_rgb(picture, 160, 90)
    assert small.shape == (90, 160, 3)
    assert np.abs(small.astype(int) - gradient(160, 90).astype(int)).mean() < 2


def test_many_threads_at_once() -> None:
    pictures = [jpeg.encode(np.full((90, 160, 3), level, np.uint8)) for level in range(0, 250, 5)]

    def level_of(data: bytes) -> float:
        canvas = np.zeros((45, 80, 3), np.uint8)
        jpeg.decode_into(data, canvas)
        return float(canvas.mean())

    with ThreadPoolExecutor(4) as pool:
        levels = list(pool.map(level_of, pictures * 4))
    assert np.allclose(levels, [*range(0, 250, 5)] * 4, atol=1.5)


def test_a_picture_that_the_decoder_does_not_know_is_refused_in_plain_words() -> None:
    unknown = PLAIN[:2] + b"\xff\x75" + PLAIN[4:]
    with pytest.raises(InvalidInputError, match="a broken JPEG: its header") as refused:
        jpeg.decode(unknown)
    assert "object at" not in str(refused.value)


@given(
    size=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    more=st.tuples(st.integers(0, 3), st.integers(0, 40)),
    fit=st.sampled_from(["top_left", "centre", "stretch", "cover"]),
    seed=st.integers(0, 9),
)
def test_a_picture_of_its_place_is_decoded_as_if_alone(
    size: tuple[int, int], more: tuple[int, int], fit: jpeg.Fit, seed: int
) -> None:
    (width, height), (wider, higher) = size, more
    rgb = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    data = jpeg.encode(rgb)
    canvas = np.full((height + higher, width + wider, 3), 7, np.uint8)
    expected = np.full_like(canvas, 9)
    assert jpeg.decode_into(data, canvas, FILL, fit) == jpeg.lay_into(
        jpeg.decode(data), expected, FILL, fit
    )
    assert np.array_equal(canvas, expected)


def test_slight_damage_is_taken_as_before() -> None:
    """Bytes between the entropy-coded data and the next marker are a warning, no error."""
    at = PLAIN.rindex(b"\xff\xd9")
    damaged = PLAIN[:at] + b"\x00\x00\x00" + PLAIN[at:]
    assert np.array_equal(jpeg.decode(damaged), jpeg.decode(PLAIN))
    canvas, expected = np.zeros((2, 56, 64, 3), np.uint8)
    for data, into in ((damaged, canvas), (PLAIN, expected)):
        jpeg.decode_into(data, into)
    assert np.array_equal(canvas, expected)
