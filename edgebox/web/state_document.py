"""Builds the state document: what the page shows, as JSON. http-api.md specifies it."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median
from typing import Any

import orjson

from edgebox.domain.cascades import cascade_json
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.plans import Group
from edgebox.domain.requests import CameraId, SiteId
from edgebox.inference.sessions import CPU
from edgebox.link.deadlines import to_later
from edgebox.link.placement_offer import placement_json
from edgebox.link.zone_messages import written_zones
from edgebox.runtime.batch_latency import SHOWN
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import HISTORY_S, CameraRecord
from edgebox.runtime.frame_metrics import WINDOW_S, CameraMetrics, Counts, CropCounts
from edgebox.runtime.machine_measurements import Energy, MachineMeasurements
from edgebox.runtime.stage_documents import (
    best_rows,
    missing_json,
    staged_objects,
    stages_json,
)
from edgebox.scheduling.residency import Memory
from edgebox.web.cascade_documents import cascade_document
from edgebox.web.detection_documents import SCORE_MIN, answer_detections
from edgebox.web.stage_formats import add_stages

STATE_PERIOD_S = 0.5
"""Period at which viewers receive it."""
_EVENTS_SHOWN = 30
_CAMERAS_PER_SLICE = 4
_QUANTILES = {"p50": 0.5, "p99": 0.99}


class StateCache:
    """A cached state document for all viewers."""

    def __init__(self, box: Box, machine: MachineMeasurements) -> None:
        """Build documents of `box`."""
        self._box = box
        self._machine = machine
        self._built_s = 0.0
        self._document = b""
        self._building = asyncio.Lock()

    async def document(self) -> bytes:
        """Return a document at most a quarter of a second old."""
        now_s = asyncio.get_running_loop().time()
        async with self._building:
            if not self._document or now_s - self._built_s > STATE_PERIOD_S / 2:
                self._document = orjson.dumps(
                    await state_document(self._box, self._machine),
                    option=orjson.OPT_SERIALIZE_NUMPY,
                )
                self._built_s = now_s
        return self._document


async def state_document(box: Box, machine: MachineMeasurements) -> dict[str, Any]:
    """Build the document, yielding to the loop after every few cameras."""
    cameras = []
    for number, record in enumerate(list(box.cameras.values())):
        if number % _CAMERAS_PER_SLICE == _CAMERAS_PER_SLICE - 1:
            await asyncio.sleep(0)
        cameras.append(camera_state(box, record))
    return {
        "type": "state",
        "now_ms": round(time.time() * 1e3),
        "box": _box(box, machine),
        "cameras": cameras,
    }


def _box(box: Box, machine: MachineMeasurements) -> dict[str, Any]:
    family = box.families.get(box.models.default_family)
    document: dict[str, Any] = {
        "name": box.name,
        "version": box.version,
        "ready": box.ready,
        "ready_reason": box.not_ready_because,
        "uptime_s": round((time.monotonic_ns() - box.started_ns) / 1e9, 1),
        "family": box.models.default_family,
        "labels": [] if family is None else family.labels,
        "executors": [],
        "devices": [],
        "applications": [],
        "latencies": [],
        "memory": [],
        "queue_length": 0,
        "planner": {"last_ms": None, "age_s": None, "runs": box.plans, "groups": []},
        "decision_us": None,
        "loop_lag_ms": _rounded(machine.lag.quantiles_ms()),
        "energy": [_energy(each) for each in machine.energy],
        "window_s": WINDOW_S,
        "counts": box.metrics.total().to_json(),
        "refused": dict(box.refusals.counts),
        "destinations": [destination.to_json() for destination in box.destinations],
        "events": [
            {"at_ms": e.at_ms, "level": e.level, "camera": e.camera, "text": e.text}
            for e in list(box.notices.recent)[-_EVENTS_SHOWN:]
        ],
    }
    if box.ready:
        driver = box.driver
        now_ns = driver.clock_ns()
        document["executors"] = _executors(box, now_ns)
        document["devices"] = _devices(box)
        document["applications"] = _applications(box)
        document["latencies"] = _latencies(box)
        document["memory"] = [_memory(*each) for each in driver.scheduler.memories.items()]
        document["queue_length"] = driver.scheduler.queue_length
        document["decision_us"] = box.driver.decisions.quantiles_us()
        if box.plan_at_ns is not None:
            document["planner"].update(
                last_ms=round(box.plan_ns / 1e6, 2),
                age_s=round((now_ns - box.plan_at_ns) / 1e9, 2),
                groups=group_documents(driver.scheduler.groups),
            )
    return document


def group_documents(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """Return the partition of executors; empty: all executors serve all cameras."""
    return [
        {
            "executors": group.executors,
            "variants": group.variants,
            "steal_budget_ms": round(group.steal_budget_ns / 1e6, 2),
        }
        for group in groups
    ]


def _executors(box: Box, now_ns: int) -> list[dict[str, Any]]:
    driver = box.driver
    running = driver.scheduler.running
    documents = []
    for executor in driver.executors:
        meter = driver.measurements.meters[executor.id]
        batch_size_mean = meter.batch_size_mean(now_ns)
        documents.append(
            {
                "id": executor.id,
                "provider": executor.provider,
                "device": executor.device,
                "note": executor.note,
                "threads": executor.cpu_threads,
                "cores": executor.cores,
                "families": _families_on(box, executor.id),
                "interference": _interference(box, executor.id),
                "utilisation": round(meter.utilisation(now_ns), 3),
                "threads_mean": round(meter.threads_mean(now_ns), 3)
                if executor.provider == CPU
                else None,
                "batch_size_mean": None if batch_size_mean is None else round(batch_size_mean, 2),
                "running": running[executor.id].variant if executor.id in running else None,
                **_supervised(box, executor.id, now_ns),
            }
        )
    return documents


def _supervised(box: Box, executor: ExecutorId, now_ns: int) -> dict[str, Any]:
    """Return an executor's state and its last error."""
    of = box.driver.scheduler.supervised[executor]
    last = box.driver.supervisor.last_errors.get(executor)
    return {
        "state": of.state,
        "restarts": of.restarts,
        "losses": {cause.value: count for cause, count in of.losses.items()},
        "abandoned_threads": of.threads_abandoned,
        "retry_s": None if of.retry_ns is None else round(max(0, of.retry_ns - now_ns) / 1e9, 1),
        "last_error": None
        if last is None
        else {"at_ms": round(time.time() * 1e3 - (now_ns - last.at_ns) / 1e6), "text": last.text},
    }


