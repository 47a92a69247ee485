"""Where frames lie on the box's clock, against journeys that are known."""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.bandwidth import OVERHEAD_BYTES
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.link.transit import (
    RETURN_ALLOWANCE_NS,
    SEGMENT_BYTES,
    FrameArrival,
    FrameTransit,
    TransitEstimator,
)

S = 1_000_000_000
MS = 1_000_000
SLO_NS = 300 * MS
NOW_NS = 1_000 * S
OFFSET_NS = 700 * S
"""Box's clock minus camera's."""
RTT_NS = 10 * MS


def with_clock(rtt_ns: int = RTT_NS) -> TransitEstimator:
    """Return a camera whose clock is known: one exchange, just now."""
    known = TransitEstimator()
    assert not known.pong(NOW_NS - rtt_ns, NOW_NS - rtt_ns // 2 - OFFSET_NS, NOW_NS)
    return known


def arrive(known: TransitEstimator, captured_ns: int, arrival_ns: int = NOW_NS) -> FrameTransit:
    """Let a frame of 10 kB arrive that was sent when it was captured, on the camera's clock."""
    arrival = FrameArrival.at_once(10_000, arrival_ns)
    return known.frame_arrived(captured_ns, captured_ns, arrival, 90_000, SLO_NS)


# A camera whose clock is known


@given(st.integers(0, 30 * S))
def test_capture_is_placed_by_the_clock(age_ns: int) -> None:
    transit = arrive(with_clock(), NOW_NS - OFFSET_NS - age_ns)
    assert not transit.suspicious
    assert transit.captured_ns == NOW_NS - age_ns
    assert transit.return_ns == RTT_NS // 2


@given(st.integers(0, 5 * S), st.integers(0, 200 * MS))
def test_the_deadline_leaves_time_for_the_way_back(age_ns: int, rtt_ns: int) -> None:
    transit = arrive(with_clock(rtt_ns), NOW_NS - OFFSET_NS - age_ns)
    left_ns = transit.captured_ns + SLO_NS - transit.compute_deadline_ns
    assert left_ns == transit.return_ns + RETURN_ALLOWANCE_NS
    assert transit.return_ns == rtt_ns // 2


@given(st.integers(1, 50 * MS))
def test_a_little_in_the_future_is_now(ahead_ns: int) -> None:
    transit = arrive(with_clock(), NOW_NS - OFFSET_NS + ahead_ns)
    assert not transit.suspicious
    assert transit.captured_ns == NOW_NS


@given(st.integers(51 * MS, 2**62 - NOW_NS) | st.integers(-(NOW_NS - OFFSET_NS), -30 * S - 1))
def test_what_cannot_be_is_estimated_from_the_link(shift_ns: int) -> None:
    transit = arrive(with_clock(), NOW_NS - OFFSET_NS + shift_ns)
    assert transit.suspicious
    # Nothing is known of the bandwidth: the frame took at least half a round trip.
    assert transit.captured_ns == NOW_NS - RTT_NS // 2
    assert transit.compute_deadline_ns > NOW_NS


def test_an_implausible_frame_that_came_at_once_teaches_nothing_about_the_link() -> None:
    known = with_clock()
    arrive(known, NOW_NS - OFFSET_NS + 3_600 * S)
    assert known.bandwidth.bps(NOW_NS) is None
    arrive(known, NOW_NS - OFFSET_NS - 20 * MS)
    assert known.bandwidth.bps(NOW_NS) is not None


def test_a_clock_that_jumps_is_followed_from_the_next_exchange_on() -> None:
    known = with_clock()
    hour_ns = 3_600 * S
    at_ns = NOW_NS + S
    assert arrive(known, at_ns - OFFSET_NS + hour_ns, at_ns).suspicious
    assert known.pong(at_ns, at_ns + RTT_NS // 2 - OFFSET_NS + hour_ns, at_ns + RTT_NS)
    at_ns += RTT_NS
    transit = arrive(known, at_ns - OFFSET_NS + hour_ns - 20 * MS, at_ns)
    assert not transit.suspicious
    assert transit.captured_ns == at_ns - 20 * MS


# What the core hears of the link


def test_the_core_hears_of_a_link_five_times_a_second() -> None:
    known = with_clock()
    updates = []
    for number in range(100):  # a steady camera of 100 Hz for a second
        at_ns = NOW_NS + number * 10 * MS
        arrive(known, at_ns - OFFSET_NS - 7 * MS, at_ns)
        if (link := known.take_updates(at_ns)) is not None:
            updates.append((at_ns, link))
    assert 4 <= len(updates) <= 7
    assert updates[0][1].rtt_ns == RTT_NS
    assert updates[-1][1].bytes_per_pixel == pytest.approx(
        (10_000 - OVERHEAD_BYTES) / 90_000 * (90_000 / 65_536) ** 0.14
    )


def test_a_bandwidth_that_falls_is_told_soon() -> None:
    known = with_clock()
    for number in range(20):
        at_ns = NOW_NS + number * 25 * MS
        arrive(known, at_ns - OFFSET_NS - 10 * MS, at_ns)
        known.take_updates(at_ns)
    before = known.bandwidth.bps(at_ns)
    # The next frame takes ten times as long and arrives right after the core was told.
    late_ns = at_ns + 110 * MS
    arrive(known, late_ns - OFFSET_NS - 105 * MS, late_ns)
    link = known.take_updates(late_ns)
    assert link is not None
    assert before is not None
    assert link.bandwidth_bps is not None
    assert link.bandwidth_bps < 0.7 * before


def test_nothing_new_is_not_told() -> None:
    known = with_clock()
    arrive(known, NOW_NS - OFFSET_NS - 10 * MS)
    assert known.take_updates(NOW_NS) is not None
    assert known.take_updates(NOW_NS) is None
    assert known.take_updates(NOW_NS + 10 * MS) is None


# A camera whose clock is not known


def train(
    size_bytes: int, arrival_ns: int, took_ns: int, first_bytes: int = SEGMENT_BYTES
) -> FrameArrival:
    """Return a message whose bytes came over `took_ns`, after the first of them."""
    first_bytes = min(first_bytes, size_bytes)
    return FrameArrival(size_bytes, arrival_ns, arrival_ns - took_ns, first_bytes, arrival_ns)


def echoing(rtt_ns: int = RTT_NS) -> TransitEstimator:
    """Return a camera that answers the pings of WebSocket and no others."""
    known = TransitEstimator()
    known.echoed(NOW_NS - rtt_ns, NOW_NS)
    return known


@given(st.integers(1, 400_000), st.floats(0.2, 1_000), st.integers(0, 200 * MS))
def test_a_frame_is_as_old_as_the_promise_says(size_bytes: int, mbps: float, rtt_ns: int) -> None:
    """captured = arrival - (bytes / W + RTT / 2), whatever its stamps say."""
    known = echoing(rtt_ns)
    for number in range(10):  # the first of them teach the bandwidth
        rest_ns = round(max(0, size_bytes - SEGMENT_BYTES) * 8 / mbps * 1e3)
        at_ns = NOW_NS + number * (S + rest_ns)
        transit = known.frame_arrived(0, 0, train(size_bytes, at_ns, rest_ns), None, SLO_NS)
    if rest_ns < MS:  # cannot be told from a link that is faster still
        assert at_ns - transit.captured_ns >= rtt_ns // 2
        return
    promised_ns = size_bytes * 8 / mbps * 1e3 + rtt_ns / 2
    assert at_ns - transit.captured_ns == pytest.approx(promised_ns, abs=2, rel=1e-6)
    assert transit.return_ns == rtt_ns // 2
    assert not transit.suspicious


def test_a_camera_that_answers_nothing_at_all_is_placed_by_its_bytes() -> None:
    known = TransitEstimator()
    transit = known.frame_arrived(0, 0, train(50_000, NOW_NS, 100 * MS), None, SLO_NS)
    whole_ns = 100 * MS * 50_000 / (50_000 - SEGMENT_BYTES)
    assert NOW_NS - transit.captured_ns == pytest.approx(whole_ns, rel=0.001)
    assert transit.compute_deadline_ns == transit.captured_ns + SLO_NS - RETURN_ALLOWANCE_NS


def test_the_bandwidth_of_a_link_is_known_without_a_clock() -> None:
    known = echoing()
    for number in range(20):
        took_ns = round((20_000 - SEGMENT_BYTES) * 8 / 4e6 * 1e9)
        transit = known.frame_arrived(
            0, 0, train(20_000, NOW_NS + number * 100 * MS, took_ns), 90_000, SLO_NS
        )
    link = known.state(NOW_NS + 2 * S)
    assert link.bandwidth_bps == pytest.approx(4e6, rel=0.001)
    assert link.rtt_ns == RTT_NS
    assert link.clock_error_ns is None
    assert transit.carried == ((20_000 - SEGMENT_BYTES) * 8, took_ns)


def test_idle_time_between_frames_is_no_transmission() -> None:
    """At a low rate, gaps between whole frames would say 80 kbit/s of this link."""
    known = echoing()
    for number in range(10):
        arrival = train(10_000, NOW_NS + number * S, 2 * MS)
        transit = known.frame_arrived(0, 0, arrival, None, SLO_NS)
    assert arrival.arrival_ns - transit.captured_ns < 2.5 * MS + RTT_NS // 2


@dataclass
class Journey:
    """A camera without a clock exchange, on a link whose rate is known."""

    link: ShapedLink
    known: TransitEstimator
    rtt_ns: int
    stamps: bool = True
    encode_ns: int = 0
    noise_ns: int = 0
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    last_ns: int = 0

    def carry(self, captured_ns: int, size_bytes: int) -> tuple[FrameTransit, FrameArrival, int]:
        """Let a frame arrive; return what is believed, its arrival, when it was sent."""
        handed_ns = captured_ns + self.encode_ns
        sent_ns = self.link.free_ns(handed_ns)
        half_ns = self.rtt_ns - self.rtt_ns // 2
        last_ns = self.link.leaves_ns(handed_ns, size_bytes) + half_ns
        last_ns = max(self.last_ns, last_ns + self.rng.randint(0, self.noise_ns))
        first_bytes = min(SEGMENT_BYTES, size_bytes)
        first_ns = self.link.left_but_for_ns(size_bytes - first_bytes) + half_ns
        first_ns = min(last_ns, max(self.last_ns, first_ns + self.rng.randint(0, self.noise_ns)))
        read_bytes = size_bytes - self.link.behind_bytes(first_ns - half_ns)
        first_bytes = min(size_bytes, max(read_bytes, first_bytes))
        self.last_ns = last_ns
        arrival = FrameArrival(size_bytes, last_ns, first_ns, first_bytes, last_ns)
        stamps = (captured_ns - OFFSET_NS, sent_ns - OFFSET_NS) if self.stamps else (0, 0)
        transit = self.known.frame_arrived(*stamps, arrival, None, SLO_NS)
        return transit, arrival, sent_ns


rates = st.lists(st.floats(0.3, 100), min_size=1, max_size=6)
frame_sizes = st.lists(st.integers(700, 120_000), min_size=1, max_size=40)


@given(rates, frame_sizes, st.integers(0, 60 * MS), st.booleans(), st.integers(0, 20 * MS))
def test_a_frame_is_never_believed_younger_than_at_its_arrival(
    mbps: list[float], sizes: list[int], rtt_ns: int, stamps: bool, noise_ns: int
) -> None:
    """And as links go whose rate is steady for a second: not older than it is either."""
    known = TransitEstimator()
    known.echoed(NOW_NS - rtt_ns, NOW_NS)
    link = ShapedLink(BandwidthTrace.per_second(mbps), NOW_NS)
    journey = Journey(link, known, rtt_ns, stamps=stamps, noise_ns=noise_ns)
    for number, size_bytes in enumerate(sizes):
        transit, arrival, _ = journey.carry(NOW_NS + number * 100 * MS, size_bytes)
        assert transit.captured_ns <= transit.sent_ns <= arrival.first_ns
        latest_ns = arrival.arrival_ns + SLO_NS - RETURN_ALLOWANCE_NS - transit.return_ns
        assert transit.compute_deadline_ns <= latest_ns


@given(rates, frame_sizes, st.data())
def test_whoever_looks_at_a_link_changes_nothing(
    mbps: list[float], sizes: list[int], data: st.DataObject
) -> None:
    """A look at the metrics or the page must not change what is planned."""
    looked_at, left_alone = TransitEstimator(), TransitEstimator()
    journeys = []
    for known in (looked_at, left_alone):
        known.echoed(NOW_NS - RTT_NS, NOW_NS)
        link = ShapedLink(BandwidthTrace.per_second(mbps), NOW_NS)
        journeys.append(Journey(link, known, RTT_NS))
    at_ns = NOW_NS
    for size_bytes in sizes:
        at_ns += data.draw(st.sampled_from([20 * MS, 100 * MS, 2 * S]))
        for later_ns in data.draw(st.lists(st.integers(0, 20 * S), max_size=2)):
            looked_at.state(at_ns + later_ns)
            looked_at.bandwidth.bps(at_ns + later_ns, size_bytes, at_ns)
            looked_at.bandwidth.newest()
        transits = [journey.carry(at_ns, size_bytes) for journey in journeys]
        assert transits[0] == transits[1]
        assert looked_at.state(at_ns) == left_alone.state(at_ns)


@given(st.floats(0.5, 200), frame_sizes, st.integers(0, 60 * MS), st.integers(0, 80 * MS))
def test_on_a_steady_link_the_capture_is_known(
    mbps: float, sizes: list[int], rtt_ns: int, encode_ns: int
) -> None:
    """To within what cannot be seen from here: one segment, and the drift of clocks."""
    known = TransitEstimator()
    known.echoed(NOW_NS - rtt_ns, NOW_NS)
    link = ShapedLink(BandwidthTrace.constant(mbps), NOW_NS)
    journey = Journey(link, known, rtt_ns, encode_ns=encode_ns)
    # Long enough that its clock is seen to run, at a rate that leaves the link idle.
    for number, size_bytes in enumerate([*sizes, *[30_000] * 4]):
        captured_ns = NOW_NS + number * 3 * S
        transit, _, _ = journey.carry(captured_ns, size_bytes)
    segment_ns = SEGMENT_BYTES * 8 / mbps * 1e3
    assert transit.captured_ns - captured_ns == pytest.approx(0, abs=segment_ns + 1.1 * MS)


def test_stamps_tell_how_long_a_frame_waited_in_its_camera() -> None:
    """Two frames at once every 200 ms at 4 Mbit/s: the second waits for the first."""
    waits_ms: dict[bool, list[float]] = {True: [], False: []}
    for stamps in (True, False):
        known = echoing()
        link = ShapedLink(BandwidthTrace.constant(4), NOW_NS)
        journey = Journey(link, known, RTT_NS, stamps=stamps)
        for number in range(40):
            at_ns = NOW_NS + number * 200 * MS
            journey.carry(at_ns, 20_000)
            transit, _, _ = journey.carry(at_ns, 20_000)
            waits_ms[stamps].append((transit.captured_ns - at_ns) / MS)
    assert waits_ms[True][-1] == pytest.approx(0, abs=1)
    assert waits_ms[False][-1] == pytest.approx(40, abs=1)


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), min_size=1, max_size=40))
def test_stamps_of_no_clock_say_nothing(stamps: list[tuple[int, int]]) -> None:
    """Nor does a camera gain by them: its frames only look older than they would without."""
    stamped, plain = echoing(), echoing()
    for number, pair in enumerate(stamps):
        captured_ns, sent_ns = sorted(pair)
        arrival = train(20_000, NOW_NS + number * 100 * MS, 20 * MS)
        of = stamped.frame_arrived(captured_ns, sent_ns, arrival, None, SLO_NS)
        without = plain.frame_arrived(0, 0, arrival, None, SLO_NS)
        assert of.captured_ns <= without.captured_ns
        assert of.compute_deadline_ns <= without.compute_deadline_ns


