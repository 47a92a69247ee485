"""Network cameras are found by WS-Discovery, and tell their streams over ONVIF."""

import importlib.util

import pytest
from click.testing import CliRunner

from edgebox.commands.root import main
from edgebox.domain.source_address import Credentials
from edgebox.ingest.onvif_cameras import (
    DiscoveryError,
    OnvifCamera,
    OnvifStream,
    answered,
    find_cameras,
    streams_of,
)
from tests.end_to_end.onvif_camera import match, onvif_camera

USER, PASSWORD = "ann", "p@ss/w0rd"


async def test_a_camera_is_found_and_tells_its_streams_to_who_may_know() -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group):
        [camera] = await find_cameras(1.0, group)
        assert (camera.name, camera.host) == ("Front door", "127.0.0.1")
        # Largest first, and without the password that the camera wrote into its address.
        assert await streams_of(camera, Credentials(USER, PASSWORD)) == [
            OnvifStream("rtsp://127.0.0.1:8554/main", "h264", 1920, 1080),
            OnvifStream("rtsp://127.0.0.1:8554/sub", "h264", 640, 360),
        ]
        assert PASSWORD not in "".join(device.heard)
        for wrong in (None, Credentials(USER, "wr0ng")):
            with pytest.raises(DiscoveryError, match="password is wrong or missing"):
                await streams_of(camera, wrong)


async def test_a_camera_that_names_a_service_elsewhere_is_sent_nothing_more() -> None:
    async with onvif_camera(USER, PASSWORD) as (device, group):
        [camera] = await find_cameras(1.0, group)
        device.url = "http://127.0.0.2/onvif"
        with pytest.raises(DiscoveryError, match="another address than its own"):
            await streams_of(camera, Credentials(USER, PASSWORD))
        assert not any("GetProfiles" in text for text in device.heard)


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
