"""Owns what a simulation is told of the parts that it models. Pure data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import Camera
from edgebox.scheduling.actions import Infer
from edgebox.simulation.senders import SenderFactory
from edgebox.simulation.simulated_cameras import EstimateFactory, TransitFactory


@dataclass(frozen=True, slots=True)
class SimulationParameters:
    """The costs of the modelled parts."""

    prepare_ns: tuple[int, int] = (1_000_000, 4_000_000)
    """Minimum and maximum of the decoding time."""
    crops_ns: tuple[int, int] = (500_000, 1_500_000)
    """Minimum and maximum time of cutting and scaling the crops of a frame."""
    overhead_ns: int = 300_000
    """From the end of a batch until the core is notified."""
    timer_early_ns: int = 500_000
    """Maximum time by which a timer fires early."""
    planning_ns: int | None = None
    """The time of a plan; None: `PLANNING_NS`, by the number of cameras."""
    planning_clock_ns: Callable[[], int] | None = None
    """CPU time, if a plan is to take its real time; None: it is not."""
    iterations_max: int = 1_000
    slowdown: Mapping[ExecutorId, float] = field(default_factory=dict)
    """The factor by which executors are slower than their profiles; 1 if not listed."""
    throttling: Callable[[int], float] | None = None
    """A further factor of all executors at an instant; None: 1."""
    load_ns: int = 200_000_000
    """The time of loading weights, if memory is limited."""
    open_ns: int = 500_000_000
    """The time of opening a lost executor again."""
    hangs: Callable[[Infer, int], bool] | None = None
    """Says of a batch and the instant of its start whether it never comes back; None: none does."""
    captures_until_ns: int | None = None
    """From this instant on no camera captures pictures, so that frames in transit can end."""
    keep_journal: bool = True
    """Needs memory of hundreds of bytes per event."""
    sender: SenderFactory | None = None
    """What decides at the cameras; None: edgebox's window."""
    estimate: EstimateFactory | None = None
    """The link estimate of both ends; None: edgebox's."""
    admission: Callable[[PlanningSnapshot, Camera], str | None] | None = None
    """Returns the cameras that would lose service to a new one, which is then refused and tries
    again; None: none is refused."""
    transit: TransitFactory | None = None
    """The frame timing; None: edgebox's own."""
    known_ahead_ns: int = 0
    """Above 0: the planner knows the rate of every link for this long."""