def _families_on(box: Box, executor: ExecutorId) -> list[str]:
    """Return the families that run on an executor."""
    profiles = box.profiles[executor]
    return [
        name
        for name, family in box.families.items()
        if any(variant.name in profiles for variant in family.variants)
    ]


def _interference(box: Box, executor: ExecutorId) -> float | None:
    """Return how much another executor slows a batch (median variant); None: it is the only one."""
    known = [profile.interference for profile in box.profiles[executor].values()]
    return round(median(known), 3) if known and len(box.profiles) > 1 else None


def _devices(box: Box) -> list[dict[str, Any]]:
    """Return how many batches run at once on each device, and why."""
    return [
        {
            "device": device.device,
            "executors": device.executors,
            "concurrent_batches": device.limit,
            "throughput_gains": [round(gain, 3) for gain in device.gains],
            "reason": device.reason,
        }
        for device in box.driver.scheduler.times.latencies.concurrency.values()
    ]


def _applications(box: Box) -> list[dict[str, Any]]:
    """Return applications' times measured since the start, then those known from before only."""
    measured = box.driver.measurements.applications.times(box.profiles)
    rows = [
        _application(box, (t.app, t.variant, t.executor), t.count, t.measured_ns, t.profile_ns)
        for t in measured
    ]
    measured_keys = {(times.app, times.variant) for times in measured}
    for key in sorted(key for key in _remembered(box) if key[:2] not in measured_keys):
        _, variant, executor = key
        profile = box.profiles[executor][variant]
        alone_ns = (profile.quantile_ns(1, 0.5), profile.quantile_ns(1, 0.99))
        rows.append(_application(box, key, 0, None, alone_ns))
    return rows


_Key = tuple[str, VariantName, ExecutorId]
"""Key of an application's times."""


def _remembered(box: Box) -> Iterator[_Key]:
    """Yield the applications with known times on an executor, also from before the start."""
    learning = box.driver.scheduler.times.learning
    for variant, app, _ in learning.known_distributions():
        if learning.is_known(variant, app):
            for executor, profiles in box.profiles.items():
                if variant in profiles:
                    yield app, variant, executor


