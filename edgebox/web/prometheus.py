"""`GET /metrics` for Prometheus. The only importer of its client library.

Numbers are copied on the loop, a few cameras at a time; a thread writes the text. All figures come
from the counts that the page shows.
"""

import asyncio
import copy
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from edgebox.domain.access import Scope
from edgebox.domain.latency_histogram import METRIC_BUCKETS
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason
from edgebox.inference.sessions import CPU
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.destinations import Destination
from edgebox.runtime.frame_metrics import Counts
from edgebox.runtime.machine_measurements import Energy, MachineMeasurements
from edgebox.runtime.source_status import SourceStatus
from edgebox.scheduling.supervised import ExecutorState
from edgebox.web.camera_state import known_cameras
from edgebox.web.crop_metrics import CropNumbers, crop_families
from edgebox.web.energy_metrics import energy_family
from edgebox.web.event_metrics import event_families
from edgebox.web.process_metrics import process_families, task_count
from edgebox.web.refusal_metrics import refusal_family
from edgebox.web.routes import Answer, Route
from edgebox.web.source_metrics import source_families
from edgebox.web.tracking_metrics import TrackingNumbers, tracking_families
from edgebox.web.web_context import WebContext

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_CAMERAS_PER_SLICE = 16


@dataclass(frozen=True, slots=True)
class _Durations:
    """A copy of a Histogram."""

    counts: tuple[int, ...]
    sum_ns: int


@dataclass(frozen=True, slots=True)
class _CameraNumbers:
    """A copy of one camera's figures."""

    name: str
    counts: Counts
    latencies: Mapping[str, _Durations]
    connected: bool
    bandwidth_bps: float | None
    rtt_ns: int | None
    advice: Advice | None
    crops: CropNumbers
    tracking: TrackingNumbers


@dataclass(frozen=True, slots=True)
class _ExecutorNumbers:
    """A copy of one executor's figures."""

    name: str
    busy_ns: int
    core_ns: int | None
    """None: it is not on a CPU."""
    batches: Mapping[int, int]
    up: bool
    restarts: int
    losses: Mapping[str, int]
    abandoned: int


@dataclass(frozen=True, slots=True)
class _MemoryNumbers:
    """A copy of the memory figures of one executor with limited memory."""

    executor: str
    limit_bytes: int
    used_bytes: int
    hits: int
    misses: int
    switches: int
    switch_ns: int


@dataclass(frozen=True, slots=True)
class _BoxNumbers:
    """A copy of everything else."""

    name: str
    version: str
    ready: bool
    uptime_s: float
    total: Counts
    refused: Mapping[str, int]
    queue_length: int
    plans: int
    plan_ns: int
    loop_lag_ms: Mapping[str, float]
    energy: Sequence[Energy]
    executors: Sequence[_ExecutorNumbers]
    absent: Sequence[str]
    """Executors that the box started without."""
    destinations: Sequence[Destination]
    sources: Sequence[SourceStatus]
    memories: Sequence[_MemoryNumbers]
    factors: Mapping[tuple[str, str], float]
    """Factors of profiles, by executor and variant."""
    loaded: _Durations
    stale: Mapping[str, int]
    """Reports to the core that came too late to matter, by event."""
    tasks: int


async def _metrics(context: WebContext, request: web.Request) -> web.Response:
    text = await metrics_text(context.box, context.machine)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


async def metrics_text(box: Box, machine: MachineMeasurements) -> bytes:
    """Return the exposition of everything, in Prometheus's text format."""
    cameras = [_camera(box, record) async for record in known_cameras(box, _CAMERAS_PER_SLICE)]
    return await asyncio.to_thread(_written, _box(box, machine), cameras)


def _camera(box: Box, record: CameraRecord) -> _CameraNumbers:
    metrics = box.metrics.of(record.camera.id)
    return _CameraNumbers(
        record.camera.id,
        metrics.counts.copy(),
        {
            part: _Durations(tuple(histogram.counts), histogram.sum_ns)
            for part, histogram in metrics.latencies.items()
        },
        record.connected,
        record.bandwidth_bps(box.driver.clock_ns()) if record.connected else None,
        record.link.rtt_ns if record.connected else None,
        record.advice if record.connected else None,
        CropNumbers.of(record.camera.id, metrics),
        TrackingNumbers.of(box.tracking, record.camera.id),
    )


