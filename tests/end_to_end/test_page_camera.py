"""The page of one camera in a real Chromium: live, its history, what is weighed and set for it."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId
from edgebox.media.jpeg import probe
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    STICKING_OUT,
    STREET_PX,
    eventually,
    milliseconds,
    number,
    open_page,
    rounded,
    street,
)
from tests.end_to_end.running import SLO_MS, free_port, get_json, gone, running, streaming, until
from tests.end_to_end.sources import write_video

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

PLACE = "#/cameras/gate"


async def open_camera(
    browser: Browser, app: App, query: str = "", **options: Any
) -> tuple[Page, list[str]]:
    await eventually(
        lambda: get_json(app, "/v1/cameras/gate/history?range=1m"),
        lambda answer: any(answer[1]["captured"]),
        "a second in its history",
    )
    page, complaints = await open_page(browser, app, PLACE + query, **options)
    await expect(page.get_by_role("heading", name="gate", exact=True)).to_be_visible()
    return page, complaints


async def live_frames(page: Page) -> Locator:
    """Return the canvas, once frames are on it."""
    canvas = page.locator("canvas[data-frames]")
    await expect(canvas).to_have_count(1)  # the overview has gone
    await eventually(lambda: number(canvas, "data-frames"), lambda n: n >= 3, "frames")
    return canvas


@pytest.mark.all_sizes
async def test_live_data_appear_and_the_figures_are_the_apis(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        async with streaming(app, "gate", **street()):
            page, complaints = await open_camera(browser, app)
            await live_frames(page)
            await expect(page.get_by_test_id("results-count")).to_contain_text(re.compile(r"\d"))
            result = json.loads(await page.get_by_test_id("result").inner_text())
            assert (result["camera"], result["width_px"]) == ("gate", STREET_PX[0])
        await gone(app, "gate")
        await expect(page.get_by_test_id("picture-note")).to_contain_text("Disconnected")
        state = (await get_json(app, "/v1/cameras/gate"))[1]["state"]
        counts = state["counts"]
        shown = page.get_by_test_id("counts")
        for text in (f"{counts['captured']} captured", f"= {counts['on_time']} on", "adds up"):
            await expect(shown).to_contain_text(text)
        await expect(page.get_by_test_id("reason")).to_have_text(state["advice"]["reason"])
        assert complaints == []
        await page.reload()  # now it has no picture
        await expect(page.get_by_test_id("picture-note")).to_contain_text("Disconnected")
        await expect(page.get_by_text("No picture yet")).to_have_count(0)


async def test_the_charts_show_what_the_api_says(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        async with streaming(app, "gate", **street()) as camera:
            await until(lambda: camera.summary().on_time >= 25, "answers")
            page, _ = await open_camera(browser, app, "?range=1m")
            await expect(page.get_by_test_id("instant")).to_contain_text("the latest")
        await gone(app, "gate")
        await until(
            lambda: not app.box.metrics.of(CameraId("gate")).has_updates, "the end of the second"
        )
        # Another range and back: each is asked for again, and the address keeps it.
        ranges = page.get_by_role("navigation", name="How far back")
        await ranges.get_by_role("link", name="1 h", exact=True).click()
        await expect(page).to_have_url(re.compile(r"#/cameras/gate\?range=1h$"))
        await page.get_by_text("As a table").click()
        table = page.get_by_test_id("history-table")
        instant = page.get_by_test_id("instant")
        await eventually(
            lambda: span_of(instant), lambda span_ms: span_ms == 3_600_000, "an hour's chart"
        )
        from_ms, to_ms = await number(instant, "data-from"), await number(instant, "data-to")
        query = f"from_ms={from_ms}&to_ms={to_ms}"
        history = (await get_json(app, f"/v1/cameras/gate/history?{query}"))[1]
        kept = [at for at, covered in enumerate(history["covered_ms"]) if covered is not None]
        await expect(table.locator("tbody tr")).to_have_count(len(kept))
        captured = await table.locator("tbody td:nth-child(11)").all_inner_texts()
        assert [*map(int, captured)] == [history["captured"][at] for at in reversed(kept)]
        assert history["classes"], "the street has objects"
        await check_steps(page, history, kept)


SEEN_FROM = 0.1
"""Classes whose mean never reaches this are not drawn."""


async def span_of(instant: Locator) -> int:
    return await number(instant, "data-to") - await number(instant, "data-from")


async def check_steps(page: Page, history: dict[str, Any], kept: list[int]) -> None:
    """Go through the kept steps by keyboard: the values beside the charts are the API's."""
    charts = page.get_by_role("group", name="Charts")
    await charts.focus()
    await page.keyboard.press("End")
    for _ in range(len(history["at_ms"]) - 1 - kept[-1]):
        await page.keyboard.press("ArrowLeft")
    for at in range(kept[-1], max(-1, kept[-1] - 3), -1):
        objects = page.get_by_test_id("chart-objects")
        for label, column in history["classes"].items():
            if max(filter(None, column), default=0.0) < SEEN_FROM:
                continue
            await expect(objects.locator(f'[data-line="{label}"] strong')).to_have_text(
                "–" if column[at] is None else f"{rounded(column[at], 1)}"
            )
        latency = page.get_by_test_id("chart-latency")
        p50, p99 = history["latency_ms"]["p50"], history["latency_ms"]["p99"]
        await expect(latency.locator('[data-line="network"]')).to_contain_text(
            milliseconds(p50["network"][at])
        )
        await expect(latency.locator('[data-line="P99"]')).to_contain_text(
            milliseconds(p99["total"][at])
        )
        answered = page.get_by_test_id("chart-fps").locator('[data-line="answered"] strong')
        fps = history["fps"][at]
        await expect(answered).to_have_text("–" if fps is None else f"{rounded(fps, 1)}")
        await page.keyboard.press("ArrowLeft")


