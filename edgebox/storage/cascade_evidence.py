"""Stores what cameras' pictures said of their cascades, so that calibrations survive restarts.

A row belongs to a camera and to the decider whose expectations it has: a cascade that is fitted
again begins anew. Cameras choose their names, so the oldest rows are deleted when there are many.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgebox.domain.cascades import CascadeEvidence
from edgebox.domain.requests import CameraId
from edgebox.storage.damage import name_of, sound
from edgebox.storage.writer import Writer

ROWS_MAX = 256
"""Largest number of rows; each has up to four kilobytes."""
_VALUES_MAX = 2_000
_LOGIT_MAX = 1e6

_FEWER = """DELETE FROM cascade_evidence WHERE camera NOT IN
    (SELECT camera FROM cascade_evidence ORDER BY recorded_at_ms DESC LIMIT ?)"""


class CascadeEvidenceRows:
    """The table. As in `Writer`, recording never waits and never raises."""

    def __init__(self, writer: Writer, now_ms: Callable[[], int]) -> None:
        self._writer = writer
        self._now_ms = now_ms

    def record(self, camera: CameraId, decider: str, evidence: CascadeEvidence) -> None:
        """Replace a camera's row; `decider` is the fingerprint of its cascade's decider."""
        self._writer.record(
            "INSERT OR REPLACE INTO cascade_evidence"
            " (camera, decider, hard, easy, logits, recorded_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
            camera, decider, _packed(evidence.hard), _packed(evidence.easy),
            _packed(evidence.logits), self._now_ms(),
        )  # fmt: skip

    def forget_surplus(self) -> None:
        """Delete the oldest rows above the limit."""
        self._writer.record(_FEWER, ROWS_MAX)

    async def load(self) -> dict[CameraId, tuple[str, CascadeEvidence]]:
        """Return all cameras' evidence with the fingerprint of the decider it belongs to.

        Raises:
            StorageError: the database cannot be read.
        """
        (rows,) = await self._writer.read(
            ("SELECT camera, decider, hard, easy, logits FROM cascade_evidence", ())
        )
        return dict(sound(rows, _evidence_of, "what cascades learned", 0))


def _packed(values: Sequence[Any]) -> bytes:
    return np.array(values, "<f4").tobytes()


def _evidence_of(row: Sequence[Any]) -> tuple[CameraId, tuple[str, CascadeEvidence]]:
    camera, decider, *blobs = row
    logits = _values(blobs[2])
    evidence = CascadeEvidence(_pairs(blobs[0]), _pairs(blobs[1]), tuple(logits.tolist()))
    return CameraId(name_of(camera)), (name_of(decider), evidence)


def _pairs(blob: bytes) -> tuple[tuple[float, float], ...]:
    pairs = _values(blob).reshape(-1, 2)
    if ((pairs[:, 1] < 0) | (pairs[:, 1] > 1)).any():
        raise ValueError("a loss that is not from 0 to 1")
    return tuple((logit, loss) for logit, loss in pairs.tolist())


def _values(blob: bytes) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = np.frombuffer(blob, "<f4").astype(np.float64)
    if len(values) > _VALUES_MAX or not (np.abs(values) <= _LOGIT_MAX).all():
        raise ValueError(f"{len(values)} values, or one that is out of range")
    return values
