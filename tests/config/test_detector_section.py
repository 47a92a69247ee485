"""[zmq_detector]: an endpoint of this machine, unless the box is open to everybody."""

import pytest

from edgebox.config.detector_section import ZmqDetectorParameters, detector_contradictions


@pytest.mark.parametrize(
    ("endpoint", "open_to", "problem"),
    [
        ("", "nobody", None),
        ("ipc:///run/edgebox/detector", "nobody", None),
        ("tcp://127.0.0.1:5555", "nobody", None),
        ("tcp://[::1]:5555", "nobody", None),
        ("tcp://0.0.0.0:5555", "everybody", None),
        ("tcp://0.0.0.0:5555", "loopback", "its clients have no tokens"),
        ("tcp://*:5555", "nobody", "its clients have no tokens"),
        ("tcp://box.example:5555", "nobody", "its clients have no tokens"),
        ("ipc://detector", "nobody", "the whole path of a file"),
        ("tcp://127.0.0.1", "nobody", "must be"),
        ("tcp://127.0.0.1:99999", "nobody", "must be"),
        ("tcp://127.0.0.1:0", "nobody", "must be"),
        ("http://127.0.0.1:5555", "nobody", "must be"),
        ("5555", "nobody", "must be"),
        ("tcp://[::1:5555", "nobody", "must be"),
    ],
)
def test_an_endpoint_is_checked(endpoint: str, open_to: str, problem: str | None) -> None:
    found = list(detector_contradictions(ZmqDetectorParameters(endpoint), open_to))
    if problem is None:
        assert found == []
    else:
        (said,) = found
        assert said.startswith("zmq_detector.endpoint: ")
        assert problem in said
