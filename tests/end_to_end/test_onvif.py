"""Network cameras are found by WS-Discovery, and tell their streams over ONVIF."""

import asyncio
import importlib.util
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from edgebox.app.composition import App
from edgebox.commands.root import main
from edgebox.domain.source_address import Credentials
from edgebox.ingest import onvif_cameras
from edgebox.ingest.onvif_cameras import (
    GROUP,
    DiscoveryError,
    FoundStream,
    OnvifCamera,
    answered,
    find_cameras,
    streams_of,
)
from tests.conftest import PATIENCE_S
from tests.end_to_end.onvif_camera import match, onvif_camera
from tests.end_to_end.running import running

pytestmark = pytest.mark.usefixtures("few_sizes")

USER, PASSWORD, HOST = "ann", "p@ss/w0rd", "127.0.0.1"


def stream(name: str, width_px: int, height_px: int) -> FoundStream:
    return {
        "url": f"rtsp://127.0.0.1:8554/{name}",
        "codec": "h264",
        "width_px": width_px,
        "height_px": height_px,
    }


async def test_a_camera_is_found_and_tells_its_streams_to_who_may_know() -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group):
        [camera] = await find_cameras(1.0, group)
        assert (camera.name, camera.host) == ("Front door", "127.0.0.1")
        # Largest first, and without the password that the camera wrote into its address.
        assert await streams_of(camera, Credentials(USER, PASSWORD)) == [
            stream("main", 1920, 1080),
            stream("sub", 640, 360),
        ]
        assert PASSWORD not in "".join(device.heard)
        for wrong in (None, Credentials(USER, "wr0ng")):
            with pytest.raises(DiscoveryError, match="password is wrong or missing"):
                await streams_of(camera, wrong)


