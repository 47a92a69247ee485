"""Decodes frames in a pool of threads and reports each on the loop."""

import logging
from collections.abc import Callable, Sequence

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.requests import RequestId
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.decode_queue import DECODE_LIMIT_NS, Deferrable, FairQueue, decode_pool
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.preparation import CanvasPool, prepare, prepared_as_sent
from edgebox.runtime.threads import HangLimit

_log = logging.getLogger(__name__)


class FrameDecoder:
    """The decoding threads and the canvases that they write."""

    def __init__(
        self,
        canvases: CanvasPool,
        threads: int,
        from_thread: Callable[[Callable[[], None]], None],
        *,
        runs_encoded: Callable[[VariantName], bool],
        on_decoded: Callable[[PendingFrame, int], None],
        on_cut: Callable[[list[PendingFrame], int], None],
        callbacks: Callbacks,
        clock_ns: Callable[[], int],
    ) -> None:
        """Start the threads.

        Args:
            canvases: where decoded pictures go.
            threads: how many decode at the same time.
            from_thread: calls a function on the loop; may be used in any thread.
            runs_encoded: whether the executor that a variant will run on takes pictures as they
                arrived.
            on_decoded: called on the loop with each frame that has not ended meanwhile, and the
                nanoseconds that it took.
            on_cut: called on the loop with the crops of one `cut` that have not ended meanwhile,
                and the nanoseconds since the order.
            callbacks: informed of threads that hang.
            clock_ns: the box's clock.
        """
        self._canvases = canvases
        self._from_thread = from_thread
        self._runs_encoded = runs_encoded
        self._on_decoded = on_decoded
        self._on_cut = on_cut
        self._clock_ns = clock_ns
        self._queue = FairQueue(threads)
        self._held = False
        self._released_ns = 0
        """When decoding was last held no more."""
        self._threads = decode_pool(
            threads,
            HangLimit(
                DECODE_LIMIT_NS,
                lambda text: callbacks.notify("error", text),
                callbacks.on_decoding_hang,
            ),
            clock_ns,
            queue=self._queue,
        )

    @property
    def hanging_threads(self) -> tuple[int, int]:
        """How many threads hang, replaced ones included, and how many work."""
        return self._threads.hanging()

    def hold(self, held: bool) -> None:
        """Begin to decode no further frames, or do so again. Crops are cut all the same."""
        if held == self._held:
            return
        self._held = held
        if not held:
            self._released_ns = self._clock_ns()
        self._threads.change(lambda: self._queue.hold(held))

    def decode(self, frame: PendingFrame, variant: Variant) -> None:
        """Decode a frame to a variant's input."""
        if (
            not self._canvases.needs_pixels
            or self._stays_encoded(frame, variant)
            or prepared_as_sent(frame, variant)
        ):
            self._on_decoded(frame, 0)
            return
        frame.preparing = True
        ordered_ns = self._clock_ns()

        def work(picture: Deferrable) -> None:
            began_ns = self._clock_ns()
            if not picture.skipped:
                self._prepare(frame, variant)
            # The wait for a thread counts: it is part of what a frame costs beside inference. The
            # wait for executors, or for other frames of its camera, says how much is sent.
            waited = self._held or self._released_ns >= ordered_ns or picture.behind
            took_ns = self._clock_ns() - (began_ns if waited else ordered_ns)
            self._from_thread(lambda: self._decoded(frame, took_ns))

        # A frame that was dropped while it waited for a thread is not decoded any more.
        due_ns = frame.request.deadline_ns if frame.is_one_shot else None
        picture = Deferrable(work, lambda: frame.ended, due_ns, frame.request.app)
        self._threads.submit(picture, frame.sender)

    def _stays_encoded(self, frame: PendingFrame, variant: Variant) -> bool:
        # Crops are cut here, from the decoded picture.
        return frame.is_encoded and not frame.stages_after and self._runs_encoded(variant.name)

    def cut(self, crops: Sequence[tuple[PendingFrame, Variant]]) -> None:
        """Scale crops to their variants' inputs, those of one frame together."""
        of_frames: dict[RequestId, list[tuple[PendingFrame, Variant]]] = {}
        for crop, variant in crops:
            crop.preparing = True
            of_frames.setdefault(crop.root.request.id, []).append((crop, variant))
        for of_frame in of_frames.values():
            self._cut_together(of_frame)

    def _cut_together(self, crops: Sequence[tuple[PendingFrame, Variant]]) -> None:
        ordered_ns = self._clock_ns()

        def work() -> None:
            for crop, variant in crops:
                if not crop.ended:
                    self._prepare(crop, variant)
            self._from_thread(done)

        def done() -> None:
            living = []
            for crop, _ in crops:
                crop.preparing = False
                if crop.ended:
                    self._canvases.give_back(crop)
                else:
                    living.append(crop)
            if living:
                self._on_cut(living, self._clock_ns() - ordered_ns)

        self._threads.submit(work, crops[0][0].sender)

    def _prepare(self, frame: PendingFrame, variant: Variant) -> None:
        try:
            prepare(frame, variant, self._canvases)
        except BaseException as error:  # even what would end the thread ends one picture only
            _log.exception("a picture could not be prepared")
            what = type(error).__name__
            frame.invalid_because = f"the picture could not be decoded ({what})"

    def _decoded(self, frame: PendingFrame, took_ns: int) -> None:
        frame.preparing = False
        if frame.ended:
            self._canvases.give_back(frame)
        else:
            self._on_decoded(frame, took_ns)

    def stop(self) -> None:
        """Begin nothing more."""
        self._threads.stop()
