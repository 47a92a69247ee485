"""Measures how soon each page shows something: `python -m benchmarks.first_paint [--json]`.

A headless Chromium that has never seen the page opens it on loopback, beside `edgebox serve` with
live cameras. `paint` is the browser's own First Contentful Paint; `content` when what the page is
about is there; `kb` all that was loaded by then, as it came over the wire.
"""

import asyncio
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import click
import uvloop
from playwright.async_api import Browser

from benchmarks.browser import launched
from benchmarks.dynamic_boxes import serving
from benchmarks.ingest import machine
from benchmarks.viewers import MODELS, client, write_config

TARGET_MS = 1_000.0
LOAD_KB_MAX = 300
PAGES = {
    "overview": ("", "[data-testid=camera-tile]"),
    "camera": ("#/cameras/camera-0", "[data-testid=explanation]"),
    "scheduler": ("#/scheduler", "[data-testid=timeline]"),
    "models": ("#/models", "[data-testid=family]"),
    "add": ("#/add", "[data-testid=lines]"),
    "settings": ("#/settings", "[data-testid=config]"),
    "browser camera": ("camera", "main"),
}
PAINTED = """
async () => {
  const painted = () => performance.getEntriesByName('first-contentful-paint')[0]
  while (!painted()) await new Promise((go) => setTimeout(go, 10))
  const of = (kind) => performance.getEntriesByType(kind)
  const bytes = [...of('navigation'), ...of('resource')]
    .reduce((sum, { transferSize }) => sum + transferSize, 0)
  return { paint_ms: painted().startTime, bytes }
}
"""


async def one_load(browser: Browser, address: str, shows: str) -> dict[str, float]:
    """Open a page with nothing in the cache."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(address, wait_until="commit")
    await page.wait_for_selector(shows)
    content_ms: float = await page.evaluate("performance.now()")
    found: dict[str, float] = await page.evaluate(PAINTED)
    await context.close()
    return {"content_ms": content_ms, **found}


async def measure(model: str, cameras: int, rate_hz: float, count: int) -> dict[str, Any]:
    """Return the figures of each page."""
    loads: dict[str, list[dict[str, float]]] = {name: [] for name in PAGES}
    with tempfile.TemporaryDirectory() as folder:
        async with (
            serving(model, write_config(Path(folder), model)) as box,
            client(box.url, cameras=cameras, frames_hz=cameras * rate_hz),
            launched() as browser,
        ):
            await asyncio.sleep(2.0)
            for _ in range(count):
                for name, (place, shows) in PAGES.items():
                    address = f"{box.url.rstrip('/')}/{place}"
                    loads[name].append(await one_load(browser, address, shows))
    return {name: figures(found) for name, found in loads.items()}


def figures(found: list[dict[str, float]]) -> dict[str, float]:
    """Return the median and the worst of some loads."""
    return {
        "paint_ms": round(statistics.median(each["paint_ms"] for each in found)),
        "paint_max_ms": round(max(each["paint_ms"] for each in found)),
        "content_ms": round(statistics.median(each["content_ms"] for each in found)),
        "kb": round(max(each["bytes"] for each in found) / 1e3, 1),
    }


@click.command()
@click.option("--model", default=MODELS[0], show_default=True, type=click.Choice(MODELS))
@click.option("--cameras", default=16, show_default=True)
@click.option("--rate-hz", default=10.0, show_default=True, help="Of each camera.")
@click.option("--rounds", "count", default=5, show_default=True, help="Loads of each page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(model: str, cameras: int, rate_hz: float, count: int, *, as_json: bool) -> None:
    """Measure how soon each page of a box with live cameras shows something."""
    about = {
        "machine": machine(), "model": model, "cameras": cameras, "rate_hz": rate_hz,
        "loads": count, "target": f"paint_ms <= {TARGET_MS:g}, kb <= {LOAD_KB_MAX}",
    }  # fmt: skip
    found = uvloop.run(measure(model, cameras, rate_hz, count))
    if as_json:
        click.echo(json.dumps({**about, "pages": found}, indent=1))
        return
    click.echo(json.dumps(about))
    click.echo(f"{'':16}{'paint, ms':>10}{'worst':>8}{'content':>9}{'kB':>8}")
    for name, each in found.items():
        click.echo(
            f"{name:16}{each['paint_ms']:10}{each['paint_max_ms']:8}{each['content_ms']:9}{each['kb']:8}"
        )


if __name__ == "__main__":
    main()
