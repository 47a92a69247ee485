"""Who may read what a box says of itself and of its fleet."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from edgebox.commands.fleet_boxes import fleet
from edgebox.config.config_file import load
from edgebox.domain.access import Identity, Login, Scope
from edgebox.domain.errors import ConfigError
from edgebox.domain.overrides import Overrides
from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName, BoxReport, Service
from edgebox.fleet.replicated_settings import BUCKETS, NOTHING, ReplicatedSettings
from edgebox.fleet.report_document import decoded
from edgebox.fleet.settings_documents import (
    comparison,
    read_settings,
    read_versions,
    settings_answer,
    wish,
)
from edgebox.fleet.ticket import LOGIN_S, answer_signature, box_ticket, camera_ticket
from edgebox.link.box_address import authorization
from edgebox.link.fleet_messages import OtherBoxes, Redirect
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.runtime.access_control import AccessControl, new_token
from edgebox.storage.access_store import AccessStore
from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.storage.periods import Period
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.web import fleet_exchange, fleet_settings
from edgebox.web.fleet import fleet_member
from edgebox.web.fleet_exchange import FleetExchange, boxes_behind, one_for_each
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_requests import SIGNATURE, FleetRequestError, answer_of, explained
from edgebox.web.fleet_settings import FleetSettings
from edgebox.web.routes import JSON
from edgebox.web.server import Server
from edgebox.web.web_context import WebContext
from tests.end_to_end.running import until
from tests.web.sites import site_of

SECRET = "shared by the boxes of this test"


def ticket_of(camera: str, token: str, at_s: float | None = None) -> str:
    """Return a ticket that was given just now, of a login then or now."""
    now_s = time.time()
    return camera_ticket(SECRET, camera, Login(token, round(at_s or now_s)), now_s)


@dataclass
class Connected:
    """The connection of a camera."""

    identity: Identity
    told: str = ""
    ended: bool = False

    def redirect(self, message: Redirect) -> None:
        raise AssertionError(message)

    def tell(self, message: OtherBoxes) -> None:
        self.told = message.ticket

    async def close(self) -> None:
        raise AssertionError

    async def revoked(self) -> None:
        self.ended = True

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Member:
    """A box of a fleet without models, which needs tokens."""

    site: WebContext
    server: Server
    tokens: dict[Scope, str]

    async def get(
        self, path: str, shown: str | None, posted: bytes | None = None
    ) -> tuple[int, bytes, str]:
        """Return status, body and signature of an answer."""
        headers = authorization(shown) | ({} if posted is None else {"Content-Type": JSON})
        url = f"http://127.0.0.1:{self.server.port}{path}"
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.request("GET" if posted is None else "POST", url, data=posted) as response,
        ):
            return response.status, await response.read(), response.headers.get(SIGNATURE, "")


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    storage = await Storage.open(str(tmp_path / "box.sqlite3"))
    site = site_of(storage)
    access = site.access = AccessControl(AccessStore(IN_MEMORY))
    site.fleet = FleetMember(
        site.box,
        FleetSettings(site.box, storage),
        secret=SECRET,
        cameras_max=64,
        parameters=PlanningParameters(),
    )
    server = Server(site)
    gate = CameraId("gate")
    tokens = {
        scope: (await access.issue("x", scope, gate if scope is Scope.CAMERA else None))[1]
        for scope in Scope
    }
    await server.start("127.0.0.1", 0)
    yield Member(site, server, tokens)
    await server.stop()
    await storage.close()


async def test_only_boxes_of_the_fleet_read_reports(member: Member) -> None:
    now_s = time.time()
    wrong = {
        "nothing": None,
        "a camera's ticket": camera_ticket(SECRET, "gate", Login("", round(now_s)), now_s),
        "an old ticket": box_ticket(SECRET, "b", now_s - 3600),
        "another fleet's": box_ticket("the secret of another fleet", "b", now_s),
        "the administrator's token": member.tokens[Scope.ADMIN],
    }
    for name, shown in wrong.items():
        assert (await member.get("/v1/fleet/report", shown))[0] == 401, name
    ticket = box_ticket(SECRET, "b", now_s)
    status, body, signature = await member.get("/v1/fleet/report", ticket)
    assert status == 200
    assert signature == answer_signature(SECRET, ticket, body)
    report = decoded(body)
    assert report.address == f"http://127.0.0.1:{member.server.port}"
    assert report.box.endswith(report.address)
    assert report.draining  # it has no models, so it takes no cameras
    assert not report.ready
    assert member.site.fleet is not None
    member.site.fleet.draining = True
    assert member.site.fleet.report().ready  # it is about to stop, whatever it was before


async def test_only_boxes_of_the_fleet_read_settings(member: Member) -> None:
    """Requests change nothing, and broken ones are one clear error."""
    now_s = time.time()
    assert member.site.fleet is not None
    settings = member.site.fleet.settings
    settings.set_here(CameraId("gate"), Overrides(slo_ns=250_000_000))
    (key,) = settings.replicated.settings
    ticket = box_ticket(SECRET, "b", now_s)
    for shown in (
        None,
        camera_ticket(SECRET, "gate", Login("", round(now_s)), now_s),
        member.tokens[Scope.ADMIN],
    ):
        for path in ("/v1/fleet/settings", "/v1/fleet/settings/versions"):
            assert (await member.get(path, shown, b"{}"))[0] == 401
    status, body, signature = await member.get(
        "/v1/fleet/settings/versions", ticket, comparison(["0" * 16] * BUCKETS, 0)
    )
    assert status == 200
    assert signature == answer_signature(SECRET, ticket, body)
    assert read_versions(body).versions == {key: settings.replicated.settings[key].revision}
    status, body, signature = await member.get("/v1/fleet/settings", ticket, wish([key]))
    assert status == 200
    assert signature == answer_signature(SECRET, ticket, body)
    assert read_settings(body, [key]) == (settings.replicated.settings, {})
    before = settings.replicated.settings
    for path in ("/v1/fleet/settings", "/v1/fleet/settings/versions"):
        for broken in (b"", b"[]", b"no json", b"{}", b'{"wanted": 7, "digests": 7}'):
            assert (await member.get(path, ticket, broken))[0] == 400, broken
        assert (await member.get(path, ticket, b"{" + b" " * 70_000))[0] == 413
    assert settings.replicated.settings == before


async def test_settings_are_kept_with_their_versions(member: Member) -> None:
    site = member.site
    assert site.fleet is not None
    here = site.fleet.settings
    here.set_here(CameraId("gate"), Overrides(slo_ns=250_000_000, app="doors"))
    other = ReplicatedSettings(here.replicated.settings)
    other.change(CameraId("gate"), {"slo_ms": 90.0, "app": "doors"}, "b", 0)
    other.change(CameraId("yard"), {"rate_hz": 2.0}, "b", 0)
    assert await here.take(other.settings) == 0
    assert site.box.overrides[CameraId("gate")] == Overrides(slo_ns=90_000_000, app="doors")
    again = FleetSettings(site.box, site.storage)
    site.box.overrides.clear()
    await site.storage.flush()
    await again.load()
    assert again.replicated.settings == other.settings
    assert again.replicated.digest() == here.replicated.digest()
    assert site.box.overrides[CameraId("yard")] == Overrides(rate_hz=2.0)


async def test_frames_are_served_while_many_settings_are_taken_in(member: Member) -> None:
    """And whoever stops in between has what is stored in force, so nothing is undone later."""
    site = member.site
    assert site.fleet is not None
    elsewhere = ReplicatedSettings()
    point = 0.123456789
    zone = {"name": "z", "points": [[0.0, 0.0], [1.0, point], [1.0, 1.0]], "classes": ["x" * 9_000]}
    for number in range(40):
        elsewhere.change(CameraId(f"c{number:02}"), {"zones": [zone]}, "b", 1_000 + number)
    taking = asyncio.create_task(site.fleet.settings.take(elsewhere.settings))
    turns = 0
    while len(site.box.overrides) < 20:
        await asyncio.sleep(0)
        turns += 1
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    assert turns > 3
    assert 20 <= len(site.box.overrides) < 40
    await site.storage.flush()
    again = FleetSettings(site.box, site.storage)
    await again.load()
    taken = {key.camera for key in again.replicated.settings}
    assert taken == site.box.overrides.keys()
    assert all(elsewhere.settings[key] == of for key, of in again.replicated.settings.items())


async def test_what_was_set_before_the_fleet_is_shared_and_what_the_fleet_has_wins(
    member: Member,
) -> None:
    site = member.site
    for camera in (CameraId("gate"), CameraId("yard"), CameraId("damaged")):
        site.storage.record_camera(camera, {})
    site.storage.record_overrides(CameraId("gate"), {"slo_ms": 300.0, "app": "doors"})
    site.storage.record_overrides(CameraId("damaged"), {"slo_ms": -1})
    await site.storage.flush()
    joining = FleetSettings(site.box, site.storage)
    await joining.load()
    assert {(key.camera, key.name) for key in joining.replicated.settings} == {
        ("gate", "slo"), ("gate", "app")
    }  # fmt: skip
    elsewhere = ReplicatedSettings()
    elsewhere.change(CameraId("gate"), {"slo_ms": 90.0}, "b", 1_000)
    await joining.take(elsewhere.settings)
    assert site.box.overrides[CameraId("gate")] == Overrides(slo_ns=90_000_000, app="doors")


async def test_a_box_whose_address_changes_knows_what_was_set_on_it(member: Member) -> None:
    site, gate = member.site, CameraId("gate")
    fleet_of = site.fleet
    assert fleet_of is not None
    site.storage.record_camera(gate, {})
    site.storage.record_overrides(gate, {"app": "doors"})  # before it was in a fleet
    await site.storage.flush()
    await fleet_of.settings.load()
    fleet_of.listens("http://10.0.0.1:8787", None)
    site.box.override(gate, set_on_it := Overrides(slo_ns=90_000_000, app="doors"))
    fleet_of.settings.set_here(gate, set_on_it)
    elsewhere = ReplicatedSettings(fleet_of.settings.replicated.settings)
    elsewhere.change(gate, {"slo_ms": 90.0, "app": "doors", "rate_hz": 2.0}, "b", 1_000)
    await fleet_of.settings.take(elsewhere.settings)
    await site.storage.flush()
    again = FleetSettings(site.box, site.storage)
    await again.load()
    again.name = BoxName("test at http://10.0.0.2:8787")
    for settings in (fleet_of.settings, again):
        told = [settings.set_elsewhere(gate, name) for name in ("app", "slo", "rate")]
        assert told == ["", "", "b"]
    elsewhere.change(gate, {"slo_ms": 90.0, "app": "cars", "rate_hz": 2.0}, "b", 2_000)
    await again.take(elsewhere.settings)
    assert again.set_elsewhere(gate, "app") == "b"


async def test_who_has_a_history_of_a_camera_says_so_to_boxes_of_the_fleet(member: Member) -> None:
    history = member.site.storage.history
    ticket = box_ticket(SECRET, "b", time.time())
    path = "/v1/fleet/history"
    assert (await member.get(f"{path}?camera=gate", member.tokens[Scope.ADMIN]))[0] == 401
    assert (await member.get(path, ticket))[0] == 400
    assert (await member.get(f"{path}?camera=a%2Fb", ticket))[0] == 400
    nothing = b'{"from_ms":null,"to_ms":null}'
    assert (await member.get(f"{path}?camera=gate", ticket))[1] == nothing
    minute = int(time.time() / 60) - 90
    history.record_minutes({minute: {CameraId("gate"): Period()}})
    await member.site.storage.flush()
    status, body, signature = await member.get(f"{path}?camera=gate", ticket)
    assert status == 200
    assert signature == answer_signature(SECRET, ticket, body)
    said = orjson.loads(body)
    hour = minute // 60
    assert said["from_ms"] == hour * 3_600_000
    assert said["to_ms"] == (hour + 1) * 3_600_000
    # What another box answers is shown, and what none answers is named.
    fleet_of = member.site.fleet
    assert fleet_of is not None
    url = f"http://127.0.0.1:{member.server.port}"
    fleet_of.known.reported(
        BoxReport(BoxName("hall"), "http://hall:8787", 0.5, {}), time.monotonic_ns()
    )
    fleet_of.asked_at[url] = BoxName("hall")
    fleet_of.left_out["http://shed:8787"] = "no answer"
    status, body, _ = await member.get(
        "/v1/cameras/gate/history/boxes", member.tokens[Scope.VIEWER]
    )
    assert status == 200
    assert orjson.loads(body) == {
        "boxes": [{"box": "hall", "address": "http://hall:8787", **said}],
        "unanswered": [{"address": "http://shed:8787", "reason": "no answer"}],
    }
    fleet_of.secret = "the secret of another fleet"
    fleet_of.asked_at["http://127.0.0.1:1"] = BoxName("hall")
    _, body, _ = await member.get("/v1/cameras/yard/history/boxes", member.tokens[Scope.VIEWER])
    assert [each["address"] for each in orjson.loads(body)["unanswered"]] == [
        "http://127.0.0.1:1", "http://shed:8787"
    ]  # fmt: skip


async def test_many_settings_at_once_are_told_in_one_notice(member: Member) -> None:
    assert member.site.fleet is not None
    elsewhere = ReplicatedSettings()
    for number in range(300):
        elsewhere.change(CameraId(f"c{number}"), {"app": "x"}, "b", number)
    await member.site.fleet.settings.take(elsewhere.settings)
    told = [event.text for event in member.site.box.notices.recent]
    assert told == ["the settings of 300 cameras came from other boxes of the fleet"]


async def test_what_is_forgotten_while_more_is_taken_in_is_told_all_the_same(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting that was removed on another box long ago is forgotten at any moment."""
    monkeypatch.setattr(fleet_settings, "_PART_BYTES", 1)
    assert member.site.fleet is not None
    here, gate = member.site.fleet.settings, CameraId("gate")
    elsewhere = ReplicatedSettings()
    elsewhere.change(gate, {"app": "doors"}, "b", 1)
    await here.take(elsewhere.settings)
    elsewhere.change(gate, {}, "b", 2)
    elsewhere.change(CameraId("yard"), {"app": "doors"}, "b", 3)
    taking = asyncio.create_task(here.take(elsewhere.settings))
    await asyncio.sleep(0)  # for the first part
    assert here.replicated.of(gate)["app"].value == NOTHING
    assert CameraId("yard") not in member.site.box.overrides
    here.forget_old()
    assert not here.replicated.of(gate)
    assert await taking == 0
    told = [event.text for event in member.site.box.notices.recent]
    assert sorted(told[-2:]) == ["gate was set on b: app", "yard was set on b: app"]


