"""Cameras and programs for an edgebox: stream frames, ask about pictures, follow results."""

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera, Status
from edgebox.camera.finding import FindingError, find_boxes
from edgebox.camera.pairing import PairingRefusedError
from edgebox.camera.session import BoxRefusedError
from edgebox.client import SubscriptionRefusedError, subscribe
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.link.announcement import FoundBox
from edgebox.link.messages import DropNotice, Result
from edgebox.media.sources import FrameSource, open_source
from edgebox_client.answers import Answer, CameraResult, Detection, KnownCamera, Timing
from edgebox_client.blocking import BlockingCamera, Client
from edgebox_client.box_client import AsyncClient, NotInTimeError, RefusedError, UnreachableError
from edgebox_client.pictures import Picture

__all__ = [
    "Answer",
    "AsyncClient",
    "BlockingCamera",
    "BoxRefusedError",
    "Camera",
    "CameraResult",
    "Client",
    "Detection",
    "DropNotice",
    "EdgeboxError",
    "FindingError",
    "FoundBox",
    "FrameSource",
    "InvalidInputError",
    "KnownCamera",
    "NotInTimeError",
    "PairingRefusedError",
    "Picture",
    "RefusedError",
    "Result",
    "Status",
    "SubscriptionRefusedError",
    "Summary",
    "Timing",
    "UnreachableError",
    "find_boxes",
    "open_source",
    "subscribe",
]
