"""Checks that the core's redundant state is consistent: a tool for tests and replays."""

from collections import Counter
from collections.abc import Mapping

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import RequestId
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.request_stages import WAITING, Stage
from edgebox.scheduling.sampling import KEPT_BYTES_MAX, KEPT_MAX
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.supervised import ExecutorState


def check_invariants(scheduler: Scheduler) -> None:
    """Re-derive all redundant state and compare; call it between two calls of `handle`.

    Raises:
        InvariantViolation: the message names the contradiction.
    """
    _check_waiting(scheduler)
    _check_joins(scheduler)
    _check_running(scheduler)
    _check_sampling(scheduler)
    _check_resources(scheduler)
    _check_supervision(scheduler)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvariantViolation(message)


def _check_waiting(scheduler: Scheduler) -> None:
    ledger = scheduler._ledger
    waiting = {r: live for r, live in ledger.live.items() if live.stage in WAITING}
    if ledger.waiting != len(waiting):
        raise InvariantViolation(f"{ledger.waiting} requests wait, not {len(waiting)}")
    _check_counts(ledger, waiting)
    listed, frames = 0, 0
    for lists, of_frames in ((ledger.frames_by_camera, True), (ledger.crops_by_camera, False)):
        for camera, requests in lists.items():
            listed += len(requests)
            frames += len(requests) * of_frames
            for number in requests:
                live = waiting.get(number)
                if (
                    live is None
                    or live.request.camera != camera
                    or (live.request.frame is None) != of_frames
                ):
                    raise InvariantViolation("the cameras' lists are not the waiting requests")
    _require(listed == len(waiting), "a camera's list has a request twice or lacks one")
    _require(ledger.frames_waiting == frames, "the number of waiting frames is wrong")
    _require(
        all(ledger.frames_by_camera.values()) and all(ledger.crops_by_camera.values()),
        "an empty list of a camera was kept",
    )
    in_policy = list(scheduler._policy.pending())
    trial = scheduler._trials.request
    _require(trial is None or trial.id in waiting, "the trial is not a waiting request")
    if trial is not None:
        in_policy.append(trial.id)
    _require(
        len(in_policy) == len(waiting) and waiting.keys() == set(in_policy),
        "the policy knows other requests than wait",
    )
    _require(
        ledger.frames_waiting <= scheduler._parameters.box_pending_max,
        "more frames wait than the box allows",
    )
    _require(not (scheduler._stopping and waiting), "requests wait while the box is stopping")


def _check_counts(ledger: Ledger, waiting: Mapping[RequestId, LiveRequest]) -> None:
    """Count the requests again.

    Plain dictionaries do: comparing `Counter`s, which take an absent key for a zero, and making
    one for each variant would take longer than all the other checks. The ledger keeps no zeros.
    """
    ready: dict[VariantName, dict[str, int]] = {}
    deadlines: dict[VariantName, dict[str, list[int]]] = {}
    preparing = 0
    for live in waiting.values():
        request, variant, app = live.request, live.variant, live.request.app
        if not request.optional:
            of_apps = deadlines.setdefault(variant, {})
            of_apps.setdefault(app, []).append(request.last_deadline_ns)
        if live.stage is Stage.READY:
            of_variant = ready.setdefault(variant, {})
            of_variant[app] = of_variant.get(app, 0) + 1
        elif request.frame is not None:
            preparing += 1
    for of_apps in deadlines.values():
        for deadlines_ns in of_apps.values():
            deadlines_ns.sort()
    _require(ledger.deadlines == deadlines, "the deadlines of what waits are wrong")
    by_due = sorted((live.due_ns, r) for r, live in waiting.items() if not live.request.optional)
    _require(ledger.by_due == by_due, "the order of what waits is wrong")
    _require(ledger.ready.keys() == ready.keys(), "other variants have ready requests")
    for variant, counted in ready.items():
        _require(dict(ledger.ready[variant]) == counted, "the number of ready requests is wrong")
    _require(ledger.crops_preparing == preparing, "the number of crops that are cut is wrong")
    spawning = [live.request.camera for live in ledger.live.values() if live.pipeline is not None]
    _require(
        dict(ledger.to_spawn) == dict(Counter(spawning)),
        "the number of frames that may spawn crops is wrong",
    )


