"""The flight recorder: bounded in time and number, and its replay finds every difference."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgebox.runtime.journal import Journal, JournalEntry, replay
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import (
    CameraClosed,
    CameraOpened,
    Drop,
    Event,
    ExecutorStarted,
    RequestArrived,
    RequestPrepared,
    VariantsOffered,
)
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.scheduling.scene import CPU, FAMILY, MS, camera, profile, request


@given(
    st.lists(st.integers(0, 50), max_size=60),
    st.integers(1, 200),
    st.integers(1, 20),
)
def test_keeps_the_newest_within_both_bounds(
    waits_ns: list[int], window_ns: int, entries_max: int
) -> None:
    journal = Journal(window_ns, entries_max)
    now_ns = 0
    told = []
    for wait_ns in waits_ns:
        now_ns += wait_ns
        journal.record(now_ns, None, [])
        told.append(JournalEntry(now_ns, None, ()))
    young = [entry for entry in told if entry.now_ns >= now_ns - window_ns]
    assert journal.entries() == young[-entries_max:]


def lived() -> Journal:
    """Return the journal of a short life: a camera, three frames, an end."""
    scheduler = Scheduler(SchedulerParameters(), EarliestDeadlineFirst())
    journal = Journal()
    events: list[tuple[int, Event | None]] = [
        (0, VariantsOffered(FAMILY)),
        (0, ExecutorStarted(CPU, tuple(profile(px) for px in (128, 256)))),
        (1, CameraOpened(camera())),
        (2, RequestArrived(request(1, 300, arrival_ms=2))),
        (3, RequestPrepared(request(1, 300).id, MS)),
        (4, RequestArrived(request(2, 300, arrival_ms=4))),
        (5, None),
        (6, CameraClosed(camera().id)),
        (7, RequestArrived(request(3, 300, arrival_ms=7))),
    ]
    for at_ms, event in events:
        actions = scheduler.handle(event, at_ms * MS)
        journal.record(at_ms * MS, event, actions)
    return journal


def test_a_replay_repeats_every_action() -> None:
    fresh = Scheduler(SchedulerParameters(), EarliestDeadlineFirst())
    assert replay(lived().entries(), fresh) == []


def test_a_replay_names_what_came_out_differently() -> None:
    entries = lived().entries()
    dropped = next(n for n, e in enumerate(entries) if any(isinstance(a, Drop) for a in e.actions))
    entries[dropped] = replace(entries[dropped], actions=())
    fresh = Scheduler(SchedulerParameters(), EarliestDeadlineFirst())
    (difference,) = replay(entries, fresh)
    assert difference.startswith(f"entry {dropped} at {entries[dropped].now_ns}: CameraClosed")
    assert "Drop(" in difference
    assert difference.endswith("the journal has ()")
