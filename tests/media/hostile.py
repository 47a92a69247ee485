"""JPEGs that are cheap to send and dear to decode, written marker by marker."""

import struct

_MARKERS = {"sof2": 0xC2, "dht": 0xC4, "sos": 0xDA, "dqt": 0xDB}


def segment(marker: int, body: bytes) -> bytes:
    """Return one marker segment."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def many_scans(width_px: int, height_px: int, scans: int, scan_bytes: int = 0) -> bytes:
    """Return a grey progressive JPEG with so many scans, which any codec decodes without complaint.

    The first has all blocks' mean, each further one says "nothing more" of all blocks at once.

    Args:
        scan_bytes: each scan is at least so long, by a comment before it.
    """
    blocks = -(-width_px // 8) * -(-height_px // 8)
    # Runs of up to 32,767 blocks: code 0, then 14 bits of how many beyond 16,384.
    bits = ("0" + "1" * 14) * -(-blocks // 32_767)
    bits += "1" * (-len(bits) % 8)
    packed = int(bits, 2).to_bytes(len(bits) // 8).replace(b"\xff", b"\xff\x00")
    nothing = segment(_MARKERS["sos"], bytes((1, 1, 0, 1, 63, 0))) + packed
    if scan_bytes > len(nothing) + 4:
        nothing = segment(0xFE, bytes(scan_bytes - len(nothing) - 4)) + nothing
    one_code = bytes((1, 1, *[0] * 14))
    return b"".join((
        b"\xff\xd8",
        segment(_MARKERS["dqt"], bytes((0, *[1] * 64))),
        segment(_MARKERS["sof2"], struct.pack(">BHHBBBB", 8, height_px, width_px, 1, 1, 0x11, 0)),
        segment(_MARKERS["dht"], b"\x00" + one_code + b"\x00\x01"),
        segment(_MARKERS["dht"], b"\x10" + one_code + b"\xe0\x00"),
        segment(_MARKERS["sos"], bytes((1, 1, 0, 0, 0, 1))) + bytes(-(-blocks // 8)),
        nothing * (scans - 1),
        b"\xff\xd9",
    ))  # fmt: skip


def with_header(jpeg: bytes, junk: bytes) -> bytes:
    """Return a JPEG with something put before its first segment."""
    return jpeg[:2] + junk + jpeg[2:]
