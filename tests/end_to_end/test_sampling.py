"""A real box that has fallen idle learns from real models what its requests take alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.domain.model_family import LatencyProfile, VariantName
from edgebox.runtime.frames import Answer
from edgebox.runtime.replay import Replay, replay_file
from edgebox.scheduling.events import ExecutorStarted
from edgebox.scheduling.invariants import check_invariants
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import SIZE_PX, SLO_MS, running, unharmed_bystander, until
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")

SMALL = VariantName("street-128")
BATCH_SIZES = (1, 2, 4, 8)


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
        app.box.set_profiles(executor.id, known)


@contextlib.asynccontextmanager
async def learning(
    database: Path, policy: str = "adaptive", share: float = 0.2
) -> AsyncIterator[App]:
    """Run a box that samples often."""
    async with running(database, scheduler__batching=policy, scheduler__sample_share=share) as app:
        believe_that_batches_pay(app)
        yield app


async def burst(app: App) -> None:
    """Ask for eight pictures in one moment: some of them share a batch."""
    ended: asyncio.Queue[object] = asyncio.Queue()
    for _ in range(8):
        app.box.submit_picture(
            JPEG,
            SIZE_PX,
            SMALL,
            SLO_MS,
            app="http",
            address="127.0.0.1",
            on_end=lambda _, ending: ended.put_nowait(ending),
        )
    answers = [await ended.get() for _ in range(8)]
    assert all(isinstance(answer, Answer) for answer in answers)


def samples(app: App) -> int:
    """Return how many samples of the last minute have ended."""
    timeline = app.box.driver.decisions.timeline
    return sum(batch.sample for batch in timeline.batches.after(0)[1])


def idle(app: App) -> bool:
    """Say whether nothing runs or waits."""
    return not app.box.driver.frames_pending and not app.box.driver.decisions.timeline.running


async def until_sampled(app: App) -> int:
    """Ask for pictures until the box has taken a sample; return how many were asked for."""
    requests = 0
    async with asyncio.timeout(PATIENCE_S):
        while not samples(app):
            await burst(app)
            requests += 8
            # A sample is begun in the moment in which the box falls idle.
            await until(lambda: idle(app), "the end of what runs")
    return requests


async def replayed(app: App, folder: Path) -> Replay:
    """Replay the box's journal, which must come out as it was."""
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/v1/journal") as response:
        path = folder / "journal.gz"
        path.write_bytes(await response.read())
    replayed = replay_file(path).replay
    assert replayed.differences == []
    assert replayed.actions["Sample"] >= replayed.events["SampleCompleted"]
    assert replayed.events["SampleFailed"] == 0
    return replayed


@pytest.mark.parametrize("policy", ["adaptive", "orloj"])
async def test_an_idle_box_learns(database: Path, tmp_path: Path, policy: str) -> None:
    async with learning(database, policy) as app:
        requests = await until_sampled(app)
        completed = (await replayed(app, tmp_path)).events["SampleCompleted"]
        assert completed >= 1
        driver = app.box.driver
        (executor,) = driver.executors
        known = driver.scheduler.times.learning.known(executor.id, SMALL, "http")
        assert known is not None
        assert known.samples >= completed
        # They count beside the pictures that were asked for, and are nobody's frames.
        (times,) = driver.measurements.applications.times(app.box.profiles)
        assert times.count >= requests + completed
        assert driver.frames_pending == 0
        check_invariants(driver.scheduler)


async def test_a_camera_is_unharmed_by_samples(database: Path, tmp_path: Path) -> None:
    async with learning(database) as app:
        async with unharmed_bystander(app, rate_hz=5.0):
            await until_sampled(app)
        assert (await replayed(app, tmp_path)).events["SampleCompleted"] >= 1


async def test_with_a_share_of_nothing_nothing_is_sampled(database: Path, tmp_path: Path) -> None:
    async with learning(database, share=0.0) as app:
        for _ in range(5):
            await burst(app)
            await until(lambda: idle(app), "the end of what runs")
        assert (await replayed(app, tmp_path)).actions["Sample"] == 0
