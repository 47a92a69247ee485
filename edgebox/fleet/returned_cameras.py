"""Decides to which box a camera is not sent, because it came back from there. Pure.

A box can be up and say so to the others while cameras cannot reach it: its address is one of a
container, or behind a firewall, or it does not take their tickets. It seems to have much room then,
because none comes. So a camera that was sent there, and asks the box that sent it again without
having been served or sent on, is not sent there for a while.
"""

from collections.abc import Callable
from typing import TypeVar

from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName

BACK_WITHIN_NS = 10_000_000_000
"""A camera that comes later was served there. One that cannot connect gives up within a second, or
after five round trips."""
AVOIDED_NS = 600_000_000_000
"""For how long it is not sent there: as often it loses some frames for it."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ReturnedCameras:
    """The cameras that came back to one box, and from where."""

    def __init__(self) -> None:
        """Know of none."""
        self._sent: dict[CameraId, tuple[BoxName, int]] = {}
        """Where each was sent, and when; the longest ago first."""
        self._back: dict[BoxName, dict[CameraId, int]] = {}
        """When each came back from a box; the longest ago first."""

    def sent(self, camera: CameraId, box: BoxName, now_ns: int) -> None:
        """Note that a camera is sent to another box."""
        self._sent.pop(camera, None)
        self._sent[camera] = box, now_ns
        _drop_first(self._sent, lambda of: of[1] < now_ns - BACK_WITHIN_NS)

    def came(self, camera: CameraId, redirects: int, now_ns: int) -> BoxName | None:
        """Note that a camera says hello to this box.

        Args:
            camera: it.
            redirects: how often this hello was redirected.
            now_ns: the present.

        Returns:
            The box that it came back from, if no camera was known to have; None: from none.
        """
        box, sent_ns = self._sent.pop(camera, (None, 0))
        if box is None or redirects != 1 or sent_ns < now_ns - BACK_WITHIN_NS:
            return None
        for known, cameras in list(self._back.items()):
            _drop_first(cameras, lambda at_ns: at_ns < now_ns - AVOIDED_NS)
            if not cameras:  # names may be those of containers, of which each start has another
                del self._back[known]
        back = self._back.setdefault(box, {})
        is_news = not back
        back.pop(camera, None)
        back[camera] = now_ns
        return box if is_news else None

    def avoided(self, camera: CameraId, now_ns: int) -> frozenset[BoxName]:
        """Return the boxes to which a camera is not to be sent now."""
        return frozenset(
            box
            for box, cameras in self._back.items()
            if (at_ns := cameras.get(camera)) is not None and at_ns >= now_ns - AVOIDED_NS
        )


def _drop_first(of: dict[_Key, _Value], is_old: Callable[[_Value], bool]) -> None:
    """Remove what is old; the oldest is first."""
    while of and is_old(next(iter(of.values()))):
        del of[next(iter(of))]
