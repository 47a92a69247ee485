"""Where the first stage of a frame runs: on the box unless the camera is earlier by the margin."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.plans import Advice
from edgebox.domain.requests import StagePlacement
from edgebox.link.bandwidth import message_bytes
from edgebox.link.placement import (
    FRESH_NS,
    MARGIN_NS,
    Costs,
    PlacementCosts,
    PlacementMode,
    finish_ns,
    place,
)
from edgebox.link.sender import Decision, Send, SenderWindow, Skip, SkipReason

MS = 1_000_000
TIMES = st.integers(0, 500 * MS)
COSTS = st.builds(
    Costs,
    picture_bytes=st.floats(0, 1e6),
    encode_ns=TIMES,
    box_ns=TIMES,
    detections_bytes=st.floats(0, 1e5),
    detect_ns=TIMES,
    later_ns=TIMES,
)


def step_by_step(
    before_ns: int, backlog_bits: float, size_bytes: float, after_ns: int, bps: float
) -> float:
    """Follow one message: ready, the link free, left whole, answered."""
    at = float(before_ns)
    free = backlog_bits / bps * 1e9
    at = max(at, free)
    at += size_bytes * 8 / bps * 1e9
    return at + after_ns


@given(COSTS, st.floats(1e4, 1e9), st.floats(0, 1e6))
def test_the_earlier_finish_decides(costs: Costs, bps: float, backlog_bits: float) -> None:
    box = step_by_step(costs.encode_ns, backlog_bits, costs.picture_bytes, costs.box_ns, bps)
    camera = step_by_step(
        costs.detect_ns, backlog_bits, costs.detections_bytes, costs.later_ns, bps
    )
    for placement, wanted in ((StagePlacement.BOX, box), (StagePlacement.CAMERA, camera)):
        assert abs(finish_ns(costs, placement, bps, backlog_bits) - wanted) <= 1 + wanted * 1e-9
    if abs(camera + MARGIN_NS - box) > 10 + box * 1e-6:
        at_camera = place(costs, bps, backlog_bits) is StagePlacement.CAMERA
        assert at_camera == (camera + MARGIN_NS < box)


@given(COSTS, st.floats(1e4, 1e8), st.floats(1.0, 100.0), st.floats(0, 1e6))
def test_a_faster_link_never_moves_a_frame_to_the_camera(
    costs: Costs, bps: float, times: float, backlog_bits: float
) -> None:
    if costs.detections_bytes > costs.picture_bytes or costs.detect_ns < costs.encode_ns:
        return
    if place(costs, bps, backlog_bits) is StagePlacement.BOX:
        assert place(costs, bps * times, backlog_bits) is StagePlacement.BOX


def test_a_box_that_was_not_heard_of_for_long_is_tried_again() -> None:
    known = PlacementCosts(PlacementMode.AUTO, 50 * MS)
    known.answered(StagePlacement.BOX, 400 * MS, 1)
    assert known.costs(1e4, FRESH_NS).box_ns == 400 * MS
    assert known.costs(1e4, FRESH_NS).later_ns == 400 * MS, "nothing is known of later stages yet"
    known.answered(StagePlacement.CAMERA, 30 * MS, 2)
    assert known.costs(1e4, FRESH_NS).later_ns == 30 * MS
    assert known.costs(1e4, FRESH_NS + 5).box_ns == 0


def test_a_camera_that_sent_no_boxes_yet_tries_where_the_picture_is_small() -> None:
    known = PlacementCosts(PlacementMode.AUTO, 190 * MS)
    costs = known.costs(4_760, 1)
    assert place(costs, 99_000, 0) is StagePlacement.CAMERA, "boxes alone have a few bytes"
    known.detected(190 * MS, 4_000)
    assert place(known.costs(4_760, 2), 99_000, 0) is StagePlacement.BOX


ADVICE = Advice("street-608", 608, 352, 10.0, 85, 0, "")  # type: ignore[arg-type]
BYTES_PER_PIXEL = 0.3


def window(mode: PlacementMode, detect_ms: int = 60, slo_ms: int = 300) -> SenderWindow:
    sender = SenderWindow(1280, 720, slo_ms * MS, 10.0)
    sender.advised(ADVICE)
    sender.placement = PlacementCosts(mode, detect_ms * MS)
    return sender


def placed(decisions: list[Decision]) -> list[StagePlacement]:
    return [each.placement for each in decisions if isinstance(each, Send)]


def measured(sender: SenderWindow, bps: float) -> int:
    """Send a first frame over a link of this rate; return when its ack came."""
    sender.captured(1, 0, 0)
    size = round(message_bytes(BYTES_PER_PIXEL, 608 * 352))
    sender.encoded(1, size, 608 * 352, 0)
    now_ns = round(size * 8e9 / bps)
    sender.acknowledged(1, now_ns, 0)
    return now_ns


def test_pictures_go_to_the_box_on_a_fast_link_and_boxes_on_a_slow_one() -> None:
    for bps, wanted in ((50e6, StagePlacement.BOX), (1e6, StagePlacement.CAMERA)):
        sender = window(PlacementMode.AUTO, slo_ms=1000)
        now_ns = measured(sender, bps)
        assert placed(sender.captured(2, now_ns, now_ns)) == [wanted]


def test_modes_overrule_the_estimate() -> None:
    sender = window(PlacementMode.NEVER, slo_ms=1000)
    now_ns = measured(sender, 1e6)
    assert placed(sender.captured(2, now_ns, now_ns)) == [StagePlacement.BOX]
    sender = window(PlacementMode.ALWAYS)
    assert placed(sender.captured(1, 0, 0)) == [StagePlacement.CAMERA], "also the first frame"


def test_nothing_leaves_while_a_frame_is_detected_and_the_newest_waits() -> None:
    sender = window(PlacementMode.ALWAYS)
    assert placed(sender.captured(1, 0, 0)) == [StagePlacement.CAMERA]
    assert sender.captured(2, 100 * MS, 100 * MS) == []
    assert sender.captured(3, 200 * MS, 200 * MS) == [Skip(2, SkipReason.WINDOW)]
    decisions = sender.detected(1, 4_000, 210 * MS, 210 * MS)
    assert placed(decisions) == [StagePlacement.CAMERA]
    assert sender.unacknowledged == 1
    assert sender.sent_total == 1
    assert sender.detecting == 3
    assert sender.close() == [Skip(3, SkipReason.OFFLINE)]
    assert sender.detecting is None
    assert sender.detected(3, 4_000, 60 * MS, 270 * MS) == [], "it was counted already"
    assert sender.captured_total == sender.sent_total + sender.skipped.total()


def test_a_detected_frame_that_comes_too_late_is_not_sent() -> None:
    sender = window(PlacementMode.ALWAYS)
    now_ns = 0
    for number in range(1, 8):  # the link is learned: 4 kB take 320 ms
        sender.captured(number, now_ns, now_ns)
        sender.detected(number, 4_000, 50 * MS, now_ns + 50 * MS)
        sender.encoded(number, 4_000, 0, now_ns + 50 * MS)
        now_ns += 370 * MS
        sender.acknowledged(number, now_ns, 0)
    assert sender.skipped[SkipReason.INFEASIBLE] > 0
    assert sender.captured_total == sender.sent_total + sender.skipped.total()


def test_a_model_that_fails_costs_its_frame_only() -> None:
    sender = window(PlacementMode.ALWAYS)
    sender.captured(1, 0, 0)
    sender.captured(2, 100 * MS, 100 * MS)
    decisions = sender.detected(1, None, 0, 150 * MS)
    assert decisions[0] == Skip(1, SkipReason.FAILED)
    assert placed(decisions) == [StagePlacement.CAMERA]
    assert sender.detected(1, 100, 0, 160 * MS) == [], "a report of another frame is ignored"
