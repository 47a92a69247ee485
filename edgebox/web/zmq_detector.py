"""Answers pictures over ZeroMQ, as detectors of Frigate do: [zmq_detector].

A request is a header, a JSON object with the `shape` and `dtype` of a tensor, and the tensor. The
answer is 20 rows of 6 float32: class, score, and the box as y_min, x_min, y_max, x_max in parts of
the picture; rows without a detection are zero. A client waits `deadline_ms`: what cannot be
answered by then is refused at once, by a header with `error` and no tensor, which clients log as an
answer that they cannot decode.
It asks before whether its model is there: the box runs its own family, whatever that model is.

Pictures are batched with the cameras' frames. Clients have no tokens: the endpoint is one of this
machine, unless the box is open to everybody.
"""

import asyncio
import contextlib
import importlib.util
import logging
import math
import os
import socket as sockets
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson
from numpy.typing import NDArray

from edgebox.config.detector_section import ZmqDetectorParameters
from edgebox.domain.errors import ConfigError, EdgeboxError, InvalidInputError
from edgebox.domain.field_reader import FieldReader, is_integer, parse_object
from edgebox.inference.family import Family
from edgebox.runtime.box import Box
from edgebox.runtime.stage_documents import best_rows
from edgebox.vision.detections import Detections
from edgebox.web.camera_pictures import (
    NotServedError,
    answered,
    family_named,
    largest_in_time,
)
from edgebox.web.refusal_pacing import COST_PER_S, WHOLE_COST, RefusalBudget
from edgebox.web.refused_pictures import overload
from edgebox.web.routes import refuse_unready
from edgebox.web.web_context import WebContext
from edgebox.web.zmq_endpoint import ZmqEndpoint

if TYPE_CHECKING:
    from zmq.asyncio import Context, Socket

_log = logging.getLogger(__name__)

APP = "zmq"
"""The application of its pictures, for learning execution times."""
ROWS = 20
COLUMNS = 6
SCORE_MIN = 0.1
"""Clients have thresholds of their own, by class; of less than this none makes use."""
IN_FLIGHT_MAX = 16
"""Of all clients. Each waits for its answer before it asks again, so there are that many."""
SIDE_MAX_PX = 4_096
_HEADER_BYTES_MAX = 4_096
_BESIDE_TENSOR_BYTES = 2 * _HEADER_BYTES_MAX
"""What a message may have beside its tensor: the header, and an envelope."""
_REST_S = WHOLE_COST / COST_PER_S
"""Until there is budget for a message that is beyond it."""
_CHANNELS = 3
_DIMENSIONS = 4