async def test_those_who_may_see_the_box_see_its_fleet(member: Member) -> None:
    assert member.site.fleet is not None
    other = BoxReport(BoxName("b"), "http://b:8787", 0.5, {Service("street"): 100.0})
    member.site.fleet.known.reported(other, time.monotonic_ns())
    member.site.fleet.left_out["http://c:8787"] = "no answer [c]"
    status, body, _ = await member.get("/v1/fleet", member.tokens[Scope.VIEWER])
    assert status == 200
    assert b'"http://b:8787"' in body
    assert b"absent_s" not in body
    assert b'"left_out":[{"address":"http://c:8787","reason":"no answer [c]"}]' in body
    shown = await asyncio.to_thread(
        CliRunner(env={"EDGEBOX_TOKEN": member.tokens[Scope.VIEWER]}).invoke,
        fleet,
        ["--server", f"http://127.0.0.1:{member.server.port}"],
    )
    assert shown.exit_code == 0, shown.output
    left_out = "http://c:8787 is left out: no answer [c]"
    for said in ("b", "50%", "street", "serving", "not ready", left_out):
        assert said in shown.output
    refused = await asyncio.to_thread(
        CliRunner().invoke, fleet, ["--server", f"http://127.0.0.1:{member.server.port}"]
    )
    assert refused.exit_code == 1


