"""The load generator: one process on cores of its own, which reads orders and writes figures.

An order is one line of JSON on standard input:

    {"host", "port", "path", "headers": {}, "body": base64, "seconds",
     "in_flight": N}                         as many requests at once, each sent on an answer
    {..., "rates_hz": [[rate, seconds], ...]}  Poisson arrivals, whether answered or not

and its figures one line on standard output: for each request that arrived, when it did, its latency
(ns, counted from its arrival) and its status; -1: no answer. Arrivals that find all connections
busy wait for one, and that counts.
"""

import asyncio
import base64
import contextlib
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import uvloop

CONNECTIONS_MAX = 512
PATIENCE_S = 3.0
NO_ANSWER = -1


def request_of(order: dict[str, Any]) -> bytes:
    """Return the HTTP request of an order."""
    body = base64.b64decode(order["body"])
    head = [f"POST {order['path']} HTTP/1.1", f"Host: {order['host']}:{order['port']}"]
    head += [f"{name}: {value}" for name, value in order["headers"].items()]
    head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection with one request at a time."""

    def __init__(self) -> None:
        """Connect with `loop.create_connection`."""
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = bytearray()
        self._done: Callable[[int], None] | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def ask(self, request: bytes, done: Callable[[int], None]) -> None:
        """Send a request; `done` is called with its status."""
        assert self._transport is not None
        self._done = done
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._buffer[:head_end]).lower()
        at = head.find(b"content-length:")
        if at >= 0:
            length = int(head[at + 15 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < head_end + 4 + length:
                return
        elif not self._buffer.endswith(b"0\r\n\r\n"):
            return
        self._buffer.clear()
        self._end(int(head.split(b" ", 2)[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._end(NO_ANSWER)

    def close(self) -> None:
        """Close it, whatever it waits for."""
        if self._transport is not None:
            self._transport.close()

    def _end(self, status: int) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(status)


class Load:
    """The requests of one order."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Send nothing yet."""
        self._order = order
        self._request = request_of(order)
        self._free: list[Connection] = []
        self._open: set[Connection] = set()
        self._waiting: deque[int] = deque()
        self._opening = 0
        self._began_ns = 0
        self._under_way = 0
        self.ended: list[tuple[float, int, int]] = []
        """(arrival in s, latency in ns, status)."""
        self.on_end: Callable[[], None] = lambda: None
        self._idle = asyncio.Event()
        """Whether nothing is under way; set by what ends."""

    async def run(self) -> list[tuple[float, int, int]]:
        """Send everything; return what became of it."""
        self._began_ns = time.perf_counter_ns()
        if "in_flight" in self._order:
            await self._closed(self._order["in_flight"], self._order["seconds"])
        else:
            await self._poisson(self._order["rates_hz"])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._idle.wait()
        now_ns = time.perf_counter_ns()
        self.ended += [(self._since_s(at), now_ns - at, NO_ANSWER) for at in self._waiting]
        self._waiting.clear()
        for connection in list(self._open):
            connection.close()
        await asyncio.sleep(0.05)
        return self.ended

    async def _closed(self, in_flight: int, seconds: float) -> None:
        stop_ns = self._began_ns + round(seconds * 1e9)

        def again() -> None:
            if time.perf_counter_ns() < stop_ns:
                self._arrive(time.perf_counter_ns())

        self.on_end = again
        for _ in range(in_flight):
            self._arrive(time.perf_counter_ns())
        await asyncio.sleep(seconds)

    async def _poisson(self, rates_hz: list[list[float]]) -> None:
        draw, due_ns, end_ns = random.Random(1), float(self._began_ns), float(self._began_ns)
        for rate_hz, seconds in rates_hz:
            end_ns += seconds * 1e9
            due_ns = max(due_ns, end_ns - seconds * 1e9)
            while (due_ns := due_ns + draw.expovariate(rate_hz) * 1e9) < end_ns:
                left_s = (due_ns - time.perf_counter_ns()) / 1e9
                # Timers are late by up to a millisecond: what is due meanwhile is sent together.
                if left_s > 0:
                    await asyncio.sleep(left_s)
                self._arrive(round(due_ns))

    def _since_s(self, at_ns: int) -> float:
        return (at_ns - self._began_ns) / 1e9

    def _arrive(self, at_ns: int) -> None:
        self._under_way += 1
        self._idle.clear()
        while self._free:
            connection = self._free.pop()
            if not connection.lost:
                self._ask(connection, at_ns)
                return
        self._waiting.append(at_ns)
        if len(self._open) + self._opening < CONNECTIONS_MAX:
            self._opening += 1
            asyncio.ensure_future(self._connect())  # noqa: RUF006 - the loop outlives it

    async def _connect(self) -> None:
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection, self._order["host"], self._order["port"]
            )
        except OSError:
            return
        finally:
            self._opening -= 1
        self._open.add(connection)
        self._next(connection)

    def _ask(self, connection: Connection, at_ns: int) -> None:
        def done(status: int) -> None:
            latency_ns = time.perf_counter_ns() - at_ns
            self.ended.append((self._since_s(at_ns), latency_ns, status))
            if connection.lost:
                self._open.discard(connection)
            else:
                self._next(connection)
            self.on_end()
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

        connection.ask(self._request, done)

    def _next(self, connection: Connection) -> None:
        if self._waiting:
            self._ask(connection, self._waiting.popleft())
        else:
            self._free.append(connection)


def main() -> None:
    """Obey orders until standard input ends."""
    for line in sys.stdin:
        load = Load(json.loads(line))
        sys.stdout.write(json.dumps(uvloop.run(load.run())) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
