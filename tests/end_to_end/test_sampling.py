"""A real box that has fallen idle learns from real models what its requests take alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from edgebox.app import App
from edgebox.domain.models import LatencyProfile, VariantName
from edgebox.runtime.replay import replay_file
from edgebox.scheduling.events import ExecutorStarted
from edgebox.scheduling.invariants import check_invariants
from tests.end_to_end.running import post, running, unharmed_bystander
from tests.end_to_end.wire import JPEG

SMALL = VariantName("street-128")
BATCH_SIZES = (1, 2, 4, 8)
QUERY = {"deadline_ms": 10_000, "variant": SMALL}


def believe_that_batches_pay(app: App) -> None:
    """Tell the core of profiles in which two take little longer than one: so it forms batches.

    On a busy machine the second that a test's profile may take is enough for batches of one.
    """
    for executor in app.box.driver.executors:
        profiles = []
        for variant, measured in app.box.profiles[executor.id].items():
            one = measured.quantiles_ns[1]
            rows = {n: tuple(round(ns * (0.9 + 0.1 * n)) for ns in one) for n in BATCH_SIZES}
            profiles.append(LatencyProfile(variant, executor.id, rows))
        app.box.driver.feed(ExecutorStarted(executor.id, tuple(profiles)))
        known = {profile.variant: profile for profile in profiles}
        app.box.profiles = {**app.box.profiles, executor.id: known}


@contextlib.asynccontextmanager
async def learning(
    database: Path, policy: str = "adaptive", share: float = 0.2
) -> AsyncIterator[App]:
    """Run a box that samples often."""
    async with running(database, scheduler__batching=policy, scheduler__sample_share=share) as app:
        believe_that_batches_pay(app)
        yield app


async def burst(app: App) -> None:
    """Ask for eight pictures at once: some of them share a batch."""
    answers = await asyncio.gather(*(post(app, JPEG, QUERY) for _ in range(8)))
    assert [status for status, _ in answers] == [200] * 8


async def samples_so_far(app: App, folder: Path) -> int:
    """Replay the box's journal; return how many samples it has taken."""
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/v1/journal") as response:
        path = folder / "journal.gz"
        path.write_bytes(await response.read())
    told = replay_file(path).replay
    assert told.differences == []
    assert told.actions["Sample"] >= told.events["SampleCompleted"]
    assert told.events["SampleFailed"] == 0
    return told.events["SampleCompleted"]


@pytest.mark.parametrize("policy", ["adaptive", "orloj"])
async def test_an_idle_box_learns(database: Path, tmp_path: Path, policy: str) -> None:
    async with learning(database, policy) as app:
        driver = app.box.driver
        asked = completed = 0
        while not completed and asked < 400:  # on busy cores pictures may come one by one
            await burst(app)
            asked += 8
            await asyncio.sleep(0.3)
            completed = await samples_so_far(app, tmp_path)
        assert completed >= 1
        (executor,) = driver.executors
        known = driver.scheduler.learning.known(executor.id, SMALL, "http")
        assert known is not None
        assert known.samples >= completed
        # They count beside the pictures that were asked for, and are nobody's frames.
        (times,) = driver.applications.times(app.box.profiles)
        assert times.count >= asked + completed
        assert driver.frames_pending == 0
        check_invariants(driver.scheduler)


async def test_a_camera_is_unharmed_by_samples(database: Path, tmp_path: Path) -> None:
    async with learning(database) as app:
        async with unharmed_bystander(app, rate_hz=5.0):
            for _ in range(40):  # on busy cores the box is seldom idle
                await burst(app)
                await asyncio.sleep(0.3)
                if completed := await samples_so_far(app, tmp_path):
                    break
        assert completed >= 1


async def test_with_a_share_of_nothing_nothing_is_sampled(database: Path, tmp_path: Path) -> None:
    async with learning(database, share=0.0) as app:
        await burst(app)
        await asyncio.sleep(0.5)
        assert await samples_so_far(app, tmp_path) == 0
