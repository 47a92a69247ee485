"""Runs samples: keeps the inputs of finished requests and runs them again when ordered.

It keeps exactly the inputs that the core retained and has neither released nor sampled, so the core
bounds their number and size. Lives on the event loop. The executor's thread reads a canvas while
its sample runs; afterwards the canvas returns to the pool.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import RequestId
from edgebox.inference.executor import Executor
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.tensors import Canvas, EncodedPicture
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.preparation import CanvasPool, as_arrived
from edgebox.scheduling.actions import Release, Sample

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of a request; no canvas where nothing is decoded."""

    app: str
    canvas: Canvas | None
    reusable: bool
    """Whether the canvas goes back to the pool."""
    picture: EncodedPicture | None = None
    """In place of a canvas, if it was not decoded here."""


_ANY_FEATURES = np.zeros((1, 1, 3), np.uint8)
"""A picture in place of features, for a second part that is measured."""

OnDone = Callable[[Sample, str, BatchResult | None], None]
"""Called with the order, the application and the result; None: the model failed."""


class Samples:
    """The retained inputs, by request; their canvases belong to the pool."""

    def __init__(
        self,
        executors: Mapping[ExecutorId, Executor],
        canvases: CanvasPool,
        from_thread: Callable[[Callable[[], None]], None],
        on_done: OnDone,
    ) -> None:
        """Start with none.

        Args:
            executors: where samples run.
            canvases: the pool of canvases.
            from_thread: calls a function on the loop; may be used in any thread.
            on_done: called on the loop when a sample has ended.
        """
        self._executors = executors
        self._canvases = canvases
        self._from_thread = from_thread
        self._on_done = on_done
        self._kept: dict[RequestId, _Input] = {}

    def retain(self, frame: PendingFrame) -> None:
        """Take over a frame's canvas; features are large, and any stand for them."""
        picture = None
        if frame.canvas is None and frame.is_encoded:
            picture = as_arrived(frame)
        own, reusable = frame.let_go_of_canvas()
        if frame.features:
            own, reusable = _ANY_FEATURES, False
        self._kept[frame.request.id] = _Input(frame.request.app, own, reusable, picture)

    def carry_out(self, action: Release | Sample) -> None:
        """Carry out an order about an input that was retained."""
        match action:
            case Release(request):
                self.release(request)
            case Sample():
                self.run(action)

    def release(self, request: RequestId) -> None:
        """Release an input."""
        self._let_go(self._kept.pop(request))

    def run(self, order: Sample) -> None:
        """Run an input on its executor and release it."""
        kept = self._kept.pop(order.request)
        given = kept.picture if kept.canvas is None else kept.canvas
        inputs = [] if given is None else [given]
        executor = self._executors[order.executor]
        future = executor.submit(order.variant, inputs, order.batch_size)
        future.add_done_callback(
            lambda done: self._from_thread(lambda: self._done(order, kept, done))
        )

    def _done(self, order: Sample, kept: _Input, done: "Future[BatchResult]") -> None:
        self._let_go(kept)
        error = done.exception()
        if error is not None:
            _log.error("sample of %s on %s failed: %s", order.variant, order.executor, error)
        self._on_done(order, kept.app, None if error is not None else done.result())

    def _let_go(self, kept: _Input) -> None:
        if kept.canvas is not None and kept.reusable:
            self._canvases.put(kept.canvas)