class ZmqDetector:
    """One endpoint, for any number of clients."""

    def __init__(self, context: WebContext) -> None:
        """Serve a box; `start` begins to listen."""
        self._context = context
        self._parameters: ZmqDetectorParameters = context.config.zmq_detector
        self._zmq: Context | None = None
        self._endpoint: ZmqEndpoint | None = None
        self._task: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._in_flight = 0
        self._budget = RefusalBudget()
        self._owed = 0
        """Messages that came to no answered picture, and are not yet paid from the budget."""
        self._file: os.stat_result | None = None
        """The endpoint's file, as this box made it."""

    async def start(self) -> None:
        """Listen, if there is an endpoint.

        Raises:
            ConfigError: the extra is missing, or the endpoint cannot be listened on.
        """
        if not self._parameters.endpoint:
            return
        if importlib.util.find_spec("zmq") is None:
            raise ConfigError("zmq_detector needs the extra zmq: pip install 'edgebox[zmq]'")
        import zmq.asyncio  # noqa: PLC0415 - an extra

        endpoint = self._endpoint = ZmqEndpoint(
            self._parameters.endpoint,
            self._context.config.limits.frame_bytes_max + _BESIDE_TENSOR_BYTES,
            self._context.requests,
            self._refused,
        )
        path = endpoint.path
        if path is not None:
            _insist_on_nobody(path)
        self._zmq = zmq.asyncio.Context()
        socket = self._zmq.socket(zmq.ROUTER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 1)  # of each client
        try:
            socket.bind(endpoint.behind)
        except zmq.ZMQError as error:
            raise ConfigError(
                f"zmq_detector needs a socket in the folder for temporary files: {error}"
            ) from None
        await endpoint.start()
        if path is not None:
            self._file = path.lstat()
        self._task = asyncio.create_task(self._serve(socket))

    async def stop(self) -> None:
        """Stop listening; what is not answered stays so."""
        tasks = [*self._answering, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None
        if self._zmq is not None:
            self._zmq.destroy()
            self._zmq = None
        if self._endpoint is not None:
            await self._endpoint.stop()
            self._remove_file(self._endpoint.path)
            self._endpoint = None

    def _refused(self, error: EdgeboxError) -> None:
        self._context.box.refusals.add_request(self._parameters.endpoint, error)

    def _remove_file(self, path: Path | None) -> None:
        """Remove the endpoint's file, unless it is another's now."""
        if path is None or self._file is None:
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(path.lstat(), self._file):
                path.unlink()

    async def _serve(self, socket: "Socket") -> None:
        try:
            while True:
                frames = await socket.recv_multipart()
                if b"" in frames:
                    at = frames.index(b"") + 1
                    task = asyncio.create_task(self._reply(socket, frames[:at], frames[at:]))
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
                else:  # no client of this protocol, and nobody whom an answer would reach
                    self._owed += 1
                await self._rest()
        except Exception:
            _log.exception("zmq_detector ends: %s", self._parameters.endpoint)
            raise

    async def _rest(self) -> None:
        """Let the loop do what else is due, and wait while refusals are beyond their budget.

        Receiving waits for nothing while there are messages: a flood would keep the event loop.
        """
        await asyncio.sleep(0)  # the answer begins, so what is refused at once is known
        clock_s = asyncio.get_running_loop().time
        while self._owed:
            if self._budget.spend(WHOLE_COST, clock_s()):
                self._owed -= 1
            else:
                await asyncio.sleep(_REST_S)

    async def _reply(
        self, socket: "Socket", envelope: Sequence[bytes], request: Sequence[bytes]
    ) -> None:
        try:
            reply = await self._answer(request, envelope)
        except EdgeboxError as error:
            self._owed += 1
            if isinstance(error, NotServedError):
                self._refused(error)
            reply = _refusal(str(error))
        except Exception:
            _log.exception("a picture over ZeroMQ failed")
            self._owed += 1
            reply = _refusal("the box failed on this request; its log says why")
        await socket.send_multipart([*envelope, *reply])

    async def _answer(self, request: Sequence[bytes], envelope: Sequence[bytes]) -> list[bytes]:
        """Return the answer to a request; its envelope names the client.

        Raises:
            EdgeboxError: the request is wrong, or cannot be answered by its deadline.
        """
        if not request or len(request[0]) > _HEADER_BYTES_MAX:
            raise InvalidInputError("a request is a JSON object, and a tensor")
        header = parse_object(request[0], "the header")
        if "model_request" in header:
            self._owed += 1
            return [orjson.dumps({"model_available": True, "model_loaded": True})]
        if "model_data" in header:
            self._owed += 1
            said = "the box runs its own models: edgebox models import"
            return [orjson.dumps({"model_saved": False, "model_loaded": False, "error": said})]
        if len(request) != 2:
            raise InvalidInputError("a request is a JSON object, and a tensor")
        if self._in_flight == IN_FLIGHT_MAX:
            raise overload()
        rgb = picture_of(header, request[1])
        refuse_unready(self._context)
        self._in_flight += 1
        try:
            return [(await self._detected(rgb, envelope[0])).tobytes()]
        finally:
            self._in_flight -= 1

    async def _detected(self, rgb: NDArray[np.uint8], client: bytes) -> NDArray[np.float32]:
        box, deadline_ms = self._context.box, self._parameters.deadline_ms
        picture_px = rgb.shape[1], rgb.shape[0]
        family = _family(box, self._parameters)
        variant = largest_in_time(box, family.offered, picture_px, deadline_ms, app=APP)
        answer = await answered(
            box, rgb, picture_px, variant, deadline_ms, app=APP, address=client.hex()
        )
        return rows_of(answer.detections, picture_px)


def missing_family(box: Box, of: ZmqDetectorParameters) -> list[str]:
    """Return what is wrong with the configured family.

    It is no error: the family may be imported later.

    Args:
        box: ready.
        of: the section.
    """
    if of.endpoint:
        try:
            _family(box, of)
        except EdgeboxError as error:
            return [f"{error}; until it can be used, pictures over ZeroMQ are refused"]
    return []


def _family(box: Box, of: ZmqDetectorParameters) -> Family:
    """Return the family that pictures run on.

    Raises:
        EdgeboxError: it is not there, or is not given pictures.
    """
    where = "zmq_detector.family: "
    family = family_named(box, of.family, where)
    try:
        family.insist_on_pictures()
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}{error}") from None
    return family


