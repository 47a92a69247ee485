"""Filters and queues the results of one subscriber.

Contains no sockets. Results wait in a short queue; new ones replace the oldest. So a slow
subscriber delays nobody and always gets the newest. The results it missed are counted and reported.
"""

import asyncio
import fnmatch
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from edgebox.domain.field_reader import FieldReader, shown
from edgebox.domain.requests import CameraId, Outcome
from edgebox.web.detection_documents import SCORE_MIN
from edgebox.web.result_formats import RESULT_FORMATS, ResultFormat

WAITING_MAX = 64
RATE_MIN_HZ = 0.001
RATE_MAX_HZ = 1_000.0
_PATTERNS_MAX = 100
_CAMERAS_KEPT = 1_024
_FIELDS = (
    "cameras", "classes", "score_min", "outcomes", "max_hz", "format", "empty",
)  # fmt: skip
_OUTCOMES = tuple(outcome.value for outcome in Outcome)


@dataclass(frozen=True, slots=True)
class Filter:
    """A subscriber's filter."""

    cameras: tuple[str, ...] = ()
    """Names, or shell patterns of names; empty: all."""
    classes: tuple[str, ...] = ()
    """Labels; empty: all."""
    score_min: float = SCORE_MIN
    outcomes: tuple[str, ...] = (Outcome.ON_TIME.value, Outcome.LATE.value)
    max_hz: float | None = None
    """Results per second and camera; None: all."""
    format: ResultFormat = "native"
    empty: bool = True
    """Whether results without matching detections are sent, too."""

    @classmethod
    def read(cls, where: str, fields: Mapping[str, object]) -> "Filter":
        """Read a filter; missing fields take their defaults.

        Raises:
            InvalidInputError: names all errors.
        """
        read = FieldReader(where, fields)
        for name in fields:
            if name not in _FIELDS:
                read.errors.append(
                    f"there is no {where}.{shown(name)}; there are {', '.join(_FIELDS)}"
                )
        max_hz = read.number("max_hz", RATE_MIN_HZ, RATE_MAX_HZ, RATE_MAX_HZ)
        made = cls(
            cameras=_texts(read, "cameras"),
            classes=_texts(read, "classes"),
            score_min=read.number("score_min", 0, 1, SCORE_MIN),
            outcomes=_outcomes(read),
            max_hz=None if fields.get("max_hz") is None else max_hz,
            format=_format(read),
            empty=read.flag("empty", True),
        )
        read.finish()
        return made

    def to_json(self) -> dict[str, Any]:
        """Return it as in a message."""
        return {name: getattr(self, name) for name in _FIELDS}


def _texts(read: FieldReader, name: str) -> tuple[str, ...]:
    items = read.items(name, _PATTERNS_MAX, [])
    texts = tuple(item for item in items if isinstance(item, str) and 0 < len(item) <= 64)
    if len(texts) < len(items):
        read.refuse(name, "must be texts of 1 to 64 characters", items)
    return texts


def _outcomes(read: FieldReader) -> tuple[str, ...]:
    outcomes = _texts(read, "outcomes") or Filter().outcomes
    if not set(outcomes) <= set(_OUTCOMES):
        read.refuse("outcomes", f"must be of {', '.join(_OUTCOMES)}", outcomes)
    return outcomes


def _format(read: FieldReader) -> ResultFormat:
    text = read.text("format", "native")
    for result_format in RESULT_FORMATS:
        if result_format == text:
            return result_format
    read.refuse("format", f"must be {', '.join(RESULT_FORMATS)}", text)
    return "native"


class Subscription:
    """One subscriber's filter and queue. Lives on the event loop."""

    def __init__(self, wanted: Filter) -> None:
        """Start with nothing waiting."""
        self._waiting: deque[tuple[bytes, asyncio.Event | None]] = deque()
        self._skipped = 0
        self._due_ns: dict[CameraId, int] = {}
        self._changed = asyncio.Event()
        self._closed = False
        self.change(wanted)

    def change(self, wanted: Filter) -> None:
        """Use another filter from now on; queued messages stay."""
        self.filter = wanted
        patterns = "|".join(f"(?:{fnmatch.translate(each)})" for each in wanted.cameras)
        self._cameras = re.compile(patterns) if patterns else None
        self._period_ns = round(1e9 / wanted.max_hz) if wanted.max_hz else 0
        self._due_ns.clear()

    # -- what is told -----------------------------------------------------------------------

    def covers(self, camera: CameraId) -> bool:
        """Return whether the filter's names include this camera."""
        return self._cameras is None or self._cameras.match(camera) is not None

    def wants(self, camera: CameraId, outcome: Outcome, now_ns: int) -> bool:
        """Return whether a result of this camera is due and passes the filter."""
        return (
            outcome in self.filter.outcomes
            and self.covers(camera)
            and now_ns >= self._due_ns.get(camera, now_ns)
        )

    def put(self, camera: CameraId, message: bytes, now_ns: int) -> None:
        """Queue a result; it replaces the oldest if the queue is full."""
        if self._period_ns:
            self._pace(camera, now_ns)
        if len(self._waiting) >= WAITING_MAX:
            oldest = next(at for at, (_, sent) in enumerate(self._waiting) if sent is None)
            del self._waiting[oldest]
            self._skipped += 1
        self._waiting.append((message, None))
        self._changed.set()

    def _pace(self, camera: CameraId, now_ns: int) -> None:
        """Set when the camera's next result is due: one period after the last, or after now."""
        if len(self._due_ns) >= _CAMERAS_KEPT:
            self._due_ns.clear()
        due_ns = self._due_ns.get(camera, now_ns)
        started_ns = due_ns if now_ns - due_ns < self._period_ns else now_ns
        self._due_ns[camera] = started_ns + self._period_ns

    def reply(self, message: bytes) -> asyncio.Event:
        """Queue an answer to the subscriber; the event is set when it was taken."""
        sent = asyncio.Event()
        self._waiting.append((message, sent))
        self._changed.set()
        return sent

    # -- the telling ------------------------------------------------------------------------

    def take(self) -> bytes | None:
        """Return the next message; None: nothing waits."""
        if self._skipped:
            message = orjson.dumps({"type": "skipped", "count": self._skipped})
            self._skipped = 0
            return message
        if not self._waiting:
            return None
        message, sent = self._waiting.popleft()
        if sent is not None:
            sent.set()
        return message

    async def next(self) -> bytes | None:
        """Wait for the next message; None: the subscription has ended."""
        while not self._closed:
            message = self.take()
            if message is not None:
                return message
            self._changed.clear()
            await self._changed.wait()
        return None

    async def close(self) -> None:
        """End the subscription, because the box is stopping."""
        self._closed = True
        self._changed.set()

    async def revoked(self) -> None:
        """End the subscription, because the subscriber may not have it any more."""
        await self.close()
