"""What the state of a source says to people."""

import pytest

from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import read_address
from edgebox.runtime.source_status import SourceState, SourceStatus


@pytest.mark.parametrize(
    ("state", "why", "text"),
    [
        (SourceState.CONNECTING, "", "connecting to the source"),
        (
            SourceState.CONNECTING,
            "its pictures have 1280 × 720 px now",
            "connecting to the source again: its pictures have 1280 × 720 px now",
        ),
        (SourceState.LIVE, "", ""),
    ],
)
def test_a_source_that_is_connected_to_again_says_why(
    state: SourceState, why: str, text: str
) -> None:
    address, _ = read_address("rtsp://192.168.1.20/stream")
    status = SourceStatus(CameraId("gate"), address, "api", state, why=why)
    assert (status.text, status.trouble) == (text, "")
