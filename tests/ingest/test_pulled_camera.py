"""What people are told of a source, whatever the wall clock does."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import SourceAddress, SourceKind
from edgebox.domain.source_settings import SourceSettings
from edgebox.ingest.pulled_camera import PulledCamera
from edgebox.link.bandwidth import EstimatorKind
from edgebox.runtime.box import Box
from edgebox.runtime.source_status import SourceState, SourceStatus
from tests.conftest import WallClock


def test_how_long_it_was_lost_is_not_asked_of_a_clock_that_was_set(
    monkeypatch: pytest.MonkeyPatch, clock: WallClock
) -> None:
    monkeypatch.setattr("edgebox.ingest.pulled_camera.wall_clock_ms", clock)
    gate = CameraId("gate")
    address = SourceAddress(SourceKind.NETWORK, "rtsp://10.0.0.7/stream")
    box = Box(
        name="box",
        version="0",
        cameras_max=1,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda event: None,
        on_camera=lambda record: None,
    )
    status = SourceStatus(gate, address, "api")
    pool = ThreadPoolExecutor(1)
    camera = PulledCamera(box, SourceSettings(gate, address), status, pool)
    camera._enter(SourceState.LOST, "connection refused")
    lost_ms = status.since_ms
    clock.ms -= 3_600_000
    camera._enter(SourceState.LIVE, "")
    pool.shutdown()
    assert (lost_ms, status.since_ms) == (clock.ms + 3_600_000, clock.ms)
    assert box.notices.recent[-1].text == "gate: pictures come again, after 0 s"
