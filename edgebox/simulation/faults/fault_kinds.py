"""Which faults there are, and which of them a seed has: each seed has some kinds, not all.

Many faults at once hide each other, so every seed draws its own set of kinds (swarm testing: Groce
et al., ISSTA 2012).
"""

import random
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

MS = 1_000_000
SECOND = 1_000_000_000
POLICIES = ("adaptive+variants", "adaptive", "edf+variants", "edf")
"""What boxes are configured to use; other policies are for comparisons."""


class FaultKind(StrEnum):
    """What may break for a while."""

    HANG = "hang"
    """Batches of an executor come back after its time limit, or when the fault is over."""
    RAISE = "raise"
    """A batch raises once."""
    FAILING = "failing"
    """Every batch of an executor raises."""
    SLOW = "slow"
    """An executor takes many times as long."""
    VARIANT = "variant"
    """A variant raises or hangs on an executor while others run well."""
    OPENING = "opening"
    """A lost executor cannot be opened, its opening hangs, or it comes back without variants."""
    STOP = "stop"
    """An executor is stopped on purpose and started again."""
    MEMORY = "memory"
    """Memory does not hold every variant; loads fail or hang."""
    DECODING = "decoding"
    """Decoding is slow, never ends, or finds no picture."""
    LINK = "link"
    """A link is cut, delivers all at once, or is measured wrongly."""
    CLOCK = "clock"
    """A camera's clock jumps, or it answers no pings."""
    GREED = "greed"
    """A camera ignores its advice: any size, ten times the rate."""
    CHURN = "churn"
    """Cameras leave, connect twice and change their settings."""
    PLANNER = "planner"
    """The planner raises, takes long, or plans nonsense."""
    STALL = "stall"
    """The event loop stands still, and timers are late."""
    STAGE = "stage"
    """Stages of a pipeline find very much, or their crops are never cut."""
    GONE = "gone"
    """What runs an executor's batches, a process or a node, ends beneath one of them."""


@dataclass(frozen=True, slots=True)
class Box:
    """What a seed has drawn: a box and what may break there."""

    policy: str
    kinds: frozenset[FaultKind]
    executors: int
    cameras: int
    pause_ns: int
    """The mean time between two faults."""


def draw_box(seed: int, only: Collection[FaultKind] | None) -> Box:
    """Return the box of a seed; `only`: no other kinds break, whatever was drawn."""
    rng = random.Random(f"{seed}/box")
    share = rng.choice((0.15, 0.3, 0.6, 1.0))
    # Of its own, so that seeds keep the boxes that they had without this kind.
    gone = random.Random(f"{seed}/{FaultKind.GONE}/box")
    drawn = {kind: gone if kind is FaultKind.GONE else rng for kind in FaultKind}
    kinds = frozenset(kind for kind, of in drawn.items() if of.random() < share)
    return Box(
        policy=rng.choice(POLICIES),
        kinds=kinds if only is None else frozenset(only),
        executors=rng.choice((1, 2, 2)),
        cameras=rng.randint(1, 5),
        pause_ns=rng.choice((300 * MS, 2 * SECOND, 10 * SECOND)),
    )


class Faults:
    """The faults of one run that are not over yet. Every kind has randomness of its own, so that
    a run without one kind has the same faults of the others."""

    def __init__(self, seed: int, box: Box) -> None:
        """Start without a fault."""
        self._kinds = sorted(box.kinds)
        self._until_ns: dict[tuple[FaultKind, str], int] = {}
        self._rngs = {kind: random.Random(f"{seed}/{kind}") for kind in FaultKind}
        self._pause_ns = box.pause_ns
        self.healed = False
        """Whether nothing breaks any more."""

    def rng(self, kind: FaultKind) -> random.Random:
        """The randomness of a kind."""
        return self._rngs[kind]

    def has(self, kind: FaultKind) -> bool:
        """Say whether this kind occurs, now or later."""
        return kind in self._kinds and not self.healed

    def active(self, kind: FaultKind, target: str, now_ns: int) -> bool:
        """Say whether something is broken now."""
        return not self.healed and self._until_ns.get((kind, target), -1) > now_ns

    def until_ns(self, kind: FaultKind, target: str) -> int:
        """When a fault that is active is over."""
        return self._until_ns[kind, target]

    def begin(self, kind: FaultKind, targets: Collection[str], now_ns: int) -> str:
        """Break something for a while; return what."""
        rng = self._rngs[kind]
        target = rng.choice(list(targets))
        lasts_ns = round(rng.expovariate(1 / rng.choice((200 * MS, 3 * SECOND, 40 * SECOND))))
        self._until_ns[kind, target] = now_ns + lasts_ns
        return target

    def next_ns(self, kind: FaultKind, now_ns: int) -> int:
        """Return when something of a kind breaks next."""
        pause_ns = self._pause_ns * max(1, len(self._kinds))
        return now_ns + 1 + round(self._rngs[kind].expovariate(1 / pause_ns))