def _memories(box: Box) -> list[_MemoryNumbers]:
    return [
        _MemoryNumbers(
            executor=executor,
            limit_bytes=memory.limit_bytes,
            used_bytes=memory.used_bytes,
            hits=memory.hits,
            misses=memory.misses,
            switches=memory.switches,
            switch_ns=memory.switch_ns,
        )
        for executor, memory in box.driver.scheduler.memories.items()
    ]


def _box(box: Box, machine: MachineMeasurements) -> _BoxNumbers:
    executors: list[_ExecutorNumbers] = []
    memories: list[_MemoryNumbers] = []
    factors: dict[tuple[str, str], float] = {}
    loaded = _Durations((), 0)
    if box.ready:
        loads = box.driver.loads.took
        loaded = _Durations(tuple(loads.counts), loads.sum_ns)
        memories = _memories(box)
        corrections = box.driver.scheduler.corrections
        factors = {
            (executor, variant): corrections.get(executor, {}).get(variant, 1.0)
            for executor, profiles in box.profiles.items()
            for variant in profiles
        }
        for executor in box.driver.executors:
            meter = box.driver.measurements.meters[executor.id]
            of = box.driver.scheduler.supervised[executor.id]
            executors.append(
                _ExecutorNumbers(
                    executor.id,
                    meter.busy_ns,
                    meter.core_ns if executor.provider == CPU else None,
                    dict(meter.batches),
                    up=of.state is ExecutorState.UP,
                    restarts=of.restarts,
                    losses={cause: of.losses[cause] for cause in LossCause},
                    abandoned=of.threads_abandoned,
                )
            )
    return _BoxNumbers(
        box.name,
        box.version,
        not box.unserved_because(),
        (time.monotonic_ns() - box.started_ns) / 1e9,
        box.metrics.total(),
        dict(box.refusals.counts),
        box.driver.scheduler.queue_length if box.ready else 0,
        box.last_plan.runs,
        box.last_plan.took_ns,
        machine.lag.quantiles_ms() or {},
        machine.energy,
        executors,
        list(box.absent),
        [copy.deepcopy(destination) for destination in box.destinations],
        [copy.deepcopy(status) for status in box.sources.values()],
        memories,
        factors,
        loaded,
        dict(box.driver.scheduler.stale_events) if box.ready else {},
        task_count(),
    )


def _written(box: _BoxNumbers, cameras: Sequence[_CameraNumbers]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Exposition(box, cameras))
    text: bytes = generate_latest(registry)
    return text


class _Exposition(Collector):
    """One moment of the box as metric families."""

    def __init__(self, box: _BoxNumbers, cameras: Sequence[_CameraNumbers]) -> None:
        self._box = box
        self._cameras = cameras

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from _box_families(self._box)
        yield from process_families(self._box.tasks)
        yield from _executor_families(self._box.executors)
        yield from _supervision_families(self._box.executors, self._box.absent)
        yield from event_families(self._box.destinations)
        yield from source_families(self._box.sources)
        yield from _memory_families(self._box)
        yield from _frame_families(self._cameras)
        yield from crop_families([camera.crops for camera in self._cameras])
        yield from _link_families(self._cameras)
        yield from tracking_families(camera.tracking for camera in self._cameras)


def _box_families(box: _BoxNumbers) -> Iterator[Metric]:
    build = GaugeMetricFamily("edgebox_build_info", "Always 1.", labels=["version", "name"])
    build.add_metric([box.version, box.name], 1)
    yield build
    for name, what, value in (
        (
            "ready",
            "Whether frames can be answered: models are warm, an executor is up.",
            float(box.ready),
        ),
        ("uptime_seconds", "Since the process started.", box.uptime_s),
        ("queue_length", "Frames at the box that wait or are being decoded.", box.queue_length),
        ("planner_last_seconds", "Computing time of the last plan.", box.plan_ns / 1e9),
    ):
        yield GaugeMetricFamily(f"edgebox_{name}", what, value=value)
    yield CounterMetricFamily("edgebox_plans", "Plans made.", value=box.plans)
    yield refusal_family(box.refused)
    stale = CounterMetricFamily(
        "edgebox_stale_events",
        "Reports that came too late to matter: of an ended frame, a lost executor, a camera left.",
        labels=["event"],
    )
    for event, count in sorted(box.stale.items()):
        stale.add_metric([event], count)
    yield stale
    lag = GaugeMetricFamily(
        "edgebox_loop_lag_seconds", "How late timers fire, last minute.", labels=["quantile"]
    )
    for name, ms in box.loop_lag_ms.items():
        lag.add_metric([name], ms / 1e3)
    yield lag
    yield energy_family(box.energy)
    frames = CounterMetricFamily(
        "edgebox_box_frames",
        "Results of all cameras' frames, including cameras that left.",
        labels=["outcome", "reason"],
    )
    _add_outcomes(frames, [], box.total)
    yield frames


