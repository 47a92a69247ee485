"""GET /v1/cameras/{id}/picture on a real box."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from edgebox.app.composition import App
from edgebox.domain.access import Scope
from edgebox.link.box_address import authorization
from edgebox.media.jpeg import decode, encode
from edgebox.media.sources import PictureSource
from tests.end_to_end.running import CLOSED, gone, new_token, running, streaming
from tests.end_to_end.streets import street_picture
from tests.end_to_end.wire import WireCamera

SIZE_PX = (640, 360)


async def get(app: App, path: str, token: str | None = None) -> tuple[int, str, bytes]:
    async with (
        aiohttp.ClientSession(headers=authorization(token)) as client,
        client.get(f"{app.url}/v1/cameras/{path}") as response,
    ):
        return response.status, response.content_type, await response.read()


def street(number: int) -> Any:
    return street_picture(3, *SIZE_PX)


async def test_it_is_what_the_camera_sent_with_what_was_found(database: Path) -> None:
    street_picture(3, *SIZE_PX)  # painted while no box waits
    source = PictureSource(SIZE_PX, 2.0, street)
    async with running(database) as app, streaming(app, "gate", source=source, rate_hz=2.0):
        plain = await get(app, "gate/picture?boxes=false")
        none = await get(app, "gate/picture?score_min=1")
        drawn = await get(app, "gate/picture")
        assert not app.box.observers
    assert plain[:2] == none[:2] == drawn[:2] == (200, "image/jpeg")
    sent, shown = decode(plain[2]).astype(np.int16), decode(drawn[2]).astype(np.int16)
    assert sent.shape[1] * SIZE_PX[1] == sent.shape[0] * SIZE_PX[0]
    if shown.shape == sent.shape:  # else the box has asked for another size in between
        assert np.abs(shown - sent).max() > 100


async def test_boxes_fit_a_picture_that_was_sent_smaller(database: Path) -> None:
    rgb = street_picture(3, *SIZE_PX)
    small = encode(np.ascontiguousarray(rgb[::4, ::4]))
    async with running(database) as app, WireCamera(app, "gate") as camera:
        asking = asyncio.create_task(get(app, "gate/picture"))
        while not asking.done():
            await camera.result(await camera.frame(small))
        status, _, picture = await asking
    assert status == 200
    assert decode(picture).shape == (SIZE_PX[1] // 4, SIZE_PX[0] // 4, 3)


async def test_who_sends_nothing_has_no_picture(database: Path) -> None:
    async with running(database) as app:
        assert (await get(app, "gate/picture"))[0] == 404
        async with streaming(app, "gate"):
            pass
        await gone(app, "gate")
        status, kind, problem = await get(app, "gate/picture")
        assert (status, kind) == (503, "application/problem+json")
        assert b"no_picture" in problem
        assert not app.box.observers


async def test_it_needs_the_scope_viewer(database: Path) -> None:
    async with running(database, **CLOSED) as app, streaming(app, "gate"):
        assert (await get(app, "gate/picture"))[0] == 401
        camera = await new_token(app, Scope.CAMERA, "door")
        assert (await get(app, "gate/picture", camera))[0] == 403
        viewer = await new_token(app, Scope.VIEWER)
        assert (await get(app, "gate/picture", viewer))[0] == 200
