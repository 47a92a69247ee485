"""The section that says where programs such as Frigate ask the box over ZeroMQ."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgebox.config.host_names import peer_address
from edgebox.config.keys import key
from edgebox.domain.access import OpenTo

IPC = "ipc://"
_TCP = "tcp"


@dataclass(frozen=True, slots=True)
class ZmqDetectorParameters:
    """A detector for Frigate and others that speak its protocol; needs edgebox[zmq]."""

    endpoint: str = key(
        "",
        'Where it listens: "ipc:///run/edgebox/detector" or "tcp://127.0.0.1:5555"; empty: nowhere',
        may_be_empty=True,
    )
    deadline_ms: float = key(
        150.0,
        "Milliseconds from a picture's arrival to its answer: a little less than the client waits",
        low=1,
        high=60_000,
    )
    family: str = key("", "Model family; empty: the default one", may_be_empty=True)


def detector_contradictions(of: ZmqDetectorParameters, open_to: str) -> Iterator[str]:
    """Yield what is wrong although each key alone is right."""
    if not of.endpoint:
        return
    if of.endpoint.startswith(IPC):
        if not of.endpoint.removeprefix(IPC).startswith("/"):
            yield 'zmq_detector.endpoint: after "ipc://" comes the whole path of a file'
        return
    try:
        parts = urlsplit(of.endpoint)
        host = parts.hostname if parts.scheme == _TCP and parts.port else None
    except ValueError:
        host = None
    if not host:
        yield 'zmq_detector.endpoint: must be "ipc:///PATH" or "tcp://ADDRESS:PORT"'
        return
    address = peer_address(host)
    if (address is None or not address.is_loopback) and open_to != OpenTo.EVERYBODY:
        yield (
            "zmq_detector.endpoint: its clients have no tokens, so it must be one of this machine "
            '("ipc:///PATH", "tcp://127.0.0.1:PORT"), unless access.open_to is "everybody"'
        )
