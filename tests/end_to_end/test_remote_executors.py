"""Executors elsewhere: a second real box, and a server of the public protocol; real sockets."""

import asyncio
import contextlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.access import Scope
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import CameraId
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import PROVIDER, OpenInferenceSpec
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import encode
from edgebox.runtime import frame_decoder, preparation
from edgebox.runtime.frames import PendingFrame
from edgebox.scheduling.supervised import ExecutorState
from edgebox.scheduling.supervision import REFUSALS_MAX
from tests.conftest import PATIENCE_S
from tests.end_to_end.protocol_server import ProtocolServer
from tests.end_to_end.running import (
    CLOSED,
    assert_adds_up,
    assert_counts_agree,
    free_port,
    get_json,
    gone,
    new_token,
    post,
    running,
    streaming,
    texts,
    until,
)
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_live_models import imported
from tests.end_to_end.test_residency import family_of_files
from tests.end_to_end.wire import jpeg_claiming

pytestmark = pytest.mark.usefixtures("no_other_families")

QUERY = {"deadline_ms": 30_000}
LOCAL = {"device": "cpu"}


def elsewhere(url: str, **keys: Any) -> dict[str, Any]:
    return {"kind": "open_inference", "url": url, **keys}


@pytest.fixture
def gate(tmp_path: Path) -> dict[str, Any]:
    """Return the configuration of a box with one family of one size, which runs on two boxes."""
    folder = family_of_files(tmp_path / "gate", "gate", (96,))
    return {"inference__families": [str(folder)], "inference__family": "gate"}


@pytest.fixture
def server(gate: dict[str, Any]) -> ProtocolServer:
    (folder,) = gate["inference__families"]
    return ProtocolServer({"gate_gate-96": Path(folder) / "gate-96.onnx"})


