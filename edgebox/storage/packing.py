"""Encodes counts by latency bucket compactly, for reading thousands of rows. Pure.

Two bytes an entry: the distance of its code from the previous one, and a digit of its count to the
base of 256. A distance of 0 goes on with the next higher digit of the same code; an entry whose
digit is 0 only bridges a distance above 255. Every entry adds digit x 256^place to its code, so
counts of many rows are added up entry by entry, in a fixed number of passes over all of them.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_BRIDGED = 255
_DIGITS = 7
"""Digits of a count: sufficient below 2^56."""


def packed(counts: Ints) -> bytes:
    """Return counts by code, (codes,) and none of them negative, as bytes. O(codes)."""
    (codes,) = counts.nonzero()
    if not len(codes):
        return b""
    counts = counts[codes]
    distances = codes + 1
    distances[1:] = codes[1:] - codes[:-1]
    if counts.max() < 256 and distances.max() <= _BRIDGED:
        # Nearly all rows are this simple.
        plain = np.empty((len(codes), 2), np.uint8)
        plain[:, 0] = distances
        plain[:, 1] = counts
        return plain.tobytes()
    bridges = (distances - 1) // _BRIDGED
    digits = np.ones_like(counts)
    for place in range(1, _DIGITS):
        digits += counts >> (8 * place) > 0
    sizes = bridges + digits
    firsts = np.cumsum(sizes) - sizes
    places = np.arange(sizes.sum()) - np.repeat(firsts + bridges, sizes)
    entries = np.empty((len(places), 2), np.uint8)
    remaining = np.repeat(distances - _BRIDGED * bridges, sizes)
    entries[:, 0] = np.where(places < 0, _BRIDGED, np.where(places == 0, remaining, 0))
    shifted = np.repeat(counts, sizes) >> (8 * np.maximum(places, 0))
    entries[:, 1] = np.where(places < 0, 0, shifted & 255)
    return entries.tobytes()


def unpacked(blobs: Sequence[bytes], groups: Ints, shape: tuple[int, int]) -> Ints:
    """Return the counts of many rows, added up by group: `shape` = (groups, codes).

    Args:
        blobs: results of `packed`.
        groups: the group of each, (blobs,).
        shape: the numbers of groups and codes.

    Raises:
        ValueError: a blob is damaged.
    """
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    if np.any(lengths % 2):
        raise ValueError("packed counts are damaged: half an entry")
    entries = np.frombuffer(b"".join(blobs), np.uint8).reshape(-1, 2)
    if not len(entries):
        return np.zeros(shape, np.int64)
    sizes = lengths // 2
    distances = entries[:, 0]
    sums = np.cumsum(distances, dtype=np.int64)
    # Codes begin again in each row: subtract the sum of the previous rows.
    before = np.concatenate(([0], sums))[np.cumsum(sizes) - sizes]
    codes = sums - np.repeat(before, sizes) - 1
    weights = entries[:, 1].astype(np.float64)
    _raise_digits(weights, distances)
    if codes.min() < 0 or codes.max() >= shape[1]:
        raise ValueError("packed counts are damaged: no such code")
    places = codes + np.repeat(groups * shape[1], sizes)
    total = np.bincount(places, weights, shape[0] * shape[1])
    # Floats count exactly up to 2^53.
    return total.astype(np.int64).reshape(shape)


def _raise_digits(weights: npt.NDArray[np.float64], distances: npt.NDArray[np.uint8]) -> None:
    """Multiply each digit by 256 to the power of its place."""
    higher = np.flatnonzero(distances == 0)
    if not len(higher):
        return
    # The place of a digit is its rank in a run of neighbours: 1, 2, ...
    begins = np.diff(higher, prepend=-1) != 1
    run = np.maximum.accumulate(np.where(begins, np.arange(len(higher)), 0))
    weights[higher] *= 256.0 ** (np.arange(len(higher)) - run + 1)


def added(one: bytes, other: bytes, codes: int) -> bytes:
    """Return the counts of both together."""
    return packed(unpacked((one, other), np.zeros(2, np.int64), (1, codes))[0])
