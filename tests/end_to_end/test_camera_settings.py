"""Settings over a camera's hello, by REST: at once, for good, and without losing a frame."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.domain.access import Scope
from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.box_address import authorization
from edgebox.link.messages import AdviceMessage, Welcome
from edgebox.link.site_inference import SiteInference
from edgebox.runtime.replay import replay_file
from tests.end_to_end.running import (
    CLOSED,
    SLO_MS,
    assert_adds_up,
    assert_counts_agree,
    counts_of,
    get_json,
    gone,
    running,
    streaming,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.wire import WireCamera

pytestmark = pytest.mark.usefixtures("few_sizes")

GATE = CameraId("gate")
JSON_BODY = {"Content-Type": "application/json"}
PACKED = {**JSON_BODY, "Content-Encoding": "gzip"}
Told = tuple[int, dict[str, Any]]


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    async with running(database) as app:
        yield app


async def ask(app: App, method: str, path: str, **options: Any) -> Told:
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, app.url + path, **options) as response,
    ):
        return response.status, await response.json(content_type=None) or {}


async def change(on: App, /, **settings: Any) -> dict[str, Any]:
    status, document = await ask(on, "PATCH", "/v1/cameras/gate", json=settings)
    assert status == 200, document
    return document


async def test_a_lower_rate_holds_at_once_and_null_takes_it_back(app: App) -> None:
    async with streaming(app, "gate", rate_hz=20.0) as camera:
        document = await change(app, rate_hz=4)
        assert document["overrides"] == {
            "slo_ms": None, "rate_hz": 4, "app": None, "min_accuracy": None, "site": None,
            "pipeline": None, "family": None,
            "tracking": None, "zones": None, "lines": None,
        }  # fmt: skip
        assert (document["requested"]["rate_hz"], document["in_force"]["rate_hz"]) == (20, 4)
        assert app.box.driver.scheduler.advice[GATE].rate_hz <= 4

        def advised_hz() -> float:
            advice = camera.status().advice
            return advice.rate_hz if advice else 0.0

        await until(lambda: advised_hz() <= 4, "the camera to hear of it")
        sent, began_s = camera.status().sent, time.monotonic()
        captured = camera.summary().captured
        await until(lambda: camera.summary().captured >= captured + 30, "frames to be left out")
        most = 4 * (time.monotonic() - began_s) + 3
        assert camera.status().sent - sent <= most, "4 a second, and what was on its way"
        await change(app, rate_hz=None)
        await until(lambda: advised_hz() > 4, "the plan to give it more")
    await gone(app, "gate")
    assert camera.summary().reconnects == 0
    assert_counts_agree(app, camera.summary())
    notices = [text for text in texts(app) if "set on the box" in text]
    assert notices == [
        "gate was set on the box: rate_hz 4.0",
        "gate was set on the box: nothing any more",
    ]


async def test_a_deadline_reaches_the_camera_and_every_frame_still_ends_once(app: App) -> None:
    async with unharmed_bystander(app), streaming(app, "gate", rate_hz=20.0) as camera:
        for slo_ms in (900, 5, None, 60_000, 400):
            await change(app, slo_ms=slo_ms)
            expected = SLO_MS if slo_ms is None else slo_ms
            await until(lambda e=expected: camera.summary().slo_ms == e, f"{expected} ms")  # type: ignore[misc]
            captured = camera.summary().captured
            await until(lambda c=captured: camera.summary().captured >= c + 5, "frames")  # type: ignore[misc]
        state = (await get_json(app, "/v1/state"))[1]
        assert {c["id"]: c["slo_ms"] for c in state["cameras"]}["gate"] == 400
    await gone(app, "gate")
    summary = camera.summary()
    assert summary.reconnects == 0
    assert summary.dropped, "5 ms are too few for anything"
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
    assert counts_of(app, "gate").pending == 0
    assert counts_of(app, "gate").captured == summary.captured


async def test_the_wire_says_the_deadline_in_force(app: App) -> None:
    async with WireCamera(app) as camera:
        assert (await camera.wait_for(Welcome)).slo_ms is None
        await change(app, slo_ms=150.5)
        advice = await camera.wait_for(AdviceMessage, lambda message: message.slo_ms is not None)
        assert advice.slo_ms == 150.5
        camera.received.clear()
        await change(app, slo_ms=None)
        await camera.wait_for(AdviceMessage, lambda message: message.slo_ms is None)
        await camera.result(await camera.frame())


async def test_cameras_of_a_site_share_what_is_believed_of_their_uplink(app: App) -> None:
    async with (
        streaming(app, "gate", site="yard"),
        streaming(app, "door", site="yard"),
        streaming(app, "roof"),
    ):
        gate, door, roof = (app.box.cameras[CameraId(name)] for name in ("gate", "door", "roof"))
        now_ns = app.box.driver.clock_ns()
        assert gate.link.bandwidth.bps(now_ns) == door.link.bandwidth.bps(now_ns) is not None
        assert gate.link.bandwidth.newest() == door.link.bandwidth.newest()
        document = await change(app)
        assert document["in_force"]["site"] == document["requested"]["site"] == "yard"
        assert document["state"]["site"] == {"name": "yard", "inferred": False}
        await change(app, site="gate")
        roofs_ns = app.box.driver.clock_ns()
        assert gate.camera.site == "gate"
        assert gate.link.bandwidth.bps(roofs_ns) is not None  # it takes its own frames along
        await until(
            lambda: gate.link.bandwidth.newest() != door.link.bandwidth.newest(),
            "frames of its own uplink",
        )
        door_bps = door.link.bandwidth.bps(roofs_ns)
        assert door_bps is not None
        assert roof.camera.site is None
        await change(app, site=None)
        assert gate.link.bandwidth.newest() == door.link.bandwidth.newest()
    status, found = await ask(app, "PATCH", "/v1/cameras/gate", json={"site": "a b"})
    assert status == 400, found


async def test_a_site_that_was_found_is_told_and_shown(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with streaming(app, "gate"), streaming(app, "door"):
        found = dict.fromkeys((GATE, CameraId("door")), SiteId("(127.0.0.1)"))
        news: list[dict[CameraId, SiteId]] = [found]
        monkeypatch.setattr(SiteInference, "take_updates", lambda of: news.pop() if news else {})
        gate, door = (app.box.cameras[camera] for camera in found)
        await until(lambda: gate.camera.site == "(127.0.0.1)", "a frame")
        document = (await get_json(app, "/v1/cameras/gate"))[1]
        assert document["state"]["site"] == {"name": "(127.0.0.1)", "inferred": True}
        assert (document["requested"]["site"], document["in_force"]["site"]) == (
            None,
            "(127.0.0.1)",
        )
        assert gate.link.bandwidth.newest() == door.link.bandwidth.newest()
        assert any("door shares the uplink" in event.text for event in app.box.notices.recent)
        await change(app, site="own")
        assert (gate.camera.site, gate.inferred) == ("own", None)


async def test_settings_hold_after_reconnecting_and_after_a_restart(database: Path) -> None:
    async with running(database) as app:
        async with WireCamera(app, rate_hz=20.0):
            await change(app, slo_ms=700, rate_hz=3, app="door", min_accuracy=0.2)
        await gone(app, "gate")
        async with WireCamera(app, rate_hz=20.0) as again:
            welcome = await again.wait_for(Welcome)
            assert (welcome.slo_ms, welcome.advice.rate_hz) == (700, 3)
    async with running(database) as app:
        status, before = await get_json(app, "/v1/cameras/gate")
        assert (status, before["connected"], before["state"]) == (200, False, None)
        assert before["requested"]["slo_ms"] == SLO_MS
        async with WireCamera(app, rate_hz=20.0) as later:
            welcome = await later.wait_for(Welcome)
            assert (welcome.slo_ms, welcome.advice.rate_hz) == (700, 3)
            camera = app.box.cameras[GATE].camera
            assert (camera.app, camera.min_accuracy) == ("door", 0.2)
            await change(app, slo_ms=None, rate_hz=None, app=None, min_accuracy=None)
            assert app.box.cameras[GATE].camera == app.box.cameras[GATE].requested


async def test_a_camera_that_has_left_can_be_set_for_its_return(app: App) -> None:
    async with WireCamera(app):
        pass
    await gone(app, "gate")
    assert (await change(app, slo_ms=250))["in_force"]["slo_ms"] == 250
    async with WireCamera(app) as camera:
        assert (await camera.wait_for(Welcome)).slo_ms == 250


async def test_a_journal_with_changed_settings_replays(app: App, tmp_path: Path) -> None:
    async with streaming(app, "gate") as camera:
        for slo_ms in (500, 50, None):
            await change(app, slo_ms=slo_ms, rate_hz=slo_ms and 9)
            captured = camera.summary().captured
            await until(lambda c=captured: camera.summary().captured >= c + 3, "frames")  # type: ignore[misc]
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{app.url}/v1/journal") as response,
        ):
            file = tmp_path / "journal.jsonl.gz"
            file.write_bytes(await response.read())
    replayed = await asyncio.to_thread(replay_file, file, camera="gate")
    assert replayed.replay.events["CameraChanged"] == 3
    assert replayed.replay.differences == []
    assert sum("was changed on the box" in line for line in replayed.stories[0]) == 3


async def test_settings_may_come_compressed(app: App) -> None:
    async with WireCamera(app):
        body = gzip.compress(orjson.dumps({"slo_ms": 450}))
        status, camera = await ask(app, "PATCH", "/v1/cameras/gate", data=body, headers=PACKED)
        assert (status, camera["in_force"]["slo_ms"]) == (200, 450)


async def test_nobody_undoes_what_somebody_else_set_meanwhile(app: App) -> None:
    yard = {"name": "yard", "points": [[0, 0], [1, 0], [1, 1]]}
    async with WireCamera(app):
        began = (await get_json(app, "/v1/cameras/gate"))[1]["versions"]
        after = await change(app, zones=[yard], base=began)
        for field in ("zones", "lines"):  # these share their names: one setting
            status, problem = await ask(
                app, "PATCH", "/v1/cameras/gate", json={field: [], "slo_ms": 9, "base": began}
            )
            assert (status, problem["code"]) == (409, "settings_changed")
            assert problem["detail"] == (
                "settings of gate were changed meanwhile: zones and lines; load what is set now, "
                "then change it again"
            )
        overrides = (await get_json(app, "/v1/cameras/gate"))[1]["overrides"]
        assert overrides == after["overrides"], "of what is refused nothing is taken"
        # Another setting, the same once more, with what is set now, and without saying.
        await change(app, slo_ms=900, base=began)
        await change(app, zones=[yard], base=began)
        await change(app, zones=[], base=after["versions"])
        await change(app, zones=[yard])
        await change(app, zones=None, base=None)


async def test_versions_are_the_same_after_a_restart_and_where_settings_are(
    database: Path,
) -> None:
    async with running(database) as app:
        async with WireCamera(app):
            nothing = (await get_json(app, "/v1/cameras/gate"))[1]["versions"]
            before = (await change(app, rate_hz=7, zones=[]))["versions"]
        assert {name for name in before if before[name] != nothing[name]} == {
            "rate_hz", "zones", "lines"
        }  # fmt: skip
    async with running(database) as app:
        (listed,) = (await get_json(app, "/v1/cameras"))[1]["cameras"]
        assert listed["versions"] == before
        assert (await change(app, rate_hz=None, zones=None, base=before))["versions"] == nothing


async def test_who_changed_it_meanwhile_is_told(database: Path) -> None:
    async with running(database, **CLOSED) as app, streaming(app, "gate"):
        _, ann = await app.access.issue("Ann", Scope.OPERATOR, None)
        _, bob = await app.access.issue("Bob", Scope.OPERATOR, None)
        base = (await get_json(app, "/v1/cameras/gate", bob))[1]["versions"]
        for who, expected in ((ann, 200), (bob, 409)):
            status, answer = await ask(
                app, "PATCH", "/v1/cameras/gate", headers=authorization(who),
                json={"family": None if who is bob else "street", "slo_ms": 77, "base": base},
            )  # fmt: skip
            assert status == expected
        assert "changed meanwhile: pipeline and family by Ann; load" in answer["detail"]


@pytest.mark.parametrize(
    ("path", "options", "error", "message"),
    [
        ("yard", {"json": {"slo_ms": 9}}, "404 unknown", "knows no camera 'yard'"),
        ("gate", {"json": {"slo_ms": 0}}, "400 invalid", "slo_ms must be a number from 1 to 60000"),
        ("gate", {"json": {"speed": 1}}, "400 invalid", "settings.speed is not known"),
        ("gate", {"json": {"base": 7}}, "400 invalid", "settings.base must be an object"),
        ("gate", {"json": {"base": {"zones": 7}}}, "400 invalid", "settings.base.zones must be"),
        ("gate", {"json": {"base": {"speed": "7"}}}, "400 invalid", "base.speed is not known"),
        ("gate", {"json": [1]}, "400 invalid", "the body must be a JSON object, not [1]"),
        ("gate", {"json": {"app": "x" * 70_000}}, "413 too_large", "at most 65536 bytes"),
        ("gate?force=1", {"json": {}}, "400 invalid", "there is no parameter 'force'"),
        ("gate", {"data": {"slo_ms": "9"}}, "415 content_type", "must be application/json"),
        (
            "gate",
            {"json": {"slo_ms": 9}, "headers": {"Origin": "https://evil.example"}},
            "403 foreign_origin",
            "https://evil.example",
        ),
        (
            "gate",
            {"data": b"{", "headers": {"Content-Type": "application/json"}},
            "400 invalid",
            "the body must be JSON",
        ),
        (
            "gate",
            {"data": gzip.compress(bytes(70_000)), "headers": PACKED},
            "413 too_large",
            "at most 65536 bytes",
        ),
        (
            "gate",
            {"data": b"{}", "headers": PACKED},
            "400 invalid",
            "does not match its Content-Encoding",
        ),
    ],
)
async def test_what_cannot_be_set_is_told_why_and_changes_nothing(
    app: App, path: str, options: dict[str, Any], error: str, message: str
) -> None:
    async with WireCamera(app):
        status, problem = await ask(app, "PATCH", f"/v1/cameras/{path}", **options)
        assert f"{status} {problem['code']}" == error
        assert message in problem["detail"]
        assert app.box.cameras[GATE].camera == app.box.cameras[GATE].requested


async def test_a_camera_is_forgotten_once_it_has_gone(app: App) -> None:
    async with unharmed_bystander(app):
        async with WireCamera(app) as camera:
            await camera.result(await camera.frame())
            await change(app, slo_ms=500)
            status, problem = await ask(app, "DELETE", "/v1/cameras/gate")
            assert (status, problem["code"]) == (409, "camera_connected")
        await gone(app, "gate")
        await until(lambda: counts_of(app, "gate").pending == 0, "its frames to end")
        total = app.box.metrics.total().captured
        assert (await ask(app, "DELETE", "/v1/cameras/gate"))[0] == 204
        assert (await ask(app, "GET", "/v1/cameras/gate"))[0] == 404
        assert (await ask(app, "DELETE", "/v1/cameras/gate"))[0] == 404
        assert app.box.metrics.total().captured >= total, "the box's own counts stay"
        events = (await get_json(app, "/v1/events?camera=gate"))[1]["events"]
        assert events == []
        async with WireCamera(app) as camera:
            assert (await camera.wait_for(Welcome)).slo_ms is None


async def test_a_change_whose_body_comes_after_its_camera_was_forgotten_sets_nothing(
    app: App,
) -> None:
    async with WireCamera(app) as camera:
        await camera.result(await camera.frame())
    await gone(app, "gate")
    await until(lambda: counts_of(app, "gate").pending == 0, "its frames to end")
    begun, forgotten = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"slo'
        begun.set()
        await forgotten.wait()
        yield b'_ms": 500}'

    changing = asyncio.create_task(
        ask(app, "PATCH", "/v1/cameras/gate", data=body(), headers=JSON_BODY)
    )
    await begun.wait()
    assert (await ask(app, "GET", "/v1/cameras/gate"))[0] == 200
    assert (await ask(app, "DELETE", "/v1/cameras/gate"))[0] == 204
    forgotten.set()
    status, problem = await changing
    assert (status, problem.get("code")) == (404, "unknown")
    assert GATE not in app.box.overrides


async def test_events_come_in_pages_newest_first(app: App) -> None:
    for number in range(7):
        app.box.notices.publish(
            "warning" if number % 2 else "info", f"event {number}", f"c{number % 3}"
        )
    seen: list[str] = []
    query: str | None = "limit=3"
    while query is not None:
        page = (await get_json(app, f"/v1/events?{query}"))[1]
        assert len(page["events"]) <= 3
        seen += [event["text"] for event in page["events"]]
        before = page["next_before"]
        query = None if before is None else f"limit=3&before={before}"
    assert seen[:7] == [f"event {number}" for number in range(6, -1, -1)]
    warnings = (await get_json(app, "/v1/events?level=warning&camera=c0"))[1]["events"]
    assert [event["text"] for event in warnings] == ["event 3"]


@pytest.mark.all_sizes
async def test_the_plan_the_models_and_the_system_agree_with_the_state(app: App) -> None:
    async with streaming(app, "gate"):
        await until(lambda: app.box.last_plan.plan is not None, "a plan")
        plan = None
        while plan != (plan := (await get_json(app, "/v1/plan"))[1]["assignments"]):
            # Until nothing was planned again while the others were asked.
            state = (await get_json(app, "/v1/state"))[1]
            models = (await get_json(app, "/v1/models"))[1]
    (given,) = plan
    advice = state["cameras"][0]["advice"]
    assert given["camera"] == "gate"
    assert (given["variant"], given["reason"]) == (advice["variant"], advice["reason"])
    (street,) = models["families"]
    assert street["name"] == models["default"] == state["box"]["family"]
    assert {v["name"]: v["cameras"] for v in street["variants"]}[given["variant"]] == 1
    for variant in street["variants"]:
        for times in variant["profiles"]["cpu/0"].values():
            assert times == sorted(times)
            assert len(times) == len(models["quantiles"])
    system = (await get_json(app, "/v1/system"))[1]
    assert system["edgebox"] == state["box"]["version"]
    assert system["storage"]["rows"]["cameras"] == 1
    assert system["storage"]["database_bytes"] > 0
    assert system["storage"]["free_bytes"] > 0


async def test_a_camera_is_not_forgotten_before_its_frames_have_ended(app: App) -> None:
    async with WireCamera(app) as camera:
        await camera.result(await camera.frame())
        now_ns = app.box.driver.clock_ns()
        app.box.metrics.of(GATE).captured(1, 0, now_ns)  # as if one more were running
    await gone(app, "gate")
    status, problem = await ask(app, "DELETE", "/v1/cameras/gate")
    assert (status, problem["code"]) == (409, "camera_connected")
    assert "still running" in problem["detail"]
