"""The Models page in a real Chromium: figures as the API has them, measuring, importing."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import ExifTags, Image
from playwright.async_api import Browser, Page, expect

from edgebox.app.composition import App
from edgebox.inference.profiler import profile
from tests.conftest import PATIENCE_S
from tests.end_to_end.browsing import (
    PATIENCE_MS,
    PHONE,
    STICKING_OUT,
    eventually,
    milliseconds,
    open_page,
    street,
)
from tests.end_to_end.running import free_port, get_json, running, streaming, until
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_live_models import imported
from tests.end_to_end.test_model_jobs import model

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


async def open_models(browser: Browser, app: App, **options: Any) -> tuple[Page, list[str]]:
    page, complaints = await open_page(browser, app, "#/models", **options)
    await expect(page.get_by_test_id("family").first).to_be_visible(timeout=PATIENCE_MS)
    return page, complaints


async def test_figures_are_those_of_the_api(database: Path, browser: Browser) -> None:
    async with running(database) as app, streaming(app, "gate", **street()):
        page, complaints = await open_models(browser, app)
        document = (await get_json(app, "/v1/models"))[1]
        (family,) = document["families"]
        card = page.get_by_test_id("family")
        await expect(card.get_by_test_id("licence")).to_have_text(family["licence"])
        await expect(card.get_by_test_id("mark")).to_have_count(len(family["variants"]))
        at = [document["quantiles"].index(share) for share in (0.5, 0.9, 0.99)]
        await card.get_by_text("Profile: P50").click()
        for variant in family["variants"]:
            (executor,) = variant["profiles"]
            row = card.get_by_test_id("variants").locator(f'[data-variant="{variant["name"]}"]')
            times = variant["profiles"][executor]["1"]
            size = f"{variant['width_px']} × {variant['height_px']}"
            cells = [size, f"{variant['accuracy']:.3f}", *(milliseconds(times[i]) for i in at)]
            assert (await row.locator("td.figure").all_inner_texts()) == cells
            profile = card.get_by_test_id("profile").locator(f'[data-variant="{variant["name"]}"]')
            assert await profile.count() == len(variant["profiles"][executor])
            for batch, quantiles in variant["profiles"][executor].items():
                shown = profile.and_(page.locator(f'[data-batch="{batch}"]'))
                figures = (await shown.locator("td").all_inner_texts())[:4]
                assert figures == [batch, *(milliseconds(quantiles[i]) for i in at)]
        assert complaints == []


async def test_marks_follow_the_cameras(database: Path, browser: Browser) -> None:
    async with running(database) as app:
        page, _ = await open_models(browser, app)
        used = page.locator('[data-testid="mark"]:not([data-cameras="0"])')
        await expect(used).to_have_count(0)
        async with streaming(app, "gate", **street()):
            await expect(used).to_have_count(1)
            await expect(page.get_by_test_id("variants").get_by_role("link")).to_have_text("gate")

            async def both() -> tuple[list[str], list[str | None]]:
                variants = (await get_json(app, "/v1/models"))[1]["families"][0]["variants"]
                in_use = [variant["name"] for variant in variants if variant["cameras"] == 1]
                return in_use, [await used.get_attribute("data-variant")]

            # The camera may be moved between the two looks.
            await eventually(both, lambda found: found[0] == found[1], "the same on page and API")
        await expect(used).to_have_count(0)


async def test_a_profile_run_shows_its_progress_and_new_figures(
    database: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Event()

    def profiled(*given: Any, **named: Any) -> Any:
        executor, variants, sizes, limits, progress = given

        def shown(share: float) -> None:
            progress(share)
            assert share == 0 or looked.wait(PATIENCE_S)

        return profile(executor, variants, sizes, limits, shown, **named)

    async with running(database, access__open_scope="admin") as app:
        page, complaints = await open_models(browser, app)
        before = app.box.profiles
        # What is measured is not over before this test has looked.
        monkeypatch.setattr("edgebox.app.startup.profile", profiled)
        measure = page.get_by_role("button", name="Measure street again")
        await measure.click()
        job = page.get_by_test_id("family").get_by_test_id("job")
        await expect(job).to_have_attribute("data-state", "running")
        await expect(job.get_by_role("progressbar")).to_be_visible()
        await expect(job).to_contain_text(re.compile(r"\d+.%, measuring street on cpu/0"))
        await expect(measure).to_be_disabled()
        looked.set()
        await expect(job).to_contain_text(
            "measured; planning uses the new times", timeout=PATIENCE_MS
        )
        assert app.box.profiles is not before
        document = (await get_json(app, "/v1/models"))[1]
        first = document["families"][0]["variants"][0]
        median = first["profiles"]["cpu/0"]["1"][document["quantiles"].index(0.5)]
        row = page.get_by_test_id("variants").locator(f'[data-variant="{first["name"]}"]')
        await expect(row).to_contain_text(milliseconds(median))
        async with streaming(app, "gate"):
            await expect(measure).to_be_disabled()
            await expect(page.get_by_text("Possible while no camera is connected")).to_be_visible()
        assert complaints == []


async def test_a_model_is_imported_by_upload(
    database: Path, browser: Browser, tmp_path: Path
) -> None:
    port = free_port()
    good, broken = tmp_path / "Tiny Model.onnx", tmp_path / "broken.onnx"
    good.write_bytes(model())
    broken.write_bytes(b"this is no model")
    async with running(database, access__open_scope="admin", server__port=port) as app:
        page, complaints = await open_models(browser, app)
        card = page.get_by_test_id("import")
        name, button = (
            card.get_by_label("Name of the family"),
            card.get_by_role("button", name="Import"),
        )
        await expect(button).to_be_disabled()
        await card.get_by_label("ONNX file").set_input_files(broken)
        await expect(name).to_have_value("broken")
        await button.click()
        job = card.get_by_test_id("job")
        refusal = "The file was not imported: broken.onnx: is not an ONNX model, or is cut short"
        await expect(job).to_contain_text(refusal, timeout=PATIENCE_MS)
        assert [*(tmp_path / "models").glob("*")] == []
        await card.get_by_label("ONNX file").set_input_files(good)
        await expect(name).to_have_value("tiny-model")
        await name.fill("street")
        await expect(card).to_contain_text("There is a family of this name already.")
        await expect(button).to_be_disabled()
        await name.fill("tiny")
        await card.get_by_label("Licence").fill("AGPL-3.0")
        await button.click()
        await expect(job).to_contain_text("imported as tiny", timeout=PATIENCE_MS)
        await expect(job).to_contain_text("served from now on")
        await expect(page.locator('[data-family="tiny"]')).to_be_visible()
        assert complaints == []
    async with running(database, access__open_scope="admin", server__port=port):
        tiny = page.locator('[data-family="tiny"]')
        await expect(tiny.get_by_test_id("licence")).to_have_text("AGPL-3.0", timeout=PATIENCE_MS)
        await expect(tiny.get_by_text("not measured", exact=True)).to_be_visible()
        await expect(tiny.get_by_test_id("plot")).to_have_count(0)
        await expect(tiny.get_by_test_id("not-measured")).to_contain_text("edgebox profile tiny")


async def test_a_picture_is_tried_on_any_model(
    database: Path, browser: Browser, tmp_path: Path
) -> None:
    jpeg, png, phone = (tmp_path / name for name in ("street.jpg", "street.png", "phone.jpg"))
    jpeg.write_bytes(street_jpeg(3))
    with Image.open(jpeg) as picture:
        picture.save(png)
        lying, exif = picture.transpose(Image.Transpose.ROTATE_90), Image.Exif()
        exif[ExifTags.Base.Orientation] = 6  # as a phone stores it: to be turned clockwise
        lying.save(phone, quality=95, exif=exif)
    text = tmp_path / "notes.jpg"
    text.write_text("no picture")
    async with running(database, inference__bundled=["street", "vehicles"]) as app:
        page, complaints = await open_models(browser, app)
        card = page.get_by_test_id("try")
        picture_field, shown = card.get_by_label("Picture"), card.get_by_test_id("try-picture")
        for file in (jpeg, phone, png):
            await picture_field.set_input_files(file)
            await expect(shown).to_have_attribute(
                "aria-label", f"{file.name} with what street sees"
            )
            assert int(await shown.get_attribute("data-boxes") or 0) > 0
            await expect(card.get_by_test_id("try-counts")).to_contain_text(re.compile(r"\d car"))
            box = await shown.bounding_box()
            assert box is not None
            assert box["width"] / box["height"] == pytest.approx(1280 / 720, rel=0.02)
        await card.get_by_label("Model").select_option("vehicles")
        await expect(shown).to_have_attribute("aria-label", "street.png with what vehicles sees")
        assert complaints == []
        await picture_field.set_input_files(text)
        await expect(card.get_by_role("alert")).to_contain_text("not a JPEG")
        await expect(shown).to_have_count(0)


async def test_a_model_becomes_the_default_and_is_removed(database: Path, browser: Browser) -> None:
    async with running(database, access__open_scope="admin") as app:
        page, complaints = await open_models(browser, app)
        hint = page.get_by_test_id("synthetic")
        await expect(hint).to_contain_text("street was trained on synthetic drawings")
        await hint.get_by_text("Get a real one").press("Enter")
        await expect(hint.get_by_text("edgebox models get deimv2-atto --default")).to_be_visible()
        await imported(app)
        await page.reload()
        tiny, old = page.locator('[data-family="tiny"]'), page.locator('[data-family="street"]')
        await tiny.get_by_role("button", name="Make tiny the default").click()
        await expect(tiny.get_by_text("default", exact=True)).to_be_visible()
        await expect(hint).to_have_count(0)
        await expect(tiny.get_by_role("button", name="Remove tiny")).to_have_count(0)
        await old.get_by_role("button", name="Make street the default").click()
        await expect(old.get_by_text("default", exact=True)).to_be_visible()
        assert complaints == []
        async with streaming(app, "gate", family="tiny"):
            await tiny.get_by_role("button", name="Remove tiny").click()
            await tiny.get_by_role("button", name="Delete tiny").click()
            await expect(tiny.get_by_role("alert")).to_contain_text("tiny is used by gate")
        await until(lambda: not app.box.connected, "the camera to leave")
        await tiny.get_by_role("button", name="Remove tiny").click()
        await tiny.get_by_role("button", name="Delete tiny").click()
        await expect(tiny).to_have_count(0)
        assert list(app.box.families) == ["street"]


async def test_without_an_administrator_the_page_says_who_may(
    database: Path, browser: Browser
) -> None:
    async with running(database) as app:
        page, _ = await open_models(browser, app)
        await expect(page.get_by_role("button", name="Measure street again")).to_be_disabled()
        await expect(page.get_by_test_id("admin-hint")).to_have_count(2)
        await expect(page.get_by_test_id("admin-hint").first).to_contain_text(
            "administrator’s token"
        )
        await expect(page.get_by_label("ONNX file")).to_have_count(0)


async def test_a_phone_needs_no_sideways_scrolling(database: Path, browser: Browser) -> None:
    async with (
        running(database, access__open_scope="admin") as app,
        streaming(app, "a-camera-with-quite-a-long-name", **street()),
    ):
        page, _ = await open_models(browser, app, viewport=PHONE, device_scale_factor=2)
        await page.get_by_text("Profile: P50").click()
        assert await page.evaluate(STICKING_OUT) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_nothing_moves_by_itself(database: Path, browser: Browser) -> None:
    async with (
        running(database, access__open_scope="admin") as app,
        streaming(app, "gate", **street()),
    ):
        page, _ = await open_models(browser, app)
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
