"""Executors that are lost or hang while they are opened or measured."""

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import interference_profiles, startup, weights_loading
from edgebox.app.interference_profiles import Measuring, measure_interference
from edgebox.app.model_jobs import ModelJobs
from edgebox.app.startup import ModelInventory
from edgebox.config.config_file import Config, load
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.runtime.box import Box
from edgebox.runtime.supervisor import Reopened
from edgebox.scheduling.events import ExecutorHung
from edgebox.scheduling.supervised import ExecutorState
from edgebox.storage.database import Storage
from tests.runtime.driving import Bench, ManualExecutor
from tests.scheduling.scene import CPU, profile


async def test_new_times_of_an_executor_that_was_lost_do_not_bring_it_back() -> None:
    go_on = threading.Event()

    def opener(executor: ExecutorId) -> Reopened:
        go_on.wait()
        raise ModelError("not yet")

    bench = Bench(ManualExecutor(), opener=opener)
    old, new = profile(416), profile(416).scaled(2)
    known = {CPU: {old.variant: old}}
    box = SimpleNamespace(driver=bench.driver, profiles=known, set_profiles=known.__setitem__)
    model_jobs = ModelJobs(load(None, {}), cast(Box, box), cast(Storage, None))
    bench.driver.feed(ExecutorHung(CPU))
    of = bench.driver.scheduler.supervised[CPU]
    assert of.state is ExecutorState.OPENING
    await model_jobs._use(CPU, [new])
    assert of.state is ExecutorState.OPENING
    assert box.profiles[CPU][new.variant] == new, "it is opened with them"
    go_on.set()
    await bench.driver.stop(1)


async def test_an_executor_that_hangs_beside_others_is_not_taken_for_a_model_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hangs(*_: object) -> Any:
        raise HungError("a batch did not come back")

    async def nothing(*_: object) -> list[object]:
        return []

    for name in ("fingerprint", "neighbours", "_in_memory", "_beside"):
        monkeypatch.setattr(interference_profiles, name, lambda *_: "any")
    monkeypatch.setattr(interference_profiles, "interference", hangs)
    executors = [cast(OnnxExecutor, SimpleNamespace(id=ExecutorId(of))) for of in ("a", "b")]
    storage = cast(Storage, SimpleNamespace(load_interference=nothing))
    family = cast(Family, SimpleNamespace(name="street"))
    profiles = {each.id: [profile(416, each.id)] for each in executors}
    with pytest.raises(HungError):
        await measure_interference(
            executors, [family], profiles, Measuring(storage=storage, profile_s=1)
        )


