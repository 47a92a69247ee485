"""What a plan is: which variant, size and rate each camera gets, and why. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edgebox.domain.model_family import ExecutorId, LatencyProfile, Variant, VariantName
from edgebox.domain.requests import Camera, CameraId, LinkState


@dataclass(frozen=True, slots=True)
class Advice:
    """What a camera is told to send, in force until the next advice."""

    variant: VariantName
    width_px: int
    height_px: int
    rate_hz: float
    quality: int
    bandwidth_bps: int
    """The box's estimate of the uplink; 0: not known yet."""
    reason: str
    """One sentence for a person: what holds this camera at this size."""


class Resource(StrEnum):
    """What there is too little of for a camera to have more."""

    UPLINK = "uplink"
    """The camera's own, or that of its site, in bit/s."""
    DEADLINE = "deadline"
    """Time until its results are due, in ns: not even an idle box would do."""
    WAITING = "waiting"
    """Time that somebody's frames can wait for those of others, in ns."""
    EXECUTORS = "executors"
    """The executors' time, as a share of it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The constraint that binds a camera: what keeps it from the next larger option."""

    resource: Resource
    missing: float
    """How much more of the resource it would take, in the unit of the resource."""
    gain: float
    """Accuracy times rate, per second, that the larger option would bring."""
    lifted_by: str
    """What would lift it, for a person."""

    @property
    def price(self) -> float:
        """What one more unit of the resource would bring: accuracy times rate, per second."""
        return self.gain / self.missing


@dataclass(frozen=True, slots=True)
class ResourcePrice:
    """What more of a resource would bring that cameras share."""

    resource: Resource
    of: tuple[str, ...]
    """The executors, or the site whose uplink it is."""
    price: float
    """Accuracy times rate, per second, that the best use of one more unit brings."""
    cameras: int
    """How many cameras would have more if there were more of it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the plan gives one camera. `served` False: best effort at the smallest size."""

    camera: CameraId
    variant: VariantName
    rate_hz: float
    quality: int
    served: bool
    reason: str
    limit: Limit | None = None
    """What keeps it from more; None: nothing does, or it is a matter of time."""


@dataclass(frozen=True, slots=True)
class Group:
    """Executors that serve some variants apart from the others."""

    executors: tuple[ExecutorId, ...]
    variants: tuple[VariantName, ...]
    """Whose home these executors are."""
    steal_budget_ns: int
    """While nothing waits for its own variants, an executor may run a foreign batch that takes no
    longer than this: nobody at home becomes late by it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to one snapshot."""

    computed_ns: int
    """When its snapshot was taken."""
    assignments: Mapping[CameraId, Assignment] = field(default_factory=dict)
    utilisation: float = 0.0
    """Planned share of the executors' time, P99 times over rates."""
    groups: tuple[Group, ...] = ()
    """Executors that work apart, no executor and no variant in two of them; empty: none do, every
    executor serves all variants."""
    prices: tuple[ResourcePrice, ...] = ()
    """Of executors' time and uplinks of sites, where some camera would have more of them."""


@dataclass(frozen=True, slots=True)
class UplinkShare:
    """What the other cameras of a site leave of its uplink to one of them."""

    cameras: int
    """How many share it, this one among them."""
    others_bits: float
    """One frame of each other camera: what a frame may have to wait for, or share the link with."""
    others_bps: float
    """What the others send."""
    frame_bits_max: float
    """The largest frame that is planned for this camera."""
    rate_hz_max: float
    """The highest rate that is planned for it."""


@dataclass(frozen=True, slots=True)
class CameraSnapshot:
    """All that planning may know about one camera."""

    camera: Camera
    link: LinkState
    current: Assignment | None
    lowered_ns: int | None = None
    """When it was last given a smaller variant than it had; None: never."""
    overrun_ns: int | None = None
    """How much longer than planned its frames take in bad cases, apart from their link and from
    waiting for others; None: not known."""
    share: UplinkShare | None = None
    """Its part of an uplink that it shares, once that is planned; None: the uplink is its own."""


@dataclass(frozen=True, slots=True)
class PlanningSnapshot:
    """All that one planning run may know. Immutable, so it can cross threads.

    `slowdown[executor]` is how much slower than its profile an executor has lately been (>= 1);
    `fixed_ns` is the measured cost of a frame outside link and inference (decoding, dispatch,
    decoding of outputs).
    """

    taken_ns: int
    cameras: tuple[CameraSnapshot, ...]
    variants: tuple[Variant, ...]
    profiles: Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]
    slowdown: Mapping[ExecutorId, float]
    fixed_ns: int
    groups: tuple[Group, ...] = ()
    """Those of the plan in force."""
    others: float = 0.0
    """How many executors run beside any one of these, on average, which slows it by its profiles'
    interference."""
    applications: Mapping[str, Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]] = field(
        default_factory=dict
    )
    """By application: what its batches take where that was learned and is not what `profiles` say.
    """
