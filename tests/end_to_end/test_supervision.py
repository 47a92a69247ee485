"""Executors that really hang and really raise, in ONNX Runtime: who notices, and what goes on."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.commands.root import _STOP_S
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor_spec import ExecutorSpec
from edgebox.inference.zoo import bundled_folders
from edgebox.scheduling.supervised import ExecutorState, Supervised
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import configured, finish, serving
from tests.end_to_end.running import (
    assert_counts_agree,
    get_json,
    gone,
    post,
    running,
    streaming,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_open_inference import client_of, images
from tests.end_to_end.test_pipelines import PIPELINE
from tests.inference.unruly_model import (
    FAMILY,
    LOOPING,
    MISLABELLED,
    ORDINARY,
    RAISING,
    STUCK,
    VARIANT,
    compared_within,
    write_family,
)

pytestmark = pytest.mark.usefixtures("few_sizes")

QUERY: dict[str, Any] = {"family": FAMILY, "variant": VARIANT, "deadline_ms": 60_000}
CPU = ExecutorId("cpu/0")
STUCK_S = 8.0
"""Of computing: several times what a box takes to give up what hangs."""
DOCKER_S = 10.0
"""A program that has not ended by then is killed."""


@pytest.fixture
def patient_supervision() -> None:
    """Give up what hangs as soon as a box does that is not tested."""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    return write_family(tmp_path / FAMILY)


@pytest.fixture
async def app(database: Path, family: Path) -> AsyncIterator[App]:
    async with running(database, inference__families=[str(family)]) as app:
        yield app


def supervised(app: App, executor: ExecutorId = CPU) -> Supervised:
    return app.box.driver.scheduler.supervised[executor]


async def metrics(app: App) -> str:
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/metrics") as response:
        return await response.text()


async def test_a_batch_that_hangs_ends_and_its_executor_is_replaced(app: App) -> None:
    assert (await post(app, ORDINARY, QUERY))[0] == 200
    async with asyncio.timeout(PATIENCE_S):
        status, problem = await post(app, LOOPING, QUERY)
    assert (status, problem["code"]) == (503, "failed")
    await until(lambda: supervised(app).restarts == 1, "the executor to be back")
    assert (await post(app, ORDINARY, QUERY))[0] == 200
    # ONNX Runtime could be stopped between two operators: the thread came back and has ended.
    await until(lambda: not supervised(app).abandoned, "the old thread")
    assert any("did not end within" in text for text in texts(app, "error"))
    assert any(text.startswith("cpu/0 is back") for text in texts(app, "info"))
    (executor,) = (await get_json(app, "/v1/state"))[1]["box"]["executors"]
    assert executor["state"] == "up"
    assert executor["restarts"] == 1
    assert VARIANT in executor["last_error"]["text"]
    exposed = await metrics(app)
    assert 'edgebox_executor_up{executor="cpu/0"} 1.0' in exposed
    assert 'edgebox_executor_losses_total{cause="hung",executor="cpu/0"} 1.0' in exposed


async def test_a_batch_that_raises_harms_only_its_own_frames(app: App) -> None:
    for _ in range(2):
        status, problem = await post(app, RAISING, QUERY)
        assert (status, problem["code"]) == (503, "failed")
        assert (await post(app, ORDINARY, QUERY))[0] == 200
    assert supervised(app).losses.total() == 0


async def test_a_label_that_the_family_has_not_fails_its_batch(app: App) -> None:
    status, problem = await post(app, MISLABELLED, QUERY)
    assert (status, problem["code"]) == (503, "failed")
    assert (await post(app, ORDINARY, QUERY))[0] == 200
    (executor,) = (await get_json(app, "/v1/state"))[1]["box"]["executors"]
    assert "label 1, but there are 1 labels" in executor["last_error"]["text"]


async def test_an_executor_that_keeps_failing_is_taken_out_and_tried_again(app: App) -> None:
    for _ in range(3):
        assert (await post(app, RAISING, QUERY))[1]["code"] == "failed"
    await until(lambda: supervised(app).restarts == 1, "the executor to be back")
    assert any("3 batches in a row failed" in text for text in texts(app, "error"))
    assert (await post(app, ORDINARY, QUERY))[0] == 200


async def test_a_model_that_raises_does_not_take_the_executor_from_others(app: App) -> None:
    async with unharmed_bystander(app):
        for _ in range(6):
            assert (await post(app, RAISING, QUERY))[1]["code"] == "failed"
    assert supervised(app).losses.total() == 0


async def test_the_other_executor_goes_on(database: Path, tmp_path: Path) -> None:
    # The thread that hangs outlives the box, and computes beside the tests that follow.
    family = write_family(tmp_path / FAMILY, compared=compared_within(STUCK_S))
    two = [{"device": "cpu", "streams": 2, "threads": 1}]
    async with running(database, inference__families=[str(family)], executors=two) as app:
        async with streaming(app) as camera:
            stuck = asyncio.create_task(post(app, STUCK, QUERY))
            seen = camera.summary().on_time
            await until(lambda: camera.summary().on_time >= seen + 3, "answers meanwhile")
            status, problem = await stuck
            assert (status, problem["code"]) == (503, "failed")
            (lost,) = (of for of in app.box.driver.scheduler.supervised.values() if of.abandoned)
            assert len(lost.abandoned) == 1, "nothing stops this one"
            lines = (await metrics(app)).splitlines()
            shown = [line.rsplit(" ", 1)[1] for line in lines if "abandoned_threads{" in line]
            assert sorted(shown) == ["0.0", "1.0"]
            await until(lambda: lost.state is ExecutorState.UP, "the executor to be back")
            seen = camera.summary().on_time
            await until(lambda: camera.summary().on_time >= seen + 3, "answers afterwards")
        await gone(app, "bystander")
        assert_counts_agree(app, camera.summary())


async def test_the_cpu_stands_in_for_a_gpu_that_is_lost(app: App) -> None:
    # The box believes from here on that this executor was opened on a GPU, which `auto` had found:
    # that it cannot be opened there is as real as its failures.
    opened, spare = app._opened, ExecutorId("cpu/1")
    spec = opened.specs[CPU]
    assert isinstance(spec, ExecutorSpec)
    opened.specs[CPU] = replace(spec, provider="cuda")
    opened.cpu_fallbacks[CPU] = replace(spec, id=spare)
    for _ in range(3):
        assert (await post(app, RAISING, QUERY))[1]["code"] == "failed"
    await until(lambda: spare in app.box.driver.scheduler.supervised, "the stand-in")
    assert (await post(app, ORDINARY, QUERY))[0] == 200
    assert (await get_json(app, "/readyz"))[0] == 200
    assert any("cannot be opened again: CUDA cannot be used" in text for text in texts(app))
    assert any(text.startswith("cpu/1 replaces cpu/0") for text in texts(app))
    async with streaming(app):
        assert supervised(app).state is not ExecutorState.UP
    assert app.failure is None


async def test_the_cpu_stands_in_for_a_gpu_whose_opening_hangs(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, spare = threading.Event(), ExecutorId("cpu/1")
    opened = app._opened
    spec = opened.specs[CPU]
    assert isinstance(spec, ExecutorSpec)
    opened.cpu_fallbacks[CPU] = replace(spec, id=spare)

    def hanging(executor: ExecutorId) -> Any:
        go_on.wait()
        raise EdgeboxError("the driver hung")

    monkeypatch.setattr(app.box.driver.supervisor, "_opener", hanging)
    supervised(app).open_limit_ns = 1
    assert (await post(app, LOOPING, QUERY))[1]["code"] == "failed"
    await until(lambda: spare in app.box.driver.scheduler.supervised, "the stand-in")
    assert supervised(app).state is ExecutorState.WEDGED
    assert (await post(app, ORDINARY, QUERY))[0] == 200
    assert any("opening it again did not end" in text for text in texts(app, "error"))
    assert app.failure is None
    go_on.set()


async def test_what_was_in_memory_is_there_again(database: Path, family: Path) -> None:
    limit: dict[str, Any] = {"inference__memory_limit_mb": 500}
    async with running(database, inference__families=[str(family)], **limit) as app:
        memories = app.box.driver.scheduler.memories
        held = set(memories[CPU].resident)
        assert (await post(app, LOOPING, QUERY))[1]["code"] == "failed"
        await until(lambda: supervised(app).restarts == 1, "the executor to be back")
        assert held <= set(memories[CPU].resident)
        assert (await post(app, ORDINARY, QUERY))[0] == 200


@pytest.fixture
async def opening_waits(app: App, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Have what opens executors wait until a test sets this."""
    opener, looked = app.box.driver.supervisor._opener, asyncio.Event()
    loop = asyncio.get_running_loop()
    assert opener is not None

    def later(executor: ExecutorId) -> Any:
        asyncio.run_coroutine_threadsafe(looked.wait(), loop).result()
        return opener(executor)

    monkeypatch.setattr(app.box.driver.supervisor, "_opener", later)
    return looked


