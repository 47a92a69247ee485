"""Answers that did not run on what their camera had been advised of, counted on a real box."""

import asyncio
from pathlib import Path

import numpy as np

from edgebox.domain.requests import CameraId
from edgebox.link.messages import Welcome
from edgebox.media.jpeg import encode
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import counts_of, get_json, gone, running
from tests.end_to_end.wire import WireCamera

TINY = encode(np.full((36, 64, 3), 90, np.uint8))


async def test_a_smaller_picture_than_advised_is_a_mismatch_and_one_as_advised_is_none(
    database: Path,
) -> None:
    # Else a machine that is slow and yet idle runs each picture on more than it was advised of.
    async with running(database, scheduler__variant_per_batch=False) as app:
        async with WireCamera(app) as camera:
            advised = (await camera.wait_for(Welcome)).advice.variant
            small = await camera.answered(TINY)
            assert small.variant != advised
            assert counts_of(app, "gate").mismatches == 1
            counted = 1
            async with asyncio.timeout(PATIENCE_S):
                while True:  # the plan may change while a frame is on its way
                    full = await camera.answered()
                    before, counted = counted, counts_of(app, "gate").mismatches
                    if counted == before:
                        break
            assert full.variant in (advised, small.advice.variant, full.advice.variant)
            _, state = await get_json(app, "/v1/state")
            assert state["box"]["counts"]["mismatches"] == counted
            assert state["cameras"][0]["counts"]["mismatches"] == counted
        await gone(app, "gate")
    storage = await Storage.open(database)
    try:
        for level in (MINUTE, HOUR):
            rows = await storage.history.periods(level, CameraId("gate"))
            assert sum(row["mismatches"] for row in rows.values()) == counted
    finally:
        await storage.close()
