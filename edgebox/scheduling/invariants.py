"""Checks that the core's redundant state is consistent: a tool for tests and replays."""

from collections import Counter

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import VariantName
from edgebox.scheduling.request_stages import Stage
from edgebox.scheduling.sampling import KEPT_BYTES_MAX, KEPT_MAX
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.supervision import ExecutorState


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
    waiting = {r: live for r, live in ledger.live.items() if live.waits}
    _require(ledger.waiting == len(waiting), f"{ledger.waiting} requests wait, not {len(waiting)}")
    frames = {r: live for r, live in waiting.items() if live.request.frame is None}
    crops = {r: live for r, live in waiting.items() if live.request.frame is not None}
    _require(ledger.frames_waiting == len(frames), "the number of waiting frames is wrong")
    for lists, of in ((ledger.frames_by_camera, frames), (ledger.crops_by_camera, crops)):
        listed = [(c, r) for c, requests in lists.items() for r in requests]
        expected = {(live.request.camera, r) for r, live in of.items()}
        _require(len(listed) == len(expected), "a camera's list has a request twice or lacks one")
        _require(set(listed) == expected, "the cameras' lists are not the waiting requests")
        _require(all(lists.values()), "an empty list of a camera was kept")
    ready: dict[VariantName, Counter[str]] = {}
    for live in waiting.values():
        if live.stage is Stage.READY:
            ready.setdefault(live.variant, Counter())[live.request.app] += 1
    _require(ledger.ready == ready, "the number of ready requests is wrong")
    by_variant = Counter(live.variant for live in waiting.values() if not live.request.optional)
    _require(ledger.waiting_by_variant == by_variant, "the number of waiting requests is wrong")
    preparing = sum(live.stage is Stage.PREPARING for live in crops.values())
    _require(ledger.crops_preparing == preparing, "the number of crops that are cut is wrong")
    to_spawn = Counter(
        live.request.camera for live in ledger.live.values() if live.pipeline is not None
    )
    _require(ledger.to_spawn == to_spawn, "the number of frames that may spawn crops is wrong")
    in_policy = Counter(scheduler._policy.pending())
    trial = scheduler._trials.request
    _require(trial is None or trial.id in waiting, "the trial is not a waiting request")
    ordered = [each for each in waiting if trial is None or each != trial.id]
    _require(in_policy == Counter(ordered), "the policy knows other requests than wait")
    _require(
        ledger.frames_waiting <= scheduler._parameters.box_pending_max,
        "more frames wait than the box allows",
    )
    _require(not (scheduler._stopping and waiting), "requests wait while the box is stopping")


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
        _require(frame.id == number, f"frame {number} is stored under another number")
        _require(frame.request.id not in ledger.live, f"frame {number} waits and is joined")
        _require(bool(frame.pending), f"frame {number} is kept, but all its crops have ended")
    _require(not ledger.joins.complete(), "a frame is listed as complete, but waits for crops")
    deadlines_ns = [frame.request.last_deadline_ns for frame in ledger.joins.frames.values()]
    _require(
        ledger.joins.due_ns() == min(deadlines_ns, default=None),
        "the earliest deadline of the frames with crops is another one",
    )


def _check_running(scheduler: Scheduler) -> None:
    ledger = scheduler._ledger
    members = [m for batch in ledger.running.values() for m in batch.infer.requests]
    running = {r for r, live in ledger.live.items() if not live.waits}
    stages = {live.stage for live in ledger.live.values()}
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
        _require(
            executor in scheduler._executors.in_service, f"{executor} runs a batch but has stopped"
        )
        _require(batch.infer.executor == executor, f"{executor} runs another's batch")
        profile = scheduler._times.latencies.profiles(executor).get(batch.infer.variant)
        _require(profile is not None, f"{batch.infer.variant} is not loaded on {executor}")
        if profile is not None:
            size = batch.infer.batch_size
            _require(size in profile.quantiles_ns, f"batch size {size} was never profiled")
            _require(0 < len(batch.infer.requests) <= size, "a batch is empty or overfull")
        for member in batch.infer.requests:
            runs_on = ledger.live[member].variant
            _require(
                runs_on == batch.infer.variant, f"request {member} is in a batch of another variant"
            )


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
        f"{len(retained)} requests of {size_bytes} bytes are retained",
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
        _require(
            slowdown == scheduler._times.calibration.slowdown(executor) >= 1,
            f"expected times of {executor} do not contain its slowdown",
        )
    _check_derived(scheduler)
    for executor, memory in scheduler.memories.items():
        _require(memory.used_bytes <= memory.limit_bytes, f"{executor} holds more than its limit")
        _require(memory.loading not in memory.resident, f"{executor} loads weights that it has")
        loaded = set(scheduler._times.latencies.profiles(executor))
        _require(loaded <= set(memory.variants), f"{executor} has a variant without its weights")
    offered = {variant.name for variant in scheduler._ladders.offered}
    for camera, connected in scheduler._adaptation.cameras.items():
        _require(connected.camera.id == camera, f"{camera} is stored under another id")
        advice, assignment = connected.advice, connected.assignment
        _require(
            (advice is None) == (assignment is None),
            f"{camera} has advice without an assignment, or the reverse",
        )
        if advice is not None and assignment is not None and assignment.variant in offered:
            _require(
                advice.variant == assignment.variant,
                f"{camera} has advice with another variant than its assignment",
            )
            _require(
                advice.rate_hz == assignment.rate_hz,
                f"{camera} has advice with another rate than its assignment",
            )


def _check_derived(scheduler: Scheduler) -> None:
    """Derive again what is kept until the executors' memories change."""
    ladders, affinity = scheduler._ladders, scheduler._affinity
    for family in {variant.family for variant in ladders.offered}:
        loaded = ladders._loaded().get(family, ())
        _require(ladders.of(family) == loaded, f"the ladder of {family} is not what is loaded")
    for executor, excluded in affinity._of_other_groups().items():
        _require(
            affinity.non_affine(executor) == excluded, f"{executor} excludes other groups' variants"
        )
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
        waits = of.state is ExecutorState.WAITING
        _require(
            waits == (of.retry_ns is not None),
            f"{executor} waits without a time to open it, or the reverse",
        )
        opens = of.state is ExecutorState.OPENING
        _require(not opens or of.limit is not None, f"opening {executor} has no time limit")
