"""The page that adds a camera, in a real Chromium, and the addresses it is told."""

import asyncio
import importlib.util
import re
import socket
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from edgebox.app.composition import App
from tests.end_to_end.browsing import PATIENCE_MS, PHONE, STICKING_OUT, open_page, street
from tests.end_to_end.onvif_camera import onvif_camera
from tests.end_to_end.running import get_json, running, streaming
from tests.end_to_end.sources import write_video

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]


async def open_add(browser: Browser, app: App, **options: Any) -> tuple[Page, list[str]]:
    page, complaints = await open_page(browser, app, **options)
    await page.get_by_role("link", name="Add a camera", exact=True).click()
    await expect(page.get_by_role("heading", name="A camera, beside a computer")).to_be_visible()
    return page, complaints


async def test_a_new_camera_shows_up_with_its_first_frame(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate-1"):
        page, complaints = await open_add(browser, app)
        await expect(page.get_by_test_id("arriving")).to_contain_text("Waiting for the new camera")
        await expect(page.get_by_test_id("arrival")).to_have_count(0)
        async with streaming(app, "gate-2", **street()):
            arrival = page.get_by_test_id("arrival")
            await expect(arrival).to_contain_text(
                re.compile(r"gate-2 connected, first frame after \d+\.\d s"), timeout=PATIENCE_MS
            )
            state = (await get_json(app, "/v1/state"))[1]
            camera = next(one for one in state["cameras"] if one["id"] == "gate-2")
            shown = f"first frame after {camera['first_frame_s']:.1f} s"
            await expect(arrival).to_contain_text(shown)
            await expect(arrival).to_contain_text(re.compile(r"\d+ × \d+ px"))
            await expect(arrival.locator("canvas[data-frames]")).to_be_visible(timeout=PATIENCE_MS)
            await expect(arrival.get_by_role("link")).to_have_attribute("href", "#/cameras/gate-2")
        await expect(arrival).to_contain_text("left again: it has finished")
        assert complaints == []


async def test_the_lines_follow_name_source_and_address(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_add(browser, app)
        lines = page.get_by_test_id("lines")
        await page.get_by_label("Name of the new camera").fill("gate-7")
        await page.get_by_label("Address at which it reaches this box").fill("box.example:9000")
        await expect(lines).to_contain_text("edgebox camera rtsp://CAMERA/stream")
        await expect(lines).to_contain_text("--server ws://box.example:9000 --name gate-7")
        await expect(page.get_by_test_id("qr")).to_have_attribute(
            "data-text", "http://box.example:9000/camera?name=gate-7"
        )
        await expect(page.get_by_test_id("needs-https")).to_be_visible()
        await page.get_by_label("Address at which it reaches this box").fill("https://box.example")
        await expect(page.get_by_test_id("needs-https")).to_have_count(0)
        await page.get_by_role("tab", name="Network camera").press("ArrowLeft")
        await expect(page.get_by_role("tab", name="None, to try it")).to_be_focused()
        await expect(lines).to_contain_text("camera scene: --server wss://box.example:443")
        await page.get_by_label("Name of the new camera").fill("no name")
        await expect(lines).to_have_count(0)


async def test_the_line_as_it_stands_starts_a_camera(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_add(browser, app)
        await page.get_by_role("tab", name="None, to try it").click()
        line = await page.get_by_test_id("lines").locator("code").last.inner_text()
        program, *arguments = line.split()
        assert program == ".venv/bin/edgebox"
        camera = await asyncio.create_subprocess_exec(sys.executable, "-m", "edgebox", *arguments)
        try:
            await expect(page.get_by_test_id("arrival")).to_contain_text(
                "first frame after", timeout=PATIENCE_MS
            )
        finally:
            camera.terminate()
            await camera.wait()
        assert camera.returncode == 0


async def test_a_line_is_copied(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_add(browser, app)
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.get_by_role("button", name="Copy python3 -m venv .venv").click()
        await expect(page.get_by_role("button", name="Copy python3")).to_have_text("Copied")
        assert await page.evaluate("navigator.clipboard.readText()") == "python3 -m venv .venv"


async def test_a_box_that_only_its_machine_reaches_says_so(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        assert (await get_json(app, "/v1/addresses"))[1] == {
            "only_here": True,
            "tls": False,
            "addresses": [],
        }
        page, _ = await open_add(browser, app)
        await expect(page.get_by_test_id("reach")).to_contain_text("--host 0.0.0.0")
        await expect(page.get_by_test_id("qr")).to_have_count(0)


async def test_a_box_that_is_open_tells_its_addresses(database: Path, browser: Browser) -> None:
    async with running(database, server__host="0.0.0.0") as app:
        addresses = (await get_json(app, "/v1/addresses"))[1]
        hosts, ports = zip(*(each.split(":") for each in addresses["addresses"]), strict=True)
        assert set(ports) == {str(app.port)}
        assert not any(IPv4Address(host).is_loopback for host in hosts)
        page, _ = await open_add(browser, app)
        await expect(page.get_by_test_id("qr")).to_have_attribute(
            "data-text", f"http://{addresses['addresses'][0]}/camera?name=camera-1"
        )


async def test_a_phone_needs_no_sideways_scrolling(database: Path, browser: Browser) -> None:
    async with running(database, server__host="0.0.0.0") as app:
        page, _ = await open_add(browser, app, viewport=PHONE, device_scale_factor=2)
        assert await page.evaluate(STICKING_OUT) == []
        async with streaming(app, "gate-2", **street()):
            await expect(page.get_by_test_id("arrival")).to_be_visible()
            assert await page.evaluate(STICKING_OUT) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_a_camera_is_tested_added_and_removed_with_the_form(
    database: Path, tmp_path: Path, browser: Browser
) -> None:
    video = await asyncio.to_thread(write_video, tmp_path / "video.mkv", "h264", seconds=20)
    async with running(database, access__open_scope="admin") as app:
        page, complaints = await open_add(browser, app)
        await page.get_by_label("Name of the new camera").fill("yard")
        address = page.get_by_label("Address of its stream")
        await address.fill("rtsp://ann:secret@127.0.0.1:1/stream")
        await page.get_by_role("button", name="Test", exact=True).click()
        refusal = page.get_by_test_id("fetch-refusal")
        await expect(refusal).to_contain_text("connection refused", timeout=PATIENCE_MS)
        assert "secret" not in str(await refusal.text_content())
        await address.fill(f"file:{video}")
        await page.get_by_role("button", name="Test", exact=True).click()
        tested = page.get_by_test_id("fetch-tested")
        await expect(tested).to_contain_text("h264, 320 × 180 px", timeout=PATIENCE_MS)
        await page.get_by_role("button", name="Add yard").click()
        source = page.get_by_test_id("source-state")
        await expect(source).to_contain_text("h264 320 × 180 px", timeout=PATIENCE_MS)
        await page.get_by_role("button", name="Remove yard…").click()
        await page.get_by_role("button", name="Remove yard", exact=True).click()
        await expect(source).to_have_count(0, timeout=PATIENCE_MS)
        assert app.box.sources == {}
        # The browser itself notes the test that was refused.
        assert [each for each in complaints if "400" not in each] == []


async def test_a_camera_is_found_in_the_network_and_fills_the_form(
    database: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        onvif_camera("ann", "p@ss/w0rd") as (device, group),
        running(database, access__open_scope="admin") as app,
    ):
        page, complaints = await open_add(browser, app)
        search = page.get_by_role("button", name="Find cameras in the network")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            monkeypatch.setattr("edgebox.ingest.camera_search.GROUP", silent.getsockname())
            await search.click()
            discovered = page.get_by_test_id("discovered")
            await expect(discovered).to_contain_text("No camera answered", timeout=PATIENCE_MS)
        monkeypatch.setattr("edgebox.ingest.camera_search.GROUP", group)
        await search.click()
        found = page.get_by_test_id("found-camera")
        await expect(found).to_contain_text("password is wrong or missing", timeout=PATIENCE_MS)
        ask = page.get_by_role("button", name="Ask Front door")
        await expect(ask).to_be_disabled()
        await page.get_by_label("User name").fill("ann")
        await page.get_by_role("textbox", name="Password").fill("p@ss/w0rd")
        await ask.click()
        await expect(found).to_contain_text("1920 × 1080 px", timeout=PATIENCE_MS)
        address = page.get_by_label("Address of its stream")
        await expect(address).to_have_value("rtsp://127.0.0.1:8554/main")
        await expect(page.get_by_label("Smaller stream")).to_have_value("rtsp://127.0.0.1:8554/sub")
        await expect(page.get_by_label("Name of the new camera")).to_have_value("front-door")
        await address.fill("")
        await page.get_by_role("button", name="Use Front door").click()
        await expect(address).to_have_value("rtsp://127.0.0.1:8554/main")
        assert "p@ss/w0rd" not in "".join(device.heard)
        assert complaints == []
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        await search.click()
        await expect(page.get_by_test_id("discovery-refusal")).to_contain_text(
            "pip install 'edgebox[onvif]'", timeout=PATIENCE_MS
        )
