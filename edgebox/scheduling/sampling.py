"""Decides which finished requests run again, in batches of their own, to measure their
applications.

Pure. Under load requests run in mixed batches, which say little about a single one. So the inputs
of some requests are retained when they finish, a few of every application, and run later in batches
of their own, one at a time. The rules:

- A sample starts only while no request is live. Then nothing else runs beside it, as when profiles
  were measured, and no request has to wait for it at its start.
- A request that arrives during a sample waits for the rest of it. That happens to at most about
  `sample_share` of all requests, and each of them must still have most of its time. So only
  applications are sampled whose requests, at their high quantile, take at most `HARM_SHARE` of the
  tightest deadline of all cameras, and of the time its own requests have left on arrival. The rule
  applies to the application and not to a single request: leaving out the long requests would bias
  the measurement.
- Applications with the fewest samples come first, then those whose last sample is oldest.
- Executors spend at most `sample_share` of their time on samples. The expected time of a sample is
  saved up before it starts, and the difference to its actual time is charged afterwards. So from an
  executor's start to the end of any of its samples, all samples together exceed the share by at
  most the excess of the last one.
- At most ten samples a second, so that an idle box can sleep. Each request is sampled once, because
  the same input gives no new information. An idle box therefore soon stops sampling.

A request was in a batch that took T; in a batch of its own it should take at most about T * P50(1)
/ P50(batch) of the profile, since a batch is as slow as its longest member.

Source: Orloj (arXiv 2209.00159), section 3.2, whose profiler runs sampled requests on hardware of
its own. Here samples and requests share the executor, hence the rules.

Costs O(1) per call of the Scheduler, and O(applications) when an idle box has something new.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, Variant, VariantName
from edgebox.domain.requests import BatchId, Request, RequestId
from edgebox.scheduling.actions import Infer, Release, Retain, Sample
from edgebox.scheduling.distributions import SAMPLES_ENOUGH
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.ledger import LiveRequest
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

HARM_SHARE = 1 / 3
"""Share of the tightest deadline that a request arriving during a sample may lose. Where execution
times matter most, deadlines are only a few times as long, so a much smaller share would allow no
samples: with a tenth, a rush of `benchmarks.sampling` (`modal-2`, 5 %) has .818 on time as without
samples, in place of .835.

It is a promise to each request and gains nothing in the mean: without it that rush has the same
.835, .698 in place of .686 with deadlines of 1.5 times the P99, and .631 in place of .637 with 1.2.
"""

SPACING_NS = 100_000_000
"""Minimum time between the starts of two samples."""

RETAIN_NS = 250_000_000
"""Minimum time between two retained requests of one application."""

KEPT_PER_APPLICATION = 8
KEPT_MAX = 64
KEPT_BYTES_MAX = 64 << 20
"""Inputs are 8-bit RGB, a few hundred kB each."""

_Key = tuple[ExecutorId, VariantName, str]


@dataclass(frozen=True, slots=True)
class Retained:
    """A finished request that may be sampled on the executor that it ran on."""

    request: RequestId
    batch_size: int
    """The size to run it at: the smallest profiled one."""
    retained_ns: int
    expected_ns: int
    """Its expected time in a batch of its own."""
    left_ns: int
    """The time to its deadline when it arrived."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RunningSample:
    """The sample that an executor runs."""

    sample: Sample
    app: str
    started_ns: int
    expected_ns: int


def scattered(batch: BatchId, members: int) -> int:
    """Return an index into a batch that is independent of its order by deadline.

    Fibonacci hashing (Knuth): uniform over batches, also over every second or third of them.
    """
    return ((batch * 2_654_435_769 & 0xFFFF_FFFF) * members) >> 32


