"""The end of a session whose pictures the box fetches itself."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

import pytest

from edgebox.ingest.pulled_session import PulledSession
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.source_status import Decoding
from tests.scheduling.scene import camera


async def test_a_camera_is_closed_even_where_its_end_is_interrupted() -> None:
    closed: list[str] = []
    box = cast(Box, SimpleNamespace(close_camera=lambda record, why: closed.append(why)))
    with ThreadPoolExecutor(1) as pool:
        session = PulledSession(
            box,
            "rtsp://10.0.0.7/stream",
            (640, 360),
            phase=0.0,
            pool=pool,
            decoding=Decoding(),
            on_end=lambda why: None,
            on_failure=lambda cause: None,
        )
    session._record = CameraRecord(camera("gate"), "test", None, None)
    told, let_go = asyncio.Event(), asyncio.Event()

    async def encodes_on() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        told.set()
        await let_go.wait()

    encoding = asyncio.ensure_future(encodes_on())
    session._encoding.add(encoding)
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(session.close("the box does not fetch it any more"))
    await told.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert closed == ["the box does not fetch it any more"]
    let_go.set()
    with suppress(asyncio.CancelledError):
        await encoding
    assert session.rate_hz == 0
