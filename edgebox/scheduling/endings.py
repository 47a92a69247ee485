"""Ends requests: what waits and may wait no longer, the members of a batch, joined frames. Pure.

Every request ends with one action: a frame with `Finish` or `Drop`, a crop of a frame with
`Collect` or `Drop`. A frame with crops has a `Collect` before its `Finish`.
"""

from collections.abc import Iterable, Mapping

from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.requests import BatchId, CameraId, DropReason, FrameId, Request, RequestId
from edgebox.scheduling.actions import Collect, Drop, Finish, SpawnCrops
from edgebox.scheduling.adaptation import Adaptation
from edgebox.scheduling.calibration import RecentValues
from edgebox.scheduling.dispatch import Dispatch
from edgebox.scheduling.events import FrameDetected, PartialAnswered
from edgebox.scheduling.fan_out import FanOut
from edgebox.scheduling.frame_admission import FrameAdmission
from edgebox.scheduling.joins import JoinedFrame
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.scheduling.request_stages import Cause, Stage
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.scheduling.trials import Trials

PARTIAL_WINDOW = 64
"""Partial answers over which the time of sending one is measured."""
PARTIAL_QUANTILE = 0.95
"""Of that time, which depends on the event loop: the simulation has none, so what it is worth shows
with a running box alone (`benchmarks.pipelines_live`)."""
PARTIAL_EARLY_MAX_NS = 50_000_000
"""However slow the event loop is, crops are waited for until this long before the deadline."""

CROP_CAUSES = {DropReason.DEPARTED: Cause.DEPARTED, DropReason.QUEUE: Cause.FRAME_ENDED}
"""Why a crop is not admitted, where it is not for itself."""

Ending = Collect | Finish | Drop


