"""Decodes frames in a pool of threads and reports each on the loop."""

from collections.abc import Callable

from edgebox.domain.model_family import Variant
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.decode_queue import DECODE_LIMIT_NS, decode_pool
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.preparation import CanvasPool, prepare
from edgebox.runtime.threads import HangLimit


class FrameDecoder:
    """The decoding threads and the canvases that they write."""

    def __init__(
        self,
        canvases: CanvasPool,
        threads: int,
        from_thread: Callable[[Callable[[], None]], None],
        *,
        on_decoded: Callable[[PendingFrame, int], None],
        callbacks: Callbacks,
        clock_ns: Callable[[], int],
    ) -> None:
        """Start the threads.

        Args:
            canvases: where decoded pictures go.
            threads: how many decode at the same time.
            from_thread: calls a function on the loop; may be used in any thread.
            on_decoded: called on the loop with each frame that has not ended meanwhile, and the
                nanoseconds since `decode`.
            callbacks: informed of threads that hang.
            clock_ns: the box's clock.
        """
        self._canvases = canvases
        self._from_thread = from_thread
        self._on_decoded = on_decoded
        self._clock_ns = clock_ns
        self._threads = decode_pool(
            threads,
            HangLimit(
                DECODE_LIMIT_NS,
                lambda text: callbacks.notify("error", text),
                callbacks.on_decoding_hang,
            ),
            clock_ns,
        )

    def decode(self, frame: PendingFrame, variant: Variant) -> None:
        """Decode a frame to a variant's input."""
        if not self._canvases.needs_pixels:
            self._on_decoded(frame, 0)
            return
        frame.preparing = True
        ordered_ns = self._clock_ns()

        def work() -> None:
            # A frame that was dropped while it waited for a thread is not decoded any more.
            if not frame.ended:
                prepare(frame, variant, self._canvases)
            # The wait for a thread counts: it is part of what a frame costs beside inference.
            took_ns = self._clock_ns() - ordered_ns
            self._from_thread(lambda: self._decoded(frame, took_ns))

        self._threads.submit(work, frame.request.camera)

    def _decoded(self, frame: PendingFrame, took_ns: int) -> None:
        frame.preparing = False
        if frame.ended:
            self._canvases.give_back(frame)
        else:
            self._on_decoded(frame, took_ns)

    def stop(self) -> None:
        """Begin nothing more."""
        self._threads.stop()
