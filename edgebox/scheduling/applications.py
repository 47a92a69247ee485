"""Owns the applications of one variant: which of them have a slot, and what is known of each.

Pure. Clients choose the names of applications, so their number is unbounded. Each variant has
`APPS_MAX` slots. When all slots are taken, a new application replaces the one that was idle
longest, if that was idle for `APP_IDLE_NS`. Otherwise it shares one extra slot (`OTHER_APPS`) with
all other applications without a slot. A client that sends thousands of names therefore costs no
more memory, and no more time per decision, than one that sends `APPS_MAX`.
"""

from collections import deque
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.censored import MultiRequestBatch
from edgebox.scheduling.contradiction import chance_as_fast, is_rare, is_slow, too_fast
from edgebox.scheduling.distributions import SAMPLES_MIN, EmpiricalDistribution
from edgebox.scheduling.work import WorkTable

APPS_MAX = 64
"""Applications of a variant with a slot of their own. Hardly any box has more, and tables of this
size are still fast."""

APP_IDLE_NS = 600_000_000_000
"""Idle time after which an application may lose its slot. No request waits this long, so no waiting
request refers to a slot that was reassigned."""

OTHER_APPS = "(others)"
"""The shared entry of all applications without a slot. No application can have this name."""

MULTI_BATCH_WINDOW = 256
"""Number of batches with several requests that are kept."""

CONTRADICTION_WINDOW = 32
"""Number of batches of an application that are tested together."""

CONTRADICTION_SPACING_NS = 500_000_000
"""Minimum interval between two batches of an application that are tested, so that a short busy
period does not count many times."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A batch of several requests, compared with samples of its longest member's application."""

    ended_ns: int
    chance_as_fast: float
    """The probability of a batch that is at most this long."""
    slow: bool = False
    """Whether it was too slow."""
    chance_slow: float = 0.0
    """The probability that it would be."""


@dataclass(slots=True)
class Applications:
    """The applications of one variant."""

    prior: list[float]
    profiled: bool
    """Whether the prior comes from a profile."""
    index: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    distributions: list[EmpiricalDistribution] = field(default_factory=list)
    used_ns: list[int] = field(default_factory=list)
    """When a request of each application was last seen."""
    replaced: int = 0
    """How often a slot was reassigned."""
    table: WorkTable | None = None
    samples_since_table: int = 0
    multi_batches: deque[MultiRequestBatch] = field(
        default_factory=lambda: deque(maxlen=MULTI_BATCH_WINDOW)
    )
    """The last batches with several requests."""
    unprocessed: int = 0
    """Number of these batches since they were last used for inference."""
    tested: dict[int, dict[tuple[bool, ExecutorId], deque[Tested]]] = field(default_factory=dict)
    """For each application, its last batches on each executor; those of this application only are
    kept separately, because only of them the longest member is surely its own."""

    def find(self, name: str) -> int | None:
        """Return the index of an application; None if it is new and may get a slot."""
        at = self.index.get(name)
        return self.index.get(OTHER_APPS) if at is None else at

    def set_prior(self, prior: list[float]) -> None:
        """Replace the prior of everything that was not measured."""
        self.prior, self.profiled, self.table = prior, True, None
        for distribution in self.distributions:
            distribution.set_prior(prior)

    def find_slot(self, now_ns: int) -> int | None:
        """Return a slot for a new application; None: no slot is free.

        A slot that is reassigned loses what was learned of its previous application.
        """
        if len(self.names) < APPS_MAX:
            return len(self.names)
        idlest = min(range(APPS_MAX), key=self.used_ns.__getitem__)
        if now_ns - self.used_ns[idlest] < APP_IDLE_NS:
            return None
        del self.index[self.names[idlest]]
        self.multi_batches = deque(
            (b for b in self.multi_batches if idlest not in b.apps), MULTI_BATCH_WINDOW
        )
        self.tested.pop(idlest, None)
        self.replaced += 1
        return idlest

    def assign_slot(self, at: int, name: str, distribution: EmpiricalDistribution) -> None:
        """Give a slot to an application."""
        self.index[name] = at
        self.names[at:] = [name, *self.names[at + 1 :]]
        self.distributions[at:] = [distribution, *self.distributions[at + 1 :]]
        self.used_ns[at:] = [0, *self.used_ns[at + 1 :]]
        self.table = None

    def forget(self, distributions: list[EmpiricalDistribution]) -> None:
        """Replace what is known of each application; all keep their slots."""
        self.distributions, self.table = distributions, None
        self.multi_batches.clear()
        self.tested.clear()
        self.samples_since_table = self.unprocessed = 0

    def compare(self, batch: MultiRequestBatch, started_ns: int) -> None:
        """Note whether a batch contradicts the samples of the application of its longest member.

        Args:
            batch: has ended.
            started_ns: when it started. Batches are picked by this instant, because those that are
                running at a given one, or end next, are longer than others.
        """
        owner = max(batch.apps, key=lambda app: self.distributions[app].greatest)
        values = self.distributions[owner].sampled_values
        if len(values) < SAMPLES_MIN:
            return
        owned = batch.apps.count(owner)
        alike = owned == len(batch.apps)
        rows = self.tested.setdefault(owner, {})
        row = rows.setdefault((alike, batch.executor), deque(maxlen=CONTRADICTION_WINDOW))
        if row and started_ns - row[-1].ended_ns < CONTRADICTION_SPACING_NS:
            return
        fast = chance_as_fast(values, owned, batch.work)
        slow = is_slow(values, owned, batch.work) if alike else (False, 0.0)
        row.append(Tested(batch.ended_ns, fast, *slow))

    def contradicted_since(self, app: int) -> int | None:
        """Return when the first batch ended that contradicts an application's samples, or None."""
        found = []
        for row in self.tested.get(app, {}).values():
            fast = too_fast([batch.chance_as_fast for batch in row])
            found += [batch.ended_ns for batch in row if batch.chance_as_fast <= fast]
            slow = [batch.ended_ns for batch in row if batch.slow]
            if is_rare(len(slow), sum(batch.chance_slow for batch in row)):
                found += slow
        return min(found, default=None)

    def forget_contradicted(self, app: int, since_ns: int) -> None:
        """Forget the samples and batches from before the batches that contradict them."""
        self.tested.pop(app, None)
        self.distributions[app].forget_before(since_ns)
        self.multi_batches = deque(
            (b for b in self.multi_batches if b.ended_ns >= since_ns), MULTI_BATCH_WINDOW
        )