def _application(
    box: Box,
    key: _Key,
    count: int,
    measured_ns: tuple[int, int] | None,
    profile_ns: tuple[int, int],
) -> dict[str, Any]:
    app, variant, executor = key
    return {
        "app": app,
        "variant": variant,
        "executor": executor,
        "count": count,
        "measured_ms": None if measured_ns is None else _p50_p99_ms(measured_ns),
        "profile_ms": _p50_p99_ms(profile_ns),
        "expected_ms": _p50_p99_ms(_expected_ns(box, key, profile_ns)),
    }


def _expected_ns(box: Box, key: _Key, profile_ns: tuple[int, int]) -> tuple[int, int]:
    """Return the times that admission and planning use; without the variant, the profile's."""
    app, variant, executor = key
    try:
        return box.driver.scheduler.times.expectations.single_request_percentiles(
            executor, variant, app
        )
    except KeyError:  # the executor has stopped, or has not loaded it
        return profile_ns


def _latencies(box: Box) -> list[dict[str, Any]]:
    """Return batches' times next to their profile, and the profile's factor."""
    factors = box.driver.scheduler.corrections
    rows = []
    for times in box.driver.measurements.batches.times():
        profile = box.profiles[times.executor][times.variant]
        rows.append(
            {
                "executor": times.executor,
                "variant": times.variant,
                "batch_size": times.batch_size,
                "count": times.count,
                "measured_ms": _quantiles_ms(times.quantiles_ns),
                "profile_ms": _quantiles_ms(
                    profile.quantile_ns(times.batch_size, q) for q in SHOWN
                ),
                "factor": round(factors.get(times.executor, {}).get(times.variant, 1.0), 2),
            }
        )
    return rows


def _quantiles_ms(times_ns: Iterable[int]) -> dict[str, float]:
    pairs = zip(SHOWN, times_ns, strict=True)
    return {f"p{round(100 * q)}": round(ns / 1e6, 2) for q, ns in pairs}


def _memory(executor: ExecutorId, memory: Memory) -> dict[str, Any]:
    accesses = memory.hits + memory.misses
    return {
        "executor": executor,
        "limit_bytes": memory.limit_bytes,
        "used_bytes": memory.used_bytes,
        "resident": [
            {"weights": each, "size_bytes": memory.weights[each].size_bytes}
            for each in memory.resident
        ],
        "loading": memory.loading,
        "loads": memory.loads,
        "hits": memory.hits,
        "misses": memory.misses,
        "hit_ratio": round(memory.hits / accesses, 4) if accesses else None,
        "switch_ms": (
            round(memory.switch_ns / memory.switches / 1e6, 1) if memory.switches else None
        ),
    }


def _p50_p99_ms(times_ns: tuple[int, int]) -> dict[str, float]:
    return {"p50": round(times_ns[0] / 1e6, 2), "p99": round(times_ns[1] / 1e6, 2)}


def camera_state(box: Box, record: CameraRecord) -> dict[str, Any]:
    """Return the state of one camera."""
    camera, metrics = record.camera, box.metrics.of(record.camera.id)
    now_ns = box.driver.clock_ns()
    rtt_ns, error_ns = record.link.rtt_ns, record.link.clock.error_ns(now_ns)
    uplink = record.link.bandwidth
    bandwidth_bps, throughput_stability = uplink.bps(now_ns), uplink.throughput_stability()
    advice = record.advice
    window = metrics.window(now_ns)
    return {
        "id": camera.id,
        "app": camera.app,
        "family": camera.family,
        "pipeline": None if camera.pipeline is None else _pipeline(camera.pipeline, metrics),
        "connected": record.connected,
        "left": None if record.left_ns is None else _left(record, record.left_ns, now_ns),
        "first_frame_s": _first_frame_s(record),
        "agent": record.agent,
        "address": record.session.address if record.session else None,
        "site": None if camera.site is None else _site(record, camera.site),
        "slo_ms": round(camera.slo_ns / 1e6, 1),
        "later": to_later(camera.steps),
        "rate_hz": camera.rate_hz,
        "width_px": camera.width_px,
        "height_px": camera.height_px,
        "advice": advice,
        "on_time_share": _on_time_share(window),
        "dropped_in_window": dict(window.dropped),
        "fps": round(metrics.frames_per_s(now_ns), 1),
        "latency_ms": metrics.latency_ms(now_ns, _QUANTILES),
        "link": {
            "bandwidth_bps": None if bandwidth_bps is None else round(bandwidth_bps),
            "throughput_stability": None
            if throughput_stability is None
            else round(throughput_stability, 3),
            "rtt_ms": None if rtt_ns is None else round(rtt_ns / 1e6, 2),
            "clock_error_ms": None if error_ns is None else round(error_ns / 1e6, 2),
            "history": _history(record, now_ns),
        },
        "counts": metrics.counts.to_json(),
        "cascade": cascade_document(box, camera, metrics),
        "tracking": tracking_document(box, camera.id),
        "variant_history": [
            [round((at_ns - now_ns) / 1e9, 1), width] for at_ns, width in record.width_history
        ],
    }