async def test_readiness_tells_while_no_executor_is_up(
    app: App, opening_waits: asyncio.Event
) -> None:
    assert (await get_json(app, "/readyz"))[0] == 200
    status, problem = await post(app, LOOPING, QUERY)
    assert (status, problem["code"]) == (503, "failed")
    assert problem["detail"] == "cpu/0 was lost while it ran this batch: cpu/0 is opening"
    status, document = await get_json(app, "/readyz")
    assert status == 503
    assert document["reason"] == "no executor is up: cpu/0 is opening"
    assert (await get_json(app, "/v2/health/ready"))[0] == 503
    status, problem = await post(app, ORDINARY, QUERY)
    assert (status, problem["code"]) == (503, "failed")
    assert problem["detail"] == "no executor that runs this model is up: cpu/0 is opening"
    opening_waits.set()
    await until(lambda: supervised(app).state is ExecutorState.UP, "the executor to be back")
    assert (await get_json(app, "/readyz"))[0] == 200
    assert (await get_json(app, "/v2/health/ready"))[0] == 200


async def test_a_camera_that_comes_while_no_executor_is_up_is_served_afterwards(
    app: App, opening_waits: asyncio.Event
) -> None:
    assert (await post(app, LOOPING, QUERY))[1]["code"] == "failed"
    remarks: list[str] = []
    async with streaming(app, answered=False, on_remark=remarks.append) as camera:
        await until(lambda: bool(remarks), "a refusal")
        assert remarks[0].startswith("the box refuses for now: street cannot run now: no executor")
        assert app.box.refusals.counts["unavailable"] >= 1
        opening_waits.set()
        await until(lambda: camera.summary().on_time >= 1, "an answer")


