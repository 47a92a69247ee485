"""Decides which frames a cascade sends on, when their first stage has answered.

On the event loop, in the same turn as the crops of other stages: some 0.1 ms for a picture, and
0.3 ms for the first after one that was compared. What is expected is calibrated for each camera
(`vision.cascade_calibration`) by the frames that both models have answered. Few of those are ones
that the small model was sure of, so an idle box sends some of these on, too.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

from edgebox.domain.cascades import Cascade, CascadeEvidence, CascadeOutcome
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import CameraId
from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.scheduling.events import CascadeMeasured
from edgebox.scheduling.scheduler import Scheduler
from edgebox.vision.cascade_calibration import CascadeCalibration
from edgebox.vision.cascade_decider import features, frame_loss
from edgebox.vision.detections import Detections

CAMERAS_MAX = 256
"""Cameras whose calibration is kept, also while they are away."""
COMPARE_NS = 250_000_000
"""Minimum time between two comparisons of a camera's frames: neighbours say the same."""
REPORT_NS = 5_000_000_000
"""Minimum time between two curves of a camera that planning is told of."""


class _CameraCascade:
    """A camera's calibration, and when it was used."""

    def __init__(self, cascade: Cascade, evidence: CascadeEvidence | None) -> None:
        self.cascade = cascade
        self.calibration = CascadeCalibration(cascade.decider, cascade.curve, evidence)
        self.changed = False
        """Whether a frame was decided or compared since its evidence was taken last."""
        self.compared_ns: int | None = None
        self.reported_ns: int | None = None


class CascadeDecisions:
    """The calibrated cascades of all cameras."""

    def __init__(
        self,
        scheduler: Scheduler,
        is_idle: Callable[[], bool],
        on_measured: Callable[[CascadeMeasured], None],
    ) -> None:
        """Believe what was fitted.

        Args:
            scheduler: says what is planned and what the large model takes.
            is_idle: whether the box has no frame but the one that is decided.
            on_measured: told of a curve that planning should know.
        """
        self._scheduler, self._is_idle, self._on_measured = scheduler, is_idle, on_measured
        self._cameras: OrderedDict[CameraId, _CameraCascade] = OrderedDict()
        self._restored: dict[CameraId, tuple[str, CascadeEvidence]] = {}
        """Evidence from before this start, of cameras none of whose frames was decided since."""
        self._sample_ns: int | None = None
        """When the time of the next sample is saved up; None: no frame was decided yet."""

    def decide(
        self, frame: PendingFrame, found: Detections, variant: VariantName, now_ns: int
    ) -> bool:
        """Return whether a frame is sent on to its cascade's large model, and note it in the frame.

        A frame that ran on a smaller variant than the cascade's small model is not: the box was
        short of time for it.

        Args:
            frame: that its first stage has answered.
            found: what that found, in px of the camera's own picture.
            variant: that found it.
            now_ns: when.
        """
        cascade = None if frame.pipeline is None else frame.pipeline.cascade
        if cascade is None or variant != cascade.small:
            return False
        size_px = frame.source_width_px, frame.source_height_px
        frame.cascade_features = features(found, *size_px, cascade.score_shown)
        camera, of = frame.request.camera, self._of(frame.request.camera, cascade)
        loss = of.calibration.expected(frame.cascade_features)
        of.changed = True
        share = self._scheduler.cascade_share(camera)
        is_hard = loss > cascade.threshold_with(share, of.calibration.curve())
        sent_on = is_hard or self._is_sample(of, now_ns)
        frame.cascade = CascadeOutcome.MISSED if sent_on else CascadeOutcome.KEPT
        frame.cascade_sampled = sent_on and not is_hard
        self._report(camera, of, now_ns)
        return sent_on

    def answered(self, frame: PendingFrame, small: Answer, whole: Answer, now_ns: int) -> None:
        """Compare what both models found on a frame, if both did and the last one is a while ago.

        Args:
            frame: that has its answer.
            small: the first stage's answer.
            whole: the frame's answer.
            now_ns: when.
        """
        of = self._cameras.get(frame.request.camera)
        if of is None or frame.cascade_features is None:
            return
        if whole.cascade is not CascadeOutcome.SENT_ON:
            return
        if of.compared_ns is not None and now_ns - of.compared_ns < COMPARE_NS:
            return
        of.compared_ns = now_ns
        found = small.detections, whole.detections
        classes = 1 + max(int(each.labels.max(initial=0)) for each in found)
        loss = frame_loss(*found, classes, of.cascade.score_shown)
        of.calibration.compare(frame.cascade_features, loss, hard=not frame.cascade_sampled)
        of.changed = True

    def restore(self, evidence: Mapping[CameraId, tuple[str, CascadeEvidence]]) -> None:
        """Go on from what was learned before this start.

        Args:
            evidence: by camera, with the fingerprint of the decider that it belongs to.
        """
        self._restored = dict(evidence)

    def take_changed(self) -> Iterator[tuple[CameraId, str, CascadeEvidence]]:
        """Yield camera, its decider's fingerprint, and evidence, where frames came since."""
        for camera, of in self._cameras.items():
            if of.changed:
                of.changed = False
                yield camera, of.cascade.decider.fingerprint, of.calibration.evidence

    def forget(self, camera: CameraId) -> None:
        """Forget what a camera's pictures said."""
        self._cameras.pop(camera, None)
        self._restored.pop(camera, None)

    def calibration(self, camera: CameraId) -> CascadeCalibration | None:
        """Return the calibration of a camera's cascade; None: none of its frames was decided."""
        of = self._cameras.get(camera)
        return None if of is None else of.calibration

    def _of(self, camera: CameraId, cascade: Cascade) -> _CameraCascade:
        of = self._cameras.get(camera)
        if of is None or of.cascade.decider != cascade.decider:
            decider, evidence = self._restored.pop(camera, ("", None))
            same = decider == cascade.decider.fingerprint
            of = self._cameras[camera] = _CameraCascade(cascade, evidence if same else None)
            while len(self._cameras) > CAMERAS_MAX:
                self._cameras.popitem(last=False)
        of.cascade = cascade
        self._cameras.move_to_end(camera)
        return of

    def _is_sample(self, of: _CameraCascade, now_ns: int) -> bool:
        """Say whether a frame is sent on although its expected loss is small; note its time.

        Samples take at most `sample_share` of the time, like those of execution times.
        """
        share = self._scheduler.parameters.sample_share
        row = self._scheduler.times.latencies.best(of.cascade.large)
        if share <= 0 or row is None:
            return False
        saved_up_ns = now_ns + round(row.median_ns[0] / share)
        if self._sample_ns is None:
            self._sample_ns = saved_up_ns
        if now_ns < self._sample_ns or not self._is_idle():
            return False
        self._sample_ns = saved_up_ns
        return True

    def _report(self, camera: CameraId, of: _CameraCascade, now_ns: int) -> None:
        recently = of.reported_ns is not None and now_ns - of.reported_ns < REPORT_NS
        if of.cascade.planned and not recently:
            of.reported_ns = now_ns
            self._on_measured(CascadeMeasured(camera, of.calibration.curve()))
