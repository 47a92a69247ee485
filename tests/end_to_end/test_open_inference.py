"""The Open Inference Protocol on a real box, spoken by Triton's own clients."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from numpy.typing import NDArray
from tritonclient.utils import InferenceServerException

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.inference.family_prints import family_print, reading_print
from edgebox.media.jpeg import decode, encode, resize_rgb
from edgebox.web.camera_pictures import largest_in_time, worst_latency_ns
from tests.conftest import settings
from tests.end_to_end.running import get_json, post, running, unharmed_bystander, until
from tests.end_to_end.streets import street_jpeg, street_picture
from tests.end_to_end.wire import JPEG, jpeg_claiming

DEADLINE = {"deadline_ms": 30_000}


def streets() -> tuple[bytes, bytes]:
    return street_jpeg(3), street_jpeg(4)


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    streets()  # painted while no box waits
    async with running(database) as app:
        yield app


@contextlib.asynccontextmanager
async def client_of(app: App) -> AsyncIterator[triton_aio.InferenceServerClient]:
    async with triton_aio.InferenceServerClient(app.url.removeprefix("http://")) as client:
        yield client


def images(*jpegs: bytes, column: bool = False) -> triton.InferInput:
    """Return JPEGs as binary data, of shape [n] or [n, 1]."""
    array = np.array([*jpegs, None], object)[:-1]
    if column:
        array = array.reshape(-1, 1)
    return triton.InferInput("image", list(array.shape), "BYTES").set_data_from_numpy(array)


def base64_images(*jpegs: bytes) -> triton.InferInput:
    """Return JPEGs as JSON."""
    array = np.array([base64.b64encode(jpeg) for jpeg in jpegs], object)
    made = triton.InferInput("image", list(array.shape), "BYTES")
    return made.set_data_from_numpy(array, binary_data=False)


def pixels(array: NDArray[np.uint8], binary: bool = True) -> triton.InferInput:
    made = triton.InferInput("pixels", list(array.shape), "UINT8")
    return made.set_data_from_numpy(array, binary_data=binary)


def in_json(*names: str) -> list[triton.InferRequestedOutput]:
    return [triton.InferRequestedOutput(name, binary_data=False) for name in names]


async def native(app: App, jpeg: bytes, variant: str) -> list[dict[str, Any]]:
    """Return what POST /v1/infer finds on the same picture."""
    status, document = await post(app, jpeg, {**DEADLINE, "variant": variant})
    assert status == 200
    found: list[dict[str, Any]] = document["detections"]
    return found


def assert_same(result: triton.InferResult, row: int, found: list[dict[str, Any]]) -> None:
    """Insist that a picture's row says what POST /v1/infer said, and nothing beyond."""
    (count,) = result.as_numpy("counts")[row : row + 1]
    assert count == len(found) > 0
    boxes = result.as_numpy("boxes")[row]
    assert boxes[:count] == pytest.approx(np.array([each["box"] for each in found]), abs=0.06)
    scores = [each["score"] for each in found]
    assert result.as_numpy("scores")[row, :count] == pytest.approx(scores, abs=6e-4)
    labels = result.as_numpy("labels")[row]
    assert labels[:count].tolist() == [each["label_id"] for each in found]
    names = [name.decode() for name in result.as_numpy("names")[row, :count]]
    assert names == [each["label"] for each in found]
    assert (labels[count:] == -1).all()
    assert (boxes[count:] == 0).all()


async def test_metadata_name_every_family_and_every_variant(app: App) -> None:
    async with client_of(app) as client:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        server = await client.get_server_metadata()
        assert server["name"] == "edgebox"
        assert server["version"] == app.box.version
        assert "binary_tensor_data" in server["extensions"]
        listed = [row["name"] for row in await client.get_model_repository_index()]
        family = app.box.families[app.box.models.default_family]
        variants = [variant.name for variant in family.variants]
        assert listed == ["street", *variants]
        for name in listed:
            assert await client.is_model_ready(name)
            assert await client.is_model_ready(name, "1")
            model = await client.get_model_metadata(name, "1")
            assert (model["name"], model["versions"]) == (name, ["1"])
            assert model["inputs"][0] == {"name": "image", "datatype": "BYTES", "shape": [-1]}
            config = await client.get_model_config(name)
            assert {entry["name"] for entry in config["output"]} == {
                entry["name"] for entry in model["outputs"]
            }
        assert not await client.is_model_ready("cats")
        assert not await client.is_model_ready("street", "2")


async def test_the_blocking_client_gets_binary_outputs(app: App) -> None:
    def ask() -> triton.InferResult:
        client = triton.InferenceServerClient(app.url.removeprefix("http://"))
        try:
            assert client.is_server_ready()
            return client.infer(
                "street-608", [images(*streets())], request_id="seven", parameters=DEADLINE
            )
        finally:
            client.close()

    result = await asyncio.to_thread(ask)
    response = result.get_response()
    assert (response["model_name"], response["model_version"]) == ("street-608", "1")
    assert len(response["parameters"]["fingerprint"]) == 16
    assert response["id"] == "seven"
    assert all("binary_data_size" in entry["parameters"] for entry in response["outputs"])
    for row, street in enumerate(streets()):
        assert_same(result, row, await native(app, street, "street-608"))
    assert result.as_numpy("variants").tolist() == [b"street-608"] * 2
    assert result.as_numpy("outcomes").tolist() == [b"on_time"] * 2
    assert (result.as_numpy("latency_ms") > 0).all()


