"""Frames are counted right after any sequence of events, duplicates and unknown frames included."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgebox.camera.accounting import LOST, RECENT_NS, Accounting
from edgebox.camera.records import FrameRecord, HandedOver
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason, Outcome, UtilityStep
from edgebox.link.messages import DropNotice, Report, Result, Timing, WireDetection
from edgebox.link.sender import SkipReason
from tests.camera.box import advice

MS = 1_000_000
ADVICE = advice()


def result(frame: int, variant: str = "street-256") -> Result:
    seen = (WireDetection("car", 0.9, (0, 0, 1, 1)), WireDetection("bus", 0.8, (0, 0, 1, 1)))
    return Result(frame, Outcome.ON_TIME, variant, seen, Timing(4, 3, 2, 1, 10, 1), ADVICE)


def handed_over(frame: int, width_px: int, size_bytes: int) -> HandedOver:
    return HandedOver(frame, width_px, width_px // 2, size_bytes, 20 * MS, 5 * MS)


def test_late_answers_are_worth_what_their_step_says() -> None:
    accounting = Accounting(100 * MS, [UtilityStep(200 * MS, 0.5), UtilityStep(400 * MS, 0.2)])
    for frame, took_ms in enumerate((100, 150, 200, 300, 401)):
        accounting.captured(frame, 0)
        accounting.answered(result(frame), took_ms * MS)
    summary = accounting.summary("gate", 1.0)
    assert (summary.on_time, summary.late) == (1, 4)
    assert summary.utility == 1 + 0.5 + 0.5 + 0.2
    assert summary.later == ((200, 0.5), (400, 0.2))


def drop(frame: int, reason: DropReason) -> DropNotice:
    return DropNotice(frame, reason, "", ADVICE)


def test_a_run_in_figures() -> None:
    accounting = Accounting(slo_ns=100 * MS)
    accounting.connected()
    for frame in range(1, 7):
        accounting.captured(frame, frame * 10 * MS)
    for frame, width in ((1, 256), (2, 256), (3, 128), (4, 160)):
        accounting.sent(handed_over(frame, width, 1000 * frame))
    accounting.skipped(5, SkipReason.WINDOW, 70 * MS)
    for frame in (1, 2, 4):
        accounting.acked(frame, True, 80 * MS)
    accounting.acked(3, False, 80 * MS)
    accounting.dropped(drop(3, DropReason.QUEUE), 85 * MS)
    assert accounting.answered(result(1), 110 * MS) == 30 * MS  # exactly at its deadline
    assert accounting.answered(result(2, "street-128"), 121 * MS) == 41 * MS  # 1 ms after it
    assert accounting.answered(result(2), 122 * MS) is None
    assert accounting.report() == Report(
        captured=6, sent=4, skipped={"window": 1}, on_time=1, late=1
    )
    before = accounting.summary("gate", 1.0)
    assert before.pending == 2
    accounting.lost(200 * MS)
    summary = accounting.summary("gate", 1.23456)
    assert summary == replace(
        before,
        pending=0,
        duration_s=1.235,
        dropped={"sender": 2, "queue": 1, LOST: 1},
        skipped={"window": 1, "offline": 1},
    )
    assert (summary.captured, summary.sent, summary.accepted) == (6, 4, 3)
    assert (summary.on_time, summary.late, summary.on_time_share) == (1, 1, round(1 / 6, 4))
    assert summary.width_sent_mean_px == 200
    assert summary.bytes_sent == 10_000
    assert summary.variants == {"street-256": 1, "street-128": 1}
    assert summary.detections == {"car": 2, "bus": 2}
    assert summary.latency_ms["total"] == {"p50": 100, "p90": 101, "p99": 101, "max": 101}
    assert summary.latency_ms["queue"]["max"] == 3
    assert summary.to_json()["on_time"] == 1


def test_a_record_says_how_a_frame_was_sent_and_how_it_ended() -> None:
    records: list[FrameRecord] = []
    accounting = Accounting(100 * MS, on_end=records.append)
    for frame in (1, 2, 3):
        accounting.captured(frame, 10 * MS)
    accounting.skipped(3, SkipReason.WINDOW, 15 * MS)
    accounting.sent(handed_over(1, 256, 9000), VariantName("street-320"))
    accounting.acked(1, True, 40 * MS)
    accounting.answered(result(1), 60 * MS)
    accounting.sent(handed_over(2, 128, 3000))
    accounting.lost(200 * MS)
    skipped, answered, lost = [record.to_json() for record in records]
    assert answered == {
        "frame": 1,
        "captured_ns": 10 * MS,
        "ended_ns": 60 * MS,
        "outcome": "on_time",
        "reason": None,
        "width_px": 256,
        "height_px": 128,
        "size_bytes": 9000,
        "encode_ms": 5.0,
        "sent_ns": 20 * MS,
        "placement": "box",
        "advised": "street-320",
        "acked_ns": 40 * MS,
        "variant": "street-256",
        "timing_ms": result(1).timing.to_json(),
    }
    assert (skipped["outcome"], skipped["reason"]) == ("dropped", "sender:window")
    assert skipped["width_px"] is skipped["sent_ns"] is skipped["variant"] is None
    assert (lost["outcome"], lost["reason"], lost["width_px"]) == ("dropped", LOST, 128)


def test_reports_count_from_the_last_hello() -> None:
    accounting = Accounting(slo_ns=100 * MS)
    accounting.connected()
    accounting.captured(1, 0)
    accounting.skipped(1, SkipReason.RATE, 0)
    accounting.connected()
    accounting.captured(2, 0)
    accounting.sent(handed_over(2, 100, 1))
    accounting.answered(result(2), 1 * MS)
    assert accounting.report() == Report(captured=1, sent=1, skipped={}, on_time=1, late=0)


def test_recent_figures_forget() -> None:
    accounting = Accounting(slo_ns=100 * MS)
    assert accounting.recent(0) == (None, None)
    for frame in range(4):
        accounting.captured(frame, 0)
    accounting.answered(result(0), 50 * MS)
    accounting.answered(result(1), 150 * MS)
    accounting.skipped(2, SkipReason.WINDOW, 150 * MS)
    accounting.skipped(3, SkipReason.RATE, 150 * MS)  # as the plan wants it: no miss
    assert accounting.recent(200 * MS) == (1 / 3, 150.0)
    assert accounting.recent(100 * MS + RECENT_NS) == (0.0, 150.0)
    assert accounting.recent(200 * MS + RECENT_NS) == (None, None)


events = st.lists(
    st.tuples(
        st.sampled_from(("capture", "capture", "send", "ack", "result", "drop", "skip", "lost")),
        st.integers(0, 30),
        st.integers(0, 200 * MS),
    ),
    max_size=100,
)


@given(events=events)
def test_captured_is_the_sum_of_all_fates(events: list[tuple[str, int, int]]) -> None:
    records: list[FrameRecord] = []
    accounting = Accounting(slo_ns=150 * MS, on_end=records.append)
    now_ns = 0
    captured = 0
    sent: set[int] = set()
    fate: dict[int, str] = {}
    captured_ns: dict[int, int] = {}
    for kind, number, gap_ns in events:
        now_ns += gap_ns
        frame = number % (captured + 2)  # now and then one that was never captured
        is_open = frame in captured_ns and frame not in fate
        if kind == "capture":
            accounting.captured(captured, now_ns)
            captured_ns[captured] = now_ns
            captured += 1
        elif kind == "send":
            if frame not in sent:
                accounting.sent(handed_over(frame, 100, 10))
                sent |= {frame} if is_open else set()
        elif kind == "ack":
            accounting.acked(frame, True, now_ns)
        elif kind == "result":
            assert (accounting.answered(result(frame), now_ns) is not None) == is_open
            if is_open:
                in_time = now_ns - captured_ns[frame] <= 150 * MS
                fate[frame] = "on_time" if in_time else "late"
        elif kind == "drop":
            accounting.dropped(drop(frame, DropReason.FAILED), now_ns)
            fate |= {frame: "failed"} if is_open else {}
        elif kind == "skip":
            accounting.skipped(frame, SkipReason.WINDOW, now_ns)
            fate |= {frame: "sender"} if is_open else {}
        else:
            accounting.lost(now_ns)
            for left in captured_ns.keys() - fate.keys():
                fate[left] = LOST if left in sent else "sender"
        summary = accounting.summary("gate", 0)
        counts = Counter(fate.values())
        assert {record.frame: record.outcome.value for record in records} == {
            frame: how if how in ("on_time", "late") else "dropped" for frame, how in fate.items()
        }
        assert len(records) == len(fate)
        assert summary.on_time == counts.pop("on_time", 0)
        assert summary.late == counts.pop("late", 0)
        assert summary.dropped == counts
        assert summary.captured == captured == len(fate) + summary.pending
        assert summary.sent == len(sent)
        assert sum(summary.skipped.values()) == summary.dropped.get("sender", 0)


def test_frames_are_judged_by_the_deadline_they_were_captured_under() -> None:
    accounting = Accounting(100 * MS)
    accounting.captured(1, 0)
    accounting.deadlines(50 * MS, [UtilityStep(80 * MS, 0.5)])
    accounting.captured(2, 0)
    assert accounting.last_slo_ns == 80 * MS
    accounting.answered(result(1), 90 * MS)
    accounting.answered(result(2), 70 * MS)
    summary = accounting.summary("gate", 1.0)
    assert (summary.on_time, summary.late, summary.utility) == (1, 1, 1.5)
    assert (summary.slo_ms, summary.later) == (50, ((80, 0.5),))


@given(
    st.lists(st.tuples(st.integers(0, 8_000 * MS), st.integers(0, 30_000 * MS)), max_size=20),
    st.integers(0, 12_000 * MS),
)
def test_asking_what_was_recent_changes_nothing(
    frames: list[tuple[int, int]], later_ns: int
) -> None:
    left_alone, queried = Accounting(slo_ns=150 * MS), Accounting(slo_ns=150 * MS)
    now_ns = 0
    for number, (gap_ns, ahead_ns) in enumerate(frames):
        for accounting in (left_alone, queried):
            accounting.captured(number, now_ns)
            accounting.answered(result(number), now_ns + gap_ns)
        now_ns += gap_ns
        queried.recent(now_ns + ahead_ns)
    assert queried.recent(now_ns + later_ns) == left_alone.recent(now_ns + later_ns)
