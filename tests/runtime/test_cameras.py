"""What the box knows of a camera: where frames lie on its clock, what was skipped, when to tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.models import VariantName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.plans import Advice
from edgebox.link.bandwidth import OVERHEAD_BYTES
from edgebox.link.messages import FrameHeader
from edgebox.runtime.cameras import CameraRecord, Hop
from tests.runtime.endings import MS, SECOND
from tests.scheduling.scene import camera

SLO_NS = 300 * MS
NOW_NS = 1_000 * SECOND
OFFSET_NS = 700 * SECOND
"""Box's clock minus camera's."""
RTT_NS = 10 * MS


def record() -> CameraRecord:
    return CameraRecord(camera(slo_ms=300), "test/1", None, None)


def with_clock(rtt_ns: int = RTT_NS) -> CameraRecord:
    """Return a camera whose clock is known: one exchange, just now."""
    known = record()
    assert not known.pong(NOW_NS - rtt_ns, NOW_NS - rtt_ns // 2 - OFFSET_NS, NOW_NS)
    return known


def header(captured_ns: int, sent_ns: int | None = None, total: int = 1) -> FrameHeader:
    """Return a header with instants on the camera's clock."""
    return FrameHeader(1, captured_ns, sent_ns or captured_ns, 1280, 720, total)


def arrive(known: CameraRecord, captured_ns: int, arrival_ns: int = NOW_NS, total: int = 1) -> Hop:
    return known.frame_arrived(header(captured_ns, total=total), 10_000, 90_000, arrival_ns)


@given(st.integers(0, 30 * SECOND))
def test_capture_is_placed_by_the_clock(age_ns: int) -> None:
    hop = arrive(with_clock(), NOW_NS - OFFSET_NS - age_ns)
    assert not hop.suspicious
    assert hop.captured_ns == NOW_NS - age_ns
    assert hop.return_ns == RTT_NS // 2


@given(st.integers(0, 5 * SECOND), st.integers(0, 200 * MS))
def test_the_deadline_leaves_time_for_the_way_back(age_ns: int, rtt_ns: int) -> None:
    hop = arrive(with_clock(rtt_ns), NOW_NS - OFFSET_NS - age_ns)
    left_ns = hop.captured_ns + SLO_NS - hop.deadline_ns
    assert left_ns == hop.return_ns + 2 * MS
    assert hop.return_ns == rtt_ns // 2


