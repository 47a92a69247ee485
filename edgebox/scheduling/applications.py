"""Owns the applications of one variant: which have a place of their own, and what is known of each.

Pure. Names of applications come from outside, without end: of each variant `APPS_MAX` have a place.
When all are taken, a new one gets the place of the one that has not been seen for longest, if that
is `APP_IDLE_NS` ago; else it shares one more place with all others like it. So a client that names
thousands costs no more memory, nor time per decision, than one that names `APPS_MAX`.
"""

from collections import deque
from dataclasses import dataclass, field

from edgebox.scheduling.censored import Mixed
from edgebox.scheduling.distributions import EmpiricalDistribution
from edgebox.scheduling.work import WorkTable

APPS_MAX = 64
"""Applications of a variant that are told apart: more than a box has cameras for, and tables of so
many are still quick."""

APP_IDLE_NS = 600_000_000_000
"""So long after its last request an application may lose its place. No request waits for so long:
none has the index of another application than its own."""

OTHERS = "(others)"
"""Stands for all applications without a place of their own; no application can have this name."""

MIXED_WINDOW = 256
"""So many batches of several requests are remembered."""


@dataclass(slots=True)
class Applications:
    """The applications of one variant."""

    prior: list[float]
    profiled: bool
    """Whether the prior is that of a profile."""
    index: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    distributions: list[EmpiricalDistribution] = field(default_factory=list)
    used_ns: list[int] = field(default_factory=list)
    """When each was last seen."""
    replaced: int = 0
    """How often one gave its place to another."""
    table: WorkTable | None = None
    news: int = 0
    mixed: deque[Mixed] = field(default_factory=lambda: deque(maxlen=MIXED_WINDOW))
    """The last batches of several requests."""
    unread: int = 0
    """How many of them have come since they were last made use of."""
    surprises: dict[tuple[int, bool], deque[tuple[int, int, float]]] = field(default_factory=dict)
    """Of an application's last batches, apart those of it alone: when they ended, whether they were
    surprisingly quick (-1) or slow (1), and how likely the latter was."""

    def find(self, name: str) -> int | None:
        """Return the index of an application; None where it is new and there is room for it."""
        at = self.index.get(name)
        return self.index.get(OTHERS) if at is None else at

    def believe(self, prior: list[float]) -> None:
        """Believe something else of what has not been measured."""
        self.prior, self.profiled, self.table = prior, True, None
        for distribution in self.distributions:
            distribution.believe(prior)

    def place(self, name: str, now_ns: int) -> int | None:
        """Return the place of a new application that may have one; None: nobody may.

        A place that was another's is empty of what was learned of that.
        """
        if len(self.names) < APPS_MAX:
            return len(self.names)
        idlest = min(range(APPS_MAX), key=self.used_ns.__getitem__)
        if now_ns - self.used_ns[idlest] < APP_IDLE_NS:
            return None
        del self.index[self.names[idlest]]
        self.mixed = deque((b for b in self.mixed if idlest not in b.apps), MIXED_WINDOW)
        for alike in (True, False):
            self.surprises.pop((idlest, alike), None)
        self.replaced += 1
        return idlest

    def enter(self, at: int, name: str, distribution: EmpiricalDistribution) -> None:
        """Give a place to an application."""
        self.index[name] = at
        self.names[at:] = [name, *self.names[at + 1 :]]
        self.distributions[at:] = [distribution, *self.distributions[at + 1 :]]
        self.used_ns[at:] = [0, *self.used_ns[at + 1 :]]
        self.table = None
