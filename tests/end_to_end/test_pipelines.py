"""A camera's frames through a pipeline: street finds vehicles, vehicles says what they are."""

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from edgebox.app.composition import App
from edgebox.camera.session import BoxRefusedError
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import FamilyName
from edgebox.inference.executor_thread import BatchJob, BatchResult
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.media.sources import PictureSource
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame
from edgebox.scene.street_camera import Scene
from tests.end_to_end.running import (
    assert_counts_agree,
    gone,
    running,
    streaming,
    unharmed_bystander,
    until,
)
from tests.end_to_end.streets import street_jpeg

pytestmark = pytest.mark.usefixtures("few_sizes")

SIZE_PX = (1280, 720)
PIPELINE = """
[[pipelines]]
name = "traffic"

[[pipelines.stages]]
name = "street"
family = "street"

[[pipelines.stages]]
name = "vehicle"
family = "vehicles"
after = ["street"]
labels = ["car", "bus", "truck"]
side_min_px = 16
crops_max = 4
"""


@pytest.fixture
async def app(tmp_path: Path, database: Path) -> AsyncIterator[App]:
    file = tmp_path / "edgebox.toml"
    file.write_text(PIPELINE)
    async with running(database, file=file) as app:
        yield app


Seen = list[tuple[PendingFrame, FrameResult, int]]


def watched(app: App) -> Seen:
    """Return the list of ended frames with their endings and numbers of crops, as they end."""
    seen: Seen = []

    def observe(record: CameraRecord, frame: PendingFrame, ending: FrameResult) -> None:
        seen.append((frame, ending, len(frame.crops)))

    app.box.observers.add(observe)
    return seen


def complete(seen: Seen) -> list[tuple[PendingFrame, Answer]]:
    """Return the answers that say something of some object, and lack nothing."""
    answers = [(frame, ending) for frame, ending, _ in seen if isinstance(ending, Answer)]
    return [(frame, answer) for frame, answer in answers if answer.stages and not answer.missing]


def street(rate_hz: float) -> PictureSource:
    scene = Scene(11, *SIZE_PX)
    pictures = [scene.render(2.0 * at).rgb for at in range(6)]
    return PictureSource(SIZE_PX, rate_hz, lambda number: pictures[number % len(pictures)])


async def crops_of(app: App, camera: str) -> dict[str, float]:
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{app.url}/metrics") as response,
    ):
        text = await response.text()
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "edgebox_crops_total" and sample.labels["camera"] == camera
    }


async def test_the_answer_says_type_and_colour_of_what_was_found(app: App) -> None:
    seen = watched(app)
    async with streaming(
        app, "gate", pipeline="traffic", rate_hz=4.0, source=street(4.0), answered=False
    ):
        await until(lambda: len(complete(seen)) >= 3, "three complete answers")
    for frame, answer in complete(seen):
        labels = app.box.families[FamilyName("street")].labels
        for said in answer.stages:
            assert said.stage == "vehicle"
            assert said.variant.startswith("vehicles-")
            assert labels[answer.detections.labels[said.object]] in {"car", "bus", "truck"}
            found = answer.detections.boxes[said.object]
            box = said.detections.boxes[0]
            # A crop is the object with a margin, in px of the camera's own picture.
            assert (box[:2] <= found[:2] + 4).all()
            assert (box[2:] >= found[2:] - 4).all()
        assert 1 <= len(answer.stages) <= 4
        assert frame.picture is None, "what crops are cut from is freed with its frame"
    crops = sum(count for _, _, count in seen)
    counted = await crops_of(app, "gate")
    assert sum(counted.values()) == crops
    assert counted["answered"] == sum(len(e.stages) for _, e, _ in seen if isinstance(e, Answer))
    driver = app.box.driver
    assert driver.frames_pending == 0
    assert driver.decisions.timeline.failure == ""


async def test_a_stage_that_fails_leaves_partial_answers_and_harms_nobody(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, broken = OnnxExecutor._run, threading.Event()

    def fails(executor: OnnxExecutor, job: BatchJob) -> BatchResult:
        if broken.is_set() and job.variant.startswith("vehicles"):
            raise ModelError("out of memory")
        return run(executor, job)

    monkeypatch.setattr(OnnxExecutor, "_run", fails)
    file = tmp_path / "edgebox.toml"
    file.write_text(PIPELINE)
    async with running(database, file=file) as app:
        broken.set()
        seen, pictures = watched(app), street(4.0)  # drawn while nobody waits
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(f"{app.url}/v1/results?camera=gate") as results,
            unharmed_bystander(app),
            streaming(
                app, "gate", pipeline="traffic", rate_hz=4.0, source=pictures, answered=False
            ) as camera,
        ):
            said = await results.receive_json()
            while "missing" not in said:
                said = await results.receive_json()
        assert said["missing"] == ["vehicle"]
        assert said["detections"], "what the first stage found is answered all the same"
        assert not any("stages" in each for each in said["detections"])
        partial = [each for _, each, crops in seen if isinstance(each, Answer) and crops]
        assert partial
        assert all(each.missing == ("vehicle",) for each in partial)
        counted = await crops_of(app, "gate")
        assert counted == {"answered": 0, "dropped": sum(crops for _, _, crops in seen)}
        await gone(app, "gate")
        assert_counts_agree(app, camera.summary())


async def test_a_picture_that_a_program_sends_goes_through_the_pipeline(app: App) -> None:
    jpeg = street_jpeg(11, *SIZE_PX)
    async with (
        aiohttp.ClientSession() as client,
        client.post(
            f"{app.url}/v1/infer", params={"pipeline": "traffic", "deadline_ms": 30_000}, data=jpeg
        ) as response,
    ):
        status, answer = response.status, await response.json()
    assert status == 200, answer
    said = [each["stages"]["vehicle"] for each in answer["detections"] if "stages" in each]
    assert said
    for each in said:
        assert set(each["attributes"]) == {"type", "colour"}
        assert all(0 < of["score"] <= 1 for of in each["attributes"].values())
    assert "missing" not in answer


async def test_a_pipeline_that_is_not_there_is_named_with_those_that_are(app: App) -> None:
    with pytest.raises(BoxRefusedError, match="traffic"):
        async with streaming(app, "gate", pipeline="trafic"):
            pass


async def test_the_first_stage_runs_on_no_larger_variant_than_its_own(
    tmp_path: Path, database: Path
) -> None:
    file = tmp_path / "edgebox.toml"
    file.write_text(
        PIPELINE.replace('family = "street"\n', 'family = "street"\nvariant = "street-160"\n')
    )
    jpeg = street_jpeg(11, *SIZE_PX)
    async with running(database, file=file) as app:
        seen = watched(app)
        url = f"{app.url}/v1/infer"
        async with aiohttp.ClientSession() as client:
            for by, limited in (({"pipeline": "traffic"}, True), ({"family": "street"}, False)):
                params = {**by, "deadline_ms": "30000"}
                async with client.post(url, params=params, data=jpeg) as response:
                    variant = (await response.json())["variant"]
                assert (variant == "street-160") == limited
        async with streaming(
            app, "gate", pipeline="traffic", slo_ms=30_000, rate_hz=4.0, source=street(4.0)
        ):
            await until(lambda: len(seen) >= 8, "eight frames")
    variants = {ending.variant for _, ending, _ in seen if isinstance(ending, Answer)}
    assert variants and variants <= {"street-128", "street-160"}
