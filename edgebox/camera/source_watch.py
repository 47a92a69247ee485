"""Says when no pictures come from a camera's source, why, and when they come again."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import aiohttp

from edgebox.camera.session import Session
from edgebox.link.messages import SOURCE_BACK, SOURCE_LOST
from edgebox.media.losses import SourceTrouble
from edgebox.media.sources import FrameSource

_PERIOD_S = 0.5


async def watch_source(
    source: FrameSource, session: Callable[[], Session | None], say: Callable[[str], None]
) -> None:
    """Say so here and on the box, until cancelled.

    Args:
        source: where pictures come from.
        session: returns the present connection to a box; None: there is none.
        say: called with sentences for a person.
    """
    said: SourceTrouble | None = None
    told: Session | None = None  # each connection is told anew
    while True:
        trouble, box = source.trouble, session()
        text = "pictures come from the source again" if trouble is None else trouble.text
        remedy = "" if trouble is None else trouble.remedy
        changed = trouble != said
        if changed:
            said = trouble
            say(f"{text}. To do: {remedy}" if remedy else text)
        if box is not None and (changed or (trouble and box is not told)):
            told = box
            with suppress(aiohttp.ClientError, OSError):
                await box.tell(SOURCE_LOST if trouble else SOURCE_BACK, text, remedy)
        await asyncio.sleep(_PERIOD_S)
