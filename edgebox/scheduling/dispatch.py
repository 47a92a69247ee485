"""Decides which idle executor is given which batch. Pure.

The fastest executor comes first. All wait a moment for crops that are being cut (`crop_wait`). The
policy is asked for a batch of the executor's own group; where it has none, for one of another group
that it may steal (`affinity`). A trial runs where there is nothing else to run. An idle box may
sample instead. No more batches run at once on a device than its measured interference makes
worthwhile (`concurrency`). A batch on a CPU gets as many threads as its deadline needs
(`thread_choice`). Before, waiting requests that would miss may be moved to a smaller variant, and a
frame that finds an executor idle may run on a larger one (`variant_choice`).
"""

from collections.abc import Collection, Sequence

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId, Request, RequestId
from edgebox.scheduling.actions import Infer, RunAgain, Sample
from edgebox.scheduling.affinity import Excluded, ExecutorAffinity
from edgebox.scheduling.cores.thread_choice import ThreadChoice
from edgebox.scheduling.crop_wait import CropWait
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.fan_out import with_reserve
from edgebox.scheduling.ladders import Ladders
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.policy import Batch, BatchingPolicy
from edgebox.scheduling.request_stages import Stage
from edgebox.scheduling.sampling import Sampling
from edgebox.scheduling.trials import Trials
from edgebox.scheduling.variant_choice import VariantChoice

RUNS_AGAIN_MAX = 4
"""How often a request runs again because what ran its batch has ended, or had too much to do. A
picture may be why that ends, and must not end all executors one after the other. Connections to a
server that was killed may each be tried before another executor is."""


