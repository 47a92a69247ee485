"""Checks a JPEG's markers: its format, and whether the time to decode it is bounded.

The walk ends at the first scan. It is O(segments), of which only so many are taken; runs of fill
bytes and the count of scans cost C speed. Nothing is decoded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from edgebox.domain.errors import InvalidInputError

SIDE_MAX_PX = 8192
PIXELS_MAX = 4096 * 4096
"""A baseline picture of this size takes a third of a second to decode."""
SCANS_MAX = 100
"""Encoders write 1 (baseline), 3 (one per colour), or 10 to 18 (progressive) scans."""
SCAN_PIXELS_MAX = 20 * PIXELS_MAX
"""Pixels times scans: each scan of a progressive picture visits every block once more."""
SEGMENTS_MAX = 512
"""Before the first scan. 8 MB of metadata in segments of the largest size are 128."""
TABLE_BYTES_MAX = 32_768
"""Largest size of the tables before the first scan; a picture uses less than 3,000 bytes."""

_SOI = 0xD8
_EOI = 0xD9
_SOS = 0xDA
_COM = 0xFE
_APP0 = 0xE0  # JFIF: says which colours three components are
_APP14 = 0xEE  # Adobe: likewise, and CMYK
_SOF_SEQUENTIAL = frozenset((0xC0, 0xC1))  # baseline, extended; Huffman
_SOF_PROGRESSIVE = 0xC2
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # without DHT, JPG, DAC
_STANDALONE = frozenset((0x01, *range(0xD0, 0xD8)))  # TEM and RSTn carry no length
_METADATA = frozenset((*range(0xE0, 0xF0), _COM)) - {_APP0, _APP14}

_FILL = re.compile(rb"\xff+")
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)
"""Ends entropy-coded data, in which FF is followed by 00 or is a restart."""


@dataclass(frozen=True, slots=True)
class JpegLimits:
    """Limits on the size of a picture."""

    side_max_px: int = SIDE_MAX_PX
    pixels_max: int = PIXELS_MAX
    scan_pixels_max: int = SCAN_PIXELS_MAX

    @property
    def wanted(self) -> str:
        """What a picture may have, and what to do with one that has more."""
        return (
            f"at most {self.side_max_px} px a side and {self.pixels_max / 1e6:.1f} million pixels "
            "are taken; scale it down first"
        )

    def check(self, kind: str, width_px: int, height_px: int) -> None:
        """Check a picture's size before it is decoded.

        Raises:
            InvalidInputError: it is empty or too large.
        """
        if not min(width_px, height_px):
            raise InvalidInputError(f"a {kind} of {width_px} × {height_px} px, without a pixel")
        too_long = max(width_px, height_px) > self.side_max_px
        if too_long or width_px * height_px > self.pixels_max:
            raise InvalidInputError(f"a {kind} of {width_px} × {height_px} px: {self.wanted}")


FRAME_LIMITS = JpegLimits()
"""For pictures that come over the network."""


@dataclass(frozen=True, slots=True)
class JpegHeader:
    """The markers before a picture's first scan, and the end of its scans."""

    width_px: int
    height_px: int
    kept: tuple[slice, ...]
    """Where in its bytes the decoder's part of the header is: no comments, EXIF, ICC, thumbnails
    or further pictures (MPO), all of which would be parsed for nothing."""
    scans: slice
    """Where the scans are, from the first one's marker on."""

    def essence(self, jpeg: bytes | memoryview) -> bytes:
        """Return the same picture without anything that its decoding does not need."""
        view = memoryview(jpeg)
        return b"".join((b"\xff\xd8", *(view[part] for part in self.kept), view[self.scans]))


