"""The first stage at the camera: prepared beside the stream, kept over reconnections.

ONNX Runtime is imported only where a camera is to run the first stage, so that others stay small.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from edgebox.camera.session import Session
from edgebox.domain.errors import EdgeboxError
from edgebox.link.messages import Hello
from edgebox.link.placement import PlacementCosts, PlacementMode
from edgebox.link.placement_offer import PlacementOffer

if TYPE_CHECKING:
    from edgebox.camera.local_model import LocalModel


class FirstStage:
    """What runs the first stage at one camera."""

    def __init__(self, mode: PlacementMode, cache: Path | None) -> None:
        """Prepare nothing yet.

        Args:
            mode: who decides where the first stage of a frame runs.
            cache: folder in which fetched models are kept; None: the user's cache folder.
        """
        self._mode = mode
        self._cache = cache
        self._model: LocalModel | None = None
        self._opening: asyncio.Task[LocalModel] | None = None
        self._closed = False

    async def prepare(
        self,
        client: aiohttp.ClientSession,
        stream_url: str,
        session: Session,
        hello: Hello,
        say: Callable[[str], None],
    ) -> None:
        """Fetch, open and measure the model of a session's offer; pictures are sent meanwhile.

        Args:
            client: for HTTP.
            stream_url: the WebSocket for cameras of the box that made the offer.
            session: just welcomed.
            hello: of this camera.
            say: called with sentences for a person.
        """
        if self._mode is PlacementMode.NEVER:
            return
        if session.offer is None:
            say("this box offers no first stage to run here: pictures are sent")
            return
        try:
            model = await self._ready(client, stream_url, session.offer, hello)
        except (EdgeboxError, ImportError) as error:
            say(f"the first stage cannot run here, pictures are sent: {error}")
            return
        say(f"{model.variant.name} runs here in {model.detect_ns / 1e6:.0f} ms")
        session.run_first_stage(model.detect, PlacementCosts(self._mode, model.detect_ns))

    async def _ready(
        self, client: aiohttp.ClientSession, stream_url: str, given: PlacementOffer, hello: Hello
    ) -> "LocalModel":
        from edgebox.camera.local_model import cache_folder, fetch, open_model  # noqa: PLC0415

        if self._opening is not None and not self._opening.done():
            await asyncio.wait({self._opening})  # since an earlier connection
        model = self._model
        if (
            model is not None
            and given.sha256 == model.given.sha256
            and given.variants == model.given.variants
        ):
            self._model = replace(model, given=given)  # the later stages may be others
            return self._model
        self._free()
        family = await fetch(client, stream_url, given, self._cache or cache_folder())
        size_px, slo_ns = (hello.width_px, hello.height_px), round(hello.slo_ms * 1e6)
        opening = self._opening = asyncio.create_task(
            asyncio.to_thread(open_model, family, given, size_px, hello.rate_hz, slo_ns)
        )
        opening.add_done_callback(self._opened)
        # What was opened is kept even if the connection breaks meanwhile.
        return await asyncio.shield(opening)

    def _opened(self, opening: "asyncio.Task[LocalModel]") -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._model = opening.result()
            if self._closed:
                self._free()

    def close(self) -> None:
        """Free the model, also one that is about to be opened."""
        self._closed = True
        self._free()

    def _free(self) -> None:
        if self._model is not None:
            self._model.close()
            self._model = None
