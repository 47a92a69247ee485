"""The sections that say how work is scheduled and what cameras are advised to send."""

from dataclasses import dataclass

from edgebox.config.keys import key
from edgebox.link.bandwidth import EstimatorKind
from edgebox.scheduling.policies import POLICIES


@dataclass(frozen=True, slots=True)
class SchedulerSection:
    """What runs next, decided at every event."""

    batching: str = key(
        "adaptive",
        "The policy that forms batches; docs/explanation/scheduling.md compares them",
        choices=tuple(POLICIES),
    )
    concurrent_batches: int = key(
        0,
        "Maximum number of batches that run at once on one device; 0: as many as its measured "
        "interference makes worthwhile",
        low=0,
        high=64,
    )
    variant_per_batch: bool = key(
        True,
        "Frames that would miss their deadline run on a smaller variant than planned, if then more "
        "are answered in time; one that finds an executor idle, and was sent larger, on a larger "
        "variant",
    )
    low_quantile: float = key(
        0.05,
        "A frame is dropped when it would be late even if its batch took only this "
        "quantile of its execution time",
        low=0,
        high=0.5,
    )
    high_quantile: float = key(
        0.99,
        "A batch is sized to be on time even if it takes this quantile of its execution time",
        low=0.5,
        high=1,
    )
    sample_share: float = key(
        0.01,
        "Share of an executor's time in which an idle box runs finished frames again, "
        "alone, to learn their execution times; only for policies that learn; 0: never",
        low=0,
        high=0.2,
    )
    sample_horizon_s: float = key(
        600.0,
        "Seconds after which such a measurement expires, if there are enough newer ones",
        low=1,
        high=1_000_000,
    )


@dataclass(frozen=True, slots=True)
class PlannerSection:
    """What each camera should send, decided about twice a second."""

    interval_ms: int = key(500, "Milliseconds between two plans", low=50, high=60_000)
    quality: int = key(85, "JPEG quality that cameras are advised to use", low=1, high=100)
    utilisation_max: float = key(
        0.9,
        "Share of the executors' time that plans may use; the rest absorbs unfavourable phases",
        low=0.05,
        high=1,
    )
    uplink_utilisation_max: float = key(
        0.8, "Share of an uplink that a camera's frames may fill", low=0.05, high=1
    )
    uplink_utilisation_max_stable: float = key(
        0.95,
        "The same share for an uplink whose throughput is stable from frame to frame",
        low=0.05,
        high=1,
    )
    bandwidth: str = key(
        str(EstimatorKind.CAUTIOUS),
        "How the bandwidth of a link is estimated from frames' throughputs; "
        "docs/explanation/simulation.md compares the estimators",
        choices=tuple(str(rule) for rule in EstimatorKind),
    )
    rate_min_hz: float = key(
        1.0,
        "Lowest frame rate of cameras that are served; a camera that requests less gets what it "
        "requests",
        low=0.01,
        high=1000,
    )
    admission: str = key(
        "best_effort",
        "What happens to a new camera that would degrade others: best_effort accepts it, "
        "and some cameras become best effort; refuse refuses it",
        choices=("best_effort", "refuse"),
    )
