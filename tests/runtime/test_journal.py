"""The flight recorder: bounded in time and bytes, always replayable, and never in the way."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox import __version__
from edgebox.runtime.entries import JournalEntry
from edgebox.runtime.journal import FORMAT_VERSION, Journal, NoJournalError
from edgebox.runtime.replay import replay_file
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import Event
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.runtime.recorded import Life, all_lines, entries_of, eventful, filed
from tests.scheduling.scene import MS

WINDOW_NS = 100 * MS
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "journal.md"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=60))
def test_keeps_the_window_and_at_most_a_segment_more(waits_ms: list[int]) -> None:
    life = Life(Journal(WINDOW_NS))
    life.open()
    for wait_ms in waits_ms:
        life.tell(None, life.now_ns / MS + wait_ms)
    kept = entries_of(life.journal)
    assert kept == life.entries[-len(kept) :]
    young = [entry for entry in life.entries if entry.now_ns > life.now_ns - WINDOW_NS]
    assert len(kept) >= len(young)
    # No wait is longer than 60 ms, so no segment is longer than 25 + 60.
    assert all(entry.now_ns >= life.now_ns - WINDOW_NS - 2 * 85 * MS for entry in kept)


def test_bytes_are_bounded_whatever_the_window() -> None:
    life = Life(Journal(window_ns=10**15, bytes_max=2_000_000))
    life.open()
    for at in range(20_000):
        life.frame(at, 10 + at * 0.01, 10 + at * 0.01)
    recorded = life.journal.recording()
    assert recorded.entries < len(life.entries)
    assert 1_000_000 < sum(map(len, recorded.lines())) <= 2_500_000
    kept = entries_of(life.journal)
    assert kept == life.entries[-len(kept) :]


@pytest.mark.parametrize("lives", [1, 40])
def test_a_replay_repeats_every_action_wherever_the_ring_begins(lives: int, tmp_path: Path) -> None:
    life = Life(Journal(WINDOW_NS))
    life.open()
    for at in range(lives * 8):
        life.frame(at, 20 + 10 * at, 200 + 10 * at)
        if life.running:
            life.come_back(28 + 10 * at, 6)
    replayed = replay_file(filed(life.journal, tmp_path))
    assert replayed.replay.differing == 0
    assert replayed.replay.entries == len(entries_of(life.journal))
    assert (replayed.replay.entries == len(life.entries)) is (lives == 1)
    assert replayed.replay.endings["on_time"] > 0


def test_the_header_says_what_wrote_it() -> None:
    life = eventful()
    header = orjson.loads(next(iter(all_lines(life.journal))))
    assert header["format"] == "edgebox-journal"
    assert header["format_version"] == FORMAT_VERSION
    assert header["edgebox"] == __version__
    assert header["policy"] == "EarliestDeadlineFirst"
    assert header["parameters"]["planning_interval_ns"] == 500_000_000
    assert header["entries"] == len(life.entries)
    assert header["clock"]["ns"] == life.now_ns


def test_a_recording_does_not_change_while_the_box_goes_on() -> None:
    life = eventful()
    recording = life.journal.recording()
    before = list(recording.lines())
    life.tell(None, 200)
    assert list(recording.lines()) == before


def test_the_tail_is_the_newest_lines() -> None:
    life = eventful()
    assert len(life.journal.tail(3)) == 3
    assert orjson.loads(life.journal.tail(3)[-1])[0] == 150 * MS
    assert len(life.journal.tail(10**6)) == len(life.entries)
    assert Journal().tail() == ()


def test_there_is_no_recording_before_there_is_a_scheduler() -> None:
    with pytest.raises(NoJournalError, match="before the models are ready"):
        Journal().recording()


class Unwritable(EarliestDeadlineFirst):
    """A policy that keeps what is no data."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: object = None


def test_a_recorder_that_fails_stops_and_says_so() -> None:
    scheduler, journal = Scheduler(SchedulerParameters(), Unwritable()), Journal()
    journal.attach(scheduler, lambda: 0)
    assert "cannot be serialised" in journal.failure
    journal.record(1, None, [])
    journal.checkpoint(2)
    assert journal.tail() == ()
    with pytest.raises(NoJournalError, match=r"has stopped .*Unwritable"):
        journal.recording()


def test_an_event_that_cannot_be_written_stops_the_recorder_only() -> None:
    life = eventful()
    event: Event = object()  # type: ignore[assignment]
    life.journal.record(life.now_ns, event, [])
    assert "object" in life.journal.failure
    life.journal.record_raised(life.now_ns, None, "x")
    assert life.journal.due_ns > 10**18


def test_what_raised_is_recorded() -> None:
    life = eventful()
    life.journal.record_raised(life.now_ns, None, "KeyError: 5")
    assert entries_of(life.journal)[-1] == JournalEntry(life.now_ns, None, (), "KeyError: 5")


def test_the_documentation_describes_this_version() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"## Format, version {FORMAT_VERSION}\n" in text
    assert f"`format_version` {FORMAT_VERSION}." in text