def _executor_families(executors: Iterable[_ExecutorNumbers]) -> Iterator[Metric]:
    busy = CounterMetricFamily(
        "edgebox_executor_busy_seconds", "Time spent running models.", labels=["executor"]
    )
    cores = CounterMetricFamily(
        "edgebox_executor_core_seconds",
        "CPU threads that batches computed with, over time.",
        labels=["executor"],
    )
    sizes = HistogramMetricFamily("edgebox_batch_size", "Frames per batch.", labels=["executor"])
    for executor in executors:
        busy.add_metric([executor.name], executor.busy_ns / 1e9)
        if executor.core_ns is not None:
            cores.add_metric([executor.name], executor.core_ns / 1e9)
        buckets, so_far = [], 0
        for bound in (1, 2, 4, 8, 16, 32, 64):
            so_far = sum(n for size, n in executor.batches.items() if size <= bound)
            buckets.append((str(float(bound)), so_far))
        buckets.append(("+Inf", sum(executor.batches.values())))
        frames = sum(size * n for size, n in executor.batches.items())
        sizes.add_metric([executor.name], buckets, frames)
    yield busy
    yield cores
    yield sizes


def _supervision_families(
    executors: Iterable[_ExecutorNumbers], absent: Iterable[str]
) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "edgebox_executor_up", "Whether it may be given work.", labels=["executor"]
    )
    restarts = CounterMetricFamily(
        "edgebox_executor_restarts", "Returns after a loss.", labels=["executor"]
    )
    losses = CounterMetricFamily(
        "edgebox_executor_losses",
        "Losses: it hung, kept failing, was gone, or could not be opened again.",
        labels=["executor", "cause"],
    )
    abandoned = GaugeMetricFamily(
        "edgebox_executor_abandoned_threads",
        "Abandoned threads that still hang.",
        labels=["executor"],
    )
    for executor in executors:
        up.add_metric([executor.name], float(executor.up))
        restarts.add_metric([executor.name], executor.restarts)
        abandoned.add_metric([executor.name], executor.abandoned)
        for cause, count in executor.losses.items():
            losses.add_metric([executor.name, cause], count)
    for name in absent:
        up.add_metric([name], 0.0)
    yield from (up, restarts, losses, abandoned)


def _memory_families(box: _BoxNumbers) -> Iterator[Metric]:
    factor = GaugeMetricFamily(
        "edgebox_profile_factor",
        "Recent execution time divided by the profile's, where it has drifted; else 1.",
        labels=["executor", "variant"],
    )
    for labels, value in box.factors.items():
        factor.add_metric(list(labels), value)
    yield factor
    limit, used = (
        GaugeMetricFamily(f"edgebox_model_memory_{name}_bytes", what, labels=["executor"])
        for name, what in (("limit", "Memory limit of models."), ("used", "Memory used by models."))
    )
    accesses = CounterMetricFamily(
        "edgebox_variant_switches",
        "Variants newly named by a plan: in memory (hit) or not (miss).",
        labels=["executor", "result"],
    )
    for memory in box.memories:
        limit.add_metric([memory.executor], memory.limit_bytes)
        used.add_metric([memory.executor], memory.used_bytes)
        accesses.add_metric([memory.executor, "hit"], memory.hits)
        accesses.add_metric([memory.executor, "miss"], memory.misses)
    yield from (limit, used, accesses)
    if box.memories:
        waited = SummaryMetricFamily(
            "edgebox_variant_switch_seconds",
            "Time from a plan that names a variant outside memory until it is loaded.",
            labels=["executor"],
        )
        for memory in box.memories:
            waited.add_metric([memory.executor], memory.switches, memory.switch_ns / 1e9)
        yield waited
        yield HistogramMetricFamily(
            "edgebox_model_load_seconds",
            "Load times, including warm-up.",
            _cumulative(box.loaded.counts),
            box.loaded.sum_ns / 1e9,
        )


