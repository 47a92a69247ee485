"""GET /v1/cameras/{id}/picture: what a camera sees now, as a JPEG. docs/reference/http-api.md."""

import asyncio

from aiohttp import hdrs, web

from edgebox.domain.access import Scope
from edgebox.domain.errors import EdgeboxError, InvalidInputError, UnknownNameError
from edgebox.domain.requests import CameraId
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.drawn_picture import AnsweredPicture
from edgebox.runtime.frames import Answer as FrameAnswer
from edgebox.runtime.frames import FrameResult, PendingFrame
from edgebox.web.detection_documents import SCORE_MIN
from edgebox.web.listening import cancelled_with_client
from edgebox.web.query_parameters import Choice, InPath, Number
from edgebox.web.routes import Answer, Route
from edgebox.web.web_context import WebContext

_WAIT_S = 5.0
_JPEG = "image/jpeg"
_ID = InPath("id", "The camera's name, as in its hello")
_BOXES = Choice("boxes", ("true", "false"), "true", "Whether what was found is drawn on it")
_SCORE_MIN = Number("score_min", 0.0, 1.0, SCORE_MIN, "Draw no boxes of what is less certain")


class NoPictureError(EdgeboxError):
    """No frame of the camera was answered in the last seconds."""

    http_status = 503
    code = "no_picture"
    title = "No frame of the camera is answered at present"


async def _picture(context: WebContext, request: web.Request) -> web.Response:
    name, score_min = _ID.read(request), _SCORE_MIN.read(request)
    with_boxes = _BOXES.read(request) == "true"
    record = context.box.cameras.get(CameraId(name))
    if record is None:
        raise UnknownNameError(f"no camera {name!r} is connected, or was in the last ten minutes")
    with cancelled_with_client(request):
        picture = await _next(context, record.camera.id, score_min)
        try:
            jpeg = picture.jpeg
            if with_boxes:
                async with context.picture_work:
                    jpeg = await asyncio.to_thread(picture.drawn)
        except InvalidInputError as error:
            raise NoPictureError(f"the picture cannot be drawn on: {error}") from None
    return web.Response(body=jpeg, content_type=_JPEG, headers={hdrs.CACHE_CONTROL: "no-store"})


async def _next(context: WebContext, camera: CameraId, score_min: float) -> AnsweredPicture:
    """Return the picture of the next frame that is answered. Nothing is kept without such requests.

    Raises:
        NoPictureError: none is within some seconds.
    """
    box = context.box
    found: asyncio.Future[AnsweredPicture] = asyncio.get_running_loop().create_future()

    def ended(record: CameraRecord, frame: PendingFrame, ending: FrameResult) -> None:
        if record.camera.id != camera or found.done() or not isinstance(ending, FrameAnswer):
            return
        labels = box.families[record.camera.family].labels
        picture = AnsweredPicture.of(frame, ending, labels, score_min)
        if picture is not None:
            found.set_result(picture)

    box.observers.add(ended)
    try:
        async with asyncio.timeout(_WAIT_S):
            return await found
    except TimeoutError:
        raise NoPictureError(
            f"no frame with a picture of {camera} was answered within {_WAIT_S:g} s: it is not "
            "connected, sends no pictures, or they are not answered in time"
        ) from None
    finally:
        box.observers.remove(ended)


ROUTES = (
    Route(
        method="GET",
        path="/v1/cameras/{id}/picture",
        answer=_picture,
        scope=Scope.VIEWER,
        summary="What a camera sees now, as a JPEG",
        doc=(
            "The next frame that is answered, as large as the camera sends it. The box keeps no "
            f"pictures; it waits for one for {_WAIT_S:g} s at most."
        ),
        parameters=(_ID, _BOXES, _SCORE_MIN),
        answers=(
            Answer(
                "The picture.", {"type": "string", "contentMediaType": _JPEG}, content_type=_JPEG
            ),
        ),
        problems=(UnknownNameError, NoPictureError),
        needs_ready=True,
    ),
)
