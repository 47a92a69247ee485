"""Schedules the decoding of pictures fairly among their senders.

One picture can take a second to decode. So senders share the threads by processor time, not by
number of pictures, and one thread is always reserved for senders whose pictures are known to be
quick. A new sender counts as slow; otherwise a sender that changes its name could occupy all
threads. A program's sender is the address that it sends from. What the address may use is shared in
the same way among the applications that its pictures name: a program that names ever new ones gains
nothing from other senders. The process ends without waiting for the threads.

While enough pictures are decoded for the executors, no more are, so that a picture which will not
run is dropped before it costs anything. Of a camera with more pictures than it can get through, the
newest is decoded: it takes the place of the others, and has most time left. Each picture of a
program is wanted by itself, so the one with the earliest deadline is decoded first.
"""

import bisect
import os
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from edgebox.inference.executor import RUN_LIMIT_S
from edgebox.runtime.threads import DaemonPool, HangLimit, Work

DECODE_LIMIT_NS = round(RUN_LIMIT_S * 1e9)
"""A thread whose picture takes longer is considered hung: decoding time is bounded to seconds."""
THREADS_MIN = 2
"""With a single thread none can be reserved."""
SLOW_NS = 50_000_000
"""Longest processor time of a quick picture. One of 1920 x 1080 px takes about 15 ms."""
_GUESS_NS = 5_000_000
"""Time charged for a sender's first picture: that of 1280 x 720 px."""
_SENDERS_KEPT = 1_024
"""Senders from which on idle ones are forgotten."""
_APPS_KEPT = 32
"""Applications of a sender from which on idle ones are forgotten: the event loop walks all."""
_NEWEST_FIRST = 3
"""A camera of which so many pictures wait sends more than it can get through. Those that obey have
two on their way, which stay in order.

Beside a crowd that ignores its advice, cameras that obey have all their frames answered. With the
oldest first they have .93 to .96 of them, and where decoding shares the executor's cores it answers
.80 of its capacity in place of .98 (`python -m benchmarks.overload --ablation`).
"""