async def test_json_says_the_same_as_binary_data(app: App) -> None:
    async with client_of(app) as client:
        wanted = in_json("boxes", "scores", "labels", "names", "counts")
        answer = await client.infer(
            "street-608", [base64_images(*streets())], outputs=wanted, parameters=DEADLINE
        )
    assert [entry["name"] for entry in answer.get_response()["outputs"]] == [
        "boxes", "scores", "labels", "names", "counts",
    ]  # fmt: skip
    assert all("data" in entry for entry in answer.get_response()["outputs"])
    for row, street in enumerate(streets()):
        found = await native(app, street, "street-608")
        # Texts of a JSON tensor stay texts in this client.
        names = answer.as_numpy("names")[row, : len(found)].tolist()
        assert names == [each["label"] for each in found]
        count = answer.as_numpy("counts")[row]
        assert count == len(found)
        boxes = answer.as_numpy("boxes")[row, :count]
        assert boxes == pytest.approx(np.array([each["box"] for each in found]), abs=0.06)


async def test_outputs_may_be_mixed_and_in_any_order(app: App) -> None:
    async with client_of(app) as client:
        wanted = [
            triton.InferRequestedOutput("counts", binary_data=True),
            *in_json("scores"),
            triton.InferRequestedOutput("boxes", binary_data=True),
        ]
        answer = await client.infer(
            "street-608", [images(street_jpeg(3), column=True)], outputs=wanted, parameters=DEADLINE
        )
    kinds = {entry["name"]: "data" in entry for entry in answer.get_response()["outputs"]}
    assert kinds == {"counts": False, "scores": True, "boxes": False}
    (count,) = answer.as_numpy("counts")
    assert answer.as_numpy("boxes").shape == (1, count, 4)
    assert answer.as_numpy("scores").shape == (1, count)
    assert answer.as_numpy("names") is None


@pytest.mark.parametrize("how", ["gzip", "deflate"])
async def test_compressed_bodies_in_both_directions(app: App, how: str) -> None:
    async with client_of(app) as client:
        answer = await client.infer(
            "street-608",
            [images(*streets() * 8)],
            request_compression_algorithm=how,
            response_compression_algorithm=how,
            parameters={**DEADLINE, "score_min": 0.05},
        )
    assert answer.as_numpy("counts").shape == (16,)
    assert (answer.as_numpy("counts") > 0).all()


@pytest.mark.parametrize("binary", [True, False])
async def test_raw_pixels_of_any_size_are_laid_out_as_jpegs_are(app: App, binary: bool) -> None:
    small = encode(resize_rgb(street_picture(3, 640, 360), 256, 144))
    rgb = decode(small)
    async with client_of(app) as client:
        of_pixels = await client.infer(
            "street-256", [pixels(rgb[None], binary)], parameters=DEADLINE
        )
        of_jpeg = await client.infer("street-256", [images(small)], parameters=DEADLINE)
    assert of_pixels.as_numpy("counts") == of_jpeg.as_numpy("counts")
    assert of_pixels.as_numpy("boxes") == pytest.approx(of_jpeg.as_numpy("boxes"), abs=0.5)


async def test_a_family_is_asked_on_the_largest_variant_in_time(app: App) -> None:
    async with client_of(app) as client:
        patient = await client.infer("street", [images(street_jpeg(3))], parameters=DEADLINE)
        assert patient.as_numpy("variants").tolist() == [b"street-608"]
        small = await client.infer("street", [images(JPEG, street_jpeg(3))], parameters=DEADLINE)
        assert small.as_numpy("variants").tolist() == [b"street-320", b"street-608"]


async def test_several_pictures_need_more_time_than_one(app: App) -> None:
    variants = app.box.families[app.box.models.default_family].variants
    largest = variants[-1].name
    worst_ms = (worst_latency_ns(app.box, largest) or 0) / 1e6
    assert worst_ms > 0
    chosen = [largest_in_time(app.box, variants, (1280, 720), worst_ms * 2, n) for n in (1, 16)]
    assert chosen[0] == largest
    assert chosen[1] != largest
    of_16 = worst_latency_ns(app.box, largest, 16) or 0
    assert worst_latency_ns(app.box, largest, 40) == 2 * of_16 + (
        worst_latency_ns(app.box, largest, 8) or 0
    )


