"""A Chromium whose camera films a street that edgebox knows, the page it films for, a slow link."""

import asyncio
import contextlib
import itertools
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page, expect

from edgebox.app.composition import App
from edgebox.media.jpeg import encode
from edgebox.media.sources import open_source
from tests.end_to_end.browsing import PATIENCE_MS, eventually, launched

SIZE_PX = (1280, 720)
FILMED_HZ = 30.0
FILMED_FRAMES = 45
INSECURE_HOST = "box.test"
_COUNTS = re.compile(
    r"([\d,]+) captured.*= ([\d,]+) on time.*\+ ([\d,]+) late.*\+ ([\d,]+) dropped"
    r".*\+ ([\d,]+) pending",
    re.DOTALL,
)


def film(folder: Path) -> Path:
    """Write a second and a half of a street for Chromium's fake camera; it plays it for ever."""
    file = folder / "street.mjpeg"
    source = open_source("scene:3", FILMED_HZ, size_px=SIZE_PX)
    with file.open("wb") as video:
        # Paced as a camera is: the scene does not know that it is only being filmed.
        for rgb in itertools.islice(source.frames(), FILMED_FRAMES):
            video.write(encode(rgb, 90))
    source.close()
    return file


@contextlib.asynccontextmanager
async def filming(street: Path, *, refused: bool = False) -> AsyncIterator[Browser]:
    """Run a Chromium whose camera shows this film, and whose user lets pages use it, or does not.

    Without a user interface, Chromium has nobody to ask.
    """
    async with launched(
        f"--use-fake-ui-for-media-stream{'=deny' if refused else ''}",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={street}",
        f"--host-resolver-rules=MAP {INSECURE_HOST} 127.0.0.1",
    ) as browser:
        yield browser


class CameraPage:
    """One tab with the browser camera."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.name = name
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @classmethod
    async def open(
        cls,
        context: BrowserContext,
        url: str,
        name: str = "phone",
        *,
        deadline: str = "1 s",
        rate_hz: int = 5,
    ) -> "CameraPage":
        """Open the page and choose a deadline and a rate that a busy machine keeps."""
        context.set_default_timeout(PATIENCE_MS)
        self = cls(await context.new_page(), name)
        await self.page.goto(f"{url}/camera?name={name}")
        await self.page.get_by_label("Deadline").select_option(label=deadline)
        await self.page.get_by_label("Frames per second").select_option(str(rate_hz))
        return self

    async def start(self) -> None:
        await self.page.get_by_role("button", name="Start the camera").click()

    async def stop(self) -> None:
        await self.page.get_by_role("button", name=f"Stop {self.name}").click()
        await self.shows("state", "Off")

    async def shows(self, testid: str, text: str | re.Pattern[str]) -> None:
        await expect(self.page.get_by_test_id(testid)).to_contain_text(text, timeout=PATIENCE_MS)

    async def results(self) -> int:
        """Return how many answers were drawn."""
        overlay = self.page.get_by_test_id("overlay")
        return int(await overlay.get_attribute("data-results") or "0")

    async def answered(self, more: int) -> None:
        """Wait for so many more answers."""
        wanted = await self.results() + more
        await eventually(self.results, lambda results: results >= wanted, "more answers")

    async def sent_width_px(self) -> int:
        """Return the width of the last frame that was sent, 0 before the first."""
        text = await self.page.get_by_test_id("sent").inner_text()
        width = re.match(r"\d+", text)
        return int(width[0]) if width else 0

    async def counts(self) -> list[int]:
        """Return captured, on time, late, dropped and pending as the page shows them."""
        text = await self.page.get_by_test_id("counts").inner_text()
        found = _COUNTS.search(text)
        assert found is not None, text
        return [int(number.replace(",", "")) for number in found.groups()]


class SlowLink:
    """A TCP relay to a box whose way there carries no more than `uplink_bps`."""

    def __init__(self) -> None:
        self.uplink_bps = float("inf")
        self.url = ""

    @contextlib.asynccontextmanager
    async def to(self, app: App) -> AsyncIterator["SlowLink"]:
        """Relay to this box meanwhile."""

        async def connected(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                far, there = await asyncio.open_connection("127.0.0.1", app.port)
                with contextlib.closing(there), contextlib.suppress(ExceptionGroup):
                    async with asyncio.TaskGroup() as pumps:
                        pumps.create_task(self._pump(near, there, slow=True))
                        pumps.create_task(self._pump(far, back, slow=False))
            back.close()

        listening = socket.socket()
        # What is held on the way counts as sent: little, as in a radio's buffer.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listening.bind(("127.0.0.1", 0))
        server = await asyncio.start_server(connected, sock=listening, limit=4096)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slow: bool
    ) -> None:
        while data := await reader.read(2048 if slow else 65536):
            if slow:
                await asyncio.sleep(len(data) * 8 / self.uplink_bps)
            writer.write(data)
            await writer.drain()
        writer.close()
