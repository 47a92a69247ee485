"""Cameras that the box remembers, over HTTP."""

import functools
import json
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from edgebox.app.history_setup import history_recorder
from edgebox.domain.access import Scope
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.overrides import NOTHING_SET
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import SourceAddress, SourceKind
from edgebox.link.override_messages import changed
from edgebox.runtime.box import Box
from edgebox.runtime.source_status import SourceStatus
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import BOX
from edgebox.web import camera_list
from edgebox.web.camera_list import camera_document
from edgebox.web.identification import identify
from edgebox.web.web_context import WebContext
from tests.conftest import WallClock
from tests.web.sites import site_of

GATE = CameraId("gate")


async def test_one_camera_is_answered_without_reading_thousands(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.record_camera(GATE, {"app": "barrier"})
    monkeypatch.setattr(storage, "cameras", None)
    document = await camera_document(site_of(storage), GATE)
    assert document["requested"]["app"] == "barrier"


async def test_connected_cameras_are_listed_first_and_then_the_last_seen(
    storage: Storage, clock: WallClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(storage)
    for name in ("old", "left", "here", "newest"):
        clock.ms += 1_000
        storage.record_camera(CameraId(name), {})
    await storage.flush()
    records = {"left": SimpleNamespace(connected=False), "here": SimpleNamespace(connected=True)}
    monkeypatch.setattr(site.box, "cameras", records)
    monkeypatch.setattr(camera_list, "_shown", lambda context, name, stored: name)
    (route,) = (
        each for each in camera_list.ROUTES if (each.method, each.path) == ("GET", "/v1/cameras")
    )
    response = await route.answer(site, make_mocked_request("GET", "/v1/cameras"))
    assert isinstance(response, web.Response)
    assert json.loads(response.text or "") == {"cameras": ["here", "newest", "left", "old"]}


async def forget(site: WebContext) -> None:
    """Forget the camera."""
    (route,) = (each for each in camera_list.ROUTES if each.method == "DELETE")
    request = make_mocked_request("DELETE", "/v1/cameras/gate", match_info={"id": "gate"})
    response = await route.answer(site, request)
    assert response.status == 204
    await site.storage.flush()


async def test_a_camera_can_be_forgotten_while_the_box_starts(storage: Storage) -> None:
    storage.record_camera(GATE, {})
    await forget(site_of(storage))
    assert await storage.cameras() == []


async def test_what_a_forgotten_camera_did_in_this_minute_does_not_come_back(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.record_camera(GATE, {})
    site = site_of(storage)
    monkeypatch.setattr(Box, "driver", SimpleNamespace(clock_ns=lambda: 0))
    recorder = history_recorder(site.box, storage, {}, cameras_max=1, on_minute=lambda: None)
    site.box.metrics.of(GATE).captured(3, 3, 0)
    recorder.tick()
    await forget(site)
    recorder.close()
    await storage.flush()
    for level in (SECOND, MINUTE, HOUR):
        assert await storage.history.periods(level, GATE) == {}
    (of_box,) = (await storage.history.periods(MINUTE, BOX)).values()
    assert of_box["captured"] == 3


TRUCKS = {"name": "yard", "points": [[0, 0], [1, 0], [1, 1]], "classes": ["truck"]}


async def patched(
    site: WebContext, monkeypatch: pytest.MonkeyPatch, fields: dict[str, object]
) -> None:
    """Set a camera."""

    async def body(request: web.Request) -> dict[str, object]:
        return fields

    monkeypatch.setattr(camera_list, "read_object", body)
    (route,) = (each for each in camera_list.ROUTES if each.method == "PATCH")
    request = make_mocked_request("PATCH", "/v1/cameras/gate", match_info={"id": "gate"})
    identify(site.access, request, Scope.OPERATOR)
    await route.answer(site, request)


async def test_what_was_set_before_does_not_keep_other_settings_from_being_set(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.record_camera(GATE, {})
    site = site_of(storage)
    finds = SimpleNamespace(task="detect", labels=("person",))
    monkeypatch.setattr(Box, "families", {"street": finds})
    before = changed(NOTHING_SET, {"zones": [TRUCKS]})
    site.box.override(GATE, before)
    set_to = functools.partial(patched, site, monkeypatch)
    await set_to({"rate_hz": 4})
    await set_to({"zones": [{**TRUCKS, "classes": ["person", "truck"]}]})
    for zone in ({**TRUCKS, "classes": ["car"]}, {**TRUCKS, "name": "gate"}):
        with pytest.raises(InvalidInputError, match="no model family finds"):
            await set_to({"zones": [zone]})
    # Now a zone of that name comes into the configuration file.
    monkeypatch.setattr(
        site.box.tracking,
        "would_be",
        lambda camera, overrides: SimpleNamespace(
            zones=(*(before.zones or ()), *(overrides.zones or ())), lines=overrides.lines or ()
        ),
    )
    await set_to({"rate_hz": 5})
    await set_to({"zones": None})
    with pytest.raises(InvalidInputError, match="2 zones and lines of gate would be called yard"):
        await set_to({"zones": [{**TRUCKS, "classes": []}]})


async def test_what_is_set_of_a_camera_that_never_came_is_kept(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(storage)
    address = SourceAddress(SourceKind.NETWORK, "rtsp://x/y")
    site.box.sources[GATE] = SourceStatus(GATE, address, "api")
    await patched(site, monkeypatch, {"slo_ms": 700})
    document = await camera_document(site, GATE)
    assert (document["first_seen_ms"], document["last_seen_ms"]) == (None, None)
    (known,) = await storage.cameras()
    assert known.overrides["slo_ms"] == 700
