"""Boxes that announce themselves by mDNS on the loopback interface, and cameras that find them."""

import asyncio
import os
import pty
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from edgebox.camera.finding import find_boxes
from edgebox.domain.access import Scope
from edgebox.domain.errors import EdgeboxError
from edgebox.link.announcement import FoundBox
from tests.conftest import PATIENCE_S, copied
from tests.end_to_end.running import CLOSED, free_port, new_token, running, until

pytestmark = pytest.mark.usefixtures("few_sizes")

_chance = random.SystemRandom()
_CAMERA = """
import edgebox.camera.finding, edgebox.commands.box_choice, edgebox.commands.root
edgebox.camera.finding.SERVICE_TYPE = "{type}"
edgebox.commands.box_choice._LOCAL = ("127.0.0.1", {port})
edgebox.commands.root.main()
"""


@pytest.fixture
def service_type(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the test a service of its own: other boxes of this machine may announce theirs."""
    name = f"_edgebox-{_chance.randrange(100_000)}._tcp.local."
    monkeypatch.setattr("edgebox.camera.finding.SERVICE_TYPE", name)
    monkeypatch.setattr("edgebox.web.announcing.SERVICE_TYPE", name)
    monkeypatch.setattr("edgebox.link.announcement.SERVICE_TYPE", name)
    return name


async def found(wanted: int) -> list[FoundBox]:
    """Look until so many boxes are found."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            boxes = await find_boxes(1.5)
            if len(boxes) == wanted:
                return boxes


@asynccontextmanager
async def camera(
    service_type: str, *options: str, stdin: int | None = None, environment: Sequence[str] = ()
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `edgebox camera` without --server, with no box at this machine's usual port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _CAMERA.format(type=service_type, port=free_port()),
        "camera",
        "scene:",
        "--size=320x180",
        "--json",
        "--duration=2",
        "--name=gate",
        "--slo-ms=30000",
        *options,
        env={**os.environ, **dict(each.split("=", 1) for each in environment)},
        stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_camera_waits_for_a_box_and_finds_it(database: Path, service_type: str) -> None:
    async with camera(service_type) as process:
        assert process.stderr is not None
        said = await asyncio.wait_for(process.stderr.readline(), PATIENCE_S)
        assert b"no box is found yet" in said
        async with running(database, server__announce=True, server__name="yard") as app:
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert process.returncode == 0, errors
            assert f"at {app.url}" in errors.decode()
            assert b"found yard on " in errors
            assert app.box.metrics.total().captured > 0


async def test_a_box_that_has_stopped_is_not_found(database: Path, service_type: str) -> None:
    async with running(database, server__announce=True) as app:
        (box,) = await found(1)
        assert box.url == app.url
    assert await find_boxes(1.5) == []


async def test_a_box_is_silent_unless_told(database: Path, service_type: str) -> None:
    async with running(database):
        assert await find_boxes(1.5) == []


async def test_the_announcement_says_that_there_is_tls(database: Path, service_type: str) -> None:
    async with running(database, server__announce=True, server__tls="self-signed") as app:
        (box,) = await found(1)
        assert box.url == f"https://127.0.0.1:{app.port}"


async def test_of_several_boxes_a_person_chooses(
    database: Path, tmp_path: Path, service_type: str
) -> None:
    names: dict[str, Any] = {"server__announce": True}
    (tmp_path / "other").mkdir()
    other = copied(database, tmp_path / "other")
    async with (
        running(database, **names, server__name="yard") as yard,
        running(other, **names, server__name="gate") as gate,
    ):
        assert [box.url for box in await found(2)] == [gate.url, yard.url]
        async with camera(service_type) as process:
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert process.returncode == 1
            assert b"several boxes are found; name one with --server:" in errors
            assert yard.url in errors.decode()
            assert gate.url in errors.decode()
        person, terminal = pty.openpty()
        try:
            async with camera(service_type, stdin=terminal) as process:
                os.write(person, b"2\n")
                _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
                assert b"Which one" in errors
                assert f"at {yard.url}\n" in errors.decode()
                await until(lambda: yard.box.metrics.total().captured > 0, "the chosen box's frame")
        finally:
            os.close(person)
            os.close(terminal)
        assert gate.box.metrics.total().captured == 0


async def test_a_token_goes_only_to_a_box_whose_certificate_is_known(
    database: Path, tmp_path: Path, service_type: str
) -> None:
    options = {**CLOSED, "server__announce": True, "server__tls": "self-signed"}
    async with running(database, **options) as app:
        token = f"EDGEBOX_TOKEN={await new_token(app, Scope.CAMERA, 'gate')}"
        async with camera(service_type, environment=[token]) as process:
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert process.returncode == 1
            assert b"a token is not sent to a box that was only found" in errors
        assert app.fingerprint is not None
        known = ("--fingerprint", app.fingerprint)
        async with camera(service_type, *known, environment=[token]) as process:
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert process.returncode == 0, errors
        assert app.box.metrics.total().captured > 0


async def test_without_the_library_the_box_says_what_to_install(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EdgeboxError, match="needs the extra mdns"):
        async with running(database, server__announce=True):
            pass
