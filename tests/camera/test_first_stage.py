"""The first stage at the camera: what is opened is kept once, and freed."""

import asyncio
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from edgebox.camera import local_model
from edgebox.camera.first_stage import FirstStage
from edgebox.link.placement import PlacementMode
from tests.conftest import PATIENCE_S

MADE_THE_OFFER = "ws://other:8787/v1/stream"


class Opened:
    """A model that is open."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Offer:
    sha256, variants = "5f0c", ("small",)


class Hello:
    width_px, height_px, rate_hz, slo_ms = 320, 180, 10.0, 300.0


class Stage(FirstStage):
    """Prepared with fakes."""

    async def ready(self) -> Any:
        offer, hello = cast("Any", Offer()), cast("Any", Hello())
        return await self._ready(cast("Any", None), MADE_THE_OFFER, offer, hello)


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, list[Opened]]:
    """Have models open when the event is set; return it, and what was opened."""
    may, opened = threading.Event(), list[Opened]()

    async def fetch(client: object, stream_url: str, *_: object) -> None:
        assert stream_url == MADE_THE_OFFER

    def open_model(family: object, given: object, *_: object) -> Opened:
        assert may.wait(PATIENCE_S)
        opened.append(Opened(given))
        return opened[-1]

    monkeypatch.setattr(local_model, "fetch", fetch)
    monkeypatch.setattr(local_model, "open_model", open_model)
    monkeypatch.setattr("edgebox.camera.first_stage.replace", lambda model, given: model)
    return may, opened


def stage(tmp_path: Path) -> Stage:
    return Stage(PlacementMode.AUTO, tmp_path)


async def test_connections_that_break_while_a_model_opens_open_no_second_one(
    tmp_path: Path, opening: tuple[threading.Event, list[Opened]]
) -> None:
    may, opened = opening
    first_stage = stage(tmp_path)
    broken = asyncio.create_task(first_stage.ready())
    await asyncio.sleep(0.01)
    broken.cancel()
    again = asyncio.create_task(first_stage.ready())
    await asyncio.sleep(0.01)
    may.set()
    model = await again
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
    assert opened == [model]
    first_stage.close()
    assert model.closed


async def test_a_model_that_opens_after_the_end_is_freed(
    tmp_path: Path, opening: tuple[threading.Event, list[Opened]]
) -> None:
    may, opened = opening
    first_stage = stage(tmp_path)
    waiting = asyncio.create_task(first_stage.ready())
    await asyncio.sleep(0.01)
    first_stage.close()
    may.set()
    await asyncio.wait({waiting})
    assert [each.closed for each in opened] == [True]
