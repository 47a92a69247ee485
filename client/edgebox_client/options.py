"""The options of a camera beside its name, source and box."""

from collections.abc import Callable, Sequence
from typing import TypedDict

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
