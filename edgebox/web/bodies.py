"""Reads a request's body: bounded, and decompressed outside the event loop."""

import asyncio
import zlib

from aiohttp import hdrs, web

from edgebox.domain.errors import InvalidInputError, TooLargeError
from edgebox.domain.field_reader import parse_object
from edgebox.web.request_limits import present_holding

_ENCODINGS = ("gzip", "deflate")
_EITHER_FORMAT = 32 + zlib.MAX_WBITS


async def read_body(request: web.Request, bytes_max: int, *, setting: str = "") -> bytes:
    """Return a request's body, decompressed if necessary.

    aiohttp must not decompress: it would do so on the event loop, and decompress a whole bomb.

    Args:
        request: the request.
        bytes_max: the largest accepted size.
        setting: name of the limit in the configuration, for the error message.

    Raises:
        TooLargeError: more than `bytes_max`, packed or unpacked.
        InvalidInputError: it is not what its Content-Encoding says.
        SlowBodyError: it arrives too slowly.
        TooBusyError: the box holds too many bytes of bodies.
    """
    if (request.content_length or 0) > bytes_max:
        raise _too_large(bytes_max, setting)
    holding = present_holding()
    parts: list[bytes] = []
    size_bytes = 0
    async for part in holding.parts(request):
        holding.add(len(part))
        parts.append(part)
        size_bytes += len(part)
        if size_bytes > bytes_max:
            raise _too_large(bytes_max, setting)
    received = b"".join(parts)
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower()
    if encoding == "identity":
        return received
    if encoding not in _ENCODINGS:
        raise InvalidInputError(
            f"Content-Encoding must be {' or '.join(_ENCODINGS)}, not {encoding[:40]!r}"
        )
    body = await asyncio.to_thread(unpacked, received, bytes_max, setting=setting)
    holding.add(len(body))
    return body


async def read_object(request: web.Request, bytes_max: int = 65_536) -> dict[str, object]:
    """Return a request's body, which must be a JSON object.

    Raises:
        TooLargeError: more than `bytes_max`.
        InvalidInputError: it is none.
    """
    body = await read_body(request, bytes_max)
    if not body:
        raise InvalidInputError("the body is empty; it must be a JSON object")
    return parse_object(body, "the body")


def unpacked(packed: bytes, bytes_max: int, *, setting: str = "") -> bytes:
    """Decompress gzip or zlib's format; blocks.

    Raises:
        TooLargeError: it decompresses to more than `bytes_max`.
        InvalidInputError: it is neither, or broken.
    """
    unpacker = zlib.decompressobj(_EITHER_FORMAT)
    try:
        body = unpacker.decompress(packed, bytes_max + 1)
    except zlib.error as error:
        raise InvalidInputError(f"the body does not match its Content-Encoding: {error}") from None
    if len(body) > bytes_max:
        raise _too_large(bytes_max, setting)
    if not unpacker.eof or unpacker.unused_data:
        raise InvalidInputError(
            "the body does not match its Content-Encoding: it does not end where it must"
        )
    return body


def _too_large(bytes_max: int, setting: str) -> TooLargeError:
    bound = f"{bytes_max} bytes ({setting})" if setting else f"{bytes_max} bytes"
    return TooLargeError(f"the body may have at most {bound}")
