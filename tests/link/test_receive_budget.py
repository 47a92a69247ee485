"""How many frames of a camera the box takes: senders that obey are never out of tokens."""

import heapq
import random
from dataclasses import dataclass
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.link.receive_budget import JITTER_FRAMES, MARGIN, ReceiveBudget
from edgebox.link.sender import Send, SenderWindow

S = 1_000_000_000
MS = 1_000_000


def advice(rate_hz: float) -> Advice:
    return Advice(VariantName("street-256"), 256, 144, rate_hz, 85, 0, "")


def test_a_camera_that_sends_more_gets_the_advised_rate_and_the_margin() -> None:
    budget = ReceiveBudget(2)
    budget.advised(2.0, 0)
    taken = [at for at in range(0, 60 * S, 20 * MS) if budget.take(at, 500 * MS)]
    assert len([at for at in taken if at >= 10 * S]) == round(50 * 2.0 * MARGIN)
    assert len(taken) <= 60 * 2.0 * MARGIN + 2 + JITTER_FRAMES + 2


def test_a_lower_rate_applies_one_deadline_after_it_was_advised() -> None:
    budget = ReceiveBudget(2)
    budget.advised(20.0, 0)
    before = [budget.take(at, 500 * MS) for at in range(0, 5 * S, 50 * MS)]
    budget.advised(1.0, 5 * S)
    told = [budget.take(at, 500 * MS) for at in range(5 * S, 5 * S + 500 * MS, 50 * MS)]
    assert all(before + told)
    later = [budget.take(at, 500 * MS) for at in range(6 * S, 16 * S, 50 * MS)]
    assert sum(later) <= 10 * MARGIN + 2 + JITTER_FRAMES + 1


def test_a_higher_rate_applies_at_once() -> None:
    budget = ReceiveBudget(2)
    budget.advised(1.0, 0)
    while budget.take(0, 500 * MS):
        pass
    budget.advised(20.0, 0)
    assert budget.take(round(S / (20 * MARGIN)), 500 * MS)


@dataclass(frozen=True)
class Life:
    """A camera that obeys, over a link that stands still at the end of each phase."""

    phases: list[tuple[float, int, int]]
    """Advised rate, how long in ms, how long the link stands still then, in ms."""
    window: int
    slo_ms: int
    capture_hz: float
    trip_ms: int
    seed: int

    def stalls(self) -> list[tuple[int, int]]:
        """Return from when until when the link stands still, at the end of each phase."""
        ends = accumulate((for_ms + stands_ms) * MS for _, for_ms, stands_ms in self.phases)
        return [
            (end_ns - stands_ms * MS, end_ns)
            for end_ns, (_, _, stands_ms) in zip(ends, self.phases, strict=True)
        ]

    def advised(self) -> list[tuple[int, float]]:
        """Return when the box advises which rate."""
        begins = [0, *(end_ns for _, end_ns in self.stalls())]
        return [(at, rate_hz) for at, (rate_hz, _, _) in zip(begins, self.phases, strict=False)]

    def arrives_ns(self, sent_ns: int) -> int:
        """Return when a frame arrives that finds the link empty."""
        for start_ns, end_ns in self.stalls():
            if start_ns <= sent_ns < end_ns:
                sent_ns = end_ns
        return sent_ns + self.trip_ms * MS


lives = st.builds(
    Life,
    phases=st.lists(
        st.tuples(st.floats(0.2, 30.0), st.integers(50, 4_000), st.integers(0, 1_500)),
        min_size=1,
        max_size=12,
    ),
    window=st.sampled_from([1, 2, 8]),
    slo_ms=st.sampled_from([200, 500, 3_000]),
    capture_hz=st.floats(5.0, 60.0),
    trip_ms=st.integers(0, 100),
    seed=st.integers(0, 1 << 32),
)


@given(lives)
def test_a_sender_that_obeys_always_finds_a_token_for_a_frame_that_can_be_in_time(
    life: Life,
) -> None:
    """Advice travels as long as frames do, which also wait while the link stands still.

    A frame that arrives too late to be answered in time may find no token.
    """
    window, slo_ms, trip_ms = life.window, life.slo_ms, life.trip_ms
    chance = random.Random(life.seed)
    budget = ReceiveBudget(window)
    sender = SenderWindow(640, 360, slo_ms * MS, life.capture_hz, window)
    events: list[tuple[int, int, str, object]] = []
    number = 0

    def put(at_ns: int, kind: str, what: object) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (at_ns, number, kind, what))

    for at_ns, rate_hz in life.advised():
        put(at_ns, "advise", advice(rate_hz))
    end_ns, period_ns = life.stalls()[-1][1] + 2 * S, round(S / life.capture_hz)
    for at in range(trip_ms * MS, end_ns, period_ns):
        jitter_ns = chance.randint(0, period_ns // 8)
        put(at + jitter_ns, "capture", at + jitter_ns)

    captured: dict[int, int] = {}
    last_ns = 0

    def send(decisions: list[object], now_ns: int) -> None:
        nonlocal last_ns
        for decision in decisions:
            if isinstance(decision, Send):
                last_ns = max(last_ns, life.arrives_ns(now_ns))
                put(last_ns, "arrive", decision.frame)

    while events:
        now_ns, _, kind, what = heapq.heappop(events)
        if kind == "advise":
            assert isinstance(what, Advice)
            budget.advised(what.rate_hz, now_ns)
            put(now_ns + trip_ms * MS, "advised", what)
        elif kind == "advised":
            assert isinstance(what, Advice)
            sender.advised(what)
        elif kind == "capture":
            assert isinstance(what, int)
            captured[len(captured) + 1] = what
            send(list(sender.captured(len(captured), what, now_ns)), now_ns)
        elif kind == "arrive":
            assert isinstance(what, int)
            taken = budget.take(now_ns, slo_ms * MS)
            in_time = now_ns - captured[what] + trip_ms * MS <= slo_ms * MS
            assert taken or not in_time, (what, now_ns / MS)
            put(now_ns + trip_ms * MS, "ack", what)
        else:
            assert isinstance(what, int)
            send(list(sender.acknowledged(what, now_ns, 0)), now_ns)
