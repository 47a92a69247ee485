"""What takes the place of a lost executor: what it runs, what it holds, and what is said of it."""

from collections.abc import Mapping
from queue import Queue
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import executor_replacement as module
from edgebox.app.executor_replacement import ExecutorReplacer
from edgebox.app.executor_setup import Opened
from edgebox.app.startup import ModelInventory
from edgebox.app.weights_loading import WeightsLoader
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import (
    ExecutorId,
    FamilyName,
    LatencyProfile,
    VariantName,
    Weights,
    WeightsId,
)
from edgebox.inference.executor_spec import ExecutorSpec
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ExecutorSpecification
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.runtime.supervisor import Reopened
from edgebox.scheduling.events import MemoryLimited
from tests.conftest import PATIENCE_S
from tests.scheduling.scene import CPU, name, profile

ADDED = ExecutorId("cpu/1")
PROFILES = {name(px): profile(px) for px in (128, 256, 416)}
RESIDENT = WeightsId("a.onnx"), WeightsId("b.onnx")


def family(of: str, offered: tuple[int, ...], kept: tuple[int, ...] = ()) -> Family:
    """Return a family that offers some variants, and has others that it does not offer."""
    variants = [SimpleNamespace(name=name(px)) for px in (*offered, *kept)]
    return cast(
        Family, SimpleNamespace(name=of, variants=variants, offered=variants[: len(offered)])
    )


class Opening(NullExecutor):
    """An executor that runs some families."""

    def __init__(self, spec: ExecutorSpec, families: tuple[str, ...]) -> None:
        super().__init__(spec.id)
        self.families = families  # type: ignore[assignment]
        self.failed: dict[str, str] = {}
        self.abandoned = False
        self.dropped: Queue[str] = Queue()

    def drop_family(self, family: Family) -> None:
        self.dropped.put(family.name)

    def abandon(self) -> None:
        self.abandoned = True
        super().abandon()


class Loader:
    """Keeps what it loads, and for whom."""

    def __init__(self, executor: object = None) -> None:
        self.executor = executor
        self.loaded: list[WeightsId] = []
        self.made: list[Loader] = []

    def on(self, executor: object) -> "Loader":
        self.made.append(Loader(executor))
        return self.made[-1]

    def load(self, weights: WeightsId) -> None:
        self.loaded.append(weights)


