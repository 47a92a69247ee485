"""State of a camera whose pictures the box fetches, for the page, the API and Prometheus."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from edgebox.domain.plans import Remedy, RemedyAction
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import SourceAddress
from edgebox.domain.source_settings import CaptureTimes
from edgebox.link.protocol import SOURCE_LOST, ErrorMessage
from edgebox.media.losses import CHECK_ANY, SourceTrouble, clock_time, lost_text

COST_WINDOW_S = 10


def check_source(text: str) -> Remedy:
    """Return what helps where a source gives no pictures."""
    return Remedy(RemedyAction.CHECK_SOURCE, text or CHECK_ANY)


def told_trouble(message: ErrorMessage) -> SourceTrouble | None:
    """Return what a camera says of its source; None: it gives pictures."""
    if message.code != SOURCE_LOST:
        return None
    return SourceTrouble(message.message, message.remedy)


class SourceState(StrEnum):
    """Whether pictures come."""

    CONNECTING = "connecting"
    LIVE = "live"
    LOST = "lost"
    """The source cannot be opened or has broken off; it is tried again."""
    REFUSED = "refused"
    """The source is there, but the box does not take the camera; that is tried again."""


@dataclass(slots=True)
class Decoding:
    """What fetching and decoding one source took so far."""

    pictures: int = 0
    """Pictures that were due at the camera's rate, used or not."""
    used: int = 0
    """Pictures that were converted and given to the core."""
    still: int = 0
    """Pictures that the motion gate left out."""
    decode_ns: int = 0
    """Processor time of reading and decoding."""
    convert_ns: int = 0
    """Processor time of scaling and encoding what was used."""
    _recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=COST_WINDOW_S))
    """(instant, processor time until then), about once a second."""

    @property
    def captured_total(self) -> int:
        """Pictures that count as captured: due, and not of a scene that stands still."""
        return self.pictures - self.still

    def note(self, now_ns: int) -> None:
        """Remember the cost so far; called about once a second."""
        self._recent.append((now_ns, self.decode_ns + self.convert_ns))

    @property
    def cores(self) -> float | None:
        """How many processor cores it takes, over the last seconds; None: not known yet."""
        if len(self._recent) < 2:
            return None
        (began_ns, before_ns), (ended_ns, after_ns) = self._recent[0], self._recent[-1]
        return (after_ns - before_ns) / max(1, ended_ns - began_ns)


@dataclass(slots=True)
class SourceStatus:
    """One source. Written on the event loop; `decoding` also by its reading thread."""

    camera: CameraId
    address: SourceAddress
    origin: Literal["configuration", "api"]
    state: SourceState = SourceState.CONNECTING
    since_ms: int = 0
    """Since when it is in this state, in Unix milliseconds."""
    why: str = ""
    """What is wrong; empty: nothing."""
    remedy: Remedy | None = None
    """What a person can do about it; None: nothing is wrong, or it changes by itself."""
    losses: int = 0
    """How often it was lost since the start."""
    attempts: int = 0
    """Attempts to open it since it was last live."""
    codec: str = ""
    decoder: str = ""
    width_px: int = 0
    height_px: int = 0
    stream: Literal["main", "sub"] = "main"
    """Which of its streams is read."""
    times: CaptureTimes = CaptureTimes.ARRIVAL
    """What capture times come from."""
    family: str | None = None
    """The model family that its settings name; None: the box's default."""
    decoding: Decoding = field(default_factory=Decoding)

    @property
    def text(self) -> str:
        """The state for a person; empty: pictures come."""
        match self.state:
            case SourceState.LIVE:
                return ""
            case SourceState.CONNECTING:
                return f"connecting to the source{' again: ' if self.why else ''}{self.why}"
            case SourceState.LOST:
                return lost_text(self.since_ms, self.why)
        return f"not taken since {clock_time(self.since_ms)}: {self.why}"

    @property
    def trouble(self) -> str:
        """Why no pictures come, for a person; empty: they do, or are about to."""
        return self.text if self.state in (SourceState.LOST, SourceState.REFUSED) else ""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What a person can do; none while pictures come, or are about to."""
        return () if self.remedy is None else (self.remedy,)
