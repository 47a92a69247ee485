"""Cameras with two deadlines on a real box: late answers count for what they are still worth."""

import asyncio
from pathlib import Path

import pytest

from edgebox.app.composition import App
from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera
from edgebox.domain.requests import CameraId
from edgebox.link.messages import Result
from edgebox.media.sources import PictureSource
from edgebox.runtime.journal import Journal
from edgebox.runtime.recordings import write_file
from edgebox.runtime.replay import replay_file
from edgebox.storage.database import Storage
from tests.end_to_end.running import (
    PICTURE,
    SIZE_PX,
    assert_adds_up,
    assert_counts_agree,
    counts_of,
    get_json,
    gone,
    running,
    until,
)

RATE_HZ = 10.0


def camera(app: App, name: str, *deadlines: tuple[float, float], received: list[Result]) -> Camera:
    source = PictureSource(SIZE_PX, RATE_HZ, lambda number: PICTURE)
    return Camera(
        source,
        app.url,
        name=name,
        rate_hz=RATE_HZ,
        slo_ms=deadlines,
        on_result=received.append,
    )


async def test_late_answers_count_for_what_they_are_still_worth(database: Path) -> None:
    journal = Journal(window_ns=10**12)
    early: list[Result] = []
    late: list[Result] = []
    async with running(database, journal=journal) as app:
        # Nobody answers within a millisecond; within two seconds nearly everybody does.
        cameras = [
            camera(app, "early", (20000, 1), (30000, 0.5), received=early),
            camera(app, "late", (1, 1), (20000, 0.5), (40000, 0.25), received=late),
        ]
        runs = [asyncio.create_task(each.run()) for each in cameras]
        await until(
            lambda: all(each.summary().on_time + each.summary().late >= 8 for each in cameras),
            "eight answers each",
        )
        for each in cameras:
            each.stop()
        summaries = await asyncio.gather(*runs)
        for summary in summaries:
            await gone(app, summary.camera)
            check_books(app, summary)
        _, document = await get_json(app, "/v1/state")
    of_early, of_late = summaries
    assert of_early.on_time == of_early.sent
    assert of_late.on_time == 0
    assert of_late.late >= 8
    assert {result.outcome.value for result in late} == {"late"}
    assert of_late.utility == pytest.approx(0.5 * of_late.late, abs=0.75)
    by_name = {each["id"]: each for each in document["cameras"]}
    assert (by_name["late"]["slo_ms"], by_name["late"]["later"]) == (
        1,
        [[20000, 0.5], [40000, 0.25]],
    )
    assert by_name["late"]["counts"]["utility"] == pytest.approx(of_late.utility, abs=0.75)
    check_replay(journal, database.parent)
    await check_database(database)


def check_books(app: App, summary: Summary) -> None:
    assert summary.pending == 0
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
    assert_counts_agree(app, summary)
    counts = counts_of(app, summary.camera)
    assert counts.on_time <= counts.utility <= counts.on_time + 0.5 * counts.late


def check_replay(journal: Journal, folder: Path) -> None:
    replayed = replay_file(write_file(journal.recording(), folder), camera="late")
    assert replayed.replay.differing == 0
    (story,) = replayed.stories
    assert any("answers within 1 ms, still worth 0.5 within 20000 ms" in line for line in story)


async def check_database(database: Path) -> None:
    storage = await Storage.open(database)
    try:
        hellos = {each.camera: each.hello for each in await storage.cameras()}
    finally:
        await storage.close()
    assert hellos[CameraId("late")]["slo_ms"] == [[1, 1], [20000, 0.5], [40000, 0.25]]
