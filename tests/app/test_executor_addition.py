"""Executors that are added to a box that runs, while its families change."""

from collections.abc import Callable
from dataclasses import replace
from queue import Queue
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
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, VariantName
from edgebox.inference.executor_spec import ExecutorSpec
from edgebox.inference.family import Family
from edgebox.inference.null_executor import NullExecutor
from edgebox.runtime.box import Box
from edgebox.scheduling.events import ExecutorStarted
from edgebox.storage.database import Storage
from tests.conftest import PATIENCE_S
from tests.scheduling.scene import FAMILY, name, profile

CPU = ExecutorId("cpu/0")


def family(of: str, *sides: int) -> Family:
    variants = [SimpleNamespace(name=name(px)) for px in sides]
    return cast(Family, SimpleNamespace(name=FamilyName(of), variants=variants))


class Executor(NullExecutor):
    """Holds families, but for one that it refuses."""

    def __init__(self) -> None:
        super().__init__(CPU)
        self.dropped: Queue[str] = Queue()

    def add_family(self, added: Family) -> None:
        if added.name == "refused":
            raise ModelError("no such operator")
        self.families = (*self.families, added.name)

    def drop_family(self, dropped: Family) -> None:
        self.dropped.put(dropped.name)


class Scene:
    """A box that runs, and an executor that is added to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *served: Family) -> None:
        self.served = list(served)
        self.executor = Executor()
        self.measured_for: list[tuple[str, ...]] = []
        self.while_opened: Callable[[], object] = list
        self.while_measured: Callable[[], object] = list
        """Called once."""
        self.known: dict[VariantName, LatencyProfile] = {}
        self.notes: list[str] = []
        self.fed: list[Any] = []
        monkeypatch.setattr(module, "open_in_time", self._opened)
        monkeypatch.setattr(module, "measured", self._measured)
        self.variants = {of.name: of for of in FAMILY}
        self.others: dict[ExecutorId, dict[VariantName, LatencyProfile]] = {}
        box = SimpleNamespace(
            driver=SimpleNamespace(
                add=lambda *_: None, feed=self.fed.append, variants=self.variants
            ),
            set_profiles=lambda _, known: self.known.update(known),
            profiles=self.others,
            notices=SimpleNamespace(publish=lambda level, text: self.notes.append(text)),
        )
        self.adder = ExecutorAdder(
            cast(Box, box),
            ExecutorReplacer(Opened(), (), ModelInventory(), dict),
            self.served,
            prepare=(InferenceParameters(), cast(Storage, None)),
        )

    async def add(self) -> None:
        try:
            await self.adder.open(ExecutorSpec(id=CPU, provider="cpu"))
        finally:
            self.executor.close()

    def _opened(self, spec: object, families: list[Family]) -> Executor:
        self.executor.families = tuple(each.name for each in families)
        self.while_opened()
        return self.executor

    async def _measured(self, *_: object) -> ModelInventory:
        self.measured_for.append(self.executor.families)
        found = [profile(px, CPU) for px in (128, 416)]
        if len(self.measured_for) == 1:
            self.while_measured()
        return ModelInventory(profiles={CPU: found})


async def test_what_was_imported_while_it_was_opened_and_measured_runs_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, family("street"))
    opened, measured = (family(f"imported while it was {how}") for how in ("opened", "measured"))
    scene.while_opened = lambda: scene.served.append(opened)
    scene.while_measured = lambda: scene.served.extend([measured, family("refused")])
    await scene.add()
    assert scene.measured_for[-1] == scene.executor.families
    assert scene.executor.families == ("street", opened.name, measured.name)
    assert scene.notes == ["refused does not run on cpu/0: no such operator"]
    assert len(scene.fed) == 1
    assert scene.executor.dropped.empty()


async def test_what_was_removed_while_it_was_measured_is_not_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    street, removed = family("street", 128), family("removed", 416)
    scene = Scene(monkeypatch, street, removed)

    def remove() -> None:
        scene.served.remove(removed)  # and requests that are on their way still need it

    scene.while_measured = remove
    await scene.add()
    assert scene.executor.dropped.get(timeout=PATIENCE_S) == removed.name
    assert scene.executor.dropped.empty()
    small = profile(128, CPU)
    assert scene.known == {small.variant: small}
    assert scene.fed == [ExecutorStarted(CPU, (small,))]


async def test_one_whose_only_model_was_removed_meanwhile_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, family("street", 128, 416))
    scene.while_measured = scene.served.clear
    with pytest.raises(ModelError, match="nothing runs on it"):
        await scene.add()
    assert scene.fed == []


async def test_one_that_is_measured_alone_has_the_interference_of_others_of_its_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, family("street", 128, 416))
    for other, k in ((ExecutorId("cpu/1"), 0.5), (ExecutorId("cuda:0/0"), 0.9)):
        scene.others[other] = {name(256): replace(profile(256, other), interference=k)}
    await scene.add()
    assert {each.interference for each in scene.known.values()} == {0.5}
