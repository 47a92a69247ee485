"""What a fault costs others: a camera's share of frames on time before, during and after it."""

from collections.abc import Callable

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera

Report = Callable[[str, object], None]


class Reports:
    """Where shares are reported: among the properties of the test that runs (`--junitxml`)."""

    add: Report = staticmethod(lambda name, value: None)


class OnTimeShares:
    """A camera's frames in each part of a test, one after the other."""

    def __init__(self, camera: Camera) -> None:
        """Begin with the part before the fault: all that the camera has sent."""
        self._camera = camera
        self._began: dict[str, Summary | None] = {"before": None}

    def part(self, name: str) -> None:
        """Begin the next part of the test."""
        self._began[name] = self._camera.summary()

    def end(self) -> dict[str, float | None]:
        """Report the share of each part and return them; None: no frame ended meanwhile."""
        at = [*self._began.values(), self._camera.summary()]
        pairs = zip(self._began, at, at[1:], strict=False)
        shares = {name: _share(began, ended) for name, began, ended in pairs}
        Reports.add("on-time share", shares)
        return shares


def _share(began: Summary | None, ended: Summary | None) -> float | None:
    (on_time, before), (still_on_time, after) = map(_ended, (began, ended))
    return round((still_on_time - on_time) / (after - before), 4) if after > before else None


def _ended(summary: Summary | None) -> tuple[int, int]:
    """Return the numbers of frames that were on time, and of those that were sent and ended."""
    if summary is None:
        return 0, 0
    never_sent = summary.dropped.get("sender", 0) + summary.dropped.get("plan", 0)
    dropped = sum(summary.dropped.values()) - never_sent
    return summary.on_time, summary.on_time + summary.late + dropped