def picture_of(header: Mapping[str, object], tensor: bytes) -> NDArray[np.uint8]:
    """Return the picture of a request, (height, width, 3) RGB.

    Args:
        header: `shape` and `dtype` of the tensor.
        tensor: bytes of one picture, (1, h, w, 3) or (1, 3, h, w).

    Raises:
        InvalidInputError: it is no such tensor.
    """
    read = FieldReader("header", header)
    dtype = read.text("dtype")
    shape = header.get("shape")
    read.finish()
    if dtype != "uint8":
        raise InvalidInputError(f"header.dtype must be uint8, not {dtype[:40]!r}")
    sides = shape if isinstance(shape, list) else []
    whole = all(is_integer(side, 1, SIDE_MAX_PX) for side in sides)
    if not whole or len(sides) != _DIMENSIONS or sides[0] != 1 or _CHANNELS not in sides[1::2]:
        raise InvalidInputError(
            f"header.shape must be [1, height, width, 3] or [1, 3, height, width] with sides up "
            f"to {SIDE_MAX_PX}"
        )
    if math.prod(sides) != len(tensor):
        raise InvalidInputError(
            f"the tensor has {len(tensor)} bytes; header.shape needs {math.prod(sides)}"
        )
    pixels = np.frombuffer(tensor, np.uint8).reshape(sides[1:])
    last = sides[3] == _CHANNELS
    return np.ascontiguousarray(pixels if last else pixels.transpose(1, 2, 0))


def rows_of(found: Detections, picture_px: tuple[int, int]) -> NDArray[np.float32]:
    """Return the best detections as the rows of an answer, (20, 6) float32.

    Args:
        found: the detections.
        picture_px: (width, height) that their boxes are on.
    """
    shown = found.select(best_rows(found, SCORE_MIN)[:ROWS])
    rows = np.zeros((ROWS, COLUMNS), np.float32)
    at = slice(0, len(shown))
    rows[at, 0], rows[at, 1] = shown.labels, shown.scores
    rows[at, 2:] = shown.boxes[:, [1, 0, 3, 2]] / np.tile(picture_px[::-1], 2)
    return rows


def _insist_on_nobody(path: Path) -> None:
    """Refuse a path that is in use: a socket that is there would be removed.

    A socket that nobody listens on is what a box left that ended abnormally.

    Raises:
        ConfigError: another program listens there, or it is no socket.
    """
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return  # nothing is there, or listening tells why not
    if not is_socket:
        raise ConfigError(
            f"zmq_detector.endpoint: there is something else at {path}; remove it, or choose "
            "another path"
        )
    with sockets.socket(sockets.AF_UNIX) as asking:
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except OSError:
            pass  # its queue is full, or it is of another kind
    raise ConfigError(
        f"zmq_detector.endpoint: another program listens on {path}; stop it, or choose another path"
    )


def _refusal(said: str) -> list[bytes]:
    return [orjson.dumps({"error": said}), b""]
