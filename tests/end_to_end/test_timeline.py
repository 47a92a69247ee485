"""The timeline of a real box: over HTTP and to viewers, the same batches that ran, all of them."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from jsonschema import Draft202012Validator

from edgebox.app.composition import App
from edgebox.media.sources import PictureSource
from edgebox.web.openapi import document
from edgebox.web.server import ROUTES
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import PICTURE, counts_of, get_json, gone, running, streaming, until
from tests.end_to_end.test_viewers import viewing

pytestmark = pytest.mark.usefixtures("few_sizes")

OPENAPI = document(ROUTES, "1")
SCHEMA = {"$ref": "#/components/schemas/Timeline", "components": OPENAPI["components"]}


async def timeline_of(app: App, query: str = "") -> dict[str, Any]:
    status, found = await get_json(app, f"/v1/timeline{query}")
    assert status == 200, found
    Draft202012Validator(SCHEMA).validate(found)
    return found


async def two_cameras(app: App) -> None:
    """Let two cameras stream for a while and leave, so that all has ended."""
    async with streaming(app, "gate") as gate, streaming(app, "door", rate_hz=40.0) as door:
        await until(
            lambda: min(gate.summary().on_time, door.summary().on_time) >= 12, "twelve answers each"
        )
    await gone(app, "gate")
    await gone(app, "door")
    await until(lambda: not app.box.driver.frames_pending, "the last frame")


async def test_what_is_shown_is_what_ran_and_what_was_counted(database: Path) -> None:
    async with running(database, scheduler__sample_share=0) as app:
        await two_cameras(app)
        found = await timeline_of(app)
        counts = [counts_of(app, name) for name in ("gate", "door")]
        meters = app.box.driver.measurements.meters
    endings = Counter(r["outcome"] for b in found["batches"] for r in b["requests"])
    endings.update(drop["reason"] for drop in found["drops"])
    counted: Counter[str] = Counter()
    for each in counts:
        counted.update({"on_time": each.on_time, "late": each.late, **each.dropped})
    for unsent in ("sender", "plan"):
        del counted[unsent]  # the scheduler never saw those
    assert +endings == +counted
    assert found["running"] == []
    sizes = Counter(b["size"] for b in found["batches"])
    assert sizes == sum((meter.batches for meter in meters.values()), Counter())
    for batch in found["batches"]:
        assert batch["ordered_ms"] <= batch["started_ms"] < batch["ended_ms"]
        assert batch["ended_ms"] <= batch["answered_ms"] <= found["now_ms"]
        assert batch["expected_ms"] > 0
        assert batch["padded_size"] >= batch["size"] == len(batch["requests"])
        for request in batch["requests"]:
            assert request["captured_ms"] <= request["arrived_ms"] <= batch["ordered_ms"]
            on_time = batch["answered_ms"] <= request["deadline_ms"]
            assert request["outcome"] == ("on_time" if on_time else "late")
    assert {change["camera"] for change in found["changes"]} == {"gate", "door"}
    assert found["plans"]
    assert found["decision_us"]["p50"] <= found["decision_us"]["p99"] <= found["decision_us"]["max"]


async def test_a_span_has_what_overlaps_it(database: Path) -> None:
    async with running(database) as app:
        await two_cameras(app)
        whole = await timeline_of(app)
        batches = whole["batches"]
        from_ms, to_ms = batches[3]["answered_ms"], batches[-3]["ordered_ms"]
        part = await timeline_of(app, f"?from_ms={from_ms}&to_ms={to_ms}")
        nothing = await timeline_of(app, f"?from_ms={to_ms + 1e9}&to_ms={to_ms + 2e9}")
    overlap = [b for b in batches if b["ordered_ms"] <= to_ms and b["answered_ms"] >= from_ms]
    assert part["batches"] == overlap
    assert len(overlap) < len(batches)
    assert part["plans"] == [p for p in whole["plans"] if from_ms <= p["answered_ms"] <= to_ms]
    assert all(from_ms <= at_ms <= to_ms for at_ms, _ in part["queues"])
    assert (nothing["batches"], nothing["drops"], nothing["changes"]) == ([], [], [])


async def test_wrong_questions_are_refused(database: Path) -> None:
    async with running(database) as app:
        for query in ("from_ms=soon", "to_ms=-1", "since=4"):
            status, problem = await get_json(app, f"/v1/timeline?{query}")
            assert (status, problem["code"]) == (400, "invalid")


async def test_a_viewer_that_asks_is_told_of_every_batch_once(database: Path) -> None:
    async with running(database, scheduler__sample_share=0) as app:
        async with viewing(app) as page, streaming(app, "gate"):
            await until(
                lambda: app.box.driver.decisions.timeline.batches.total >= 5, "five batches"
            )
            await page.send_json({"type": "watch", "timeline": True})
            news = await news_until(page, batches=15)
            await page.send_json({"type": "watch"})
            assert await silence(page)
        whole = {b["batch"]: b for b in (await timeline_of(app))["batches"]}
    assert [each["begins"] for each in news] == [True] + [False] * (len(news) - 1)
    batches = [batch for each in news for batch in each["batches"]]
    assert [batch["batch"] for batch in batches] == sorted(whole)[: len(batches)]
    assert all(whole[batch["batch"]] == batch for batch in batches)
    assert news[0]["decision_us"]["count"] > 0
    for each in news:
        for batch in each["running"]:
            assert batch["answered_ms"] is None


async def news_until(page: aiohttp.ClientWebSocketResponse, batches: int) -> list[dict[str, Any]]:
    """Return the news of the timeline until so many batches were told of."""
    news: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        while sum(len(each["batches"]) for each in news) < batches:
            if (found := await text_message(page))["type"] == "timeline":
                news.append(found)
            assert found["type"] != "error", found
    return news


async def silence(page: aiohttp.ClientWebSocketResponse) -> bool:
    """Say whether, of the next states, the later ones come without news in between."""
    kinds: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while kinds.count("state") < 6:
            kinds.append((await text_message(page))["type"])
    return kinds[-3:] == ["state"] * 3


async def text_message(page: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    while (message := await page.receive()).type is not aiohttp.WSMsgType.TEXT:
        assert message.type is aiohttp.WSMsgType.BINARY
    found: dict[str, Any] = orjson.loads(message.data)
    return found


async def test_a_watch_that_names_no_camera_means_all(database: Path) -> None:
    async with running(database) as app, viewing(app) as page:
        await page.send_json({"type": "watch", "max_hz": 1})
        assert [(await text_message(page))["type"] for _ in range(3)] == ["state"] * 3


async def test_a_long_minute_comes_in_several_messages(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(database, scheduler__sample_share=0) as app:
        # However long a busy machine takes for what is done in half a minute.
        monkeypatch.setattr(app.box.driver.decisions.timeline.batches, "_window_ns", 10**12)
        tiny = PictureSource((64, 36), 60.0, lambda number: PICTURE[:36, :64])
        async with streaming(app, "gate", source=tiny, rate_hz=60.0):
            await until(
                lambda: app.box.driver.decisions.timeline.batches.total > 300, "300 batches"
            )
        await gone(app, "gate")
        async with viewing(app) as page:
            await page.send_json({"type": "watch", "timeline": True})
            total = app.box.driver.decisions.timeline.batches.total
            news = await news_until(page, batches=total)
    assert len(news) >= 2
    assert max(len(each["batches"]) for each in news) <= 256
    batches = [batch["batch"] for each in news for batch in each["batches"]]
    assert batches == sorted(set(batches))
