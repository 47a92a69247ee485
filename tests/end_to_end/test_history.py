"""The history of a real box: charts by HTTP, and the file, have what its cameras sent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from edgebox.domain.requests import CameraId
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import counts_of, get_json, gone, running, streaming, until

pytestmark = pytest.mark.usefixtures("few_sizes")

GATE = CameraId("gate")


def seen(column: list[int | None]) -> int:
    return sum(count or 0 for count in column)


async def test_charts_have_every_frame_and_say_where_its_time_went(database: Path) -> None:
    async with running(database) as app:
        async with streaming(app, GATE) as camera:
            await until(lambda: camera.summary().on_time >= 20, "twenty answers")
        await gone(app, GATE)
        await until(lambda: not app.box.metrics.of(GATE).has_updates, "the end of the second")
        counts = counts_of(app, GATE)
        for path in ("/v1/cameras/gate/history", "/v1/history"):
            for name in ("1m", "24h", "30d"):
                chart = await chart_of(app, f"{path}?range={name}", counts.captured)
                assert seen(chart["on_time"]) == counts.on_time
                assert sum(map(seen, chart["variants"].values())) == counts.on_time + counts.late
        chart = await chart_of(app, "/v1/cameras/gate/history?range=15m", counts.captured)
        at = next(step for step, answered in enumerate(chart["on_time"]) if answered)
        p50 = {part: column[at] for part, column in chart["latency_ms"]["p50"].items()}
        assert p50["total"] >= p50["inference"] > 0
        assert chart["fps"][at] > 0
        assert chart["received_bps"][at] > 0
        assert chart["bandwidth_bps"]["measured"]["mean"][at] > 0
    storage = await Storage.open(database)
    for level in (MINUTE, HOUR):
        rows = await storage.history.periods(level, GATE)
        assert sum(row["captured"] for row in rows.values()) == counts.captured
    await storage.close()


async def test_a_camera_has_a_history_from_its_hello_on_and_an_unknown_one_has_none(
    database: Path,
) -> None:
    async with running(database) as app:
        path = "/v1/cameras/gate/history"
        assert (await get_json(app, path))[0] == 404
        async with streaming(app, GATE, answered=False):
            await until(lambda: GATE in app.box.cameras, "its hello")
            status, chart = await get_json(app, path)
            assert (status, chart["camera"]) == (200, GATE)


async def chart_of(app: Any, address: str, captured: int) -> dict[str, Any]:
    """Return a chart once the last second is written: it is recorded, the writer may be at it."""
    async with asyncio.timeout(PATIENCE_S):
        status, chart = await get_json(app, address)
        while seen(chart["captured"]) < captured:
            await asyncio.sleep(0.05)
            status, chart = await get_json(app, address)
    assert status == 200
    assert seen(chart["captured"]) == captured
    return chart
