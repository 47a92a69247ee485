"""Real cameras on a real box: every frame ends once, advice is obeyed, all counts agree."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.app.composition import App
from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera
from edgebox.camera.records import FrameRecord
from edgebox.config.config_file import load
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import CameraId
from edgebox.link.messages import Ack, AdviceMessage, DropNotice, Result, Welcome
from edgebox.link.shaping import BandwidthTrace
from edgebox.media.sources import open_source
from edgebox.runtime.journal import Journal
from edgebox.runtime.recordings import write_file
from edgebox.runtime.replay import replay_file
from edgebox.scheduling.actions import Advise
from edgebox.storage.database import Storage
from edgebox.storage.levels import DROPPED, HOUR, MINUTE, SUMS
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.running import (
    assert_adds_up,
    assert_counts_agree,
    gone,
    running,
    streaming,
    texts,
    unsent_together,
    until,
)
from tests.end_to_end.wire import WireCamera

pytestmark = pytest.mark.usefixtures("few_sizes")

SCENE_PX = (640, 360)
RATE_HZ = 4.0
FRAMES = 18


class Sending:
    """The pictures of a camera: how wide each was that has ended, in order."""

    def __init__(self) -> None:
        self.widths_px: list[int] = []

    def ended(self, frame: FrameRecord) -> None:
        """Note a frame's width if it was sent."""
        if frame.handed_over is not None:
            self.widths_px.append(frame.handed_over.width_px)