def _check_joins(scheduler: Scheduler) -> None:
    ledger = scheduler._ledger
    waited_for = [crop for frame in ledger.joins.frames.values() for crop in frame.pending]
    needed = {
        request
        for request, live in ledger.live.items()
        if live.request.frame is not None and live.stage not in (Stage.CANCELLED, Stage.UNNEEDED)
    }
    _require(len(waited_for) == len(set(waited_for)), "two frames wait for the same crop")
    _require(set(waited_for) == needed, "the crops that frames wait for are not those at the box")
    for number, frame in ledger.joins.frames.items():
        if frame.id != number:
            raise InvariantViolation(f"frame {number} is stored under another number")
        if frame.request.id in ledger.live:
            raise InvariantViolation(f"frame {number} waits and is joined")
        if not frame.pending and not frame.awaits_crops:
            raise InvariantViolation(f"frame {number} is kept, but all its crops have ended")
    _require(not ledger.joins.complete(), "a frame is listed as complete, but waits for crops")
    deadlines_ns = [frame.request.last_deadline_ns for frame in ledger.joins.frames.values()]
    _require(
        ledger.joins.due_ns() == min(deadlines_ns, default=None),
        "the earliest deadline of the frames with crops is another one",
    )


def _check_running(scheduler: Scheduler) -> None:
    ledger = scheduler._ledger
    members = [m for batch in ledger.running.values() for m in batch.infer.requests]
    running = {r for r, live in ledger.live.items() if live.stage not in WAITING}
    stages = {ledger.live[each].stage for each in running}
    _require(stages.isdisjoint((Stage.RECEIVED, Stage.ENDED)), "a request that ended is kept")
    _require(len(members) == len(set(members)), "a request runs twice")
    _require(set(members) == running, "the members of the batches are not the running requests")
    busy = scheduler._times.latencies.busy.executors
    sampling = {scheduler._sampling.executor} - {None}
    _require(
        busy == {*ledger.running, *sampling},
        "the busy executors are not those that run a batch or a sample",
    )
    for executor, batch in ledger.running.items():
        if executor not in scheduler._executors.in_service:
            raise InvariantViolation(f"{executor} runs a batch but has stopped")
        infer = batch.infer
        if infer.executor != executor:
            raise InvariantViolation(f"{executor} runs another's batch")
        profile = scheduler._times.latencies.profiles(executor).get(infer.variant)
        if profile is None:
            raise InvariantViolation(f"{infer.variant} is not loaded on {executor}")
        if infer.batch_size not in profile.quantiles_ns:
            raise InvariantViolation(f"batch size {infer.batch_size} was never profiled")
        members_min = 0 if batch.unanswered else 1
        size_ok = members_min <= len(infer.requests) <= infer.batch_size
        _require(size_ok, "a batch is empty or overfull")
        for member in infer.requests:
            if ledger.live[member].variant != infer.variant:
                raise InvariantViolation(f"request {member} is in a batch of another variant")


def _check_sampling(scheduler: Scheduler) -> None:
    sampling, executors = scheduler._sampling, scheduler._executors.in_service
    running = sampling.running
    if running is not None:
        executor = running.sample.executor
        _require(executor in executors, f"{executor} runs a sample but has stopped")
        _require(executor not in scheduler._ledger.running, f"{executor} runs two things")
    retained = [each for kept in sampling.retained.values() for each in kept]
    ids = {each.request for each in retained}
    _require(len(ids) == len(retained), "a request is retained twice")
    _require(ids.isdisjoint(scheduler._ledger.live), "a living request is retained")
    _require(all(sampling.retained.values()), "an empty list of retained requests was kept")
    _require(
        all(key[0] in executors for key in sampling.retained),
        "a request is retained for an executor that has stopped",
    )
    size_bytes = sum(each.size_bytes for each in retained)
    _require(
        (len(retained), size_bytes) == (sampling._count, sampling._bytes)
        and len(retained) <= KEPT_MAX
        and size_bytes <= KEPT_BYTES_MAX,
        "the number or the size of the retained requests is wrong or too large",
    )
    _require(
        sampling.wanted or not (retained or running), "samples are taken although none are wanted"
    )
    _require(not (scheduler._stopping and retained), "a stopping box retains requests")
    _require(
        set(sampling._paid_ns) == set(executors), "the sampling time of other executors is counted"
    )


