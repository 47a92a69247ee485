"""Executors that are lost or hang while they are measured."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox import neighbouring
from edgebox.config import load
from edgebox.domain.errors import ModelError
from edgebox.domain.models import ExecutorId
from edgebox.inference.executor import HungError, OnnxExecutor
from edgebox.inference.family import Family
from edgebox.neighbouring import beside_each_other
from edgebox.runtime.box import Box
from edgebox.runtime.supervisor import Reopened
from edgebox.scheduling.events import ExecutorHung
from edgebox.scheduling.supervision import ExecutorState
from edgebox.storage.database import Storage
from edgebox.workshop import Workshop
from tests.runtime.driving import Bench, ManualExecutor
from tests.scheduling.scene import CPU, profile


async def test_new_times_of_an_executor_that_was_lost_do_not_bring_it_back() -> None:
    go_on = threading.Event()

    def opener(executor: ExecutorId) -> Reopened:
        go_on.wait()
        raise ModelError("not yet")

    bench = Bench(ManualExecutor(), opener=opener)
    old, new = profile(416), profile(416).scaled(2)
    box = SimpleNamespace(driver=bench.driver, profiles={CPU: {old.variant: old}})
    workshop = Workshop(load(None, {}), cast(Box, box), cast(Storage, None))
    bench.driver.feed(ExecutorHung(CPU))
    of = bench.driver.scheduler.supervised[CPU]
    assert of.state is ExecutorState.OPENING
    await workshop._use(CPU, [new])
    assert of.state is ExecutorState.OPENING
    assert box.profiles[CPU][new.variant] == new, "it is opened with them"
    go_on.set()
    await bench.driver.stop(1)


async def test_an_executor_that_hangs_beside_others_is_not_taken_for_a_model_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hangs(*_: object) -> Any:
        raise HungError("a batch did not come back")

    async def nothing(*_: object) -> dict[str, float]:
        return {}

    for name in ("fingerprint", "neighbours", "_in_memory", "_load"):
        monkeypatch.setattr(neighbouring, name, lambda *_: "any")
    monkeypatch.setattr(neighbouring, "interference", hangs)
    executors = [cast(OnnxExecutor, SimpleNamespace(id=ExecutorId(of))) for of in ("a", "b")]
    storage = cast(Storage, SimpleNamespace(load_interference=nothing))
    family = cast(Family, SimpleNamespace(name="street"))
    profiles = {each.id: [profile(416, each.id)] for each in executors}
    with pytest.raises(HungError):
        await beside_each_other(storage, executors, [family], profiles, profile_s=1)