def read_header(jpeg: bytes | memoryview, limits: JpegLimits = FRAME_LIMITS) -> JpegHeader:
    """Return what a picture's markers say.

    Raises:
        InvalidInputError: not a JPEG, cut off before its first scan, a kind that cannot be decoded
            (lossless, arithmetic), too large in pixels, with too many scans, or with a header whose
            segments or tables are too many.
    """
    size_px: tuple[int, int] | None = None
    sequential, components, table_bytes = True, 0, 0
    kept: list[slice] = []
    for number, (marker, at, end) in enumerate(_segments(jpeg)):
        if number >= SEGMENTS_MAX:
            raise InvalidInputError(
                f"a JPEG with more than {SEGMENTS_MAX} segments before its picture; save it "
                "without metadata"
            )
        if marker in _METADATA:
            continue
        if marker in _SOF and size_px is None:
            size_px = _size_in(jpeg, at, end, marker, limits)
            sequential, components = marker in _SOF_SEQUENTIAL, jpeg[at + 9]
        if marker == _SOS:
            if size_px is None:
                raise InvalidInputError("a broken JPEG: marker DA before the picture's size")
            # The codec's own rule for when there may be more than one scan; else it stops there.
            several = not sequential or at + 4 >= len(jpeg) or jpeg[at + 4] < components
            stop = _scans_end(jpeg, at, size_px, limits) if several else len(jpeg)
            return JpegHeader(*size_px, tuple(kept), slice(at, stop))
        if marker != _APP0:
            table_bytes += end - at
        if table_bytes > TABLE_BYTES_MAX:
            raise InvalidInputError(
                f"a broken JPEG: more than {TABLE_BYTES_MAX} bytes of tables before its picture"
            )
        kept.append(slice(at, end))
    before = "its size" if size_px is None else "its picture"
    raise InvalidInputError(f"a truncated JPEG: it ends after {len(jpeg)} bytes, before {before}")


def _segments(jpeg: bytes | memoryview) -> Iterator[tuple[int, int, int]]:
    """Yield (marker, where it begins, where its segment ends) up to the first scan's."""
    if bytes(jpeg[:2]) != b"\xff\xd8":
        raise InvalidInputError("not a JPEG: it must start with the bytes FF D8")
    at, length = 2, len(jpeg)
    while at + 4 <= length:
        fill = _FILL.match(jpeg, at)
        if fill is None:
            raise InvalidInputError(f"a broken JPEG: no marker at byte {at}")
        at = fill.end() - 1
        if at + 4 > length:
            return
        marker = jpeg[at + 1]
        if marker in _STANDALONE:
            yield marker, at, at + 2
            at += 2
            continue
        if marker in (_SOI, _EOI, 0x00):
            raise InvalidInputError(f"a broken JPEG: marker {marker:02X} before the picture's size")
        size = jpeg[at + 2] << 8 | jpeg[at + 3]
        if size < 2:
            raise InvalidInputError(f"a broken JPEG: a segment of {size} bytes at byte {at}")
        yield marker, at, at + 2 + size
        at += 2 + size


def _size_in(
    jpeg: bytes | memoryview, at: int, end: int, marker: int, limits: JpegLimits
) -> tuple[int, int]:
    if marker not in _SOF_SEQUENTIAL and marker != _SOF_PROGRESSIVE:
        raise InvalidInputError(
            f"a JPEG of kind SOF{marker - 0xC0} cannot be decoded; send baseline or progressive"
        )
    if at + 10 > len(jpeg) or end < at + 10:
        raise InvalidInputError("a truncated JPEG: it ends within its frame header")
    height = jpeg[at + 5] << 8 | jpeg[at + 6]
    width = jpeg[at + 7] << 8 | jpeg[at + 8]
    limits.check("JPEG", width, height)
    return width, height


def _scans_end(
    jpeg: bytes | memoryview, start: int, size_px: tuple[int, int], limits: JpegLimits
) -> int:
    """Return where a picture's scans end, which are few enough.

    The codec begins no scan without the bytes FF DA, so their count is a bound that no trick in the
    structure evades. Only where they are too many is it looked whether they are behind the
    picture's end, as in a film that a telephone appends to its photo.
    """
    width, height = size_px
    most = min(SCANS_MAX, max(1, limits.scan_pixels_max // (width * height)))
    data = bytes(jpeg[start:])
    if _begins_at_most(most, data, len(data)):
        return len(jpeg)
    end = _picture_end(data, most)
    if _begins_at_most(most, data, end):
        return start + end
    raise InvalidInputError(
        f"a JPEG of {width} × {height} px in more than {most} scans, which takes too long to "
        "decode; send it baseline, or progressive with about 10 scans"
    )


def _begins_at_most(scans: int, data: bytes, end: int) -> bool:
    at = -2
    for _ in range(scans + 1):
        at = data.find(b"\xff\xda", at + 2, end)
        if at < 0:
            return True
    return False


def _picture_end(data: bytes, scans_max: int) -> int:
    """Return where the scans that begin `data` end; its length if that is not soon found."""
    at, scans = 0, 0
    for _ in range(SEGMENTS_MAX):
        marker = _MARKER.search(data, at)
        if marker is None:
            break
        at, kind = marker.end(), data[marker.end() - 1]
        if kind == _EOI:
            return at
        scans += kind == _SOS
        if scans > scans_max or at + 2 > len(data):
            break
        if kind >= 0xC0:
            at += data[at] << 8 | data[at + 1]
    return len(data)
