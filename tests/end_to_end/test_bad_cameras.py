"""Cameras that break the protocol or vanish: told why, noted, and no other camera notices."""

import asyncio
import contextlib
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId, DropReason
from edgebox.link import receipts
from edgebox.link.messages import Bye, ErrorMessage, Welcome
from edgebox.planning.planner import plan
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE
from edgebox.web import stream
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import (
    counts_of,
    get_json,
    gone,
    running,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.wire import JPEG, WireCamera, upgrade_request, websocket_frame

pytestmark = pytest.mark.usefixtures("few_sizes")

HELLO = {"type": "hello", "versions": [1], "camera": "gate", "width_px": 320, "height_px": 180}


@pytest.mark.parametrize(
    ("first", "code", "close_code", "message"),
    [
        ("nonsense", "bad_hello", 4001, "JSON"),
        ("[]", "bad_hello", 4001, "object"),
        ({"type": "pong", "id": 1, "camera_ns": 1}, "bad_hello", 4001, "must be a hello, not pong"),
        ({"type": "greeting"}, "bad_hello", 4001, "greeting"),
        ({**HELLO, "slo_ms": "fast"}, "bad_hello", 4001, "hello.slo_ms must be a number from 1"),
        ({**HELLO, "camera": "../x"}, "bad_hello", 4001, "hello.camera must be 1 to 64 letters"),
        ({**HELLO, "width_px": 0, "rate_hz": 0}, "bad_hello", 4001, "hello.rate_hz"),
        ({**HELLO, "versions": [7]}, "version", 4002, "this box speaks protocol version 1"),
        (
            {**HELLO, "family": "cats"},
            "unknown_family",
            4004,
            "no model family cats; it has street",
        ),
        (b"F" + os.urandom(400), "bad_hello", 4001, "must be a hello, as text"),
        (b"\x00", "bad_hello", 4001, "must be a hello, as text"),
    ],
)
async def test_a_bad_hello_is_refused_with_its_reason(
    database: Path, first: object, code: str, close_code: int, message: str
) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app):
            camera = WireCamera(app)
            await camera.connect()
            if isinstance(first, bytes):
                await camera.binary(first)
            else:
                await camera.text(first if isinstance(first, str) else orjson.dumps(first))
            error = await camera.error(code)
            assert error.fatal
            assert message in error.message
            assert await camera.ended() == close_code
            await camera.close()
        assert any(message in text for text in texts(app, "warning"))
        assert list(app.box.cameras) == ["bystander"]