class Scene:
    """ExecutorReplacer of one executor; what is opened is a null executor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: tuple[str, ...] = ("street", "face")
        self.failed: dict[str, str] = {}
        self.opened: list[Opening] = []
        self.warmed: list[VariantName] = []
        self.warming: Exception | None = None
        self.profiles: dict[ExecutorId, Mapping[VariantName, LatencyProfile]] = {CPU: PROFILES}
        self.families = [family("street", (128,), kept=(256,)), family("face", (416,))]
        self.specs: dict[ExecutorId, ExecutorSpecification] = {
            CPU: ExecutorSpec(id=CPU, provider="cpu")
        }
        monkeypatch.setattr(module, "open_executor", self._open)
        monkeypatch.setattr(module, "warm", self._warm)

    def replacements(self, found: ModelInventory | None = None) -> ExecutorReplacer:
        return ExecutorReplacer(
            Opened(specs=self.specs),
            self.families,
            found or ModelInventory(),
            lambda: self.profiles,
        )

    def _open(self, spec: ExecutorSpec, families: object) -> Opening:
        assert families == self.families
        self.opened.append(Opening(spec, self.runs))
        self.opened[-1].failed = self.failed
        return self.opened[-1]

    def _warm(self, executor: object, profiles: tuple[LatencyProfile, ...]) -> None:
        if self.warming is not None:
            raise self.warming
        self.warmed += [each.variant for each in profiles]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def limited(executor: ExecutorId, loader: Loader) -> ModelInventory:
    return ModelInventory(
        limits=[MemoryLimited(executor, 30, (), RESIDENT)],
        loaders={executor: cast(WeightsLoader, loader)},
    )


def test_it_runs_what_is_offered_of_the_families_that_it_has(scene: Scene) -> None:
    found = scene.replacements().open(CPU)
    assert [each.variant for each in found.profiles] == scene.warmed == [name(128), name(416)]
    assert (found.limited, found.loader, found.problems) == (None, None, ())
    scene.runs = ("face",)
    assert [each.variant for each in scene.replacements().open(CPU).profiles] == [name(416)]


def test_what_it_ran_before_and_does_not_run_any_more_is_a_problem(scene: Scene) -> None:
    scene.families.append(family("plate", (608,)))
    scene.failed = {"street": "out of memory", "plate": "it never ran here"}
    assert scene.replacements().open(CPU).problems == (
        "street does not run on cpu/0 any more: out of memory",
    )


def test_where_memory_is_limited_it_holds_what_was_held_at_the_start(scene: Scene) -> None:
    loader = Loader()
    found = scene.replacements(limited(CPU, loader)).open(CPU)
    (own,) = loader.made
    assert own.executor is found.executor
    assert tuple(own.loaded) == RESIDENT
    assert not loader.loaded
    assert cast(Any, found.loader) is own
    assert found.limited is not None
    assert found.limited.resident == RESIDENT
    assert not scene.warmed, "loading warms"


def test_one_that_was_added_is_replaced_by_its_like(scene: Scene) -> None:
    loader, replacements = Loader(), scene.replacements()
    spec = ExecutorSpec(id=ADDED, provider="cpu", threads=3)
    first = cast(OnnxExecutor, Opening(spec, scene.runs))
    scene.profiles[ADDED] = PROFILES
    replacements.add(first, spec, limited(ADDED, loader))
    found = replacements.open(ADDED)
    assert found.limited is not None
    assert tuple(loader.made[0].loaded) == RESIDENT
    assert scene.specs[ADDED] is spec


@pytest.mark.parametrize("error", [ModelError("no"), KeyboardInterrupt()])
def test_one_that_cannot_be_warmed_is_left_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(scene, "warming", error)
    with pytest.raises(type(error)):
        scene.replacements().open(CPU)
    assert scene.opened[0].abandoned


def present(found: Reopened) -> list[LatencyProfile]:
    """Return the profiles with which an executor is taken into use."""
    assert found.present is not None
    return list(found.present())


def test_of_a_model_that_was_exchanged_meanwhile_it_has_no_profiles(scene: Scene) -> None:
    found = scene.replacements().open(CPU)
    opened = scene.opened[0]
    assert present(found) == [PROFILES[name(128)], PROFILES[name(416)]]
    # Another model has come under the name, with sizes of the same names and times of its own.
    scene.families[0] = family("street", (128,), kept=(608,))
    scene.profiles[CPU] = {**PROFILES, name(128): profile(128, gain=0.5)}
    assert present(found) == [PROFILES[name(416)]]
    found.on_use()
    assert opened.dropped.get(timeout=PATIENCE_S) == "street"
    assert opened.dropped.empty()


def test_what_was_measured_while_it_was_opened_counts(scene: Scene) -> None:
    found = scene.replacements().open(CPU)
    again = profile(416, gain=0.5)
    scene.profiles[CPU] = {**PROFILES, name(416): again}
    assert present(found) == [PROFILES[name(128)], again]
    found.on_use()
    assert scene.opened[0].dropped.empty()


def test_weights_of_a_family_that_was_removed_are_not_loaded_again(scene: Scene) -> None:
    loader = Loader()
    street, face = (
        Weights(of, FamilyName(of), 10, px * px, (name(px),))
        for of, px in zip(RESIDENT, (128, 416), strict=True)
    )
    inventory = ModelInventory(
        limits=[MemoryLimited(CPU, 30, (street, face), RESIDENT)],
        loaders={CPU: cast(WeightsLoader, loader)},
    )
    replacements = scene.replacements(inventory)
    scene.families.pop(0)
    found = replacements.open(CPU)
    assert found.limited == MemoryLimited(CPU, 30, (face,), RESIDENT[1:])
    assert loader.made[0].loaded == [RESIDENT[1]]
