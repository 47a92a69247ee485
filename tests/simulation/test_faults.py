"""Random faults under virtual time: what is checked, that failures are found, and that they repeat.

`edgebox simulate faults --events 10000000` is the long run.
"""

import copy
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from edgebox.commands.fault_results import FaultResults
from edgebox.commands.root import main
from edgebox.domain.errors import InvalidInputError, InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import CameraId, DropReason
from edgebox.scheduling.endings import Endings
from edgebox.scheduling.ledger import Ledger
from edgebox.scheduling.supervision import Supervision
from edgebox.simulation.faults import fault_search, fault_simulation
from edgebox.simulation.faults.fault_kinds import FaultKind, Faults, draw_box
from edgebox.simulation.faults.fault_search import (
    NO_LIMIT,
    SeedResult,
    run_seed,
    search_seed,
    seeds,
    shrink,
)
from edgebox.simulation.faults.fault_simulation import FaultSimulation
from edgebox.simulation.faults.small_box import fresh
from tests.scheduling.random_events import SELDOM

pytestmark = pytest.mark.long

EVENTS = 800


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_frame_ends_once_whatever_breaks(seed: int) -> None:
    result = run_seed(seed, EVENTS, check_every=SELDOM)
    assert result.failure is None
    assert result.events >= EVENTS or result.exited
    assert result.ends.total() > 0


@pytest.mark.parametrize(("seed", "events"), [(1011, 300), (1023, 450), (1044, 700)])
def test_an_executor_that_comes_back_runs_only_what_is_in_its_memory(
    seed: int, events: int
) -> None:
    """Found: what it has in memory was said after batches could start there."""
    found_with = draw_box(seed, None).kinds - {FaultKind.GONE}
    assert run_seed(seed, events, found_with).failure is None


@pytest.mark.parametrize("kind", FaultKind)
def test_a_box_recovers_from_each_kind_of_fault(kind: FaultKind) -> None:
    assert run_seed(100, 300, [kind], SELDOM).failure is None


def test_without_a_fault_nothing_is_lost() -> None:
    result = run_seed(3, EVENTS, [], SELDOM)
    assert result.failure is None
    assert not result.losses
    assert not set(result.ends) & {DropReason.FAILED, DropReason.INVALID}


def test_the_faults_do_break_things() -> None:
    """The checks above would be worth little if nothing ever happened."""
    ends, losses = Counter[str](), Counter[str]()
    for seed in range(20, 24):
        result = run_seed(seed, EVENTS, list(FaultKind), SELDOM)
        assert result.failure is None
        ends.update(result.ends)
        losses.update(name.split()[1] for name in result.losses)
    never = {"shutdown", "plan"}  # what the plan orders is never sent
    assert {"on_time", "late", *DropReason} - never <= set(ends)
    assert {"hung", "failing", "gone"} <= set(losses)


def test_a_seed_repeats_in_another_process_with_other_hashes() -> None:
    """What is iterated in the order of a set of strings would differ here."""
    told = []
    for hashes in ("1", "2"):
        line = [sys.executable, "-m", "edgebox", "simulate", "faults"]
        line += ["--seed", "5", "--events", "300", "--json"]
        environment = {**os.environ, "PYTHONHASHSEED": hashes}
        told.append(orjson.loads(subprocess.check_output(line, env=environment)))
    assert told[0]["digest"] == told[1]["digest"]
    assert told[0]["frames"] == told[1]["frames"]
    assert told[0]["failures"] == []


def test_fewer_events_are_the_beginning_of_the_same_run() -> None:
    boxes = [FaultSimulation(7, draw_box(7, None)) for _ in range(2)]
    boxes[0].run(300)
    boxes[1].run(600)
    seen = [boxes[0].now_ns, dict(boxes[0].world.busy), set(boxes[0].world.alive)]
    again = FaultSimulation(7, draw_box(7, None))
    again.run(100)
    again.run(300)
    assert seen == [again.now_ns, dict(again.world.busy), set(again.world.alive)]
    assert boxes[1].events == 600


