"""Types of the state document and its parts; their schemas are derived from them.

docs/reference/http-api.md explains the fields.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from edgebox.domain.latency_histogram import PARTS
from edgebox.domain.model_family import ExecutorId, VariantName, WeightsId
from edgebox.domain.plans import Advice, Remedy
from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.deadlines import LaterDeadlines
from edgebox.runtime.box_event import BoxEvent
from edgebox.runtime.grading import Grade
from edgebox.runtime.stage_documents import StageDocument
from edgebox.scheduling.supervised import ExecutorState
from edgebox.web.cascade_documents import CameraCascade
from edgebox.web.schemas import NUMBER, Schema, nullable, record
from edgebox.web.source_documents import SourceDocument
from edgebox.web.typed_schemas import Share, WithSchema
from edgebox.web.zone_schemas import CAMERA_TRACKING


class Counts(TypedDict):
    """Frames since the start of the box."""

    captured: int
    accepted: int
    on_time: int
    late: int
    pending: int
    dropped: Mapping[str, int]
    utility: float
    mismatches: int


class Percentiles(TypedDict):
    """Two quantiles of a time; its unit stands in the field's name."""

    p50: float
    p99: float


class BatchPercentiles(Percentiles):
    """Quantiles of the time of batches of one size."""

    p90: float


class LoopLagPercentiles(Percentiles):
    """Quantiles of the event loop's lag."""

    p999: float
    max: float


_PARTS = Schema("LatencyParts", record(**dict.fromkeys(PARTS, NUMBER)))

LatencyParts = Annotated[Mapping[str, float], WithSchema(_PARTS)]
"""Milliseconds of each part of a frame's latency, by its name."""


class LastError(TypedDict):
    """The last error of something."""

    at_ms: int
    text: str


class CameraStage(StageDocument):
    """One stage of a camera's pipeline."""

    answered: Annotated[int, "Crops; 0 of the first stage"]
    remembered: Annotated[int, "Objects whose track was known"]
    dropped: Annotated[Mapping[str, int], "Crops, by reason"]


class CameraPipeline(TypedDict):
    """A camera's pipeline and what came of its crops."""

    name: str
    partial: Annotated[int, "Answers without some stage for some object"]
    stages: Sequence[CameraStage]


class Departure(TypedDict):
    """When and why a camera left."""

    at_ms: int
    why: str


class CameraSite(TypedDict):
    """The uplink that a camera shares with others."""

    name: SiteId
    inferred: bool


class Link(TypedDict):
    """What is known of a camera's uplink."""

    bandwidth_bps: int | None
    throughput_stability: Share | None
    rtt_ms: float | None
    clock_error_ms: float | None
    history: Sequence[tuple[float, float]]


class CameraState(TypedDict):
    """One camera."""

    id: CameraId
    app: str
    family: str
    pipeline: CameraPipeline | None
    connected: bool
    first_frame_s: float | None
    last_frame_s: Annotated[float | None, "How long ago its last frame came; null: none has come"]
    left: Departure | None
    agent: str
    address: str | None
    site: CameraSite | None
    slo_ms: float
    later: LaterDeadlines
    rate_hz: float
    width_px: int
    height_px: int
    advice: Advice | None
    remedies: Annotated[Sequence[Remedy], "What a person can do to get more than the advice gives"]
    grade: Grade
    trouble: Annotated[
        str | None, "Why its source gives no pictures; null: it does, or nobody knows"
    ]
    on_time_share: Share | None
    late_in_window: int
    dropped_in_window: Mapping[str, int]
    fps: float
    latency_ms: Annotated[
        Mapping[str, LatencyParts] | None, WithSchema(nullable(record(p50=_PARTS, p99=_PARTS)))
    ]
    link: Link
    counts: Counts
    cascade: CameraCascade | None
    tracking: Annotated[Mapping[str, Any] | None, WithSchema(nullable(CAMERA_TRACKING))]
    variant_history: Sequence[tuple[float, int]]


