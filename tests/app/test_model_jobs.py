"""Measuring a family on executors of which some are lost or fail."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import model_jobs
from edgebox.app.model_jobs import ModelJobs
from edgebox.config.config_file import load
from edgebox.domain.errors import ModelError, StorageError
from edgebox.domain.job_errors import CamerasConnectedError
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.family import Family
from edgebox.runtime.box import Box
from edgebox.runtime.job_runner import Finished, Job
from edgebox.scheduling.events import ExecutorHung, ExecutorStarted
from edgebox.storage.database import Storage
from tests.app.test_live_families import KNOWN, Holding
from tests.runtime.driving import Bench
from tests.scheduling.scene import CPU, STREET, name, profile

OTHER = ExecutorId("cpu/1")


class OtherExecutor(Holding):
    """A second executor of the machine."""

    id = OTHER


class Scene:
    """A box with two executors, and the times that measuring them finds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench = Bench(Holding())
        self.driver = self.bench.driver
        self.driver.add(OtherExecutor(), None)
        others = {of: replace(each, executor=OTHER) for of, each in KNOWN.items()}
        self.driver.feed(ExecutorStarted(OTHER, tuple(others.values())))
        self.saved: list[str] = []
        self.notices: list[tuple[str, str]] = []
        self.failing: set[ExecutorId] = set()
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while an executor is measured."""
        self.new = profile(416).scaled(2)
        self.profiles: dict[ExecutorId, Mapping[VariantName, LatencyProfile]]
        self.profiles = {CPU: KNOWN, OTHER: others}
        self.box = box = SimpleNamespace(
            driver=self.driver,
            profiles=self.profiles,
            set_profiles=self.profiles.__setitem__,
            connected=0,
            notices=SimpleNamespace(publish=lambda *said: self.notices.append(said)),
        )
        storage = SimpleNamespace(save_profiles=lambda key, found: self.saved.append(key))
        self.jobs = ModelJobs(load(None, {}), cast(Box, box), cast(Storage, storage))
        monkeypatch.setattr(model_jobs, "measure", self._measure)
        monkeypatch.setattr(model_jobs, "fingerprint", lambda executor, family: executor.id)

    def _measure(self, inference: object, executor: Any, *_: object) -> list[LatencyProfile]:
        self.meanwhile()
        if executor.id in self.failing:
            raise ModelError("the executor is closed")
        return [replace(self.new, executor=executor.id)]

    async def measure(self) -> Finished:
        family = cast(Family, SimpleNamespace(name=STREET))
        return await self.jobs._measure(family, Job(1, "profile", STREET, 0))

    def uses_new_times(self, executor: ExecutorId) -> bool:
        return self.profiles[executor][name(416)].quantiles_ns == self.new.quantiles_ns


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("lost", [CPU, OTHER])
async def test_an_executor_that_is_lost_is_not_measured_and_the_others_are(
    scene: Scene, lost: ExecutorId
) -> None:
    scene.driver.feed(ExecutorHung(lost))
    scene.failing = {lost}
    (other,) = {CPU, OTHER} - {lost}
    assert (await scene.measure()).remarks == ()
    assert scene.saved == [other]
    assert scene.uses_new_times(other)
    assert not scene.uses_new_times(lost)
    await scene.driver.stop(1)


async def test_what_was_measured_before_another_executor_failed_is_kept(scene: Scene) -> None:
    scene.failing = {OTHER}
    finished = await scene.measure()
    assert scene.saved == [CPU]
    assert scene.uses_new_times(CPU)
    assert finished.remarks == ("not measured on cpu/1: the executor is closed",)
    assert scene.notices[0][1] == "street was not measured on cpu/1: the executor is closed"
    await scene.driver.stop(1)


async def test_where_no_executor_can_be_measured_the_job_says_why(scene: Scene) -> None:
    scene.failing = {CPU, OTHER}
    with pytest.raises(ModelError, match="cpu/0: the executor is closed; not measured on cpu/1"):
        await scene.measure()
    for executor in (CPU, OTHER):
        scene.driver.feed(ExecutorHung(executor))
    with pytest.raises(ModelError, match="no executor is up that holds street"):
        await scene.measure()
    await scene.driver.stop(1)


async def test_what_was_measured_before_a_camera_connected_is_told(scene: Scene) -> None:
    """The job failed, and said that nothing was changed."""
    save = scene.saved.append

    def save_and_connect(key: str, found: object) -> None:
        save(key)
        scene.box.connected = 1

    scene.jobs._storage.save_profiles = save_and_connect  # type: ignore[assignment]
    finished = await scene.measure()
    assert scene.saved == [CPU]
    assert scene.uses_new_times(CPU)
    assert finished.remarks == ("not measured on cpu/1: a camera connected and uses the executor",)
    with pytest.raises(CamerasConnectedError, match="cpu/0: a camera connected"):
        await scene.measure()
    await scene.driver.stop(1)


async def test_times_that_cannot_be_stored_of_one_executor_leave_the_others_measured(
    scene: Scene,
) -> None:
    def save(key: str, found: object) -> None:
        if key == OTHER:
            raise StorageError("the disk is full")
        scene.saved.append(key)

    scene.jobs._storage.save_profiles = save  # type: ignore[assignment]
    assert (await scene.measure()).remarks == ("not measured on cpu/1: the disk is full",)
    assert scene.uses_new_times(CPU)
    assert not scene.uses_new_times(OTHER)
    await scene.driver.stop(1)


async def test_an_executor_that_was_replaced_meanwhile_is_the_one_that_is_measured(
    scene: Scene,
) -> None:
    """The one that was up at the beginning was asked, which was closed."""
    again = OtherExecutor()

    def replaced() -> None:
        scene.driver._executors[OTHER] = again

    scene.meanwhile = replaced
    asked: list[object] = []
    measured = scene.jobs._measured

    async def noted(family: Family, executor: Any, report: Any) -> list[LatencyProfile]:
        asked.append(executor)
        return await measured(family, executor, report)

    scene.jobs._measured = noted  # type: ignore[method-assign]
    await scene.measure()
    assert asked[1:] == [again]
    await scene.driver.stop(1)