class Endings:
    """Ends requests and informs the parts of the core that know them."""

    def __init__(
        self,
        ledger: Ledger,
        policy: BatchingPolicy,
        *,
        dispatch: Dispatch,
        trials: Trials,
        adaptation: Adaptation,
        fan_out: FanOut,
        frames: FrameAdmission,
        partial_early_ns: int,
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._dispatch = dispatch
        self._trials = trials
        self._adaptation = adaptation
        self._fan_out = fan_out
        self._frames = frames
        self._partial_early_ns = partial_early_ns
        self._partial_ns = RecentValues(PARTIAL_WINDOW, partial_early_ns)
        self.partial_early_ns = partial_early_ns
        """How long before its last deadline a frame ends whose crops still run."""

    def drop(self, request: RequestId, cause: Cause) -> Drop:
        """Drop a waiting request."""
        if self._trials.is_of(request):
            self._trials.end()
        else:
            self._policy.removed(request)
        return self._ledger.end_waiting(request, cause)

    def drop_all(self, requests: Iterable[RequestId], cause: Cause) -> list[Drop]:
        """Drop waiting requests."""
        return [self.drop(request, cause) for request in list(requests)]

    def make_room(self, request: Request, parameters: SchedulerParameters) -> list[Drop] | None:
        """Drop a camera's oldest waiting frame if it, or the whole box, has too many.

        One-shot requests do not replace each other, so only the box's bound applies to them. Crops
        count as part of their frame, which was admitted before.

        Returns:
            What was dropped; None: there is no room.
        """
        if request.frame is not None:
            return []
        of_camera = self._ledger.frames_by_camera.get(request.camera, {})
        full = self._ledger.frames_waiting >= parameters.box_pending_max
        if request.variant is not None:
            return None if full else []
        if not full and len(of_camera) < parameters.camera_pending_max:
            return []
        return [self.drop(next(iter(of_camera)), Cause.DISPLACED)] if of_camera else None

    def expired(self, now_ns: int, *, woken: bool) -> list[Drop]:
        """Drop what can no longer meet its deadline, on a smaller variant either.

        `woken`: nothing has happened since the last call.
        """
        self._dispatch.choose_variants(now_ns, woken=woken)
        out = []
        for request in self._policy.expired(now_ns):
            live = self._ledger.live[request]
            is_frame = live.request.frame is None
            if is_frame and self._begin_late_trial(live, now_ns):
                continue
            if is_frame:
                self._adaptation.expired(live.request.camera)
            if live.pipeline is not None or not (is_frame or live.request.optional):
                self._frames.incomplete(now_ns)
            out.append(self._ledger.end_waiting(request, Cause.EXPIRED))
        if self._trials.request is not None and self._trials.late(now_ns):
            out.append(self.drop(self._trials.request.id, Cause.TRIAL_EXPIRED))
        return out

    def _begin_late_trial(self, live: LiveRequest, now_ns: int) -> bool:
        if self._ledger.waiting > 1 or live.stage is not Stage.READY or not self._dispatch.idle():
            return False
        begun = self._trials.begin(live.request, live.variant, now_ns, now_ns)
        if begun:
            # The policy does not have it any more, so nothing may move it.
            live.variants, live.larger = (live.variant,), 0
        return begun

    def members(self, members: Iterable[LiveRequest], batch: BatchId, now_ns: int) -> list[Ending]:
        """Return what becomes of the members of a batch that has ended."""
        out = [self._ledger.ending(live, batch, now_ns) for live in members]
        for live, ending in zip(members, out, strict=True):
            if live.pipeline is not None and isinstance(ending, Finish):
                self._observe_crops(live.request, live.pipeline, {})
        return out

    @staticmethod
    def departed(members: Iterable[LiveRequest]) -> set[FrameId]:
        """Return the frames, among those of a batch that ended, whose camera left while it ran.

        Crops that the batch spawned for them end for the same reason.
        """
        return {
            FrameId(live.request.id) if live.request.frame is None else live.request.frame
            for live in members
            if live.reason is DropReason.DEPARTED
        }

    def detected(
        self,
        event: FrameDetected,
        pipeline: Pipeline | None,
        refused: DropReason | None,
        now_ns: int,
    ) -> list[Ending]:
        """Take a frame whose first stage ran at its camera.

        It ends at once if it is refused, its crops with it, or if it has no crops.
        """
        request, crops = event.request, event.spawned
        if refused is not None:
            return [Drop(each.id, refused, Cause.REFUSED) for each in (*crops, request)]
        finish = self._ledger.detected(request, crops, pipeline, now_ns)
        if finish is None:
            return []
        self._observe_crops(request, pipeline, {})
        return [finish]

    def unwanted(self, crop: Request, reason: DropReason) -> Drop:
        """Drop a crop that is not admitted."""
        self._ledger.joins.ended(crop, answered=False)
        return Drop(crop.id, reason, CROP_CAUSES.get(reason, Cause.REFUSED))

    @staticmethod
    def too_late(crops: Iterable[Request]) -> list[Drop]:
        """Drop crops that no frame waits for."""
        return [Drop(crop.id, DropReason.QUEUE, Cause.FRAME_ENDED) for crop in crops]

    def partial_answered(self, event: PartialAnswered) -> None:
        """Learn how long it takes to send a partial answer."""
        self._partial_ns.add(event.took_ns)
        usual_ns = round(self._partial_ns.quantile(PARTIAL_QUANTILE))
        self.partial_early_ns = max(self._partial_early_ns, min(usual_ns, PARTIAL_EARLY_MAX_NS))

    def frames(self, now_ns: int) -> list[Ending | SpawnCrops]:
        """End the frames whose crops have all ended, and those whose deadline is here.

        Those whose cascade's large model did not answer have the crops of their own objects first.
        """
        out: list[Ending | SpawnCrops] = []
        joins = self._ledger.joins
        if not joins.frames:
            return out
        for frame in joins.due(now_ns + self.partial_early_ns):
            if not all(self._ledger.live[crop].request.optional for crop in frame.pending):
                self._frames.incomplete(now_ns)
            waiting = (crop for crop in frame.pending if self._ledger.live[crop].waits)
            out += self.drop_all(sorted(waiting), Cause.EXPIRED)
            out.append(self._end_frame(frame, now_ns))
        out += (SpawnCrops(frame.request.id) for frame in joins.to_cut())
        out += (self._end_frame(frame, now_ns) for frame in joins.complete())
        return out

    def next_frame_ns(self) -> int | None:
        """Return when a frame is due to end without all of its crops; None: never."""
        due_ns = self._ledger.joins.due_ns()
        return None if due_ns is None else due_ns - self.partial_early_ns

    def _end_frame(self, frame: JoinedFrame, now_ns: int) -> Finish:
        cut = not frame.uncut
        self._observe_crops(frame.request, frame.pipeline, frame.crops, cut=cut)
        return self._ledger.end_frame(frame, now_ns)

    def _observe_crops(
        self,
        request: Request,
        pipeline: Pipeline | None,
        crops: Mapping[StageName, int],
        *,
        cut: bool = True,
    ) -> None:
        """Learn from a frame, unless its camera has another pipeline by now.

        `cut`: whether its objects were cut.
        """
        connected = self._adaptation.cameras.get(request.camera)
        of_camera = None if connected is None else connected.camera.pipeline
        if connected is not None and request.frame is None and of_camera == pipeline:
            self._fan_out.observe(connected.camera, crops, cut=cut)

    def pipeline_changed(self, camera: CameraId) -> None:
        """Forget what a camera's frames brought while it had another pipeline."""
        self._fan_out.forget(camera)
        self._frames.forget(camera)

    def cancel(self, request: RequestId) -> list[Drop] | None:
        """Drop a request that nobody waits for, with a frame's crops; None: it has ended.

        What runs ends with its batch.
        """
        live = self._ledger.live
        if request in live:
            if live[request].waits:
                return [self.drop(request, Cause.DEPARTED)]
            return [] if self._ledger.cancel((request,)) else None
        frame = self._ledger.joins.frames.get(FrameId(request))
        if frame is None:
            return None
        crops = sorted(frame.pending)
        self._ledger.joins.close(frame.id)
        out = [Drop(request, DropReason.DEPARTED, Cause.DEPARTED)]
        out += self.drop_all((each for each in crops if live[each].waits), Cause.DEPARTED)
        self._ledger.cancel(each for each in crops if each in live)
        return out

    def depart(self, camera: CameraId) -> tuple[list[Drop], bool]:
        """Drop the requests of a camera that left; say also whether it had any."""
        frames = self._ledger.joins.depart(camera)
        out = [Drop(frame.request.id, DropReason.DEPARTED, Cause.DEPARTED) for frame in frames]
        out += self.drop_all(self._ledger.waiting_of(camera), Cause.DEPARTED)
        self._fan_out.forget(camera)
        self._frames.forget(camera)
        return out, self._ledger.depart(camera) or bool(out)