async def test_a_fetched_camera_shows_what_decoding_takes_and_no_uplink(
    database: Path, tmp_path: Path, browser: Browser
) -> None:
    video = await asyncio.to_thread(write_video, tmp_path / "video.mkv", "h264", seconds=20)
    config = tmp_path / "box.toml"
    config.write_text(
        f'[[cameras]]\nname = "gate"\nurl = "file:{video}"\nslo_ms = {SLO_MS}\n', encoding="utf-8"
    )
    async with running(database, file=config) as app:
        await until(lambda: "gate" in app.box.cameras, "the camera")
        page, complaints = await open_camera(browser, app)
        figures = page.get_by_test_id("source-figures")
        await expect(figures).to_contain_text("h264, 320 × 180 px")
        await expect(page.get_by_test_id("decoding-cores")).to_have_text(
            re.compile(r"0\.\d\d of a core")
        )
        await expect(figures).to_contain_text("the playback")
        await expect(page.get_by_test_id("uplink")).to_have_count(0)
        await expect(page.get_by_test_id("chart-bandwidth")).to_have_count(0)
        await expect(page.get_by_test_id("chart-latency")).to_be_visible()
        assert complaints == []


async def test_the_pointer_moves_one_cursor_over_all_charts(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, complaints = await open_camera(browser, app, "?range=15m")
        instant = page.get_by_test_id("instant")
        await expect(instant).to_contain_text("the latest")
        plot = page.get_by_test_id("chart-fps").locator(".u-over")
        await plot.scroll_into_view_if_needed()
        box = await plot.bounding_box()
        assert box is not None
        await page.mouse.move(box["x"] + 20, box["y"] + 20)
        await expect(instant).to_contain_text("nothing was kept")
        await expect(page.get_by_test_id("chart-latency").locator(".u-cursor-x")).to_be_visible()
        await expect(page.get_by_test_id("chart-latency")).to_contain_text("network –")
        await page.mouse.move(0, 0)
        await expect(instant).to_contain_text("the latest")
        assert complaints == []


@pytest.mark.all_sizes
async def test_what_the_planner_considers_is_the_apis_and_follows_a_setting(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, complaints = await open_camera(browser, app)
        table = page.get_by_test_id("explanation")
        await expect(table.locator('[data-verdict="chosen"]')).to_have_count(1)
        await table.get_by_role("button", name="Show all").click()
        options = (await get_json(app, "/v1/cameras/gate/explanation"))[1]["options"]
        await expect(table.locator("tbody tr")).to_have_count(len(options))
        shown = await table.locator("tbody tr td:nth-child(2)").all_inner_texts()
        assert shown == [f"{option['accuracy']:.2f}" for option in reversed(options)]
        smallest = options[0]["variant"]
        least = options[1]["accuracy"]
        await page.get_by_role("textbox", name="Minimum accuracy").fill(f"{least:g}")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_test_id("saved")).to_contain_text("Saved")
        row = table.locator(f'[data-variant="{smallest}"]')
        await expect(row).to_contain_text(f"less accurate than the {least:g} that is asked for")
        known = (await get_json(app, "/v1/cameras/gate"))[1]
        assert known["overrides"]["min_accuracy"] == known["in_force"]["min_accuracy"] == least
        assert complaints == []


@pytest.mark.all_sizes
async def test_a_size_that_is_out_of_reach_says_what_would_lift_that(
    database: Path, browser: Browser
) -> None:
    """With a deadline of 20 ms sizes are out of reach but for a later deadline or a better link."""
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_camera(browser, app)
        table = page.get_by_test_id("explanation")
        await expect(table.locator('[data-verdict="chosen"]')).to_have_count(1)
        await page.get_by_role("textbox", name="Deadline").fill("20")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_test_id("saved")).to_contain_text("Saved")
        more = table.get_by_role("button", name="Show all")
        await more.click()
        await expect(table.get_by_test_id("remedies").first).to_be_visible()

        async def with_a_limit() -> list[dict[str, Any]]:
            options = (await get_json(app, "/v1/cameras/gate/explanation"))[1]["options"]
            return [option for option in options if option["limit"] is not None]

        # How quick the box takes itself to be changes while others use this machine.
        limited = await eventually(with_a_limit, bool, "sizes that are out of reach")
        for option in limited:
            limit = option["limit"]
            assert limit["missing"] > 0
            assert option["remedies"]
            price = limit["gain"] / limit["missing"]
            assert limit["price"] == pytest.approx(price, rel=0.02, abs=1e-4)