def _check_resources(scheduler: Scheduler) -> None:
    slowdowns = scheduler._times.latencies.slowdowns
    _require(
        set(slowdowns) == set(scheduler._executors.in_service),
        "the executors and those with expected times differ",
    )
    for executor, slowdown in slowdowns.items():
        if not slowdown == scheduler._times.calibration.slowdown(executor) >= 1:
            raise InvariantViolation(f"expected times of {executor} do not contain its slowdown")
    _check_derived(scheduler)
    for executor, memory in scheduler.memories.items():
        if memory.used_bytes > memory.limit_bytes:
            raise InvariantViolation(f"{executor} holds more than its limit")
        if memory.loading in memory.resident:
            raise InvariantViolation(f"{executor} loads weights that it has")
        if not scheduler._times.latencies.profiles(executor).keys() <= set(memory.variants):
            raise InvariantViolation(f"{executor} has a variant without its weights")
    _check_advice(scheduler)


def _check_advice(scheduler: Scheduler) -> None:
    offered = {variant.name for variant in scheduler._ladders.offered}
    for camera, connected in scheduler._adaptation.cameras.items():
        if connected.camera.id != camera:
            raise InvariantViolation(f"{camera} is stored under another id")
        advice, assignment = connected.advice, connected.assignment
        if (advice is None) != (assignment is None):
            raise InvariantViolation(f"{camera} has advice without an assignment, or the reverse")
        allowed = {each.name for each in scheduler._ladders.allowed(connected.camera)}
        if allowed and (assignment is None or assignment.variant not in allowed):
            raise InvariantViolation(f"{camera} has no variant that can run, although there is one")
        if advice is not None and assignment is not None and assignment.variant in offered:
            if advice.variant != assignment.variant:
                raise InvariantViolation(
                    f"{camera} has advice with another variant than its assignment"
                )
            if advice.rate_hz != assignment.rate_hz:
                raise InvariantViolation(
                    f"{camera} has advice with another rate than its assignment"
                )


def _check_derived(scheduler: Scheduler) -> None:
    """Derive again what is kept until the executors' memories change."""
    ladders, affinity = scheduler._ladders, scheduler._affinity
    loaded = ladders._loaded()
    for family in {variant.family for variant in ladders.offered}:
        if ladders.of(family) != loaded.get(family, ()):
            raise InvariantViolation(f"the ladder of {family} is not what is loaded")
    for executor, excluded in affinity._of_other_groups().items():
        if affinity.non_affine(executor) != excluded:
            raise InvariantViolation(f"{executor} excludes other groups' variants")
    latencies = scheduler._times.latencies
    known = {executor: latencies.known(executor) for executor in scheduler._executors.in_service}
    _require(latencies.all_known == known, "the known profiles are not the executors'")


def _check_supervision(scheduler: Scheduler) -> None:
    supervised, sampling = scheduler.supervised, scheduler._sampling
    up = {executor for executor, of in supervised.items() if of.state is ExecutorState.UP}
    _require(
        up == set(scheduler._executors.in_service),
        "the executors that are up are not those of the scheduler",
    )
    runs = {batch.infer.executor: batch.infer.batch for batch in scheduler._ledger.running.values()}
    if sampling.running is not None:
        runs[sampling.running.sample.executor] = sampling.running.sample.batch
    limited = {
        executor: of.limit.batch
        for executor, of in supervised.items()
        if of.limit is not None and of.state is ExecutorState.UP
    }
    _require(limited == runs, "a running batch has no time limit, or an idle executor has one")
    for executor, of in supervised.items():
        if (of.state is ExecutorState.WAITING) != (of.retry_ns is not None):
            raise InvariantViolation(f"{executor} waits without a time to open it, or the reverse")
        if of.state is ExecutorState.OPENING and of.limit is None:
            raise InvariantViolation(f"opening {executor} has no time limit")
        if of.state is not ExecutorState.UP and of.would_hang != (of.state is ExecutorState.WEDGED):
            raise InvariantViolation(f"{executor} is {of.state}, which its threads contradict")
