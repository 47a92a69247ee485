"""Owns the clients of a soak: cameras that stay, come and go and change links, pages, programs.

All of them use real sockets. Cameras are those of `edgebox camera`: they encode each picture in the
size that the box advises, and obey it.
"""

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera
from edgebox.link.shaping import BandwidthTrace, lte_trace
from edgebox.media.jpeg import encode
from edgebox.media.sources import PictureSource
from edgebox.media.typical import typical_pictures

SIZE_PX = (640, 360)
SLO_MS = 500.0
VISITORS = 500
"""Names of cameras that come once in a while: more than the box remembers at a time."""
STAYS_S = 40.0
GONE_S = 20.0
ONE_SHOT_EVERY_S = 5.0
PAGE_OPEN_S = 45.0
PAGE_CLOSED_S = 45.0
_READ = ("/", "/v1/state", "/v1/events", "/v1/system", "/v1/history?range=1h")


class Load:
    """The clients of one box, until they are cancelled.

    Args:
        url: of the box.
        cameras: that stay; two more come and go.
        rate_hz: of each camera.
        rng: for links and waits.
    """

    def __init__(self, url: str, cameras: int, rate_hz: float, rng: random.Random) -> None:
        self._url = url
        self._cameras = cameras
        self._rate_hz = rate_hz
        self._rng = rng
        self.counts: Counter[str] = Counter()
        """Frames of cameras that have left, by result; requests, by status; pages."""
        self._staying: list[Camera] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be clients meanwhile. A client that fails ends it all."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                *(group.create_task(self._stay(number)) for number in range(self._cameras)),
                group.create_task(self._come_and_go()),
                group.create_task(self._visit()),
                group.create_task(self._ask()),
                group.create_task(self._view()),
            ]
            try:
                yield
            finally:
                for camera in self._staying:
                    camera.stop()
                for task in tasks[self._cameras :]:
                    task.cancel()

    async def _stay(self, number: int) -> None:
        """Stream all the time: over a good link, the second one over one that changes."""
        link = lte_trace(self._rng) if number == 1 else None
        camera = self._camera(f"stays-{number}", link)
        self._staying.append(camera)
        self._count(await camera.run())

    async def _come_and_go(self) -> None:
        """Leave and come back under the same name, over another link each time."""
        while True:
            link = BandwidthTrace.constant(self._rng.choice((0.4, 2.0, 20.0)))
            self._count(await self._camera("comes-and-goes", link).run(STAYS_S))
            await asyncio.sleep(GONE_S)

    async def _visit(self) -> None:
        """Come once under a name, which returns after many others."""
        for number in itertools.count():
            self._count(await self._camera(f"visitor-{number % VISITORS}", None).run(5.0))
            await asyncio.sleep(GONE_S)

    async def _ask(self) -> None:
        """Send single pictures, and ask what programs and pages ask."""
        jpeg = encode(typical_pictures()[0], 80)
        async with aiohttp.ClientSession(self._url) as client:
            for number in itertools.count():
                path = _READ[number % len(_READ)]
                async with client.post("/v1/infer", data=jpeg) as response:
                    await response.read()
                    self.counts[f"one-shot {response.status}"] += 1
                async with client.get(path) as response:
                    await response.read()
                    self.counts[f"read {response.status}"] += 1
                await asyncio.sleep(ONE_SHOT_EVERY_S)

    async def _view(self) -> None:
        """Open the overview's WebSocket, read it for a while and close it."""
        async with aiohttp.ClientSession(self._url) as client:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with (
                        asyncio.timeout(PAGE_OPEN_S),
                        client.ws_connect("/v1/ui", max_msg_size=0) as socket,
                    ):
                        async for message in socket:
                            self.counts["shown"] += message.type is aiohttp.WSMsgType.BINARY
                self.counts["pages"] += 1
                await asyncio.sleep(PAGE_CLOSED_S)

    def _camera(self, name: str, link: BandwidthTrace | None) -> Camera:
        pictures = [each for each in typical_pictures() if each.shape[1::-1] == SIZE_PX]
        source = PictureSource(SIZE_PX, self._rate_hz, lambda n: pictures[n % len(pictures)])
        return Camera(
            source,
            self._url.replace("http", "ws", 1),
            name=name,
            slo_ms=SLO_MS,
            rate_hz=self._rate_hz,
            link=link,
            rng=self._rng,
        )

    def _count(self, summary: Summary) -> None:
        self.counts["captured"] += summary.captured
        self.counts["on time"] += summary.on_time
        self.counts["late"] += summary.late
        for reason, count in summary.dropped.items():
            self.counts[f"dropped {reason}"] += count
        self.counts["reconnects"] += summary.reconnects