@contextmanager
def listening_on(interface: int) -> Iterator[socket.socket]:
    """Listen as a camera does that is on the network of one interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as camera:
        camera.bind((GROUP[0], 0))
        member = struct.pack("4s4si", socket.inet_aton(GROUP[0]), bytes(4), interface)
        camera.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        camera.settimeout(PATIENCE_S)
        yield camera


@pytest.mark.skipif(sys.platform != "linux", reason="multicast over loopback is Linux's")
async def test_every_network_of_the_machine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # Loopback stands for the second network, where the default route does not lead.
    there, gone = socket.if_nametoindex("lo"), 1 << 30
    monkeypatch.setattr(onvif_cameras, "_interfaces", lambda: [gone, there])
    with listening_on(there) as device:
        looking = asyncio.create_task(find_cameras(1.0, (GROUP[0], device.getsockname()[1])))
        _, asker = await asyncio.to_thread(device.recvfrom, 65_536)
        device.sendto(match(f"http://{asker[0]}:8080/onvif"), asker)
        # Answered from the only address that this machine has there.
        assert [camera.port for camera in await looking] == [8080]


async def test_a_network_that_takes_no_question_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onvif_cameras, "_interfaces", lambda: [1 << 30])
    with pytest.raises(DiscoveryError, match=r"cannot be looked for in this network: .*Cannot"):
        await find_cameras(0.0)


@pytest.mark.parametrize("how", ["fault", "sizeless", "elsewhere"])
async def test_a_profile_that_fails_leaves_the_others(how: str) -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group):
        [camera] = await find_cameras(1.0, group)
        device.broken["main"] = how
        credentials = Credentials(USER, PASSWORD)
        assert await streams_of(camera, credentials) == [stream("sub", 640, 360)]
        device.broken["sub"] = how
        with pytest.raises(DiscoveryError, match="it "):
            await streams_of(camera, credentials)


async def test_a_camera_that_names_a_service_elsewhere_is_sent_nothing_more() -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group):
        [camera] = await find_cameras(1.0, group)
        device.url = "http://127.0.0.2/onvif"
        with pytest.raises(DiscoveryError, match="another address than its own"):
            await streams_of(camera, Credentials(USER, PASSWORD))
        assert not any("GetProfiles" in text for text in device.heard)


@pytest.mark.parametrize("begins", ["rtsp://127.0.0.2/", "file:/srv/", "/srv/"])
async def test_a_camera_that_names_a_stream_elsewhere_does_not_get_it_into_the_form(
    begins: str,
) -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group):
        [camera] = await find_cameras(1.0, group)
        device.streams = begins
        with pytest.raises(DiscoveryError, match="another address than its own for its streams"):
            await streams_of(camera, Credentials(USER, PASSWORD))


async def test_what_is_no_camera_says_so() -> None:
    with pytest.raises(DiscoveryError, match="does not speak ONVIF"):
        await streams_of(OnvifCamera("", "127.0.0.1", 1), None)


def test_answers_that_are_damaged_or_of_others_are_left_out() -> None:
    whole = match("http://10.0.0.7:8080/onvif")
    assert list(answered(whole, "10.0.0.7")) == [OnvifCamera("Front door", "10.0.0.7", 8080)]
    assert list(answered(whole, "10.0.0.8")) == []
    assert list(answered(b"<!DOCTYPE a []>" + whole, "10.0.0.7")) == []
    assert list(answered(match("http://10.0.0.7:99999/"), "10.0.0.7")) == []
    for end in range(0, len(whole) - 1, 7):
        assert list(answered(whole[:end], "10.0.0.7")) == []


def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    result = CliRunner().invoke(main, ["cameras", "discover"])
    assert result.exit_code != 0
    assert "pip install 'edgebox[onvif]'" in result.output


async def test_a_box_finds_cameras_and_asks_the_one_that_is_named(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group), running(database) as app:
        monkeypatch.setattr("edgebox.ingest.camera_search.GROUP", group)
        status, found = await discover(app)
        assert status == 200
        [camera] = found["cameras"]
        assert (camera["name"], camera["host"], camera["streams"]) == ("Front door", HOST, [])
        assert "password is wrong or missing" in camera["why"]
        status, found = await discover(app, host=HOST, username=USER, password=PASSWORD)
        assert status == 200
        [camera] = found["cameras"]
        assert camera["why"] == ""
        assert camera["streams"][0] == {
            "url": "rtsp://127.0.0.1:8554/main", "codec": "h264",
            "width_px": 1920, "height_px": 1080,
        }  # fmt: skip
        assert PASSWORD not in "".join(device.heard)
        asked = len(device.heard)
        status, found = await discover(app, host="10.0.0.9", username=USER, password=PASSWORD)
        assert (status, found) == (200, {"cameras": []})
        assert len(device.heard) == asked


async def test_a_box_tells_a_password_to_no_more_than_one_camera(database: Path) -> None:
    async with running(database) as app:
        status, problem = await discover(app, username=USER, password=PASSWORD)
        assert status == 400
        assert "host is needed with a user name" in problem["detail"].replace("search.", "")
        status, problem = await discover(app, host=HOST, password=PASSWORD)
        assert status == 400
        assert PASSWORD not in str(problem)


async def test_a_box_searches_once_at_a_time(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with onvif_camera(USER, PASSWORD) as (_, group), running(database) as app:
        monkeypatch.setattr("edgebox.ingest.camera_search.GROUP", group)
        answers = await asyncio.gather(discover(app), discover(app))
        assert sorted(status for status, _ in answers) == [200, 503]
        [refused] = [problem["code"] for status, problem in answers if status == 503]
        assert refused == "search_busy"


async def test_a_box_without_the_extra_says_what_to_install(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(database) as app:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        status, problem = await discover(app)
        assert (status, problem["code"]) == (501, "no_discovery")
        assert "pip install 'edgebox[onvif]'" in problem["detail"]


async def discover(app: App, **fields: str) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{app.url}/v1/sources/discover", json=fields) as answer,
    ):
        return answer.status, await answer.json()