async def test_a_deadline_is_set_undone_and_reset(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()) as camera:
        page, _ = await open_camera(browser, app)
        deadline = page.get_by_role("textbox", name="Deadline")
        await expect(deadline).to_have_attribute("placeholder", "30000, as the camera asks")
        save = page.get_by_role("button", name="Save")
        await expect(save).to_be_disabled()
        await deadline.fill("700")
        await page.keyboard.press("Enter")
        await expect(page.get_by_test_id("saved")).to_contain_text("Saved")
        await until(lambda: camera.summary().slo_ms == 700, "the camera to hear of it")
        await expect(page.get_by_test_id("latency")).to_contain_text("limit 700")
        await expect(deadline).to_have_value("700")
        await expect(page.get_by_text("Without this setting: 30000")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await until(lambda: camera.summary().slo_ms == SLO_MS, "the camera to hear of it")
        # The fields are emptied once the page has the answer.
        await expect(page.get_by_test_id("saved")).to_contain_text("Undone")
        await expect(deadline).to_have_value("")
        await deadline.fill("900")
        await save.click()
        await expect(page.get_by_test_id("saved")).to_contain_text("Saved")
        await until(lambda: camera.summary().slo_ms == 900, "the camera to hear of it")
        await page.get_by_role("button", name="Reset deadline").click()
        await until(lambda: camera.summary().slo_ms == SLO_MS, "the camera to hear of it")
        assert (await get_json(app, "/v1/cameras/gate"))[1]["overrides"]["slo_ms"] is None


async def test_what_is_refused_is_told_in_the_words_of_its_field(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_camera(browser, app)
        deadline = page.get_by_role("textbox", name="Deadline")
        for typed in ("0", "soon"):
            await deadline.fill(typed)
            await page.get_by_role("button", name="Save").click()
            alert = page.locator("#setting-slo_ms-hint")
            await expect(alert).to_contain_text("Deadline must be a number from 1 to 60000")
            await expect(alert).to_have_attribute("role", "alert")
            await expect(deadline).to_have_attribute("aria-invalid", "true")
            await expect(deadline).to_have_value(typed)
        assert (await get_json(app, "/v1/cameras/gate"))[1]["overrides"]["slo_ms"] is None


@pytest.mark.all_sizes
async def test_stills_and_results_are_taken_home(
    database: Path, browser: Browser, tmp_path: Path
) -> None:
    # Sent smaller than the camera's own pictures are.
    async with running(database) as app, streaming(app, "gate", **street(size_px=(640, 360))):
        page, complaints = await open_camera(browser, app)
        await live_frames(page)
        plain = await downloaded(page, "Snapshot", tmp_path)
        assert re.fullmatch(r"gate-\d{4}-\d\d-\d\dT\d{6}Z\.jpg", plain.name)
        assert probe(plain.read_bytes())[0] <= 640
        boxed = await downloaded(page, "Snapshot with boxes", tmp_path)
        assert probe(boxed.read_bytes()) == (640, 360)
        two_or_more = re.compile(r"the last ([2-9]|\d\d)")
        await expect(page.get_by_test_id("results-count")).to_contain_text(two_or_more)
        kept = json.loads((await downloaded(page, "Download JSON", tmp_path)).read_bytes())
        assert kept["camera"] == "gate"
        # The newest first; a frame may overtake another.
        received = [result["received_ms"] for result in kept["results"]]
        assert len(received) >= 2
        assert received == sorted(received, reverse=True)
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.get_by_role("button", name="Copy JSON").click()
        await expect(page.get_by_text(re.compile(r"Copied \d+ results"))).to_be_visible()
        copied = json.loads(await page.evaluate("navigator.clipboard.readText()"))
        assert copied["results"][0].keys() == kept["results"][0].keys()
        assert complaints == []


async def downloaded(page: Page, button: str, folder: Path) -> Path:
    async with page.expect_download() as started:
        await page.get_by_role("button", name=button, exact=True).click()
    download = await started.value
    file = folder / download.suggested_filename
    await download.save_as(file)
    return file


async def test_a_box_that_restarts_is_followed_again(database: Path, browser: Browser) -> None:
    port = free_port()
    async with running(database, server__port=port) as app, streaming(app, "gate", **street()):
        page, _ = await open_camera(browser, app)
        canvas = await live_frames(page)
        await page.evaluate("window.notReloaded = true")
    connection = page.get_by_test_id("connection")
    await expect(connection).to_have_text("Connection lost", timeout=PATIENCE_MS)
    async with running(database, server__port=port) as app, streaming(app, "gate", **street()):
        await expect(connection).to_have_text("Live", timeout=PATIENCE_MS)
        stood = await number(canvas, "data-frames")
        await eventually(lambda: number(canvas, "data-frames"), lambda n: n > stood + 3, "frames")
        await expect(page.get_by_test_id("instant")).to_contain_text("the latest")
        await expect(page.get_by_text("The box does not answer.")).to_have_count(0)
        assert await page.evaluate("window.notReloaded") is True


async def test_a_camera_that_left_is_set_for_its_return_and_forgotten(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        async with streaming(app, "gate", **street()):
            page, _ = await open_camera(browser, app)
            await live_frames(page)
            await expect(page.get_by_role("button", name="Forget this camera")).to_have_count(0)
        await gone(app, "gate")
        await expect(page.get_by_text("Nothing while it is not connected.")).to_be_visible()
        await page.get_by_role("textbox", name="Rate").fill("3")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_test_id("saved")).to_contain_text("Saved for its return.")
        await page.get_by_role("button", name="Forget this camera").click()
        question = page.get_by_role("dialog", name="Forget gate?")
        await question.get_by_role("button", name="Keep it").click()
        await expect(question).to_have_count(0)
        await page.get_by_role("button", name="Forget this camera").click()
        await question.get_by_role("button", name="Forget it").click()
        await expect(page).to_have_url(re.compile(r"#/$"))
        assert (await get_json(app, "/v1/cameras/gate"))[0] == 404


async def test_a_camera_that_is_not_known_is_said_to_be(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_page(browser, app, PLACE)
        unknown = page.get_by_test_id("unknown")
        await expect(unknown).to_contain_text("This box knows no camera gate")
        async with streaming(app, "gate", **street()):
            await expect(unknown).to_have_count(0, timeout=PATIENCE_MS)
            await live_frames(page)


async def test_nothing_is_considered_for_who_is_not_there(database: Path) -> None:
    async with running(database) as app:
        status, problem = await get_json(app, "/v1/cameras/gate/explanation")
        assert (status, problem["code"]) == (404, "unknown")
        async with streaming(app, "gate", **street()):
            explanation = (await get_json(app, "/v1/cameras/gate/explanation"))[1]
            assert sum(option["verdict"] == "chosen" for option in explanation["options"]) == 1
        await gone(app, "gate")
        status, explanation = await get_json(app, "/v1/cameras/gate/explanation")
        assert (status, explanation["options"]) == (200, [])


async def test_only_its_frames_are_asked_for_while_it_is_looked_at(
    database: Path, browser: Browser
) -> None:
    async with (
        running(database) as app,
        streaming(app, "gate", **street()),
        streaming(app, "yard", **street()),
    ):
        page, _ = await open_page(browser, app)
        sent: list[dict[str, Any]] = []

        def keep(message: str | bytes) -> None:
            sent.append(orjson.loads(message))

        page.on("websocket", lambda socket: socket.on("framesent", keep))
        await page.reload()
        await page.get_by_role("link", name="gate", exact=True).click()
        await live_frames(page)
        assert sent[-1] == {"type": "watch", "cameras": ["gate"], "max_hz": 15}
        await page.get_by_role("link", name="Cameras", exact=True).first.click()
        await expect(page.get_by_test_id("camera-tile")).to_have_count(2)
        both = {"type": "watch", "cameras": ["gate", "yard"]}
        await until(lambda: sent[-1] == both, "the overview to ask for both")


async def test_a_phone_needs_no_sideways_scrolling(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, _ = await open_camera(browser, app, viewport=PHONE, device_scale_factor=2)
        await live_frames(page)
        await expect(page.get_by_test_id("explanation").locator("tbody tr").first).to_be_visible()
        for _ in range(5):  # texts change all the time
            assert await page.evaluate(STICKING_OUT) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            await asyncio.sleep(0.2)
