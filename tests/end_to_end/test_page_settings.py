"""The Settings page in a real Chromium: what it shows is what the API tells."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser, Page, expect

from edgebox.app.composition import App
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    STICKING_OUT,
    eventually,
    number,
    open_page,
)
from tests.end_to_end.running import free_port, get_json, running, until
from tests.notifications.receiver import receiving

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]


async def open_settings(browser: Browser, app: App, **options: Any) -> tuple[Page, list[str]]:
    page, complaints = await open_page(browser, app, "#/settings", **options)
    await expect(page.get_by_test_id("config")).to_be_visible(timeout=PATIENCE_MS)
    return page, complaints


async def shown_keys(page: Page) -> list[tuple[str, str, str]]:
    """Return name, value and origin of every key on the page, from above."""
    rows: list[list[str]] = await page.get_by_test_id("key").evaluate_all(
        "rows => rows.map((row) => [row.dataset.key,"
        " row.querySelector('[data-testid=value]').textContent, row.dataset.origin])"
    )
    return [(name, value, origin) for name, value, origin in rows]


def toml(value: object) -> str:
    return orjson.dumps(value).decode().replace('","', '", "')


async def test_every_key_is_there_with_value_and_origin(database: Path, browser: Browser) -> None:
    async with running(database, limits__cameras_max=7) as app:
        page, complaints = await open_settings(browser, app)
        keys = (await get_json(app, "/v1/config"))[1]["keys"]
        shown = await shown_keys(page)
        assert sorted(name for name, _, _ in shown) == sorted(key["key"] for key in keys)
        by_name = {name: (value, origin) for name, value, origin in shown}
        for key in keys:
            value, origin = by_name[key["key"]]
            assert origin == key["origin"]
            assert orjson.loads(value) == key["value"]
        is_set = [origin != "default" for _, _, origin in shown]
        assert is_set == sorted(is_set, reverse=True), "what was set comes first"
        assert ("limits.cameras_max", "7", "option") in shown
        assert complaints == []


async def test_keys_are_searched_and_narrowed(database: Path, browser: Browser) -> None:
    async with running(database, limits__cameras_max=7) as app:
        page, _ = await open_settings(browser, app)
        keys = (await get_json(app, "/v1/config"))[1]["keys"]
        await page.get_by_label("Search the configuration").fill("cameras connected")
        await expect(page.get_by_test_id("found")).to_have_text(f"1 key of {len(keys)}")
        assert await shown_keys(page) == [("limits.cameras_max", "7", "option")]
        await page.get_by_label("Search the configuration").fill("")
        await page.get_by_label("Only what was set").check()
        wanted = {key["key"] for key in keys if key["origin"] != "default"}
        assert {name for name, _, _ in await shown_keys(page)} == wanted
        await page.get_by_label("Search the configuration").fill("no such words")
        await expect(page.get_by_text("No key has these words.")).to_be_visible()


async def test_storage_versions_licences_and_executors(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_settings(browser, app)
        system = (await get_json(app, "/v1/system"))[1]
        storage = page.get_by_test_id("storage")
        await expect(storage).to_contain_text(system["storage"]["file"])
        profiles = storage.locator('[data-table="profiles"] td')
        await expect(profiles).to_have_text(str(system["storage"]["rows"]["profiles"]))
        database_bytes = storage.get_by_test_id("database-bytes")

        async def both() -> tuple[int, int]:
            stored_bytes = (await get_json(app, "/v1/system"))[1]["storage"]["database_bytes"]
            return stored_bytes, await number(database_bytes, "data-bytes")

        # The box goes on writing, and the page asks again and again.
        await eventually(both, lambda found: found[0] == found[1], "the same on page and API")
        await expect(storage.get_by_test_id("free")).to_contain_text("free")
        await expect(storage.get_by_test_id("retention")).to_contain_text("by the hour400 days")
        versions = page.get_by_test_id("versions")
        for version in (system["edgebox"], system["python"], system["onnxruntime"]):
            await expect(versions).to_contain_text(version)
        state = (await get_json(app, "/v1/state"))[1]
        for executor in state["box"]["executors"]:
            row = page.locator(f'[data-executor="{executor["id"]}"]')
            await expect(row).to_contain_text(executor["device"])
            await expect(row).to_contain_text(executor["note"])
        packages = page.get_by_test_id("licences").locator("tbody tr")
        await expect(packages).to_have_count(len(system["packages"]))
        await page.get_by_label("Search packages and licences").fill("aiohttp")
        (aiohttp,) = [each for each in system["packages"] if each["name"] == "aiohttp"]
        row = page.locator('[data-package="aiohttp"]')
        await expect(row).to_contain_text(f"{aiohttp['version']}{aiohttp['licence']}")


async def test_where_events_go_and_what_is_in_memory(
    database: Path, tmp_path: Path, browser: Browser
) -> None:
    file = tmp_path / "edgebox.toml"
    async with receiving() as receiver:
        receiver.secret = None
        file.write_text(
            f"""
            [[webhooks]]
            name = "barn"
            url = "{receiver.url}"
            [[webhooks]]
            name = "shed"
            url = "http://127.0.0.1:{free_port()}/"
            """,
            encoding="utf-8",
        )
        async with running(database, file=file, inference__memory_limit_mb=1_000) as app:
            barn, shed = app.box.destinations
            await until(lambda: barn.sent == 1 and shed.connected is False, "both to be tried")
            page, complaints = await open_settings(browser, app)
            box = (await get_json(app, "/v1/state"))[1]["box"]
            card = page.get_by_test_id("events-out")
            up, down = card.locator("[data-standing=up]"), card.locator("[data-standing=down]")
            await expect(up).to_contain_text("barn webhook up")
            await expect(up).to_contain_text("1 delivered · 0 waiting · 0 lost")
            await expect(down).to_contain_text("shed webhook down")
            await expect(down).to_contain_text("0 delivered · 1 waiting · 0 lost")
            await expect(down).to_contain_text(box["destinations"][1]["last_error"]["text"])
            (memory,) = box["memory"]
            residency = page.locator(f'[data-executor="{memory["executor"]}"]')
            await expect(residency.locator("[data-bytes]")).to_have_attribute(
                "data-bytes", str(memory["used_bytes"])
            )
            await expect(residency).to_contain_text("of at most 1.0\u202fGB in memory")
            weights = [one["weights"] for one in memory["resident"]]
            await expect(residency.locator("[data-weights]")).to_have_count(len(weights))
            await expect(residency.locator("[data-weights]").first).to_contain_text(weights[0])
            await page.get_by_role("link", name="Cameras", exact=True).click()
            stat = page.get_by_role("region", name="Box")
            await expect(stat).to_contain_text("1 of 2 up")
            await expect(page.get_by_test_id("events-out-stat")).to_have_text("1 waiting, 0 lost")
            await expect(stat).to_contain_text("of 1.0\u202fGB in memory")
            assert complaints == []


async def test_a_box_that_tells_nobody_says_so(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_settings(browser, app)
        await expect(page.get_by_test_id("events-out")).to_contain_text("They go nowhere")
        await expect(page.get_by_test_id("executors")).to_contain_text(
            "Every model stays in memory"
        )


async def test_a_phone_needs_no_sideways_scrolling(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_settings(browser, app, viewport=PHONE, device_scale_factor=2)
        assert await page.evaluate(STICKING_OUT) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_it_outlives_the_server(database: Path, browser: Browser) -> None:
    port = free_port()
    async with running(database, server__port=port) as app:
        page, _ = await open_settings(browser, app)
        await page.evaluate("window.notReloaded = true")
    connection = page.get_by_test_id("connection")
    await expect(connection).to_have_text("Connection lost", timeout=PATIENCE_MS)
    await expect(page.get_by_test_id("config")).to_be_visible()
    await asyncio.sleep(0.2)
    async with running(database, server__port=port):
        await expect(connection).to_have_text("Live", timeout=PATIENCE_MS)
        assert await page.evaluate("window.notReloaded") is True
