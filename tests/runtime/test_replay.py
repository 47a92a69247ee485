"""A replay finds every difference, and tells the story of a request or a camera."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import BatchId, CameraId, DropReason, RequestId
from edgebox.runtime.entries import JournalEntry
from edgebox.runtime.frames import DROP_MESSAGES
from edgebox.runtime.journal import Journal
from edgebox.runtime.replay import DIFFERENCES_KEPT, Replay, replay, replay_file, to_json
from edgebox.runtime.story import CameraStory, RequestStory
from edgebox.scheduling.actions import Drop, Infer, Prepare, Sample
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import (
    BatchFailed,
    CameraChanged,
    ExecutorGone,
    ExecutorStarted,
    ExecutorStopped,
    RequestArrived,
    RequestPrepared,
    SampleCompleted,
    SampleFailed,
)
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.runtime.recorded import Life, entries_of, eventful, filed, refusal
from tests.scheduling.scene import CPU, LARGE, MS, camera, name, profile, request


def fresh() -> Scheduler:
    return Scheduler(SchedulerParameters(first_pixels_max=LARGE), EarliestDeadlineFirst())


def test_all_is_counted_and_nothing_differs() -> None:
    life = eventful()
    replayed = replay(life.entries, fresh())
    assert replayed.differing == 0
    assert replayed.differences == []
    assert replayed.entries == len(life.entries)
    assert replayed.events["RequestArrived"] == len(replayed.requests) == 8
    assert replayed.events["wake-up"] == 1
    assert dict(replayed.endings) == {
        "on_time": 2, "late": 1, "infeasible": 1, "invalid": 1, "failed": 1, "departed": 2,
    }  # fmt: skip
    assert sum(replayed.endings.values()) == replayed.actions["Finish"] + replayed.actions["Drop"]
    assert replayed.ended_ns - replayed.began_ns == 150 * MS


def test_what_came_out_differently_is_named() -> None:
    entries = eventful().entries
    at = next(n for n, e in enumerate(entries) if any(isinstance(a, Drop) for a in e.actions))
    entries[at] = replace(entries[at], actions=())
    replayed = replay(entries, fresh())
    assert replayed.differing == 1
    (difference,) = replayed.differences
    assert difference.startswith(f"entry {at} at +0.073000 s: RequestArrived(")
    assert "gave [Drop(request=3, reason=<DropReason.INFEASIBLE" in difference
    assert difference.endswith("; the journal has []")


def test_of_long_orders_the_place_is_shown_where_they_differ() -> None:
    entries = eventful().entries
    at = next(n for n, e in enumerate(entries) if any(isinstance(a, Drop) for a in e.actions))
    many = tuple(Drop(RequestId(n), DropReason.QUEUE, Cause.EXPIRED) for n in range(1000))
    entries[at] = replace(entries[at], actions=(*entries[at].actions, *many))
    (difference,) = replay(entries, fresh()).differences
    before, _, recorded = difference.partition("; the journal has ")
    assert before.endswith("]")
    assert recorded.endswith(" ...")
    assert len(recorded) < 1000


def test_a_call_that_raised_must_raise_the_same_again() -> None:
    replayed = Replay(fresh())
    nonsense = object()
    replayed.step(JournalEntry(1, nonsense, (), f"KeyError: {object}"))  # type: ignore[arg-type]
    assert replayed.differing == 0
    replayed.step(JournalEntry(1, nonsense, ()))  # type: ignore[arg-type]
    replayed.step(JournalEntry(2, None, (), "ValueError: 5"))
    assert replayed.differing == 2
    assert "raised KeyError: <class 'object'>; the journal has []" in replayed.differences[0]
    assert "a wake-up gave []; the journal has raising ValueError: 5" in replayed.differences[1]


def test_differences_are_all_counted_and_a_few_told() -> None:
    replayed = replay([JournalEntry(1, None, (), "x")] * (DIFFERENCES_KEPT + 5), fresh())
    assert replayed.differing == DIFFERENCES_KEPT + 5
    assert len(replayed.differences) == DIFFERENCES_KEPT


@pytest.mark.parametrize(
    ("request_id", "sentences"),
    [
        (
            1,
            [
                "request 1 of gate-1 (application default), to be answered within 290.0 ms",
                "+0.0 ms arrived whole: 416 × 234 px in 9.0 kB, 290.0 ms before its deadline",
                "+0.0 ms admitted to run as street-256",
                "+1.0 ms decoded in 1.0 ms",
                "+1.0 ms joined a batch of 1 on cpu/0 as street-256, 289.0 ms before its deadline",
                "+10.0 ms its batch came back, executed in 8.0 ms",
                "+10.0 ms answered, 280.0 ms before its deadline",
            ],
        ),
        (2, ["+40.0 ms answered late, 10.0 ms after its deadline"]),
        (3, ["+0.0 ms dropped (infeasible): on arrival there was too little time left"]),
        (4, ["+2.0 ms could not be decoded", "+2.0 ms dropped (invalid): not a picture"]),
        (5, ["+10.0 ms its batch failed", "+10.0 ms dropped (failed): the model failed"]),
        (
            7,
            [
                "+13.0 ms its camera left while it ran",
                "+18.0 ms its batch came back, executed in 9.0 ms",
                "+18.0 ms dropped (departed): its camera left before the answer",
            ],
        ),
        (8, ["+0.0 ms dropped (departed): its camera left before the answer"]),
    ],
)
def test_the_story_of_a_request(request_id: int, sentences: list[str]) -> None:
    story = RequestStory(RequestId(request_id))
    for entry in eventful().entries:
        story.see(entry)
    lines = story.lines()
    for line, sentence in zip(lines[-len(sentences) :], sentences, strict=True):
        assert line.startswith(sentence)


@pytest.mark.parametrize(
    ("reason", "cause", "end"),
    [
        (DropReason.OVERLOAD, Cause.DISPLACED, "; request 2, which is newer, took its place"),
        (DropReason.INFEASIBLE, Cause.TRIAL_EXPIRED, "no executor was idle in time"),
        (DropReason.QUEUE, Cause.FRAME_ENDED, "; its frame ended without it"),
        (DropReason.QUEUE, Cause.EXPIRED, DROP_MESSAGES[DropReason.QUEUE]),
    ],
)
def test_a_story_names_what_decided_a_drop(reason: DropReason, cause: Cause, end: str) -> None:
    frame, newer = request(1, 300), request(2, 300)
    story = RequestStory(frame.id)
    story.see(JournalEntry(0, RequestArrived(frame), (Prepare(frame.id, name(416)),)))
    story.see(JournalEntry(MS, RequestArrived(newer), (Drop(frame.id, reason, cause),)))
    assert story.lines()[-1].startswith(f"+1.0 ms dropped ({reason.value}): ")
    assert story.lines()[-1].endswith(end)


def test_the_story_of_a_request_that_ran_on_a_smaller_variant() -> None:
    frame = request(1, 300)
    story = RequestStory(frame.id)
    small = Infer(CPU, BatchId(1), name(256), (frame.id,), 1)
    for at_ms, event, action in (
        (0, RequestArrived(frame), Prepare(frame.id, name(416))),
        (1, RequestPrepared(frame.id, MS), small),
    ):
        story.see(JournalEntry(at_ms * MS, event, (action,)))
    assert story.lines()[-2] == ("+1.0 ms moved to street-256, given what runs and waits")


def test_the_story_of_a_request_whose_executor_was_gone() -> None:
    life, other = Life(), ExecutorId("cpu/1")
    life.open()
    life.tell(ExecutorStarted(other, (profile(128, other), profile(256, other))))
    life.frame(1, 0, 300)
    life.tell(ExecutorGone(CPU), 6)
    life.tell(BatchFailed(CPU, BatchId(1)), 7)
    story = RequestStory(RequestId(1))
    for entry in life.entries:
        story.see(entry)
    assert story.lines()[-3:] == [
        "+1.0 ms joined a batch of 1 on cpu/0 as street-256, 299.0 ms before its deadline",
        "+6.0 ms what ran its batch has ended: it waits for an executor again",
        "+6.0 ms joined a batch of 1 on cpu/1 as street-256, 294.0 ms before its deadline",
    ]
    assert replay(life.entries, fresh()).differing == 0


def test_the_story_of_a_request_with_several_deadlines() -> None:
    life = Life()
    life.open()
    life.frame(1, 0, 30, later=[(60, 0.3)])
    life.come_back(40, took_ms=8)
    story = RequestStory(RequestId(1))
    for entry in life.entries:
        story.see(entry)
    first, *_, last = story.lines()
    assert first.endswith("to be answered within 30.0 ms, still worth 0.3 within 60 ms")
    assert last == "+40.0 ms answered late, still worth 0.3, 10.0 ms after its deadline"
    assert replay(life.entries, fresh()).differing == 0


def sampling(failing: bool = False, took_ms: int = 2) -> Life:
    """Return a life in which two ran together, and one of them again, alone."""
    life = Life(policy="adaptive", gain=0.9)
    life.open(128)
    for at in (1, 2, 3):
        life.frame(at, 1000, 1300)
    life.come_back(1003, 2)
    life.come_back(1006, 2.2)
    (order,) = (a for entry in life.entries for a in entry.actions if isinstance(a, Sample))
    if failing:
        life.tell(SampleFailed(order.executor, order.batch), 1009)
    else:
        life.tell(SampleCompleted(order.executor, order.batch, took_ms * MS), 1009)
    return life


@pytest.mark.parametrize(
    ("failing", "last"),
    [
        (False, "+9.0 ms alone it took 2.0 ms, from which the scheduler learns"),
        (True, "+9.0 ms running it again failed"),
    ],
)
def test_a_request_that_was_sampled_has_a_story_after_its_answer(
    failing: bool, last: str, tmp_path: Path
) -> None:
    life = sampling(failing)
    (sampled,) = (a for entry in life.entries for a in entry.actions if isinstance(a, Sample))
    replayed = replay_file(filed(life.journal, tmp_path), request=sampled.request)
    assert replayed.replay.differing == 0
    assert replayed.stories[0][-4:] == [
        "+6.0 ms its input was kept, to be run again when the box is idle",
        "+6.0 ms answered, 294.0 ms before its deadline",
        "+6.0 ms run again, alone, on cpu/0 as street-128",
        last,
    ]


def test_an_input_that_was_let_go_is_told() -> None:
    life = sampling(took_ms=50)
    for at in (4, 5, 6):
        life.frame(at, 1300, 1600)
    life.come_back(1303, 2)
    life.come_back(1306, 2.2)
    stories = [RequestStory(RequestId(at)) for at in (4, 5, 6)]
    life.tell(ExecutorStopped(CPU), 1310)
    for entry in life.entries:
        for story in stories:
            story.see(entry)
    let_go = "+10.0 ms its input was released without having been run again"
    assert [story.lines()[-1] == let_go for story in stories].count(True) == 1


def test_the_story_of_a_camera() -> None:
    story = CameraStory(CameraId("gate-1"))
    for entry in eventful().entries:
        story.see(entry)
    title, *lines = story.lines()
    assert title == "camera gate-1, from the beginning of the journal"
    assert lines[0] == (
        "+0.000 s said hello: application default, family street, 1280 × 720 px, 10 a second, "
        "answers within 300 ms"
    )
    assert lines[1].startswith(
        "+0.000 s advised to send 256 × 144 px, 10 a second, for street-256: "
    )
    assert lines[2:] == [
        "+0.020 s 1 frame answered, 10.0 ms after capture (request 1)",
        "+0.070 s 1 frame answered late, 40.0 ms after capture (request 2)",
        "+0.073 s 1 frame dropped (infeasible: on arrival there was too little time left before "
        "its deadline), 0.0 ms after capture (request 3)",
        "+0.082 s 1 frame dropped (invalid: not a picture this box can decode), 2.0 ms after "
        "capture (request 4)",
        "+0.110 s 1 frame dropped (failed: the model failed on its batch, or no executor that "
        "runs it was up), 10.0 ms after capture (request 5)",
        "+0.130 s 1 frame answered, 10.0 ms after capture (request 6)",
        "+0.135 s left",
        "+0.140 s 2 frames dropped (departed: its camera left before the answer), 0.0 to 18.0 ms "
        "after capture (requests 7 to 8)",
    ]


def test_what_had_arrived_before_the_journal_begins_is_known(tmp_path: Path) -> None:
    life = Life(Journal(40 * MS))
    life.open()
    life.frame(1, 10, 900)
    for at_ms in range(20, 120, 10):
        life.tell(None, at_ms)
    life.come_back(125, 100)
    assert len(entries_of(life.journal)) < len(life.entries)
    replayed = replay_file(filed(life.journal, tmp_path), request=1, camera="gate-1")
    of_request, of_camera = replayed.stories
    assert of_request[1].startswith("+0.0 ms arrived whole")
    assert of_request[-1] == "+115.0 ms answered, 775.0 ms before its deadline"
    assert of_camera[-1].endswith("1 frame answered, 115.0 ms after capture (request 1)")


def test_what_the_journal_does_not_know(tmp_path: Path) -> None:
    path = filed(eventful().journal, tmp_path)
    assert refusal(lambda: replay_file(path, request=99)) == (
        f"{path}: knows nothing of request 99; it has requests 1 to 8 of gate-1"
    )
    replayed = refusal(lambda: replay_file(path, camera="nobody"))
    assert "knows nothing of a camera named nobody; it has requests" in replayed
    path = filed(Life().journal, tmp_path)
    assert "no request arrived while" in refusal(lambda: replay_file(path, request=1))


def test_the_document_has_it_all(tmp_path: Path) -> None:
    life = eventful()
    document = to_json(replay_file(filed(life.journal, tmp_path), request=2))
    assert document["differing"] == 0
    assert document["differences"] == []
    assert document["entries"] == len(life.entries)
    assert document["requests"] == 8
    assert document["duration_s"] == 0.15
    assert document["events"]["BatchFailed"] == 1
    assert document["stories"][0][-1].startswith("+40.0 ms answered late")


def test_the_story_of_a_camera_that_was_changed_on_the_box() -> None:
    life = Life()
    life.open()
    life.tell(CameraChanged(camera(slo_ms=150, rate_hz=4)), 20)
    story = CameraStory(CameraId("gate-1"))
    for entry in life.entries:
        story.see(entry)
    changed, advised = story.lines()[-2:]
    assert changed == (
        "+0.020 s was changed on the box: application default, family street, 1280 × 720 px, 4 a "
        "second, answers within 150 ms"
    )
    assert ", 4 a second, " in advised
    assert not replay(life.entries, fresh()).differences
