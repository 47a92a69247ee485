"""Requests of the Open Inference Protocol as no client would write them: one clear error each."""

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from edgebox.app.composition import App
from edgebox.web.v2.inference_request import JSON_BYTES_MAX, JSON_ITEMS_MAX
from tests.end_to_end.running import running, unharmed_bystander
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")

FRAME_BYTES_MAX = 400_000
LENGTH = "Inference-Header-Content-Length"
BASE64 = base64.b64encode(JPEG).decode()
HALF = base64.b64encode(JPEG[: len(JPEG) // 2]).decode()


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    async with running(database, limits__frame_bytes_max=FRAME_BYTES_MAX) as app:
        yield app


def asking(*inputs: dict[str, Any], **fields: Any) -> bytes:
    return orjson.dumps({"inputs": inputs, **fields})


def image(**changed: Any) -> dict[str, Any]:
    made = {"name": "image", "datatype": "BYTES", "shape": [1], "data": [BASE64], **changed}
    return {name: value for name, value in made.items() if value is not None}


def pixels(data: object, *shape: int) -> dict[str, Any]:
    return {"name": "pixels", "datatype": "UINT8", "shape": shape, "data": data}


def behind(size: object = None, **changed: Any) -> bytes:
    """Return a request whose one image lies behind it, of a size that is said."""
    return asking(image(data=None, parameters={"binary_data_size": size}, **changed))


async def infer(app: App, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{app.url}/v2/models/street-128/infer", data=body, headers=headers) as said,
    ):
        assert "Traceback" not in await said.text()
        return said.status, await said.json(content_type=None)


async def test_json_as_a_person_would_write_it(app: App) -> None:
    status, answer = await infer(app, asking(image(data=[[BASE64]], shape=[1, 1]), id="x"))
    assert (status, answer["id"]) == (200, "x")
    grey = [[[[90, 90, 90]] * 4] * 3]
    for data in (grey, [90] * 36):
        status, answer = await infer(app, asking(pixels(data, 1, 3, 4, 3)))
        assert status == 200
        assert answer["outputs"][4] == {
            "name": "counts", "datatype": "INT64", "shape": [1], "data": [0],
        }  # fmt: skip


WRONG = (
    (b"{}", None, 400, "request.inputs is missing"),
    (b'{"inputs": ' + b"[" * 50_000, None, 400, "the request must be JSON"),
    (b'{"inputs": [NaN]}', None, 400, "the request must be JSON"),
    (asking(image(datatype="FP32")), None, 400, "must be BYTES"),
    (asking(pixels([0] * 5, 1, 1, 2, 3)), None, 400, "needs 6"),
    (behind(10) + b"x" * 10, "-1", 400, "must be a number of bytes"),
    (behind(10) + b"x" * 10, "1000000", 400, "but the body has only"),
    (behind(2**40) + b"x" * 10, str(len(behind(2**40))), 400, "10 are left"),
    (asking(image(data=[HALF])), None, 400, "truncated"),
    (b" " * (JSON_BYTES_MAX + 1), None, 413, "the JSON part has 1048577 bytes"),
    (
        bytes(4 * FRAME_BYTES_MAX + 1),
        None,
        413,
        "at most 1600000 bytes (4 times limits.frame_bytes_max)",
    ),
    (asking(pixels([1] * JSON_ITEMS_MAX, 1, 1, 1, 3)), None, 413, "more than 131072 items"),
    (asking(pixels([1] * (JSON_ITEMS_MAX - 50), 1, 1, 1, 3)), None, 400, "needs 3"),
)


async def test_what_is_wrong_with_one_request_harms_nobody(app: App) -> None:
    async with unharmed_bystander(app):
        for body, length, status, message in WRONG:
            got, answer = await infer(app, body, **({} if length is None else {LENGTH: length}))
            assert (got, list(answer)) == (status, ["error", "code"])
            assert message in answer["error"]


async def test_bodies_that_are_not_packed_as_they_say(app: App) -> None:
    bomb = await asyncio.to_thread(gzip.compress, bytes(200_000_000))
    assert len(bomb) < FRAME_BYTES_MAX
    async with unharmed_bystander(app):
        for encoding, body, status, message in (
            ("gzip", b"no such thing", 400, "does not match its Content-Encoding"),
            ("deflate", gzip.compress(b"{}")[:-1], 400, "it does not end where it must"),
            ("br", b"x", 400, "Content-Encoding must be gzip or deflate, not 'br'"),
            ("gzip", bomb, 413, "at most 1600000 bytes"),
        ):
            got, answer = await infer(app, body, **{"Content-Encoding": encoding})
            assert message in answer["error"]
            assert got == status


@pytest.mark.parametrize(
    ("status", "addresses"),
    [
        (405, ("GET /v2/models/street/infer", "POST /v2", "POST /v2/models/street")),
        (
            404,
            (
                "GET /v2/",
                "GET /v2/models",
                "GET /v2/models/%2e%2e%2f",
                "GET /v2/models/street/versions/0",
                "POST /v2/models/street/versions/x/infer",
            ),
        ),
    ],
)
async def test_wrong_addresses(app: App, status: int, addresses: tuple[str, ...]) -> None:
    async with aiohttp.ClientSession() as client:
        for address in addresses:
            method, path = address.split()
            async with client.request(method, URL(app.url + path, encoded=True)) as response:
                assert response.status == status, address
                answer = await response.json()
                assert answer.pop("error")
                assert not answer.keys() - {"code"}
                assert ("Allow" in response.headers) == (status == 405)
