"""Delays what cameras and a box say to each other, for kernels without netem.

    python -m benchmarks.links_relay '{"box": ["127.0.0.1", 8787], "cameras": [...]}'

One TCP port for each camera. What comes in goes out `delay_ns` later, in either direction and in
order; the sockets' own buffers bound what is held. A camera that connects before its `opens_ns`
(CLOCK_MONOTONIC) waits outside until then, so cameras whose programs take a moment to start can
join at an exact one. Prints its addresses as one line of JSON, and ends when its input does.
"""

import asyncio
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

import orjson

_CHUNK_BYTES = 1 << 16
_CHUNKS_HELD = 64


@dataclass(frozen=True, slots=True)
class Port:
    """Where one camera connects; port 0 takes a free one."""

    camera: str
    host: str
    port: int
    delay_ns: int
    """Each way."""
    opens_ns: int
    """Whoever connects earlier waits."""


async def listen(port: Port, box: tuple[str, int]) -> asyncio.Server:
    """Serve one camera until the server is closed."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await asyncio.sleep(max(0, port.opens_ns - time.monotonic_ns()) / 1e9)
            from_box, to_box = await asyncio.open_connection(*box)
            try:
                async with asyncio.TaskGroup() as pumps:
                    pumps.create_task(_pump(reader, to_box, port.delay_ns))
                    pumps.create_task(_pump(from_box, writer, port.delay_ns))
            except* OSError:
                pass  # whoever is left sees it by the end of its connection
            finally:
                to_box.close()
        writer.close()

    return await asyncio.start_server(connected, port.host, port.port)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_ns: int) -> None:
    held: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(_CHUNKS_HELD)

    async def take_in() -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await held.put((time.monotonic_ns() + delay_ns, data))
        await held.put((time.monotonic_ns() + delay_ns, b""))

    async def hand_on() -> None:
        while True:
            due_ns, data = await held.get()
            await asyncio.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    async with asyncio.TaskGroup() as both:
        both.create_task(take_in())
        both.create_task(hand_on())


async def main() -> None:
    """Serve all ports until standard input ends."""
    request = orjson.loads(sys.argv[1])
    ports = [Port(**of) for of in request["cameras"]]
    servers = [await listen(port, (request["box"][0], request["box"][1])) for port in ports]
    addresses = {
        port.camera: server.sockets[0].getsockname()[:2]
        for port, server in zip(ports, servers, strict=True)
    }
    sys.stdout.write(orjson.dumps(addresses).decode() + "\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, lambda: ended.set() if not sys.stdin.read(1) else None)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
