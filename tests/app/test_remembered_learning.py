"""What a box is given back of executors that come after its start."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import remembered_learning
from edgebox.app.remembered_learning import RememberedLearning
from edgebox.domain.errors import StorageError
from edgebox.domain.learned import Learned, LearnedDrift
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ModelExecutor
from edgebox.runtime.driver import Driver
from edgebox.scheduling.events import LearningRestored
from edgebox.storage.database import Storage

LATE = ExecutorId("box:1/0")
SIZE = VariantName("gate-96")
FAMILY = cast(Family, SimpleNamespace(name="gate", variants=[SimpleNamespace(name=SIZE)]))
EXECUTOR = cast(ModelExecutor, SimpleNamespace(id=LATE))
DRIFT = LearnedDrift(LATE, SIZE, 1.8, 0)


@pytest.fixture
def fed() -> list[Any]:
    return []


@pytest.fixture
def learning(
    storage: Storage, fed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> RememberedLearning:
    monkeypatch.setattr(remembered_learning, "fingerprint", lambda executor, family: "there")
    monkeypatch.setattr(remembered_learning, "model_print", lambda family: "gate 1")
    scheduler = SimpleNamespace(corrections={LATE: {SIZE: 1.8}})
    driver = SimpleNamespace(executors=[], feed=fed.append, scheduler=scheduler)
    return RememberedLearning(storage, cast(Driver, driver), [FAMILY], fed.append)


async def test_the_core_is_told_how_much_slower_it_was(
    learning: RememberedLearning, storage: Storage, fed: list[Any]
) -> None:
    storage.learned.record_drift("there", DRIFT)
    storage.learned.record_drift("elsewhere", LearnedDrift(ExecutorId("box:2/0"), SIZE, 3.0, 0))
    await storage.flush()
    await learning.restore_executor(EXECUTOR)
    assert fed == [LearningRestored(Learned((), (DRIFT,)))]


async def test_what_cannot_be_loaded_is_told(
    learning: RememberedLearning, storage: Storage, fed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(executors: object) -> None:
        raise StorageError("disk gone")

    monkeypatch.setattr(storage.learned, "load_drifts", broken)
    await learning.restore_executor(EXECUTOR)
    assert fed == ["the drift of box:1/0 could not be loaded: disk gone"]


async def test_only_the_families_that_have_come_to_an_executor_are_given_back(
    learning: RememberedLearning, storage: Storage, fed: list[Any]
) -> None:
    storage.learned.record_drift("there", DRIFT)
    await storage.flush()
    await learning.restore_executor(EXECUTOR, [])
    assert fed == [LearningRestored(Learned())]
