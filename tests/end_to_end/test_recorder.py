"""The flight recorder of a real box: given away over HTTP, on a signal and on a defect."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.commands.root import _serve
from edgebox.config.config_file import load
from edgebox.domain.errors import InvariantViolation
from edgebox.media.sources import PictureSource
from edgebox.runtime.replay import replay_file
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.program import (
    beside_the_loop,
    configured,
    edgebox,
    said,
    serving,
    within_this_process,
)
from tests.end_to_end.running import (
    PICTURE,
    SIZE_PX,
    SLO_MS,
    get_json,
    running,
    streaming,
    texts,
    until,
)
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")


async def fetch(app: App, folder: Path) -> Path:
    """Save what the box gives away; return the file, named as the box says."""
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{app.url}/v1/journal") as response,
    ):
        assert response.status == 200
        assert response.content_type == "application/gzip"
        assert response.content_disposition is not None
        assert response.content_disposition.filename is not None
        path = folder / response.content_disposition.filename
        path.write_bytes(await response.read())
    return path


async def test_the_journal_of_a_real_box_replays_exactly(database: Path, tmp_path: Path) -> None:
    async with running(database) as app, streaming(app, "gate") as camera:
        await until(lambda: camera.summary().on_time >= 15, "15 answers")
        path = await fetch(app, tmp_path)
        replayed = replay_file(path, camera="gate")
        assert camera.summary().on_time >= 15
    assert path.name.startswith("edgebox-journal-2")
    assert replayed.replay.differences == []
    assert replayed.replay.endings["on_time"] >= 15
    assert replayed.replay.events["RequestArrived"] >= 15
    (story,) = replayed.stories
    assert "said hello: application default, family street, 320 × 180 px" in story[1]
    assert any("frames answered, " in line for line in story)


async def test_the_story_of_a_request_is_told_in_order(database: Path, tmp_path: Path) -> None:
    async with running(database) as app:
        async with streaming(app, "gate") as camera:
            await until(lambda: camera.summary().on_time >= 3, "three answers")
        path = await fetch(app, tmp_path)
    answered = next(
        story
        for request in replay_file(path).replay.requests
        if "answered" in (story := replay_file(path, request=request).stories[0])[-1]
    )
    words = ["request", "arrived whole", "admitted", "decoded", "joined", "came back", "answered"]
    assert len(answered) == len(words)
    for line, word in zip(answered, words, strict=True):
        assert word in line
    times_ms = [float(line[1:].split(" ms ")[0]) for line in answered[1:]]
    assert times_ms == sorted(times_ms)


async def test_pages_of_others_may_not_have_it(database: Path) -> None:
    async with running(database) as app, aiohttp.ClientSession() as client:
        for origin, status in (("http://evil.example", 403), (app.url, 200)):
            async with client.get(f"{app.url}/v1/journal", headers={"Origin": origin}) as response:
                assert response.status == status


async def test_there_is_none_before_the_models_are_ready(database: Path) -> None:
    app = App(load(None, settings(database)))
    await app.listen()
    try:
        status, document = await get_json(app, "/v1/journal")
        assert status == 503
        assert document["code"] == "no_journal"
        assert await app.write_journal() is None
        assert "the journal was not written: there is no journal before" in texts(app)[-1]
    finally:
        await app.stop()


async def test_sigusr1_writes_a_file_that_replays(tmp_path: Path, database: Path) -> None:
    config = configured(tmp_path, database)
    async with serving(tmp_path, "--config", str(config)) as (process, url):
        source = PictureSource(SIZE_PX, 8.0, lambda number: PICTURE)
        camera = Camera(source, url, name="gate", slo_ms=SLO_MS)
        run = asyncio.create_task(camera.run())
        await until(lambda: camera.summary().on_time >= 5, "five answers")
        camera.stop()
        await run
        process.send_signal(signal.SIGUSR1)
        line = await said(process, "the journal was written to")
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{url}/v1/state") as response,
        ):
            events = [event["text"] for event in (await response.json())["box"]["events"]]
    (path,) = database.parent.glob("edgebox-journal-*.jsonl.gz")
    assert line.strip().endswith(f"the journal was written to {path}")
    assert f"the journal was written to {path}" in events
    # Another process: what depended on hashes or addresses would come out differently.
    document = (await edgebox(tmp_path, "replay", str(path), "--json")).json()
    assert document["differences"] == []
    assert document["endings"]["on_time"] >= 4
    of_one = ("replay", str(path), "--camera", "gate", "--request", "1")
    result = await beside_the_loop(tmp_path, *of_one)
    assert result.code == 0, result.err
    assert "every order came out as it was recorded" in result.out
    assert "request 1 of gate (application default)" in result.out
    assert "said hello" in result.out
    assert "RequestArrived" in result.out


def test_replay_of_what_is_no_journal_is_one_clear_line(tmp_path: Path) -> None:
    letter = tmp_path / "letter"
    letter.write_text("Dear reader")
    ended = within_this_process(tmp_path, "replay", str(letter))
    assert ended.code == 1
    assert ended.out == ""
    assert f"edgebox replay: {letter}: is not a journal of edgebox" == " ".join(ended.err.split())


@contextlib.asynccontextmanager
async def broken_box(database: Path) -> AsyncIterator[App]:
    """Run a box through the program's own loop, and corrupt its ledger while a camera sends."""
    app = App(load(None, settings(database)))
    ending = contextlib.ExitStack()
    box = asyncio.create_task(_serve(app, True, ending))
    await until(lambda: app.ready_s is not None, "the box")
    app.box.driver.scheduler._ledger.frames_by_camera = None  # type: ignore[assignment]
    try:
        yield app
    finally:
        with ending, pytest.raises(InvariantViolation) as ended:
            await box
        ending.close()  # the process goes on: it must not be ended
        assert ended.value is app.failure


async def test_a_defect_ends_the_box_clearly_with_its_journal(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[Any] = []
    async with broken_box(database) as app, aiohttp.ClientSession() as client:
        async with client.post(f"{app.url}/v1/infer", data=JPEG) as response:
            refused.append(await response.json())
        await asyncio.wait_for(app.failed.wait(), PATIENCE_S)
    assert refused[0]["code"] in ("shutdown", "internal")
    assert isinstance(app.failure, InvariantViolation)
    (path,) = database.parent.glob("edgebox-journal-*.jsonl.gz")
    said_last = str(app.failure)
    assert said_last.startswith("the scheduler failed (AttributeError: ")
    assert str(path) in said_last
    assert "please report it" in said_last
    assert isinstance(app.failure, InvariantViolation)
    assert app.failure.tail
    # The defect was put in from outside, so only the last call comes out differently.
    replayed = replay_file(path)
    assert replayed.replay.differing == 1
    assert "the journal has raising AttributeError" in replayed.replay.differences[0]
