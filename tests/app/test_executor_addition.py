"""Executors that are added to a box that runs, while its families change."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import executor_addition as module
from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_replacement import ExecutorReplacer
from edgebox.app.executor_setup import Opened
from edgebox.app.startup import ModelInventory
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.inference.executor_spec import ExecutorSpec
from edgebox.inference.family import Family
from edgebox.inference.null_executor import NullExecutor
from edgebox.runtime.box import Box
from edgebox.storage.database import Storage
from tests.scheduling.scene import FAMILY, profile

CPU = ExecutorId("cpu/0")


def family(name: str) -> Family:
    return cast(Family, SimpleNamespace(name=FamilyName(name)))


class Executor(NullExecutor):
    """Holds families, but for one that it refuses."""

    def add_family(self, added: Family) -> None:
        if added.name == "refused":
            raise ModelError("no such operator")
        self.families = (*self.families, added.name)


async def test_what_was_imported_while_it_was_opened_and_measured_runs_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served = [family("street")]
    measured_for: list[tuple[str, ...]] = []
    executor = Executor(CPU)

    def opened(spec: object, families: list[Family]) -> Executor:
        executor.families = tuple(each.name for each in families)
        served.append(family("imported while it was opened"))
        return executor

    async def measured(
        inference: object, storage: object, executors: list[Executor], *_: object
    ) -> ModelInventory:
        measured_for.append(executors[0].families)
        if len(measured_for) == 1:
            served.extend([family("imported while it was measured"), family("refused")])
        return ModelInventory(profiles={CPU: [profile(416, CPU)]})

    monkeypatch.setattr(module, "open_in_time", opened)
    monkeypatch.setattr(module, "measured", measured)
    notes: list[str] = []
    fed: list[Any] = []
    driver = SimpleNamespace(
        add=lambda *_: None, feed=fed.append, variants={of.name: of for of in FAMILY}
    )
    box = SimpleNamespace(
        driver=driver,
        set_profiles=lambda *_: None,
        notices=SimpleNamespace(publish=lambda level, text: notes.append(text)),
    )
    adder = ExecutorAdder(
        cast(Box, box),
        ExecutorReplacer(Opened(), (), ModelInventory(), dict),
        served,
        prepare=(InferenceParameters(), cast(Storage, None)),
    )
    await adder.open(ExecutorSpec(id=CPU, provider="cpu"))
    executor.close()
    assert measured_for[-1] == executor.families
    assert executor.families == (
        "street",
        "imported while it was opened",
        "imported while it was measured",
    )
    assert notes == ["refused does not run on cpu/0: no such operator"]
    assert len(fed) == 1
