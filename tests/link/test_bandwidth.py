"""The estimate against generated links whose rate is known."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.bandwidth import (
    NOISE_NS,
    SAMPLES_MIN,
    STALE_NS,
    WINDOW_NS,
    BandwidthEstimate,
    BytesPerPixel,
    EstimatorKind,
    message_bytes,
)
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.link.throughput_samples import BUSY_MIN_NS

S = 1_000_000_000
MS = 1_000_000


@dataclass
class Link:
    """Serialises frames at a rate, then takes `base_ns` to deliver; noise delays what is seen."""

    bps: float
    base_ns: int = 0
    free_ns: int = 0
    estimate: BandwidthEstimate = field(default_factory=BandwidthEstimate)

    def carry(self, sent_ns: int, size_bytes: int, noise_ns: int = 0) -> int:
        """Send a frame; return when its arrival was noticed."""
        self.free_ns = max(self.free_ns, sent_ns) + round(size_bytes * 8 / self.bps * 1e9)
        arrival_ns = self.free_ns + self.base_ns + noise_ns
        self.estimate.add(size_bytes, sent_ns, arrival_ns, self.base_ns)
        return arrival_ns


def test_knows_nothing_at_first_and_forgets_in_the_end() -> None:
    estimate = BandwidthEstimate()
    assert estimate.bps(0) is None
    estimate.add(10_000, 0, 100 * MS)
    assert estimate.bps(100 * MS) == pytest.approx(800_000)
    assert estimate.bps(100 * MS + STALE_NS - 1) == pytest.approx(800_000)
    assert estimate.bps(100 * MS + STALE_NS) is None


def test_the_mean_of_equal_frames_is_harmonic() -> None:
    estimate = BandwidthEstimate(noise_ns=0)
    arrivals_ms = (100, 150, 350)  # 0.8, 1.6, 0.4 Mbit/s, back to back
    for sent_ms, arrival_ms in zip((0, 50, 60), arrivals_ms, strict=True):
        estimate.add(10_000, sent_ms * MS, arrival_ms * MS)
    harmonic = 3 / (1 / 0.8e6 + 1 / 1.6e6 + 1 / 0.4e6)
    # The last sample (0.4 Mbit/s) caps it.
    assert estimate.bps(350 * MS) == pytest.approx(0.4e6)
    estimate.add(10_000, 400 * MS, 410 * MS)
    harmonic = 4 / (1 / 0.8e6 + 1 / 1.6e6 + 1 / 0.4e6 + 1 / 8e6)
    assert estimate.bps(410 * MS) == pytest.approx(harmonic)


def test_only_the_last_second_counts_but_always_a_few_frames() -> None:
    link = Link(1e6)
    for number in range(10):
        link.carry(number * 100 * MS, 10_000)
    link.bps = 4e6
    for number in range(10, 22):
        link.carry(number * 100 * MS, 10_000)
    assert link.estimate.bps(2200 * MS) == pytest.approx(4e6)
    # 5 s later none is of the last second; the newest few still say something.
    assert link.estimate.bps(7 * S) == pytest.approx(4e6)
    assert SAMPLES_MIN <= 12


def test_an_overdue_frame_lowers_the_estimate_before_it_arrives() -> None:
    link = Link(8e6)
    for number in range(5):
        link.carry(number * 100 * MS, 20_000)
    now_ns = 500 * MS
    assert link.estimate.bps(now_ns + 20 * MS, 20_000, now_ns) == pytest.approx(8e6)
    overdue = link.estimate.bps(now_ns + 163 * MS, 20_000, now_ns)
    assert overdue == pytest.approx(1e6)


@given(
    mbps=st.floats(0.2, 100),
    base_ns=st.integers(0, 150 * MS),
    rate_hz=st.sampled_from((2, 5, 10, 30)),
    sizes=st.lists(st.integers(6_000, 120_000), min_size=4, max_size=40),
)
def test_converges_on_a_constant_link(
    mbps: float, base_ns: int, rate_hz: int, sizes: list[int]
) -> None:
    link = Link(mbps * 1e6, base_ns)
    now_ns = 0
    for number, size in enumerate(sizes):
        now_ns = link.carry(number * S // rate_hz, size)
    estimate = link.estimate.bps(now_ns)
    assert estimate is not None
    # Exact, but for frames so short that they count as the shortest that is believed.
    shortest_ns = min(sizes) * 8 / mbps * 1e3
    assert shortest_ns > BUSY_MIN_NS
    assert estimate == pytest.approx(mbps * 1e6, rel=0.01)


@given(
    mbps=st.floats(0.2, 20),
    frame_ms=st.floats(40, 120),
    noises_ns=st.lists(st.integers(0, NOISE_NS), min_size=4, max_size=30),
)
def test_noise_costs_at_most_a_tenth_when_frames_take_long(
    mbps: float, frame_ms: float, noises_ns: list[int]
) -> None:
    link = Link(mbps * 1e6, 5 * MS)
    size = round(mbps * 1e6 * frame_ms / 8e3)
    now_ns = 0
    for number, noise_ns in enumerate(noises_ns):
        now_ns = link.carry(number * 100 * MS, size, noise_ns)
    estimate = link.estimate.bps(now_ns)
    assert estimate is not None
    assert 0.9 * mbps * 1e6 <= estimate <= 1.1 * mbps * 1e6


@given(
    before_mbps=st.floats(2, 50),
    factor=st.floats(0.05, 0.8),
    rate_hz=st.sampled_from((5, 10, 20)),
)
def test_follows_a_step_down_within_two_frames(
    before_mbps: float, factor: float, rate_hz: int
) -> None:
    period_ns = S // rate_hz
    size = 40_000
    link = Link(before_mbps * 1e6, 5 * MS)
    for number in range(20):
        link.carry(number * period_ns, size)
    link.bps = before_mbps * factor * 1e6
    now_ns = 0
    for number in range(20, 22):
        now_ns = link.carry(number * period_ns, size)
    estimate = link.estimate.bps(now_ns)
    assert estimate is not None
    busy_ns = size * 8 / link.bps * 1e9
    forgiven = busy_ns / max(busy_ns - NOISE_NS, BUSY_MIN_NS)
    assert estimate <= link.bps * forgiven * 1.001
    assert estimate >= link.bps * 0.9


@given(
    sizes=st.lists(st.integers(1_500, 60_000), min_size=10, max_size=60),
    noises_ns=st.data(),
)
def test_small_frames_on_a_fast_link_do_not_look_slow(
    sizes: list[int], noises_ns: st.DataObject
) -> None:
    # Loopback: 1 Gbit/s, and every tenth arrival noticed up to 3 ms late.
    link = Link(1e9, 50_000)
    now_ns = 0
    for number, size in enumerate(sizes):
        late = noises_ns.draw(st.integers(0, NOISE_NS)) if number % 10 == 3 else 0
        now_ns = link.carry(number * 33 * MS, size, late)
    estimate = link.estimate.bps(now_ns)
    assert estimate is not None
    assert estimate > 1_500 * 8 / (NOISE_NS / 1e9)  # what one small frame alone would allow


@given(
    frames=st.lists(
        st.tuples(st.integers(1, 10**6), st.integers(0, S), st.integers(0, S), st.integers(0, S)),
        min_size=1,
        max_size=20,
    )
)
def test_whatever_the_clocks_say_the_estimate_is_a_sane_number(
    frames: list[tuple[int, int, int, int]],
) -> None:
    estimate = BandwidthEstimate()
    arrival_ns = 0
    for size, sent_ns, gap_ns, base_ns in frames:
        arrival_ns += gap_ns
        estimate.add(size, sent_ns, arrival_ns, base_ns)
        bps = estimate.bps(arrival_ns, waiting_bytes=size, waiting_since_ns=sent_ns)
        assert bps is not None
        assert 0 < bps <= 10**6 * 8 / (BUSY_MIN_NS / 1e9)


@given(weights=st.lists(st.floats(0.05, 2), min_size=1, max_size=100), px=st.integers(64, 2000))
def test_bytes_per_pixel_is_a_high_quantile_of_recent_frames(weights: list[float], px: int) -> None:
    learner = BytesPerPixel(quantile=0.9, frames_max=20)
    assert learner.value() is None
    sizes = [round(message_bytes(weight, px * px)) for weight in weights]
    for size in sizes:
        learner.add(size, px * px)
    value = learner.value()
    assert value is not None
    recent = sizes[-20:]
    predicted = message_bytes(value, px * px)
    assert sum(size <= predicted + 0.5 for size in recent) >= 0.9 * len(recent)
    assert min(abs(size - predicted) for size in recent) < 0.5


@given(
    bytes_per_pixel=st.floats(0.1, 1),
    exponent=st.floats(0.1, 0.2),
    learnt_px=st.sampled_from((128, 256, 416, 608)),
    asked_px=st.sampled_from((128, 256, 416, 608)),
)
def test_what_one_size_weighed_tells_what_another_will(
    bytes_per_pixel: float, exponent: float, learnt_px: int, asked_px: int
) -> None:
    def really(px: int) -> int:
        heavier: float = (px * px / 65_536) ** -exponent
        return 660 + round(bytes_per_pixel * px * px * heavier)

    learner = BytesPerPixel()
    learner.add(really(learnt_px), learnt_px * learnt_px)
    value = learner.value()
    assert value is not None
    # The learner takes 0.14 for the exponent: at 0.2 and 22.6 times the pixels that is 21 %.
    assert message_bytes(value, asked_px * asked_px) == pytest.approx(really(asked_px), rel=0.21)


rules = st.sampled_from(list(EstimatorKind))
links = st.builds(
    BandwidthTrace.stepwise,
    st.lists(st.floats(0.5, 60), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.4, 1.0, 2.5]),
)


@given(
    rule=rules,
    trace=links,
    rate_hz=st.sampled_from((5, 10, 25)),
    sizes=st.lists(st.integers(10_000, 60_000), min_size=5, max_size=60),
)
def test_no_rule_believes_more_than_the_link_ever_carried_in_its_window(
    rule: EstimatorKind, trace: BandwidthTrace, rate_hz: int, sizes: list[int]
) -> None:
    link, estimate = ShapedLink(trace, 0), BandwidthEstimate(rule=rule)
    carried: list[tuple[int, int]] = []
    for number, size in enumerate(sizes):
        sent_ns = link.free_ns(number * S // rate_hz)
        arrival_ns = link.leaves_ns(sent_ns, size)
        estimate.add(size, sent_ns, arrival_ns)
        carried.append((sent_ns, arrival_ns))
        window = [span for span in carried if span[1] > arrival_ns - WINDOW_NS]
        if len(window) < SAMPLES_MIN:
            window = carried[-SAMPLES_MIN:]
        means = [link.mean_bps(*span) for span in window]
        bps = estimate.bps(arrival_ns)
        assert bps is not None
        # Instants are whole nanoseconds; nothing else is forgiven.
        assert bps <= max(means) * 1.0001
        if rule is not EstimatorKind.CAUTIOUS or means[-1] >= max(means):
            assert bps >= min(means) * 0.9999


@given(
    rule=rules,
    before_mbps=st.floats(1, 60),
    after_mbps=st.floats(1, 60),
    rate_hz=st.sampled_from((8, 15, 25)),
)
def test_every_rule_is_right_a_window_after_a_step(
    rule: EstimatorKind, before_mbps: float, after_mbps: float, rate_hz: int
) -> None:
    trace = BandwidthTrace((0, 2 * S), (before_mbps * 1e6, after_mbps * 1e6), 100 * S)
    link, estimate = ShapedLink(trace, 0), BandwidthEstimate(rule=rule)
    # What a camera that adapts would send: half of what the slower of the two carries.
    size = round(min(before_mbps, after_mbps) * 1e6 / 8 / rate_hz / 2)
    arrival_ns = 0
    for number in range(5 * rate_hz):
        sent_ns = number * S // rate_hz
        arrival_ns = link.leaves_ns(sent_ns, size)
        estimate.add(size, sent_ns, arrival_ns)
        if sent_ns > 2 * S + WINDOW_NS:
            assert estimate.bps(arrival_ns) == pytest.approx(after_mbps * 1e6, rel=0.001)


def test_rules_differ_as_they_say() -> None:
    def believed(rule: EstimatorKind) -> float | None:
        estimate = BandwidthEstimate(noise_ns=0, rule=rule)
        for number, busy_ms in enumerate((40, 10, 20)):
            estimate.add(10_000, number * 100 * MS, number * 100 * MS + busy_ms * MS)
        return estimate.bps(300 * MS)

    assert believed(EstimatorKind.LAST) == pytest.approx(4e6)
    assert believed(EstimatorKind.LEAST) == pytest.approx(2e6)
    assert believed(EstimatorKind.HARMONIC) == pytest.approx(3 / (1 / 2e6 + 1 / 8e6 + 1 / 4e6))
    assert believed(EstimatorKind.CAUTIOUS) == pytest.approx(3 / (1 / 2e6 + 1 / 8e6 + 1 / 4e6))


def carried_for(seconds: int, rates_mbps: Sequence[float], per_second: int = 10) -> Link:
    """Send frames that take a fifth of a period at 10 Mbit/s; the rate changes every second."""
    of = Link(0.0)
    for frame in range(seconds * per_second):
        second, number = divmod(frame, per_second)
        of.bps = rates_mbps[second % len(rates_mbps)] * 1e6
        sent_ns = second * S + number * S // per_second
        of.carry(sent_ns, 250_000 // per_second)
        of.estimate.bps(of.free_ns)
    return of


def test_nothing_is_said_of_how_steady_a_link_is_before_five_seconds() -> None:
    assert BandwidthEstimate().throughput_stability() is None
    assert carried_for(4, [10]).estimate.throughput_stability() is None
    assert carried_for(5, [10]).estimate.throughput_stability() == 1.0


@given(st.floats(0.3, 0.9), st.integers(12, 60), st.integers(5, 30))
def test_a_link_that_falls_again_and_again_is_known_for_it(
    share: float, seconds: int, per_second: int
) -> None:
    of = carried_for(seconds, [10.0, 10.0 * share], per_second)
    stability = of.estimate.throughput_stability()
    assert stability is not None
    # Frames are forgiven a few ms of noise, and the mean that the first slow frame of a second is
    # measured against still has one of the slow second before.
    takes_ns = 250_000 // per_second * 8 / (share * 10e6) * 1e9
    fell_to = min(1.0, share * takes_ns / (takes_ns - NOISE_NS))
    assert fell_to - 1e-3 <= stability <= min(1.0, 1.5 * fell_to)


def test_one_drop_says_nothing_of_the_next() -> None:
    falls_once = carried_for(20, [10.0] * 12 + [5.0] * 8)
    assert falls_once.estimate.throughput_stability() == pytest.approx(1.0)


@given(st.lists(st.floats(0.2, 50), min_size=5, max_size=40))
def test_steadiness_is_a_share(rates_mbps: list[float]) -> None:
    stability = carried_for(len(rates_mbps), rates_mbps).estimate.throughput_stability()
    assert stability is not None
    assert 0 < stability <= 1


Question = tuple[int, int, int]
"""How far from the last arrival, ns; bytes of a frame that waits; for how long, ns."""
questions = st.lists(
    st.tuples(st.integers(-2 * S, 40 * S), st.integers(0, 100_000), st.integers(0, 2 * S)),
    max_size=3,
)


@given(
    st.lists(st.tuples(st.integers(1, 200_000), st.integers(1, 3 * S), questions), max_size=40),
    questions,
    st.sampled_from(EstimatorKind),
)
def test_questions_change_nothing(
    frames: list[tuple[int, int, list[Question]]], at_last: list[Question], rule: EstimatorKind
) -> None:
    """Whoever asks in between, and however often: each later answer is the same."""
    left_alone, queried = BandwidthEstimate(rule=rule), BandwidthEstimate(rule=rule)
    now_ns = 0
    for size_bytes, took_ns, meanwhile in frames:
        sent_ns, now_ns = now_ns, now_ns + took_ns
        left_alone.add(size_bytes, sent_ns, now_ns)
        queried.add(size_bytes, sent_ns, now_ns)
        for ahead_ns, waiting_bytes, waited_ns in meanwhile:
            queried.bps(now_ns + ahead_ns, waiting_bytes, now_ns + ahead_ns - waited_ns)
            queried.throughput_stability()
            queried.newest()
    for ahead_ns, waiting_bytes, waited_ns in at_last:
        at_ns = now_ns + ahead_ns
        wanted = left_alone.bps(at_ns, waiting_bytes, at_ns - waited_ns)
        assert queried.bps(at_ns, waiting_bytes, at_ns - waited_ns) == wanted
    assert queried.throughput_stability() == left_alone.throughput_stability()
    assert queried.newest() == left_alone.newest()


def test_a_scrape_does_not_change_how_steady_a_link_is_believed_to_be() -> None:
    scraped, alone = carried_for(20, [10.0, 6.0]), Link(0.0)
    for frame in range(200):
        second, number = divmod(frame, 10)
        alone.bps = (10e6, 6e6)[second % 2]
        alone.carry(second * S + number * S // 10, 25_000)
    assert alone.estimate.throughput_stability() == scraped.estimate.throughput_stability() != 1.0