def _pipeline(pipeline: Pipeline, metrics: CameraMetrics) -> dict[str, Any]:
    """Return a pipeline and what came of the crops for its later stages."""
    nothing = CropCounts()
    counts = [metrics.crops.get(stage.name, nothing) for stage in pipeline.stages]
    return {
        "name": pipeline.name,
        "partial": metrics.partial,
        "stages": [
            {
                **stage,
                "answered": of.answered,
                "remembered": of.remembered,
                "dropped": dict(of.dropped),
            }
            for stage, of in zip(stages_json(pipeline), counts, strict=True)
        ],
    }


def tracking_document(box: Box, camera: CameraId) -> dict[str, Any] | None:
    """Return the zones and lines of a camera with their counts; None: it is not tracked."""
    settings = box.tracking.settings(camera)
    if settings is None:
        return None
    counts, crossings = box.tracking.zone_counts(camera), box.tracking.crossings(camera)
    zones, lines = written_zones(settings.zones), written_zones(settings.lines)
    return {
        "tracks": box.tracking.tracks(camera) if box.cameras[camera].connected else 0,
        "zones": [
            {**written, "counts": counts.get(zone.name, {})}
            for zone, written in zip(settings.zones, zones, strict=True)
        ],
        "lines": [
            {**written, **crossings.get(line.name, {"in": {}, "out": {}})}
            for line, written in zip(settings.lines, lines, strict=True)
        ],
    }


def _site(record: CameraRecord, site: SiteId) -> dict[str, Any]:
    return {"name": site, "inferred": site == record.inferred}


def _left(record: CameraRecord, left_ns: int, now_ns: int) -> dict[str, Any]:
    ago_ms = (now_ns - left_ns) / 1e6
    return {"at_ms": round(time.time() * 1e3 - ago_ms), "why": record.left_because}


def _first_frame_s(record: CameraRecord) -> float | None:
    if record.first_frame_ns is None:
        return None
    return round((record.first_frame_ns - record.opened_ns) / 1e9, 3)


def _history(record: CameraRecord, now_ns: int) -> list[list[float]]:
    now_s = now_ns / 1e9
    return [
        [round(second - now_s, 1), round(bps)]
        for second, bps in record.link_history
        if second > now_s - HISTORY_S
    ]


def _on_time_share(window: Counts) -> float | None:
    ended = window.on_time + window.late + sum(window.dropped.values())
    return round(window.on_time / ended, 4) if ended else None


def _energy(of: Energy) -> dict[str, Any]:
    power_w = None if of.power_w is None else round(of.power_w, 2)
    return {"source": of.source, "total_j": round(of.total_j, 1), "power_w": power_w}


def _rounded(values: dict[str, float] | None) -> dict[str, float] | None:
    return None if values is None else {name: round(ms, 2) for name, ms in values.items()}


def shown_header(box: Box, camera: CameraId, labels: tuple[str, ...]) -> dict[str, Any]:
    """Return the header that goes before a live frame on the page's socket."""
    shown = box.shown[camera]
    answer, pipeline, timing = shown.answer, shown.frame.pipeline, shown.answer.timing
    staged = staged_objects(answer, pipeline, box.families, SCORE_MIN, embeddings=False)
    found = replace(answer.detections, embeddings=None)  # the page shows boxes
    detections = answer_detections(found, labels, "xyxy", SCORE_MIN)
    add_stages({"detections": detections}, "native", best_rows(found, SCORE_MIN).tolist(), staged)
    return {
        "camera": camera,
        "frame": shown.frame.number,
        "width_px": shown.frame.source_width_px,
        "height_px": shown.frame.source_height_px,
        "variant": shown.answer.variant,
        "outcome": shown.answer.outcome.value,
        "total_ms": round(timing.total_ns / 1e6, 1),
        "detections": detections,
        **missing_json(answer.missing),
        **placement_json(answer.placement),
        **cascade_json(answer.cascade),
    }