@pytest.mark.parametrize("ns_per_tick", [0, 1e-9, 1e-6, 1e-3, 1e3, 1e6])
def test_stamps_in_another_unit_do_no_harm(ns_per_tick: float) -> None:
    """They do not make frames look older, however long the camera streams."""
    known = echoing()
    for number in range(600):
        at_ns = NOW_NS + number * 100 * MS
        stamp = round(number * 100 * MS * ns_per_tick)
        arrival = train(20_000, at_ns, 20 * MS)
        transit = known.frame_arrived(stamp, stamp, arrival, None, SLO_NS)
        assert at_ns - transit.captured_ns < 20 * MS * 1.1 + RTT_NS


def test_a_camera_clock_that_is_set_back_is_followed_after_ten_seconds() -> None:
    known = echoing()
    ages_ms = []
    for number in range(300):
        at_ns = NOW_NS + number * 100 * MS
        set_back_ns = 3 * S if number >= 100 else 0
        stamp = at_ns - OFFSET_NS - 50 * MS - set_back_ns
        arrival = train(20_000, at_ns, 20 * MS)
        transit = known.frame_arrived(stamp, stamp, arrival, None, SLO_NS)
        ages_ms.append((at_ns - transit.captured_ns) / MS)
    assert ages_ms[99] < 50
    assert ages_ms[220] < 50


def test_the_round_trip_of_a_camera_without_clock_is_forgotten_in_time() -> None:
    known = TransitEstimator()
    assert known.rtt_ns is None
    known.echoed(NOW_NS, NOW_NS + 4 * MS)
    known.echoed(NOW_NS + S, NOW_NS + S + 9 * MS)
    assert known.rtt_ns == 4 * MS
    known.echoed(NOW_NS + 30 * S, NOW_NS + 30 * S + 12 * MS)
    assert known.rtt_ns == 9 * MS
    known.pong(NOW_NS + 32 * S, 0, NOW_NS + 32 * S + 20 * MS)
    assert known.rtt_ns == 20 * MS