def scene_camera(app: App, seed: int, results: list[Result], **options: object) -> Camera:
    source = open_source(f"scene:{seed}", RATE_HZ, size_px=SCENE_PX)
    return Camera(
        source,
        app.url,
        rate_hz=RATE_HZ,
        slo_ms=2000.0,
        on_result=results.append,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.all_sizes
async def test_two_cameras_one_on_a_slow_link(database: Path) -> None:
    journal = Journal(window_ns=10**12)
    good: list[Result] = []
    slow: list[Result] = []
    wide, narrow = Sending(), Sending()
    link = BandwidthTrace.constant(0.16)
    async with running(database, journal=journal) as app:
        cameras = [
            scene_camera(app, 1, good, name="good", on_frame_end=wide.ended),
            scene_camera(app, 2, slow, name="slow", on_frame_end=narrow.ended, link=link),
        ]
        runs = [asyncio.create_task(camera.run()) for camera in cameras]
        for camera in cameras:
            await mostly_in_time(camera)
        await until(lambda: any(text.startswith("slow moved") for text in texts(app)), "a move")
        await until(lambda: as_links_allow(app, wide, narrow), "sizes that follow the links")
        for camera in cameras:
            camera.stop()
        summaries = await asyncio.gather(*runs)
        for summary in summaries:
            await gone(app, summary.camera)
            check_books(app, summary)
    check_replay(journal, database.parent)
    await check_database(database, summaries)
    check_detections(good + slow)


def check_books(app: App, summary: Summary) -> None:
    assert summary.pending == 0
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
    assert_counts_agree(app, summary)


async def mostly_in_time(camera: Camera) -> None:
    """Wait for a number of frames of which most were in time.

    A busy machine may take longer to get there: of the frames before, nothing is asked.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not await most_in_time(camera):
            pass


async def most_in_time(camera: Camera) -> bool:
    """Say whether most of the next frames were in time."""
    first = camera.summary()
    await until(lambda: camera.summary().captured >= first.captured + FRAMES, "frames")
    last = camera.summary()
    return last.on_time - first.on_time >= 0.6 * (last.captured - first.captured)


def as_links_allow(app: App, wide: Sending, narrow: Sending) -> bool:
    """Say whether both send what their links carry, and the box knows why.

    It says nothing of the way there: how small the first estimates are, the machine decides.
    """
    advice = app.box.cameras[CameraId("slow")].advice
    return (
        advice is not None
        and 0.08e6 < advice.bandwidth_bps < 0.24e6
        and "the uplink carries" in advice.reason
        # It began with larger ones. Once told, it obeys.
        and narrow.widths_px[-1] == advice.width_px < narrow.widths_px[0]
        and narrow.widths_px[-1] < wide.widths_px[-1]
    )


async def test_an_event_names_both_sizes_of_a_camera_that_moved_alike(database: Path) -> None:
    async with running(database) as app, streaming(app, "gate"):
        gate = CameraId("gate")
        advice = app.box.cameras[gate].advice
        assert advice is not None
        (was,) = (
            f"{each.width_px} × {each.height_px} px"
            for each in app.box.families[app.box.models.default_family].variants
            if each.name == advice.variant
        )
        given = replace(advice, variant=VariantName("other"), reason="32 × 16 px: it is a test")
        app.box.advised(Advise(gate, given))
        assert texts(app)[-1] == f"gate moved from {was} to 32 × 16 px: it is a test"
        app.box.advised(Advise(gate, advice))  # no family has the size that it comes from
        assert texts(app)[-1] == f"gate moved to {advice.reason}"


def check_detections(results: list[Result]) -> None:
    found = [detection for result in results for detection in result.detections]
    assert found, "a street full of people and cars, and nothing was seen"
    for detection in found:
        x1, y1, x2, y2 = detection.box
        assert 0 <= x1 < x2 <= SCENE_PX[0]
        assert 0 <= y1 < y2 <= SCENE_PX[1]
        assert 0.3 <= detection.score <= 1
    assert {detection.label for detection in found} & {"car", "person"}


def check_replay(journal: Journal, folder: Path) -> None:
    replayed = replay_file(write_file(journal.recording(), folder))
    assert replayed.replay.actions["Infer"] > 10
    assert replayed.replay.differing == 0


async def check_database(database: Path, summaries: list[Summary]) -> None:
    storage = await Storage.open(database)
    try:
        for summary in summaries:
            for level in (MINUTE, HOUR):
                rows = await storage.history.periods(level, CameraId(summary.camera))
                total = {column: sum(row[column] for row in rows.values()) for column in SUMS}
                assert total["captured"] == summary.captured
                assert total["on_time"] + total["late"] == summary.on_time + summary.late
                dropped = {reason: total[column] for column, reason in DROPPED.items()}
                assert unsent_together(dropped).items() >= unsent_together(summary.dropped).items()
                assert sum(dropped.values()) == sum(summary.dropped.values())
                assert total["received_bytes"] > 0
                assert total["measured_busy_us"] > 0
        texts = [event.text for event in await storage.events(100)]
        seen = {camera.camera: camera.hello for camera in await storage.cameras()}
    finally:
        await storage.close()
    assert any(text.startswith("good connected from 127.0.0.1") for text in texts)
    assert "good left: it has finished" in texts
    assert seen[CameraId("slow")]["slo_ms"] == 2000


async def test_every_ack_and_result_carries_the_advice_in_force(database: Path) -> None:
    async with running(database) as app:
        async with WireCamera(app) as camera:
            await camera.wait_for(Welcome)
            while not any(isinstance(received, AdviceMessage) for received in camera.received):
                await camera.result(await camera.frame())
            for _ in range(3):
                await camera.result(await camera.frame())
            await camera.drop(await camera.frame(b"no picture"))
        in_force, checked = None, 0
        for received in camera.received:
            if isinstance(received, Welcome | AdviceMessage):
                in_force = received.advice
            elif isinstance(received, Ack | Result | DropNotice):
                assert received.advice == in_force
                checked += 1
        assert checked >= 8


async def test_a_second_start_measures_nothing(database: Path) -> None:
    async with running(database) as app:
        assert not app.profiled
        assert app.ready_s is not None


async def test_a_first_start_measures_and_says_so(tmp_path: Path) -> None:
    said: list[tuple[str, float]] = []
    config = load(None, settings(tmp_path / "new.sqlite3"))
    app = App(config, on_progress=lambda text, share: said.append((text, share)))
    await app.start()
    await app.stop()
    assert app.profiled
    assert said[0][0] == "measuring street on cpu/0"
    assert said[-1][1] == pytest.approx(1.0)


async def test_stopping_twice_is_harmless(database: Path) -> None:
    async with running(database) as app:
        await app.stop()
        await app.stop()


async def test_a_stop_says_goodbye_to_cameras_and_drops_nothing_silently(database: Path) -> None:
    remarks: list[str] = []
    async with running(database) as app, streaming(app, "gate", on_remark=remarks.append) as camera:
        await app.stop()
        assert not app.box.ready
        assert any("bye: shutdown" in remark for remark in remarks)
        counts = app.box.metrics.total()
        assert counts.pending == 0
    summary = camera.summary()
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
    assert "gate left: the box is stopping" in texts(app)
