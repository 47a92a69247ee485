"""The `Host` header over real sockets: every route and WebSocket of a whole server."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from edgebox.config.config_file import Config, ServerParameters
from edgebox.storage.database import Storage
from edgebox.web import addresses, hosts
from edgebox.web.routes import Route
from edgebox.web.server import ROUTES, Server
from tests.conftest import PATIENCE_S
from tests.web.sites import site_of

REBOUND = "evil.example"
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
WEBSOCKETS = ("/v1/stream", "/v1/ui", "/v1/results")
Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Return what starts a server by [server] and gives its port."""
    numbers = itertools.count()
    servers: list[Server] = []
    storages: list[Storage] = []

    async def started(**parameters: Any) -> int:
        storage = await Storage.open(str(tmp_path / f"{next(numbers)}.sqlite3"))
        storages.append(storage)
        site = site_of(storage)
        site.config = replace(Config(), server=ServerParameters(**parameters))
        server = Server(site)
        servers.append(server)
        await server.start("127.0.0.1", 0)
        return server.port

    yield started
    for server in servers:
        await server.stop()
    for storage in storages:
        await storage.close()


async def raw(port: int, request: bytes) -> tuple[int, bytes]:
    """Send bytes as they are; return status and body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            length = [
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ]
            body = await reader.readexactly(length[0]) if length else b""
    finally:
        writer.close()
    return int(head.split(b" ", 2)[1]), body


async def ask(
    port: int, *lines: str, path: str = "/healthz", method: str = "GET", version: str = "1.1"
) -> tuple[int, dict[str, Any]]:
    head = "".join(f"{line}\r\n" for line in (f"{method} {path} HTTP/{version}", *lines))
    status, body = await raw(port, head.encode() + b"\r\n")
    is_json = body.startswith(b"{") and method != "HEAD"
    return status, orjson.loads(body) if is_json else {}


PATHS = [
    *sorted({(route.method, route.path) for route in ROUTES if route.kind != "websocket"}),
    ("GET", "/assets/anything.js"),
    ("GET", "/no/such/thing"),
    ("GET", "/v2"),
    ("GET", "/v2/health/live"),
    ("GET", "/v2/models/street-128"),
    ("POST", "/v2/models/street-128/infer"),
]


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_no_route_answers_to_a_foreign_name(start: Start, method: str, path: str) -> None:
    port = await start()
    path = path.replace("{", "").replace("}", "")
    status, problem = await ask(
        port, f"Host: {REBOUND}:{port}", "Content-Length: 0", method=method, path=path
    )
    assert status == 421
    assert problem["code"] == "unknown_host"
    assert problem["type"] == "/v1/problems/unknown_host"
    assert f"{REBOUND}:{port}" in problem["detail"]
    assert f'allowed_hosts = ["{REBOUND}"] under [server]' in problem["detail"]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.path in WEBSOCKETS])
async def test_no_websocket_opens_for_a_foreign_name(start: Start, route: Route) -> None:
    """The page of such a name has the very origin that it asks for: that check passes."""
    port = await start()
    opens = 503 if route.needs_ready else 101
    for host, status in ((f"{REBOUND}:{port}", 421), (f"localhost:{port}", opens)):
        head = f"GET {route.path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n".encode()
        assert (await raw(port, head + UPGRADE + b"\r\n"))[0] == status


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:{port}", "127.0.0.1", "localhost:{port}", "LOCALHOST", "localhost.:{port}",
        "[::1]:{port}", "[::1]", "192.168.1.20:80", "my.localhost:{port}",
    ],
)  # fmt: skip
async def test_a_box_on_loopback_answers_to_itself(start: Start, host: str) -> None:
    port = await start()
    for path in ("/healthz", "/metrics", "/v1/state"):
        status, _ = await ask(port, f"Host: {host.format(port=port)}", path=path)
        assert status == 200


@pytest.mark.parametrize(
    ("requested", "status"),
    [
        (("127.0.0.1", (), "box"), 421),
        (("127.0.0.1", (), "box.local"), 421),
        (("0.0.0.0", (), "box:8787"), 200),
        (("0.0.0.0", (), "BOX.local.:9000"), 200),
        (("::", (), "box.home.arpa"), 200),
        (("0.0.0.0", (), "box.example.com"), 421),
        (("0.0.0.0", ("box.example.com",), "Box.Example.COM:443"), 200),
        (("0.0.0.0", ("box.example.com",), "box"), 421),
        (("0.0.0.0", (".example.com", "box"), "a.example.com"), 200),
        (("0.0.0.0", (".example.com", "box"), "box"), 200),
        (("0.0.0.0", ("box.example.com",), "10.0.0.7"), 200),
        (("127.0.0.1", (), "gate-box:8787"), 200),
        (("127.0.0.1", (), "gate-box.local"), 200),
        (("127.0.0.1", (), "gate-box.corp.example"), 421),
        (("0.0.0.0", (), "gate-box.corp.example"), 200),
        (("127.0.0.1", (), ""), 421),
        (("127.0.0.1", (), "local host"), 421),
        (("127.0.0.1", (), "evil.example@localhost"), 421),
        (("127.0.0.1", (), "localhost, evil.example"), 421),
    ],
)
async def test_names_follow_the_configuration(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    requested: tuple[str, tuple[str, ...], str],
    status: int,
) -> None:
    listens_on, allowed, host = requested
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.53\nsearch corp.example\n")
    monkeypatch.setattr(addresses, "_RESOLVER", resolver)
    monkeypatch.setattr(socket, "gethostname", lambda: "gate-box")
    port = await start(host=listens_on, allowed_hosts=allowed)
    found, problem = await ask(port, f"Host: {host}")
    assert found == status, problem


async def test_a_missing_host_is_refused_but_of_http_1_0(start: Start) -> None:
    port = await start()
    status, problem = await ask(port)
    assert status == 400
    assert "Host" in problem["detail"]
    assert (await ask(port, version="1.0"))[0] == 200
    assert (await ask(port, "Host: localhost", version="1.0"))[0] == 200
    assert (await ask(port, f"Host: {REBOUND}", version="1.0"))[0] == 421
    # Without a host nothing says that a page is the box's own.
    status, problem = await ask(port, "Origin: http://localhost", path="/v1/state", version="1.0")
    assert (status, problem["code"]) == (403, "foreign_origin")


async def test_several_hosts_are_refused(start: Start) -> None:
    port = await start()
    for pair in (("localhost", REBOUND), (REBOUND, "localhost"), ("localhost", "localhost")):
        status, problem = await ask(port, *(f"Host: {host}" for host in pair))
        assert status == 400
        assert "Host" in problem["detail"]


async def test_the_host_of_a_whole_address_counts_and_not_the_header(start: Start) -> None:
    port = await start()
    own, foreign = f"localhost:{port}", f"{REBOUND}:{port}"
    for version in ("1.0", "1.1"):
        for header in (own, foreign):
            asked = {"version": version, "method": "GET"}
            own_path, foreign_path = (f"http://{host}/v1/state" for host in (own, foreign))
            origin = f"Origin: http://{own}"
            assert (await ask(port, f"Host: {header}", origin, path=own_path, **asked))[0] == 200
            status, problem = await ask(port, f"Host: {header}", path=foreign_path, **asked)
            assert (status, problem["code"]) == (421, "unknown_host")
    assert (await ask(port, path=f"http://{REBOUND}/healthz", version="1.0"))[0] == 421
    assert (await ask(port, f"Host: {own}", path=f"http://x@{own}/healthz"))[0] == 421


async def test_an_ipv6_address_is_the_same_however_it_is_written(start: Start) -> None:
    port = await start()
    for host, origin in (("[::1]", "[0:0:0:0:0:0:0:1]"), ("[0::FE80:1]", "[::fe80:1]")):
        headers = (f"Host: {host}:{port}", f"Origin: http://{origin}:{port}")
        assert (await ask(port, *headers, path="/v1/state"))[0] == 200
    for origin in (f"[::2]:{port}", f"[::1]:{port + 1}", "[::1]", f"[::1].example:{port}"):
        headers = (f"Host: [::1]:{port}", f"Origin: http://{origin}")
        status, problem = await ask(port, *headers, path="/v1/state")
        assert (status, problem["code"]) == (403, "foreign_origin")


async def test_a_foreign_page_is_refused_whatever_the_case(start: Start) -> None:
    port = await start()
    own = (f"Host: LocalHost:{port}", f"Origin: http://localhost:{port}")
    assert (await ask(port, *own, path="/v1/state"))[0] == 200
    for origin in (f"http://{REBOUND}", "http://localhost", "null", f"http://localhost.:{port}"):
        status, problem = await ask(
            port, f"Host: localhost:{port}", f"Origin: {origin}", path="/v1/state"
        )
        assert (status, problem["code"]) == (403, "foreign_origin")


async def test_a_forwarded_host_is_believed_of_trusted_proxies_only(start: Start) -> None:
    """A proxy that does not keep Host asks for the box by its own address."""
    headers = (
        "Host: 127.0.0.1:8787",
        "Origin: https://box.example",
        "X-Forwarded-Host: box.example",
    )
    port = await start(allowed_hosts=("box.example",))
    assert (await ask(port, *headers, path="/v1/state"))[0] == 403
    port = await start(allowed_hosts=("box.example",), trusted_proxies=("10.0.0.0/8",))
    assert (await ask(port, *headers, path="/v1/state"))[0] == 403
    port = await start(allowed_hosts=("box.example",), trusted_proxies=("127.0.0.0/8",))
    assert (await ask(port, *headers, path="/v1/state"))[0] == 200
    head = "".join(f"{line}\r\n" for line in ("GET /v1/ui HTTP/1.1", *headers)).encode()
    assert (await raw(port, head + UPGRADE + b"\r\n"))[0] == 101
    # A page at a foreign name can send the header, too; the proxy's own comes after it.
    for forged in (("box.example, evil.example",), ("box.example", REBOUND), (REBOUND,)):
        lines = [f"X-Forwarded-Host: {host}" for host in forged]
        assert (await ask(port, headers[0], *lines, path="/v1/state"))[0] == 421
    assert (await ask(port, "Host: 127.0.0.1:8787", path="/healthz"))[0] == 200


async def test_a_long_name_is_not_repeated_whole(start: Start) -> None:
    port = await start()
    status, problem = await ask(port, f"Host: {'a.' * 2_000}example")
    assert status == 421
    assert len(problem["detail"]) < 500


def test_the_machines_own_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    resolver, known = tmp_path / "resolv.conf", tmp_path / "hosts"
    monkeypatch.setattr(addresses, "_RESOLVER", resolver)
    monkeypatch.setattr(addresses, "_HOSTS", known)
    monkeypatch.setattr(socket, "gethostname", lambda: "Gate-Box.example.net")
    plain = ["gate-box.example.net", "gate-box", "gate-box.local"]
    assert addresses.own_names("0.0.0.0") == plain  # without these files
    resolver.write_text("# made\nsearch Fritz.box corp.example.\noptions edns0\n\nsearch\n")
    known.write_text(
        "127.0.0.1 localhost\n127.0.1.1 gate-box.street.example gate-box other # gate-box.no\n"
    )
    found = addresses.own_names("0.0.0.0")
    assert found == [
        *plain, "gate-box.fritz.box", "gate-box.corp.example", "gate-box.street.example",
    ]  # fmt: skip
    assert addresses.own_names("127.0.0.1") == plain
    assert hosts.HostError.http_status == 421
