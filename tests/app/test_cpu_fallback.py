"""A lost executor's replacement cannot be opened or measured: the box ends, or goes on."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import executor_addition as module
from edgebox.app.cpu_fallback import CpuFallback
from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_replacement import ExecutorReplacer
from edgebox.app.executor_setup import Opened
from edgebox.app.startup import ModelInventory
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor_spec import ExecutorSpec
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.runtime.box import Box
from edgebox.runtime.supervisor import Reopened
from edgebox.storage.database import Storage
from tests.end_to_end.running import until
from tests.scheduling.scene import FAMILY, profile

FIRST, SECOND = ExecutorId("cuda:0/0"), ExecutorId("cuda:1/0")


class Spare(NullExecutor):
    """An executor that remembers whether it was left behind."""

    provider = "CPUExecutionProvider"

    def __init__(self, executor: ExecutorId) -> None:
        super().__init__(executor)
        self.abandoned = False

    def abandon(self) -> None:
        self.abandoned = True
        super().abandon()


class Bench:
    """Stand-ins for two GPUs, of which a test says how they are opened."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, opener: Callable[[ExecutorId], Any]
    ) -> None:
        self.notes: list[str] = []
        self.ended = 0
        self.fed: list[object] = []
        driver = SimpleNamespace(
            add=lambda *_: None,
            feed=self.fed.append,
            variants={of.name: of for of in FAMILY},
            scheduler=SimpleNamespace(supervised={}),
        )
        box = SimpleNamespace(
            notices=SimpleNamespace(publish=lambda level, text: self.notes.append(text)),
            driver=driver,
            set_profiles=lambda executor, profiles: None,
            profiles={},
        )
        monkeypatch.setattr(module, "open_in_time", lambda spec, families: opener(spec.id))
        specs = {
            lost: ExecutorSpec(id=ExecutorId(f"cpu/{at}"), provider="cpu")
            for at, lost in enumerate((FIRST, SECOND))
        }
        self.opened = Opened()
        self.cpu_fallbacks = CpuFallback(
            cast(Box, box),
            specs,
            ExecutorAdder(
                cast(Box, box),
                ExecutorReplacer(self.opened, (), ModelInventory(), dict),
                (),
                prepare=(InferenceParameters(), cast(Storage, None)),
            ),
            (),
            give_up=self._end,
        )

    def _end(self) -> None:
        self.ended += 1


def measured_as(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
    async def measured(
        inference: object, storage: object, executors: list[OnnxExecutor], *_: object
    ) -> ModelInventory:
        if error is not None:
            raise error
        return ModelInventory(profiles={each.id: [profile(416, each.id)] for each in executors})

    monkeypatch.setattr(module, "measured", measured)


@pytest.mark.parametrize("error", [ModelError("no"), OSError(28, "No space left"), KeyError("x")])
async def test_a_box_without_any_executor_ends_whatever_goes_wrong(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    go_on = threading.Event()

    def opener(executor: ExecutorId) -> Any:
        go_on.wait()
        raise error

    bench = Bench(monkeypatch, opener)
    bench.cpu_fallbacks.needed(FIRST)
    bench.cpu_fallbacks.give_up()
    assert not bench.ended, "a replacement is being prepared"
    go_on.set()
    await until(lambda: bench.ended > 0, "the end")
    assert any("cannot replace" in text for text in bench.notes)


async def test_another_one_that_is_prepared_keeps_the_box_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()

    def opener(executor: ExecutorId) -> Any:
        if executor == "cpu/1":
            raise ModelError("no")
        go_on.wait()
        return Spare(executor)

    measured_as(monkeypatch)
    bench = Bench(monkeypatch, opener)
    bench.cpu_fallbacks.needed(FIRST)
    bench.cpu_fallbacks.needed(SECOND)
    bench.cpu_fallbacks.give_up()
    await until(lambda: any("cannot replace" in text for text in bench.notes), "the failure")
    await asyncio.sleep(0)
    assert not bench.ended
    go_on.set()
    await until(lambda: bool(bench.fed), "the other one")
    assert not bench.ended
    bench.cpu_fallbacks.give_up()
    assert bench.ended, "it is lost too"


async def test_one_that_cannot_be_measured_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Spare] = []

    def opener(executor: ExecutorId) -> Any:
        made.append(Spare(executor))
        return made[-1]

    measured_as(monkeypatch, OSError(5, "Input/output error"))
    bench = Bench(monkeypatch, opener)
    bench.cpu_fallbacks.needed(FIRST)
    await until(lambda: any("cannot replace" in text for text in bench.notes), "the failure")
    assert made[0].abandoned
    assert not bench.opened.executors


async def test_a_replacement_takes_its_place_on_the_loop_and_displaces_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list is changed when the loop says so, not in the thread that opens."""
    old, spare = Spare(FIRST), Spare(SECOND)
    opened = Opened([cast(OnnxExecutor, old)], {FIRST: ExecutorSpec(id=FIRST, provider="cpu")})
    replacements = ExecutorReplacer(opened, (), ModelInventory(), lambda: {FIRST: {}})
    monkeypatch.setattr("edgebox.app.executor_replacement.warm", lambda executor, profiles: None)
    monkeypatch.setattr(
        "edgebox.app.executor_replacement.open_executor", lambda spec, families: Spare(FIRST)
    )
    found: Reopened = await asyncio.to_thread(replacements.open, FIRST)
    assert [*opened.executors] == [cast(OnnxExecutor, old)]
    replacements.add(
        cast(OnnxExecutor, spare), ExecutorSpec(id=SECOND, provider="cpu"), ModelInventory()
    )
    found.on_use()
    assert [*opened.executors] == [found.executor, cast(OnnxExecutor, spare)]


async def test_a_box_that_stops_meanwhile_is_not_ended_for_want_of_executors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()

    def opener(executor: ExecutorId) -> Any:
        go_on.wait()
        raise ModelError("no")

    bench = Bench(monkeypatch, opener)
    bench.cpu_fallbacks.needed(FIRST)
    bench.cpu_fallbacks.give_up()
    await asyncio.sleep(0)
    await bench.cpu_fallbacks.stop()
    await asyncio.sleep(0)
    assert not bench.ended
    go_on.set()


async def test_one_stands_in_once_and_is_counted_among_the_executors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Spare] = []

    def opener(executor: ExecutorId) -> Any:
        made.append(Spare(executor))
        return made[-1]

    measured_as(monkeypatch)
    bench = Bench(monkeypatch, opener)
    bench.cpu_fallbacks.needed(FIRST)
    bench.cpu_fallbacks.needed(FIRST)
    await until(lambda: bool(bench.fed), "the stand-in")
    bench.cpu_fallbacks.needed(FIRST)
    await bench.cpu_fallbacks.stop()
    assert [*bench.opened.executors] == [cast(OnnxExecutor, each) for each in made]
    assert len(made) == 1


async def test_one_on_which_nothing_runs_does_not_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> ModelInventory:
        return ModelInventory(profiles={ExecutorId("cpu/0"): []}, problems=["street does not run"])

    monkeypatch.setattr(module, "measured", nothing)
    bench = Bench(monkeypatch, Spare)
    bench.cpu_fallbacks.needed(FIRST)
    await until(lambda: any("street does not run" in text for text in bench.notes), "the failure")
    assert not bench.fed
    await bench.cpu_fallbacks.stop()
