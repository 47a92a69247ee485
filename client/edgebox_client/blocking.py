"""The client for programs without asyncio: an event loop in a thread of its own does the work."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera, Status
from edgebox.domain.errors import InvalidInputError
from edgebox.media.sources import FrameSource
from edgebox_client.answers import Answer, CameraResult, KnownCamera
from edgebox_client.box_client import LOCAL, AsyncClient
from edgebox_client.options import CameraOptions, CameraSettings
from edgebox_client.pictures import Picture

_Value = TypeVar("_Value")
_IN_CALLBACK = (
    "callbacks must not call the client: they are called in its own thread, which would wait for "
    "itself; note what came, for example in a queue.Queue, and call the client elsewhere"
)


class _Loop:
    """An event loop in a daemon thread, begun when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.closed = False

    def run(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        """Return what a coroutine returns; Ctrl-C cancels it.

        Raises:
            CancelledError: the client was closed meanwhile.
            InvalidInputError: it was closed before, or this is called by one of its callbacks.
        """
        with self._lock:
            if self.closed or self._is_own:
                work.close()
                raise InvalidInputError("this client is closed" if self.closed else _IN_CALLBACK)
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name="edgebox-client", daemon=True
                )
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def _is_own(self) -> bool:
        """Whether it is called in its own thread, which would wait for itself for ever."""
        return threading.current_thread() is self._thread

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what runs, run one thing more, and end the thread.

        Raises:
            InvalidInputError: this is called by one of its callbacks.
        """
        with self._lock:
            if self._is_own:
                raise InvalidInputError(_IN_CALLBACK)
            # Whoever takes it ends it; others wait for that.
            loop, self._loop, self.closed = self._loop, None, True
        if loop is None:
            if self._thread is not None:
                self._thread.join()
            return

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await last()

        try:
            asyncio.run_coroutine_threadsafe(end(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and give back what it holds."""
    try:
        loop.run_forever()
    finally:
        loop.close()


class Client:
    """A client of one box.

        with Client("http://box:8787", token="edgebox_...") as box:
            for detection in box.infer("street.jpg").detections:
                print(detection.label, detection.score, detection.box)

    Its methods are those of `AsyncClient`, may be called in any thread, and block. Callbacks are
    called in a thread of the client's own, must be quick, and must not call the client.

    Args and Raises: as `AsyncClient`.
    """

    def __init__(
        self,
        server: str = LOCAL,
        *,
        token: str | None = None,
        fingerprint: str | None = None,
        on_remark: Callable[[str], None] | None = None,
    ) -> None:
        self._client = AsyncClient(
            server, token=token, fingerprint=fingerprint, on_remark=on_remark
        )
        self._loop = _Loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._loop.close(self._client.close)

    def infer(
        self,
        picture: Picture,
        *,
        deadline_ms: float = 1_000.0,
        family: str | None = None,
        variant: str | None = None,
        pipeline: str | None = None,
        app: str | None = None,
        score_min: float | None = None,
    ) -> Answer:
        """Return what the box finds in a picture: see `AsyncClient.infer`."""
        return self._loop.run(
            self._client.infer(
                picture,
                deadline_ms=deadline_ms,
                family=family,
                variant=variant,
                pipeline=pipeline,
                app=app,
                score_min=score_min,
            )
        )

    def results(
        self,
        camera: str | Sequence[str] = (),
        *,
        classes: Sequence[str] = (),
        score_min: float | None = None,
        max_hz: float | None = None,
        empty: bool = True,
    ) -> Iterator[CameraResult]:
        """Yield what cameras' frames come to, until the client is closed.

        See `AsyncClient.results`.
        """
        results = self._client.results(
            camera, classes=classes, score_min=score_min, max_hz=max_hz, empty=empty
        )

        async def following() -> CameraResult:
            return await anext(results)

        async def closing() -> None:
            await results.aclose()

        try:
            while True:
                yield self._loop.run(following())
        except CancelledError:
            return  # the client was closed
        finally:
            with suppress(CancelledError, InvalidInputError, RuntimeError):  # it has ended already
                self._loop.run(closing())

    def cameras(self) -> list[KnownCamera]:
        """Return every camera that the box knows: see `AsyncClient.cameras`."""
        return self._loop.run(self._client.cameras())

    def change(
        self,
        camera: str,
        *,
        base: Mapping[str, str] | None = None,
        **settings: Unpack[CameraSettings],
    ) -> KnownCamera:
        """Set a camera on the box and return it as it is now: see `AsyncClient.change`."""
        return self._loop.run(self._client.change(camera, base=base, **settings))

    def camera(
        self,
        name: str,
        source: FrameSource | None = None,
        **options: Unpack[CameraOptions],
    ) -> "BlockingCamera":
        """Return a camera of this box, which is not connected yet: see `AsyncClient.camera`."""
        return BlockingCamera(self._client.camera(name, source, **options), self._loop)

    def pair(self, code: str, camera: str) -> str:
        """Return the token that the box gives a camera for a pairing code."""
        return self._loop.run(self._client.pair(code, camera))


class BlockingCamera:
    """A `Camera` for programs without asyncio; made by `Client.camera`.

    with box.camera("gate-2", size_px=(1280, 720), on_result=print) as camera:
        camera.send(rgb)
    """

    def __init__(self, camera: Camera, loop: _Loop) -> None:
        self._camera = camera
        self._loop = loop

    def __enter__(self) -> Self:
        try:
            self._loop.run(self._camera.__aenter__())
        except BaseException:  # it may have been entered at this very moment
            with suppress(Exception):
                self._loop.run(self._camera.finish())
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.run(self._camera.finish())

    def run(self, duration_s: float | None = None) -> Summary:
        """Stream the source until it ends, `stop` is called or the time is over."""
        return self._loop.run(self._camera.run(duration_s))

    def send(self, rgb: NDArray[np.uint8]) -> int:
        """Push a frame that was captured just now; return its number.

        Args:
            rgb: (height, width, 3) of the size announced; not to be changed afterwards.

        Raises:
            InvalidInputError: another shape or type than announced, or the camera is not open.
        """

        async def send() -> int:
            return self._camera.send(rgb)

        return self._loop.run(send())

    def stop(self) -> None:
        """Make `run`, in another thread, end cleanly."""

        async def stop() -> None:
            self._camera.stop()

        self._loop.run(stop())

    def summary(self) -> Summary:
        """Return the figures as they stand."""

        async def summary() -> Summary:
            return self._camera.summary()

        return self._loop.run(summary())

    def status(self) -> Status:
        """Return the present state: connection, link, the box's advice."""

        async def status() -> Status:
            return self._camera.status()

        return self._loop.run(status())
