"""Decides whose picture is decoded next.

Decoding is shared by all who send pictures, and one picture can take a second. So senders share
the threads by time, not by pictures, and all but those who are known to be quick always leave one
thread to these. Whoever is not known yet may be slow: else those who come under ever new names
would have all threads. The process ends without waiting for the threads.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from edgebox.inference.executor import RUN_LIMIT_S
from edgebox.runtime.threads import DaemonPool, Patience, Work

DECODE_LIMIT_NS = round(RUN_LIMIT_S * 1e9)
"""A thread whose picture takes longer hangs: what a picture can take is bounded to seconds."""
THREADS_MIN = 2
"""With one there is none to leave to others."""
SLOW_NS = 50_000_000
"""Pictures that take longer are not quick. One of 1920 x 1080 px takes about 15 ms."""
_GUESS_NS = 5_000_000
"""What a picture of 1280 x 720 px takes: charged to a sender of which nothing is known."""
_SENDERS_KEPT = 1_024
"""Senders that are remembered while they send nothing."""


@dataclass(slots=True)
class _Sender:
    used_ns: float = 0.0
    """Decoding time it has had, as fair queueing counts it: not below what the others had."""
    lately_ns: float | None = None
    """What its pictures take: the last one, or half of what it was if that is more; None: it is
    not known."""
    waiting: deque[Work] = field(default_factory=deque)
    running: int = 0

    def at_risk(self, more: int = 0) -> int:
        """Return how many threads it may hold for long, if it is given so many more.

        One picture of a sender whose pictures were quick is no risk.
        """
        running = self.running + more
        quick = self.lately_ns is not None and self.lately_ns <= SLOW_NS
        return 0 if quick and running <= 1 else running


class FairQueue:
    """Pictures that wait for a thread; the next is of the sender that had least time so far.

    Start-time fair queueing (Goyal et al., SIGCOMM 1996) with equal weights, charged with measured
    time, for what a picture takes is not known before. Where there are several threads, all but
    one may be at risk. Pure: no clock, no threads.
    """

    def __init__(self, threads: int) -> None:
        """Queue for so many threads."""
        self._at_risk_max = max(1, threads - 1)
        self._now_ns = 0.0
        """What the sender had that was served last: where a new one begins."""
        self._senders: dict[Hashable, _Sender] = {}

    def put(self, sender: Hashable, work: Work) -> None:
        """Let a picture wait."""
        if sender not in self._senders:
            self._forget_idle()
        found = self._senders.setdefault(sender, _Sender())
        if not found.waiting and not found.running:
            found.used_ns = max(found.used_ns, self._now_ns)
        found.waiting.append(work)

    def take(self) -> "Taken | None":
        """Return the picture that is next; None: none, or only ones that must wait for a thread.

        Time is O(senders).
        """
        at_risk = sum(sender.at_risk() for sender in self._senders.values())
        ready = [
            sender
            for sender in self._senders.values()
            if sender.waiting
            and at_risk - sender.at_risk() + sender.at_risk(1) <= self._at_risk_max
        ]
        if not ready:
            return None
        sender = min(ready, key=lambda each: each.used_ns)
        self._now_ns = sender.used_ns
        guess_ns = _GUESS_NS if sender.lately_ns is None else sender.lately_ns
        taken = Taken(sender, sender.waiting.popleft(), guess_ns)
        sender.running += 1
        sender.used_ns += taken.charged_ns
        return taken

    def done(self, taken: "Taken", took_ns: int) -> None:
        """Charge a picture that was taken with what it took."""
        sender = taken.sender
        sender.running -= 1
        sender.used_ns += took_ns - taken.charged_ns
        sender.lately_ns = max(float(took_ns), (sender.lately_ns or 0.0) / 2)

    def clear(self) -> None:
        """Forget everything that waits."""
        for sender in self._senders.values():
            sender.waiting.clear()

    def _forget_idle(self) -> None:
        if len(self._senders) >= _SENDERS_KEPT:
            self._senders = {
                name: sender
                for name, sender in self._senders.items()
                if sender.waiting or sender.running
            }


@dataclass(frozen=True, slots=True)
class Taken:
    """A picture on its way through a thread."""

    sender: _Sender
    work: Work
    charged_ns: float
    """What it was expected to take."""


def decode_pool(
    threads: int, patience: Patience | None = None, clock_ns: Callable[[], int] = time.monotonic_ns
) -> DaemonPool:
    """Return threads that decode, fairly among senders."""
    return DaemonPool(threads, "jpeg", FairQueue(threads), patience=patience, clock_ns=clock_ns)
