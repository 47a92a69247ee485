"""/v1/vision on a real box, with clients as the protocol's descriptions have them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from edgebox.app.composition import App
from edgebox.domain.access import Scope
from edgebox.web import deepstack
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import CLOSED, new_token, post, running, unharmed_bystander
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")

FRAME_BYTES_MAX = 2_000_000
PATIENT = {"deadline_ms": "30000"}


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    async with running(database, limits__frame_bytes_max=FRAME_BYTES_MAX) as app:
        yield app


async def asked(
    app: App,
    picture: bytes,
    fields: Mapping[str, str] | None = None,
    *,
    path: str = "/v1/vision/detection",
    query: Mapping[str, str] = PATIENT,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Send a picture as clients of DeepStack do, in the field `image` of a form."""
    form = aiohttp.FormData()
    form.add_field("image", picture, filename="image", content_type="image/jpeg")
    for name, text in (fields or {}).items():
        form.add_field(name, text)
    async with (
        aiohttp.ClientSession() as client,
        client.post(app.url + path, data=form, params=query, headers=headers) as response,
    ):
        return response.status, await response.json()


async def listed(app: App, fields: Mapping[str, str]) -> dict[str, Any]:
    """Ask for the families with a form that has no file."""
    form = aiohttp.FormData(dict(fields), default_to_multipart=True)
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{app.url}/v1/vision/custom/list", data=form) as response,
    ):
        answer: dict[str, Any] = await response.json()
        return answer


async def test_a_street_is_understood_as_at_infer(app: App) -> None:
    street = street_jpeg(3)
    status, answer = await asked(app, street, {"min_confidence": "0.5"})
    assert (status, answer["success"], answer["code"]) == (200, True, 200)
    found = answer["predictions"]
    assert found, "a street full of people and cars, and nothing was seen"
    assert answer["count"] == len(found)
    _, expected = await post(app, street, {**PATIENT, "score_min": "0.5"})
    for shown, same in zip(found, expected["detections"], strict=True):
        assert (shown["label"], shown["confidence"]) == (same["label"], same["score"])
        sides = [shown[side] for side in ("x_min", "y_min", "x_max", "y_max")]
        assert all(isinstance(side, int) for side in sides)
        assert sides == pytest.approx(same["box"], abs=0.6)


async def test_only_what_is_certain_enough_is_told_best_first(app: App) -> None:
    street = street_jpeg(3)
    scores = {}
    for least in ("0.1", "", "0.8"):
        _, answer = await asked(app, street, {"min_confidence": least})
        scores[least] = [each["confidence"] for each in answer["predictions"]]
        assert scores[least] == sorted(scores[least], reverse=True)
    assert len(scores["0.1"]) > len(scores[""]) > len(scores["0.8"]) > 0
    assert min(scores[""]) >= 0.4
    assert min(scores["0.8"]) >= 0.8


async def test_too_late_an_answer_is_a_refusal_and_no_empty_answer(app: App) -> None:
    async with unharmed_bystander(app):
        status, answer = await asked(app, street_jpeg(3), query={"deadline_ms": "1"})
    assert status == answer["code"] == 503
    assert answer["success"] is False
    assert answer["predictions"] is None
    assert "too little time" in answer["error"]


async def test_a_family_is_chosen_by_its_name_and_all_are_listed(app: App) -> None:
    _, listed = await asked(app, JPEG, path="/v1/vision/custom/list", query={})
    assert listed == {"success": True, "models": ["street"]}
    status, answer = await asked(app, street_jpeg(3), path="/v1/vision/custom/street")
    assert status == 200
    assert answer["predictions"]
    status, answer = await asked(app, JPEG, path="/v1/vision/custom/cats")
    assert (status, answer["success"]) == (404, False)
    assert "no model family 'cats'; there are street" in answer["error"]


