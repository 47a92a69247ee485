"""Joined frames by index, judged by scans of all frames, on random sequences of operations."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.requests import BatchId, CameraId, FrameId, Request, RequestId, UtilityStep
from edgebox.scheduling.joins import JoinedFrame, Joins
from tests.scheduling.pipelines import CHAIN, CHECK, READ, crops
from tests.scheduling.scene import MS, request

CAMERAS = ("gate-1", "gate-2", "gate-3")


class Scanned:
    """The same answers, each by a scan of all open frames in the order of their opening."""

    def __init__(self) -> None:
        self.frames: dict[FrameId, JoinedFrame] = {}

    def open(self, of: Request, batch: BatchId | None) -> None:
        self.frames[FrameId(of.id)] = JoinedFrame(of, batch, CHAIN)

    def spawned(self, crop: Request) -> None:
        frame = self.frames.get(FrameId(crop.frame or 0))
        if frame is not None and crop.stage is not None:
            frame.pending.add(crop.id)
            frame.crops[crop.stage] += 1
            if crop.optional:
                frame.uncut = (READ,)

    def ended(self, crop: Request, answered: bool) -> None:
        frame = self.frames.get(FrameId(crop.frame or 0))
        if frame is not None and crop.stage is not None:
            frame.pending.discard(crop.id)
            if not answered:
                frame.missing[crop.stage] = None
            elif crop.optional:
                frame.uncut = ()

    def where(self, holds: Callable[[JoinedFrame], bool]) -> list[RequestId]:
        return [frame.request.id for frame in self.frames.values() if holds(frame)]

    def due_ns(self) -> int | None:
        return min((f.request.last_deadline_ns for f in self.frames.values()), default=None)


def ids(frames: list[JoinedFrame]) -> list[RequestId]:
    return [frame.request.id for frame in frames]


def content(frame: JoinedFrame) -> tuple[object, ...]:
    cut = frame.uncut, frame.awaits_crops
    return frame.request, frame.batch, frame.pending, frame.crops, list(frame.missing), cut


def is_complete(frame: JoinedFrame) -> bool:
    return not frame.pending and not frame.uncut


def assert_same(joins: Joins, scanned: Scanned, by_ns: int) -> None:
    assert list(joins.frames) == list(scanned.frames)
    assert [*map(content, joins.frames.values())] == [*map(content, scanned.frames.values())]
    assert ids(joins.complete()) == scanned.where(is_complete)
    assert ids(joins.due(by_ns)) == scanned.where(lambda f: f.request.last_deadline_ns <= by_ns)
    assert joins.due_ns() == scanned.due_ns()
    for name in CAMERAS:
        at_camera = scanned.where(lambda f, of=name: f.batch is None and f.request.camera == of)  # type: ignore[misc]
        assert joins.detected_of(CameraId(name)) == len(at_camera)


OPEN, CROP, NESTED, END, CLOSE_DUE, CLOSE_COMPLETE, DEPART, SENT_ON, ORDER, CUT = range(10)
operations = st.lists(
    st.tuples(
        st.sampled_from((OPEN, OPEN, OPEN, CROP, CROP, NESTED, END, END, CUT, *range(10))),
        st.integers(0, 10_000),  # which frame, crop or camera
        st.integers(1, 40),  # a deadline
        st.booleans(),
    ),
    max_size=120,
)


class Both:
    """Applies each operation to the frames by index and to the frames that are scanned."""

    def __init__(self) -> None:
        self.joins, self.scanned = Joins(), Scanned()
        self.opened: list[Request] = []  # also of frames that have ended
        self.crops: list[Request] = []  # also those that have ended

    def open(self, which: int, deadline_ms: int, flag: bool) -> None:
        number = 1_000 + len(self.opened) * 7 % 5_000
        of = request(number, deadline_ms, of=CAMERAS[which % 3])
        if which % 2:
            of = replace(of, steps=(UtilityStep((deadline_ms + which % 9) * MS, 0.5),))
        self.opened.append(of)
        batch = None if flag else BatchId(number)
        self.joins.open(of, batch, CHAIN)
        self.scanned.open(of, batch)

    def order(self) -> None:
        """Order the crops of those whose large model has not answered."""
        frames = self.scanned.frames.values()
        wanted = [f for f in frames if f.uncut and not f.pending and not f.awaits_crops]
        assert ids(self.joins.to_cut()) == ids(wanted)
        for frame in wanted:
            frame.awaits_crops = True

    def cut(self, which: int, number: int) -> None:
        """Cut up to two crops of a frame, which may not wait for them."""
        of = self.opened[which % len(self.opened)]
        frame = self.scanned.frames.get(FrameId(of.id))
        first = 100_000 + len(self.crops)
        found = crops(of, READ, range(first, first + number % 3), 0)
        awaited = frame is not None and frame.awaits_crops
        assert self.joins.cut(FrameId(of.id), found) == awaited
        if frame is not None and awaited:
            frame.awaits_crops, frame.uncut = False, ()
            self.crops += found
            for crop in found:
                self.scanned.spawned(crop)

    def crop(self, which: int, stage_is_nested: bool, optional: bool = False) -> None:
        of = self.opened[which % len(self.opened)]
        number = 100_000 + len(self.crops)
        (crop,) = crops(of, CHECK if stage_is_nested else READ, [number], 0)
        crop = replace(crop, optional=optional)
        self.crops.append(crop)
        self.joins.spawned([crop])
        self.scanned.spawned(crop)

    def end(self, which: int, answered: bool) -> None:
        crop = self.crops[which % len(self.crops)]
        self.joins.ended(crop, answered=answered)
        self.scanned.ended(crop, answered)

    def close(self, numbers: list[RequestId]) -> None:
        for number in numbers:
            self.joins.close(FrameId(number))
            del self.scanned.frames[FrameId(number)]

    def depart(self, camera: CameraId) -> None:
        gone = self.scanned.where(lambda f: f.request.camera == camera)
        assert ids(self.joins.depart(camera)) == gone
        for number in gone:
            del self.scanned.frames[FrameId(number)]

    def apply(self, operation: int, which: int, number: int, flag: bool) -> None:
        if operation == OPEN:
            self.open(which, number, flag)
        elif operation in (CROP, NESTED) and self.opened:
            self.crop(which, operation == NESTED)
        elif operation == SENT_ON and self.opened:
            self.crop(which, False, optional=True)
        elif operation == ORDER:
            self.order()
        elif operation == CUT and self.opened:
            self.cut(which, number)
        elif operation == END and self.crops:
            self.end(which, flag)
        elif operation == CLOSE_DUE:
            self.close(self.scanned.where(lambda f: f.request.last_deadline_ns <= number // 4 * MS))
        elif operation == CLOSE_COMPLETE:
            self.close(self.scanned.where(is_complete))
        elif operation == DEPART:
            self.depart(CameraId(CAMERAS[which % 3]))


@settings(max_examples=300, deadline=None)
@given(operations)
def test_indexes_answer_what_scans_of_all_frames_answer(
    drawn: list[tuple[int, int, int, bool]],
) -> None:
    both = Both()
    for operation, which, number, flag in drawn:
        both.apply(operation, which, number, flag)
        assert_same(both.joins, both.scanned, number * MS)


def test_the_heap_keeps_no_frame_that_has_long_ended() -> None:
    both = Both()
    both.open(0, 1, False)  # the earliest deadline stays on top
    for _ in range(1_000):
        both.open(2, 40, False)
        both.close([both.opened[-1].id])
    assert len(both.joins.frames) == 1
    assert len(both.joins._deadlines) < 25
    assert_same(both.joins, both.scanned, 40 * MS)


def test_a_number_of_a_closed_frame_may_be_used_again() -> None:
    both = Both()
    both.open(0, 1, False)
    both.open(0, 5, False)
    again = both.opened[-1]
    both.close([again.id])
    both.joins.open(replace(again, deadline_ns=9 * MS), BatchId(9), CHAIN)
    both.scanned.open(replace(again, deadline_ns=9 * MS), BatchId(9))
    assert_same(both.joins, both.scanned, 5 * MS)
    assert_same(both.joins, both.scanned, 9 * MS)