async def test_a_camera_s_ticket_lets_one_camera_send_and_nothing_else(member: Member) -> None:
    ticket = ticket_of("gate", "of another box")
    access = member.site.access
    identity = access.by_ticket(ticket)
    assert identity is not None
    assert (identity.scope, identity.camera) == (Scope.CAMERA, "gate")
    assert access.by_token(ticket) is None  # no login for a browser
    for path, status in (("/v1/fleet", 403), ("/v1/state", 403), ("/v1/fleet/report", 401)):
        assert (await member.get(path, ticket))[0] == status


async def test_a_camera_whose_token_is_revoked_is_locked_out_with_its_tickets(
    member: Member,
) -> None:
    access, fleet_of = member.site.access, member.site.fleet
    assert fleet_of is not None
    shown = access.by_token(member.tokens[Scope.CAMERA])
    assert shown is not None
    assert shown.token is not None
    at_home = Connected(shown)
    fleet_of.joined(CameraId("gate"), at_home)
    came = access.by_ticket(at_home.told)
    assert came is not None
    elsewhere = Connected(came)  # the same secret: any box would take the ticket so
    fleet_of.joined(CameraId("gate"), elsewhere)
    renewed = access.by_ticket(elsewhere.told)
    assert renewed is not None
    assert renewed.login == came.login
    with member.site.connected(elsewhere, lambda: came):
        await access.revoke(shown.token.id)
        for _ in range(2):
            await asyncio.sleep(0)
        assert elsewhere.ended
    for ticket in (at_home.told, elsewhere.told):
        assert access.by_ticket(ticket) is None
        assert (await member.get("/v1/stream", ticket))[0] == 401
    _, text = await access.issue("gate", Scope.CAMERA, CameraId("gate"))
    again = access.by_token(text)
    assert again is not None
    fleet_of.joined(CameraId("gate"), anew := Connected(again))
    assert access.by_ticket(anew.told) is not None


