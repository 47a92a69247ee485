"""Families that come, go and become the default while a box serves cameras."""

import shutil
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.domain.requests import CameraId
from edgebox.runtime.camera_record import CameraRecord
from edgebox.scheduling.distributions import SAMPLES_MIN
from tests.conftest import settings
from tests.end_to_end.program import beside_the_loop, edgebox
from tests.end_to_end.running import (
    get_json,
    post,
    running,
    streaming,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.test_model_jobs import ask, end_of, left_in, model
from tests.end_to_end.wire import JPEG
from tests.inference.importing.planted import HEIGHT, WIDTH

pytestmark = pytest.mark.usefixtures("few_sizes")


async def send(app: App, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, app.url + path, json=body) as response,
    ):
        return response.status, await response.json() if response.status != 204 else None


async def imported(app: App, name: str = "tiny", body: bytes | None = None) -> dict[str, Any]:
    _, job = await ask(app, f"/v1/models?name={name}&licence=MIT", body or model())
    job = await end_of(app, job)
    assert job["state"] == "done", job
    return job


def record_of(app: App, camera: str) -> CameraRecord:
    return app.box.cameras[CameraId(camera)]


async def test_a_new_model_serves_pictures_and_cameras_beside_others(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        async with unharmed_bystander(app):
            await imported(app)
            status, answer = await post(app, JPEG, {"family": "tiny", "deadline_ms": 30_000})
            assert (status, answer["variant"].split("-")[0]) == (200, "tiny")
            async with streaming(app, "yard", family="tiny") as camera:
                await until(lambda: camera.summary().on_time >= 5, "answers of the new model")
        found = app.box.metrics.of(CameraId("yard")).counts
        assert found.captured == found.on_time + found.late + sum(found.dropped.values())
        # It was measured beside a camera, so large batches wait for the next start.
        profiles = (await get_json(app, "/v1/models"))[1]["families"][1]["variants"][0]["profiles"]
        assert profiles["cpu/0"]["1"]


async def test_a_removed_model_is_gone_at_once_and_its_name_is_free(database: Path) -> None:
    models = database.parent / "models"
    async with running(database, access__open_scope="admin") as app:
        await imported(app)
        assert (await post(app, JPEG, {"family": "tiny", "deadline_ms": 30_000}))[0] == 200
        async with streaming(app, "yard", family="tiny"):
            status, problem = await send(app, "DELETE", "/v1/models/tiny")
            assert (status, problem["code"]) == (409, "family_in_use")
            assert "tiny is used by yard" in problem["detail"]
        await until(lambda: not app.box.connected, "the camera to leave")
        async with unharmed_bystander(app):
            assert (await send(app, "DELETE", "/v1/models/tiny"))[0] == 204
            assert left_in(models) == []
            status, problem = await post(app, JPEG, {"family": "tiny"})
            assert (status, problem["code"]) == (404, "unknown")
            assert "the model tiny was removed" in texts(app, "info")
        await imported(app)
        assert (await post(app, JPEG, {"family": "tiny", "deadline_ms": 30_000}))[0] == 200


async def test_another_model_under_a_removed_name_starts_from_nothing(database: Path) -> None:
    wide, narrow = model(), model(batch=1)
    name = VariantName(f"tiny-{WIDTH}x{HEIGHT}")
    asked = {"family": "tiny", "deadline_ms": 30_000, "app": "night"}
    async with running(database, access__open_scope="admin") as app:

        def samples() -> int:
            learned = app.box.driver.scheduler.times.learning.distribution(name, "night")
            return 0 if learned is None else learned.samples

        async def exchange(body: bytes) -> None:
            assert (await send(app, "DELETE", "/v1/models/tiny"))[0] == 204
            await imported(app, body=body)

        await imported(app, body=wide)
        for _ in range(SAMPLES_MIN + 4):
            assert (await post(app, JPEG, asked))[0] == 200
        of_wide = samples()
        assert of_wide >= SAMPLES_MIN
        await exchange(narrow)
        assert samples() == 0
        assert app.box.profiles[ExecutorId("cpu/0")][name].batch_sizes == (1,)
        assert (await get_json(app, "/v1/state"))[0] == 200
        assert (await post(app, JPEG, asked))[0] == 200
        assert samples() == 1
        await exchange(wide)
        assert samples() == of_wide, "it is the model that they were learned of"


async def test_nothing_runs_on_sizes_that_only_the_removed_model_had(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        await imported(app, body=model("end_to_end", width="w", height="h"))
        assert len(app.box.families[FamilyName("tiny")].variants) > 1
        assert (await send(app, "DELETE", "/v1/models/tiny"))[0] == 204
        await imported(app)
        scheduler = app.box.driver.scheduler
        offered = scheduler.snapshot(app.box.driver.clock_ns()).variants
        name = VariantName(f"tiny-{WIDTH}x{HEIGHT}")
        assert [each.name for each in offered if each.family == "tiny"] == [name]
        (profiles,) = app.box.profiles.values()
        assert [each for each in profiles if each.startswith("tiny")] == [name]
        async with streaming(app, "yard", family="tiny") as camera:
            await until(lambda: camera.summary().on_time >= 2, "answers of the new model")


async def test_what_cannot_be_removed_says_why(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        for family, code, message in (
            (
                "street",
                (409, "family_in_use"),
                "street is the default model; it comes with edgebox",
            ),
            ("cats", (404, "unknown"), "no model family 'cats'"),
        ):
            status, problem = await send(app, "DELETE", f"/v1/models/{family}")
            assert (status, problem["code"]) == code
            assert message in problem["detail"]
        await imported(app)
        assert (await send(app, "POST", "/v1/models/tiny/default"))[0] == 204
        status, problem = await send(app, "DELETE", "/v1/models/tiny")
        assert (status, problem["code"]) == (409, "family_in_use")
        assert problem["detail"].endswith("choose another one first: edgebox models default street")
        status, problem = await send(app, "DELETE", "/v1/models/street")
        assert (status, problem["code"]) == (409, "family_in_use")
        assert "street comes with edgebox and stays" in problem["detail"]
        assert list(app.box.families) == ["street", "tiny"]
    async with running(database) as app:
        for method, path in (("DELETE", "/v1/models/tiny"), ("POST", "/v1/models/tiny/default")):
            status, problem = await send(app, method, path)
            assert (status, problem["code"]) == (403, "forbidden")


async def test_a_new_default_reaches_cameras_that_name_none_and_survives(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        await imported(app)
        async with streaming(app, "yard") as camera, streaming(app, "gate", family="street"):
            assert record_of(app, "yard").camera.family == "street"
            assert (await send(app, "POST", "/v1/models/tiny/default"))[0] == 204
            await until(
                lambda: record_of(app, "yard").camera.family == "tiny", "the camera on the default"
            )
            answered = camera.summary().on_time
            await until(lambda: camera.summary().on_time > answered, "its answers")
            assert record_of(app, "gate").camera.family == "street"
        assert (await get_json(app, "/v1/models"))[1]["default"] == "tiny"
    assert load(None, settings(database)).inference.family == "tiny"
    async with running(database) as app:
        assert app.box.models.default_family == "tiny"
        (key,) = [
            each
            for each in (await get_json(app, "/v1/config"))[1]["keys"]
            if each["key"] == "inference.family"
        ]
        assert (key["value"], key["origin"]) == ("tiny", "stored")


@pytest.mark.parametrize("device", ["cpu", "auto"])  # as configured, and as a box is by default
async def test_a_box_follows_the_commands(database: Path, tmp_path: Path, device: str) -> None:
    models, file = database.parent / "models", tmp_path / "tiny.onnx"
    file.write_bytes(model())
    config = tmp_path / "box.toml"
    config.write_text(f'[inference]\nmodels = "{models}"\n')

    async def command(*arguments: str) -> None:
        flags = ("models", *arguments, "--config", str(config))
        ended = await beside_the_loop(tmp_path, *flags)
        assert ended.code == 0, ended.err

    async with (
        running(database, executors=[{"device": device}]) as app,
        streaming(app, "yard") as camera,
    ):
        importing = ("import", str(file), "--profile-s", "0", "--config", str(config))
        assert (await edgebox(tmp_path, "models", *importing)).code == 0
        await command("default", "tiny")
        await until(lambda: "tiny" in app.box.families, "the new family")
        await until(lambda: app.box.models.default_family == "tiny", "the new default")
        await until(lambda: record_of(app, "yard").camera.family == "tiny", "its camera")
        answered = camera.summary().on_time
        await until(lambda: camera.summary().on_time > answered, "its answers")
        await command("default", "street")
        await until(lambda: record_of(app, "yard").camera.family == "street", "its camera")
        await command("remove", "tiny")
        await until(lambda: list(app.box.families) == ["street"], "the family to go")


async def test_a_model_that_is_exchanged_in_its_folder_is_served_once_nothing_uses_the_other(
    database: Path, tmp_path: Path
) -> None:
    models, file = database.parent / "models", tmp_path / "tiny.onnx"
    file.write_bytes(model())
    importing = ("import", str(file), "--profile-s", "0", "--config", str(tmp_path / "box.toml"))
    (tmp_path / "box.toml").write_text(f'[inference]\nmodels = "{models}"\n')
    assert (await edgebox(tmp_path, "models", *importing)).code == 0
    manifest = models / "tiny" / "family.toml"
    other = manifest.read_text().replace('licence = "', 'licence = "another than ')

    async with running(database) as app, unharmed_bystander(app):
        await until(lambda: not app.box.not_ready_because, "the box")
        first = app.box.families[FamilyName("tiny")]
        async with streaming(app, "yard", family="tiny"):

            def told() -> list[str]:
                return [text for text in texts(app, "warning") if "the model tiny" in text]

            shutil.move(models / "tiny", tmp_path / "tiny")
            await until(lambda: len(told()) == 1, "the first warning")
            assert "were removed, but yard uses it" in told()[0]
            (tmp_path / "tiny" / "family.toml").write_text(other)
            shutil.move(tmp_path / "tiny", models / "tiny")
            await until(lambda: len(told()) == 2, "the second warning")
            assert any("were exchanged, but yard uses it" in text for text in told())
            assert app.box.families[FamilyName("tiny")] is first

        def served() -> str:
            family = app.box.families.get(FamilyName("tiny"))
            return "" if family is None else family.licence

        await until(lambda: served().startswith("another than"), "the other model")
        assert len(told()) == 2
        shutil.rmtree(models / "tiny")
        await until(lambda: not served(), "it to go")


async def test_a_folder_that_is_no_family_is_told_once(database: Path) -> None:
    models = database.parent / "models"
    async with running(database) as app:
        await until(lambda: not app.box.not_ready_because, "the box")
        broken = models / "broken"
        broken.mkdir(parents=True)
        (broken / "family.toml").write_text("name = 1")

        def told() -> list[str]:
            return [text for text in texts(app, "warning") if "broken is not served yet" in text]

        await until(lambda: bool(told()), "the warning")
        assert len(told()) == 1
        assert list(app.box.families) == ["street"]


async def test_the_configuration_file_keeps_the_default(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "box.toml"
    file.write_text('[inference]\nfamily = "street"\n')
    async with running(database, file=file, access__open_scope="admin") as app:
        await imported(app)
        status, problem = await send(app, "POST", "/v1/models/tiny/default")
        assert (status, problem["code"]) == (409, "family_in_use")
        assert "box.toml sets inference.family" in problem["detail"]
        status, problem = await send(app, "DELETE", "/v1/models/street")
        assert "inference.family: name another one there first" in problem["detail"]


async def test_a_model_is_chosen_for_one_camera(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        await imported(app)
        async with streaming(app, "yard") as camera:
            status, problem = await send(app, "PATCH", "/v1/cameras/yard", {"family": "cats"})
            assert (status, problem["code"]) == (404, "unknown")
            assert "settings.family: this box has no model family cats" in problem["detail"]
            status, shown = await send(app, "PATCH", "/v1/cameras/yard", {"family": "tiny"})
            assert (status, shown["overrides"]["family"]) == (200, "tiny")
            await until(lambda: record_of(app, "yard").camera.family == "tiny", "its new model")
            answered = camera.summary().on_time
            await until(lambda: camera.summary().on_time > answered, "answers of it")
        await until(lambda: not app.box.connected, "the camera to leave")
        status, problem = await send(app, "DELETE", "/v1/models/tiny")
        assert "tiny is used by yard" in problem["detail"]
    # It is remembered; and where the model is gone, the camera's own choice counts, and is told.
    for file in (database.parent / "models" / "tiny").iterdir():
        file.unlink()
    async with running(database, access__open_scope="admin") as app:
        assert any("yard was given the model tiny, which is not served" in t for t in texts(app))
        async with streaming(app, "yard"):
            assert record_of(app, "yard").camera.family == FamilyName("street")
            status, shown = await send(app, "PATCH", "/v1/cameras/yard", {"family": None})
            assert (status, shown["overrides"]["family"]) == (200, None)


async def test_the_box_says_as_long_as_no_model_is_for_real_cameras(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        assert (await get_json(app, "/v1/state"))[1]["box"]["only_synthetic"] is True
        await imported(app)
        assert (await get_json(app, "/v1/state"))[1]["box"]["only_synthetic"] is False
