"""What a driver tells the parts of the box around it."""

from collections.abc import Callable
from dataclasses import dataclass

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import Plan
from edgebox.runtime.supervisor import Told
from edgebox.scheduling.events import Advise, ReportDrift


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Whom a driver tells what; all are called on the loop."""

    advice: Callable[[Advise], None]
    """Of each new advice."""
    plan: Callable[[Plan, int], None]
    """Of each plan, and the nanoseconds it took."""
    drift: Callable[[ReportDrift], None] = lambda drift: None
    """When an executor has left its profiles."""
    failure: Callable[[InvariantViolation], None] = lambda violation: None
    """Once, if the core contradicts itself: nothing is decided any more."""
    give_up: Callable[[], None] = lambda: None
    """When no executor is left and none can be opened in this process."""
    not_opened: Callable[[ExecutorId], None] = lambda executor: None
    """Of each lost executor that could not be opened, or that is not opened anew any more."""
    decoding_hangs: Callable[[], None] = lambda: None
    """When no picture can be decoded any more in this process."""
    told: Told = lambda level, text: None
    """What people should know of executors and threads."""
