"""Settings of cameras follow them from box to box, on real sockets."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.access import Identity, Scope
from edgebox.domain.overrides import Overrides
from edgebox.domain.requests import Camera as RequestedCamera
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import Setting, SettingKey, Version
from edgebox.link.override_messages import written
from edgebox.media.sources import PictureSource
from edgebox.storage.database import Storage
from tests.conftest import PATIENCE_S, PROFILE_S, copied
from tests.end_to_end.fleets import SECRET, fleet, up
from tests.end_to_end.program import start
from tests.end_to_end.running import (
    PICTURE,
    SIZE_PX,
    SLO_MS,
    free_port,
    get_json,
    running,
    streaming,
    texts,
    until,
)

GATE = CameraId("gate")
YARD_ZONE = {
    "name": "yard",
    "points": [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]],
    "classes": [],
    "min_dwell_s": 0.0,
}


async def set_at(url: str, camera: str, **fields: Any) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.patch(f"{url}/v1/cameras/{camera}", json=fields) as response,
    ):
        assert response.status == 200, await response.text()


def set_on(box: App, camera: str) -> dict[str, Any]:
    """Return what is set of a camera on a box, as far as anything is."""
    overrides = box.box.overrides.get(CameraId(camera))
    fields = {} if overrides is None else written(overrides)
    return {name: value for name, value in fields.items() if value is not None}


async def shown(box: App, camera: str, wanted: dict[str, Any]) -> None:
    """Wait until so much and no more is set of a camera on a box."""
    await until(lambda: set_on(box, camera) == wanted, f"{wanted} on {box.box.name}")


async def told(box: App, text: str) -> None:
    """Wait until a box has said so, which it does once all that it was sent is in force."""
    await until(lambda: any(text in each for each in texts(box, "info")), f"{text!r}")


async def test_who_did_not_see_what_was_set_on_another_box_is_told(database: Path) -> None:
    async with fleet(database, 2) as boxes:
        for box in boxes:  # it was on both
            assert box._storage is not None
            box._storage.record_camera(GATE, {})
        async with streaming(boxes[0], "gate", rate_hz=5.0):
            home, other = sorted(boxes, key=lambda box: GATE not in box.box.cameras)
            await set_at(home.url, "gate", slo_ms=10_000)
            await shown(other, "gate", {"slo_ms": 10_000.0})
            began = (await get_json(other, "/v1/cameras/gate"))[1]["versions"]
            await set_at(home.url, "gate", slo_ms=20_000, base=began)
            await shown(other, "gate", {"slo_ms": 20_000.0})
            async with (
                aiohttp.ClientSession() as client,
                client.patch(
                    f"{other.url}/v1/cameras/gate", json={"slo_ms": 9, "base": began}
                ) as response,
            ):
                assert response.status == 409
                told = (await response.json())["detail"]
            assert f"changed meanwhile: slo_ms on {home.box.name} at {home.url}; load" in told
            newer = (await get_json(home, "/v1/cameras/gate"))[1]["versions"]
            await set_at(other.url, "gate", slo_ms=9_000, base=newer)


async def agree(*boxes: App) -> None:
    """Wait until boxes have the same settings."""
    members = [box.fleet for box in boxes]
    await until(
        lambda: len({each.settings.replicated.digest() for each in members if each}) == 1,
        "the same settings",
    )


async def test_what_is_set_on_one_box_is_in_force_on_all(database: Path) -> None:
    async with fleet(database, 3) as boxes:
        first, second, third = boxes
        async with streaming(first, "gate", rate_hz=5.0):
            home = next(box for box in boxes if GATE in box.box.cameras)
            await set_at(home.url, "gate", slo_ms=20_000, app="doors", zones=[YARD_ZONE])
            wanted = {"slo_ms": 20_000.0, "app": "doors", "zones": [YARD_ZONE]}
            for box in boxes:
                await shown(box, "gate", wanted)
            others = [box for box in boxes if box is not home]
            for box in others:
                await told(box, "gate was set on")
            await set_at(home.url, "gate", app=None)
            del wanted["app"]
            for box in boxes:
                await shown(box, "gate", wanted)
        assert home.box.cameras[GATE].camera.slo_ns == 20_000_000_000
        await agree(first, second, third)
        async with (
            aiohttp.ClientSession() as client,
            client.delete(f"{home.url}/v1/cameras/gate") as response,
        ):
            assert response.status == 204
        for box in boxes:
            await shown(box, "gate", {})


async def test_a_hello_is_redirected_by_what_is_set_of_its_camera(database: Path) -> None:
    async with fleet(database) as (first, second):
        assert first.fleet is not None
        family, _ = first.box.models.of(None, None)
        hello = RequestedCamera(GATE, "default", family, 200_000_000, 1000.0, 320, 180)

        def added_load() -> float:
            """Send one to the other box, as if this one were about to stop."""
            assert first.fleet is not None
            (before,) = first.fleet.known.fresh(time.monotonic_ns())
            assert first.fleet.redirect_hello(hello, 0, Identity(Scope.CAMERA)) is not None
            (after,) = first.fleet.known.fresh(time.monotonic_ns())
            return after.load - before.load

        first.fleet.draining = True
        asked = added_load()
        first.box.override(GATE, Overrides(rate_hz=10.0))
        assert added_load() == pytest.approx(asked / 100)
        assert up(second)


@contextlib.asynccontextmanager
async def box_process(folder: Path, port: int, other_port: int) -> AsyncIterator[Any]:
    """Run a box as another process, which the test may kill."""
    config = folder / "edgebox.toml"
    config.write_text(
        f"""
        server.port = {port}
        server.name = "box-a"
        access.open_to = "everybody"
        inference.profile_s = {PROFILE_S}
        storage.path = "edgebox.sqlite3"
        fleet.boxes = ["http://127.0.0.1:{other_port}"]
        fleet.secret_file = "../secret"
        executors = [{{device = "cpu"}}]
        """
    )
    process = await start(folder, "serve", "--config", str(config))
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def overrides_at(url: str) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{url}/v1/cameras/gate") as response,
    ):
        document = await response.json()
        return document["overrides"] if response.status == 200 else {}


async def test_a_camera_of_a_killed_box_keeps_its_settings_and_the_box_catches_up(
    database: Path, tmp_path: Path
) -> None:
    port, port_a = free_port(), free_port()
    (tmp_path / "secret").write_text(SECRET)
    folder = tmp_path / "a"
    folder.mkdir()
    copied(database, folder)
    url_a = f"http://127.0.0.1:{port_a}"
    options: dict[str, Any] = {
        "server__port": port,
        "server__name": "box-b",
        "fleet__boxes": [url_a],
        "fleet__secret_file": str(tmp_path / "secret"),
    }
    async with running(database, **options) as b:
        async with box_process(folder, port_a, port) as process:
            await until(lambda: len(up(b)) == 2, "reports")
            source = PictureSource(SIZE_PX, 5.0, lambda number: PICTURE)
            gate = Camera(source, url_a, name="gate", slo_ms=SLO_MS)
            run = asyncio.create_task(gate.run())
            await until(lambda: gate.summary().on_time >= 1, "its first answer")
            assert GATE not in b.box.cameras
            await set_at(url_a, "gate", slo_ms=25_000, zones=[YARD_ZONE], site="north")
            await until(lambda: set_on(b, "gate").get("site") == "north", "its settings at b")
            process.kill()
            await until(lambda: GATE in b.box.cameras, "the camera at b")
            await until(lambda: len(up(b)) == 1, "that a is down")
            record = b.box.cameras[GATE]
            assert record.camera.slo_ns == 25_000_000_000
            assert [zone.name for zone in record.overrides.zones or ()] == ["yard"]
        status, elsewhere = await get_json(b, "/v1/cameras/gate/history/boxes")
        assert status == 200
        (gone,) = elsewhere["unanswered"]
        assert gone["address"] == url_a
        assert elsewhere["boxes"] == []
        stored = await stored_overrides(b)
        assert stored["site"] == "north"  # also without a fleet
        await set_at(b.url, "gate", slo_ms=15_000, site=None)
        async with box_process(folder, port_a, port):
            await until(lambda: len(up(b)) == 2, "reports again")
            began_s = time.monotonic()
            while (await overrides_at(url_a)).get("slo_ms") != 15_000:
                assert time.monotonic() - began_s < PATIENCE_S, await overrides_at(url_a)
                await asyncio.sleep(0.1)
            at_a = await overrides_at(url_a)
            assert at_a["site"] is None
            assert at_a["zones"] == [YARD_ZONE]
            assert set_on(b, "gate") == {"slo_ms": 15_000.0, "zones": [YARD_ZONE]}
            _, elsewhere = await get_json(b, "/v1/cameras/gate/history/boxes")
            assert elsewhere["unanswered"] == []
        gate.stop()
        await run


async def test_what_was_removed_outside_the_fleet_stays_removed_however_old_it_was(
    database: Path,
) -> None:
    """The version of such a removal is as old as the setting, and others have yet to hear of it."""
    (database.parent / "secret").write_text(SECRET)
    ports = [free_port(), free_port()]
    known: dict[str, Any] = {
        "fleet__boxes": [f"http://127.0.0.1:{port}" for port in ports],
        "fleet__secret_file": str(database.parent / "secret"),
    }
    files = []
    for name in ("left", "stayed"):
        folder = database.parent / name
        folder.mkdir()
        files.append(copied(database, folder))
        storage = await Storage.open(files[-1])
        storage.fleet_settings.record((GATE, "app", 5, "x", b'{"app":"doors"}', False))
        if name == "left":  # and removed it since
            storage.record_camera(GATE, {})
        await storage.close()
    async with running(files[0], server__port=ports[0], server__name="left", **known) as left:
        assert left.fleet is not None
        assert set_on(left, "gate") == {}
        async with running(files[1], server__port=ports[1], server__name="stayed", **known) as box:
            assert box.fleet is not None
            await shown(box, "gate", {})
            await agree(left, box)
            assert set_on(left, "gate") == {}


async def stored_overrides(box: App) -> dict[str, Any]:
    assert box._storage is not None
    await box._storage.flush()
    (known,) = [each for each in await box._storage.cameras() if each.camera == GATE]
    return dict(known.overrides)


async def test_what_another_box_may_not_say_is_told_once_and_harms_nothing(
    database: Path,
) -> None:
    """A box with the secret has a value that no person could set, beside one that is sound."""
    async with fleet(database) as (first, second):
        assert first.fleet is not None
        assert second.fleet is not None
        bad, good = SettingKey(GATE, "rate"), SettingKey(GATE, "app")
        first.fleet.settings.replicated.take(
            {
                bad: Setting(Version(5, "x"), b'{"rate_hz":-1}'),
                good: Setting(Version(5, "x"), b'{"app":"doors"}'),
            }
        )
        await until(lambda: set_on(second, "gate") == {"app": "doors"}, "the sound one")

        def told() -> list[str]:
            return [text for text in texts(second, "warning") if "are not taken" in text]

        await until(lambda: bool(told()), "a warning")
        await asyncio.sleep(2.5)  # reports go on, the answer stays the same
        (text,) = told()
        assert "gate: settings.rate_hz must be a number" in text
        await set_at_known(first, second)


async def set_at_known(first: App, second: App) -> None:
    """Set another camera afterwards, and see that it arrives."""
    async with streaming(first, "dock", rate_hz=5.0):
        home = first if CameraId("dock") in first.box.cameras else second
        await set_at(home.url, "dock", app="ships")
        for box in (first, second):
            await shown(box, "dock", {"app": "ships"})
