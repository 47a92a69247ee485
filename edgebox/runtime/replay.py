"""Replays a journal: does a Scheduler give the same orders for the same events?"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgebox.domain.requests import CameraId, RequestId
from edgebox.runtime.entries import JournalEntry, JournalError
from edgebox.runtime.recordings import Header, RecordingFile
from edgebox.runtime.story import CameraStory, RequestStory, Story
from edgebox.scheduling.actions import Drop, Finish
from edgebox.scheduling.events import FrameDetected, RequestArrived
from edgebox.scheduling.scheduler import Scheduler

DIFFERENCES_KEPT = 100
"""Differences that are described; most are consequences of the first."""
_SHOWN = 200
"""Characters of orders that are shown on each side of where they begin to differ."""


@dataclass(slots=True)
class Replay:
    """The contents of a journal, and the differences of the replay."""

    scheduler: Scheduler
    """Begins in the journal's first state and receives every entry."""
    began_ns: int = 0
    ended_ns: int = 0
    entries: int = 0
    events: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    """Requests by outcome, or by the reason of their drop."""
    requests: list[RequestId] = field(default_factory=list)
    """Requests that arrived, in order."""
    cameras: dict[CameraId, None] = field(default_factory=dict)
    """Cameras of the requests."""
    differing: int = 0
    """Entries whose orders differ."""
    differences: list[str] = field(default_factory=list)

    def step(self, entry: JournalEntry) -> None:
        """Feed the Scheduler one event, and compare its orders with the recorded ones."""
        if not self.entries:
            self.began_ns = entry.now_ns
        self.ended_ns = entry.now_ns
        self._count(entry)
        raised = ""
        try:
            actions = tuple(self.scheduler.handle(entry.event, entry.now_ns))
        except Exception as error:  # what it raises depends on what the file says
            raised, actions = f"{type(error).__name__}: {error}", ()
        if (actions, raised) != (entry.actions, entry.raised):
            self.differing += 1
            if len(self.differences) < DIFFERENCES_KEPT:
                self.differences.append(self._difference(entry, actions, raised))
        self.entries += 1

    def _count(self, entry: JournalEntry) -> None:
        self.events["wake-up" if entry.event is None else type(entry.event).__name__] += 1
        if isinstance(entry.event, RequestArrived | FrameDetected):
            self.requests.append(entry.event.request.id)
            self.cameras[entry.event.request.camera] = None
        for action in entry.actions:
            self.actions[type(action).__name__] += 1
            if isinstance(action, Finish):
                self.endings[action.outcome.value] += 1
            elif isinstance(action, Drop):
                self.endings[action.reason.value] += 1

    def contents(self) -> str:
        """Describe which requests the journal has."""
        if not self.requests:
            return "no request arrived while it was recorded"
        first, last = min(self.requests), max(self.requests)
        return f"it has requests {first} to {last} of {', '.join(self.cameras)}"

    def _difference(self, entry: JournalEntry, actions: tuple[object, ...], raised: str) -> str:
        at_s = (entry.now_ns - self.began_ns) / 1e9
        event = "a wake-up" if entry.event is None else repr(entry.event)
        now, then = _where_they_differ(repr(list(actions)), repr(list(entry.actions)))
        gave = f"raised {raised}" if raised else f"gave {now}"
        recorded = f"raising {entry.raised}" if entry.raised else then
        return f"entry {self.entries} at +{at_s:.6f} s: {event} {gave}; the journal has {recorded}"


def _where_they_differ(*texts: str) -> list[str]:
    """Return texts, of long ones what is around the place from which on they differ."""
    pairs = enumerate(zip(*texts, strict=False))
    at = next((at for at, characters in pairs if len(set(characters)) > 1), min(map(len, texts)))
    first, last = max(0, at - _SHOWN), at + _SHOWN
    return [
        f"{'... ' if first else ''}{text[first:last]}{' ...' if len(text) > last else ''}"
        for text in texts
    ]


def replay(entries: Iterable[JournalEntry], scheduler: Scheduler) -> Replay:
    """Feed a Scheduler all entries.

    Args:
        entries: the calls.
        scheduler: in the state that it was in before the first.
    """
    replayed = Replay(scheduler)
    for entry in entries:
        replayed.step(entry)
    return replayed


@dataclass(frozen=True, slots=True)
class ReplayedFile:
    """A journal's file, replayed."""

    header: Header
    replay: Replay
    stories: list[list[str]]
    """The requested stories, each a list of sentences."""


def replay_file(path: Path, request: int | None = None, camera: str | None = None) -> ReplayedFile:
    """Replay a file and tell the story of a request, a camera, or both.

    Raises:
        JournalError: it is not a journal, it is damaged, or it lacks the request or camera.
    """
    file = RecordingFile(path)
    replayed, living = Replay(file.scheduler), list(file.scheduler.requests)
    watched: dict[str, Story] = {}
    if request is not None:
        watched[f"request {request}"] = RequestStory(RequestId(request), living)
    if camera is not None:
        watched[f"a camera named {camera}"] = CameraStory(CameraId(camera), living)
    for entry in file.entries():
        replayed.step(entry)
        for story in watched.values():
            story.see(entry)
    for name, story in watched.items():
        if not story.lines():
            raise JournalError(f"{path}: knows nothing of {name}; {replayed.contents()}")
    return ReplayedFile(file.header, replayed, [story.lines() for story in watched.values()])


def to_json(file: ReplayedFile) -> dict[str, Any]:
    """Return what `edgebox replay --json` prints."""
    header, replayed = file.header, file.replay
    return {
        "edgebox": header.edgebox,
        "policy": header.policy,
        "parameters": header.parameters,
        "began_unix_ms": round(header.unix_ms(replayed.began_ns)),
        "duration_s": round((replayed.ended_ns - replayed.began_ns) / 1e9, 6),
        "entries": replayed.entries,
        "requests": len(replayed.requests),
        "events": dict(replayed.events),
        "actions": dict(replayed.actions),
        "endings": dict(replayed.endings),
        "differing": replayed.differing,
        "differences": replayed.differences,
        "stories": file.stories,
    }
