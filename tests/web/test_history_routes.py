"""The routes of the history over real HTTP and a real database."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from edgebox.domain.requests import CameraId
from edgebox.storage.database import Storage
from edgebox.storage.periods import BOX, Period
from edgebox.web.history_routes import RANGES_MS
from edgebox.web.server import application
from tests.web.sites import site_of

LONG_AGO_MS = int(time.time() * 1e3) - 5_000
"""Before any test here."""


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """Serve the history of a box whose camera has had 7 frames in this second."""
    storage = await Storage.open(tmp_path / "box.sqlite3")
    now_s = int(time.time())
    one = Period(1_000, 1_000, captured=7, on_time=7)
    storage.history.record_second(now_s, {CameraId("gate-2"): one, BOX: one})
    await storage.flush()

    app = application(site_of(storage))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
    await storage.close()


async def get(address: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(address) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("path", ["/v1/history", "/v1/cameras/gate-2/history"])
async def test_every_range_has_the_frames_and_at_most_the_points(url: str, path: str) -> None:
    queries = [f"range={name}" for name in RANGES_MS]
    queries += ["", "points=10", f"from_ms={LONG_AGO_MS}"]
    for query in queries:
        status, text = await get(f"{url}{path}?{query}")
        assert status == 200, text
        chart = json.loads(text)
        assert sum(n or 0 for n in chart["captured"]) == 7, query
        assert len(chart["at_ms"]) == len(chart["captured"]) <= (10 if "points" in query else 300)
        assert chart["camera"] == (None if path == "/v1/history" else "gate-2")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("range=2h", "range must be 1m, 15m"),
        ("from_ms=10&to_ms=10", "to_ms must be after from_ms"),
        ("from_ms=0", "by at most 3660 days"),
        ("from_ms=-5", "from_ms must be a whole number"),
        ("from_ms=%D9%A3", "from_ms must be a whole number"),
        ("points=9", "points must be a whole number from 10 to 2000"),
        ("points=" + "9" * 5_000, "points must be"),
    ],
)
async def test_what_makes_no_sense_is_refused(url: str, query: str, message: str) -> None:
    status, text = await get(f"{url}/v1/history?{query}")
    assert status == 400
    assert message in text


async def test_a_camera_nobody_knows(url: str) -> None:
    status, text = await get(f"{url}/v1/cameras/gate-9/history")
    assert status == 404
    assert "gate-9" in text
