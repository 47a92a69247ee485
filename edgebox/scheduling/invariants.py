"""Decides whether the core's redundant state agrees with itself: a tool of tests and replays."""

from collections import Counter

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import VariantName
from edgebox.scheduling.ledger import Stage
from edgebox.scheduling.sampling import KEPT_BYTES_MAX, KEPT_MAX
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.supervision import ExecutorState


def check_invariants(scheduler: Scheduler) -> None:
    """Re-derive all redundant state and compare; call it between two calls of `handle`.

    Raises:
        InvariantViolation: the message says what contradicts what.
    """
    _check_waiting(scheduler)
    _check_running(scheduler)
    _check_sampling(scheduler)
    _check_resources(scheduler)
    _check_supervision(scheduler)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvariantViolation(message)


def _check_waiting(scheduler: Scheduler) -> None:
    ledger = scheduler._ledger
    waiting = {r: live for r, live in ledger.live.items() if live.stage is not Stage.RUNNING}
    _require(ledger.waiting == len(waiting), f"{ledger.waiting} wait, not {len(waiting)}")
    listed = [(c, r) for c, requests in ledger.waiting_by_camera.items() for r in requests]
    expected = {(live.request.camera, r) for r, live in waiting.items()}
    _require(len(listed) == len(expected), "a camera's list holds a request twice or not at all")
    _require(set(listed) == expected, "the cameras' lists are not the waiting requests")
    _require(all(ledger.waiting_by_camera.values()), "an empty list of a camera was kept")
    ready: dict[VariantName, Counter[str]] = {}
    for live in waiting.values():
        if live.stage is Stage.READY:
            ready.setdefault(live.variant, Counter())[live.request.app] += 1
    _require(ledger.ready == ready, "the ready are counted wrong")
    in_policy = Counter(scheduler._policy.pending())
    tried = scheduler._trials.request
    _require(tried is None or tried.id in waiting, "what is tried does not wait")
    ordered = [each for each in waiting if tried is None or each != tried.id]
    _require(in_policy == Counter(ordered), "the policy holds other requests")
    _require(
        ledger.waiting <= scheduler._parameters.box_pending_max, "more wait than the box allows"
    )
    _require(not (scheduler._stopping and waiting), "something waits while the box is stopping")


def _check_running(scheduler: Scheduler) -> None:
    ledger = scheduler._ledger
    members = [m for batch in ledger.running.values() for m in batch.infer.requests]
    running = {r for r, live in ledger.live.items() if live.stage is Stage.RUNNING}
    _require(len(members) == len(set(members)), "a request runs twice")
    _require(set(members) == running, "the batches are not the running requests")
    busy = scheduler._times.latencies.busy.executors
    sampling = {scheduler._sampling.executor} - {None}
    _require(busy == {*ledger.running, *sampling}, "other executors are busy than run something")
    for executor, batch in ledger.running.items():
        _require(executor in scheduler._executors, f"{executor} runs a batch but has stopped")
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
                runs_on == batch.infer.variant, f"request {member} runs on a non_affine variant"
            )


def _check_sampling(scheduler: Scheduler) -> None:
    sampling, executors = scheduler._sampling, scheduler._executors
    running = sampling.running
    if running is not None:
        executor = running.sample.executor
        _require(executor in executors, f"{executor} runs a sample but has stopped")
        _require(executor not in scheduler._ledger.running, f"{executor} runs two things")
    retained = [each for kept in sampling.retained.values() for each in kept]
    ids = {each.request for each in retained}
    _require(len(ids) == len(retained), "a request is retained twice")
    _require(ids.isdisjoint(scheduler._ledger.live), "a living request is retained")
    _require(all(sampling.retained.values()), "an application that retains nothing was kept")
    _require(all(key[0] in executors for key in sampling.retained), "retained for nobody")
    size_bytes = sum(each.size_bytes for each in retained)
    _require(
        (len(retained), size_bytes) == (sampling._count, sampling._bytes)
        and len(retained) <= KEPT_MAX
        and size_bytes <= KEPT_BYTES_MAX,
        f"{len(retained)} requests of {size_bytes} bytes are retained",
    )
    _require(sampling.wanted or not (retained or running), "nobody wants samples")
    _require(not (scheduler._stopping and retained), "requests are retained by a stopping box")
    _require(set(sampling._paid_ns) == set(executors), "the time of other executors is counted")


def _check_resources(scheduler: Scheduler) -> None:
    slowdowns = scheduler._times.latencies.slowdowns
    _require(set(slowdowns) == set(scheduler._executors), "executors and expected times disagree")
    for executor, slowdown in slowdowns.items():
        _require(
            slowdown == scheduler._times.calibration.slowdown(executor) >= 1,
            f"expected times of {executor} do not carry its slowdown",
        )
    for executor, memory in scheduler.memories.items():
        _require(memory.used_bytes <= memory.limit_bytes, f"{executor} holds more than its limit")
        _require(memory.loading not in memory.resident, f"{executor} loads what it has")
        loaded = set(scheduler._times.latencies.profiles(executor))
        _require(loaded <= set(memory.variants), f"{executor} is to run what it does not hold")
    offered = {variant.name for variant in scheduler._ladders.offered}
    for camera, connected in scheduler._adaptation.cameras.items():
        _require(connected.camera.id == camera, f"{camera} is filed under a wrong name")
        told, given = connected.advice, connected.assignment
        _require((told is None) == (given is None), f"{camera} has half an assignment")
        if told is not None and given is not None and given.variant in offered:
            _require(told.variant == given.variant, f"{camera} was not told its variant")
            _require(told.rate_hz == given.rate_hz, f"{camera} was not told its rate")


def _check_supervision(scheduler: Scheduler) -> None:
    supervised, sampling = scheduler.supervised, scheduler._sampling
    up = {executor for executor, of in supervised.items() if of.state is ExecutorState.UP}
    _require(up == set(scheduler._executors), "other executors are up than may run something")
    runs = {batch.infer.executor: batch.infer.batch for batch in scheduler._ledger.running.values()}
    if sampling.running is not None:
        runs[sampling.running.sample.executor] = sampling.running.sample.batch
    limited = {
        executor: of.limit.batch
        for executor, of in supervised.items()
        if of.limit is not None and of.state is ExecutorState.UP
    }
    _require(limited == runs, "what runs has no limit in time, or what does not run has one")
    for executor, of in supervised.items():
        waits = of.state is ExecutorState.WAITING
        _require(waits == (of.retry_ns is not None), f"it is not clear when {executor} is opened")
        opens = of.state is ExecutorState.OPENING
        _require(not opens or of.limit is not None, f"{executor} may be opened for ever")