async def test_a_bad_request_is_told_why(app: App) -> None:
    bad: tuple[tuple[bytes, dict[str, str], dict[str, str], int, str], ...] = (
        (b"hello", {}, PATIENT, 400, "not a JPEG"),
        (b"", {}, PATIENT, 400, "the body is empty"),
        (JPEG[: len(JPEG) // 2], {}, PATIENT, 400, "truncated"),
        (JPEG, {"min_confidence": "much"}, PATIENT, 400, "from 0 to 1, not 'much'"),
        (JPEG, {"min_confidence": "nan"}, PATIENT, 400, "from 0 to 1, not 'nan'"),
        (JPEG, {"min_confidence": "\N{ARABIC-INDIC DIGIT ONE}"}, PATIENT, 400, "from 0 to 1, not"),
        (JPEG, {"min_confidence": "0_1"}, PATIENT, 400, "from 0 to 1, not '0_1'"),
        (JPEG, {}, {"deadline_ms": "soon"}, 400, "deadline_ms must be a number from 1"),
        (JPEG, {}, {"deadline": "100"}, 400, "deadline"),
        (bytes(FRAME_BYTES_MAX + 1), {}, PATIENT, 413, "limits.frame_bytes_max"),
    )
    async with unharmed_bystander(app):
        for picture, fields, query, status, message in bad:
            got, answer = await asked(app, picture, fields, query=query)
            assert (got, answer["success"], answer["code"]) == (status, False, status)
            assert message in answer["error"]


async def test_what_is_not_there_is_told_in_the_same_form(app: App) -> None:
    async with aiohttp.ClientSession(app.url) as client:
        for method, path, status in (
            ("POST", "/v1/vision/face/recognize", 404),
            ("GET", "/v1/vision/detection", 405),
        ):
            async with client.request(method, path) as response:
                answer = await response.json()
            assert response.status == answer["code"] == status
            assert answer["success"] is False
        headers = {"Origin": "http://elsewhere.example"}
        async with client.post("/v1/vision/detection", data=JPEG, headers=headers) as response:
            assert response.status == 403


async def test_a_closed_box_knows_its_clients_by_their_api_key(database: Path) -> None:
    async with running(database, limits__frame_bytes_max=FRAME_BYTES_MAX, **CLOSED) as app:
        camera, viewer = (
            await new_token(app, Scope.CAMERA, "gate"),
            await new_token(app, Scope.VIEWER),
        )
        street = street_jpeg(3)
        assert (await asked(app, street, {"api_key": camera}))[0] == 200
        bearer = {"Authorization": f"Bearer {camera}"}
        assert (await asked(app, street, headers=bearer))[0] == 200
        for fields, status, message in (
            ({}, 401, "as api_key of the form or in the header Authorization"),
            ({"api_key": "edgebox_nobody"}, 401, "as api_key of the form"),
            ({"api_key": viewer}, 403, "this needs the scope camera; the token has viewer"),
        ):
            for path in ("/v1/vision/detection", "/v1/vision/custom/list"):
                got, answer = await asked(app, street, fields, path=path, query={})
                assert (got, answer["success"]) == (status, False)
                assert message in answer["error"]
        assert await listed(app, {"api_key": camera}) == {"success": True, "models": ["street"]}
        assert (await listed(app, {"other": camera}))["code"] == 401
        got, answer = await asked(app, street, path="/v1/vision/custom/cats", query={})
        assert got == 401, "who may not ask learns nothing of the families"
        large = bytes(1_100_000)
        got, answer = await asked(app, large, {"api_key": camera})
        assert got == 413
        assert "without the header Authorization" in answer["error"]
        got, answer = await asked(app, large, headers=bearer)
        assert (got, answer["code"]) == (400, 400)


async def test_a_form_whose_sender_is_unknown_comes_soon_or_not_at_all(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepstack, "KEYED_BODY_S", 0.2)
    async with running(database, **CLOSED) as app:
        url = URL(app.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(
            b"POST /v1/vision/detection HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
        )
        async with asyncio.timeout(PATIENCE_S):
            assert b" 408 " in await reader.readline()
        writer.close()
