"""Owns the tunables of planning, with the defaults and why they are what they are."""

from dataclasses import dataclass, replace

from edgebox.domain.plans import UTILISATION_MAX

LEFT_MIN = 0.05
"""The share of the executors' time that is planned whatever later stages take."""
_NOTHING = 1e-9
"""A share of the executors' time in which no first stage fits."""


@dataclass(frozen=True, slots=True)
class PlanningParameters:
    """What a user may tune; the configuration file fills it."""

    quantile: float = 0.99
    """Batches are planned to take as long as this quantile of their profile."""
    utilisation_max: float = UTILISATION_MAX
    """Share of the executors' time that may be planned; the rest absorbs unlucky phases, and what
    they do not fit into runs on smaller variants (`scheduling/variant_choice.py`)."""
    utilisation_upgrade: float = 0.84
    """An upgrade beyond what a camera has must keep utilisation below this."""
    utilisation_slow: float = 0.95
    """Only above this share, with everybody at the smallest size, are rates lowered: that loses
    frames for certain, a busy executor only when the phases are unlucky."""
    cycle_utilisation_max: float = UTILISATION_MAX
    """The same where executors take turns, reckoned in the largest batches that deadlines allow:
    batches grow when they fall behind."""
    uplink_utilisation_max: float = 0.8
    """Share of an uplink that the frames of a camera may fill."""
    uplink_utilisation_max_stable: float = 0.95
    """The same of an uplink that carries what was expected of it, frame by frame."""
    link_upgrade: float = 1.1
    """An upgrade must leave an uplink this many times the bandwidth it needs."""
    upgrade_hold_ns: int = 1_500_000_000
    """A camera that was lowered is not raised for so long: a link or a load that swings would
    else move it up and down twice a second."""
    rate_min_hz: float = 1.0
    """No camera is told to send fewer frames than this (or than it asked for); a camera that is
    served not fewer than it said are of use to it either."""
    best_effort_min_hz: float = 0.02
    """Where `rate_min_hz` of all is more than the executors answer, cameras that are best effort
    are told to send only this, next to nothing: so most are served."""
    hysteresis_ratio: float = 1.01
    """A new distribution over all cameras must be worth this many times the one in force."""
    bytes_per_pixel: float = 0.3
    """JPEG bytes per pixel (of a picture of 256x256) of a camera that has not been measured."""
    unmeasured_slo_share: float = 2 / 3
    """Share of the SLO left to the box while a link is not measured: two batches of a third."""
    unmeasured_frame_bytes: int = 18_750
    """Frames of a link that is not measured should not be larger: a tenth of a second of
    1.5 Mbit/s. A slow link would else lose its first frames, a fast one is soon known."""
    quality: int = 85
    """JPEG quality that every camera is told to use."""
    later_price: float | None = 0.0
    """Accuracy times rate that an executor-second a second costs the later stages of pipelines;
    None: they keep their variants. Planning sets it (`later_stages.later_prices`)."""

    def using(self, share: float) -> "PlanningParameters":
        """Return the limits where this share of the executors' time may be planned.

        An upgrade keeps its room below the limit, or it would be undone at once. That rates are
        lowered only above `utilisation_slow` stays.
        """
        return replace(
            self,
            utilisation_max=share,
            utilisation_upgrade=share * self.utilisation_upgrade / self.utilisation_max,
            cycle_utilisation_max=share,
        )

    def without_later_stages(self, later_share: float) -> "PlanningParameters":
        """Return the limits, less what the later stages of pipelines take.

        Args:
            later_share: the share of the executors' time that those take.
        """
        if later_share <= 0:
            return self
        return replace(
            self,
            utilisation_max=max(_NOTHING, self.utilisation_max - later_share),
            utilisation_upgrade=max(_NOTHING, self.utilisation_upgrade - later_share),
            utilisation_slow=max(_NOTHING, self.utilisation_slow - later_share),
            cycle_utilisation_max=max(_NOTHING, self.cycle_utilisation_max - later_share),
        )

    def with_at_least(self, share: float) -> "PlanningParameters":
        """Return the limits, raised so that each allows this share of the executors' time."""
        if share <= self.utilisation_upgrade:
            return self
        return replace(
            self,
            utilisation_max=max(self.utilisation_max, share),
            utilisation_upgrade=share,
            utilisation_slow=max(self.utilisation_slow, share),
            cycle_utilisation_max=max(self.cycle_utilisation_max, share),
        )

    @property
    def next_to_nothing_hz(self) -> float:
        """The rate of best effort where `rate_min_hz` of all is too much."""
        return min(self.rate_min_hz, self.best_effort_min_hz)

    @property
    def upgrade_share(self) -> float:
        """Share of a limit that an upgrade may use."""
        return self.utilisation_upgrade / self.utilisation_max
