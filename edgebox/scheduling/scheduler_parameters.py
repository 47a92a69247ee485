"""Owns the tunables of the scheduling core, with their defaults and the reasons for these."""

from dataclasses import dataclass
from enum import StrEnum

from edgebox.domain.plans import UTILISATION_MAX


class FrameAdmissionRule(StrEnum):
    """Which frames of pipelines are refused on arrival (`frame_admission`)."""

    DENSITY = "density"
    """Frames that cannot be answered in full; under overload first those with fewest objects."""
    WORK = "work"
    """Frames that cannot be answered in full."""
    NONE = "none"
    """Only those whose first stage cannot be in time."""


@dataclass(frozen=True, slots=True)
class SchedulerParameters:
    """The tunables of the core; the configuration file sets them."""

    planning_interval_ns: int = 500_000_000
    """Time between two plans. A shorter one gains little: links are estimated over a second."""
    bandwidth_drop_threshold: float = 0.3
    """A link that lost this share of its bandwidth since the last plan triggers a plan at once."""
    replan_min_ns: int = 100_000_000
    """Minimum time between plans in that case, so that fluctuating links cost no more."""
    replan_share: float = 0.2
    """Maximum share of the time for planning, also while cameras come and go without end: with
    dozens of cameras a plan takes tens of milliseconds of a thread that shares the interpreter with
    the event loop."""
    camera_pending_max: int = 8
    """Frames of one camera that may wait; beyond it the newest replaces the oldest."""
    box_pending_max: int = 256
    """Frames of all cameras that may wait. It bounds memory; deadlines bound the queue earlier."""
    concurrent_batches: int = 0
    """Maximum number of batches at once on each device; 0: by the measured interference."""
    variant_per_batch: bool = True
    """Whether waiting requests that would miss may run on a smaller variant (`variant_choice`)."""
    cores: int = 0
    """CPU cores that all CPU executors share; 0: not known, each may use all of its threads."""
    low_quantile: float = 0.05
    """A request is dropped once it would miss even if its batch ran this fast."""
    high_quantile: float = 0.99
    """A batch is sized so that it meets its earliest deadline even if it runs this slowly."""
    first_slo_share: float = 1 / 3
    """Share of the SLO that a camera's first variant may take, before its link is measured."""
    first_pixels_max: int = 60_000
    """Input pixels of a camera's first variant: its frames of some 18 KB fit through a slow link
    too."""
    utilisation_max: float = UTILISATION_MAX
    """Share of the executors' time that a plan may use, as the planner's parameters say."""
    quality: int = 85
    """JPEG quality of the first advice; after the first plan the planner decides."""
    frame_admission: FrameAdmissionRule = FrameAdmissionRule.DENSITY
    """Which frames of pipelines are refused on arrival; the others are for comparisons."""
    refuses_from: float = 1.0
    """A program's picture is refused on arrival if what waits takes the time until its deadline
    this many times; infinity: never, it is dropped at its deadline.

    A policy answers more if it can choose from more than it can answer, because the newest have the
    time for large batches. But what is not answered costs time as well, to read, to check and to
    keep, which simulations of policies leave out. Ablation in these, the share on time of
    `adaptive`, twenty kinds of workloads of 800 requests at 2 and 4 times the capacity, deadlines
    of 1.5 and 3 times the P99: at .8 it loses .012 at the mean and .105 at most, at 1 .004 and
    .041, at 1.5 .001 and .018. A real box with one model on one core: at 3 times the capacity 1
    answers .66 to .77 of what bare ONNX Runtime does, infinity .14 to .24.
    """
    partial_early_ns: int = 2_000_000
    """How long before its deadline a frame ends at least whose crops still run. It is longer where
    sending partial answers takes longer, late wake-ups of the event loop included (`endings`)."""
    advice_refresh_ns: int = 2_000_000_000
    """A change of only the reason or the bandwidth is sent at most this often."""
    bandwidth_step: float = 0.25
    """A change of the link's estimate by this share is sent at once."""
    prepare_initial_ns: int = 4_000_000
    """The assumed decoding time of a frame until some have been measured."""
    prepare_window: int = 64
    """Frames over which the costs outside link and inference are measured."""
    slowdown_window: int = 64
    """Batches over which an executor's slowdown is measured."""
    slowdown_quantile: float = 0.75
    """The quantile at which measured times and profile are compared. A quarter of the batches may
    be outliers without an effect; the high quantile covers those."""
    drift_after_ns: int = 10_000_000_000
    """Batches must differ from their expectation for this long until it counts as drift, so that a
    short busy period of the machine does not."""
    sample_share: float = 0.01
    """Share of an executor's time for running requests again in batches of their own, to measure
    them; 0: never. Only policies that learn use the measurements."""
    sample_horizon_ns: int = 600_000_000_000
    """A sample of a single request counts for this long, while there are enough newer ones."""
    batch_limit_min_ns: int = 1_000_000_000
    """The minimum time limit of a batch, however short it should be: machines stall at times."""
    idle_half_life_ns: int = 2_000_000_000
    """While an executor is idle, its excess over the profile is halved this often, so that a box
    that stopped admitting requests because it was slow detects when it no longer is."""
