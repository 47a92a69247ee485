"""A real Chromium for tests of the page, and what they look at in it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from playwright.async_api import Browser, Locator, Page, expect

from benchmarks import browser as chromium
from edgebox.app.composition import App
from tests.conftest import PATIENCE_S
from tests.end_to_end.streets import street_source
from tests.programs import program

PATIENCE_MS = 1000 * PATIENCE_S
expect.set_options(timeout=PATIENCE_MS)
PHONE = {"width": 360, "height": 740}
STREET_PX = (320, 180)
STICKING_OUT = """
[...document.querySelectorAll('body *:not(br)')]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)
  .filter((e) => {
    const within = e.closest('.scroll-x')
    return !within || within === e || getComputedStyle(within).overflowX === 'visible'
  })
  .map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 80)}`)
"""
"""What is wider than the window, but for what scrolls by itself."""


def launched(*arguments: str) -> AbstractAsyncContextManager[Browser]:
    """Run a Chromium with these further arguments; a test fails without one."""
    executable = program("chromium", *chromium.NAMES)
    return chromium.launched(*arguments, executable=executable)


@contextlib.asynccontextmanager
async def lent(browser: Browser) -> AsyncIterator[Browser]:
    """Give a browser that knows nothing of those who had it before."""
    yield browser
    for context in browser.contexts:
        await context.close()


async def new_page(browser: Browser, **options: Any) -> tuple[Page, list[str]]:
    """Open an empty page of a browser that knows nothing yet; give it and what goes wrong in it."""
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            complaints.append(f"{message.text} ({message.location['url']})")
            if message.type == "error"
            else None
        ),
    )
    return page, complaints


async def open_page(
    browser: Browser, app: App, place: str = "", **options: Any
) -> tuple[Page, list[str]]:
    """Open the page, at a place such as "#/scheduler"; give it and what goes wrong in it."""
    page, complaints = await new_page(browser, **options)
    await page.goto(f"{app.url}/{place}")
    return page, complaints


def street(rate_hz: float = 8.0, size_px: tuple[int, int] = STREET_PX) -> dict[str, Any]:
    """Return the options of a camera in a street, which a box answers in some milliseconds."""
    return {"source": street_source(3, rate_hz, size_px), "rate_hz": rate_hz}


def tile_of(page: Page, camera: str) -> Locator:
    return page.locator(f'[data-testid="camera-tile"][data-camera="{camera}"]')


async def number(locator: Locator, attribute: str) -> int:
    return int(await locator.get_attribute(attribute) or "0")


async def eventually(read: Callable[[], Any], wanted: Callable[[Any], bool], what: str) -> Any:
    """Await `read()` until it is as wanted; return it."""
    for _ in range(int(PATIENCE_MS) // 50):
        value = await read()
        if wanted(value):
            return value
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_MS / 1000:g} s for {what}, which is {value!r}")


def rounded(value: float, digits: int) -> Decimal:
    """Round as JavaScript does: halves away from zero."""
    return Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def milliseconds(ms: float | None) -> str:
    """Write milliseconds as the page does."""
    if ms is None:
        return "–"
    return f"{rounded(ms, 1)}\u202fms" if ms < 9.95 else f"{rounded(ms, 0):,}\u202fms"