def test_few_checks_give_the_same_run() -> None:
    assert search_seed(6, EVENTS) == run_seed(6, EVENTS)


def test_a_contradiction_that_few_checks_find_late_is_told_where_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def depart(self: Ledger, camera: CameraId) -> bool:
        self.frames_waiting += 1
        return True

    monkeypatch.setattr(Ledger, "depart", depart)
    found = search_seed(6, EVENTS, [FaultKind.CHURN]).failure
    assert found is not None
    assert "the number of waiting frames is wrong" in found.error
    assert found == run_seed(6, EVENTS, [FaultKind.CHURN]).failure


def test_a_search_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    line = ["simulate", "faults", "--processes", "1", "--json", "--only", "churn"]
    line += ["--results", str(file)]
    documents = []
    for _ in range(2):
        ended = CliRunner().invoke(main, [*line, "--events", "250"])
        assert ended.exit_code == 0, ended.output
        documents.append(orjson.loads(ended.stdout))
        assert len(file.read_bytes().splitlines()) == 1
    assert documents[0].pop("events_per_s") > 0
    assert documents[1].pop("events_per_s") == 0, "nothing ran again"
    for document in documents:
        del document["seconds"]
    assert documents[0] == documents[1]
    other = CliRunner().invoke(main, [*line, "--events", "260"])
    assert orjson.loads(other.stdout)["events_per_s"] > 0, "other events are another run"
    file.write_text("{}")
    other = CliRunner().invoke(main, [*line, "--events", "260"])
    assert other.exit_code != 0
    assert "is no result of a seed" in other.stderr


def test_a_search_goes_on_after_a_line_that_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    line = ["simulate", "faults", "--processes", "1", "--json", "--only", "churn"]
    line += ["--results", str(file), "--events"]
    assert CliRunner().invoke(main, [*line, "250"]).exit_code == 0
    assert CliRunner().invoke(main, [*line, "260"]).exit_code == 0
    first, second = file.read_bytes().splitlines(keepends=True)
    for cut_off in (second[:3], second[:-40], second[:-1]):
        file.write_bytes(first + cut_off)
        ended = CliRunner().invoke(main, [*line, "250"])
        assert ended.exit_code == 0, ended.output
        assert orjson.loads(ended.stdout)["events_per_s"] == 0, "the whole line is known"
        assert "was cut off" in ended.stderr
        assert file.read_bytes() == first + cut_off
        ended = CliRunner().invoke(main, [*line, "260"])
        assert orjson.loads(ended.stdout)["events_per_s"] > 0, "its seed is run again"
        assert file.read_bytes() == first + second
        assert "cut off" not in CliRunner().invoke(main, [*line, "260"]).stderr


@pytest.mark.parametrize("content", [b"{}", b"my thesis", b'{"seed": 1}\n', b"a\nb"])
def test_a_file_of_something_else_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(content)
    ended = CliRunner().invoke(main, ["simulate", "faults", "--results", str(file)])
    assert "is no result of a seed" in ended.stderr
    assert file.read_bytes() == content


def test_a_file_that_cannot_be_used_is_refused_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgebox.commands.simulate_faults._run", None)
    file = tmp_path / "none" / "results.jsonl"
    ended = CliRunner().invoke(main, ["simulate", "faults", "--results", str(file)])
    assert "results cannot be kept there: No such file or directory" in ended.stderr
    assert isinstance(ended.exception, SystemExit)


def test_a_result_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    file = FaultResults(path, None)
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidInputError, match="results cannot be kept there"):
        file.add(SeedResult(1, 10), 10)


def test_as_many_events_are_simulated_as_were_asked_for(tmp_path: Path) -> None:
    """The box of seed 1 needs another process after 303 events."""
    line = ["simulate", "faults", "--processes", "1", "--seed", "1", "--events", "500", "--json"]
    line += ["--results", str(tmp_path / "results.jsonl")]
    documents = []
    for _ in range(2):
        ended = CliRunner().invoke(main, line)
        assert ended.exit_code == 0, ended.output
        documents.append(orjson.loads(ended.stdout))
    assert documents[0]["processes_ended"] >= 1
    assert documents[0]["events"] >= 500
    assert documents[1]["digest"] == documents[0]["digest"]
    assert documents[1]["events_per_s"] == 0, "an interrupted search knows the further seeds, too"