async def test_a_family_whose_only_executor_is_wedged_is_told_once(
    database: Path, family: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [{"device": "cpu", "threads": 1} for _ in range(2)]
    tables[1]["families"] = ["street"]
    go_on = threading.Event()

    def hanging(executor: ExecutorId) -> Any:
        go_on.wait()
        raise EdgeboxError("the driver hung")

    async with running(database, inference__families=[str(family)], executors=tables) as app:
        ready = f"/v2/models/{FAMILY}/ready"
        assert (await get_json(app, ready))[0] == 200
        assert await in_memory(app) == {"street": {"cpu/0", "cpu/1"}, FAMILY: {"cpu/0"}}
        monkeypatch.setattr(app.box.driver.supervisor, "_opener", hanging)
        supervised(app).open_limit_ns = 1
        assert (await post(app, LOOPING, QUERY))[1]["code"] == "failed"
        await until(lambda: supervised(app).state is ExecutorState.WEDGED, "the end of it")
        (notices,) = (text for text in texts(app, "error") if text.startswith(FAMILY))
        assert "every executor that runs it is wedged. Start edgebox again" in notices
        status, document = await get_json(app, ready)
        assert (status, document["ready"]) == (503, False)
        assert "cpu/0 is wedged, and only a restart of edgebox helps" in document["error"]
        assert (await get_json(app, "/v2/models/street/ready"))[0] == 200
        assert (await get_json(app, "/readyz"))[0] == 200
        assert await in_memory(app) == {"street": {"cpu/1"}, FAMILY: set()}
        status, problem = await post(app, ORDINARY, QUERY)
        assert (status, problem["code"]) == (503, "failed")
        assert "cpu/0 is wedged" in problem["detail"]
        assert app.failure is None
        go_on.set()


async def test_an_ensemble_is_ready_while_every_stage_can_run(
    tmp_path: Path,
    database: Path,
    family: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (vehicles,) = (folder for folder in bundled_folders() if folder.name == "vehicles")
    file = tmp_path / "edgebox.toml"
    file.write_text(PIPELINE)
    tables = [
        {"device": "cpu", "threads": 1, "families": held}
        for held in (["vehicles", FAMILY], ["street"])
    ]
    families = [str(family), str(vehicles)]
    opens = threading.Event()

    def waiting(executor: ExecutorId) -> Any:
        opens.wait()
        raise EdgeboxError("the test is over")

    jpeg = street_jpeg(11)
    async with (
        running(database, file=file, inference__families=families, executors=tables) as app,
        client_of(app) as client,
    ):
        assert await client.is_model_ready("traffic")
        monkeypatch.setattr(app.box.driver.supervisor, "_opener", waiting)
        assert (await post(app, LOOPING, QUERY))[1]["code"] == "failed"
        status, document = await get_json(app, "/v2/models/traffic/ready")
        assert (status, document["ready"]) == (503, False)
        assert document["error"] == (
            "stage vehicle: no executor that runs this model is up: cpu/0 is opening"
        )
        assert await client.is_model_ready("street")
        # Asked nevertheless, it answers without the stage.
        parameters = {"deadline_ms": 8_000}
        result = await client.infer("traffic", [images(jpeg)], parameters=parameters)
        assert result.as_numpy("counts")[0] > 0
        assert result.as_numpy("missing").tolist() == [b"vehicle"]
        assert set(result.as_numpy("vehicle.variant")[0].tolist()) == {b""}
        opens.set()


async def test_a_file_that_was_changed_is_not_served_when_it_is_opened_anew(
    app: App, family: Path
) -> None:
    with (family / f"{FAMILY}.onnx").open("ab") as file:
        file.write(b"changed")
    assert (await post(app, LOOPING, QUERY))[1]["code"] == "failed"
    await until(lambda: supervised(app).restarts == 1, "the executor to be back")
    (notices,) = (text for text in texts(app, "error") if text.startswith(FAMILY))
    assert notices.startswith(f"{FAMILY} does not run on cpu/0 any more: ")
    assert "sha256 does not match" in notices
    assert (await get_json(app, f"/v2/models/{FAMILY}/ready"))[0] == 503
    assert (await get_json(app, "/v2/models/street/ready"))[0] == 200
    status, problem = await post(app, ORDINARY, QUERY)
    assert (status, problem["code"]) == (503, "failed")
    assert "none has it" in problem["detail"]


async def in_memory(app: App) -> dict[str, set[str]]:
    """Return the executors that hold anything of each family."""
    _, document = await get_json(app, "/v1/models")
    return {
        family["name"]: {
            executor for variant in family["variants"] for executor in variant["in_memory"]
        }
        for family in document["families"]
    }


async def ask(url: str, picture: bytes) -> str:
    """Return the code of the problem that a picture meets; empty: it was answered."""
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/v1/infer", data=picture, params=QUERY) as response,
    ):
        return str((await response.json()).get("code", ""))


def unruly_box(tmp_path: Path, database: Path, family: Path) -> Path:
    return configured(tmp_path, database, f'families = ["{family}"]')


async def test_a_process_whose_executors_all_hang_ends_with_75(
    tmp_path: Path, database: Path, family: Path
) -> None:
    config = unruly_box(tmp_path, database, family)
    async with serving(tmp_path, "--config", str(config)) as (process, url):
        assert await ask(url, ORDINARY) == ""
        async with asyncio.timeout(PATIENCE_S):
            while process.returncode is None:
                try:
                    await ask(url, STUCK)
                except aiohttp.ClientError:
                    break
        ended = await finish(process)
    assert ended.code == 75, ended.err
    assert "no executor is left" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("picture", [LOOPING, STUCK], ids=["looping", "stuck"])
async def test_a_process_ends_in_time_while_a_batch_hangs(
    tmp_path: Path, database: Path, family: Path, picture: bytes
) -> None:
    config = unruly_box(tmp_path, database, family)
    async with serving(tmp_path, "--config", str(config)) as (process, url):
        hanging = asyncio.create_task(ask(url, picture))
        await asyncio.sleep(0.3)  # on its way: whether it runs already makes no difference
        process.send_signal(signal.SIGTERM)
        # The old thread never comes back: what ends the process is the box's own patience.
        assert _STOP_S < DOCKER_S
        ended = await finish(process)
        await asyncio.gather(hanging, return_exceptions=True)
    assert ended.code == 0, ended.err
