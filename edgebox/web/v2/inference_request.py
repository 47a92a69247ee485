"""Reads an inference request of the protocol, from bytes: JSON, and binary data behind it.

Pure. Sizes in a request are checked against the actual data. The JSON part must be short, because
parsing blocks the event loop: about 10 ms for the longest.
"""

import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError, InvalidInputError, TooLargeError
from edgebox.domain.field_reader import INTEGER_MAX, FieldReader, is_integer, parse_object, shown
from edgebox.inference.remote.binary_tensors import unpack_elements
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.media.jpeg import probe
from edgebox.media.jpeg_header import PIXELS_MAX, SIDE_MAX_PX
from edgebox.runtime.frames import ONE_SHOT_APP
from edgebox.web.camera_pictures import DEADLINE_MAX_MS, DEADLINE_MIN_MS, DEADLINE_MS
from edgebox.web.detection_documents import SCORE_MIN, BoxForm
from edgebox.web.v2.tensor_codec import INPUTS, OUTPUTS, TensorSpec

JSON_BYTES_MAX = 1 << 20
JSON_ITEMS_MAX = 1 << 17
"""The time to parse JSON depends on the number of items rather than on bytes."""
PICTURES_MAX = 32
_ID_CHARACTERS_MAX = 256
_OUTPUTS_MAX = 256
_KEPT_BYTES_MAX = 4096
"""Longer JSON parts are read anew each time: they contain data."""
_BOX_FORMS: tuple[BoxForm, ...] = ("xyxy", "xywh")
_PARAMETERS = (
    "deadline_ms", "timeout", "score_min", "boxes", "app", "partial", "binary_data_output",
)  # fmt: skip
_IGNORED = frozenset(("priority", "sequence_id", "sequence_start", "sequence_end", "headers"))
_SHARED_MEMORY = "shared_memory_region"

Picture = bytes | memoryview | NDArray[np.uint8]
"""A JPEG, or (h, w, 3) RGB."""


@dataclass(frozen=True, slots=True)
class WantedOutput:
    """A requested output, in JSON or as binary data."""

    name: str
    binary: bool


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """One inference request."""

    id: str | None
    pictures: tuple[Picture, ...]
    sizes_px: tuple[tuple[int, int], ...]
    """(width, height) of each picture; (1, 1) of one that is refused."""
    outputs: tuple[WantedOutput, ...]
    deadline_ms: float
    score_min: float
    boxes: BoxForm
    app: str
    """The application of the pictures."""
    partial: bool
    """Whether pictures are answered of which others cannot be."""
    refused: Mapping[int, EdgeboxError]
    """Why pictures of a `partial` request cannot be taken, by number; the others are."""


