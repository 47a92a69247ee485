"""Pictures for the MQTT broker: one that cannot be drawn costs itself alone."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId
from edgebox.notifications.best_pictures import BestPictures
from tests.end_to_end.running import until


@pytest.mark.parametrize("error", [InvalidInputError("cut short"), IndexError("no such label")])
async def test_a_picture_that_cannot_be_drawn_costs_itself_alone(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> bytes:
        raise error

    retained: dict[str, bytes] = {}
    broker = SimpleNamespace(topics=SimpleNamespace(picture=str), retain=retained.__setitem__)
    best = BestPictures(cast("Any", broker), cast("Any", None))
    gate, yard = CameraId("gate"), CameraId("yard")
    best._waiting = {
        gate: cast("Any", SimpleNamespace(drawn=fails)),
        yard: cast("Any", SimpleNamespace(drawn=lambda: b"jpeg")),
    }
    running = asyncio.create_task(best.run(cast("Any", SimpleNamespace(cameras={gate, yard}))))
    await until(lambda: bool(retained) or running.done(), "the other picture")
    assert retained == {"yard": b"jpeg"}
    assert "the best picture of gate cannot be drawn" in caplog.text
    running.cancel()
