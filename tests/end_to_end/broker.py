"""A real MQTT broker on loopback for a test, and a client that hears everything it says."""

import asyncio
import contextlib
import getpass
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiomqtt

from tests.end_to_end.running import free_port, until
from tests.programs import program


class Broker:
    """Mosquitto; it keeps nothing when it is killed."""

    def __init__(
        self,
        folder: Path,
        password: str | None = None,
        tls: bool = False,
        packet_max: int | None = None,
    ) -> None:
        self.port = free_port()
        self.certificate = folder / "broker.pem"
        self._tls = tls
        self._folder = folder
        lines = [
            f"listener {self.port} 127.0.0.1",
            f"user {getpass.getuser()}",
            "persistence false",
            f"allow_anonymous {'true' if password is None else 'false'}",
        ]
        if packet_max is not None:
            lines.append(f"max_packet_size {packet_max}")
        self._password = password
        if password is not None:
            lines.append(f"password_file {folder / 'passwords'}")
        if tls:
            lines += [f"certfile {self.certificate}", f"keyfile {folder / 'broker.key'}"]
        self._config = folder / "mosquitto.conf"
        self._config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        mosquitto = program("mosquitto")
        if self._password is not None:
            await self._write_passwords()
        if self._tls:
            await self._write_certificate()
        self._process = await asyncio.create_subprocess_exec(
            mosquitto, "-c", str(self._config), stderr=(self._folder / "mosquitto.log").open("a")
        )
        await until(self._listens, "mosquitto to listen")

    async def _write_passwords(self) -> None:
        passwd = program("mosquitto", "mosquitto_passwd")
        file, password = str(self._folder / "passwords"), self._password
        made = await asyncio.create_subprocess_exec(passwd, "-c", "-b", file, "box", str(password))
        assert await made.wait() == 0

    async def _write_certificate(self) -> None:
        openssl = program("openssl")
        made = await asyncio.create_subprocess_exec(
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(self._folder / "broker.key"), "-out", str(self.certificate)),
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await made.wait() == 0

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, "mosquitto has ended; see its log"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@contextlib.asynccontextmanager
async def broker(
    folder: Path, password: str | None = None, tls: bool = False, packet_max: int | None = None
) -> AsyncIterator[Broker]:
    running = Broker(folder, password, tls, packet_max)
    await running.start()
    try:
        yield running
    finally:
        await running.kill()


@dataclass
class Received:
    """All messages of a client, in order, and what it last received under each topic."""

    messages: list[tuple[str, str, bool]] = field(default_factory=list)
    """(topic, payload, whether the broker had kept it); bytes that are no text as surrogates."""
    last: dict[str, str] = field(default_factory=dict)

    def events(self, camera: str) -> list[dict[str, Any]]:
        topic = f"edgebox/camera/{camera}/event"
        return [json.loads(payload) for at, payload, _ in self.messages if at == topic]

    def said(self, under: str) -> list[str]:
        return [payload for topic, payload, _ in self.messages if topic == under]

    def kinds(self, camera: str) -> list[str]:
        return [event["type"] for event in self.events(camera)]

    async def says(self, topic: str, payload: str) -> None:
        """Wait until this is the last that was received under a topic."""
        await until(lambda: self.last.get(topic) == payload, f"{topic} to be {payload}")

    async def tells(self, camera: str, kind: str) -> dict[str, Any]:
        """Wait for an event; return the newest such."""
        await until(lambda: kind in self.kinds(camera), f"{kind} of {camera}")
        return [event for event in self.events(camera) if event["type"] == kind][-1]


@contextlib.asynccontextmanager
async def listening(
    to: Broker, username: str | None = None, password: str | None = None
) -> AsyncIterator[Received]:
    """Hear everything, retained messages first."""
    received = Received()

    async def listen() -> None:
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            topic, payload = str(message.topic), message.payload.decode(errors="surrogateescape")
            received.messages.append((topic, payload, message.retain))
            received.last[topic] = payload

    async with aiomqtt.Client("127.0.0.1", to.port, username=username, password=password) as client:
        await client.subscribe("#", qos=1)
        task = asyncio.create_task(listen())
        try:
            yield received
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