async def test_other_boxes_and_later_starts_know_that_a_token_was_revoked(
    member: Member,
) -> None:
    site = member.site
    assert site.fleet is not None
    ticket = ticket_of("gate", "5c1e7a90")
    came = site.access.by_ticket(ticket)
    assert came is not None
    there = ReplicatedSettings()
    now_ms = round(time.time() * 1e3)
    there.revoke({"5c1e7a90": now_ms}, "b", now_ms)
    body = settings_answer(there.settings, [*there.settings])
    settings, refused = read_settings(body, [*there.settings])
    assert refused == {}
    camera = Connected(came)
    with site.connected(camera, lambda: came):
        assert await site.fleet.settings.take(settings) == 0
        assert camera.ended
    assert site.access.by_ticket(ticket) is None
    assert site.access.by_ticket(ticket_of("gate", "another")) is not None
    assert site.box.overrides == {}  # it is no camera
    await site.storage.flush()
    again = FleetSettings(site.box, site.storage)
    await again.load()
    assert again.replicated.is_revoked("5c1e7a90")
    assert site.box.overrides == {}


async def test_a_box_that_starts_tells_which_tokens_were_revoked_meanwhile(
    tmp_path: Path,
) -> None:
    storage = await Storage.open(IN_MEMORY)
    store = AccessStore(str(tmp_path / "a.db"))
    token, _ = new_token("gate", Scope.CAMERA, CameraId("gate"), wall_clock_ms())
    store.add(token)
    store.remove(token.id, wall_clock_ms())  # as `edgebox tokens revoke` does
    site = site_of(storage)
    access = site.access = AccessControl(store)
    await access.load()
    site.fleet = FleetMember(
        site.box,
        FleetSettings(site.box, storage),
        secret=SECRET,
        cameras_max=64,
        parameters=PlanningParameters(),
    )
    server = Server(site)
    await server.start("127.0.0.1", 0)
    assert access.by_ticket(ticket_of("gate", token.id)) is None
    assert access.by_ticket(ticket_of("gate", "another")) is not None
    await server.stop()
    await storage.close()


