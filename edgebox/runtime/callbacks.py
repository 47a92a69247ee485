"""The functions through which a driver informs the parts of the box around it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import Plan
from edgebox.scheduling.actions import Advise, ReportDrift
from edgebox.storage.rows import Level


class Notify(Protocol):
    """Publishes a notice: on the page, in the log and in the database."""

    def __call__(self, level: Level, text: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Called by a driver, on the loop."""

    on_advice: Callable[[Advise], None]
    """Called with each new advice."""
    on_plan: Callable[[Plan, int], None]
    """Called with each plan, and the nanoseconds it took."""
    on_drift: Callable[[ReportDrift], None] = lambda drift: None
    """Called when an executor has left its profiles."""
    on_failure: Callable[[InvariantViolation], None] = lambda violation: None
    """Called once, if the core contradicts itself: nothing is decided any more."""
    on_give_up: Callable[[], None] = lambda: None
    """Called when no executor is left and none can be opened in this process."""
    on_not_opened: Callable[[ExecutorId], None] = lambda executor: None
    """Called with each lost executor that could not be opened, or that is not opened again."""
    on_decoding_hang: Callable[[], None] = lambda: None
    """Called when no picture can be decoded any more in this process."""
    notify: Notify = lambda level, text: None
    """Called with what people should know of executors and threads."""
