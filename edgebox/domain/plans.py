"""Plans: the variant, size and rate of each camera, with the reasons. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edgebox.domain.cascades import CascadeCurve
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.domain.pipelines import StageName
from edgebox.domain.requests import Camera, CameraId, LinkState

UTILISATION_MAX = 0.9
"""Share of the executors' time that a plan may use, if nothing else is configured."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The size, rate and quality that a camera is to send, in force until the next advice."""

    variant: VariantName
    width_px: int
    height_px: int
    rate_hz: float
    quality: int
    bandwidth_bps: int
    """The box's estimate of the uplink; 0: not known yet."""
    reason: str
    """One sentence for a person: why this camera has this size."""


class Resource(StrEnum):
    """A resource that limits a camera."""

    UPLINK = "uplink"
    """The camera's own uplink, or that of its site, in bit/s."""
    DEADLINE = "deadline"
    """Time until its results are due, in ns: too short even for an idle box."""
    WAITING = "waiting"
    """Time that a camera's frames can wait for those of others, in ns."""
    EXECUTORS = "executors"
    """The executors' time, as a share of it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The binding constraint of a camera: what excludes its next larger option."""

    resource: Resource
    missing: float
    """How much more of the resource the option needs, in the unit of the resource."""
    gain: float
    """Accuracy times rate, per second, that the larger option would add."""
    of: str
    """What has too little of it: the executors, a camera or a site with its uplink, or the camera
    whose frames would wait too long."""

    @property
    def price(self) -> float:
        """Accuracy times rate, per second, that one more unit of the resource would add."""
        return self.gain / self.missing


class RemedyAction(StrEnum):
    """What a person can do for a camera to get more than the plan gives it."""

    LOWER_RATE = "lower_rate"
    """Ask for fewer frames; the value is a rate in frames/s that can be kept."""
    IMPORT_SMALLER_MODEL = "import_smaller_model"
    IMPORT_BETTER_MODEL = "import_better_model"
    ADD_EXECUTOR = "add_executor"
    IMPROVE_UPLINK = "improve_uplink"
    """The value is the bandwidth that is needed, bit/s."""
    EXTEND_DEADLINE = "extend_deadline"
    """The value is the deadline that would do, ms."""
    LOWER_ACCURACY = "lower_accuracy"
    """Ask for less accuracy; the value is the most that there is."""
    CHOOSE_MODEL = "choose_model"
    """Give it another model, or import the one that it names."""
    CHECK_SOURCE = "check_source"
    """See to the source of its pictures."""
    WAIT = "wait"
    """It changes by itself."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing that a person can do about a reason."""

    action: RemedyAction
    text: str
    """For a person, in the imperative: "ask for 2 frames/s"."""
    value: float | None = None
    """The figure of the action, in its unit; None: there is none."""
    camera: CameraId | None = None
    """The camera that it is to be done to; None: the one that it helps."""


@dataclass(frozen=True, slots=True)
class ResourcePrice:
    """The marginal value of a resource that cameras share."""

    resource: Resource
    of: tuple[str, ...]
    """The executors, or the site of the uplink."""
    price: float
    """Accuracy times rate, per second, that the best use of one more unit would add."""
    cameras: int
    """The number of cameras that would get more if there were more of it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The variant, rate and quality that the plan gives one camera.

    `served` False: best effort at the smallest size.
    """

    camera: CameraId
    variant: VariantName
    rate_hz: float
    quality: int
    served: bool
    reason: str
    limit: Limit | None = None
    """The constraint that excludes a larger option; None: there is none, or only a waiting time."""
    remedies: tuple[Remedy, ...] = ()
    """What a person can do about it; none where it has all that it can use."""
    later: tuple[tuple[StageName, VariantName], ...] = ()
    """The largest variant that crops run on, for the later stages of its pipeline that are planned;
    the others have the largest of their stage."""
    cascade_share: float | None = None
    """The share of its pictures that its cascade sends on; None: it has none, or that is set."""
    cascade_reserved: float | None = None
    """What first stages leave time for of that share; the rest takes time that is left over."""


@dataclass(frozen=True, slots=True)
class Group:
    """Executors that serve some variants separately from the others."""

    executors: tuple[ExecutorId, ...]
    variants: tuple[VariantName, ...]
    """The variants that these executors serve."""
    steal_budget_ns: int
    """While nothing waits for its own variants, an executor may run a batch of another group that
    takes at most this long: no request of its own group becomes late by it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to one snapshot."""

    computed_ns: int
    """When its snapshot was taken."""
    assignments: Mapping[CameraId, Assignment] = field(default_factory=dict)
    utilisation: float = 0.0
    """Planned share of the executors' time."""
    groups: tuple[Group, ...] = ()
    """Groups of executors; no executor and no variant is in two of them. Empty: every executor
    serves all variants."""
    prices: tuple[ResourcePrice, ...] = ()
    """The prices of executors' time and of sites' uplinks, where some camera could use more of
    them."""


