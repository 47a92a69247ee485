"""Cameras that the box remembers, over HTTP."""

import pytest
from aiohttp.test_utils import make_mocked_request

from edgebox.domain.requests import CameraId
from edgebox.storage.database import Storage
from edgebox.web import camera_list
from edgebox.web.camera_list import camera_document
from tests.web.sites import site_of

GATE = CameraId("gate")


async def test_one_camera_is_answered_without_reading_thousands(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.record_camera(GATE, {"app": "barrier"})
    monkeypatch.setattr(storage, "cameras", None)
    document = await camera_document(site_of(storage), GATE)
    assert document["requested"]["app"] == "barrier"


async def test_a_camera_can_be_forgotten_while_the_box_starts(storage: Storage) -> None:
    storage.record_camera(GATE, {})
    (route,) = (each for each in camera_list.ROUTES if each.method == "DELETE")
    request = make_mocked_request("DELETE", "/v1/cameras/gate", match_info={"id": "gate"})
    response = await route.answer(site_of(storage), request)
    assert response.status == 204
    await storage.flush()
    assert await storage.cameras() == []
