"""Decides where the first stage of a frame runs: on the box, or at the camera. Pure.

Sending a picture costs link time, running the model at the camera costs its processor's time. Each
frame is placed where its answer is expected earlier (OctopInf, Nguyen et al. 2025, decides this for
whole pipelines and some time ahead; here it is decided for each frame, from this camera's own
estimates). The box is preferred unless the camera is earlier by a margin: it usually runs a larger
variant, and estimates err.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from edgebox.domain.requests import StagePlacement

MARGIN_NS = 20_000_000
"""The camera runs the first stage only if its answer is expected earlier by this."""
KEPT = 20
"""Measurements kept of each kind."""
FRESH_NS = 10_000_000_000
"""Older answers say nothing about the box: it is tried again."""


class PlacementMode(StrEnum):
    """Which side decides where the first stage runs."""

    AUTO = "auto"
    """Each frame runs where its answer is expected earlier."""
    NEVER = "never"
    """Never at the camera."""
    ALWAYS = "always"
    """Always at the camera."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What is expected of one frame."""

    picture_bytes: float
    """The message with the JPEG at the advised size."""
    encode_ns: int
    """Scaling and encoding that JPEG."""
    box_ns: int
    """All stages on the box, and the way back."""
    detections_bytes: float
    """The message with boxes and crops."""
    detect_ns: int
    """The first stage at the camera, crops included."""
    later_ns: int
    """The later stages on the box, and the way back."""


def finish_ns(costs: Costs, placement: StagePlacement, bps: float, backlog_bits: float) -> int:
    """Return the time from now until the answer arrives.

    Args:
        costs: of the frame.
        placement: where its first stage runs.
        bps: bandwidth of the link, above 0.
        backlog_bits: what has to leave before; it does so while the frame is encoded or runs.
    """
    if placement is StagePlacement.BOX:
        before_ns, size_bytes, after_ns = costs.encode_ns, costs.picture_bytes, costs.box_ns
    else:
        before_ns, size_bytes, after_ns = costs.detect_ns, costs.detections_bytes, costs.later_ns
    free_ns = backlog_bits * 1e9 / bps
    return round(max(before_ns, free_ns) + size_bytes * 8e9 / bps) + after_ns


def place(
    costs: Costs, bps: float, backlog_bits: float, margin_ns: int = MARGIN_NS
) -> StagePlacement:
    """Return where the first stage of a frame runs: on the box unless the camera is earlier."""
    at_camera_ns = finish_ns(costs, StagePlacement.CAMERA, bps, backlog_bits)
    on_box_ns = finish_ns(costs, StagePlacement.BOX, bps, backlog_bits)
    earlier = at_camera_ns + margin_ns <= on_box_ns
    return StagePlacement.CAMERA if earlier else StagePlacement.BOX


class PlacementCosts:
    """What a camera has learned of the costs of its frames.

    A quantile of the last ones is what is expected. What was not measured is taken for free, so
    that it is tried: a message with boxes and crops before the first one was sent, and a box that
    was not heard of for `FRESH_NS`, because it may be less busy now.
    """

    def __init__(self, mode: PlacementMode, detect_ns: int) -> None:
        """Start with nothing learned but the time that the first stage took when it was profiled.

        Args:
            mode: who decides.
            detect_ns: usual time of the first stage at this camera.
        """
        self.mode = mode
        self._detect_ns: deque[int] = deque((detect_ns,), KEPT)
        self._encode_ns: deque[int] = deque(maxlen=KEPT)
        self._sizes: deque[int] = deque(maxlen=KEPT)
        self._box_ns: deque[tuple[int, int]] = deque(maxlen=KEPT)
        self._later_ns: deque[tuple[int, int]] = deque(maxlen=KEPT)

    def encoded(self, took_ns: int) -> None:
        """Note what scaling and encoding a picture took."""
        self._encode_ns.append(took_ns)

    def detected(self, took_ns: int, size_bytes: int) -> None:
        """Note what the first stage took here, and the size of its message."""
        self._detect_ns.append(took_ns)
        self._sizes.append(size_bytes)

    def answered(self, placement: StagePlacement, took_ns: int, now_ns: int) -> None:
        """Note the time from a frame's arrival at the box to its result here."""
        kept = self._box_ns if placement is StagePlacement.BOX else self._later_ns
        kept.append((now_ns, took_ns))

    def costs(self, picture_bytes: float, now_ns: int, quantile: float = 0.5) -> Costs:
        """Return what is expected of a frame.

        Args:
            picture_bytes: size of its message if it is sent as a picture.
            now_ns: the present.
            quantile: of all that was measured.
        """
        box_ns = _fresh(self._box_ns, now_ns, quantile)
        later_ns = _fresh(self._later_ns, now_ns, quantile)
        return Costs(
            picture_bytes=picture_bytes,
            encode_ns=_quantile(self._encode_ns, quantile),
            box_ns=box_ns,
            detections_bytes=_quantile(self._sizes, quantile),
            detect_ns=_quantile(self._detect_ns, quantile),
            # While nothing is known of the later stages, they take as long as all of them.
            later_ns=later_ns if self._later_ns else box_ns,
        )


def _fresh(answers: Sequence[tuple[int, int]], now_ns: int, quantile: float) -> int:
    fresh = [took_ns for at_ns, took_ns in answers if now_ns - at_ns <= FRESH_NS]
    return _quantile(fresh, quantile)


def _quantile(values: Sequence[int], quantile: float) -> int:
    ordered = sorted(values)
    return ordered[min(int(quantile * len(ordered)), len(ordered) - 1)] if ordered else 0
