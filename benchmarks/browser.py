"""Finds and starts a Chromium for measurements and tests of the page."""

import contextlib
import shutil
from collections.abc import AsyncIterator

from playwright.async_api import Browser, async_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is Chromium without a user interface of its own: less than half of the work."""
_UNWANTED_FEATURES = (
    # Pages of the browser's own address bar, drawn again for each window, which nobody sees here:
    # more than half of what it costs to open a page.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    # What Playwright switches off by itself: of two lists, Chromium goes by the last.
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
"""Features of Chromium that are switched off."""
_ARGUMENTS = (
    f"--disable-features={','.join(_UNWANTED_FEATURES)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextlib.asynccontextmanager
async def launched(*arguments: str, executable: str | None = None) -> AsyncIterator[Browser]:
    """Run a Chromium with these further arguments.

    Raises:
        RuntimeError: none is installed.
    """
    found = executable or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise RuntimeError(f"needs one of {', '.join(NAMES)}")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found, args=[*_ARGUMENTS, *arguments]
        )
        yield browser
        await browser.close()