async def test_a_connection_ends_when_its_login_is_too_long_ago(member: Member) -> None:
    access, now_s = member.site.access, time.time()
    ticket = ticket_of("gate", "", now_s - LOGIN_S + 3600)
    came = access.by_ticket(ticket)
    assert came is not None
    assert came.login is not None
    assert access.is_valid(came)
    assert not access.is_valid(replace(came, login=Login("", round(now_s) - LOGIN_S - 1)))
    assert access.by_ticket(ticket_of("gate", "", now_s - LOGIN_S - 1)) is None


async def test_a_box_alone_has_no_fleet(member: Member) -> None:
    member.site.fleet = None
    for path in ("/v1/fleet", "/v1/fleet/report"):
        status, body, _ = await member.get(path, member.tokens[Scope.VIEWER])
        assert status == 404
        assert b"its configuration has no [fleet]" in body


async def test_a_name_stands_for_a_box_at_each_of_its_addresses() -> None:
    several = one_for_each("https://boxes.svc:8787", {"10.0.0.7", "10.0.0.5"})
    assert several == ["https://10.0.0.5:8787", "https://10.0.0.7:8787"]
    assert one_for_each("https://box-1:8787", {"10.0.0.5"}) == ["https://box-1:8787"]
    for address in ("http://127.0.0.1:1", "http://[::1]:1", "http://no-such-box.invalid:1"):
        assert await boxes_behind(address) == [address]


