"""Owns the tunables of the scheduling core, with the defaults and why they are what they are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerParameters:
    """What a user may tune; the configuration file fills it."""

    planning_interval_ns: int = 500_000_000
    """Between two plans. Faster hardly helps: links are estimated over about a second."""
    bandwidth_drop_threshold: float = 0.3
    """A link that lost this share of its bandwidth since the last plan is planned for at once."""
    replan_min_ns: int = 100_000_000
    """But not sooner than this after the last plan, so that links that swing cost no more."""
    replan_share: float = 0.2
    """Nor so soon that planning took more than this share of the time: with dozens of cameras a
    plan takes tens of milliseconds of a thread that shares the interpreter with the loop."""
    camera_pending_max: int = 8
    """Frames of one camera that may wait; beyond it the oldest makes room for the newest."""
    box_pending_max: int = 256
    """Frames that may wait in all; it bounds memory, deadlines bound the queue long before."""
    low_quantile: float = 0.05
    """A request is dropped once it would miss even if its batch ran this fast."""
    high_quantile: float = 0.99
    """A batch is sized so that it meets its earliest deadline even if it runs this slowly."""
    first_slo_share: float = 1 / 3
    """Share of the SLO that a camera's first variant may take, its link not being known."""
    first_pixels_max: int = 60_000
    """Input pixels of a camera's first variant: its frames of some 18 KB pass a slow link too."""
    busy_share: float = 0.75
    """Share of its time for which an executor runs where the planner plans as much as it may: its
    `utilisation_max`."""
    quality: int = 85
    """JPEG quality of the first advice; from the first plan on the planner says."""
    advice_refresh_ns: int = 2_000_000_000
    """News of the reason or the bandwidth alone is sent at most this often."""
    bandwidth_step: float = 0.25
    """A change of the link's estimate by this share is news at once."""
    prepare_initial_ns: int = 4_000_000
    """What decoding a frame is taken to cost until some have been measured."""
    prepare_window: int = 64
    """Frames over which the costs outside link and inference are measured."""
    slowdown_window: int = 64
    """Batches over which an executor's slowdown is measured."""
    slowdown_quantile: float = 0.75
    """The quantile at which measured times and profile are compared: a quarter of the batches
    may be outliers and change nothing; that is what the high quantile is for."""
    drift_after_ns: int = 10_000_000_000
    """Batches must have left what is expected of them for so long until it counts as drift: a busy
    spell of the machine is none."""
    sample_share: float = 0.01
    """Share of an executor's time for running requests once more, alone, to learn what they take;
    0: never. Only policies that learn have any use for it."""
    sample_horizon_ns: int = 600_000_000_000
    """What was learnt of a single request counts for so long, while there is newer enough."""
    batch_limit_min_ns: int = 1_000_000_000
    """No batch is given up before this, however short it should be: machines stumble."""
    idle_half_life_ns: int = 2_000_000_000
    """While an executor is idle, its excess over the profile is halved this often, so that a box
    that stopped admitting work because it was slow finds out when it no longer is."""
