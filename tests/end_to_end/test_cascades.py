"""A camera's frames through a cascade on a real box: street-128 first, then street-416."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.domain.cascades import (
    CascadeCurve,
    CascadeEvidence,
    CascadeName,
    CascadeOutcome,
    CascadePoint,
    Decider,
)
from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import CameraId
from edgebox.inference.cascade_file import CascadeModel, StoredCascade, write_cascade
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.runtime.frames import Answer
from edgebox.vision.cascade_decider import FEATURES
from tests.end_to_end.running import running, streaming, texts, unharmed_bystander, until
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_pipelines import SIZE_PX, Seen, crops_of, street, watched

SMALL, LARGE = VariantName("street-128"), VariantName("street-416")
FILE = """
[inference]
models = "{models}"

[[pipelines]]
name = "gate"

[[pipelines.stages]]
name = "small"
family = "street"

[[pipelines.stages]]
name = "large"
family = "street"
after = ["small"]
cascade = "test"
threshold = 0.5

[[pipelines.stages]]
name = "vehicle"
family = "vehicles"
after = ["small", "large"]
labels = ["car", "bus", "truck"]
crops_max = 2
"""


def cascade(bias: float) -> StoredCascade:
    """Return a cascade that expects the same loss of every picture."""
    family = load_zoo(bundled_folders()).family("street")
    curve = CascadeCurve((CascadePoint(0.9, 0.0, 0.4), CascadePoint(0.0, 1.0, 0.0)))
    return StoredCascade(
        CascadeName("test"),
        CascadeModel.of(family, SMALL),
        CascadeModel.of(family, LARGE),
        Decider((0.0,) * len(FEATURES), bias),
        curve,
        0.3,
        "scene",
        100,
        0.0,
        0,
    )


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "edgebox.toml"
    path.write_text(FILE.format(models=tmp_path / "models"))
    yield path


@pytest.fixture(params=[5.0, -5.0], ids=["unsure", "sure"])
async def app(
    request: pytest.FixtureRequest, tmp_path: Path, database: Path, file: Path
) -> AsyncIterator[App]:
    write_cascade(tmp_path / "models", cascade(request.param))
    async with running(database, file=file, scheduler__sample_share=0) as app:
        yield app


async def test_a_cascade_whose_file_is_missing_is_the_trouble_of_its_pipeline_alone(
    database: Path, file: Path
) -> None:
    async with running(database, file=file) as app:
        assert any(
            "pipeline gate is left out" in text and "test.cascade.json: there is no" in text
            for text in texts(app, "error")
        )
        async with unharmed_bystander(app):
            pass


async def state_of(app: App, camera: str) -> dict[str, object]:
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/v1/state") as response:
        state = await response.json()
    found: dict[str, object] = next(c["cascade"] for c in state["cameras"] if c["id"] == camera)
    return found


async def streamed_through(
    app: App, sure: bool
) -> tuple[Seen, list[Answer], dict[str, object], list[Advice]]:
    """Stream until the decider's choice has answered three frames, one of them with vehicles.

    Return all frames that ended, those answers, the camera's state and its advice.
    """
    wanted = CascadeOutcome.KEPT if sure else CascadeOutcome.SENT_ON
    seen = watched(app)

    def answers() -> list[Answer]:
        found = [ending for _, ending, _ in seen if isinstance(ending, Answer)]
        return [answer for answer in found if answer.cascade is wanted]

    async with streaming(
        app, "gate", pipeline="gate", rate_hz=4.0, source=street(4.0), answered=False
    ):
        await until(
            lambda: len(answers()) >= 3 and any(answer.stages for answer in answers()),
            "three answers, one with vehicles",
        )
        advice = list(app.box.driver.scheduler.advice.values())
        state = await state_of(app, "gate")
    return seen, answers(), state, advice


async def test_answers_have_the_objects_of_the_model_that_the_decider_chose(
    app: App, request: pytest.FixtureRequest
) -> None:
    sure = request.node.callspec.params["app"] < 0
    _, answers, state, (advised,) = await streamed_through(app, sure)
    assert advised.variant == SMALL
    assert advised.width_px == 416, "the large model's size is sent"
    for answer in answers:
        assert answer.variant == (SMALL if sure else LARGE)
        assert "large" not in answer.missing
        for said in answer.stages:
            assert said.stage == "vehicle"
            assert said.object < len(answer.detections)
    assert state["threshold"] == 0.5
    assert state["share"] == (0.0 if sure else 1.0)
    assert state["kept" if sure else "sent_on"] >= 3  # type: ignore[operator]
    driver = app.box.driver
    await until(lambda: driver.frames_pending == 0, "no frame is left")
    assert driver.decisions.timeline.failure == ""
    assert bool(sum((await crops_of(app, "gate")).values())) is True


async def test_what_was_learned_outlives_a_restart(
    tmp_path: Path, database: Path, file: Path
) -> None:
    write_cascade(tmp_path / "models", cascade(5.0))

    async def evidence(seen: int, compared: int) -> CascadeEvidence:
        """Stream until so many pictures count, the earlier ones included."""
        async with (
            running(database, file=file, scheduler__sample_share=0) as app,
            streaming(
                app, "gate", pipeline="gate", rate_hz=4.0, source=street(4.0), answered=False
            ),
        ):
            calibration = app.box.driver.cascades.calibration
            await until(
                lambda: (
                    (of := calibration(CameraId("gate"))) is not None
                    and len(of.evidence.logits) >= seen
                    and of.compared > 0
                ),
                "pictures were decided and compared",
            )
            of = calibration(CameraId("gate"))
            assert of is not None
            return of.evidence

    before = await evidence(8, 1)
    after = await evidence(1, 0)
    assert len(after.logits) > len(before.logits), "with the first picture"
    # At least what counted when it was looked at; single precision is kept.
    assert after.logits[: len(before.logits)] == pytest.approx(before.logits)
    hard = after.hard[: len(before.hard)]
    assert [x for pair in hard for x in pair] == pytest.approx(
        [x for pair in before.hard for x in pair]
    )


async def test_a_program_sees_which_model_answered(
    app: App, request: pytest.FixtureRequest
) -> None:
    sure = request.node.callspec.params["app"] < 0
    jpeg = street_jpeg(11, *SIZE_PX)
    parameters: dict[str, str | int] = {"pipeline": "gate", "deadline_ms": 30_000}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{app.url}/v1/infer", params=parameters, data=jpeg) as response,
    ):
        answer = await response.json()
        assert response.status == 200, answer
    assert answer["cascade"] == ("kept" if sure else "sent_on")
    assert answer["variant"] == (SMALL if sure else LARGE)
    said = [each["stages"]["vehicle"] for each in answer["detections"] if "stages" in each]
    assert said
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{app.url}/v2/models/gate") as response:
            outputs = [each["name"] for each in (await response.json())["outputs"]]
        async with client.get(f"{app.url}/v1/pipelines") as response:
            (pipeline,) = (await response.json())["pipelines"]
    assert not [name for name in outputs if name.startswith("large")]
    stages = {stage["name"]: stage for stage in pipeline["stages"]}
    assert stages["large"]["cascade"]["threshold"] == 0.5
    assert stages["small"]["variant"] == SMALL