def _frame_families(cameras: Sequence[_CameraNumbers]) -> Iterator[Metric]:
    frames = CounterMetricFamily(
        "edgebox_frames",
        "Results of frames: on_time, late, or dropped for a reason.",
        labels=["camera", "outcome", "reason"],
    )
    captured = CounterMetricFamily(
        "edgebox_frames_captured", "Captured by the camera, sent or not.", labels=["camera"]
    )
    pending = GaugeMetricFamily(
        "edgebox_frames_pending", "Captured and not ended yet.", labels=["camera"]
    )
    utility = CounterMetricFamily(
        "edgebox_frames_utility", "Total utility of the answers.", labels=["camera"]
    )
    mismatches = CounterMetricFamily(
        "edgebox_frames_mismatched",
        "Answers from another variant than the one the camera was advised to use.",
        labels=["camera"],
    )
    latency = HistogramMetricFamily(
        "edgebox_frame_latency_seconds",
        "Latencies of answered frames by part; total is counted from the capture.",
        labels=["camera", "part"],
    )
    for camera in cameras:
        _add_outcomes(frames, [camera.name], camera.counts)
        captured.add_metric([camera.name], camera.counts.captured)
        pending.add_metric([camera.name], camera.counts.pending)
        utility.add_metric([camera.name], camera.counts.utility)
        mismatches.add_metric([camera.name], camera.counts.mismatches)
        for part, durations in camera.latencies.items():
            latency.add_metric(
                [camera.name, part], _cumulative(durations.counts), durations.sum_ns / 1e9
            )
    yield from (frames, captured, pending, utility, mismatches, latency)


def _link_families(cameras: Iterable[_CameraNumbers]) -> Iterator[Metric]:
    connected = GaugeMetricFamily(
        "edgebox_camera_connected", "Whether the camera is connected.", labels=["camera"]
    )
    bandwidth = GaugeMetricFamily(
        "edgebox_link_bandwidth_bits_per_second",
        "Estimated bandwidth of its uplink.",
        labels=["camera"],
    )
    rtt = GaugeMetricFamily(
        "edgebox_link_round_trip_seconds", "Least recent round trip.", labels=["camera"]
    )
    width = GaugeMetricFamily(
        "edgebox_advised_width_pixels",
        "Advised width of its pictures.",
        labels=["camera", "variant"],
    )
    rate = GaugeMetricFamily("edgebox_advised_rate_hertz", "Advised frame rate.", labels=["camera"])
    for camera in cameras:
        connected.add_metric([camera.name], float(camera.connected))
        if camera.bandwidth_bps is not None:
            bandwidth.add_metric([camera.name], camera.bandwidth_bps)
        if camera.rtt_ns is not None:
            rtt.add_metric([camera.name], camera.rtt_ns / 1e9)
        if camera.advice is not None:
            width.add_metric([camera.name, camera.advice.variant], camera.advice.width_px)
            rate.add_metric([camera.name], camera.advice.rate_hz)
    yield from (connected, bandwidth, rtt, width, rate)


def _add_outcomes(family: CounterMetricFamily, labels: list[str], counts: Counts) -> None:
    """Add the results of frames, with each reason: a rate would miss the first of a new one."""
    family.add_metric([*labels, "on_time", ""], counts.on_time)
    family.add_metric([*labels, "late", ""], counts.late)
    for reason in DropReason:
        family.add_metric([*labels, "dropped", reason.value], counts.dropped[reason.value])


def _cumulative(counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return Prometheus's buckets: (upper bound in seconds, how many are at most that)."""
    bounds = [str(bound_ns / 1e9) for bound_ns in METRIC_BUCKETS.edges_ns] + ["+Inf"]
    so_far, buckets = 0, []
    for bound, count in zip(bounds, counts, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    return buckets


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        answer=_metrics,
        scope=Scope.METRICS,
        summary="Counts, latencies and links for Prometheus",
        answers=(
            Answer("Prometheus's text format.", {"type": "string"}, content_type="text/plain"),
        ),
    ),
)
