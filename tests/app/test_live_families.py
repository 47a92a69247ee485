"""Families that are removed while a box runs: nothing stays, also where that is interrupted."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import family_placement, live_families, missing_families, remembered_learning
from edgebox.app.executor_profiles import change_profiles
from edgebox.app.executor_setup import Opened
from edgebox.app.live_families import LiveFamilies
from edgebox.app.missing_families import ASK_AGAIN_S
from edgebox.app.remembered_learning import RememberedLearning
from edgebox.app.served_families import ServedFamilies
from edgebox.config.config_file import Config, load
from edgebox.domain.errors import ModelError, StorageError
from edgebox.domain.job_errors import FamilyInUseError
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, VariantName
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import SourceAddress, SourceKind
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ModelExecutor
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Answer
from edgebox.runtime.model_choice import ModelChoice
from edgebox.runtime.source_status import SourceStatus
from edgebox.scheduling.events import ExecutorStarted
from edgebox.scheduling.supervised import ExecutorState
from edgebox.storage.database import Storage
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.running import until
from tests.runtime.driving import Bench, ManualExecutor, settle
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, STREET, name, profile

KNOWN = {name(px): profile(px) for px in MEDIAN_MS}


class Holding(ManualExecutor):
    """An executor that says which families it no longer holds."""

    families = (STREET,)  # type: ignore[assignment]
    memory_limit_bytes = 0
    shares_machine = True
    failed: Any = "not called"
    warm_each: Any = "not called"
    load: Any = "not called"
    unload: Any = "not called"
    add_family: Any = "not called"
    is_loaded: Any = "not called"
    largest_of_each_file: Any = "not called"
    memory_used_bytes: Any = "not called"

    def __init__(self) -> None:
        super().__init__()
        self.dropped: list[Family] = []

    def drop_family(self, family: Family) -> None:
        self.dropped.append(family)


def replace_in(family: Family, **values: object) -> Family:
    """Return a stand-in of a family with other values."""
    return cast(Family, SimpleNamespace(**{**vars(family), **values}))


class _Box(SimpleNamespace):
    models: ModelChoice

    @property
    def families(self) -> Mapping[FamilyName, Family]:
        return self.models.families


class Scene:
    """A box that serves one family, on one executor."""

    def __init__(self, storage: Storage, config: Config) -> None:
        self.executor = Holding()
        assert isinstance(self.executor, ModelExecutor)
        self.bench = Bench(self.executor)
        self.driver = self.bench.driver
        self.family = cast(
            Family,
            SimpleNamespace(
                name=STREET,
                variants=FAMILY,
                offered=FAMILY,
                input=None,
                labels=(),
                manifest=None,
                insist_on_pictures=lambda: None,
            ),
        )
        self.served = ServedFamilies.of([self.family])
        self.driver.variants = self.served.variants
        self.box = _Box(
            driver=self.driver,
            profiles={CPU: KNOWN},
            notices=SimpleNamespace(publish=lambda *_: None),
            models=ModelChoice({STREET: self.family}, FamilyName("other")),
            cameras={},
            overrides={},
            sources={},
        )
        self.box.offer = lambda models: vars(self.box).update(models=models)
        self.box.set_profiles = lambda executor, known: self.box.profiles.update({executor: known})
        spec = SimpleNamespace(holds=lambda family: True)
        self.live = LiveFamilies(
            config,
            cast(Box, self.box),
            storage,
            self.served,
            cast(Opened, SimpleNamespace(specs={CPU: spec})),
            RememberedLearning(storage, self.driver, [self.family], pytest.fail),
        )

    @property
    def nothing_is_left(self) -> bool:
        return (
            not self.served.variants
            and not self.served.left
            and not self.box.profiles[CPU]
            and not self.driver.scheduler.supervised[CPU].variants
            and not self.bench.canvases._spare
            and self.executor.dropped == [self.family]
        )


@pytest.fixture
async def scene(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(remembered_learning, "fingerprint", lambda executor, family: "there")
    monkeypatch.setattr(remembered_learning, "model_print", lambda family: "street 1")
    return Scene(storage, load(None, settings(tmp_path / "box.sqlite3")))


async def ended(scene: Scene, task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await scene.driver.stop(1)


async def test_what_runs_on_a_removed_family_is_answered_before_it_is_freed(scene: Scene) -> None:
    scene.bench.canvases.put(scene.bench.canvases.take(FAMILY[0]))
    frame = scene.bench.submit()
    await settle()
    (batch,) = scene.executor.batches
    task = asyncio.ensure_future(scene.live.run())
    scene.live._serve_no_more(STREET)
    await settle()
    assert not scene.served.families
    assert not scene.executor.dropped, "a batch runs on it"
    assert scene.box.profiles[CPU] == KNOWN
    batch.complete()
    await until(lambda: scene.nothing_is_left, "it to go")
    assert isinstance(scene.bench.ending(frame), Answer)
    await ended(scene, task)


async def test_what_has_another_name_does_not_wait_for_a_withdrawal(scene: Scene) -> None:
    scene.bench.submit()
    await settle()
    (batch,) = scene.executor.batches
    task = asyncio.ensure_future(scene.live.run())
    scene.live._serve_no_more(STREET)
    await settle()
    async with asyncio.timeout(PATIENCE_S):
        await scene.live._withdraw(FamilyName("imported"))
    assert scene.served.left, "a batch runs on it"
    batch.complete()
    await until(lambda: scene.nothing_is_left, "it to go")
    await ended(scene, task)


async def test_a_withdrawal_that_was_interrupted_is_done_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = asyncio.Event()

    async def never(*_: object) -> None:
        interrupted.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(family_placement, "change_profiles", never)
    task = asyncio.ensure_future(scene.live.run())
    scene.live._serve_no_more(STREET)
    await interrupted.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert scene.served.left
    monkeypatch.setattr(family_placement, "change_profiles", change_profiles)
    await scene.live._withdraw(STREET)
    assert scene.nothing_is_left
    await scene.live._withdraw(STREET)
    assert scene.executor.dropped == [scene.family], "there is nothing left to withdraw"
    await scene.driver.stop(1)


async def test_what_comes_while_a_family_is_withdrawn_stays(scene: Scene) -> None:
    later = Holding()
    later.id = ExecutorId("cpu/1")
    scene.driver.add(later, None)
    scene.bench.submit()
    await settle()
    (batch,) = scene.executor.batches
    scene.driver.feed(ExecutorStarted(later.id, tuple(KNOWN.values())))
    scene.box.profiles = {CPU: KNOWN, later.id: KNOWN}
    scene.live.opened.specs[later.id] = scene.live.opened.specs[CPU]
    runs_on = next(each for each in FAMILY if each.name == batch.variant)
    removed = tuple(each for each in FAMILY if each is not runs_on)
    scene.family = replace_in(scene.family, variants=removed, offered=removed)
    scene.served.families[:] = [scene.family]
    task = asyncio.ensure_future(scene.live.run())
    scene.live._serve_no_more(STREET)
    await settle()
    assert scene.served.left, "the first executor runs a batch"
    imported = replace(KNOWN[runs_on.name], variant=VariantName("imported"))
    box = cast(Box, scene.box)
    await change_profiles(box, later.id, lambda known: {**known, imported.variant: imported})
    batch.complete()
    await until(lambda: not scene.served.left, "it to go")
    assert scene.box.profiles[later.id].keys() == {runs_on.name, imported.variant}
    assert scene.box.profiles[CPU].keys() == {runs_on.name}
    await ended(scene, task)


async def test_a_withdrawal_that_is_done_again_waits_for_the_batches_of_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(call: Callable[[Family], None], family: Family) -> None:
        call(family)

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    scene.bench.submit()
    await settle()
    (batch,) = scene.executor.batches
    removed = tuple(each for each in FAMILY if each.name != batch.variant)
    scene.family = replace_in(scene.family, variants=removed, offered=removed)
    scene.served.families[:] = [scene.family]
    task = asyncio.ensure_future(scene.live.run())
    scene.live._serve_no_more(STREET)
    await settle()
    task.cancel()
    again = asyncio.ensure_future(scene.live._withdraw(STREET))
    await settle()
    assert not scene.executor.dropped, "the executor may still be given batches of it"
    batch.complete()
    await again
    assert scene.executor.dropped == [scene.family]
    await ended(scene, task)


class Lacking:
    """A family that the executor does not have, and what came of the looks at that."""

    def __init__(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.fits = True
        self.now_s = 0.0
        scene.box.profiles[CPU] = {}
        monkeypatch.setattr(Holding, "families", ())
        monkeypatch.setattr(scene.executor, "add_family", self._add)
        monkeypatch.setattr(family_placement, "stored_profiles", self._stored)
        monkeypatch.setattr(family_placement, "warm", lambda executor, profiles: None)
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        monkeypatch.setattr(missing_families, "time", clock)
        monkeypatch.setattr(missing_families, "LOOK_EVERY_S", 0.0)

    def _add(self, family: Family) -> None:
        self.asked.append(family.name)
        if not self.fits:
            raise ModelError("the server has another family of this name")

    async def _stored(self, *_: object) -> list[LatencyProfile]:
        return list(KNOWN.values())

    async def looked(self) -> None:
        """Wait until it was looked twice more."""
        for _ in range(20):
            await asyncio.sleep(0)
        await settle()


async def test_one_that_was_lost_while_a_family_came_gets_it_when_it_is_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Lacking(scene, monkeypatch)
    task = asyncio.ensure_future(scene.live.missing.run())
    await lacking.looked()
    assert not lacking.asked, "it was asked when it was opened"
    scene.driver.scheduler.supervised[CPU].restarts = 1
    await until(lambda: scene.box.profiles[CPU] == KNOWN, "it to have the family")
    assert lacking.asked == [STREET]
    await ended(scene, task)


async def test_a_family_that_comes_later_shares_the_machine_as_others_do(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lacking(scene, monkeypatch)
    known = replace(
        KNOWN[name(256)],
        variant=VariantName("other"),
        interference=0.5,
        core_factors={2: {}},
    )
    scene.box.profiles[CPU] = {known.variant: known}
    scene.driver.scheduler.supervised[CPU].restarts = 1
    task = asyncio.ensure_future(scene.live.missing.run())
    await until(lambda: len(scene.box.profiles[CPU]) > 1, "it to have the family")
    profiles = scene.box.profiles[CPU].values()
    assert {each.interference for each in profiles} == {0.5}
    assert {each.thread_counts for each in profiles} == {(2,)}
    await ended(scene, task)


async def test_a_server_is_asked_again_once_its_files_may_fit(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Lacking(scene, monkeypatch)
    monkeypatch.setattr(Holding, "shares_machine", False)
    lacking.fits = False
    task = asyncio.ensure_future(scene.live.missing.run())
    await lacking.looked()
    assert not lacking.asked
    lacking.now_s += ASK_AGAIN_S
    await until(lambda: len(lacking.asked) == 1, "it to be asked")
    await lacking.looked()
    assert len(lacking.asked) == 1
    assert not scene.box.profiles[CPU]
    lacking.fits = True
    lacking.now_s += ASK_AGAIN_S
    await until(lambda: scene.box.profiles[CPU] == KNOWN, "it to have the family")
    await ended(scene, task)


async def test_a_database_that_is_locked_for_a_moment_ends_no_look(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Lacking(scene, monkeypatch)
    locked = [StorageError("the database is locked")]

    async def stored(*_: object) -> list[LatencyProfile]:
        if locked:
            raise locked.pop()
        return list(KNOWN.values())

    monkeypatch.setattr(family_placement, "stored_profiles", stored)
    scene.driver.scheduler.supervised[CPU].restarts = 1
    task = asyncio.ensure_future(scene.live.missing.run())
    await until(lambda: scene.box.profiles[CPU] == KNOWN, "it to have the family")
    assert lacking.asked == [STREET, STREET]
    assert scene.executor.dropped == [scene.family], "it was not held without times"
    await ended(scene, task)


async def test_a_database_that_is_locked_makes_no_import_fail(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Lacking(scene, monkeypatch)

    async def stored(*_: object) -> list[LatencyProfile]:
        raise StorageError("the database is locked")

    monkeypatch.setattr(family_placement, "stored_profiles", stored)
    monkeypatch.setattr(live_families, "load_family", lambda folder: scene.family)
    with pytest.raises(ModelError, match="cpu/0: the database is locked"):
        await scene.live.add(tmp_path, lambda text, share: None)
    assert scene.executor.dropped == [scene.family]
    await scene.driver.stop(1)


async def test_a_family_that_hangs_on_an_executor_is_not_tried_there_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking, told = Lacking(scene, monkeypatch), list[str]()
    scene.box.notices.publish = lambda severity, text: told.append(f"{severity}: {text}")

    def hang(family: Family) -> None:
        lacking.asked.append(family.name)
        raise HungError("it does not answer")

    monkeypatch.setattr(scene.executor, "add_family", hang)
    task = asyncio.ensure_future(scene.live.missing.run())
    await lacking.looked()
    for restarts in (1, 2):
        scene.driver.scheduler.supervised[CPU].restarts = restarts
        scene.driver.scheduler.supervised[CPU].state = ExecutorState.UP
        await until(lambda: bool(told), "the executor to be asked")
        await lacking.looked()
    assert lacking.asked == [STREET]
    assert told == ["warning: street does not run on cpu/0: it does not answer"]
    await ended(scene, task)


async def test_where_memory_is_limited_what_is_needed_takes_its_place(scene: Scene) -> None:
    inference = replace(scene.live.config.inference, memory_limit_mb=1)
    scene.live.config = replace(scene.live.config, inference=inference)
    task = asyncio.ensure_future(scene.live.run())
    scene.live._serve_no_more(STREET)
    await settle()
    assert scene.served.left
    assert not scene.executor.dropped
    await ended(scene, task)


async def test_a_model_that_is_becoming_the_default_is_not_removed_meanwhile(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    storing, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stores(*_: object) -> None:
        loop.call_soon_threadsafe(storing.set)
        assert go_on.wait(PATIENCE_S)

    monkeypatch.setattr(live_families, "store_default", stores)
    monkeypatch.setattr(live_families, "remove_family", pytest.fail)
    chosen = asyncio.ensure_future(scene.live.set_default(STREET))
    async with asyncio.timeout(PATIENCE_S):
        await storing.wait()
    removed = asyncio.ensure_future(scene.live.remove(STREET))
    await settle()
    go_on.set()
    await chosen
    with pytest.raises(FamilyInUseError, match="is the default model"):
        await removed
    assert scene.box.models.default_family == STREET
    await scene.driver.stop(1)


async def test_what_a_fetched_camera_uses_stays_while_its_source_is_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_families, "remove_family", pytest.fail)
    monkeypatch.setattr(LiveFamilies, "manifest_of", lambda live, name: "its SHA-256")
    address = SourceAddress(SourceKind.NETWORK, "rtsp://gate/1")
    source = SourceStatus(CameraId("gate"), address, "api", family=STREET)
    scene.box.sources["gate"] = source
    with pytest.raises(FamilyInUseError, match="street is used by gate"):
        await scene.live.remove(STREET)
    assert scene.live.forget(STREET) == "gate"
    assert STREET in scene.box.families
    await scene.driver.stop(1)


async def test_what_changes_while_a_model_is_removed_stays_if_it_cannot_be(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        scene.box.models = replace(scene.box.models, default_family=FamilyName("third"))
        raise ModelError("the disk is read-only")

    monkeypatch.setattr(live_families, "remove_family", fails)
    with pytest.raises(ModelError, match="read-only"):
        await scene.live.remove(STREET)
    assert scene.box.models == ModelChoice({STREET: scene.family}, FamilyName("third"))
    with pytest.raises(ModelError, match="the model gone was removed"):
        await scene.live.set_default("gone")
    await scene.driver.stop(1)