async def test_a_camera_that_never_says_hello_is_let_go(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HELLO_TIMEOUT_NS", 200_000_000)
    async with running(database) as app, unharmed_bystander(app):
        camera = WireCamera(app)
        await camera.connect()
        assert "no hello came" in (await camera.error("bad_hello")).message
        assert await camera.ended() == 4001
        await camera.close()


async def test_unknown_messages_are_answered_and_a_hundred_are_enough(database: Path) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            await camera.json(type="news", text="it rains")
            error = await camera.error("bad_message")
            assert not error.fatal
            assert "news" in error.message
            await camera.result(await camera.frame())
            for _ in range(100):
                await camera.text("{")
            fatal = await camera.wait_for(ErrorMessage, lambda received: received.fatal)
            assert fatal.code == "bad_message"
            assert "too many messages not understood" in fatal.message
            assert await camera.ended() == 4006
            complaints = [
                received for received in camera.received if isinstance(received, ErrorMessage)
            ]
            assert len(complaints) == 101
        await gone(app, "gate")
        assert counts_of(app, "gate").on_time == 1
        assert any("too many messages" in text for text in texts(app, "warning"))


async def test_an_endless_text_is_not_even_parsed(database: Path) -> None:
    async with running(database) as app, unharmed_bystander(app), WireCamera(app) as camera:
        await camera.text('{"type": "report", "skipped": ' + "[" * 4_000_000)
        assert "at most 65536 bytes, not 40000" in (await camera.error("bad_message")).message
        await camera.result(await camera.frame())


async def test_a_second_hello_is_an_error_that_is_not_fatal(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        await camera.text(camera.hello.encode())
        assert "already sent its hello" in (await camera.error("bad_message")).message
        await camera.result(await camera.frame())


async def test_an_error_that_a_camera_reports_is_shown(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        await camera.json(type="error", code="lens", message="the lens is dirty", fatal=False)
        await until(lambda: "gate says: the lens is dirty" in texts(app), "the event")


@pytest.mark.parametrize("kind", ["ping", "pong", "report", "error", "frame"])
async def test_a_flood_of_small_messages_ends_its_connection_only(
    database: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(receipts, "SMALL_FRAMES_PER_S", 0)  # however long sending takes
    said = ErrorMessage("x", "boo", False).encode().decode()
    async with running(database) as app, unharmed_bystander(app):
        async with WireCamera(app) as camera:
            send: dict[str, Callable[[], Awaitable[object]]] = {
                "ping": camera.socket.ping,
                "pong": camera.socket.pong,
                "report": camera.report,
                "error": lambda: camera.text(said),
                "frame": lambda: camera.frame(b""),
            }
            with contextlib.suppress(ConnectionError):
                for _ in range(receipts.SMALL_FRAMES_BURST + 1):
                    await send[kind]()
            error = await camera.error("too_fast")
            assert error.fatal
            assert "send fewer messages, pings and pongs" in error.message
            assert await camera.ended() == 4012
        await gone(app, "gate")
        counts = counts_of(app, "gate")
        assert counts.captured == counts.on_time + counts.late + sum(counts.dropped.values())
        assert sum("gate" in text for text in texts(app)) <= 2 * (NOTICES_PER_MINUTE + 1)


async def test_what_a_camera_says_over_and_over_is_noted_a_few_times_and_counted(
    database: Path,
) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        for _ in range(100):
            await camera.json(type="error", code="lens", message="boo", fatal=False)
        await camera.result(await camera.frame())
        # A minute may have ended meanwhile.
        assert texts(app, "warning").count("gate says: boo") <= 2 * NOTICES_PER_MINUTE
        app.box.end_minute()
        assert any("more notices within a minute" in text for text in texts(app, "warning"))
        for number in range(NOTICES_PER_MINUTE + 3):
            app.box.notices.publish_from("127.0.0.1", "info", f"news {number}", "gate")
        app.box.notices.publish(
            "info", "what a person has set is told whatever the camera says", "gate"
        )
        app.box.end_minute()
        *_, first, last, person, more = texts(app)
        assert (first, last) == tuple(f"news {NOTICES_PER_MINUTE - at}" for at in (2, 1))
        assert "person" in person
        assert more == "gate: 3 more notices within a minute"


async def test_reports_beyond_reason_do_no_harm_to_the_counts(database: Path) -> None:
    claimed = {f"r{number}": 2**53 - 1 for number in range(16)}
    async with running(database) as app:
        for _ in range(140):
            async with WireCamera(app) as camera:
                await camera.report(skipped=claimed)
                await camera.text(Bye().encode())
                await camera.ended()
        await gone(app, "gate")
        counts = counts_of(app, "gate")
        # What a camera captures beyond its rate the plan did not ask for; both are no answers.
        unsent = counts.dropped[DropReason.SENDER.value] + counts.dropped[DropReason.PLAN.value]
        assert 140_000 <= counts.captured == unsent == sum(counts.dropped.values()) < 2**53
        for path in ("/v1/state", "/v1/cameras"):
            status, _ = await get_json(app, path)
            assert status == 200


async def test_a_name_in_use_is_refused(database: Path) -> None:
    async with running(database) as app, WireCamera(app, instance="one") as first:
        second = WireCamera(app, instance="two")
        await second.connect()
        await second.text(second.hello.encode())
        error = await second.error("camera_in_use")
        assert "a camera named gate is connected from 127.0.0.1" in error.message
        assert await second.ended() == 4003
        await second.close()
        await first.result(await first.frame())


async def test_the_same_camera_replaces_its_older_connection(database: Path) -> None:
    async with running(database) as app, WireCamera(app, instance="one") as old:
        await old.result(await old.frame())
        async with WireCamera(app, instance="one") as new:
            assert (await old.error("replaced")).fatal
            assert await old.ended() == 4010
            await new.result(await new.frame())
            assert app.box.cameras[CameraId("gate")].connected
        await gone(app, "gate")
        assert counts_of(app, "gate").on_time == 2
        assert counts_of(app, "gate").pending == 0


async def test_a_full_box_refuses_and_serves_on(database: Path) -> None:
    async with running(database, limits__cameras_max=2) as app:
        async with unharmed_bystander(app), WireCamera(app, "first") as first:
            third = WireCamera(app, "third")
            await third.connect()
            await third.text(third.hello.encode())
            error = await third.error("box_full")
            assert "2 cameras are connected, which is the configured maximum" in error.message
            assert await third.ended() == 4008
            await third.close()
            await first.result(await first.frame())
        assert "third" not in app.box.cameras


async def test_a_silent_camera_is_let_go(database: Path) -> None:
    async with running(database, limits__silent_s=1.0) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            camera.answers_pings = False
            assert "nothing was received for" in (await camera.error("silent")).message
            assert await camera.ended() == 4009
        assert any("nothing was received" in text for text in texts(app, "warning"))


async def test_a_camera_that_does_not_read_is_let_go(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_STALL_S", 0.5)
    async with running(database) as app:
        async with unharmed_bystander(app):
            raw = await RawCamera.connect(app)
            await raw.say_hello()
            # Each frame is answered twice; what is never read fills the sockets, then the outbox.
            header = WireCamera.header
            counting = WireCamera(app)
            await counting.close()
            for _ in range(200):
                for _ in range(100):
                    raw.frame(header(counting) + b"x" * receipts.SMALL_FRAME_BYTES)
                await asyncio.sleep(0)
                if not app.box.cameras[CameraId("gate")].connected:
                    break
            await gone(app, "gate")
            raw.writer.transport.abort()
        assert any("does not read what the box sends" in text for text in texts(app, "warning"))
        counts = counts_of(app, "gate")
        assert counts.pending == 0
        assert counts.dropped.total() > 1000


class RawCamera:
    """A camera on a bare TCP connection, which can stop in the middle of anything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Use `connect`."""
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, app: App) -> "RawCamera":
        """Shake hands; receive as little as possible unread."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", app.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
        writer.write(upgrade_request(app))
        answer = await reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in answer
        return cls(reader, writer)

    def message(self, opcode: int, payload: bytes, promised: int | None = None) -> None:
        """Write one WebSocket frame that promises this many bytes, masked with zeros."""
        self.writer.write(websocket_frame(opcode, payload, promised))

    def frame(self, data: bytes) -> None:
        """Write a binary message."""
        self.message(2, data)

    async def say_hello(self) -> None:
        """Say hello and wait for the welcome."""
        self.message(1, orjson.dumps(HELLO))
        assert b"welcome" in await self.reader.readuntil(b"advice")


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_a_camera_that_vanishes_in_the_middle_of_a_frame(database: Path, end: str) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app):
            raw = await RawCamera.connect(app)
            await raw.say_hello()
            now_ns = time.monotonic_ns()
            header = struct.pack("<BBHIQQHHI", 70, 1, 32, 1, now_ns, now_ns, 320, 180, 1)
            raw.frame(header + JPEG)
            raw.message(2, header + JPEG[:100], promised=len(header) + len(JPEG))
            await raw.writer.drain()
            await until(lambda: counts_of(app, "gate").captured == 1, "the first frame")
            if end == "close":
                raw.writer.close()
            else:
                raw.writer.transport.abort()
            await gone(app, "gate")
            await until(lambda: counts_of(app, "gate").pending == 0, "the first frame's end")
        assert counts_of(app, "gate").captured == 1
        assert any(text.startswith("gate left: ") for text in texts(app))


@pytest.mark.parametrize(
    "garbage", [b"\x00" * 64, b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00", os.urandom(2048)]
)
async def test_garbage_on_the_port_harms_nobody(database: Path, garbage: bytes) -> None:
    async with running(database) as app, unharmed_bystander(app):
        reader, writer = await asyncio.open_connection("127.0.0.1", app.port)
        writer.write(garbage)
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            await reader.read()
        writer.close()
        assert (await get_json(app, "/healthz"))[0] == 200


async def test_websocket_frames_that_break_websocket_itself_end_the_connection(
    database: Path,
) -> None:
    async with running(database) as app, unharmed_bystander(app):
        raw = await RawCamera.connect(app)
        await raw.say_hello()
        raw.writer.write(b"\xff\xff" + os.urandom(100))
        await gone(app, "gate")
        raw.writer.transport.abort()
        assert any("broke the WebSocket protocol" in text for text in texts(app, "warning"))


async def test_frames_of_a_camera_that_left_end_as_departed(database: Path) -> None:
    async with running(database) as app:
        async with WireCamera(app) as camera:
            for _ in range(40):
                await camera.frame()
            # It closes right behind them: the box reads them all and cannot have answered them all.
        await gone(app, "gate")
        await until(lambda: counts_of(app, "gate").pending == 0, "all to end")
        counts = counts_of(app, "gate")
        assert counts.captured == 40
        assert set(counts.dropped) == {DropReason.DEPARTED.value}


async def test_skipped_frames_are_counted_once(database: Path) -> None:
    async with running(database) as app:
        async with WireCamera(app) as camera:
            await camera.result(await camera.frame(captured_total=4))
            await camera.report(captured=6, sent=1, skipped={"window": 2, "infeasible": 3})
            await until(lambda: counts_of(app, "gate").captured == 6, "the report")
            await camera.report(captured=6, sent=1, skipped={"window": 2, "infeasible": 3})
            await camera.result(await camera.frame(captured_total=7))
        counts = counts_of(app, "gate")
        assert (counts.captured, counts.on_time, counts.pending) == (7, 2, 0)
        assert set(counts.dropped) <= {"sender", "plan"}  # how many are planned the rate says
        assert sum(counts.dropped.values()) == 5


async def test_a_stopping_box_says_bye(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        await app.stop()
        assert (await camera.wait_for(Bye)).reason == "shutdown"
        assert await camera.ended() == 1000


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/ui"])
async def test_pages_of_other_sites_may_not_connect(database: Path, path: str) -> None:
    async with running(database) as app, unharmed_bystander(app), aiohttp.ClientSession() as client:
        for origin in ("https://evil.example", "null"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(app.url + path, origin=origin)
            assert refused.value.status == 403
        async with client.ws_connect(app.url + path, origin=app.url) as allowed:
            assert not allowed.closed


async def test_a_planner_that_fails_leaves_the_plan_in_force(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no cameras to divide by")

    monkeypatch.setattr("edgebox.app.composition.plan", fail)
    async with running(database) as app, unharmed_bystander(app), WireCamera(app) as camera:
        welcome = await camera.wait_for(Welcome)
        result = await camera.result(await camera.frame())
        assert result.advice == welcome.advice
        await until(lambda: "planning failed" in caplog.text, "the log line")
        why = "ZeroDivisionError: no cameras to divide by"
        notice = f"planning failed ({why}): the last plan stays in force"
        await until(lambda: notice in texts(app, "warning"), "the notice")
        status, readiness = await get_json(app, "/readyz")
        assert (status, readiness["ready"]) == (200, True)
        assert readiness["plan"] == {"ok": False, "age_s": None, "reason": why}
        monkeypatch.setattr(app.box.driver.planning, "_planner", plan)
        await until(lambda: "there is a new plan again" in texts(app, "info"), "the next plan")
        assert texts(app, "warning").count(notice) == 1
        assert (await get_json(app, "/readyz"))[1]["plan"]["ok"]