@pytest.mark.parametrize("seed", [2, 4, 6])
def test_a_journal_gives_the_same_orders_when_an_executor_comes_back(seed: int) -> None:
    """Found: it mattered whether its profiles came in the same objects as before, or in others."""
    box = draw_box(seed, [FaultKind.STOP, FaultKind.HANG])
    simulation = FaultSimulation(seed, box, fault_search.CHECK_EVERY, keeps_journal=True)
    simulation.run(1800)
    again = fresh(box.policy)
    for now_ns, event, orders in simulation.world.journal:
        assert again.handle(copy.deepcopy(event), now_ns) == orders, f"{event} at {now_ns} ns"


Break = Callable[[pytest.MonkeyPatch], None]


def _forget_expiry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Endings, "expired", lambda self, now_ns, woken: [])


def _never_lose(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Supervision, "lost", lambda self, now_ns: [])
    patch.setattr(Supervision, "due_ns", lambda self, stopping: None)


def _never_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Supervision, "orders", lambda self, now_ns: [])
    patch.setattr(Supervision, "due_ns", lambda self, stopping: None)


@pytest.mark.parametrize(
    ("defect", "kinds", "phase", "said"),
    [
        (_never_lose, [FaultKind.HANG], "faults", "beyond its limit"),
        (_never_open, [FaultKind.FAILING], "recovery", "though nothing is broken any more"),
        (_forget_expiry, [FaultKind.SLOW], "faults", ""),
    ],
)
def test_defects_are_found_and_shrink(
    defect: Break,
    kinds: Collection[FaultKind],
    phase: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defect(monkeypatch)
    given = [*kinds, FaultKind.CHURN, FaultKind.CLOCK]
    failure = next(
        found for seed in range(1, 12) if (found := run_seed(seed, EVENTS, given).failure)
    )
    assert said in failure.error
    assert failure.phase == phase
    small = shrink(failure, EVENTS)
    assert set(small.kinds) <= set(failure.kinds)
    assert small.where == failure.where
    again = run_seed(small.seed, small.events, small.kinds).failure
    assert again == small
    if phase == "faults":
        assert run_seed(small.seed, small.events - 1, small.kinds).failure != small


def test_a_frame_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = FaultSimulation(3, draw_box(3, []))
    simulation.run(400)
    camera = next(iter(simulation.cameras.values()))
    camera.captured += 1
    with pytest.raises(InvariantViolation, match=r"captured \d+ frames, of which \d+ are known"):
        simulation.checks.add_up()


def test_an_executor_that_is_never_asked_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = FaultSimulation(3, draw_box(3, []))
    simulation.run(200)
    monkeypatch.setattr(fault_simulation.FaultSimulation, "_capture", lambda *_: None)
    with pytest.raises(InvariantViolation, match="is up, and gets no work"):
        fault_search.recover(simulation)


def test_kinds_have_randomness_of_their_own() -> None:
    """Else a run without one kind would be another run, and shrinking would find nothing."""
    with_all = Faults(4, draw_box(4, list(FaultKind)))
    alone = Faults(4, draw_box(4, [FaultKind.HANG]))
    for _ in range(3):
        with_all.begin(FaultKind.SLOW, ["cpu/0"], 0)
    begun = [of.begin(FaultKind.HANG, ["cpu/0", "cuda:0/0"], 7) for of in (with_all, alone)]
    assert begun[0] == begun[1]
    lasts = [of.until_ns(FaultKind.HANG, ExecutorId(begun[0])) for of in (with_all, alone)]
    assert lasts[0] == lasts[1]


def test_the_events_are_divided_among_seeds() -> None:
    assert list(seeds(7, 50_000)) == [(7, 20_000), (8, 20_000), (9, 10_000)]
    assert list(seeds(7, 3)) == [(7, 3)]
    assert NO_LIMIT > 10**12
