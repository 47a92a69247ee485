"""Decides whether an imported graph is right: sizes by a run, batches by a comparison.

Every detection is compared with the original's, which is decoded in numpy without any added
operators.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.matching import Match, match
from edgebox.inference.importing.original import Arrays, Original
from edgebox.inference.importing.parity import (
    COMPARED_MAX,
    DOUBTFUL_MAX,
    SHARE_MIN,
    agreement,
    disagreement,
)
from edgebox.inference.importing.reading import SCORE_MIN, Decoding
from edgebox.inference.importing.recognition import decoded, on_canvas, run_one
from edgebox.inference.machine import usable_cores
from edgebox.inference.onnx_runtime import onnx_runtime
from edgebox.inference.sessions import CPU, brief, session_options
from edgebox.inference.tensors import Canvas
from edgebox.vision.decoding import Decoder, decode_boxes_scores_labels, embedding_decoder
from edgebox.vision.detections import Detections

SizePx = tuple[int, int]
BATCH_TRIED = 3
_TIMED = 7
_KEPT_MIN = 0.5
"""A graph that shares less with the original is wrong, however sensitive the original is."""

_WAY_OUT = ". Export the model for single pictures"


@dataclass(frozen=True, slots=True)
class Subject:
    """A model under verification: its input, output and test pictures."""

    original: Original
    found: Match
    decoding: Decoding
    pictures: Sequence[NDArray[np.uint8]]
    """At least one, (h, w, 3) RGB."""

    def canvases(self, size_px: SizePx) -> list[Canvas]:
        """Return the pictures as the model is fed them."""
        how = self.found.layout.preprocessing
        return [on_canvas(picture, how, size_px) for picture in self.pictures]

    def one_by_one(self, size_px: SizePx, canvases: Sequence[Canvas] = ()) -> list[Detections]:
        """Return the original's detections on each canvas by itself; none given: on the pictures.

        Raises:
            ModelError: it fails at this size, or its outputs have other shapes there.
        """
        how = self.found.layout.preprocessing
        canvases = canvases or self.canvases(size_px)
        runs = [run_one(self.original, canvas, how) for canvas in canvases]
        self._check_shapes(runs[0], size_px)
        out = []
        for run in runs:
            out += decoded(self.found, self.decoding, run, size_px, batch=1)
        return out

    def disagreement(self, one: Detections, other: Detections, share_min: float = SHARE_MIN) -> str:
        """Describe how two lists of detections of one picture differ."""
        return disagreement(one, other, self.found.layout.head.nms_iou, share_min)

    def kept_by_itself(self, expected: Detections, canvas: Canvas, size_px: SizePx) -> float:
        """Return the share of detections that the original keeps if what it is fed rounds anew.

        Args:
            expected: what it finds, within the input.
            canvas: the picture it finds them on.
            size_px: of the input.
        """
        head, how = self.found.layout.head, self.found.layout.preprocessing
        shares = []
        for direction in (-np.inf, np.inf):
            run = run_one(self.original, canvas, how, nudged_to=direction)
            (found,) = decoded(self.found, self.decoding, run, size_px, batch=1)
            shares.append(agreement(expected, found.scaled(1.0, 1.0, *size_px), head.nms_iou))
        return min(shares)

    def _check_shapes(self, run: Arrays, size_px: SizePx) -> None:
        original = self.original
        roles = frozenset(extra.role for extra in original.extras)
        found = match(self.found.layout, original.outputs, run, roles, size_px)
        if found is None or found.strides != self.found.strides:
            shapes = ", ".join(str(list(array.shape)) for array in run)
            raise ModelError(
                f"{original.source.path}: gives other outputs at {size_px[0]} × {size_px[1]} px "
                f"({shapes})"
            )


def check_batch_axis(subject: Subject, size_px: SizePx) -> None:
    """Compare a batch of different pictures with the same pictures one by one.

    A fixed batch is compared with itself in another order.

    Raises:
        ModelError: pictures of a batch influence each other.
    """
    original, how = subject.original, subject.found.layout.preprocessing
    pictures = subject.canvases(size_px)
    # Three that could hardly be more different: a picture, black, and another one's negative.
    shown = [pictures[0], np.zeros_like(pictures[0]), 255 - pictures[-1]]
    batch = original.batch_declared or BATCH_TRIED
    canvases = [shown[at % len(shown)] for at in range(batch)]
    try:
        together = original.run(canvases, how)
        expected = subject.one_by_one(size_px, shown)
        expected = [expected[at % len(shown)] for at in range(batch)]
        _check_first_axis(subject, together, batch)
        got = decoded(subject.found, subject.decoding, together, size_px, batch)
        wrong = next(filter(None, map(subject.disagreement, expected, got)), "")
    except (ModelError, IndexError, ValueError) as error:
        wrong = str(error)
    if wrong:
        raise ModelError(
            f"{original.source.path}: the batch axis lies: {batch} pictures at once are not what "
            f"they are one by one ({wrong}){_WAY_OUT if original.batch_declared else ''}"
        )


def _check_first_axis(subject: Subject, arrays: Arrays, batch: int) -> None:
    if subject.found.layout.head.pictures is not None:
        return
    for at in itertools.chain(*subject.found.outputs):
        if arrays[at].shape[0] != batch:
            raise ModelError(f"an output is {list(arrays[at].shape)}, merged into one")


def open_served(content: bytes, path: str) -> Any:
    """Open a graph that is to be served.

    Raises:
        ModelError: ONNX Runtime refuses it.
    """
    ort = onnx_runtime()
    try:
        return ort.InferenceSession(content, session_options(usable_cores()), [CPU])
    except Exception as error:  # its exception classes share no base but Exception
        raise ModelError(
            f"{path}: the graph with its decoding cannot be opened: {brief(error)}"
        ) from error


def check_served(
    subject: Subject,
    session: Any,
    size_px: SizePx,
    batch: int | None,
    expected: Sequence[Detections],
) -> tuple[int, float]:
    """Compare a graph for serving with the original, on single pictures and in batches.

    Where they differ, the graph may differ as much as the original from itself when the last bit
    of all that it is fed changes, but never by more than half.

    Args:
        subject: the original.
        session: the graph.
        size_px: of the input.
        batch: the only batch size; None: any.
        expected: the original's detections on the subject's pictures.

    Returns:
        How many detections were compared, and the share that had to be in both.

    Raises:
        ModelError: their detections differ.
    """
    shown = subject.canvases(size_px)
    # Served boxes are clipped to the input.
    expected = [found.scaled(1.0, 1.0, *size_px) for found in expected]
    run = _runner(subject, session, size_px)
    compared, least = 0, SHARE_MIN
    for size in (batch,) if batch else (1, BATCH_TRIED):
        for start in range(0, len(shown), size):
            at = [(start + step) % len(shown) for step in range(size)]
            for index, got in zip(at, run([shown[index] for index in at]), strict=True):
                wrong = subject.disagreement(expected[index], got)
                if wrong:
                    kept = subject.kept_by_itself(expected[index], shown[index], size_px)
                    least = min(least, max(kept, _KEPT_MIN))
                    wrong = subject.disagreement(expected[index], got, least)
                if wrong:
                    raise ModelError(
                        f"{subject.original.source.path}: the imported graph does not find what "
                        f"the original finds at {size_px[0]} × {size_px[1]} px: {wrong}"
                    )
                compared += min(COMPARED_MAX, len(expected[index].above(DOUBTFUL_MAX)))
    return compared, least


def _runner(
    subject: Subject, session: Any, size_px: SizePx
) -> Callable[[list[Canvas]], list[Detections]]:
    name = session.get_inputs()[0].name
    decode: Decoder = decode_boxes_scores_labels
    if subject.found.layout.task == "embed":
        decode = embedding_decoder(subject.found.classes or 0)

    def run(canvases: list[Canvas]) -> list[Detections]:
        try:
            outputs = session.run(None, {name: np.stack(canvases)})
        except Exception as error:  # as above
            raise ModelError(
                f"{subject.original.source.path}: the imported graph fails on {len(canvases)} "
                f"pictures of {size_px[0]} × {size_px[1]} px: {brief(error)}"
            ) from error
        return decode(outputs, *size_px, SCORE_MIN)

    return run


def times_slower(one: Any, other: Any, size_px: SizePx, batch: int) -> float:
    """Return how many times as long a batch takes on one session as on another, by medians."""
    width, height = size_px
    pictures = np.full((batch, height, width, 3), 114, np.uint8)
    took: tuple[list[float], list[float]] = [], []
    # In turns, so that a noisy moment falls on both.
    for _ in range(1 + _TIMED):
        for session, times in zip((one, other), took, strict=True):
            started_s = time.perf_counter()
            session.run(None, {session.get_inputs()[0].name: pictures})
            times.append(time.perf_counter() - started_s)
    return median(took[0][1:]) / median(took[1][1:])