async def test_parameters_are_those_of_the_native_interface(app: App) -> None:
    async with client_of(app) as client:

        async def ask(**parameters: Any) -> triton.InferResult:
            return await client.infer(
                "street-608", [images(street_jpeg(3))], parameters={**DEADLINE, **parameters}
            )

        few, many = await ask(score_min=0.6), await ask(score_min=0.1)
        assert few.as_numpy("counts") < many.as_numpy("counts")
        sizes, corners = await ask(boxes="xywh"), await ask()
        x, y, width, height = sizes.as_numpy("boxes")[0].T
        assert np.stack((x, y, x + width, y + height), 1) == pytest.approx(
            corners.as_numpy("boxes")[0], abs=0.01
        )
        nothing = await ask(score_min=1)
        assert nothing.as_numpy("boxes").shape == (1, 0, 4)
        assert nothing.as_numpy("names").shape == (1, 0)
        await ask(app="night")
    state = (await get_json(app, "/v1/state"))[1]
    assert "night" in {row["app"] for row in state["box"]["applications"]}


async def test_what_cannot_be_in_time_is_refused_and_says_which_picture(app: App) -> None:
    async with client_of(app) as client, unharmed_bystander(app):
        with pytest.raises(InferenceServerException, match="too little time") as refused:
            await client.infer("street-608", [images(JPEG)], parameters={"deadline_ms": 1})
        assert refused.value.status() == "503"
        with pytest.raises(InferenceServerException, match="too little time"):
            await client.infer("street-608", [images(JPEG)], timeout=1_000)
        with pytest.raises(InferenceServerException, match=r"picture 1: .*truncated") as broken:
            await client.infer(
                "street-128", [images(JPEG, JPEG[: len(JPEG) // 2])], parameters=DEADLINE
            )
        assert broken.value.status() == "400"


async def test_pictures_run_among_the_cameras_frames(app: App) -> None:
    async with unharmed_bystander(app) as camera, client_of(app) as client:
        answer = await client.infer("street-128", [images(*[JPEG] * 16)], parameters=DEADLINE)
        assert answer.as_numpy("counts").shape == (16,)
        before = camera.summary().on_time
        await until(lambda: camera.summary().on_time > before, "another answer of the camera")
    counted = {
        times.app: times.count
        for times in app.box.driver.measurements.applications.times(app.box.profiles)
    }
    assert counted["http"] >= 16
    assert counted["default"] > 0


async def test_other_addresses_answer_in_the_protocols_form(app: App) -> None:
    async with client_of(app) as client, unharmed_bystander(app):
        with pytest.raises(InferenceServerException, match="no model 'cats'; there are street, "):
            await client.infer("cats", [images(JPEG)])
        with pytest.raises(InferenceServerException, match="no version '2'"):
            await client.infer("street", [images(JPEG)], model_version="2")
        with pytest.raises(InferenceServerException, match="404 Not Found: GET /v2/logging"):
            await client.get_log_settings()
        with pytest.raises(InferenceServerException, match="404 Not Found: POST"):
            await client.load_model("street")
        with pytest.raises(InferenceServerException, match=r"pages of https://evil\.example"):
            await client.infer("street", [images(JPEG)], headers={"Origin": "https://evil.example"})


async def test_a_box_that_is_still_starting_is_live_and_not_ready(database: Path) -> None:
    app = App(load(None, settings(database)))
    await app.listen()
    try:
        async with client_of(app) as client:
            assert await client.is_server_live()
            assert not await client.is_server_ready()
            assert not await client.is_model_ready("street")
            with pytest.raises(InferenceServerException, match="the box is not ready") as refused:
                await client.infer("street", [images(JPEG)])
            assert refused.value.status() == "503"
    finally:
        await app.stop()


async def test_pictures_are_answered_beside_others_that_cannot_be(app: App) -> None:
    first, second = streets()
    pictures = images(first, jpeg_claiming(64, 64), second)
    async with client_of(app) as client:
        with pytest.raises(InferenceServerException, match="picture 1"):
            await client.infer("street-320", [pictures], parameters=DEADLINE)
        found = await client.infer(
            "street-320", [pictures], parameters={**DEADLINE, "partial": True}
        )
        assert found.as_numpy("outcomes").tolist() == [b"on_time", b"invalid", b"on_time"]
        assert found.as_numpy("counts")[1] == 0
        assert_same(found, 0, await native(app, first, "street-320"))
        assert_same(found, 2, await native(app, second, "street-320"))
        only = images(jpeg_claiming(64, 64))
        found = await client.infer("street-320", [only], parameters={**DEADLINE, "partial": True})
        assert found.as_numpy("outcomes").tolist() == [b"invalid"]
        too_large = bytes(app.config.limits.frame_bytes_max + 1)
        mixed = images(too_large, first, b"no picture")
        found = await client.infer("street-320", [mixed], parameters={**DEADLINE, "partial": True})
        assert found.as_numpy("outcomes").tolist() == [b"invalid", b"on_time", b"invalid"]
        assert_same(found, 1, await native(app, first, "street-320"))


async def test_another_box_knows_a_family_by_its_fingerprint(app: App) -> None:
    family = app.box.families[app.box.models.default_family]
    _, document = await get_json(app, f"/v2/models/{family.name}/config")
    assert document["parameters"]["fingerprint"]["string_value"] == family_print(family)
    assert document["parameters"]["reading"]["string_value"] == reading_print(family)
    bytes_max = str(app.config.limits.frame_bytes_max)
    assert document["parameters"]["frame_bytes_max"]["string_value"] == bytes_max
