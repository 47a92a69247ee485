"""What people and programs see of a camera whose pictures the box fetches. No credentials."""

from typing import Annotated, Literal, TypedDict

from edgebox.domain.requests import CameraId
from edgebox.domain.source_settings import CaptureTimes
from edgebox.runtime.source_status import SourceState, SourceStatus


class DecodingDocument(TypedDict):
    """What fetching and decoding a source takes."""

    pictures: Annotated[int, "Pictures that were due since the start, used or not"]
    used: Annotated[int, "Those that were scaled and given to the core"]
    still: Annotated[int, "Those that the motion gate left out"]
    decode_ms: Annotated[
        float | None, "Processor time of reading and decoding, for each picture that was due"
    ]
    convert_ms: Annotated[
        float | None, "Processor time of scaling and encoding, for each picture that was used"
    ]
    cores: Annotated[float | None, "Processor cores that it takes all in all, of late"]


class SourceDocument(TypedDict):
    """A camera whose pictures the box fetches itself."""

    camera: CameraId
    address: Annotated[str, "Of a network address scheme, host and port only"]
    origin: Annotated[Literal["configuration", "api"], "Where it is configured"]
    state: SourceState
    since_ms: Annotated[int, "Since when it is in this state"]
    why: Annotated[str, "What is wrong; empty: nothing"]
    text: Annotated[str, "The state for people; empty: pictures come"]
    losses: Annotated[int, "How often it was lost since the start"]
    attempts: Annotated[int, "Attempts to open it since it was last live"]
    codec: Annotated[str, "Empty: not known yet"]
    decoder: Annotated[str, "software, or the type of the hardware device in use"]
    width_px: int
    height_px: int
    stream: Annotated[Literal["main", "sub"], "Which of its streams is read"]
    capture_times: Annotated[CaptureTimes, "What its pictures' capture times come from"]
    decoding: DecodingDocument


def source_document(status: SourceStatus) -> SourceDocument:
    """Return the document of a source."""
    decoding = status.decoding
    return {
        "camera": status.camera,
        "address": status.address.shown,
        "origin": status.origin,
        "state": status.state,
        "since_ms": status.since_ms,
        "why": status.why,
        "text": status.text,
        "losses": status.losses,
        "attempts": status.attempts,
        "codec": status.codec,
        "decoder": status.decoder,
        "width_px": status.width_px,
        "height_px": status.height_px,
        "stream": status.stream,
        "capture_times": status.times,
        "decoding": {
            "pictures": decoding.pictures,
            "used": decoding.used,
            "still": decoding.still,
            "decode_ms": _mean_ms(decoding.decode_ns, decoding.pictures),
            "convert_ms": _mean_ms(decoding.convert_ns, decoding.used),
            "cores": None if decoding.cores is None else round(decoding.cores, 3),
        },
    }


def _mean_ms(total_ns: int, count: int) -> float | None:
    return round(total_ns / count / 1e6, 3) if count else None
