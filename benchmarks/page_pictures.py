"""Takes the pictures of the page in `docs/images`: `python -m benchmarks.page_pictures`.

Runs `edgebox demo` until its charts show something, and a Chromium that looks at each page. What
the cameras get depends on the machine: it should have nothing else to do.
"""

import asyncio
import contextlib
import itertools
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import click
from playwright.async_api import Browser, Page

from benchmarks.browser import launched
from edgebox.media.jpeg import encode
from edgebox.media.sources import open_source

FOLDER = Path(__file__).parents[1] / "docs" / "images"
PORT = 8797
URL = f"http://127.0.0.1:{PORT}/"
CONFIG = '[access]\nopen_scope = "admin"\n'
NEW_CAMERA = "gate-3"
PAGES = {
    "page": ("", (1280, 900)),
    "page-camera": ("#/cameras/main-street", (1280, 1500)),
    "page-scheduler": ("#/scheduler", (1280, 860)),
    "page-models": ("#/models", (1280, 900)),
    "page-settings": ("#/settings", (1280, 720)),
    "page-add": ("#/add", (1240, 1010)),
    "browser-camera": (f"camera?name={NEW_CAMERA}", (390, 690)),
}
"""By file: the address, and the size of the window in px."""
FILMED_HZ = 30.0


@contextlib.asynccontextmanager
async def program(*arguments: str, folder: Path) -> AsyncIterator[None]:
    """Run edgebox with a folder as its home."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", *arguments, env=environment, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        yield
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


async def until_ready() -> None:
    """Wait for the box."""
    async with aiohttp.ClientSession() as client:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with client.get(f"{URL}readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.5)


def film(folder: Path) -> Path:
    """Write a second and a half of a street for Chromium's camera, which plays it for ever."""
    file = folder / "street.mjpeg"
    source = open_source("scene:3", FILMED_HZ, size_px=(1280, 720))
    with file.open("wb") as video:
        for rgb in itertools.islice(source.frames(), int(1.5 * FILMED_HZ)):
            video.write(encode(rgb, 90))
    source.close()
    return file


async def opened(browser: Browser, name: str) -> Page:
    """Open a page in a window of its size; the camera as a phone shows it, dark and finer."""
    place, (width_px, height_px) = PAGES[name]
    is_phone = name == "browser-camera"
    context = await browser.new_context(
        viewport={"width": width_px, "height": height_px},
        color_scheme="dark" if is_phone else "light",
        device_scale_factor=1.5 if is_phone else 1,
    )
    page = await context.new_page()
    await page.goto(URL + place)
    return page


async def add(page: Page, folder: Path) -> None:
    """Show the page that adds a camera while one arrives."""
    await page.get_by_label("Name of the new camera").fill(NEW_CAMERA)
    await page.get_by_label("Address at which it reaches this box").fill("https://box.example/")
    arguments = ("camera", "scene:7", "--server", URL, "--name", NEW_CAMERA, "--rate-hz", "2")
    async with program(*arguments, folder=folder):
        await page.wait_for_selector('[data-testid="arrival"]')
        await asyncio.sleep(5.0)
        await page.screenshot(path=FOLDER / "page-add.png")


async def stream(page: Page) -> None:
    """Be a camera for some seconds."""
    await page.get_by_role("button", name="Start").click()
    await asyncio.sleep(15.0)
    await page.screenshot(path=FOLDER / "browser-camera.png")


async def take(rate_hz: float, wait_s: float, names: tuple[str, ...]) -> None:
    """Take pictures of a demo that has run for some seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "config.toml"
        config.write_text(CONFIG)
        demo = ("demo", "--config", str(config), "--port", str(PORT), "--rate-hz", f"{rate_hz:g}")
        camera = (
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-video-capture={film(folder)}",
        )
        async with program(*demo, folder=folder), launched(*camera) as browser:
            await until_ready()
            await asyncio.sleep(wait_s)
            for each in names:
                page = await opened(browser, each)
                if each == "page-add":
                    await add(page, folder)
                elif each == "browser-camera":
                    await stream(page)
                else:
                    await asyncio.sleep(6.0)
                    await page.screenshot(path=FOLDER / f"{each}.png")
                await page.context.close()


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PAGES)))
@click.option("--rate-hz", default=2.0, show_default=True, help="Frames per second and camera.")
@click.option("--wait-s", default=420.0, show_default=True, help="How long the demo runs before.")
def main(names: tuple[str, ...], rate_hz: float, wait_s: float) -> None:
    """Take the pictures of NAMES, or all."""
    asyncio.run(take(rate_hz, wait_s, names or tuple(PAGES)))


if __name__ == "__main__":
    main()
