"""The sender's window: its rules one by one, its counts, and a closed loop over a bad link."""

import heapq
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.link.bandwidth import message_bytes
from edgebox.link.sender import (
    PROBE_NS,
    SIDE_MIN_PX,
    Decision,
    Send,
    SenderWindow,
    Skip,
    SkipReason,
)
from edgebox.link.shaping import BandwidthTrace, ShapedLink, lte_trace

S = 1_000_000_000
MS = 1_000_000
ADVICE = Advice(VariantName("street-608"), 608, 352, 1000.0, 80, 0, "")
BYTES_PER_PIXEL = 0.25


def window(rate_hz: float = 1000.0, slo_ms: int = 300, width_px: int = 1280) -> SenderWindow:
    sender = SenderWindow(width_px, width_px * 9 // 16, slo_ms * MS, rate_hz)
    sender.advised(ADVICE)
    return sender


def weigh(send: Send) -> int:
    return round(message_bytes(BYTES_PER_PIXEL, send.width_px * send.height_px))


def through(sender: SenderWindow, frame: int, now_ns: int, bps: float) -> int:
    """Capture, send and acknowledge one frame over an idle link; return when it was acked."""
    decisions = sender.captured(frame, now_ns, now_ns)
    send = decisions[-1]
    assert isinstance(send, Send)
    size = weigh(send)
    sender.encoded(frame, size, send.width_px * send.height_px, now_ns)
    acked_ns = now_ns + round(size * 8 / bps * 1e9)
    assert sender.acknowledged(frame, acked_ns, 0) == []
    return acked_ns


@pytest.mark.parametrize(
    ("age_ms", "last_slo_ms", "sent"),
    [(30, None, [128]), (100, None, []), (100, 500, [128]), (100, 335, []), (100, 345, [128])],
)
def test_what_cannot_make_the_first_deadline_is_sent_if_it_can_make_the_last(
    age_ms: int, last_slo_ms: int | None, sent: list[int]
) -> None:
    # A frame takes 240 ms on this link.
    last_slo_ns = None if last_slo_ms is None else last_slo_ms * MS
    sender = SenderWindow(128, 72, 300 * MS, 1000.0, last_slo_ns=last_slo_ns)
    sender.advised(ADVICE)
    now_ns = through(sender, 1, 0, message_bytes(BYTES_PER_PIXEL, 128 * 72) * 8 / 0.24)
    assert sent_widths(sender.captured(2, now_ns - age_ms * MS, now_ns)) == sent


def sent_widths(decisions: list[Decision]) -> list[int]:
    return [decision.width_px for decision in decisions if isinstance(decision, Send)]


def test_the_first_frame_goes_at_the_advised_size_with_its_aspect_kept() -> None:
    assert window().captured(1, 0, 0) == [Send(1, 608, 342, 80)]
    assert window(width_px=400).captured(1, 0, 0) == [Send(1, 400, 225, 80)]
    portrait = SenderWindow(720, 1280, 300 * MS, 10)
    portrait.advised(ADVICE)
    assert portrait.captured(1, 0, 0) == [Send(1, 198, 352, 80)]


def test_two_may_be_on_their_way_and_the_newest_waits() -> None:
    sender = window()
    assert isinstance(sender.captured(1, 0, 0)[0], Send)
    assert isinstance(sender.captured(2, 10 * MS, 10 * MS)[0], Send)
    assert sender.captured(3, 20 * MS, 20 * MS) == []
    assert sender.waiting == 3
    assert sender.captured(4, 30 * MS, 30 * MS) == [Skip(3, SkipReason.WINDOW)]
    released = sender.acknowledged(1, 40 * MS, 0)
    assert [decision.frame for decision in released] == [4]
    assert sender.unacknowledged == 2
    assert sender.waiting is None


def test_an_ack_covers_older_frames_and_a_foreign_one_nothing() -> None:
    sender = window()
    sender.captured(1, 0, 0)
    sender.captured(2, 10 * MS, 10 * MS)
    assert sender.acknowledged(99, 20 * MS, 0) == []
    assert sender.unacknowledged == 2
    sender.acknowledged(2, 20 * MS, 0)
    assert sender.unacknowledged == 0


def test_a_slower_link_means_smaller_pictures_down_to_none() -> None:
    widths = []
    for mbps in (8.0, 1.2, 0.9, 0.5):
        sender = window(rate_hz=3)
        through(sender, 1, 0, mbps * 1e6)
        widths.append(sent_widths(sender.captured(2, 1 * S, 1 * S)))
    assert widths[0] == [608]
    assert 128 <= widths[3][0] < widths[2][0] < widths[1][0] < 608
    sender = window(rate_hz=3)
    through(sender, 1, 0, 0.05e6)
    at_ns = PROBE_NS - 1
    assert sender.captured(2, at_ns, at_ns) == [Skip(2, SkipReason.INFEASIBLE)]


def test_the_boxs_estimate_counts_too() -> None:
    sender = window()
    through(sender, 1, 0, 8e6)
    sender.advised(replace(ADVICE, bandwidth_bps=900_000))
    assert sent_widths(sender.captured(2, 1 * S, 1 * S))[0] < 400
    assert sender.bandwidth_bps(1 * S) == 900_000


def test_a_backlog_shrinks_what_follows() -> None:
    sender = window(rate_hz=4, slo_ms=260)
    now_ns = through(sender, 1, 0, 1e6)
    first = sent_widths(sender.captured(2, now_ns, now_ns))
    second = sent_widths(sender.captured(3, now_ns + 190 * MS, now_ns + 190 * MS))
    assert second[0] < first[0] <= 608


def test_time_that_the_box_needs_is_not_available_to_the_link() -> None:
    sender = window(rate_hz=4)
    now_ns = through(sender, 1, 0, 2e6)
    slow = window(rate_hz=4)
    through(slow, 1, 0, 2e6)
    slow.answered(200 * MS)
    quick_px = sent_widths(sender.captured(2, now_ns, now_ns))[0]
    assert sent_widths(slow.captured(2, now_ns, now_ns))[0] < quick_px


def test_a_second_without_sending_and_the_smallest_is_tried_whatever_is_believed() -> None:
    sender = window()
    acked_ns = through(sender, 1, 0, 1.5e6)
    sender.advised(replace(ADVICE, bandwidth_bps=1_000))
    at_ns = acked_ns + 1
    assert sender.captured(2, at_ns, at_ns) == [Skip(2, SkipReason.INFEASIBLE)]
    assert sender.captured(3, PROBE_NS, PROBE_NS) == [Send(3, SIDE_MIN_PX, 72, 80)]
    # Only one at a time.
    late_ns = 5 * PROBE_NS
    assert sender.captured(4, late_ns, late_ns) == [Skip(4, SkipReason.INFEASIBLE)]


@pytest.mark.parametrize(("source_hz", "advised_hz"), [(30, 10), (13, 10), (10, 10), (7, 10)])
def test_sends_at_most_the_advised_rate(source_hz: int, advised_hz: int) -> None:
    sender = window()
    sender.advised(replace(ADVICE, rate_hz=float(advised_hz)))
    rng = random.Random(3)
    sent = 0
    seconds = 40
    for number in range(source_hz * seconds):
        at_ns = number * S // source_hz + rng.randint(0, 4 * MS)
        for decision in sender.captured(number, at_ns, at_ns):
            if isinstance(decision, Send):
                sent += 1
                sender.encoded(number, 3_000, 100_000, at_ns)
                sender.acknowledged(number, at_ns + 2 * MS, 0)
    wanted = min(source_hz, advised_hz) * seconds
    assert 0.9 * wanted <= sent <= 1.02 * wanted


def test_closing_gives_the_waiting_frame_up() -> None:
    sender = window()
    for frame in (1, 2, 3):
        sender.captured(frame, frame * 10 * MS, frame * 10 * MS)
    assert sender.close() == [Skip(3, SkipReason.OFFLINE)]
    assert sender.close() == []


events = st.lists(
    st.tuples(
        st.sampled_from(("capture", "capture", "ack", "encode", "advise", "answer", "close")),
        st.integers(0, 400 * MS),
        st.integers(0, 10**6),
    ),
    max_size=80,
)


@given(events=events, unacknowledged_max=st.integers(1, 3))
def test_every_captured_frame_is_counted_once(
    events: list[tuple[str, int, int]], unacknowledged_max: int
) -> None:
    sender = SenderWindow(1280, 720, 300 * MS, 20.0, unacknowledged_max)
    now_ns, captured = 0, 0
    fates: Counter[int] = Counter()
    on_the_way: list[Send] = []
    for kind, gap_ns, number in events:
        now_ns += gap_ns
        decisions: list[Decision] = []
        if kind == "capture":
            captured += 1
            decisions = sender.captured(captured, now_ns - min(now_ns, number), now_ns)
        elif kind == "ack" and on_the_way:
            decisions = sender.acknowledged(on_the_way.pop(0).frame, now_ns, number)
        elif kind == "encode" and on_the_way:
            send = on_the_way[number % len(on_the_way)]
            sender.encoded(send.frame, 1 + number, send.width_px * send.height_px, now_ns)
        elif kind == "advise":
            width = 1 + number % 2000
            sender.advised(Advice(VariantName("v"), width, width, 1 + number % 50, 80, number, ""))
        elif kind == "answer":
            sender.answered(number * 1000)
        elif kind == "close":
            decisions = sender.close()
        for decision in decisions:
            fates[decision.frame] += 1
            if isinstance(decision, Send):
                on_the_way.append(decision)
                assert 1 <= decision.width_px <= 1280
                assert 1 <= decision.height_px <= 720
        assert len(on_the_way) == sender.unacknowledged <= unacknowledged_max
        assert all(count == 1 for count in fates.values())
        waiting = 0 if sender.waiting is None else 1
        skipped = sum(sender.skipped.values())
        assert captured == sender.captured_total == sender.sent_total + skipped + waiting
        assert len(fates) == sender.sent_total + skipped


def over_a_link(trace: BandwidthTrace, backing_off: bool, seconds: int, rate_hz: int = 10) -> float:
    """Run a camera over a link, the box answering in 20 ms; return the share on time."""
    sender = window(rate_hz=1.1 * rate_hz)
    link = ShapedLink(trace, 0)
    base_ns, box_ns, slo_ns = 10 * MS, 20 * MS, 300 * MS
    on_time = 0
    captured_at: dict[int, int] = {}
    acks: list[tuple[int, int]] = []

    def apply(decisions: list[Decision], now_ns: int) -> None:
        nonlocal on_time
        for decision in decisions:
            if isinstance(decision, Send):
                send = decision if backing_off else Send(decision.frame, 608, 342, 80)
                size = weigh(send)
                sent_ns = link.free_ns(now_ns)
                sender.encoded(send.frame, size, send.width_px * send.height_px, sent_ns)
                arrival_ns = link.leaves_ns(now_ns, size) + base_ns
                on_time += arrival_ns + box_ns + base_ns <= captured_at[send.frame] + slo_ns
                heapq.heappush(acks, (arrival_ns + base_ns, send.frame))

    for number in range(seconds * rate_hz):
        now_ns = number * S // rate_hz
        while acks and acks[0][0] <= now_ns:
            ack_ns, frame = heapq.heappop(acks)
            sender.answered(box_ns + base_ns)
            apply(sender.acknowledged(frame, ack_ns, 2 * base_ns), ack_ns)
        captured_at[number] = now_ns
        apply(sender.captured(number, now_ns, now_ns), now_ns)
    return on_time / (seconds * rate_hz)


@pytest.mark.parametrize("seed", range(3))
def test_backing_off_saves_frames_on_a_link_that_swings(seed: int) -> None:
    trace = lte_trace(random.Random(seed))
    fixed = over_a_link(trace, backing_off=False, seconds=300)
    backing_off = over_a_link(trace, backing_off=True, seconds=300)
    assert backing_off > 0.95
    assert backing_off > fixed + 0.02


def test_recovers_when_the_link_does() -> None:
    trace = BandwidthTrace.per_second([8.0] * 10 + [0.05] * 10 + [8.0] * 20)
    share = over_a_link(trace, backing_off=True, seconds=40)
    # 10 of 40 s are hopeless; little more may be lost.
    assert share > 0.70


def test_jitter_of_less_than_two_periods_costs_no_frames() -> None:
    sender = window(rate_hz=10)
    rng = random.Random(5)
    at_ns = 0
    for number in range(300):
        at_ns = max(at_ns, number * 100 * MS + rng.randint(0, 180 * MS))
        sender.captured(number, at_ns, at_ns)
        sender.acknowledged(number, at_ns + 1 * MS, 0)
    assert sender.skipped[SkipReason.RATE] == 0


def test_another_deadline_holds_from_the_next_frame_on() -> None:
    sender = SenderWindow(128, 72, 300 * MS, 1000.0)
    sender.advised(ADVICE)
    # A frame takes 240 ms on this link.
    now_ns = through(sender, 1, 0, message_bytes(BYTES_PER_PIXEL, 128 * 72) * 8 / 0.24)
    sender.deadlines(200 * MS, 200 * MS)
    assert sent_widths(sender.captured(2, now_ns, now_ns)) == []
    sender.deadlines(200 * MS, 300 * MS)
    assert sent_widths(sender.captured(3, now_ns, now_ns)) == [128], "worth something by the last"


@pytest.mark.parametrize("rate_hz", [5e-324, 1e-12])
def test_a_rate_next_to_nothing_is_a_frame_an_hour(rate_hz: float) -> None:
    sender = SenderWindow(128, 72, 300 * MS, rate_hz)
    sender.advised(replace(ADVICE, rate_hz=rate_hz))
    hour_ns = 3_600_000_000_000
    sent = [
        sent_widths(sender.captured(number, number * hour_ns // 4, number * hour_ns // 4))
        for number in range(1, 20)
    ]
    assert 1 <= sum(map(bool, sent)) <= 8