class Sampling:
    """The retained requests, the running sample, and the start of the next one."""

    def __init__(
        self,
        parameters: SchedulerParameters,
        latencies: Latencies,
        learning: Learning,
        *,
        wanted: bool,
    ) -> None:
        self._share = parameters.sample_share
        self.wanted = wanted and self._share > 0
        """Whether anything is sampled at all."""
        self._learning = learning
        self._latencies = latencies
        self.running: RunningSample | None = None
        self.retained: dict[_Key, deque[Retained]] = {}
        self._count = 0
        self._bytes = 0
        self._bytes_of: dict[VariantName, int] = {}
        self._paid_ns: dict[ExecutorId, int] = {}
        """For each executor, the instant up to which its sampling time has been used."""
        self._spaced_ns = 0
        self._slo_ns: int | None = None
        self._next: tuple[_Key, int] | None = None
        """The application to sample next, and when."""
        self._changed = False

    @property
    def executor(self) -> ExecutorId | None:
        """The executor that runs a sample."""
        return None if self.running is None else self.running.sample.executor

    @property
    def variants(self) -> set[VariantName]:
        """The variant of the running sample."""
        return set() if self.running is None else {self.running.sample.variant}

    # -- Retained requests

    def ran(
        self, batch: Infer, members: Sequence[LiveRequest], took_ns: int, now_ns: int
    ) -> list[Retain | Release]:
        """Note a completed batch; one of its members may be retained."""
        one = members[scattered(batch.batch, len(members))]
        return [] if one.reason else self.served(batch, one.request, took_ns, now_ns)

    def served(
        self, batch: Infer, member: Request, took_ns: int, now_ns: int
    ) -> list[Retain | Release]:
        """Note a completed batch and one of its members, which may be retained."""
        key = batch.executor, batch.variant, member.app
        kept = self.retained.get(key)
        # By when it started: the batch that ends next is more often a long one.
        if kept and now_ns - took_ns - kept[-1].retained_ns < RETAIN_NS:
            return []
        row = self._latencies.row(batch.executor, batch.variant)
        # A request that ran in a batch of its own was already a sample.
        if batch.batch_size == 1 or row is None or batch.batch_size not in row.sizes:
            return []
        median_ns = max(1, row.median_ns[row.sizes.index(batch.batch_size)])
        new = Retained(
            member.id,
            batch_size=row.sizes[0],
            retained_ns=now_ns,
            expected_ns=took_ns * row.median_ns[0] // median_ns,
            left_ns=member.deadline_ns - member.arrival_ns,
            size_bytes=self._bytes_of.get(batch.variant, 0),
        )
        return [Retain(member.id), *self._keep(key, new)]

    def _keep(self, key: _Key, new: Retained) -> list[Release]:
        kept = self.retained.setdefault(key, deque())
        kept.append(new)
        self._count += 1
        self._bytes += new.size_bytes
        self._changed = True
        out = []
        if len(kept) > KEPT_PER_APPLICATION:
            out.append(Release(self._take(key).request))
        while self._count > KEPT_MAX or self._bytes > KEPT_BYTES_MAX:
            fullest = max(self.retained, key=lambda each: len(self.retained[each]))
            out.append(Release(self._take(fullest).request))
        return out

    def _take(self, key: _Key) -> Retained:
        """Remove and return the oldest retained request of an application."""
        kept = self.retained[key]
        oldest = kept.popleft()
        if not kept:
            del self.retained[key]
        self._count -= 1
        self._bytes -= oldest.size_bytes
        self._changed = True
        return oldest

    def release_all(self, executor: ExecutorId | None = None) -> list[Release]:
        """Release what is retained for one executor, or for all."""
        keys = [key for key in self.retained if executor in (None, key[0])]
        return [Release(self._take(key).request) for key in keys for _ in tuple(self.retained[key])]

    def held(self, executor: ExecutorId, variants: Collection[VariantName]) -> list[Release]:
        """Release what is retained for variants that an executor no longer holds."""
        keys = [key for key in self.retained if key[0] == executor and key[1] not in variants]
        self._changed = True
        return [Release(self._take(key).request) for key in keys for _ in tuple(self.retained[key])]

    # -- Samples

    def executor_started(self, executor: ExecutorId, now_ns: int) -> None:
        """Start to count an executor's time."""
        self._paid_ns[executor] = now_ns

    def executor_stopped(self, executor: ExecutorId) -> list[Release]:
        """Remove an executor and its sample."""
        del self._paid_ns[executor]
        if self.executor == executor:
            self.running = None
        return self.release_all(executor)

    def offered(self, variants: Iterable[Variant]) -> None:
        """Note the input sizes of the variants."""
        self._bytes_of = {variant.name: 3 * variant.pixels for variant in variants}

    def cameras_changed(self, slo_ns: int | None) -> None:
        """Note the tightest deadline of all cameras; None: there are none."""
        self._slo_ns = slo_ns
        self._changed = True

    def due_ns(self) -> int | None:
        """Return when a sample may start on an idle box; None: not at all."""
        if self.running is not None:
            return None
        if self._changed:
            self._next = self._choose()
            self._changed = False
        return None if self._next is None else self._next[1]

    def start(self, batch: BatchId, now_ns: int) -> Sample:
        """Start the sample that is due."""
        assert self._next is not None
        executor, variant, app = self._next[0]
        chosen = self._take(self._next[0])
        sample = Sample(executor, batch, variant, chosen.request, chosen.batch_size)
        self.running = RunningSample(sample, app, now_ns, chosen.expected_ns)
        self._spaced_ns = now_ns + SPACING_NS
        return sample

    def ended(
        self, executor: ExecutorId, batch: BatchId, took_ns: int | None, now_ns: int
    ) -> RunningSample | None:
        """Charge the time of a sample; None: this sample does not run.

        If it gave no measurement (`took_ns` is None), all the time since its start is charged.
        """
        running = self.running
        if running is None or (running.sample.executor, running.sample.batch) != (executor, batch):
            return None
        if took_ns is None:
            took_ns = now_ns - running.started_ns
        # Its expected time was saved up before it started.
        more_ns = round((took_ns - running.expected_ns) / self._share)
        self._paid_ns[executor] = running.started_ns + more_ns
        self.running = None
        self._changed = True
        return running

    def _choose(self) -> tuple[_Key, int] | None:
        """Return the application that most needs samples on the next free executor, and when."""
        neediest: dict[ExecutorId, tuple[tuple[int, int], _Key]] = {}
        for key, kept in self.retained.items():
            known = self._learning.known(*key)
            left_ns = min(each.left_ns for each in kept)
            if self._slo_ns is not None:
                left_ns = min(left_ns, self._slo_ns)
            if known is None or known.high_ns > HARM_SHARE * left_ns:
                continue
            need = min(known.samples, SAMPLES_ENOUGH), known.newest_ns
            if key[0] not in neediest or need < neediest[key[0]][0]:
                neediest[key[0]] = need, key
        choices = [(key, self._allowed_ns(key)) for _, key in neediest.values()]
        return min(choices, key=lambda choice: choice[1], default=None)

    def _allowed_ns(self, key: _Key) -> int:
        saved_up_ns = self._paid_ns[key[0]] + round(self.retained[key][0].expected_ns / self._share)
        return max(saved_up_ns, self._spaced_ns)
