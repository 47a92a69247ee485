"""Executors on another edgebox: a second real box, real sockets, real sessions."""

from pathlib import Path
from typing import Any

import pytest

from edgebox.domain.access import Scope
from edgebox.inference.remote.open_inference_executor import PROVIDER
from tests.end_to_end.running import (
    CLOSED,
    get_json,
    new_token,
    post,
    running,
    texts,
)
from tests.end_to_end.streets import street_jpeg

pytestmark = pytest.mark.usefixtures("few_sizes")

QUERY = {"deadline_ms": 30_000}


def elsewhere(url: str, **keys: Any) -> dict[str, Any]:
    return {"kind": "open_inference", "url": url, **keys}


async def test_pictures_travel_as_they_arrived_and_are_decoded_there(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path / "there.sqlite3", **CLOSED) as there:
        token_file = tmp_path / "token"
        token_file.write_text(await new_token(there, Scope.CAMERA, "hall"))
        table = elsewhere(there.url, token_file=str(token_file))
        async with running(database, executors=[table]) as here:
            _, state = await get_json(here, "/v1/state")
            (executor,) = state["box"]["executors"]
            assert executor["provider"] == PROVIDER
            status, found = await post(here, street_jpeg(3), QUERY)
            assert status == 200, found
            print(found)
            print(texts(here))