class Machine:
    """Executors and families at a start; what is run where may hang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **holds: str) -> None:
        self.abandoned: list[ExecutorId] = []
        self.tried: list[tuple[str, str]] = []
        self.hanging: set[tuple[str, str]] = set()
        self.failing: set[tuple[str, str]] = set()
        self.executors = [self._executor(ExecutorId(of), held) for of, held in holds.items()]
        names = sorted({name for held in holds.values() for name in held.split()})
        self.families = [
            cast(Family, SimpleNamespace(name=of, variants=(SimpleNamespace(name=f"{of}-1"),)))
            for of in names
        ]

        async def nothing(*_: object) -> list[LatencyProfile]:
            return []

        async def alone(
            executors: object, families: object, profiles: Any, measuring: object
        ) -> tuple[Any, list[str]]:
            return profiles, []

        monkeypatch.setattr(startup, "stored_profiles", nothing)
        monkeypatch.setattr(startup, "fingerprint", lambda *_: "any")
        monkeypatch.setattr(startup, "measure_shared_cores", alone)
        monkeypatch.setattr(
            startup, "FamilyMeasurement",
            lambda inference, executor, family, *_: SimpleNamespace(
                do=lambda: self._do(executor.id, family.name)
            ),
        )  # fmt: skip

    def _executor(self, of: ExecutorId, held: str) -> OnnxExecutor:
        return cast(
            OnnxExecutor,
            SimpleNamespace(
                id=of,
                families=held.split(),
                memory_limit_bytes=0,
                shares_machine=True,
                abandon=lambda: self.abandoned.append(of),
            ),
        )

    def _do(self, executor: ExecutorId, family: str) -> tuple[list[LatencyProfile], list[Any]]:
        self.tried.append((executor, family))
        if (executor, family) in self.hanging:
            raise HungError(f"a first batch of {family} on {executor} did not come back")
        if (executor, family) in self.failing:
            raise ModelError(f"{family} fails")
        return [replace(profile(416, executor), variant=VariantName(f"{family}-1"))], []

    def elsewhere(self, *names: str) -> None:
        for executor in self.executors:
            executor.shares_machine = executor.id not in names

    async def start(self) -> ModelInventory:
        storage = cast(Storage, SimpleNamespace(save_profiles=lambda *_: None))
        return await startup.measured(
            InferenceParameters(family="street"), storage, self.executors, self.families, _told
        )


def _told(text: str, share: float) -> None: ...


async def test_an_executor_that_hangs_at_the_start_is_left_behind_and_the_others_serve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, a="street gate", b="street gate")
    machine.hanging.add(("a", "street"))
    found = await machine.start()
    assert machine.abandoned == [*found.hung] == ["a"]
    assert ("a", "gate") not in machine.tried
    assert [*found.profiles] == ["b"]
    assert [family.name for family in found.families] == ["street", "gate"]
    (problem,) = found.problems
    assert problem.startswith("a is left out: a first batch of street on a did not come back")


async def test_a_family_that_hangs_does_not_take_every_executor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, a="street cats", b="street cats yard")
    machine.hanging |= {("a", "cats"), ("b", "cats")}
    found = await machine.start()
    assert [*found.hung] == ["a"]
    assert [family.name for family in found.families] == ["street", "yard"]
    assert any(
        text.startswith("the model family cats is left out: a first") for text in found.problems
    )


async def test_a_family_whose_only_executor_hangs_later_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, a="gate yard", b="street")
    machine.hanging.add(("a", "yard"))
    found = await machine.start()
    assert [family.name for family in found.families] == ["street"]
    assert (
        sum(
            " is left out: " in text and text.startswith("the model family")
            for text in found.problems
        )
        == 2
    )


@pytest.mark.parametrize("hanging", [{("a", "street")}, {("a", "yard")}])
async def test_a_box_on_which_nothing_is_left_says_that_it_hangs(
    monkeypatch: pytest.MonkeyPatch, hanging: set[tuple[str, str]]
) -> None:
    machine = Machine(monkeypatch, a="street yard", b="yard")
    machine.hanging |= hanging
    with pytest.raises(HungError, match="did not come back") as caught:
        await machine.start()
    assert caught.value.exit_code == 75


def test_loading_that_hangs_at_the_start_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(weights_loading, "run_limit_s", lambda *, builds: 0.0)
    executor = SimpleNamespace(id=CPU, provider="", load=lambda path, runs: go_on.wait())
    with pytest.raises(HungError, match=r"loading a\.onnx on cpu/0 did not come back"):
        weights_loading.load_in_time(cast(OnnxExecutor, executor), Path("a.onnx"))
    go_on.set()


def test_files_that_do_not_come_end_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(startup, "RUN_LIMIT_S", 0.0)
    monkeypatch.setattr(startup, "load_zoo", lambda folders: go_on.wait())
    with pytest.raises(HungError, match="reading the files of the model families hangs"):
        startup.load_families(Config())
    go_on.set()


async def test_an_executor_elsewhere_that_was_never_measured_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, a="street cats", b="street cats")
    machine.elsewhere("b")
    found = await machine.start()
    assert machine.tried == [("a", "street"), ("a", "cats")]
    assert found.profiles[ExecutorId("b")] == []
    assert found.failures == {}
    assert found.problems == []


async def test_it_is_measured_at_the_start_for_a_family_that_runs_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, a="street", b="street cats", c="street cats")
    machine.elsewhere("b", "c")
    found = await machine.start()
    assert machine.tried == [("a", "street"), ("b", "cats"), ("b", "street")]
    assert [family.name for family in found.families] == ["street", "cats"]
    assert len(found.profiles[ExecutorId("b")]) == 2
    assert found.profiles[ExecutorId("c")] == []


@pytest.mark.parametrize("what", ["hanging", "failing"])
async def test_it_serves_where_this_machine_cannot(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    machine = Machine(monkeypatch, a="street", b="street")
    machine.elsewhere("b")
    getattr(machine, what).add(("a", "street"))
    found = await machine.start()
    assert [family.name for family in found.families] == ["street"]
    assert len(found.profiles[ExecutorId("b")]) == 1
    assert [*found.failures] == ["a"]


async def test_a_family_that_hangs_here_is_not_tried_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, a="street cats", b="street cats")
    machine.elsewhere("b")
    machine.hanging.add(("a", "cats"))
    found = await machine.start()
    assert machine.tried == [("a", "street"), ("a", "cats"), ("b", "street")]
    assert [family.name for family in found.families] == ["street"]