def read_request(
    body: bytes,
    header_bytes: str | None,
    picture_bytes_max: int,
    offered: Sequence[TensorSpec] = OUTPUTS,
) -> InferenceRequest:
    """Read a request.

    Args:
        body: the whole body, decompressed.
        header_bytes: the header Inference-Header-Content-Length; None: missing.
        picture_bytes_max: largest size of a JPEG.
        offered: the outputs of the model.

    Raises:
        InvalidInputError: it violates the protocol or this box's limits.
        TooLargeError: its JSON or a picture is too long, and it is not `partial`.
    """
    json_part, binary = _split(body, header_bytes)
    head = (_read_again if len(json_part) <= _KEPT_BYTES_MAX else _read_head)(json_part)
    wanted = _outputs(head, offered)
    pictures = _pictures(head.inputs, binary)
    sizes: list[tuple[int, int]] = []
    refused: dict[int, EdgeboxError] = {}
    for at, picture in enumerate(pictures):
        try:
            sizes.append(_size_px(picture, picture_bytes_max, at))
        except (InvalidInputError, TooLargeError) as error:
            if not head.partial:
                raise
            refused[at] = error
            sizes.append((1, 1))
    return InferenceRequest(
        head.id, pictures, tuple(sizes), wanted, head.deadline_ms, head.score_min, head.boxes,
        head.app, head.partial, refused,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Input:
    name: str
    shape: tuple[int, ...]
    data: list[object] | None
    """Its values in JSON; None: it has binary data."""
    binary_bytes: int
    """The length of its binary data."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The JSON part of a request."""

    id: str | None
    inputs: tuple[_Input, ...]
    outputs: tuple[WantedOutput, ...]
    """Empty: all of them."""
    all_binary: bool
    """Whether outputs that are not named are binary data."""
    deadline_ms: float
    score_min: float
    boxes: BoxForm
    app: str
    partial: bool


def _read_head(json_part: bytes) -> _Head:
    read = FieldReader("request", _parsed(json_part))
    parameters = read.inner("parameters", optional=True)
    _check_names(parameters)
    identity = read.text("id", "", length_max=_ID_CHARACTERS_MAX)
    deadline_ms = parameters.number("deadline_ms", DEADLINE_MIN_MS, DEADLINE_MAX_MS, DEADLINE_MS)
    timeout_us = parameters.number("timeout", 0, DEADLINE_MAX_MS * 1e3, 0)
    score_min = parameters.number("score_min", 0.0, 1.0, SCORE_MIN)
    boxes = _box_form(parameters)
    app = parameters.text("app", ONE_SHOT_APP, pattern=NAME_PATTERN, expected=NAME_WANTED)
    partial = parameters.flag("partial", False)
    all_binary = parameters.flag("binary_data_output", False)
    if "deadline_ms" not in parameters.names() and timeout_us:
        deadline_ms = max(1.0, timeout_us / 1e3)
    outputs = read.items("outputs", _OUTPUTS_MAX, [])
    inputs = read.items("inputs", len(INPUTS))
    read.finish()
    return _Head(
        identity or None,
        tuple(_input(_object(item, f"inputs[{at}]")) for at, item in enumerate(inputs)),
        tuple(
            _output(_object(item, f"outputs[{at}]"), all_binary) for at, item in enumerate(outputs)
        ),
        all_binary,
        deadline_ms,
        score_min,
        boxes,
        app,
        partial,
    )


_read_again = lru_cache(maxsize=64)(_read_head)
"""Programs send one picture after another with the same JSON part."""


def _split(body: bytes, header_bytes: str | None) -> tuple[bytes, memoryview]:
    """Return the JSON and the binary data of a body."""
    whole = memoryview(body)
    if header_bytes is None:
        length = len(body)
    elif header_bytes.isascii() and header_bytes.isdigit() and len(header_bytes) <= 15:
        length = int(header_bytes)
    else:
        raise InvalidInputError(
            f"Inference-Header-Content-Length must be a number of bytes, not {shown(header_bytes)}"
        )
    if length > len(body):
        raise InvalidInputError(
            f"Inference-Header-Content-Length is {length}, but the body has only {len(body)} bytes"
        )
    if length > JSON_BYTES_MAX:
        raise TooLargeError(
            f"the JSON part has {length} bytes; at most {JSON_BYTES_MAX} are taken: send tensors "
            "as binary data behind it (Inference-Header-Content-Length)"
        )
    return body[:length], whole[length:]


def _parsed(head: bytes) -> dict[str, object]:
    # Every item of JSON but the first of each container has a comma before it.
    if sum(map(head.count, (b",", b"[", b"{"))) > JSON_ITEMS_MAX:
        raise TooLargeError(
            f"the JSON part has more than {JSON_ITEMS_MAX} items: send tensors as binary data "
            "behind it (Inference-Header-Content-Length)"
        )
    return parse_object(head, "the request")


def _check_names(parameters: FieldReader) -> None:
    for name in parameters.names():
        if name not in _PARAMETERS and name not in _IGNORED and not name.startswith("triton_"):
            raise InvalidInputError(
                f"there is no parameter {shown(name)}; there are {', '.join(_PARAMETERS)}"
            )


def _box_form(parameters: FieldReader) -> BoxForm:
    text = parameters.text("boxes", "xyxy")
    for form in _BOX_FORMS:
        if form == text:
            return form
    parameters.refuse("boxes", "must be xyxy or xywh", text)
    return "xyxy"


# -- outputs ------------------------------------------------------------------------------------


def _outputs(head: _Head, offered: Sequence[TensorSpec]) -> tuple[WantedOutput, ...]:
    """Return the requested outputs; all of them if none is named."""
    names = [spec.name for spec in offered]
    wanted = head.outputs
    for at, one in enumerate(wanted):
        if one.name not in names:
            raise InvalidInputError(
                f"there is no output {shown(one.name)}; there are {', '.join(names)}"
            )
        if any(other.name == one.name for other in wanted[:at]):
            raise InvalidInputError(f"output {one.name} is asked for twice")
    return wanted or tuple(WantedOutput(name, head.all_binary) for name in names)


def _output(read: FieldReader, all_binary: bool) -> WantedOutput:
    parameters = read.inner("parameters", optional=True)
    _refuse_shared_memory(parameters)
    if "classification" in parameters.names():
        raise InvalidInputError(
            "classification is not offered; the outputs names and scores say what was found"
        )
    wanted = WantedOutput(read.text("name"), parameters.flag("binary_data", all_binary))
    read.finish()
    return wanted


# -- inputs -------------------------------------------------------------------------------------


def _pictures(inputs: Sequence[_Input], binary: memoryview) -> tuple[Picture, ...]:
    """Return the pictures of the only input; no binary data may be left over."""
    left_bytes = len(binary)
    for one in inputs:
        if one.binary_bytes > left_bytes:
            raise InvalidInputError(
                f"input {one.name} is said to have {one.binary_bytes} bytes of binary data; "
                f"{left_bytes} are left"
            )
        left_bytes -= one.binary_bytes
    if left_bytes:
        raise InvalidInputError(
            f"{left_bytes} bytes of binary data are left that no input's binary_data_size names"
        )
    if len(inputs) != 1:
        names = " or ".join(spec.name for spec in INPUTS)
        raise InvalidInputError(f"there must be one input, {names}, not {len(inputs)}")
    (only,) = inputs
    try:
        return (_jpegs if only.name == "image" else _rgbs)(only, binary)
    except InvalidInputError as error:
        raise InvalidInputError(f"input {only.name}: {error}") from None


def _input(read: FieldReader) -> _Input:
    parameters = read.inner("parameters", optional=True)
    _refuse_shared_memory(parameters)
    name, datatype = read.text("name"), read.text("datatype")
    dimensions = read.items("shape", 4)
    in_json = "data" in read.names()
    data = read.items("data", JSON_ITEMS_MAX) if in_json else None
    in_binary = "binary_data_size" in parameters.names()
    size = parameters.integer("binary_data_size", 0, INTEGER_MAX, 0)
    read.finish()
    spec = next((spec for spec in INPUTS if spec.name == name), None)
    if spec is None:
        names = " and ".join(spec.name for spec in INPUTS)
        raise InvalidInputError(f"there is no input {shown(name)}; there are {names}")
    if datatype != spec.datatype:
        raise InvalidInputError(f"input {name} must be {spec.datatype}, not {shown(datatype)}")
    if in_json == in_binary:
        raise InvalidInputError(f"input {name} must have either data or binary_data_size")
    return _Input(name, _shape(name, dimensions), data, size)


def _shape(name: str, dimensions: Sequence[object]) -> tuple[int, ...]:
    shape = tuple(size for size in dimensions if is_integer(size, 1, SIDE_MAX_PX))
    if len(shape) < len(dimensions):
        raise InvalidInputError(
            f"input {name}: its shape must be whole numbers from 1 to {SIDE_MAX_PX}, "
            f"not {shown(dimensions)}"
        )
    if shape and shape[0] > PICTURES_MAX:
        raise InvalidInputError(
            f"input {name} has {shape[0]} pictures; at most {PICTURES_MAX} are taken at once"
        )
    return shape


def _jpegs(one: _Input, binary: memoryview) -> tuple[Picture, ...]:
    if len(one.shape) not in (1, 2) or one.shape[1:] not in ((), (1,)):
        raise InvalidInputError(f"its shape must be [n] or [n, 1], not {list(one.shape)}")
    count = one.shape[0]
    if one.data is None:
        return tuple(unpack_elements(binary, count))
    texts = _flat(one.data, len(one.shape))
    if len(texts) != count:
        raise InvalidInputError(f"it has {len(texts)} elements; its shape needs {count}")
    return tuple(_from_base64(text, at) for at, text in enumerate(texts))


def _from_base64(text: object, at: int) -> bytes:
    try:
        if isinstance(text, str):
            return binascii.a2b_base64(text.encode(), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        pass
    raise InvalidInputError(
        f"element {at} must be a JPEG in base64, since JSON holds no bytes; binary data are smaller"
    )


def _rgbs(one: _Input, binary: memoryview) -> tuple[Picture, ...]:
    if len(one.shape) != 4 or one.shape[3] != 3:
        raise InvalidInputError(f"its shape must be [n, height, width, 3], not {list(one.shape)}")
    if one.shape[1] * one.shape[2] > PIXELS_MAX:
        raise InvalidInputError(
            f"pictures of {one.shape[2]} × {one.shape[1]} px; at most {PIXELS_MAX / 1e6:.1f} "
            "million are taken"
        )
    values = binary if one.data is None else _bytes_of(_flat(one.data, 4))
    if len(values) != prod(one.shape):
        raise InvalidInputError(
            f"it has {len(values)} values; its shape {list(one.shape)} needs {prod(one.shape)}"
        )
    return tuple(np.frombuffer(values, np.uint8).reshape(one.shape))


def _bytes_of(values: list[object]) -> bytes:
    if set(map(type, values)) <= {int}:
        try:
            return bytes(values)  # type: ignore[arg-type]
        except ValueError:  # a value is not a byte
            pass
    raise InvalidInputError("its data must be whole numbers from 0 to 255")


def _flat(data: list[object], depth: int) -> list[object]:
    """Return elements as a flat list; they may be nested up to `depth` deep."""
    for _ in range(depth - 1):
        kinds = set(map(type, data))
        if list not in kinds:
            break
        if len(kinds) > 1:
            raise InvalidInputError("its data are nested in parts only")
        data = list(chain.from_iterable(data))  # type: ignore[arg-type]
    return data


def _size_px(picture: Picture, bytes_max: int, at: int) -> tuple[int, int]:
    if isinstance(picture, np.ndarray):
        return picture.shape[1], picture.shape[0]
    if len(picture) > bytes_max:
        raise TooLargeError(
            f"picture {at} has {len(picture)} bytes; at most {bytes_max} are taken "
            "(limits.frame_bytes_max)"
        )
    try:
        return probe(picture)
    except InvalidInputError as error:
        raise InvalidInputError(f"picture {at}: {error}") from None


def _object(item: object, where: str) -> FieldReader:
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"{where} must be an object, not {shown(item)}")
    return FieldReader(where, item)


def _refuse_shared_memory(parameters: FieldReader) -> None:
    if _SHARED_MEMORY in parameters.names():
        raise InvalidInputError("shared memory is not offered; send the data in the request")