class Group(TypedDict):
    """Executors that serve the same cameras."""

    executors: Sequence[ExecutorId]
    variants: Sequence[VariantName]
    steal_budget_ms: float


class Supervision(TypedDict):
    """An executor's losses, and what became of them."""

    state: ExecutorState
    restarts: int
    losses: Mapping[str, int]
    abandoned_threads: int
    retry_s: float | None
    last_error: LastError | None


class Executor(Supervision):
    """One executor."""

    id: ExecutorId
    provider: Annotated[str, "Empty: it is elsewhere, and was not there since the box's start"]
    device: str
    note: str
    threads: int
    cores: Sequence[int]
    families: Sequence[str]
    interference: float | None
    utilisation: float
    threads_mean: float | None
    core_seconds: float | None
    batch_size_mean: float | None
    running: VariantName | None


class Device(TypedDict):
    """How many batches run at once on a device, and why."""

    device: str
    executors: Sequence[ExecutorId]
    concurrent_batches: int
    throughput_gains: Sequence[float]
    reason: str


class AppLatency(TypedDict):
    """How long an application's single pictures take."""

    app: str
    variant: VariantName
    executor: ExecutorId
    count: int
    measured_ms: Percentiles | None
    profile_ms: Percentiles
    expected_ms: Percentiles


class BatchTimes(TypedDict):
    """How long batches of one size take."""

    executor: ExecutorId
    variant: VariantName
    batch_size: int
    count: int
    measured_ms: BatchPercentiles
    profile_ms: BatchPercentiles
    factor: float


class ResidentWeights(TypedDict):
    """Weights in an executor's memory."""

    weights: WeightsId
    size_bytes: int


class ModelMemory(TypedDict):
    """An executor's memory for weights."""

    executor: ExecutorId
    limit_bytes: int
    used_bytes: int
    resident: Sequence[ResidentWeights]
    loading: WeightsId | None
    loads: int
    hits: int
    misses: int
    hit_ratio: Share | None
    switch_ms: float | None


class PlannerState(TypedDict):
    """The last plan, and how many there have been."""

    last_ms: float | None
    age_s: float | None
    overdue: Annotated[bool, "Cameras are connected, and the next plan should be there for 10 s"]
    runs: int
    groups: Sequence[Group]


class Destination(TypedDict):
    """A receiver of notifications."""

    kind: Literal["mqtt", "webhook"]
    name: str
    connected: bool | None
    queued: int
    sent: int
    dropped: Mapping[str, int]
    last_error: LastError | None


class EnergySource(TypedDict):
    """What a counter or sensor has measured."""

    source: str
    total_j: float
    power_w: float | None


class BoxState(TypedDict):
    """The box without its cameras."""

    name: str
    version: str
    ready: bool
    ready_reason: str
    uptime_s: float
    family: str
    labels: Sequence[str]
    only_synthetic: Annotated[
        bool, "Every detector was trained on synthetic pictures: none is for real cameras"
    ]
    in_fleet: Annotated[bool, "There may be other boxes: GET /v1/fleet"]
    executors: Sequence[Executor]
    devices: Sequence[Device]
    applications: Sequence[AppLatency]
    latencies: Sequence[BatchTimes]
    memory: Sequence[ModelMemory]
    queue_length: int
    planner: PlannerState
    decision_us: Percentiles | None
    loop_lag_ms: LoopLagPercentiles | None
    energy: Sequence[EnergySource]
    window_s: float
    counts: Counts
    refused: Mapping[str, int]
    destinations: Sequence[Destination]
    events: Sequence[BoxEvent]


class State(TypedDict):
    """The state document."""

    type: Literal["state"]
    now_ms: int
    box: BoxState
    cameras: Sequence[CameraState]
    sources: Annotated[Sequence[SourceDocument], "Cameras whose pictures the box fetches"]