def decode_threads(configured: int) -> int:
    """Return how many threads to decode with; `configured` is 0 if that is left to the box."""
    return max(THREADS_MIN, configured or min(4, (os.cpu_count() or 1) // 2))


@dataclass(eq=False, slots=True)
class Deferrable:
    """A picture to decode: it waits while the queue is held, and may no longer be wanted."""

    run: Callable[["Deferrable"], None]
    """Called with this object: a function that refers to it itself would keep it, and the picture,
    until the garbage collector's next full collection."""
    is_over: Callable[[], bool]
    """Whether it is no longer wanted; called in any thread."""
    due_ns: int | None = None
    """Its deadline; None: a newer picture of its sender takes its place."""
    app: str = ""
    """The application of its sender that it belongs to."""
    behind: bool = False
    """Whether other work of its sender was there before it."""
    skipped: bool = False
    """Whether it was no longer wanted when its turn came, so that no picture is decoded."""

    def __call__(self) -> None:
        """Run."""
        self.skipped = self.is_over()
        self.run(self)


def _due_ns(work: Deferrable) -> int:
    return work.due_ns or 0


@dataclass(slots=True)
class _Share:
    """What one of several uses of their decoding time."""

    used_ns: float = 0.0
    """Virtual decoding time of fair queueing: at least that of the others."""
    running: int = 0

    @property
    def waiting(self) -> bool:
        """Whether work waits."""
        raise NotImplementedError


_ShareT = TypeVar("_ShareT", bound=_Share)


class _Shares(Generic[_ShareT]):
    """Those who share decoding time. The next is the one that used the least of it.

    Start-time fair queueing (Goyal et al., SIGCOMM 1996) with equal weights, charged with measured
    time, because decoding times are unknown in advance.
    """

    def __init__(self, new: Callable[[], _ShareT], kept: int) -> None:
        self._new = new
        self._kept = kept
        self._now_ns = 0.0
        """Virtual time of the one served last; new ones begin with it."""
        self.by_name: dict[Hashable, _ShareT] = {}

    def joined(self, name: Hashable) -> _ShareT:
        """Return the one of a name, whose work is about to wait."""
        found = self.by_name.get(name)
        if found is None:
            if len(self.by_name) >= self._kept:
                self._forget_idle()
            found = self.by_name[name] = self._new()
        if not found.waiting and not found.running:
            found.used_ns = max(found.used_ns, self._now_ns)
        return found

    def next(self, may_take: Callable[[_ShareT], bool]) -> _ShareT | None:
        """Return the one whose work is next; None: nobody's may be taken.

        Time is linear, but only those that used less time than the next one are looked at closely:
        threads take pictures with the interpreter held.
        """
        found = None
        for each in self.by_name.values():
            if (found is None or each.used_ns < found.used_ns) and may_take(each):
                found = each
        return found

    def begin(self, share: _ShareT, charged_ns: float) -> None:
        """Charge work that begins with its expected decoding time."""
        self._now_ns = share.used_ns
        share.used_ns += charged_ns
        share.running += 1

    def _forget_idle(self) -> None:
        self.by_name = {
            name: share for name, share in self.by_name.items() if share.waiting or share.running
        }


@dataclass(slots=True)
class _App(_Share):
    """An application of a sender; a camera has one."""

    deferrable: deque[Deferrable] = field(default_factory=deque)
    """In order of arrival, or of their deadlines."""

    @property
    def waiting(self) -> bool:
        """Whether pictures wait."""
        return bool(self.deferrable)

    def put(self, work: Deferrable) -> None:
        """Queue a picture."""
        if work.due_ns is None:
            self.deferrable.append(work)
        else:
            bisect.insort(self.deferrable, work, key=_due_ns)

    def forget_over(self) -> None:
        """Forget the first and last work that is no longer wanted."""
        while self.deferrable and self.deferrable[0].is_over():
            self.deferrable.popleft()
        while self.deferrable and self.deferrable[-1].is_over():
            self.deferrable.pop()

    def may_take(self) -> bool:
        """Return whether there is a picture to take."""
        if not self.deferrable:
            return False
        self.forget_over()
        return bool(self.deferrable)

    def take(self) -> Deferrable:
        """Return the next picture, which there is."""
        newest = self.deferrable[-1]
        if newest.due_ns is None and len(self.deferrable) >= _NEWEST_FIRST:
            return self.deferrable.pop()
        return self.deferrable.popleft()


@dataclass(slots=True)
class _Sender(_Share):
    lately_ns: float | None = None
    """Expected decoding time: that of the last picture, or half of the previous value if that is
    more. Longer work of another kind raises it. None: no picture was decoded yet."""
    urgent: deque[Work] = field(default_factory=deque)
    """Work that waits for a thread only; it comes first."""
    apps: _Shares[_App] = field(default_factory=lambda: _Shares(_App, _APPS_KEPT))

    @property
    def waiting(self) -> bool:
        """Whether work waits."""
        return bool(self.urgent) or any(app.waiting for app in self.apps.by_name.values())

    def put(self, work: Work) -> None:
        """Queue work."""
        if not isinstance(work, Deferrable):
            self.urgent.append(work)
            return
        app = self.apps.joined(work.app)
        app.forget_over()
        work.behind = self.waiting or self.running > 0
        app.put(work)

    def may_take(self, held: bool) -> bool:
        """Return whether there is work to take."""
        if self.urgent:
            return True
        if held:
            return False
        waits = any(app.may_take() for app in self.apps.by_name.values())
        if not waits and not self.running:
            self.apps.by_name.clear()
        return waits

    def take(self) -> tuple[Work, _App | None]:
        """Return the next work, which there is, and the application that it belongs to."""
        if self.urgent:
            return self.urgent.popleft(), None
        app = self.apps.next(_App.may_take)
        assert app is not None
        return app.take(), app

    def at_risk(self, more: int = 0) -> int:
        """Return how many threads it may hold for long, with `more` further pictures.

        One picture of a quick sender is no risk.
        """
        running = self.running + more
        quick = self.lately_ns is not None and self.lately_ns <= SLOW_NS
        return 0 if quick and running <= 1 else running


class FairQueue:
    """Pictures that wait for a thread; the next is that of the sender that used the least time.

    All threads but one may be at risk. Pure: no clock, no threads.
    """

    def __init__(self, threads: int) -> None:
        """Queue for so many threads."""
        self._at_risk_max = max(1, threads - 1)
        self._senders = _Shares(_Sender, _SENDERS_KEPT)
        self._running: list[_Sender] = []
        """Those whose pictures are being decoded."""
        self._held = False

    def hold(self, held: bool) -> None:
        """Let deferrable work wait, or no longer."""
        self._held = held

    def put(self, sender: Hashable, work: Work) -> None:
        """Queue a picture."""
        self._senders.joined(sender).put(work)

    def take(self) -> "Taken | None":
        """Return the next picture; None: none waits, or all must wait for a thread."""
        sender = self._senders.next(self._may_take)
        if sender is None:
            return None
        guess_ns = _GUESS_NS if sender.lately_ns is None else sender.lately_ns
        work, app = sender.take()
        self._senders.begin(sender, guess_ns)
        if app is not None:
            sender.apps.begin(app, guess_ns)
        if sender.running == 1:
            self._running.append(sender)
        return Taken(sender, app, work, guess_ns)

    def _may_take(self, sender: _Sender) -> bool:
        """Return whether a sender's next picture may have a thread now."""
        if not sender.may_take(self._held):
            return False
        at_risk = sum(each.at_risk() for each in self._running if each is not sender)
        return at_risk + sender.at_risk(1) <= self._at_risk_max

    def done(self, taken: "Taken", took_ns: int) -> None:
        """Charge a picture with its decoding time: processor time, or how long it has hung."""
        sender = taken.sender
        for share in (sender, taken.app):
            if share is not None:
                share.running -= 1
                share.used_ns += took_ns - taken.charged_ns
        if not sender.running:
            self._running = [each for each in self._running if each is not sender]
            if not sender.waiting:
                sender.apps.by_name.clear()
        work = taken.work
        if isinstance(work, Deferrable) and not work.skipped:
            sender.lately_ns = max(float(took_ns), (sender.lately_ns or 0.0) / 2)
        elif sender.lately_ns is not None:
            # How quick other work is says nothing of the sender's pictures.
            sender.lately_ns = max(float(took_ns), sender.lately_ns)

    def clear(self) -> None:
        """Discard everything that waits."""
        for sender in self._senders.by_name.values():
            sender.urgent.clear()
            sender.apps.by_name.clear()


@dataclass(frozen=True, slots=True)
class Taken:
    """A picture that a thread decodes."""

    sender: _Sender
    app: _App | None
    """The application of the sender that is charged as well; None: none is."""
    work: Work
    charged_ns: float
    """Its expected decoding time."""


def decode_pool(
    threads: int,
    hang_limit: HangLimit | None = None,
    clock_ns: Callable[[], int] = time.monotonic_ns,
    *,
    queue: FairQueue | None = None,
) -> DaemonPool:
    """Return the threads that decode, fair among senders."""
    queue = queue or FairQueue(threads)
    return DaemonPool(threads, "jpeg", queue, hang_limit=hang_limit, clock_ns=clock_ns)
