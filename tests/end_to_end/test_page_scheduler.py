"""The Scheduler page in a real Chromium: live batches, a moment looked at closely, the recorder."""

import asyncio
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from edgebox.app.composition import App
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    STICKING_OUT,
    eventually,
    number,
    open_page,
    rounded,
    street,
)
from tests.end_to_end.program import edgebox
from tests.end_to_end.running import free_port, get_json, running, streaming, until

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

PLACE = "#/scheduler"
POINTER_PX = 5
"""As near to a batch the pointer finds it; narrow ones that are close are drawn as one."""


async def open_scheduler(
    browser: Browser, app: App, **options: Any
) -> tuple[Page, Locator, list[str]]:
    """Open the page; give it, its canvas once batches are on it, and what goes wrong."""
    page, complaints = await open_page(browser, app, PLACE, **options)
    canvas = page.get_by_test_id("timeline")
    await expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    return page, canvas, complaints


async def end_of(canvas: Locator) -> float:
    """Return the instant at the right edge."""
    return float(await canvas.get_attribute("data-end") or "0")


async def stand_of(canvas: Locator) -> float:
    """Return the instant at the right edge if it stands still, else 0."""
    before = await end_of(canvas)
    await asyncio.sleep(0.3)
    return before if await end_of(canvas) == before else 0


async def some_batches(canvas: Locator) -> None:
    await eventually(lambda: number(canvas, "data-batches"), lambda n: n >= 8, "batches")


async def batch_of(app: App, wanted: int) -> dict[str, Any]:
    found = (await get_json(app, "/v1/timeline"))[1]
    batch: dict[str, Any] = next(b for b in found["batches"] if b["batch"] == wanted)
    return batch


def ms(value: float) -> str:
    """Write milliseconds as the page writes slack."""
    return f"{rounded(value, 1)}\u202fms".replace("-", "−")


MORE_VARIANTS = """
(legend) => {
  for (let at = 0; at < 14; at++) {
    const entry = legend.firstElementChild.cloneNode(true)
    entry.lastChild.textContent = `street-detector-${32 * at}`
    legend.append(entry)
  }
}
"""
BESIDE = """
(legend) => {
  const pause = document.querySelector('[aria-label=Timeline] button').getBoundingClientRect()
  return [...legend.children].filter((entry) => {
    const { left, right, top, bottom } = entry.getBoundingClientRect()
    const beside = right <= pause.left || left >= pause.right
    const covered = !beside && bottom > pause.top && top < pause.bottom
    return covered || right > legend.getBoundingClientRect().right + 1
  }).length
}
"""
"""How many entries of the legend are cut or lie under the Pause button."""


