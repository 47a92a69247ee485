"""Every route with every scope, by the OpenAPI document; cookies; pages of other origins."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import ClientSession, WSServerHandshakeError
from aiohttp.test_utils import make_mocked_request

from edgebox.domain.access import GRANTS, ForbiddenError, OpenTo, Scope
from edgebox.domain.requests import CameraId
from edgebox.runtime.access_control import AccessControl
from edgebox.storage.access_store import AccessStore
from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.web import deepstack
from edgebox.web.identification import identify, identities_of
from edgebox.web.server import Server, application
from edgebox.web.v2.kserve_routes import SCOPE as V2_SCOPE
from edgebox.web.web_context import WebContext
from tests.web.sites import site_of

ROOT = Path(__file__).resolve().parents[2]
GATE, DOOR = CameraId("gate"), CameraId("door")
V2_PUBLIC = ("/v2/health/live", "/v2/health/ready")
Texts = Mapping[Scope, str]


class Closed:
    """A box that is open to nobody, with a token of each scope; it serves no models."""

    def __init__(self, site: WebContext, server: Server, texts: Texts) -> None:
        self.site, access = site, site.access
        self.url = f"http://127.0.0.1:{server.port}"
        self.server, self.access, self.texts = server, access, texts

    async def trust(self, *proxies: str) -> None:
        """Serve anew, behind these proxies."""
        await self.server.stop()
        config = self.site.config
        self.site.config = replace(config, server=replace(config.server, trusted_proxies=proxies))
        self.server = Server(self.site)
        await self.server.start("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.port}"

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        async with (
            ClientSession() as client,
            client.request(method, self.url + path, headers=headers, **options) as response,
        ):
            is_json = response.content_type.endswith("json")
            document = await response.json(content_type=None) if is_json else {}
            return response.status, document, dict(response.headers)

    def bearer(self, scope: Scope) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.texts[scope]}"}

    async def cookie(self, scope: Scope) -> dict[str, str]:
        """Return the header of a browser that has logged in."""
        status, _, headers = await self.ask(
            "POST", "/v1/login", json={"token": self.texts[scope]}, headers={"Origin": self.url}
        )
        assert status == 200
        return {"Cookie": headers["Set-Cookie"].partition(";")[0]}


@pytest.fixture
async def closed(tmp_path: Path) -> AsyncIterator[Closed]:
    storage = await Storage.open(str(tmp_path / "box.sqlite3"))
    site = site_of(storage)
    access = site.access = AccessControl(AccessStore(IN_MEMORY))
    server = Server(site)
    texts = {
        scope: (await access.issue("x", scope, GATE if scope is Scope.CAMERA else None))[1]
        for scope in Scope
    }
    await server.start("127.0.0.1", 0)
    closed = Closed(site, server, texts)
    yield closed
    await closed.server.stop()
    await storage.close()


async def operations(closed: Closed) -> list[tuple[str, str, Scope | None]]:
    """Return (method, path, scope) of all in the OpenAPI document, and of other protocols."""
    _, document, _ = await closed.ask("GET", "/v1/openapi.json")
    described = [
        (method.upper(), path, of)
        for path, methods in document["paths"].items()
        for method, of in methods.items()
    ]
    described += [("GET", path, of) for path, of in document["x-websockets"].items()]
    for _, path, of in described:
        assert bool(of["security"]) is ("x-scope" in of), path
    found = [(m, p, Scope(of["x-scope"]) if "x-scope" in of else None) for m, p, of in described]
    v2 = ("/v2", "/v2/health/live", "/v2/models/m", "/v2/models/m/config", "/v2/models/m/ready")
    found += [("GET", path, None if path in V2_PUBLIC else V2_SCOPE) for path in v2]
    posts = ("/v2/repository/index", "/v2/models/m/infer")
    found += [("POST", path, V2_SCOPE) for path in posts]
    vision = ("detection", "custom/list", "custom/m")
    return [*found, *(("POST", f"/v1/vision/{path}", deepstack.SCOPE) for path in vision)]


def filled(path: str, camera: CameraId) -> str:
    """Return a path with something for each of its parts."""
    return re.sub(r"{\w+}", "0", path.replace("{id}", camera))


async def test_every_route_is_closed_to_who_has_no_token(closed: Closed) -> None:
    for method, path, scope in await operations(closed):
        status, problem, headers = await closed.ask(method, filled(path, GATE))
        assert (status == 401) is (scope is not None), (method, path, status)
        if scope is not None:
            assert headers["WWW-Authenticate"].startswith("Bearer")
            assert "token" in (problem.get("detail") or problem["error"])


@pytest.mark.parametrize("scope", Scope)
async def test_every_route_lets_in_who_has_its_scope(closed: Closed, scope: Scope) -> None:
    for method, path, needed in await operations(closed):
        if path == "/v1/logout":
            continue  # it would end nothing
        for camera in (GATE, DOOR):  # a camera may change neither itself nor another
            at = filled(path, camera)
            status, problem, _ = await closed.ask(method, at, closed.bearer(scope))
            allowed = needed is None or needed in GRANTS[scope]
            refused = status in (401, 403) and problem.get("code") != "pairing"
            assert refused is not allowed, (method, at, status, problem)
            if not allowed:
                assert "scope" in (problem.get("detail") or problem["error"])


async def test_nothing_is_routed_that_the_document_does_not_name(closed: Closed) -> None:
    """Whatever a route forgets to declare is refused, or is a file of the page."""
    storage = await Storage.open(IN_MEMORY)
    try:
        app = application(site_of(storage))
    finally:
        await storage.close()
    paths = {resource.canonical for resource in app.router.resources()}
    named = {path for _, path, _ in await operations(closed)}
    nothing_itself = {deepstack.PATH}
    assert paths - named == {"/", "/camera", "/assets"} | nothing_itself


async def test_a_wrong_token_is_no_way_around(closed: Closed) -> None:
    closed.access.open_to = OpenTo.EVERYBODY
    for said in ("Bearer", "Bearer x", "Basic eDp5", "edgebox_x", f"Bearer {'x' * 5000}"):
        status, problem, _ = await closed.ask("GET", "/v1/state", {"Authorization": said})
        assert (status, problem["code"]) == (401, "unauthorized")
    status, _, _ = await closed.ask("GET", "/v1/state")
    assert status == 200


async def test_only_programs_on_the_box_itself_are_on_loopback(closed: Closed) -> None:
    closed.access.open_to = OpenTo.LOOPBACK
    assert (await closed.ask("GET", "/v1/state"))[0] == 200
    for header in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Forwarded-Host"):
        assert (await closed.ask("GET", "/v1/state", {header: "x"}))[0] == 401
    for host in ("localhost:8787", "127.0.0.1", "[::1]:8787"):
        assert (await closed.ask("GET", "/v1/state", {"Host": host}))[0] == 200
    # A proxy on the box that names no client, but passes on the host that it was asked for.
    assert (await closed.ask("GET", "/v1/state", {"Host": "192.0.2.7"}))[0] == 401


async def test_a_browser_logs_in_and_out(closed: Closed) -> None:
    _, before, _ = await closed.ask("GET", "/v1/session")
    assert (before["scope"], before["logged_in"]) == (None, False)
    status, said, headers = await closed.ask(
        "POST", "/v1/login", json={"token": closed.texts[Scope.OPERATOR]}
    )
    assert status == 200
    assert (said["scope"], said["name"], said["logged_in"]) == ("operator", "x", True)
    set_cookie = headers["Set-Cookie"]
    assert "HttpOnly" in set_cookie
    assert "SameSite=Strict" in set_cookie
    assert "Secure" not in set_cookie  # this box has no TLS
    cookie = {"Cookie": set_cookie.partition(";")[0]}
    assert (await closed.ask("GET", "/v1/session", cookie))[1] == said
    assert (await closed.ask("GET", "/v1/state", cookie))[0] == 200
    own = {**cookie, "Origin": closed.url}
    assert (await closed.ask("POST", "/v1/logout", own))[0] == 204
    assert (await closed.ask("GET", "/v1/state", cookie))[0] == 401


async def test_a_wrong_login_says_what_to_do_and_is_limited(closed: Closed) -> None:
    for _ in range(10):
        status, problem, _ = await closed.ask("POST", "/v1/login", json={"token": "guess"})
        assert (status, problem["code"]) == (401, "unauthorized")
        assert "edgebox tokens add" in problem["detail"]
    status, problem, _ = await closed.ask("POST", "/v1/login", json={"token": "guess"})
    assert (status, problem["code"]) == (429, "too_many_attempts")


async def test_behind_a_trusted_proxy_wrong_logins_are_limited_by_client(closed: Closed) -> None:
    def behind(client: str) -> dict[str, str]:
        return {"X-Forwarded-For": f"198.51.100.9, {client}", "X-Forwarded-Proto": "https"}

    right, wrong = {"token": closed.texts[Scope.VIEWER]}, {"token": "guess"}
    await closed.trust("127.0.0.1")
    for _ in range(11):
        status, _, _ = await closed.ask("POST", "/v1/login", behind("192.0.2.1"), json=wrong)
    assert status == 429
    status, _, headers = await closed.ask("POST", "/v1/login", behind("192.0.2.2"), json=right)
    assert status == 200
    assert "Secure" in headers["Set-Cookie"]
    await closed.trust()  # what others say of themselves does not count
    for _ in range(11):
        status, _, _ = await closed.ask("POST", "/v1/login", behind("192.0.2.3"), json=wrong)
    assert status == 429
    assert (await closed.ask("POST", "/v1/login", behind("192.0.2.4"), json=wrong))[0] == 429


async def test_pages_of_others_cannot_use_a_session(closed: Closed) -> None:
    """The cookie is not sent with their requests; where it is all the same, it does not help."""
    cookie = await closed.cookie(Scope.ADMIN)
    body = {"json": {"name": "evil", "scope": "admin"}}
    for origin in (None, "http://evil.example", "null", closed.url.replace("http", "https") + "1"):
        headers = cookie if origin is None else {**cookie, "Origin": origin}
        status, problem, _ = await closed.ask("POST", "/v1/tokens", headers, **body)
        assert (status, problem["code"]) == (403, "foreign_origin"), origin
    own = {**cookie, "Origin": closed.url}
    assert (await closed.ask("POST", "/v1/tokens", own, **body))[0] == 201
    async with ClientSession() as client:
        for path in ("/v1/ui", "/v1/stream", "/v1/results"):
            with pytest.raises(WSServerHandshakeError) as refused:
                await client.ws_connect(closed.url + path, headers=cookie)
            assert refused.value.status == 403


async def test_tokens_are_made_listed_and_revoked(closed: Closed) -> None:
    admin = closed.bearer(Scope.ADMIN)
    status, made, _ = await closed.ask(
        "POST", "/v1/tokens", admin, json={"name": "Grafana", "scope": "metrics"}
    )
    assert status == 201
    assert (await closed.ask("GET", "/metrics", {"Authorization": f"Bearer {made['token']}"}))[
        0
    ] == 200
    _, listed, _ = await closed.ask("GET", "/v1/tokens", admin)
    assert made["token"] not in str(listed)
    ours = next(token for token in listed["tokens"] if token["id"] == made["id"])
    assert (ours["name"], ours["scope"]) == ("Grafana", "metrics")
    assert ours["last_used_ms"] is not None
    assert (await closed.ask("DELETE", f"/v1/tokens/{made['id']}", admin))[0] == 204
    assert (await closed.ask("GET", "/metrics", {"Authorization": f"Bearer {made['token']}"}))[
        0
    ] == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "x", "scope": "god"},
        {"name": "", "scope": "viewer"},
        {"name": "x" * 81, "scope": "viewer"},
        {"name": "x", "scope": "camera"},
        {"name": "x", "scope": "camera", "camera": "no spaces"},
        {"name": "x", "scope": "viewer", "camera": "gate"},
        {"name": "x", "scope": "viewer", "more": 1},
        {"name": ["x"], "scope": {"a": 1}},
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(closed: Closed, body: dict[str, Any]) -> None:
    status, problem, _ = await closed.ask(
        "POST", "/v1/tokens", closed.bearer(Scope.ADMIN), json=body
    )
    assert (status, problem["code"]) == (400, "invalid"), problem


async def test_a_camera_is_paired_over_http(closed: Closed) -> None:
    status, pairing, _ = await closed.ask(
        "POST", "/v1/pairings", closed.bearer(Scope.OPERATOR), json={"camera": "door"}
    )
    assert (status, pairing["camera"], pairing["expires_s"]) == (201, "door", 600)
    asked = {"code": pairing["code"], "camera": "door"}
    status, paired, _ = await closed.ask("POST", "/v1/pair", json=asked)
    assert status == 201
    identity = closed.access.by_token(paired["token"])
    assert identity is not None
    assert (identity.scope, identity.camera) == (Scope.CAMERA, DOOR)
    status, problem, _ = await closed.ask("POST", "/v1/pair", json=asked)
    assert (status, problem["code"]) == (403, "pairing")


async def test_a_browser_that_is_a_camera_gets_a_cookie_of_its_own(closed: Closed) -> None:
    pairing = closed.access.begin_pairing(None)
    status, said, headers = await closed.ask(
        "POST", "/v1/pair", json={"code": pairing.shown, "camera": "phone", "browser": True}
    )
    assert (status, said) == (201, {"camera": "phone"})
    name, _, _ = headers["Set-Cookie"].partition("=")
    assert name.startswith("edgebox_camera_")
    cookie = {"Cookie": headers["Set-Cookie"].partition(";")[0]}
    assert (await closed.ask("GET", "/v1/state", cookie))[0] == 401
    status, _, _ = await closed.ask("GET", "/v1/stream", {**cookie, "Origin": closed.url})
    assert status == 503  # it may, once there are models


async def paired(closed: Closed, camera: str) -> str:
    """Return the cookie of a browser that was paired as a camera."""
    _, _, headers = await closed.ask(
        "POST",
        "/v1/pair",
        json={"code": closed.access.begin_pairing(None).shown, "camera": camera, "browser": True},
    )
    return headers["Set-Cookie"].partition(";")[0]


async def who(closed: Closed, *cookies: str) -> dict[str, Any]:
    return (await closed.ask("GET", "/v1/session", {"Cookie": "; ".join(cookies)}))[1]


async def test_a_browser_is_a_person_on_the_page_and_a_camera_as_one(closed: Closed) -> None:
    phone = await paired(closed, "phone")
    alone = await who(closed, phone)
    assert (alone["scope"], alone["camera"]) == ("camera", "phone"), "so the page can say why not"
    assert (alone["may_be_camera"], alone["logged_in"]) == (True, False)
    viewer = (await closed.cookie(Scope.VIEWER))["Cookie"]
    operator = (await closed.cookie(Scope.OPERATOR))["Cookie"]
    both = await who(closed, viewer, phone)
    assert (both["scope"], both["may_be_camera"], both["logged_in"]) == ("viewer", True, True)
    assert (await who(closed, viewer))["may_be_camera"] is False
    assert (await who(closed, operator))["may_be_camera"] is True
    closed.access.open_to = OpenTo.LOOPBACK
    assert (await who(closed, phone))["scope"] == "operator", "what everybody may, it may as well"
    headers = {"Cookie": f"{operator}; {phone}"}
    transport = Mock()
    transport.get_extra_info.return_value = ("127.0.0.1", closed.server.port)
    request = make_mocked_request("GET", "/v1/stream", headers=headers, transport=transport)
    identify(closed.access, request, Scope.CAMERA)
    for camera, token in ((CameraId("phone"), "phone"), (DOOR, "x")):
        identity = closed.access.publisher(identities_of(request), camera)
        assert identity.token is not None
        assert identity.token.name == token, "as the camera that it is, otherwise as the person"
    with pytest.raises(ForbiddenError, match="is of the camera phone, not of gate"):
        closed.access.publisher(identities_of(request), GATE)  # has a token of its own
    (person,) = [each for each in closed.access.tokens if each.scope is Scope.OPERATOR]
    await closed.access.revoke(person.id)  # between the connection and its hello
    with pytest.raises(ForbiddenError, match="is of the camera phone, not of door"):
        closed.access.publisher(identities_of(request), DOOR)
    closed.access.open_to = OpenTo.EVERYBODY
    request = make_mocked_request("GET", "/v1/stream", headers={"Cookie": phone, "Origin": ""})
    identify(closed.access, request, Scope.CAMERA)
    assert closed.access.publisher(identities_of(request), DOOR).token is None


async def test_logging_out_does_not_unpair_a_camera(closed: Closed) -> None:
    phone = await paired(closed, "phone")
    viewer = (await closed.cookie(Scope.VIEWER))["Cookie"]
    for cookies in (phone, f"{viewer}; {phone}"):
        headers = {"Cookie": cookies, "Origin": closed.url}
        status, _, answered = await closed.ask("POST", "/v1/logout", headers)
        assert status == 204
        assert answered["Set-Cookie"].startswith("edgebox_session_")
    assert (await who(closed, phone))["may_be_camera"] is True
    assert (await who(closed, viewer))["scope"] is None


@pytest.mark.parametrize("page", ["how-to/access.md", "reference/http-api.md"])
async def test_a_page_names_all_that_is_open_and_nothing_else(closed: Closed, page: str) -> None:
    """Who has a proxy let pass just that locks nobody out."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    (paragraph,) = re.findall(r"Open to everybody.*?\n\n", text, re.DOTALL)
    named = [name.removesuffix("/...") for name in re.findall(r"`(/\S*)`", paragraph)]
    public = {path for _, path, scope in await operations(closed) if scope is None}
    public |= {"/", "/camera", "/assets"}
    unnamed = [
        path
        for path in public
        if not any(path == name or path.startswith(f"{name}/") for name in named if name != "/")
    ]
    assert unnamed == ["/"]
    assert "/" in named
    assert {n for n in named if not any(f"{path}/".startswith(f"{n}/") for path in public)} == set()