async def test_addresses_are_looked_up_again_after_an_unexpected_error(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    async def behind(address: str) -> list[str]:
        looked.append(address)
        if len(looked) == 1:
            raise RuntimeError("unexpected")
        return [address]

    monkeypatch.setattr(fleet_exchange, "boxes_behind", behind)
    monkeypatch.setattr(fleet_exchange, "_LOOK_PERIOD_S", 0.01)
    assert member.site.fleet is not None
    nobody = "http://127.0.0.1:1"
    config = load(None, {"fleet.boxes": [nobody], "fleet.secret_env": "X"})
    exchange = FleetExchange(config.fleet, member.site.fleet, lambda text: None)
    asking = asyncio.create_task(exchange.run())
    left_out = member.site.fleet.left_out
    await until(lambda: nobody in left_out, "that nobody is at the address")
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert left_out[nobody] == "it cannot be reached: connection refused"


async def test_a_box_that_does_not_answer_in_time_is_waited_for_no_longer() -> None:
    app, never = web.Application(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        await never.wait()
        return web.Response()

    app.add_routes([web.get("/", answer)])
    async with TestServer(app) as server, aiohttp.ClientSession() as client:
        with pytest.raises(TimeoutError) as late:
            await answer_of(
                client, str(server.make_url("/")),
                secret=SECRET, name="b", bytes_max=1_000, timeout_s=0.05,
            )  # fmt: skip
        never.set()
    assert explained(late.value) == "no answer in time"


async def test_a_box_that_ends_the_connection_unanswered_may_want_tls() -> None:
    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(end, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ServerDisconnectedError) as ended:
            await answer_of(
                client, f"http://127.0.0.1:{port}/",
                secret=SECRET, name="b", bytes_max=1_000, timeout_s=60,
            )  # fmt: skip
    why = "it ended the connection unanswered; a box with TLS has an address with https://"
    assert explained(ended.value) == why


@pytest.mark.parametrize(
    ("secret", "ahead_s", "why"),
    [
        (SECRET, -660, "its clock is 11 minutes ahead of this box's: the clocks of a fleet must"),
        (SECRET, -1.7e9, r"its clock is \d+ minutes ahead of this box's"),
        ("that of another fleet", 0, "it does not know this fleet's secret: all boxes need"),
        ("that of another fleet", 660, "its clock is 11 minutes behind this box's"),
        (SECRET, 660, ""),
    ],
)
async def test_a_box_whose_clock_is_wrong_is_told_so_rather_than_of_its_secret(
    member: Member, monkeypatch: pytest.MonkeyPatch, secret: str, ahead_s: float, why: str
) -> None:
    """It asks another one with a ticket that has ended there."""
    clock = SimpleNamespace(time=lambda: time.time() + ahead_s)
    monkeypatch.setattr("edgebox.web.fleet_requests.time", clock)
    async with aiohttp.ClientSession() as client:
        asked = answer_of(
            client, f"http://127.0.0.1:{member.server.port}/v1/fleet/report",
            secret=secret, name="b", bytes_max=10_000, timeout_s=60,
        )  # fmt: skip
        if not why:
            assert decoded(await asked).box
            return
        with pytest.raises(FleetRequestError, match=why):
            await asked


# -- configuration ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"boxes": ["http://b:8787"]}, "need a secret that they share"),
        ({"discover": True}, "need a secret that they share"),
        ({"secret_env": "X"}, "a box with a secret, but without other boxes, is in no fleet"),
        (
            {"discover": True, "secret_env": "X", "secret_file": "y"},
            "fleet.secret_env: there is a secret_file, too",
        ),
        ({"boxes": ["b"], "secret_env": "X"}, 'must be an address like "http://box-2:8787"'),
        ({"boxes": ["http://b:8787/x"], "secret_env": "X"}, "must be an address like"),
        ({"boxes": ["http://b:99999"], "secret_env": "X"}, "must be an address like"),
        ({"address": "box"}, "fleet.address: must be an address like"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_at_the_start(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(None, {f"fleet.{name}": value for name, value in keys.items()})


async def test_a_secret_that_is_missing_or_short_is_one_clear_error(
    member: Member, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    keys = {"fleet.boxes": ["http://b:8787"], "fleet.secret_file": str(file)}
    config = load(None, keys)
    with pytest.raises(ConfigError, match=r"fleet\.secret_file: .* cannot be read"):
        fleet_member(config, member.site.box, member.site.storage)
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="at least 16 characters"):
        fleet_member(config, member.site.box, member.site.storage)
    file.write_text(SECRET + "\n")
    made = fleet_member(config, member.site.box, member.site.storage)
    assert made is not None
    assert made.secret == SECRET
    assert fleet_member(load(None), member.site.box, member.site.storage) is None