@pytest.mark.all_sizes
@pytest.mark.parametrize("width", [1440, 390])
async def test_a_legend_of_many_variants_shows_them_all(
    database: Path, browser: Browser, width: int
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, complaints = await open_scheduler(
            browser, app, viewport={"width": width, "height": 844}
        )
        await some_batches(canvas)
        legend = page.get_by_role("list", name="Variants")
        await expect(legend.get_by_role("listitem").first).to_be_visible()
        await legend.evaluate(MORE_VARIANTS)
        assert await legend.evaluate(BESIDE) == 0
        assert await page.evaluate(STICKING_OUT) == []
        assert complaints == []


async def test_batches_run_by_and_a_pause_stops_them(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, complaints = await open_scheduler(browser, app)
        await some_batches(canvas)
        first = await end_of(canvas)
        await eventually(lambda: end_of(canvas), lambda end: end > first + 500, "movement")
        await canvas.press("Space")
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()
        stopped = await eventually(lambda: end_of(canvas), lambda end: end > 0, "a moment")
        total = app.box.driver.decisions.timeline.batches.total
        await until(
            lambda: app.box.driver.decisions.timeline.batches.total > total + 8, "more batches"
        )
        assert await end_of(canvas) == stopped
        await canvas.press("Space")
        await eventually(lambda: end_of(canvas), lambda end: end > stopped + 500, "movement again")
        assert complaints == []


async def test_a_chosen_batch_has_the_numbers_of_the_api(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, complaints = await open_scheduler(browser, app)
        await some_batches(canvas)
        await canvas.press("Shift+ArrowLeft")
        details = page.get_by_test_id("details")
        shown = details.locator("[data-batch]")
        await expect(shown).to_be_visible()
        for _ in range(3):
            batch = await batch_of(app, await number(shown, "data-batch"))
            await check_details(details, batch)
            await canvas.press("Shift+ArrowLeft")
            await expect(shown).not_to_have_attribute("data-batch", str(batch["batch"]))
        assert complaints == []


async def check_details(details: Locator, batch: dict[str, Any]) -> None:
    await expect(details).to_contain_text(f"{batch['variant']} on {batch['executor']}")
    if batch["kind"] == "sample":
        await expect(details).to_contain_text(f"Sample {batch['batch']}")
        return
    await expect(details.locator("tbody tr")).to_have_count(batch["size"])
    for request in batch["requests"]:
        row = details.locator(f'[data-request="{request["request"]}"]')
        for text in (
            request["camera"],
            ms(request["deadline_ms"] - batch["started_ms"]),
            ms(request["deadline_ms"] - batch["answered_ms"]),
            request["outcome"].replace("_", " "),
        ):
            await expect(row).to_contain_text(text)


async def test_a_click_on_a_batch_stops_and_shows_it(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(browser, app)
        await some_batches(canvas)
        await canvas.press("Space")
        await page.get_by_text("Batches as a table").click()
        row = page.get_by_test_id("batches").locator("tbody tr").nth(1)
        wanted = await row.locator("button").inner_text()
        texts = await row.inner_text()
        await row.locator("button").click()
        shown = page.get_by_test_id("details").locator("[data-batch]")
        await expect(shown).to_have_attribute("data-batch", wanted)
        batch = await batch_of(app, int(wanted))
        assert batch["variant"] in texts
        assert all(request["camera"] in texts for request in batch["requests"])
        # Where the canvas draws it, the pointer finds it.
        await canvas.press("Escape")
        await expect(shown).to_have_count(0)
        box = await canvas.bounding_box()
        span = page.get_by_test_id("span")
        assert box is not None
        span_ms = float((await span.inner_text()).split("\u202f")[0]) * 1000
        middle_ms = (batch["started_ms"] + batch["ended_ms"]) / 2
        x = box["width"] * (1 - (await end_of(canvas) - middle_ms) / span_ms)
        await canvas.click(position={"x": x, "y": 50})
        await expect(shown).to_have_count(1)
        # It, or the last of those that are drawn as one with it.
        found = await batch_of(app, int(await shown.get_attribute("data-batch") or 0))
        near_ms = POINTER_PX * span_ms / box["width"]
        assert found["started_ms"] - near_ms <= middle_ms <= found["ended_ms"] + near_ms


async def test_zoom_and_pan_by_keys_buttons_and_pointer(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(browser, app)
        await some_batches(canvas)
        span = page.get_by_test_id("span")
        before = await span.inner_text()
        await canvas.press("+")
        await expect(span).not_to_have_text(before)
        await page.get_by_role("button", name="Show more time").click()
        await expect(span).to_have_text(before)
        box = await canvas.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + 50
        await page.mouse.move(x, y)
        await page.mouse.wheel(0, -240)
        await expect(span).not_to_have_text(before)
        for _ in range(2):
            await canvas.press("-")
        await page.mouse.down()
        await page.mouse.move(x + 150, y, steps=5)
        await page.mouse.up()
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()
        dragged = await end_of(canvas)
        await canvas.press("ArrowLeft")
        panned = await eventually(lambda: end_of(canvas), lambda at: at < dragged, "panning")
        await canvas.press("End")
        await eventually(lambda: end_of(canvas), lambda at: at > panned, "the newest")


async def test_the_plan_and_what_it_costs_are_shown(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(browser, app)
        await some_batches(canvas)
        plan = page.get_by_test_id("plan")
        await expect(plan.locator("tbody th")).to_have_text("gate")
        await expect(plan).to_contain_text(re.compile(r"street-\d+"))
        await expect(plan).to_contain_text(re.compile(r"\d+ × \d+"))
        changes = page.get_by_test_id("changes")
        await expect(changes).to_contain_text(re.compile(r"gate begins with street-\d+"))
        costs = page.get_by_test_id("costs")
        await expect(costs).to_contain_text(re.compile(r"P99\s*[\d.,]+\s(µs|ms)"))
        await expect(costs).to_contain_text("cpu/0")


async def test_the_flight_recorder_that_is_downloaded_replays(
    database: Path, browser: Browser, tmp_path: Path
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(browser, app)
        await some_batches(canvas)
        await canvas.press("Shift+ArrowLeft")
        details = page.get_by_test_id("details")
        request = await number(details.locator("[data-request]").first, "data-request")
        await expect(page.get_by_text(f"edgebox replay FILE --request {request}")).to_be_visible()
        async with page.expect_download() as started:
            await page.get_by_test_id("journal").click()
        download = await started.value
        assert download.suggested_filename.endswith(".jsonl.gz")
        file = tmp_path / download.suggested_filename
        await download.save_as(file)
    result = await edgebox(tmp_path, "replay", str(file), "--request", str(request))
    assert result.code == 0, result.err
    assert f"request {request} of gate" in result.out
    document = (await edgebox(tmp_path, "replay", str(file), "--json")).json()
    assert document["differences"] == []


async def test_a_box_that_restarts_is_followed_again(database: Path, browser: Browser) -> None:
    port = free_port()
    async with running(database, server__port=port) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(browser, app)
        await some_batches(canvas)
        await page.evaluate("window.notReloaded = true")
    connection = page.get_by_test_id("connection")
    await expect(connection).to_have_text("Connection lost", timeout=PATIENCE_MS)
    # The shown clock runs on for a while without news.
    stands = await eventually(lambda: stand_of(canvas), bool, "the clock to stand still")
    async with running(database, server__port=port) as app, streaming(app, "gate", **street()):
        await expect(connection).to_have_text("Live", timeout=PATIENCE_MS)
        await eventually(lambda: end_of(canvas), lambda end: end > stands + 500, "movement again")
        await some_batches(canvas)
        assert await page.evaluate("window.notReloaded") is True


async def test_the_box_is_asked_for_it_only_while_it_is_looked_at(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_page(browser, app)
        sent: list[dict[str, Any]] = []

        def keep(message: str | bytes) -> None:
            sent.append(orjson.loads(message))

        page.on("websocket", lambda socket: socket.on("framesent", keep))
        await page.reload()
        in_view = {"type": "watch", "cameras": ["gate"]}
        await until(lambda: in_view in sent, "the overview to ask for frames")
        await page.get_by_role("link", name="Scheduler").click()
        await some_batches(page.get_by_test_id("timeline"))
        await page.get_by_role("link", name="Cameras", exact=True).click()
        await until(lambda: sent[-1] == in_view, "the page to say so")
        # Once, for the box begins it again each time; and no frames beside it.
        subscriptions = [message for message in sent if message.get("timeline")]
        assert subscriptions == [{"type": "watch", "cameras": [], "timeline": True}]


async def test_a_phone_sees_all_of_it_without_sideways_scrolling(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(
            browser, app, viewport=PHONE, device_scale_factor=2, has_touch=True
        )
        await some_batches(canvas)
        await page.get_by_role("button", name="Pause").tap()
        await canvas.press("Shift+ArrowLeft")
        await page.get_by_text("Batches as a table").tap()
        await expect(page.get_by_test_id("details").locator("[data-batch]")).to_be_visible()
        assert await page.evaluate(STICKING_OUT) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_nothing_moves_by_itself_but_the_timeline(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, canvas, _ = await open_scheduler(browser, app)
        await some_batches(canvas)
        await page.evaluate(
            "window.shifts = [];"
            "new PerformanceObserver((list) => shifts.push(...list.getEntries().map((e) => e.value)"
            ")).observe({type: 'layout-shift'})"
        )
        batches = app.box.driver.decisions.timeline.batches.total
        await until(
            lambda: app.box.driver.decisions.timeline.batches.total > batches + 15, "more batches"
        )
        assert sum(await page.evaluate("window.shifts")) < 0.02