@pytest.fixture
def decoded_by(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the pools of canvases that pictures were decoded for, one entry each."""
    pools: list[object] = []
    original = preparation.prepare

    def noted(frame: PendingFrame, variant: Any, canvases: Any) -> None:
        pools.append(canvases)
        original(frame, variant, canvases)

    monkeypatch.setattr(frame_decoder, "prepare", noted)
    return pools


def name_of(url: str) -> ExecutorId:
    return ExecutorId(url.partition("://")[2] + "/0")


def state_of(app: App, url: str) -> ExecutorState | None:
    supervised = app.box.driver.scheduler.supervised.get(name_of(url))
    return None if supervised is None else supervised.state


def batches_of(app: App, url: str) -> int:
    meter = app.box.driver.measurements.meters.get(name_of(url))
    return 0 if meter is None else meter.batches.total()


async def burst(app: App, pictures: int = 12) -> Counter[int]:
    """Post pictures at the same time, so that every executor gets some; return the statuses."""
    answers = await asyncio.gather(*(post(app, street_jpeg(3), QUERY) for _ in range(pictures)))
    return Counter(status for status, _ in answers)


async def until_it_runs(app: App, url: str) -> None:
    await until(lambda: state_of(app, url) is ExecutorState.UP, "it to be measured, or tried again")
    before = batches_of(app, url)
    async with asyncio.timeout(PATIENCE_S):
        while batches_of(app, url) == before:
            assert set(await burst(app)) <= {200, 503}
            await asyncio.sleep(0.1)


async def until_it_is_lost(app: App, url: str) -> str:
    """Return why. It may be back before anybody looks."""
    losses, name = app.box.driver.supervisor.last_losses, name_of(url)
    before = losses.get(name)
    async with asyncio.timeout(PATIENCE_S):
        while state_of(app, url) is ExecutorState.UP and losses.get(name) is before:
            assert set(await burst(app)) <= {200, 503}
            await asyncio.sleep(0.1)
    return losses[name]


def _answered(camera: Camera, count: int) -> bool:
    return camera.summary().on_time >= count


async def test_pictures_travel_as_they_arrived_and_are_decoded_there(
    database: Path, tmp_path: Path, gate: dict[str, Any], decoded_by: list[object]
) -> None:
    async with running(
        tmp_path / "there.sqlite3", **gate, **CLOSED, server__tls="self-signed"
    ) as there:
        assert there.fingerprint is not None
        token_file = tmp_path / "token"
        token_file.write_text(token := await new_token(there, Scope.CAMERA, "hall"))
        table = elsewhere(there.url, token_file=str(token_file), fingerprint=there.fingerprint)
        async with running(database, executors=[table], **gate) as here:
            _, state = await get_json(here, "/v1/state")
            (executor,) = state["box"]["executors"]
            assert executor["provider"] == PROVIDER
            assert executor["id"] == name_of(there.url)
            status, found = await post(here, street_jpeg(3), QUERY)
            query = {**QUERY, "variant": found["variant"]}
            authorization = {"Authorization": f"Bearer {token}"}
            _, native = await post(there, street_jpeg(3), query, headers=authorization, ssl=False)
            assert status == 200
            assert found["detections"] == native["detections"]
            assert len(found["detections"]) > 1
            # One that only the decoder finds out about costs itself alone, however often it comes.
            for _ in range(4):
                status, refused = await post(here, jpeg_claiming(64, 64), QUERY)
                assert status == 400, refused
            assert state_of(here, there.url) is ExecutorState.UP
            async with streaming(here) as camera:
                await until(lambda: camera.summary().on_time >= 5, "answers")
            await gone(here, "bystander")
            assert_counts_agree(here, camera.summary())
            assert decoded_by
            assert set(map(id, decoded_by)) == {id(there.box.driver._canvases)}


async def test_a_picture_that_is_too_large_for_the_other_box_costs_itself_alone(
    database: Path, tmp_path: Path, gate: dict[str, Any]
) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (480, 640, 3), np.uint8)
    small, large = street_jpeg(3), encode(noise)
    assert len(large) > len(small)
    limit = len(large) - 1
    async with (
        running(tmp_path / "there.sqlite3", **gate, limits__frame_bytes_max=limit) as there,
        running(database, executors=[elsewhere(there.url)], **gate) as here,
    ):
        for _ in range(4):
            asked = [post(here, jpeg, QUERY) for jpeg in (large, *([small] * 11))]
            (too_large, said), *others = await asyncio.gather(*asked)
            assert {status for status, _ in others} == {200}
            assert (too_large, said["code"]) == (503, "failed")
            assert f"{len(large)} bytes are more than the {limit} that the other" in said["detail"]
        assert state_of(here, there.url) is ExecutorState.UP


async def test_a_box_that_is_lost_costs_nothing_but_itself_and_comes_back(
    database: Path, tmp_path: Path, gate: dict[str, Any]
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    there = tmp_path / "there.sqlite3"
    async with running(database, executors=[LOCAL, elsewhere(url)], **gate) as here:
        assert any("is tried again" in text for text in texts(here, "error"))
        assert (await burst(here)) == {200: 12}
        async with streaming(here) as camera:
            for _ in range(2):
                async with running(there, server__port=port, **gate):
                    await until_it_runs(here, url)
                await until_it_is_lost(here, url)
                least = camera.summary().on_time + 3
                await until(partial(_answered, camera, least), "local answers")
        await gone(here, "bystander")
        assert_counts_agree(here, camera.summary())
        assert set(camera.summary().dropped) <= {"sender", "plan", "failed"}


async def test_what_a_server_is_given_before_it_is_killed_is_answered_here(
    database: Path, gate: dict[str, Any], server: ProtocolServer
) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(server.serving())
        url = server.url
        async with (
            running(database, executors=[LOCAL, elsewhere(url, streams=2)], **gate) as here,
            streaming(here) as camera,
        ):
            await until_it_runs(here, url)
            server.running.clear()
            pictures = asyncio.create_task(burst(here, 24))
            core = here.box.driver.scheduler
            await until(lambda: name_of(url) in core.running, "a batch that it has")
            await asyncio.to_thread(stack.close)
            assert await pictures == {200: 24}
            assert here.box.driver.supervisor.last_losses[name_of(url)].endswith(
                f"{url} cannot be reached: connection refused"
            )
            least = camera.summary().on_time + 3
            await until(partial(_answered, camera, least), "local answers")
        await gone(here, "bystander")
        assert_counts_agree(here, camera.summary())
        assert set(camera.summary().dropped) <= {"sender", "plan"}


async def test_a_token_is_exchanged_while_the_box_serves(
    database: Path, tmp_path: Path, gate: dict[str, Any]
) -> None:
    async with running(tmp_path / "there.sqlite3", **gate, **CLOSED) as there:
        token_file = tmp_path / "token"
        old, text = await there.access.issue("old", Scope.CAMERA, CameraId("hall"))
        token_file.write_text(text)
        table = elsewhere(there.url, token_file=str(token_file))
        async with running(database, executors=[LOCAL, table], **gate) as here:
            await until_it_runs(here, there.url)
            token_file.write_text(await new_token(there, Scope.CAMERA, "stairs"))
            await there.access.revoke(old.id)
            assert "refuses the token" in await until_it_is_lost(here, there.url)
            await until_it_runs(here, there.url)


async def test_tensors_travel_to_any_other_server(
    database: Path, gate: dict[str, Any], server: ProtocolServer, tmp_path: Path
) -> None:
    server.token = "secret"
    token_file = tmp_path / "token"
    token_file.write_text("secret\n")
    async with running(tmp_path / "local.sqlite3", executors=[LOCAL], **gate) as local:
        _, wanted = await post(local, street_jpeg(3), QUERY)
    with server.serving():
        table = elsewhere(server.url, token_file=str(token_file), families=["gate"])
        async with running(database, executors=[table], **gate) as here:
            before = server.batches
            status, found = await post(here, street_jpeg(3), QUERY)
            assert status == 200
            assert found["detections"] == wanted["detections"]
            assert server.batches == before + 1
            for _ in range(4):
                assert (await post(here, jpeg_claiming(64, 64), QUERY))[0] == 400
            assert await burst(here) == {200: 12}


async def test_a_server_that_hangs_or_refuses_is_left_out_and_local_executors_take_over(
    database: Path, gate: dict[str, Any], server: ProtocolServer, quick_supervision: None
) -> None:
    with server.serving():
        url = server.url
        async with (
            running(database, executors=[LOCAL, elsewhere(url)], **gate) as here,
            streaming(here) as camera,
        ):
            await until_it_runs(here, url)
            server.running.clear()
            assert "did not end within" in await until_it_is_lost(here, url)
            assert await burst(here) == {200: 12}
            server.running.set()
            await until_it_runs(here, url)
            server.refusal, server.refusal_code = 503, "overload"
            why = await until_it_is_lost(here, url)
            assert f"refused {REFUSALS_MAX} batches in a row" in why, "few are no reason"
            server.refusal = 0
            await until_it_runs(here, url)
            server.refusal, server.refusal_code = 503, ""
            assert "too much to do" in await until_it_is_lost(here, url)
            assert await burst(here) == {200: 12}
            server.refusal = 0
        summary = camera.summary()
        assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)


async def test_a_box_is_ready_before_a_server_that_was_never_measured(
    database: Path, gate: dict[str, Any], server: ProtocolServer
) -> None:
    with server.serving():
        server.running.clear()  # whoever waits for it waits for ever
        table = elsewhere(server.url, streams=2)
        async with running(database, executors=[LOCAL, table], **gate) as here:
            assert here.ready_s is not None
            assert state_of(here, server.url) is None
            assert texts(here, "error") == []
            assert await burst(here) == {200: 12}
            server.running.set()
            await until_it_runs(here, server.url)
            second = ExecutorId(name_of(server.url).replace("/0", "/1"))
            await until(lambda: second in here.box.profiles, "the second connection")
            first = here.box.profiles[name_of(server.url)]
            assert {name: of.quantiles_ns for name, of in first.items()} == {
                name: of.quantiles_ns for name, of in here.box.profiles[second].items()
            }, "one of them is measured"
            learning = here._remembered_learning
            assert learning is not None
            both = {(name_of(server.url), "gate-96"), (second, "gate-96")}
            await until(lambda: both <= learning._on.keys(), "what is learned of both to be kept")
        async with running(database, executors=[LOCAL, table], **gate) as again:
            assert state_of(again, server.url) is ExecutorState.UP, "its times are known"


@pytest.mark.usefixtures("few_sizes")
async def test_a_family_that_is_imported_meanwhile_runs_on_the_other_box_at_once(
    database: Path, tmp_path: Path, gate: dict[str, Any]
) -> None:
    theirs: dict[str, Any] = {
        "inference__models": str(tmp_path / "theirs"), "access__open_scope": "admin", **gate
    }  # fmt: skip
    async with running(tmp_path / "there.sqlite3", **theirs) as there:
        table = elsewhere(there.url)
        async with running(
            database, executors=[LOCAL, table], **gate, access__open_scope="admin"
        ) as here:
            await until(lambda: state_of(here, there.url) is ExecutorState.UP, "the other box")
            await imported(here, "alone")
            (told,) = texts(here, "warning")
            assert told.startswith(f"alone does not run on {name_of(there.url)}: the server has no")
            await imported(there)
            await imported(here)
            assert {name_of(there.url), "cpu/0"} == {
                executor
                for executor, of in here.box.profiles.items()
                if any(name.startswith("tiny-") for name in of)
            }
            query, ran_there = {**QUERY, "family": "tiny"}, there.box.driver.measurements.meters
            before = ran_there[ExecutorId("cpu/0")].batches.total()
            async with asyncio.timeout(PATIENCE_S):
                while ran_there[ExecutorId("cpu/0")].batches.total() == before:
                    answers = [post(here, street_jpeg(3), query) for _ in range(8)]
                    assert {status for status, _ in await asyncio.gather(*answers)} == {200}


async def test_each_mistake_is_one_clear_error_and_local_service_goes_on(
    database: Path, tmp_path: Path, gate: dict[str, Any], server: ProtocolServer
) -> None:
    other = family_of_files(tmp_path / "x" / "gate", "gate", (128,))
    yard = family_of_files(tmp_path / "yard", "yard", (64,))
    token_file = tmp_path / "token"
    token_file.write_text("edgebox_wrong")
    server.token = "secret"
    async with (
        running(
            tmp_path / "1.sqlite3", inference__families=[str(other)], inference__family="gate"
        ) as of_other_hash,
        running(
            tmp_path / "2.sqlite3", inference__families=[str(yard)], inference__family="yard"
        ) as of_other_family,
        running(tmp_path / "3.sqlite3", **gate, **CLOSED) as closed,
        running(tmp_path / "4.sqlite3", **gate) as of_other_version,
    ):
        of_other_version.box.version = "9.9.0"
        with server.serving():
            wrong = {
                of_other_hash.url: "another family of this name",
                of_other_family.url: "no model family 'gate'",
                closed.url: "refuses the token",
                of_other_version.url: "is edgebox 9.9.0",
                server.url: "refuses the token of this executor (token_file): who are you?",
                "http://127.0.0.1:1": "cannot be reached",
            }
            tables = [
                elsewhere(url, token_file=str(token_file) if "token" in why else "")
                for url, why in wrong.items()
            ]
            async with running(database, executors=[LOCAL, *tables], **gate) as here:
                errors = texts(here, "error")
                for url, why in wrong.items():
                    (error,) = [text for text in errors if name_of(url) in text]
                    assert why in error
                assert len(errors) == len(wrong)
                assert await burst(here) == {200: 12}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"inputs": []}, "does not say which inputs"),
        ({"inputs": None}, "does not say which inputs"),
        ({"outputs": []}, "does not say which outputs"),
        ({"outputs": [{"name": "other"}]}, "the server has no output"),
        ({"inputs": [{"name": "images"}, {"name": "more"}]}, "the server wants 2 inputs"),
        (
            {"inputs": [{"name": "images", "datatype": "FP64", "shape": [-1, -1, -1, 3]}]},
            "here and FP64 there",
        ),
        (
            {"inputs": [{"name": "images", "datatype": "UINT8", "shape": [-1, -1, -1]}]},
            "here, [-1, -1, -1] there",
        ),
    ],
)
def test_what_differs_in_the_metadata_is_named(
    gate: dict[str, Any], server: ProtocolServer, changes: dict[str, Any], why: str
) -> None:
    family = load_family(Path(gate["inference__families"][0]))
    server.changes = changes
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        with pytest.raises(ModelError) as raised:
            open_executor(spec, [family])
        assert why in str(raised.value)
