"""Single pictures: when their senders hear that there is no time for them."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Refusal
from edgebox.web.camera_pictures import NotServedError, answered


def refusing(reason: DropReason) -> Box:
    """Return a box that refuses every picture at once."""

    def submit_picture(*_: object, on_end: Any, **__: object) -> int:
        on_end(None, Refusal(reason, "no"))
        return 1

    return cast(Box, SimpleNamespace(submit_picture=submit_picture))


@pytest.mark.parametrize("reason", [DropReason.OVERLOAD, DropReason.INFEASIBLE, DropReason.QUEUE])
async def test_a_picture_without_time_is_refused_at_its_deadline(reason: DropReason) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    with pytest.raises(NotServedError):
        await answered(refusing(reason), b"", (1, 1), VariantName("any"), 80.0, app="test")
    assert loop.time() - began_s >= 0.079
