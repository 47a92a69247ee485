"""Cameras that send what no program would, at random: the box and the good camera do not care.

Valid conversations are changed bit by bit, value by value and message by message. The seeds are
fixed, so a failure comes again; the order in which connections are served is not. The rates they
ask for are modest: who asks for a thousand frames a second is planned for, at the others' cost.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.link.messages import CameraPing, FrameHeader, Hello, Pong, Report
from tests.end_to_end.running import SIZE_PX, counts_of, running, unharmed_bystander, until
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")

AT_ONCE = 3
CONNECTIONS = 12
MESSAGES = 30

Message = bytes | str
"""Binary, or text."""

ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 0.5, 1e308, -1e308, 2**31, 2**63 - 1, 2**64 - 1, "", "x" * 300, "\0",
    "\ud7ff", [], [[]], {}, {"": 0}, [1, "1"], [[1, 1], [2, 0.5]], [[300, 1]] * 20,
)  # fmt: skip


def hello(rng: random.Random) -> Message:
    name = f"fuzz-{rng.randrange(6)}"
    deadlines = rng.choice([1.0, 50.0, 2000.0, 60_000.0])
    return (
        Hello(name, *SIZE_PX, slo_ms=deadlines, rate_hz=rng.choice([0.1, 5.0]), instance=name)
        .encode()
        .decode()
    )


def frame(rng: random.Random) -> Message:
    now_ns = rng.choice([0, 1, rng.randrange(10**12), 2**63 - 1])
    header = FrameHeader(
        frame=rng.choice([0, 1, rng.randrange(2**32)]),
        captured_ns=now_ns,
        sent_ns=min(2**63 - 1, now_ns + rng.choice([0, 10**6, 10**12])),
        width_px=rng.choice([1, 320, 65_535]),
        height_px=rng.choice([1, 180, 65_535]),
        captured_total=rng.choice([0, 1, rng.randrange(100), 2**32 - 1]),
    )
    return header.encode() + JPEG


def pong(rng: random.Random) -> Message:
    return Pong(rng.randrange(8), rng.choice([0, 10**9, 2**63 - 1])).encode().decode()


def ping(rng: random.Random) -> Message:
    return CameraPing(rng.randrange(2**40)).encode().decode()


def report(rng: random.Random) -> Message:
    skipped = {rng.choice("abc"): rng.choice([0, 1, 2**40]) for _ in range(rng.randrange(4))}
    return Report(captured=rng.randrange(2**40), skipped=skipped).encode().decode()


KINDS: tuple[Callable[[random.Random], Message], ...] = (frame, frame, pong, ping, report, hello)


def changed(rng: random.Random, message: Message) -> Message:
    """Return a message as nobody sends it."""
    if rng.random() < 0.3:
        return swapped(message)
    if isinstance(message, str) and rng.random() < 0.6:
        return with_odd_value(rng, message)
    data = bytearray(message.encode() if isinstance(message, str) else message)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(min(len(data), rng.choice([40, 400, 10**6]))) if data else 0
        match rng.randrange(4):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                data[at:at] = rng.randbytes(rng.choice([1, 8, 3000]))
            case 3:
                del data[at : at + rng.randint(1, 16)]
    return data.decode(errors="replace") if isinstance(message, str) else bytes(data)


def swapped(message: Message) -> Message:
    """Return it as text where it is binary, and the other way round."""
    return message.encode() if isinstance(message, str) else message.decode(errors="replace")


def with_odd_value(rng: random.Random, message: str) -> str:
    """Return a message with another value, a field more or one less."""
    fields = orjson.loads(message)
    name = rng.choice([*fields, "extra"])
    if rng.random() < 0.2:
        fields.pop(name, None)
    else:
        fields[name] = rng.choice(ODD_VALUES)
    return orjson.dumps(fields).decode()


async def misbehave(app: App, seed: int) -> None:
    """Have one conversation, as wrong as its seed says, until the box or the seed ends it."""
    rng = random.Random(seed)
    wrongness = rng.choice([0.1, 0.4, 0.9])
    async with aiohttp.ClientSession() as client:
        socket = await client.ws_connect(f"{app.url}/v1/stream", max_msg_size=0)
        reading = asyncio.create_task(read_all(socket))
        try:
            messages = [hello(rng)] if rng.random() < 0.9 else []
            messages += [rng.choice(KINDS)(rng) for _ in range(MESSAGES)]
            for message in messages:
                sent = changed(rng, message) if rng.random() < wrongness else message
                if socket.closed:
                    break
                with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                    await (
                        socket.send_str(sent) if isinstance(sent, str) else socket.send_bytes(sent)
                    )
                await asyncio.sleep(rng.choice([0, 0, 0.003]))
            if rng.random() < 0.5:
                # However busy the machine is: some stay until their frames have ended.
                await until(lambda: not fuzz_pending(app), "frames to end")
                await socket.close()
        finally:
            reading.cancel()  # half of them vanish without a word


def fuzz_pending(app: App) -> int:
    """Return how many frames of these cameras have not ended."""
    names = [name for name in app.box.cameras if name.startswith("fuzz-")]
    return sum(counts_of(app, name).pending for name in names)


async def read_all(socket: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in socket:
        pass


async def fuzz(app: App, seeds: range) -> None:
    waiting = iter(seeds)

    async def one_after_another() -> None:
        for seed in waiting:
            await misbehave(app, seed)

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


async def test_random_messages_harm_neither_the_box_nor_another_camera(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app):
            await fuzz(app, range(CONNECTIONS))
        await until(lambda: app.box.connected == 0, "all to be gone")
        names = [str(name) for name in app.box.cameras]
        assert any(name.startswith("fuzz-") for name in names)
        await until(lambda: all(counts_of(app, n).pending == 0 for n in names), "all to end")
        for name in names:
            counts = counts_of(app, name)
            assert counts.captured == counts.on_time + counts.late + sum(counts.dropped.values())
        assert sum(counts_of(app, name).on_time for name in names if name != "bystander") > 0
        assert sum(counts_of(app, name).dropped["invalid"] for name in names) > 0
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