class Dispatch:
    """What executors are given, and the numbers of their batches."""

    def __init__(
        self,
        policy: BatchingPolicy,
        ledger: Ledger,
        times: ExecutionTimes,
        affinity: ExecutorAffinity,
        *,
        trials: Trials,
        sampling: Sampling,
        ladders: Ladders,
    ) -> None:
        self._policy = policy
        self._ledger = ledger
        self._times = times
        self._affinity = affinity
        self._trials = trials
        self._sampling = sampling
        self._next_batch = 1
        self._crop_wait = CropWait()
        self._threads = ThreadChoice(ledger, times)
        self._variants = VariantChoice(ledger, times, ladders, affinity)

    def idle(self) -> list[ExecutorId]:
        """Return the executors that run nothing, the fastest first.

        Where fewer batches may run on a device than it has executors, these take turns: each may
        hold variants that no other has, and the fastest must not always be the one that runs.
        """
        idle = [
            executor
            for executor in self._times.latencies.fastest_first()
            if executor not in self._ledger.running and executor != self._sampling.executor
        ]
        if not idle:
            return idle
        limited = {executor for executor in idle if self._is_limited(executor)}
        if limited:
            rank = {executor: at for at, executor in enumerate(idle)}
            started_ns = self._times.latencies.busy.started_ns
            turns = iter(sorted(limited, key=lambda each: (started_ns(each), rank[each])))
            idle = [next(turns) if executor in limited else executor for executor in idle]
        return idle

    def _is_limited(self, executor: ExecutorId) -> bool:
        """Return whether fewer batches may run on the device than it has executors."""
        device = self._times.latencies.concurrency_of(executor)
        return device.limit < len(device.executors)

    def _has_room(self, executor: ExecutorId) -> bool:
        """Return whether one more batch may run on an executor's device now.

        Samples do not count: they run only while no request is at the box, and a request must not
        wait for them.
        """
        device = self._times.latencies.concurrency_of(executor)
        running = self._ledger.running
        return sum(other in running for other in device.executors) < device.limit

    def admitted(
        self, request: Request, variants: Sequence[VariantName], larger: int, now_ns: int
    ) -> None:
        """Note a request that the policy is to put into a batch.

        Args:
            request: with the deadline of its stage.
            variants: the variant that it is prepared for, and smaller ones that it may run on.
            larger: how many of them are larger than the one that admission chose.
            now_ns: the instant.
        """
        self._threads.admitted(request, variants[0], now_ns)
        self._policy.admitted(request, variants[0], now_ns)
        if self._times.latencies.parameters.variant_per_batch and len(variants) > 1:
            live = self._ledger.live[request.id]
            live.variants, live.larger = tuple(variants), larger

    def larger_variants(
        self,
        request: Request,
        variants: Sequence[VariantName],
        tightest_slo_ns: int,
        now_ns: int,
    ) -> Sequence[VariantName]:
        """Return the larger variant that a new request is to run on and those below it; or none.

        Only where an executor would idle: fewer requests wait than executors run nothing.

        Args:
            request: has arrived.
            variants: those that its picture has the pixels for, by falling size.
            tightest_slo_ns: the shortest deadline of a camera.
            now_ns: the instant.
        """
        if not self._times.latencies.parameters.variant_per_batch:
            return ()
        idle = [executor for executor in self.idle() if self._has_room(executor)]
        if self._ledger.waiting >= len(idle):
            return ()
        ready_ns = now_ns + self._times.calibration.prepare_ns
        return self._variants.in_time(request, variants, idle, tightest_slo_ns, ready_ns)

    def choose_variants(self, now_ns: int, *, woken: bool) -> None:
        """Move waiting requests that would miss to smaller variants, and back once there is time.

        Only where the answer matters now: an executor is idle, or the policy is due, as when a
        request would expire. If nothing has happened (`woken`) only the latter: a wake-up that
        comes early must change nothing, whatever executors wait for.
        """
        if not self._times.latencies.parameters.variant_per_batch or not self._ledger.waiting:
            return
        due_ns, idle = self._policy.next_wakeup_ns(), self.idle()
        if (woken or not idle) and (due_ns is None or due_ns > now_ns):
            return
        for live, variant in self._variants.changes(len(idle), now_ns):
            self._ledger.change_variant(live, variant)
            self._policy.removed(live.request.id)
            self._wait(live, now_ns)

    def run_again(
        self, executor: ExecutorId, now_ns: int, refused: Collection[RequestId] = ()
    ) -> list[RunAgain]:
        """Let members of a batch wait again that can still be answered in time.

        What ran the batch has ended, or its server refused them. A trial is not repeated, nor a
        request that may itself be what ends them.

        Args:
            executor: has the batch.
            now_ns: the instant.
            refused: the members that a server refused; empty: what ran the batch has ended.
        """
        out: list[RunAgain] = []
        infer = self._ledger.running[executor].infer
        if infer.batch == self._trials.running:
            return out
        for request in refused or infer.requests:
            live = self._ledger.live[request]
            if live.stage is not Stage.RUNNING or live.runs_again >= RUNS_AGAIN_MAX:
                continue
            if not self._has_place(live):
                continue
            if (variant := self._in_time(live, now_ns)) is not None:
                self._ledger.wait_again(executor, request, variant)
                self._wait(live, now_ns)
                out.append(RunAgain(request, variant, bool(refused)))
        return out

    def _has_place(self, live: LiveRequest) -> bool:
        """Return whether a request may wait beside those that came after it."""
        if live.request.frame is not None:
            return True
        parameters = self._times.latencies.parameters
        of_camera = self._ledger.frames_by_camera.get(live.request.camera, ())
        return self._ledger.frames_waiting < parameters.box_pending_max and (
            live.request.variant is not None or len(of_camera) < parameters.camera_pending_max
        )

    def _in_time(self, live: LiveRequest, now_ns: int) -> VariantName | None:
        """Return the largest variant, from a request's own on, that can still answer it."""
        names = live.variants or (live.variant,)
        for variant in names[names.index(live.variant) :]:
            known = self._times.expectations.single_request(variant, live.request.app)
            if known is not None and now_ns + known.low_ns <= live.request.last_deadline_ns:
                return variant
        return None

    def _wait(self, live: LiveRequest, now_ns: int) -> None:
        """Have the policy put a prepared request into a batch."""
        request = with_reserve(live.request, live.request.deadline_ns - live.due_ns)
        self._policy.admitted(request, live.variant, now_ns)
        self._policy.prepared(request.id, now_ns)

    def completed(self, infer: Infer, isolated_ns: int, now_ns: int) -> None:
        """Note a batch; `isolated_ns`: its time with all threads, without interference."""
        self._threads.completed(infer, isolated_ns, now_ns)
        self._policy.batch_completed(infer, isolated_ns, now_ns)

    def spawned(self, took_ns: int, now_ns: int) -> None:
        """Note that a batch which took this long has spawned crops."""
        self._crop_wait.spawned(took_ns, now_ns)

    def crops_prepared(self, took_ns: int) -> None:
        """Note how long it took to cut the crops that a batch has found."""
        self._crop_wait.prepared(took_ns)

    def crops_awaited_ns(self, now_ns: int) -> int | None:
        """Return until when idle executors wait for crops that are being cut; None: for none."""
        return self._crop_wait.until_ns(self._ledger.crops_preparing, now_ns)

    def can_start(self) -> bool:
        """Return whether a prepared request waits while an executor runs nothing."""
        return bool(self._ledger.ready) and bool(self.idle())

    def batches(self, now_ns: int) -> list[Infer]:
        """Start the batches that may run now."""
        out: list[Infer] = []
        if not self._ledger.ready or self.crops_awaited_ns(now_ns) is not None:
            return out
        for executor in self.idle():
            out += self._ask(executor, self._affinity.non_affine(executor), now_ns)
        if self._affinity.groups:
            for executor in self.idle():
                unsafe = self._affinity.unsafe(executor, self._ledger.ready)
                if unsafe is not None:
                    out += self._ask(executor, unsafe, now_ns)
        return out + self._trial(now_ns)

    def sample(self, now_ns: int) -> list[Sample]:
        """Start the sample that is due on a box that has nothing to do."""
        due_ns = self._sampling.due_ns()
        if self._ledger.live or self._ledger.running or due_ns is None or due_ns > now_ns:
            return []
        sample = self._sampling.start(self._new_batch(), now_ns)
        self._times.started(sample.executor, now_ns)
        return [sample]

    def _trial(self, now_ns: int) -> list[Infer]:
        """Run the waiting trial on an executor that has nothing else to run."""
        live = self._ledger.live[request.id] if (request := self._trials.request) else None
        if live is None or live.stage is not Stage.READY:
            return []
        for executor in self.idle():
            row = self._times.latencies.row(executor, live.variant)
            allowed = live.variant not in self._affinity.non_affine(executor)
            if row is not None and allowed and self._has_room(executor):
                self._trials.started(BatchId(self._next_batch), now_ns)
                batch = Batch(live.variant, (live.request.id,), row.sizes[0])
                return [self._start(executor, batch, now_ns)]
        return []

    def _ask(self, executor: ExecutorId, excluded: Excluded, now_ns: int) -> list[Infer]:
        if not self._has_room(executor):
            return []
        batch = self._policy.next_batch(executor, now_ns, excluded)
        if batch is None:
            return []
        return [
            self._start(executor, batch, now_ns, self._threads.threads(executor, batch, now_ns))
        ]

    def _start(self, executor: ExecutorId, batch: Batch, now_ns: int, threads: int = 0) -> Infer:
        infer = Infer(
            executor,
            self._new_batch(),
            batch.variant,
            batch.requests,
            batch.batch_size,
            threads,
        )
        self._ledger.start(infer, now_ns)
        self._times.started(executor, now_ns)
        return infer

    def _new_batch(self) -> BatchId:
        self._next_batch += 1
        return BatchId(self._next_batch - 1)
