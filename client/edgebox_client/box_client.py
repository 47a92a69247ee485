"""The client of a box for programs in asyncio: single pictures, results of cameras, cameras."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, Unpack
from urllib.parse import quote

import aiohttp
import orjson

from edgebox.camera.daemon import Camera
from edgebox.camera.pairing import connector, pair, why
from edgebox.client import subscribe
from edgebox.domain.errors import EdgeboxError
from edgebox.link.box_address import authorization, http_url, stream_url
from edgebox.media.sources import FrameSource
from edgebox_client.answers import Answer, CameraResult, KnownCamera
from edgebox_client.options import CameraOptions, CameraSettings
from edgebox_client.pictures import Picture, as_jpeg

LOCAL = "http://127.0.0.1:8787"
_DEADLINE_MS = 1_000.0
_log = logging.getLogger("edgebox_client")


class UnreachableError(EdgeboxError):
    """The box does not answer; a retry may succeed."""

    code = "unreachable"


class RefusedError(EdgeboxError):
    """The box refuses a request. `code` and `status` tell programs why, the message people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status."""
        self.code = code
        """The code of the box's problem document, such as "unauthorized"."""


class NotInTimeError(RefusedError):
    """The box could not answer a picture by its deadline, or is busy or starting: try again."""


class AsyncClient:
    """A client of one box, for asyncio.

        async with AsyncClient("http://box:8787", token="edgebox_...") as box:
            answer = await box.infer("street.jpg")

    Args:
        server: the box's address; the scheme may be left out.
        token: a token of the scope that is needed: camera to `infer`, viewer for `results` and
            `cameras`, operator to `change`; None: that of the environment variable EDGEBOX_TOKEN,
            if there is one.
        fingerprint: SHA-256 of the box's certificate, which is the only one accepted; None: any
            that the system trusts.
        on_remark: called with sentences for a person (connection lost, works again); None: they
            are logged as warnings of the logger edgebox_client.

    Raises:
        InvalidInputError: an argument is malformed.
    """

    def __init__(
        self,
        server: str = LOCAL,
        *,
        token: str | None = None,
        fingerprint: str | None = None,
        on_remark: Callable[[str], None] | None = None,
    ) -> None:
        self.server = server
        self._stream = stream_url(server)
        self._token = token or os.environ.get("EDGEBOX_TOKEN") or None
        self._headers = authorization(self._token)
        self._fingerprint = fingerprint
        self._remark = on_remark or _log.warning
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def infer(
        self,
        picture: Picture,
        *,
        deadline_ms: float = _DEADLINE_MS,
        family: str | None = None,
        variant: str | None = None,
        pipeline: str | None = None,
        app: str | None = None,
        score_min: float | None = None,
    ) -> Answer:
        """Return what the box finds in a picture.

        Args:
            picture: a path, the bytes of a file, a Pillow image, or an array: `Picture`. What is
                not a JPEG is sent as one.
            deadline_ms: the answer's deadline, counted from the picture's arrival at the box.
            family: the model family; None: the box's default.
            variant: run exactly this one; None: the largest in time.
            pipeline: run through this pipeline, instead of a family.
            app: the picture's application, for learning execution times.
            score_min: leave out what is less certain; None: the box's 0.3.

        Raises:
            InvalidInputError: it is no picture.
            NotInTimeError: the box could not answer by the deadline.
            RefusedError: the box refuses the request.
            UnreachableError: it does not answer.
        """
        asked = {
            "deadline_ms": f"{deadline_ms:g}",
            "family": family,
            "variant": variant,
            "pipeline": pipeline,
            "app": app,
            "score_min": None if score_min is None else f"{score_min:g}",
        }
        jpeg = await asyncio.to_thread(as_jpeg, picture)
        query = {name: value for name, value in asked.items() if value is not None}
        document = await self._ask("POST", "infer", jpeg, "image/jpeg", query)
        return Answer.read(document)

    async def results(
        self,
        camera: str | Sequence[str] = (),
        *,
        classes: Sequence[str] = (),
        score_min: float | None = None,
        max_hz: float | None = None,
        empty: bool = True,
    ) -> AsyncGenerator[CameraResult]:
        """Yield what cameras' frames come to, as they are answered, for ever.

        Connects again whenever the connection breaks. Nothing is kept at the box: what ends in
        between is missed, and so is what this program is too slow for.

        Args:
            camera: a camera's name, or a shell pattern like "gate-*", or several; none: all.
            classes: only detections with these labels; none: all.
            score_min: leave out what is less certain; None: the box's 0.3.
            max_hz: at most so many results a second of each camera.
            empty: also results on which nothing is found or left.

        Raises:
            SubscriptionRefusedError: the token or the query is wrong.
        """
        query: dict[str, str | list[str]] = {
            "camera": [camera] if isinstance(camera, str) else list(camera),
            "class": list(classes),
            "empty": "true" if empty else "false",
        }
        if score_min is not None:
            query["score_min"] = f"{score_min:g}"
        if max_hz is not None:
            query["max_hz"] = f"{max_hz:g}"
        messages = subscribe(
            self.server,
            query,
            token=self._token,
            fingerprint=self._fingerprint,
            on_remark=self._remark,
        )
        async with aclosing(messages):
            async for message in messages:
                if message["type"] == "result":
                    yield CameraResult.read(message)
                elif message["type"] == "skipped":
                    self._remark(
                        f"{message['count']} results were left out: this program is too slow"
                    )

    async def cameras(self) -> list[KnownCamera]:
        """Return every camera that the box knows, connected or not, with what is set for it.

        Raises:
            RefusedError: the box refuses the request.
            UnreachableError: it does not answer.
        """
        document = await self._ask("GET", "cameras")
        return [KnownCamera.read(fields) for fields in document["cameras"]]

    async def change(
        self,
        camera: str,
        *,
        base: Mapping[str, str] | None = None,
        **settings: Unpack[CameraSettings],
    ) -> KnownCamera:
        """Set a camera on the box, over what it asks for itself; return it as it is now.

        Args:
            camera: its name.
            base: the `versions` of the camera that was read before: where somebody else changed
                one of these settings since, nothing is changed; None: the last change wins.
            settings: what to change; None goes back to what the camera asks for. Others stay.

        Raises:
            RefusedError: the box refuses the change, with the code "settings_changed" where it
                is not based on what is set now.
            UnreachableError: it does not answer.
        """
        fields = {**settings} if base is None else {**settings, "base": base}
        path = f"cameras/{quote(camera, safe='')}"
        document = await self._ask("PATCH", path, orjson.dumps(fields), "application/json")
        return KnownCamera.read(document)

    def camera(
        self,
        name: str,
        source: FrameSource | None = None,
        **options: Unpack[CameraOptions],
    ) -> Camera:
        """Return a camera of this box, which is not connected yet.

        Either give it a source and `run` it, or use it as an async context manager and `send`
        frames of your own, with size_px=(width, height) among the options.

        Args:
            name: the camera's name at the box.
            source: where frames come from (`open_source`); None: they are pushed with `send`.
            options: further arguments of `Camera`.

        Raises:
            InvalidInputError: an argument that the box would refuse.
        """
        options.setdefault("on_remark", self._remark)
        return Camera(
            source,
            self.server,
            token=self._token,
            fingerprint=self._fingerprint,
            name=name,
            **options,
        )

    async def pair(self, code: str, camera: str) -> str:
        """Return the token that the box gives the camera of this name for a pairing code.

        Raises:
            PairingRefusedError: the box cannot be reached, or refuses; the message says why.
        """
        return await pair(self.server, code, camera, fingerprint=self._fingerprint)

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        session = self._session
        if session is None:
            session = self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=connector(self._fingerprint),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=90),
            )
        url = http_url(self._stream, path)
        try:
            headers = None if content_type is None else {"Content-Type": content_type}
            async with session.request(
                method, url, params=query, data=body, headers=headers
            ) as response:
                status, answer = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise UnreachableError(f"{url}: {why(error)}") from None
        try:
            document: dict[str, Any] = orjson.loads(answer)
            if status == 200:
                return document
            code, message = str(document["code"]), str(document["detail"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise UnreachableError(
                f"{url}: this is no edgebox: it said {answer[:80]!r} with the status {status}"
            ) from None
        raise (NotInTimeError if status == 503 else RefusedError)(status, code, message)