def told(known: CameraRecord, px: int, at_ns: int, reason: str = "because") -> None:
    variant = VariantName(f"street-{px}")
    known.advised(Advice(variant, px, px * 9 // 16, 10, 85, 0, reason), at_ns)


def test_a_frame_was_made_for_what_its_camera_knew_when_it_sent_it() -> None:
    known = with_clock()
    told(known, 256, NOW_NS - 300 * MS)
    told(known, 608, NOW_NS - 100 * MS)
    told(known, 608, NOW_NS - 50 * MS, "for another reason")

    def made_for(sent_ns: int) -> VariantName | None:
        sent_camera_ns = sent_ns - OFFSET_NS
        head = header(sent_camera_ns - 20 * MS, sent_camera_ns)
        return known.frame_arrived(head, 10_000, 90_000, NOW_NS).advised

    # The advice is half a round trip on its way.
    assert made_for(NOW_NS - 95 * MS) == VariantName("street-608")
    assert made_for(NOW_NS - 96 * MS) == VariantName("street-256")
    assert made_for(NOW_NS - 400 * MS) == VariantName("street-256")
    assert arrive(with_clock(), NOW_NS - OFFSET_NS).advised is None


def test_without_a_clock_what_a_frame_was_made_for_is_told_by_its_journey() -> None:
    known = record()
    told(known, 256, NOW_NS - 300 * MS)
    told(known, 608, NOW_NS - 100 * MS)
    assert arrive(known, 1).advised == VariantName("street-608")


@given(st.integers(1, 50 * MS))
def test_a_little_in_the_future_is_now(ahead_ns: int) -> None:
    hop = arrive(with_clock(), NOW_NS - OFFSET_NS + ahead_ns)
    assert not hop.suspicious
    assert hop.captured_ns == NOW_NS


@given(st.integers(51 * MS, 2**62 - NOW_NS) | st.integers(-(NOW_NS - OFFSET_NS), -30 * SECOND - 1))
def test_what_cannot_be_is_estimated_from_the_link(shift_ns: int) -> None:
    hop = arrive(with_clock(), NOW_NS - OFFSET_NS + shift_ns)
    assert hop.suspicious
    # Nothing is known of the bandwidth: the frame took at least half a round trip.
    assert hop.captured_ns == NOW_NS - RTT_NS // 2
    assert hop.deadline_ns > NOW_NS


def test_an_implausible_frame_teaches_nothing_about_the_link() -> None:
    known = with_clock()
    arrive(known, NOW_NS - OFFSET_NS + 3_600 * SECOND)
    assert known.bandwidth.bps(NOW_NS) is None
    arrive(known, NOW_NS - OFFSET_NS - 20 * MS)
    assert known.bandwidth.bps(NOW_NS) is not None


@given(st.integers(0, 2**62))
def test_without_a_clock_frames_were_captured_just_now(captured_ns: int) -> None:
    hop = arrive(record(), captured_ns)
    assert not hop.suspicious
    assert hop.captured_ns == NOW_NS
    assert hop.return_ns == 0
    assert hop.deadline_ns == NOW_NS + SLO_NS - 2 * MS


def test_without_a_clock_the_bandwidth_tells_how_old_a_frame_is() -> None:
    known = with_clock()
    for number in range(10):  # 80,000 bits in 100 ms, beside half a round trip
        at_ns = NOW_NS + number * 100 * MS
        captured_ns = at_ns - OFFSET_NS - 100 * MS - RTT_NS // 2
        arrive(known, captured_ns, at_ns, total=number + 1)
    at_ns = NOW_NS + SECOND
    hop = arrive(known, at_ns - OFFSET_NS + 3_600 * SECOND, at_ns, total=11)
    assert hop.suspicious
    assert at_ns - hop.captured_ns == pytest.approx(100 * MS + RTT_NS // 2, rel=0.1)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_skipped_frames_are_counted_once(facts: list[tuple[bool, int]]) -> None:
    """Headers and reports tell of the same skips, in any order; both only ever rise."""
    known = record()
    counted = skipped = sent = 0
    for is_frame, more in facts:
        skipped += more
        if is_frame:
            sent += 1
            counted += arrive(known, 0, total=sent + skipped).skipped
        else:
            counted += known.skipped_news(skipped)
        assert counted == skipped
    assert known.skipped_news(0) == 0


def test_totals_that_fall_or_lie_cannot_undo_a_count() -> None:
    known = record()
    assert arrive(known, 0, total=5).skipped == 4
    assert arrive(known, 0, total=0).skipped == 0
    assert known.skipped_news(3) == 0
    assert known.skipped_news(6) == 2


def test_the_core_hears_of_a_link_five_times_a_second() -> None:
    known = with_clock()
    heard = []
    for number in range(100):  # a steady camera of 100 Hz for a second
        at_ns = NOW_NS + number * 10 * MS
        arrive(known, at_ns - OFFSET_NS - 7 * MS, at_ns, total=number + 1)
        if (link := known.link_news(at_ns)) is not None:
            heard.append((at_ns, link))
    assert 4 <= len(heard) <= 7
    assert heard[0][1].rtt_ns == RTT_NS
    assert heard[-1][1].bytes_per_pixel == pytest.approx(
        (10_000 - OVERHEAD_BYTES) / 90_000 * (90_000 / 65_536) ** 0.14
    )


def test_a_bandwidth_that_falls_is_told_soon() -> None:
    known = with_clock()
    for number in range(20):
        at_ns = NOW_NS + number * 25 * MS
        arrive(known, at_ns - OFFSET_NS - 10 * MS, at_ns, total=number + 1)
        known.link_news(at_ns)
    before = known.bandwidth.bps(at_ns)
    # The next frame takes ten times as long and arrives right after the core was told.
    late_ns = at_ns + 110 * MS
    arrive(known, late_ns - OFFSET_NS - 105 * MS, late_ns, total=21)
    link = known.link_news(late_ns)
    assert link is not None
    assert before is not None
    assert link.bandwidth_bps is not None
    assert link.bandwidth_bps < 0.7 * before


def test_nothing_new_is_not_told() -> None:
    known = with_clock()
    arrive(known, NOW_NS - OFFSET_NS - 10 * MS)
    assert known.link_news(NOW_NS) is not None
    assert known.link_news(NOW_NS) is None
    assert known.link_news(NOW_NS + 10 * MS) is None


def test_widths_are_remembered_when_they_change() -> None:
    known = record()
    for at_s, width_px in enumerate((320, 320, 256, 256, 320)):
        advice = Advice(VariantName("v"), width_px, 144, 10, 85, 0, "because")
        known.advised(advice, at_s * SECOND)
        assert known.advice == advice
    assert list(known.width_history) == [(0, 320), (2 * SECOND, 256), (4 * SECOND, 320)]


def test_the_link_history_has_one_figure_a_second() -> None:
    known = with_clock()
    for number in range(1_000):
        at_ns = NOW_NS + number * 100 * MS
        arrive(known, at_ns - OFFSET_NS - 10 * MS, at_ns, total=number + 1)
    seconds = [second for second, _ in known.link_history]
    assert len(seconds) == 60
    assert seconds == sorted(set(seconds))


def test_a_clock_that_jumps_is_followed_from_the_next_exchange_on() -> None:
    known = with_clock()
    hour_ns = 3_600 * SECOND
    at_ns = NOW_NS + SECOND
    assert arrive(known, at_ns - OFFSET_NS + hour_ns, at_ns).suspicious
    assert known.pong(at_ns, at_ns + RTT_NS // 2 - OFFSET_NS + hour_ns, at_ns + RTT_NS)
    at_ns += RTT_NS
    hop = arrive(known, at_ns - OFFSET_NS + hour_ns - 20 * MS, at_ns, total=2)
    assert not hop.suspicious
    assert hop.captured_ns == at_ns - 20 * MS


def test_a_deadline_that_is_set_on_the_box_counts_from_the_next_frame_on() -> None:
    known = with_clock()
    hello_ns = arrive(known, NOW_NS - OFFSET_NS - 50 * MS).deadline_ns
    known.override(Overrides(slo_ns=200 * MS))
    assert known.slo_ms == 200
    assert arrive(known, NOW_NS - OFFSET_NS - 50 * MS).deadline_ns == hello_ns - 100 * MS
    known.override(NOTHING_SET)
    assert known.slo_ms is None
    assert arrive(known, NOW_NS - OFFSET_NS - 50 * MS).deadline_ns == hello_ns
