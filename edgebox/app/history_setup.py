"""What records a box's history: its figures by the minute, and its cameras' links."""

from collections.abc import Callable, Mapping

from edgebox.domain.model_family import Variant, VariantName
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import uplinks
from edgebox.runtime.history_recorder import HistoryRecorder
from edgebox.runtime.peers import NAMES_PER_CAMERA
from edgebox.runtime.rollup import Rollup
from edgebox.storage.database import Storage
from edgebox.storage.wall_clock import wall_clock_ms


def history_recorder(
    box: Box,
    storage: Storage,
    variants: Mapping[VariantName, Variant],
    *,
    cameras_max: int,
    on_minute: Callable[[], None],
) -> HistoryRecorder:
    """Return the recorder of a box that has its driver, told of cameras that are forgotten."""
    names_max = NAMES_PER_CAMERA * cameras_max
    rollup = Rollup(
        box.metrics,
        variants,
        names_max,
        lambda: box.notices.publish(
            "warning",
            f"more than {names_max} names of cameras in an hour: further ones are recorded "
            "only in the history of the whole box",
        ),
    )
    clock_ns = box.driver.clock_ns
    recorder = HistoryRecorder(
        rollup,
        storage.history,
        links=lambda: uplinks(box.cameras.values(), clock_ns()),
        on_minute=on_minute,
        wall_ms=wall_clock_ms,
        clock_ns=clock_ns,
    )
    box.forgotten.add(recorder.forget)
    return recorder
