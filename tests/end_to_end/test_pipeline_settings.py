"""Pipelines of a real box: hello, welcome, the setting on the box, and results that are nested."""

from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.domain.errors import ConfigError
from edgebox.domain.requests import CameraId
from edgebox.link.messages import Bye, ErrorMessage, Welcome
from edgebox.media.sources import PictureSource
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import get_json, running, streaming, until
from tests.end_to_end.streets import street_jpeg, street_picture
from tests.end_to_end.wire import WireCamera

pytestmark = pytest.mark.usefixtures("few_sizes")

AGAIN = """
[[pipelines]]
name = "again"
[[pipelines.stages]]
name = "street"
family = "street"
[[pipelines.stages]]
name = "closer"
family = "street"
after = ["street"]
labels = ["car"]
crops_max = 2
"""
GATE = CameraId("gate")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "edgebox.toml"
    path.write_text(AGAIN, encoding="utf-8")
    return path


async def patched(app: App, **settings: object) -> tuple[int, dict[str, object]]:
    async with (
        aiohttp.ClientSession() as client,
        client.patch(f"{app.url}/v1/cameras/gate", json=settings) as response,
    ):
        return response.status, await response.json(content_type=None)


async def test_a_camera_gets_the_pipeline_that_it_names(database: Path, file: Path) -> None:
    async with running(database, file=file) as app:
        async with WireCamera(app, pipeline="again") as camera:
            welcome = await camera.wait_for(Welcome)
            assert (welcome.pipeline, welcome.family) == ("again", "street")
            _, known = await get_json(app, "/v1/cameras/gate")
            assert known["origins"]["pipeline"] == "camera"
            _, listed = await get_json(app, "/v1/pipelines")
            assert listed["default"] is None
            (pipeline,) = listed["pipelines"]
            assert (pipeline["name"], pipeline["cameras"]) == ("again", 1)
            assert [stage["task"] for stage in pipeline["stages"]] == ["detect", "detect"]
            _, document = await get_json(app, "/v1/cameras/gate")
            stages = document["state"]["pipeline"]["stages"]
            assert [each["name"] for each in stages] == ["street", "closer"]
        async with WireCamera(app, "plain") as camera:
            assert (await camera.wait_for(Welcome)).pipeline is None
        for wrong in ({"pipeline": "agian"}, {"pipeline": "again", "family": "other"}):
            camera = WireCamera(app, "other", **wrong)
            await camera.connect()
            await camera.text(camera.hello.encode())
            await camera.wait_for(ErrorMessage)
            await camera.close()
        assert camera.close_code in (4004, 4014)


async def test_the_default_is_for_cameras_that_name_nothing(database: Path, file: Path) -> None:
    async with running(database, file=file, inference__pipeline="again") as app:
        async with WireCamera(app, "one") as camera:
            assert (await camera.wait_for(Welcome)).pipeline == "again"
            _, known = await get_json(app, "/v1/cameras/one")
            assert known["requested"]["pipeline"] == "again"
            assert known["origins"]["pipeline"] == "configuration"
        async with WireCamera(app, "two", family="street") as camera:
            assert (await camera.wait_for(Welcome)).pipeline is None


async def test_a_pipeline_set_on_the_box_holds_after_the_camera_has_connected_again(
    database: Path, file: Path
) -> None:
    async with running(database, file=file) as app:
        async with WireCamera(app) as camera:
            status, problem = await patched(app, pipeline="agian")
            assert status == 404
            assert "no pipeline agian; it has again" in str(problem["detail"])
            status, _ = await patched(app, pipeline="again")
            assert status == 200
            bye = await camera.wait_for(Bye)
            assert "pipeline was changed" in bye.reason
        async with WireCamera(app) as camera:
            assert (await camera.wait_for(Welcome)).pipeline == "again"
    async with running(database, file=file) as app, WireCamera(app) as camera:
        assert (await camera.wait_for(Welcome)).pipeline == "again", "it is remembered"
    async with running(database) as app, WireCamera(app) as camera:
        assert (await camera.wait_for(Welcome)).pipeline is None, "the box has none any more"
        texts = [event.text for event in app.box.notices.recent]
        assert any("pipeline again, which is not served" in text for text in texts)


async def test_what_stages_find_is_in_the_results(database: Path, file: Path) -> None:
    picture = street_picture(3, 640, 360)
    source = PictureSource((640, 360), 2.0, lambda number: picture)
    async with (
        running(database, file=file) as app,
        streaming(app, "gate", source=source, rate_hz=2.0, pipeline="again") as camera,
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{app.url}/v1/results?score_min=0") as socket,
    ):
        while True:
            document = orjson.loads((await socket.receive(PATIENCE_S)).data)
            cars = [
                one
                for one in document.get("detections", ())
                if one["label"] == "car" and "stages" in one
            ]
            if cars:
                break
        closer = cars[0]["stages"]["closer"]
        assert closer["variant"].startswith("street-")
        assert isinstance(closer["detections"], list)
        await until(lambda: camera.summary().on_time >= 2, "a second answer")


async def test_a_stage_that_no_model_can_be_ends_the_start(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(AGAIN.replace('"car"', '"cars"').replace('= "street"\naf', '= "st"\naf'))
    with pytest.raises(ConfigError) as caught:
        async with running(database, file=path):
            pass
    assert str(caught.value).splitlines() == [
        f"{path}:",
        '  pipelines[0].stages[1].family: there is no model family "st" that can be served; '
        "did you mean street?",
        '  pipelines[0].stages[1].labels: "street" finds no "cars"; did you mean car?',
    ]


async def test_one_picture_through_a_pipeline(database: Path, file: Path) -> None:
    async with running(database, file=file) as app, aiohttp.ClientSession() as client:

        async def infer(query: str) -> tuple[int, dict[str, Any]]:
            url = f"{app.url}/v1/infer?deadline_ms=60000&score_min=0.25&{query}"
            async with client.post(url, data=street_jpeg(3, 640, 360)) as response:
                return response.status, await response.json(content_type=None)

        status, native = await infer("pipeline=again")
        assert status == 200
        assert "missing" not in native
        staged = [one for one in native["detections"] if "stages" in one]
        assert staged
        assert all(one["label"] == "car" for one in staged)
        assert len(staged) <= 2, "crops_max"
        assert all("detections" in one["stages"]["closer"] for one in staged)
        _, coco = await infer("pipeline=again&format=coco")
        assert sum("stages" in one for one in coco["annotations"]) == len(staged)
        _, plain = await infer("")
        assert not any("stages" in one for one in plain["detections"])
        status, problem = await infer("pipeline=agian")
        assert (status, problem["code"]) == (404, "unknown")
        status, problem = await infer("pipeline=again&family=cats")
        assert status == 404
