"""Decides whether a frame of a pipeline is taken, by the work that it and others bring. Pure.

Also whether a picture of a program is, by the time that cameras leave, and a frame of a camera that
the plan promises nothing, by the time that those leave which it promises something.

Every frame that is taken brings crops later. A box that takes each frame answers the first stages
of all, and under overload the crops of few. So a frame is refused on arrival if the executors
cannot work off what is at the box, its own part included, in the time that it has left.

Once a frame was not answered in full for want of time, the box is overloaded, and more is refused:
a frame may use only a part of its time, the smaller the fewer answers it gives per executor time,
in proportion to the camera that gives most. So the frames with the fewest objects are refused
first, and executors answer most. This fades by half every `PRICE_HALF_LIFE_NS`.

Source: the greedy rule of the fractional knapsack (value per size), with the backlog as the price
of executor time. PARD (Park et al. 2026) drops by the remaining path too, but by time alone.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping

from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import Camera, CameraId, Request, RequestId
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.fan_out import FanOut
from edgebox.scheduling.ledger import Ledger
from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule, SchedulerParameters

PRICE_HALF_LIFE_NS = 10_000_000_000
"""Overload comes back within seconds as a rule, because cameras go on sending."""
UNSEEN_NS = 3_000_000_000
"""A camera none of whose frames was taken for this long may use all of its time: what an empty
scene shows would never be known otherwise. Nor does it raise the price for others."""

Work = dict[VariantName, float]
"""A number of pictures and crops by variant."""


class FrameAdmission:
    """The work at the box, and what each frame adds."""

    def __init__(
        self,
        parameters: SchedulerParameters,
        ledger: Ledger,
        times: ExecutionTimes,
        fan_out: FanOut,
    ) -> None:
        self._rule = parameters.frame_admission
        self._refuses_from = parameters.refuses_from
        self._ledger = ledger
        self._times = times
        self._fan_out = fan_out
        self._taken_ns: dict[CameraId, int] = {}
        self._density: dict[CameraId, float] = {}
        """Answers per ns of executor time of each camera's last frame."""
        self._crops: dict[CameraId, Work] = {}
        """The crops that each camera's last frame was expected to bring."""
        self._overloaded_ns: int | None = None
        self._box_ns: dict[VariantName, dict[int, float]] = {}
        self._version = -1
        self._unpromised: deque[RequestId] = deque()
        """Frames that were taken though the plan promises their cameras nothing, oldest first; of
        those that do not wait any more only such as came after one that does."""

    def incomplete(self, now_ns: int) -> None:
        """Note that a frame of a pipeline was not answered in full for want of time."""
        self._overloaded_ns = now_ns

    def forget(self, camera: CameraId) -> None:
        """Forget a camera."""
        self._taken_ns.pop(camera, None)
        self._density.pop(camera, None)
        self._crops.pop(camera, None)

    def refuses(self, request: Request, camera: Camera, variant: VariantName, now_ns: int) -> bool:
        """Say whether a frame's work, and all before it, takes too long.

        Args:
            request: the frame.
            camera: it has sent it.
            variant: that its first stage would run on.
            now_ns: when.
        """
        pipeline = camera.pipeline
        if pipeline is None or len(pipeline.stages) == 1 or self._rule is FrameAdmissionRule.NONE:
            return False
        own = dict(self._crops_of_frame(camera, pipeline))
        own[variant] = own.get(variant, 0.0) + 1
        took_ns = self._takes_ns(own)
        if took_ns <= 0:
            return False
        self._density[camera.id] = sum(own.values()) / took_ns
        needs_ns = self._takes_ns(_sum(self._at_box(), own)) + self._running_ns(now_ns)
        left_ns = request.last_deadline_ns - now_ns - self._times.calibration.prepare_ns
        if needs_ns > left_ns:
            self.incomplete(now_ns)
        if needs_ns > self._share(camera.id, now_ns) * left_ns:
            return True
        self._taken_ns[camera.id] = now_ns
        return False

    def refuses_single(
        self, request: Request, variant: VariantName, cameras_share: float, now_ns: int
    ) -> bool:
        """Say whether there is no time for a program's picture.

        Never if no other program's picture waits: there is time for one, beside cameras, too.
        """
        if not self._ledger.frames_by_camera.get(request.camera):
            return False
        return self._is_hopeless(request, variant, now_ns) or self._takes_more(
            request, variant, 1 - cameras_share, now_ns
        )

    def refuses_unpromised(
        self, request: Request, variant: VariantName, promised_share: float, now_ns: int
    ) -> bool:
        """Say whether there is no time for a frame of a camera that the plan promises nothing.

        Never if no other one of such cameras waits. So cameras that connect by the hundreds, or
        that are best effort, take nothing from those that are served, however often they send.
        """
        waits = self._forget_unpromised()
        if waits and self._takes_more(request, variant, 1 - promised_share, now_ns):
            return True
        self._unpromised.append(request.id)
        return False

    def _forget_unpromised(self) -> bool:
        """Forget the oldest of `_unpromised` that do not wait; say whether any waits.

        Those behind the first that waits stay: each is looked at once.
        """
        while self._unpromised:
            live = self._ledger.live.get(self._unpromised[0])
            if live is not None and live.waits:
                return True
            self._unpromised.popleft()
        return False

    def _left_ns(self, request: Request, now_ns: int) -> int:
        """Return the time for batches until a request's last deadline."""
        return request.last_deadline_ns - now_ns - self._times.calibration.fixed_ns

    def _takes_more(
        self, request: Request, variant: VariantName, share: float, now_ns: int
    ) -> bool:
        """Say whether a picture, and all that waits and must be answered by its deadline, takes
        longer than the share of the time until then that is promised to nobody."""
        if share >= 1:
            return False
        work = _sum(self._at_box(request.last_deadline_ns), {variant: 1.0})
        needs_ns = self._takes_ns(work) + self._running_ns(now_ns)
        return needs_ns > share * self._left_ns(request, now_ns)

    def _is_hopeless(self, request: Request, variant: VariantName, now_ns: int) -> bool:
        """Say whether what waits, takes no longer and is due no later takes all the time until a
        picture's deadline, `refuses_from` times, were every batch quick and of the best size."""
        own_ns = self._least_ns(variant, request.app)
        needs_ns = own_ns
        for of, by_app in self._ledger.deadlines.items():
            for app, due_ns in by_app.items():
                if (each_ns := self._least_ns(of, app)) <= own_ns:
                    needs_ns += each_ns * bisect_right(due_ns, request.last_deadline_ns)
        return needs_ns > self._refuses_from * self._left_ns(request, now_ns)

    def _least_ns(self, variant: VariantName, app: str) -> float:
        """Return the least time of all executors together for a picture of an application, in the
        batch size that is best."""
        single_request = self._times.expectations.single_request(variant, app)
        row = self._times.latencies.best(variant)
        by_size = self._times_by_size(variant)
        if single_request is None or row is None or not by_size:
            return 0.0
        in_batch_ns = min(took_ns / size for size, took_ns in by_size.items())
        return in_batch_ns * min(1.0, single_request.low_ns / max(1, row.median_ns[0]))

    def _share(self, camera: CameraId, now_ns: int) -> float:
        """Return the part of its time that a camera's frame may use."""
        by_density = self._rule is FrameAdmissionRule.DENSITY
        if self._overloaded_ns is None or not by_density or not self._is_seen(camera, now_ns):
            return 1.0
        price: float = 0.5 ** ((now_ns - self._overloaded_ns) / PRICE_HALF_LIFE_NS)
        most = max(each for of, each in self._density.items() if self._is_seen(of, now_ns))
        return 1 - price * (1 - self._density[camera] / most)

    def _is_seen(self, camera: CameraId, now_ns: int) -> bool:
        """Say whether a frame of a camera was taken lately."""
        taken_ns = self._taken_ns.get(camera)
        return taken_ns is not None and now_ns - taken_ns < UNSEEN_NS

    def _crops_of_frame(self, camera: Camera, pipeline: Pipeline) -> Work:
        """Return the crops that a frame is expected to bring."""
        out: Work = {}
        for stage in pipeline.stages[1:]:
            variant = self._fan_out.variant_of(camera, stage)
            if variant is not None and stage.cascade is None:  # frames are answered without it
                crops = self._fan_out.proven_crops(camera.id, stage.name)
                out[variant] = out.get(variant, 0.0) + crops
        self._crops[camera.id] = out
        return out

    def _at_box(self, due_ns: int | None = None) -> Work:
        """Return what waits, of it what is due by an instant, and the crops that frames are
        expected to bring."""
        out: Work = {}
        for variant, by_app in self._ledger.deadlines.items():
            for all_ns in by_app.values():
                number = len(all_ns) if due_ns is None else bisect_right(all_ns, due_ns)
                out[variant] = out.get(variant, 0.0) + number
        for camera, frames in self._ledger.to_spawn.items():
            for variant, of_each in self._crops.get(camera, {}).items():
                out[variant] = out.get(variant, 0.0) + frames * of_each
        return out

    def _running_ns(self, now_ns: int) -> float:
        """Return the usual time until running batches have ended, averaged over the executors."""
        latencies = self._times.latencies
        free_ns = map(latencies.usually_free_ns, self._ledger.running.values())
        left_ns = sum(max(0, at_ns - now_ns) for at_ns in free_ns if at_ns is not None)
        return left_ns / max(1, len(latencies.slowdowns))

    def _takes_ns(self, work: Mapping[VariantName, float]) -> float:
        """Return the time of all executors together for work in the fewest batches.

        Less than one picture counts as a part of the time of one.
        """
        total_ns = 0.0
        for variant, number in work.items():
            by_size = self._times_by_size(variant)
            if not by_size:
                continue
            most = max(by_size)
            full, rest = divmod(number, most)
            total_ns += full * by_size[most]
            if rest > 0:
                size = next(size for size in by_size if size >= rest)
                total_ns += by_size[size] * min(1.0, rest)
        return total_ns

    def _times_by_size(self, variant: VariantName) -> dict[int, float]:
        """Return the time per batch by size, rising, while all executors run such batches."""
        latencies = self._times.latencies
        if self._version != latencies.version:
            self._version = latencies.version
            self._box_ns.clear()
        if variant not in self._box_ns:
            executors = latencies.executors(variant)
            rates: dict[int, float] = {}
            for executor in executors:
                row = latencies.row(executor, variant, len(executors) - 1)
                assert row is not None
                for size, took_ns in zip(row.sizes, row.median_ns, strict=True):
                    rates[size] = rates.get(size, 0.0) + 1 / max(1, took_ns)
            self._box_ns[variant] = {size: 1 / rate for size, rate in sorted(rates.items())}
        return self._box_ns[variant]


def _sum(one: Mapping[VariantName, float], other: Mapping[VariantName, float]) -> Work:
    return {each: one.get(each, 0.0) + other.get(each, 0.0) for each in {**one, **other}}
