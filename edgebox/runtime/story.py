"""Tells the story of one request or camera in sentences.

A story reads the entries of a journal in order. Times of a request count from its capture, times of
a camera from the beginning of the journal.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import (
    BatchId,
    Camera,
    CameraId,
    DropReason,
    FrameId,
    Outcome,
    Request,
    UtilityStep,
)
from edgebox.domain.requests import RequestId as Id
from edgebox.runtime.entries import JournalEntry
from edgebox.runtime.frames import DROP_MESSAGES
from edgebox.scheduling.actions import (
    Action,
    Advise,
    Collect,
    Drop,
    Finish,
    Infer,
    Prepare,
    Release,
    Retain,
    RunAgain,
    Sample,
    SpawnCrops,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    CropsPrepared,
    CropsSpawned,
    Event,
    FrameDetected,
    RequestArrived,
    RequestPrepared,
    RequestRejected,
    SampleCompleted,
    SampleFailed,
)
from edgebox.scheduling.request_stages import Cause


class Story(Protocol):
    """Reads entries, then describes them."""

    def see(self, entry: JournalEntry) -> None:
        """Read the next entry."""

    def lines(self) -> list[str]:
        """Return the sentences in order; empty when the journal has nothing about it."""


class RequestStory:
    """One request from its capture to its end."""

    def __init__(self, request: Id, living: Iterable[Request] = ()) -> None:
        """Follow a request; `living`: requests that arrived before the first entry."""
        self._id = request
        self._request: Request | None = None
        self._admitted: VariantName | None = None
        self._batch: BatchId | None = None
        self._sample: BatchId | None = None
        self._lines: list[str] = []
        for each in living:
            if each.id == request:
                self._introduce(each)

    def see(self, entry: JournalEntry) -> None:
        """Read the next entry."""
        if entry.event is not None:
            self._hear(entry.event, entry.now_ns)
        for action in entry.actions:
            if isinstance(action, Drop) and action.request == self._id and self._request:
                self._dropped(action, entry)
            else:
                self._order(action, entry.now_ns)

    def lines(self) -> list[str]:
        """Return the sentences, in order."""
        return list(self._lines)

    def _introduce(self, request: Request) -> None:
        self._request = request
        whose = f"of {request.camera} (application {request.app})"
        if request.frame is not None:
            whose = f"for {request.stage} of frame {request.frame} {whose}"
        allowed_ms = (request.deadline_ns - request.captured_ns) / 1e6
        self._lines.append(
            f"request {request.id} {whose}, to be answered within {allowed_ms:.1f} ms"
            + _still_worth(request.steps, request.captured_ns)
        )
        self._say(
            request.arrival_ns,
            f"arrived whole: {request.width_px} × {request.height_px} px in "
            f"{request.size_bytes / 1e3:.1f} kB, {_margin(request, request.arrival_ns)}",
        )

    def _say(self, at_ns: int, what: str) -> None:
        assert self._request is not None
        self._lines.append(f"+{(at_ns - self._request.captured_ns) / 1e6:.1f} ms {what}")

    def _hear(self, event: Event, now_ns: int) -> None:
        match event:
            case RequestArrived(request) if request.id == self._id and self._request is None:
                self._introduce(request)
            case FrameDetected(request, spawned):
                self._detected(request, spawned, now_ns)
            case RequestPrepared(request, took_ns) if request == self._id and self._request:
                self._say(now_ns, f"decoded in {took_ns / 1e6:.1f} ms")
            case RequestRejected(request) if request == self._id and self._request:
                self._say(now_ns, "could not be decoded")
            case CropsPrepared(requests) if self._id in requests and self._request:
                self._say(now_ns, "cut from its frame")
            case BatchCompleted(_, batch, took_ns, spawned):
                self._batch_completed(batch, took_ns, spawned, now_ns)
            case CropsSpawned(_, spawned):
                self._spawned(spawned, now_ns)
            case BatchFailed(_, batch) if batch == self._batch:
                self._say(now_ns, "its batch failed")
            case SampleCompleted(_, batch, took_ns) if batch == self._sample:
                self._say(
                    now_ns, f"alone it took {took_ns / 1e6:.1f} ms, from which the scheduler learns"
                )
            case SampleFailed(_, batch) if batch == self._sample:
                self._say(now_ns, "running it again failed")
            case CameraDisconnected(camera) if self._request and camera == self._request.camera:
                if self._batch is not None:
                    self._say(now_ns, "its camera left while it ran")

    def _detected(self, request: Request, spawned: tuple[Request, ...], now_ns: int) -> None:
        for each in (request, *spawned):
            if each.id == self._id and self._request is None:
                self._introduce(each)
        if request.id == self._id:
            self._say(now_ns, "its first stage ran at its camera")
            self._tell_crops(spawned, now_ns)

    def _batch_completed(
        self, batch: BatchId, took_ns: int, spawned: Iterable[Request], now_ns: int
    ) -> None:
        if batch == self._batch:
            self._say(now_ns, f"its batch came back, executed in {took_ns / 1e6:.1f} ms")
        self._spawned(spawned, now_ns)

    def _spawned(self, spawned: Iterable[Request], now_ns: int) -> None:
        for crop in spawned:
            if crop.id == self._id and self._request is None:
                self._introduce(crop)
        if self._request is not None:
            self._tell_crops(spawned, now_ns)

    def _tell_crops(self, spawned: Iterable[Request], now_ns: int) -> None:
        crops = Counter(crop.stage for crop in spawned if crop.frame == FrameId(self._id))
        for stage, count in crops.items():
            how_many = "1 crop" if count == 1 else f"{count} crops"
            self._say(now_ns, f"{how_many} of it for the stage {stage}")

    def _dropped(self, action: Drop, entry: JournalEntry) -> None:
        why = DROP_MESSAGES[action.reason] + _cause(action.cause, entry.event)
        self._say(entry.now_ns, f"dropped ({action.reason.value}): {why}")
        self._batch = None

    def _order(self, action: Action, now_ns: int) -> None:  # noqa: PLR0912 - one case a kind
        if self._request is None:
            return
        match action:
            case Prepare(request, variant) if request == self._id:
                self._admitted = variant
                self._say(now_ns, f"admitted to run as {variant}")
            case Infer(executor, batch, variant, requests, size) if self._id in requests:
                self._batch = batch
                padded = f", padded to {size}" if size > len(requests) else ""
                if self._admitted not in (None, variant):
                    self._say(now_ns, f"moved to {variant}, given what runs and waits")
                self._say(
                    now_ns,
                    f"joined a batch of {len(requests)} on {executor} as {variant}{padded}, "
                    f"{_margin(self._request, now_ns)}",
                )
            case RunAgain(request, _, refused) if request == self._id:
                why = "its server had too much to do" if refused else "what ran its batch has ended"
                self._say(now_ns, f"{why}: it waits for an executor again")
                self._batch = None
            case Retain(request) if request == self._id:
                self._say(now_ns, "its input was kept, to be run again when the box is idle")
            case Release(request) if request == self._id:
                self._say(now_ns, "its input was released without having been run again")
            case Sample(executor, batch, variant, request) if request == self._id:
                self._sample = batch
                self._say(now_ns, f"run again, alone, on {executor} as {variant}")
            case Collect(request) if request == self._id:
                crop = self._request.frame is not None
                self._say(
                    now_ns, "answered, as part of its frame" if crop else "waits for its crops"
                )
                self._batch = None
            case SpawnCrops(request) if request == self._id:
                self._say(now_ns, "goes on with what its first stage has found")
            case Finish(request, _, outcome, missing) if request == self._id:
                utility = self._request.utility_at(now_ns)
                how = "" if outcome is Outcome.ON_TIME else " late"
                if 0 < utility < 1:
                    how += f", still worth {utility:g}"
                if missing:
                    how += f", without {', '.join(missing)} for every object"
                self._say(now_ns, f"answered{how}, {_margin(self._request, now_ns)}")
                self._batch = None


def _cause(cause: Cause, event: Event | None) -> str:
    """Return what decided a drop, with the request that did, where the reason does not say it."""
    match cause, event:
        case Cause.DISPLACED, RequestArrived(newer) | FrameDetected(newer):
            return f"; request {newer.id}, which is newer, took its place"
        case Cause.TRIAL_EXPIRED, _:
            return "; it was let in as a trial, and no executor was idle in time"
        case Cause.FRAME_ENDED, _:
            return "; its frame ended without it"
        case Cause.OVERLOADED, _:
            return "; the server of its executor had too much to do"
    return ""


def _margin(request: Request, now_ns: int) -> str:
    left_ms = (request.deadline_ns - now_ns) / 1e6
    return f"{abs(left_ms):.1f} ms {'before' if left_ms >= 0 else 'after'} its deadline"


class CameraStory:
    """One camera's advice and results; equal results in a row are merged."""

    def __init__(self, camera: CameraId, living: Iterable[Request] = ()) -> None:
        """Follow a camera; `living`: requests that arrived before the first entry."""
        self._camera = camera
        self._requests = {each.id: each for each in living if each.camera == camera}
        self._began_ns: int | None = None
        self._advice: Advice | None = None
        self._lines: list[str] = []
        self._row = ""
        self._row_ns = 0
        self._row_ids: list[Id] = []
        self._row_ms: list[float] = []

    def see(self, entry: JournalEntry) -> None:
        """Read the next entry."""
        if self._began_ns is None:
            self._began_ns = entry.now_ns
        match entry.event:
            case RequestArrived(request) | FrameDetected(request) if request.camera == self._camera:
                self._requests[request.id] = request
            case CameraConnected(camera) if camera.id == self._camera:
                self._say(entry.now_ns, f"said hello: {_settings(camera)}")
            case CameraChanged(camera) if camera.id == self._camera:
                self._say(entry.now_ns, f"was changed on the box: {_settings(camera)}")
            case CameraDisconnected(camera) if camera == self._camera:
                self._say(entry.now_ns, "left")
        for action in entry.actions:
            self._order(action, entry.now_ns)

    def lines(self) -> list[str]:
        """Return the sentences, in order."""
        self._end_row()
        if not self._lines:
            return []
        return [f"camera {self._camera}, from the beginning of the journal", *self._lines]

    def _say(self, at_ns: int, what: str) -> None:
        self._end_row()
        self._lines.append(f"+{self._since_s(at_ns):.3f} s {what}")

    def _since_s(self, at_ns: int) -> float:
        return 0.0 if self._began_ns is None else (at_ns - self._began_ns) / 1e9

    def _order(self, action: Action, now_ns: int) -> None:
        match action:
            case Advise(camera, advice) if camera == self._camera:
                self._advised(advice, now_ns)
            case Finish(request, _, outcome) if request in self._requests:
                late = "" if outcome is Outcome.ON_TIME else " late"
                self._ended(request, f"answered{late}", now_ns)
            case Drop(request, reason, _) if request in self._requests:
                self._ended(request, _dropped(reason), now_ns)

    def _advised(self, advice: Advice, now_ns: int) -> None:
        old, self._advice = self._advice, advice
        if old is None or (old.variant, old.width_px, old.height_px, old.rate_hz, old.reason) != (
            advice.variant, advice.width_px, advice.height_px, advice.rate_hz, advice.reason,
        ):  # fmt: skip
            self._say(
                now_ns,
                f"advised to send {advice.width_px} × {advice.height_px} px, {advice.rate_hz:g} a "
                f"second, for {advice.variant}: {advice.reason}",
            )

    def _ended(self, request: Id, how: str, now_ns: int) -> None:
        if how != self._row:
            self._end_row()
            self._row, self._row_ns = how, now_ns
        captured_ns = self._requests.pop(request).captured_ns
        self._row_ids.append(request)
        self._row_ms.append((now_ns - captured_ns) / 1e6)

    def _end_row(self) -> None:
        if not self._row_ids:
            return
        low, high = min(self._row_ms), max(self._row_ms)
        after = f"{low:.1f} ms" if len(self._row_ms) == 1 else f"{low:.1f} to {high:.1f} ms"
        ids = [str(self._row_ids[0]), str(self._row_ids[-1])]
        which = f"request {ids[0]}" if ids[0] == ids[1] else f"requests {' to '.join(ids)}"
        frames = "1 frame" if len(self._row_ids) == 1 else f"{len(self._row_ids)} frames"
        since_s = self._since_s(self._row_ns)
        self._lines.append(
            f"+{since_s:.3f} s {frames} {self._row}, {after} after capture ({which})"
        )
        self._row = ""
        self._row_ids.clear()
        self._row_ms.clear()


def _settings(camera: Camera) -> str:
    return (
        f"application {camera.app}, family {camera.family}, {camera.width_px} × "
        f"{camera.height_px} px, {camera.rate_hz:g} a second, answers within "
        f"{camera.slo_ns / 1e6:g} ms" + _still_worth(camera.steps, 0)
    )


def _still_worth(steps: Iterable[UtilityStep], from_ns: int) -> str:
    return "".join(
        f", still worth {step.utility:g} within {(step.by_ns - from_ns) / 1e6:g} ms"
        for step in steps
    )


def _dropped(reason: DropReason) -> str:
    return f"dropped ({reason.value}: {DROP_MESSAGES[reason]})"
