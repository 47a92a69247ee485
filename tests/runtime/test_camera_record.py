"""What the box knows of a camera: what was skipped, what it was told, what is set for it."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.plans import Advice
from edgebox.domain.requests import SiteId
from edgebox.link.messages import FrameHeader
from edgebox.link.transit import FrameArrival
from edgebox.runtime.camera_record import CameraRecord, FrameUpdate
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
    assert not known.link.pong(NOW_NS - rtt_ns, NOW_NS - rtt_ns // 2 - OFFSET_NS, NOW_NS)
    return known


def header(captured_ns: int, sent_ns: int | None = None, total: int = 1) -> FrameHeader:
    """Return a header with instants on the camera's clock."""
    return FrameHeader(1, captured_ns, sent_ns or captured_ns, 1280, 720, total)


def arrive(
    known: CameraRecord, captured_ns: int, arrival_ns: int = NOW_NS, total: int = 1
) -> FrameUpdate:
    arrival = FrameArrival.at_once(10_000, arrival_ns)
    return known.frame_arrived(header(captured_ns, total=total), arrival, 90_000)


def advise(known: CameraRecord, px: int, at_ns: int, reason: str = "because") -> None:
    variant = VariantName(f"street-{px}")
    known.advised(Advice(variant, px, px * 9 // 16, 10, 85, 0, reason), at_ns)


def test_a_frame_was_made_for_what_its_camera_knew_when_it_sent_it() -> None:
    known = with_clock()
    advise(known, 256, NOW_NS - 300 * MS)
    advise(known, 608, NOW_NS - 100 * MS)
    advise(known, 608, NOW_NS - 50 * MS, "for another reason")

    def made_for(sent_ns: int) -> VariantName | None:
        sent_camera_ns = sent_ns - OFFSET_NS
        head = header(sent_camera_ns - 20 * MS, sent_camera_ns)
        return known.frame_arrived(head, FrameArrival.at_once(10_000, NOW_NS), 90_000).advised

    # The advice is half a round trip on its way.
    assert made_for(NOW_NS - 95 * MS) == VariantName("street-608")
    assert made_for(NOW_NS - 96 * MS) == VariantName("street-256")
    assert made_for(NOW_NS - 400 * MS) == VariantName("street-256")
    assert arrive(with_clock(), NOW_NS - OFFSET_NS).advised is None


def test_without_a_clock_what_a_frame_was_made_for_is_told_by_its_journey() -> None:
    known = record()
    advise(known, 256, NOW_NS - 300 * MS)
    advise(known, 608, NOW_NS - 100 * MS)
    assert arrive(known, 1).advised == VariantName("street-608")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_skipped_frames_are_counted_once(facts: list[tuple[bool, int]]) -> None:
    """Headers and reports tell of the same skips, in any order; both only ever rise."""
    known = record()
    counted = skipped = sent = 0
    for is_frame, more in facts:
        skipped += more
        if is_frame:
            sent += 1
            counted += arrive(known, 0, total=sent + skipped).skipped.total
        else:
            counted += known.reported(skipped, NOW_NS).total
        assert counted == skipped
    assert known.reported(0, NOW_NS).total == 0


def test_totals_that_fall_or_lie_cannot_undo_a_count() -> None:
    known = record()
    assert arrive(known, 0, total=5).skipped.total == 4
    assert arrive(known, 0, total=0).skipped.total == 0
    assert known.reported(3, NOW_NS).total == 0
    assert known.reported(6, NOW_NS).total == 2


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


def test_a_deadline_that_is_set_on_the_box_counts_from_the_next_frame_on() -> None:
    known = with_clock()

    def deadline_ns() -> int:
        return arrive(known, NOW_NS - OFFSET_NS - 50 * MS).transit.compute_deadline_ns

    hello_ns = deadline_ns()
    known.override(Overrides(slo_ns=200 * MS))
    assert known.slo_ms == 200
    assert deadline_ns() == hello_ns - 100 * MS
    known.override(NOTHING_SET)
    assert known.slo_ms is None
    assert deadline_ns() == hello_ns


def test_no_more_frames_were_skipped_than_can_have_been_captured() -> None:
    known = record()
    known.opened_ns = NOW_NS
    claimed = 16 * (2**53 - 1)
    assert known.reported(claimed, NOW_NS).total == 1_000
    assert known.reported(claimed, NOW_NS).total == 0
    assert known.reported(claimed, NOW_NS + 2 * SECOND).total == 2_000
    head = header(NOW_NS, total=2**32 - 1)
    later = FrameArrival.at_once(10_000, NOW_NS + 3 * SECOND)
    # It is a captured frame itself.
    assert known.frame_arrived(head, later, 90_000).skipped.total == 999


@given(st.integers(2, 9), st.integers(5, 30), st.integers(0, 8))
def test_pictures_that_come_several_at_once_were_not_ordered_to_be_left_out(
    together: int, rate_hz: int, used: int
) -> None:
    """Of a source whose pictures are fetched in bursts, all but one are replaced by newer ones."""
    known = CameraRecord(camera(slo_ms=300, rate_hz=rate_hz), "test/1", None, None)
    period_ns, used = SECOND // rate_hz, min(used, together - 1)
    known.link.pong(NOW_NS, NOW_NS, NOW_NS)
    captured = sent = reported_s = ordered = 0
    while (now_ns := NOW_NS + captured * period_ns) < NOW_NS + 60 * SECOND:
        first_ns = now_ns - (together - 1) * period_ns
        sent += 1
        used_ns = first_ns + used * period_ns
        update = arrive(known, used_ns, now_ns, total=captured + used + 1)
        ordered += update.skipped.ordered
        captured += together
        if (now_ns - NOW_NS) // SECOND > reported_s:
            reported_s = (now_ns - NOW_NS) // SECOND
            ordered += known.reported(captured - sent, now_ns, now_ns).ordered
    assert ordered <= 2


def test_a_report_of_nothing_new_changes_no_account() -> None:
    known = record()
    arrive(known, NOW_NS, NOW_NS)
    assert known.reported(0, NOW_NS + 5 * SECOND).ordered == 0
    # Ten captured in the second before; the plan asked for them all.
    assert known.reported(9, NOW_NS + 5 * SECOND).ordered == 0


def test_a_camera_whose_pictures_the_box_fetches_is_of_no_site() -> None:
    yard = Overrides(site=SiteId("yard"))
    sends, fetched = (
        CameraRecord(camera(), "test/1", None, None, overrides=yard, pulled=pulled)
        for pulled in (False, True)
    )
    assert (sends.camera.site, fetched.camera.site) == ("yard", None)
    assert fetched.overrides == yard
