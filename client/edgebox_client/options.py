"""The options of a camera beside its name, source and box, and what is set for it on a box."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from edgebox.camera.records import FrameRecord
from edgebox.link.messages import DropNotice, Result
from edgebox.link.shaping import BandwidthTrace


class CameraOptions(TypedDict, total=False):
    """Arguments of `Camera`, where they are explained; each has a default."""

    slo_ms: float | Sequence[tuple[float, float]]
    rate_hz: float
    app: str
    family: str | None
    pipeline: str | None
    min_accuracy: float
    min_rate_hz: float
    site: str | None
    link: BandwidthTrace | None
    size_px: tuple[int, int] | None
    on_result: Callable[[Result], None] | None
    on_drop: Callable[[DropNotice], None] | None
    on_frame_end: Callable[[FrameRecord], None] | None
    on_remark: Callable[[str], None] | None


class CameraSettings(TypedDict, total=False):
    """What can be set for a camera on the box; None: what the camera asks for itself."""

    slo_ms: float | None
    rate_hz: float | None
    app: str | None
    min_accuracy: float | None
    site: str | None
    pipeline: str | None
    family: str | None
    tracking: bool | None
    zones: Sequence[Mapping[str, Any]] | None
    lines: Sequence[Mapping[str, Any]] | None