@dataclass(frozen=True, slots=True)
class UplinkShare:
    """The part of a site's uplink that the other cameras leave to one of them."""

    cameras: int
    """The number of cameras that share it, this one included."""
    others_bits: float
    """The size of one frame of each other camera: a frame may have to wait for these, or share the
    link with them."""
    others_bps: float
    """The rate at which the others send."""
    frame_bits_max: float
    """The largest frame that is planned for this camera."""
    rate_hz_max: float
    """The highest rate that is planned for it."""


@dataclass(frozen=True, slots=True)
class LaterVariant:
    """A variant that crops of a camera may run on."""

    variant: Variant
    executor_s: float
    """The time of executors that the crops of one frame take, in seconds."""


@dataclass(frozen=True, slots=True)
class LaterStage:
    """What is known of a camera's crops for one later stage of its pipeline."""

    name: StageName
    crops: float
    """The mean number of crops of a frame, above 0."""
    sides: tuple[float, ...]
    """Quantiles of equal weight of the objects' sides, at least one: the square root of an object's
    area, as a share of that of its picture."""
    variants: tuple[LaterVariant, ...]
    """Choices, from the smallest up, at least one; the last is the stage's largest."""
    current: VariantName
    """The largest variant that its crops run on now."""


@dataclass(frozen=True, slots=True)
class PlannedCascade:
    """A camera's cascade, of which planning chooses how many pictures are sent on."""

    small: VariantName
    """Pictures that another variant has answered are never sent on."""
    large: Variant
    curve: CascadeCurve
    executor_s: float
    """The time of executors that the large model takes for one picture, in seconds."""
    reserved: float
    """The share of the pictures that first stages leave time for at present, in [0, 1]; more may be
    sent on."""


@dataclass(frozen=True, slots=True)
class CameraSnapshot:
    """The input of planning for one camera."""

    camera: Camera
    link: LinkState
    current: Assignment | None
    lowered_ns: int | None = None
    """When it last got a smaller variant than before; None: never."""
    overrun_ns: int | None = None
    """How much longer than planned its frames take in bad cases, apart from their link and from
    waiting for other batches; None: not known."""
    share: UplinkShare | None = None
    """Its part of a shared uplink, once that is planned; None: the uplink is its own."""
    before_sending_ns: int = 0
    """How long its frames usually take from their capture until they are sent: scaling them down,
    encoding them, and what else its camera does."""
    later_ns: int = 0
    """What the later stages of its pipeline need of each frame's time."""
    later: tuple[LaterStage, ...] = ()
    """The later stages of its pipeline whose crops are known."""
    other_later_s: tuple[tuple[FamilyName, float], ...] = ()
    """The time of executors that each other later stage takes for one frame, in seconds."""
    later_frames: float = 1.0
    """How many frames have later stages for each one that is planned: more than 1 where some had
    their first stage at the camera."""
    cascade: PlannedCascade | None = None
    """None: it has none, or how much that sends on is not planned."""
    unserved_ns: int | None = None
    """When a plan made it best effort that had been served; None: none did."""

    @property
    def has_later(self) -> bool:
        """Whether something is known of the stages after the first."""
        return bool(self.later or self.other_later_s) or self.cascade is not None


@dataclass(frozen=True, slots=True)
class PlanningSnapshot:
    """The input of one planning run. Immutable, so it can cross threads.

    `slowdown[executor]` is how much slower than its profile an executor has been of late (>= 1);
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
    """The groups of the plan in force."""
    others: float = 0.0
    """Mean number of other executors that run beside each of these; they slow it by its profiles'
    interference."""
    executor_shares: Mapping[ExecutorId, float] = field(default_factory=dict)
    """The share of the time in which an executor may run a batch, where fewer batches run at once
    on its device than it has executors; 1 if not listed."""
    applications: Mapping[str, Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]] = field(
        default_factory=dict
    )
    """By application: the learned times of its batches, where they differ from `profiles`."""

    @property
    def batches_at_once(self) -> float:
        """How many batches run at once on average when all of these executors are busy."""
        return sum(self.executor_shares.get(executor, 1.0) for executor in self.profiles)

    def share_of(self, loads: Mapping[FamilyName, float]) -> float:
        """Return the share of these executors' time that loads take, of the families that they run.

        Args:
            loads: by family, in executor-seconds a second.
        """
        families = {variant.family for variant in self.variants}
        here = sum(load for family, load in loads.items() if family in families)
        return here / max(1.0, self.batches_at_once)

    def fixed_of(self, camera: CameraSnapshot) -> int:
        """Return what a camera's frame costs outside its link and the batch of its first stage."""
        return self.fixed_ns + camera.before_sending_ns + camera.later_ns
