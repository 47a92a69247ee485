"""A camera that is tracked by a real box: ids, zones and lines, events, and what is stored."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.overrides import Overrides
from edgebox.domain.pipelines import StageName
from edgebox.domain.requests import CameraId
from edgebox.domain.zones import Zone
from edgebox.link.messages import Result, TrackedDetection
from edgebox.media.sources import PictureSource
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame
from edgebox.scene.street_camera import Scene
from edgebox.tracking.watch import contains
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.running import get_json, gone, running, streaming, until
from tests.notifications.receiver import receiving

SIZE_PX = (640, 360)
RATE_HZ = 4.0
FRAMES = 60
ZONE = [[0.0, 0.45], [1.0, 0.45], [1.0, 1.0], [0.0, 1.0]]
_FILE = """
[[zones]]
camera = "gate"
name = "yard"
points = {zone}
min_dwell_s = 1.0
[[lines]]
camera = "gate"
name = "middle"
points = [[0.5, 1.0], [0.5, 0.0]]
[[webhooks]]
name = "barn"
url = "{url}"
events = ["zone_dwell", "zone_left", "line_crossed"]
"""


def _true_count(scene: Scene, number: int) -> int:
    """Return how many objects that a detector can see are in the zone on a frame."""
    seen = [
        o
        for o in scene.render(number / RATE_HZ).objects
        if o.visible_fraction > 0.5 and o.box[3] - o.box[1] >= 14
    ]
    feet = [((o.box[0] + o.box[2]) / 2 / SIZE_PX[0], o.box[3] / SIZE_PX[1]) for o in seen]
    polygon = [(x, y) for x, y in ZONE]
    return int(contains(polygon, np.array(feet).reshape(-1, 2)).sum())


async def _results(app: App) -> AsyncIterator[dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{app.url}/v1/results?camera=gate") as socket,
    ):
        async for message in socket:
            document = json.loads(message.data)
            if document["type"] == "result":
                yield document


async def test_objects_are_followed_counted_and_told_of(database: Path, tmp_path: Path) -> None:
    scene = Scene(3, *SIZE_PX)
    file = tmp_path / "edgebox.toml"
    results: list[dict[str, Any]] = []
    told: list[Result] = []
    async with receiving() as receiver:
        receiver.secret = None
        file.write_text(_FILE.format(zone=ZONE, url=receiver.url), encoding="utf-8")
        app = App(load(file, settings(database)))
        await app.start()
        try:
            source = PictureSource(SIZE_PX, RATE_HZ, lambda n: scene.render(n / RATE_HZ).rgb)
            async with streaming(
                app, "gate", source=source, rate_hz=RATE_HZ, on_result=told.append
            ):
                async with asyncio.timeout(PATIENCE_S):
                    async for result in _results(app):
                        results.append(result)
                        if len(results) >= FRAMES:
                            break
                await until(lambda: "zone_dwell" in receiver.kinds(), "a stay")
                _, state = await get_json(app, "/v1/cameras/gate")
                metrics = await _metrics(app)
        finally:
            await app.stop()
    _check_ids(results)
    _check_ids_of_camera(told, results)
    _check_counts(results)
    event = next(e for e in receiver.taken if e["type"] == "zone_dwell")
    assert event["zone"] == "yard"
    assert event["dwell_s"] >= 1.0
    dwells = [e for r in results for e in r["events"] if e["type"] == "zone_dwell"]
    assert len({e["track"] for e in dwells}) >= 1
    tracking = state["state"]["tracking"]
    assert [zone["name"] for zone in tracking["zones"]] == ["yard"]
    assert tracking["tracks"] > 0
    assert metrics["edgebox_tracks"] == {("gate",)}
    assert metrics["edgebox_zone_objects"] == {("gate", "yard")}


_ONCE = """
[tracking]
cameras = ["gate"]
[inference]
pipeline = "traffic"
[[pipelines]]
name = "traffic"
[[pipelines.stages]]
name = "street"
family = "street"
[[pipelines.stages]]
name = "vehicle"
family = "vehicles"
after = ["street"]
labels = ["car", "bus", "truck"]
once_per_track = true
"""


async def test_what_was_said_of_a_tracked_object_is_in_later_results(
    database: Path, tmp_path: Path
) -> None:
    scene, file = Scene(3, *SIZE_PX), tmp_path / "edgebox.toml"
    file.write_text(_ONCE, encoding="utf-8")
    app = App(load(file, settings(database)))
    await app.start()
    said: dict[int, dict[str, Any]] = {}
    remembered = objects = 0
    try:
        source = PictureSource(SIZE_PX, RATE_HZ, lambda n: scene.render(n / RATE_HZ).rgb)
        async with streaming(app, "gate", source=source, rate_hz=RATE_HZ):
            async with asyncio.timeout(PATIENCE_S):
                async for result in _results(app):
                    for each in result["detections"]:
                        vehicle = each.get("stages", {}).get("vehicle")
                        if vehicle is None:
                            continue
                        objects += 1
                        if vehicle.get("remembered"):
                            remembered += 1
                            # What was said before, of the same object.
                            before = said.setdefault(each["track"], vehicle["attributes"])
                            assert vehicle["attributes"] == before
                        elif each["track"] is not None:
                            said[each["track"]] = vehicle["attributes"]
                    if remembered >= 30:
                        break
        await gone(app, "gate")
        crops = app.box.metrics.of(CameraId("gate")).crops[StageName("vehicle")]
        _, state = await get_json(app, "/v1/cameras/gate")
        first, vehicle = state["state"]["pipeline"]["stages"]
        assert (first["answered"], first["remembered"], first["dropped"]) == (0, 0, {})
        assert (vehicle["answered"], vehicle["remembered"]) == (crops.answered, crops.remembered)
        assert (await _metrics(app))["edgebox_objects_remembered"] == {("gate", "vehicle")}
    finally:
        await app.stop()
    assert crops.remembered >= remembered
    assert crops.answered < objects, "most objects were not classified again"


def _check_ids(results: list[dict[str, Any]]) -> None:
    """Check that most objects have ids, that none is there twice, and that they last."""
    labels: dict[int, str] = {}
    frames: dict[int, int] = {}
    objects = 0
    for result in results:
        ids = [d["track"] for d in result["detections"] if d["track"] is not None]
        objects += len(result["detections"])
        assert len(set(ids)) == len(ids)
        for detection in result["detections"]:
            if detection["track"] is not None:
                assert (
                    labels.setdefault(detection["track"], detection["label"])
                    == (detection["label"])
                )
                frames[detection["track"]] = frames.get(detection["track"], 0) + 1
    assert sum(frames.values()) > 0.5 * objects > 0
    assert max(frames.values()) > len(results) / 2, "what stands in the picture keeps its id"


def _check_ids_of_camera(told: list[Result], results: list[dict[str, Any]]) -> None:
    """Check that the camera itself is told the same ids as programs are."""
    ids = {result["frame"]: [d["track"] for d in result["detections"]] for result in results}
    of_camera = {result.frame: result.detections for result in told if result.frame in ids}
    assert of_camera
    for frame, found in of_camera.items():
        assert [one.track for one in found if isinstance(one, TrackedDetection)] == ids[frame]


def _check_counts(results: list[dict[str, Any]]) -> None:
    """Check the counts of the zone against the ground truth, all frames together."""
    found = [sum(result["zones"]["yard"].values()) for result in results[5:]]
    scene = Scene(3, *SIZE_PX)
    true = [_true_count(scene, result["frame"]) for result in results[5:]]
    assert sum(true) > 0
    assert abs(sum(found) - sum(true)) <= 0.2 * sum(true)


async def _metrics(app: App) -> dict[str, set[tuple[str, ...]]]:
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/metrics") as answer:
        text = await answer.text()
    return {
        family.name: {tuple(sample.labels.values()) for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


async def test_an_answer_on_its_way_leaves_nobody_in_the_zones_of_a_camera_that_left(
    database: Path,
) -> None:
    scene, gate = Scene(3, *SIZE_PX), CameraId("gate")
    source = PictureSource(SIZE_PX, RATE_HZ, lambda n: scene.render(n / RATE_HZ).rgb)
    answers: list[tuple[CameraRecord, PendingFrame, Answer]] = []

    def keep(record: CameraRecord, frame: PendingFrame, ending: FrameResult) -> None:
        if isinstance(ending, Answer):
            answers.append((record, frame, ending))

    async with running(database) as app, streaming(app, "gate", source=source, rate_hz=RATE_HZ):
        box, yard = app.box, Zone("yard", tuple((x, y) for x, y in ZONE))

        def inside() -> dict[str, int]:
            return box.tracking.zone_counts(gate).get("yard", {})

        box.observers.add(keep)
        box.override(gate, Overrides(zones=(yard,)))
        await until(lambda: any(inside().values()), "somebody in the yard")
        record, frame, answer = answers[-1]
        frame.request = replace(frame.request, captured_ns=frame.request.captured_ns + 1)

        def answered() -> None:
            box.tracking.ended(frame, answer, box.families, record.camera.family)

        # As when its batch has come back, and the loop has not heard of it.
        box.driver._loop._reports.append(answered)
        box.close_camera(record, "it was switched off")
        assert not any(inside().values())


async def test_zones_drawn_on_the_box_are_checked_and_survive_a_restart(database: Path) -> None:
    square = [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9]]
    app = App(load(None, settings(database)))
    await app.start()
    try:
        async with streaming(app, "gate"), aiohttp.ClientSession() as client:
            address = f"{app.url}/v1/cameras/gate"
            _, untracked = await get_json(app, "/v1/cameras/gate")
            assert untracked["state"]["tracking"] is None
            crossed = {"zones": [{"name": "a", "points": [square[i] for i in (0, 2, 1, 3)]}]}
            async with client.patch(address, json=crossed) as answer:
                assert answer.status == 400
                assert "sides cross each other" in await answer.text()
            strange = {"zones": [{"name": "a", "points": square, "classes": ["unicorn"]}]}
            async with client.patch(address, json=strange) as answer:
                assert answer.status == 400
                assert "no model family finds unicorn" in await answer.text()
            good = {"zones": [{"name": "a", "points": square}], "lines": []}
            async with client.patch(address, json=good) as answer:
                assert answer.status == 200
                tracking = (await answer.json())["state"]["tracking"]
            assert [zone["points"] for zone in tracking["zones"]] == [square]
    finally:
        await app.stop()
    again = App(load(None, settings(database)))
    await again.start()
    try:
        _, stored = await get_json(again, "/v1/cameras/gate")
        assert [zone["name"] for zone in stored["overrides"]["zones"]] == ["a"]
        async with aiohttp.ClientSession() as client:
            off = {"tracking": False}
            async with client.patch(f"{again.url}/v1/cameras/gate", json=off) as answer:
                assert (await answer.json())["overrides"]["tracking"] is False
    finally:
        await again.stop()


async def test_a_zone_has_another_name_than_the_lines_of_the_file(
    database: Path, tmp_path: Path
) -> None:
    file = tmp_path / "edgebox.toml"
    file.write_text('[[lines]]\nname = "entry"\npoints = [[0, 0.5], [1, 0.5]]\n')
    app = App(load(file, settings(database)))
    await app.start()
    try:
        async with streaming(app, "gate"), aiohttp.ClientSession() as client:
            zone = {"name": "entry", "points": [[0, 0], [1, 0], [1, 1]]}
            address = f"{app.url}/v1/cameras/gate"
            async with client.patch(address, json={"zones": [zone]}) as answer:
                assert answer.status == 400
                assert "2 zones and lines of gate would be called entry" in await answer.text()
            async with client.patch(address, json={"zones": [zone], "lines": []}) as answer:
                assert answer.status == 200
    finally:
        await app.stop()


async def test_a_camera_that_is_not_tracked_has_the_results_of_ever(database: Path) -> None:
    app = App(load(None, settings(database)))
    await app.start()
    try:
        scene = Scene(3, *SIZE_PX)
        source = PictureSource(SIZE_PX, 2.0, lambda n: scene.render(n / 2).rgb)
        async with streaming(app, "gate", source=source, rate_hz=2.0):
            async with asyncio.timeout(PATIENCE_S):
                async for result in _results(app):
                    if result["detections"]:
                        break
        assert set(result["detections"][0]) == {"label", "label_id", "score", "box"}
        assert not {"zones", "lines", "events"} & result.keys()
    finally:
        await app.stop()
