"""The Open Inference Protocol's tensors over HTTP, as a client writes and reads them. Pure.

A request or response is JSON, with the tensors' binary data behind it. Binary data is
little-endian, row by row; an element of BYTES is preceded by its length in four bytes.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from edgebox.domain.errors import InvalidInputError, ModelError

HEADER_LENGTH = "Inference-Header-Content-Length"
FINGERPRINT = "fingerprint"
"""A box's parameter of its responses: which family it is that answered (`served_print`)."""
BYTES = "BYTES"
_DTYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
    "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8",
    "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip

Values = NDArray[Any] | list[bytes]
"""The elements of a tensor: an array of its shape, or those of BYTES, flat."""


class ProtocolError(ModelError):
    """A server's answer is not what the protocol says."""


@dataclass(frozen=True, slots=True)
class InputTensor:
    """One input of a request."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes | memoryview

    @classmethod
    def of_array(cls, name: str, datatype: str, array: NDArray[Any]) -> "InputTensor":
        """Return an input of numbers."""
        little = np.ascontiguousarray(array, numpy_type(datatype))
        return cls(name, datatype, array.shape, little.reshape(-1).view(np.uint8).data)

    @classmethod
    def of_elements(cls, name: str, elements: Sequence[bytes | memoryview]) -> "InputTensor":
        """Return an input of BYTES."""
        data = b"".join(part for element in elements for part in (_length(element), element))
        return cls(name, BYTES, (len(elements),), data)


def numpy_type(datatype: str) -> np.dtype[Any]:
    """Return numpy's type of a datatype of the protocol."""
    return np.dtype(_DTYPES[datatype])


def infer_request(
    inputs: Sequence[InputTensor], outputs: Sequence[str], parameters: Mapping[str, object]
) -> tuple[bytes, list[bytes | memoryview]]:
    """Return the JSON of a request, and the binary data behind it.

    Outputs are asked for as binary data twice, for each and for all: servers heed one of the two.
    """
    document: dict[str, object] = {
        "inputs": [
            {
                "name": each.name,
                "datatype": each.datatype,
                "shape": each.shape,
                "parameters": {"binary_data_size": len(each.data)},
            }
            for each in inputs
        ],
        "outputs": [{"name": name, "parameters": {"binary_data": True}} for name in outputs],
        "parameters": {"binary_data_output": True, **parameters},
    }
    return orjson.dumps(document), [each.data for each in inputs]


@dataclass(frozen=True, slots=True)
class InferResponse:
    """What a server answers."""

    outputs: Mapping[str, Values]
    """By name."""
    version: str
    """Of the model; empty: it does not say."""
    fingerprint: str
    """Of the family, if the server is an edgebox that says it; else empty."""


def infer_response(body: bytes, header_bytes: str | None) -> InferResponse:
    """Return what a response says.

    Args:
        body: the whole body.
        header_bytes: the header Inference-Header-Content-Length; None: all of it is JSON.

    Raises:
        ProtocolError: it violates the protocol.
    """
    try:
        length = len(body) if header_bytes is None else int(header_bytes)
        if not 0 <= length <= len(body):
            raise ProtocolError(
                f"the JSON of the server's answer is said to have {length} of {len(body)} bytes"
            )
        document = orjson.loads(body[:length])
        binary = memoryview(body)[length:]
        out: dict[str, Values] = {}
        for each in document["outputs"]:
            size = (each.get("parameters") or {}).get("binary_data_size")
            if size is not None and not 0 <= size <= len(binary):
                raise ProtocolError(f"output {each['name']} is said to have {size} bytes")
            out[each["name"]] = _values(each, None if size is None else binary[:size])
            binary = binary[size or 0 :]
        if len(binary):
            raise ProtocolError(f"the server's answer has {len(binary)} bytes beyond its outputs")
        version = str(document.get("model_version") or "")
        fingerprint = str((document.get("parameters") or {}).get(FINGERPRINT, ""))
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        InvalidInputError,
    ) as error:
        raise ProtocolError(f"the server's answer cannot be read: {error}") from None
    return InferResponse(out, version, fingerprint)


def _values(output: Mapping[str, Any], binary: memoryview | None) -> Values:
    shape = tuple(output["shape"])
    count = math.prod(shape)
    if output["datatype"] == BYTES:
        if binary is not None:
            return [bytes(each) for each in unpack_elements(binary, count)]
        return [str(each).encode() for each in output["data"]]
    dtype = numpy_type(output["datatype"])
    if binary is None:
        return np.array(output["data"], dtype).reshape(shape)
    return np.frombuffer(binary, dtype).reshape(shape)


def _length(element: bytes | memoryview) -> bytes:
    return struct.pack("<I", len(element))


def pack_element(element: bytes | memoryview) -> bytes:
    """Return an element of BYTES, preceded by its length."""
    return b"".join((_length(element), element))


def unpack_elements(data: memoryview, count: int) -> list[memoryview]:
    """Return the elements of a BYTES tensor.

    Raises:
        InvalidInputError: the number of elements is not `count`.
    """
    elements: list[memoryview] = []
    at = 0
    while at < len(data):
        if len(elements) == count:
            raise InvalidInputError(f"it has more than the {count} elements of its shape")
        if at + 4 > len(data):
            raise InvalidInputError(f"it ends within the length of element {len(elements)}")
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        if length > len(data) - at:
            raise InvalidInputError(
                f"element {len(elements)} is said to have {length} bytes; {len(data) - at} are left"
            )
        elements.append(data[at : at + length])
        at += length
    if len(elements) < count:
        raise InvalidInputError(f"it has {len(elements)} elements; its shape needs {count}")
    return elements
