"""Builds the part of the state document that is about one camera. http-api.md explains it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from edgebox.domain.pipelines import Pipeline
from edgebox.domain.plans import Remedy
from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.deadlines import to_later
from edgebox.link.zone_messages import written_zones
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import HISTORY_S, CameraRecord
from edgebox.runtime.frame_metrics import CameraMetrics, Counts, CropCounts
from edgebox.runtime.grading import Grade, grade
from edgebox.runtime.source_status import check_source
from edgebox.runtime.stage_documents import stages_json
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.web.cascade_documents import cascade_document
from edgebox.web.miss_remedies import miss_remedies
from edgebox.web.state_types import CameraPipeline, CameraSite, CameraState, Departure, Link
from edgebox.web.state_types import Counts as CountsDocument

_QUANTILES = {"p50": 0.5, "p99": 0.99}


async def known_cameras(box: Box, per_slice: int) -> AsyncIterator[CameraRecord]:
    """Yield the cameras of a box, and let the loop do other work before every few of them.

    One that is forgotten meanwhile is left out: nothing else is known of it any more.
    """
    for number, camera in enumerate(list(box.cameras)):
        if number % per_slice == per_slice - 1:
            await asyncio.sleep(0)
        record = box.cameras.get(camera)
        if record is not None:
            yield record


def camera_state(box: Box, record: CameraRecord) -> CameraState:
    """Return the state of one camera."""
    camera, metrics = record.camera, box.metrics.of(record.camera.id)
    now_ns = box.driver.clock_ns()
    advice = record.advice
    window = metrics.window(now_ns)
    share = _rounded(window.on_time_share)
    last_frame_s = _ago_s(record.last_frame_ns, now_ns)
    source = box.sources.get(camera.id)
    trouble = _told_trouble(record) if source is None else source.trouble
    graded = grade(
        connected=record.connected or source is not None,
        lost=bool(trouble),
        last_frame_s=last_frame_s,
        on_time_share=share,
        advice=advice,
        rate_hz=camera.rate_hz,
    )
    return {
        "id": camera.id,
        "app": camera.app,
        "family": camera.family,
        "pipeline": None if camera.pipeline is None else _pipeline(camera.pipeline, metrics),
        "connected": record.connected,
        "left": None if record.left_ns is None else _left(record, record.left_ns, now_ns),
        "first_frame_s": _first_frame_s(record),
        "last_frame_s": last_frame_s,
        "agent": record.agent,
        "address": record.session.address if record.session else None,
        "site": None if camera.site is None else _site(record, camera.site),
        "slo_ms": round(camera.slo_ns / 1e6, 1),
        "later": to_later(camera.steps),
        "rate_hz": camera.rate_hz,
        "width_px": camera.width_px,
        "height_px": camera.height_px,
        "advice": advice,
        "remedies": _remedies(box, record, trouble, graded, window),
        "grade": graded,
        "trouble": trouble or None,
        "on_time_share": share,
        "late_in_window": window.late,
        "dropped_in_window": dict(window.dropped),
        "fps": round(metrics.frames_per_s(now_ns), 1),
        "latency_ms": metrics.latency_ms(now_ns, _QUANTILES),
        "link": _link(record, now_ns),
        "counts": counts_document(metrics.counts),
        "cascade": cascade_document(box, camera, metrics),
        "tracking": tracking_document(box, camera.id),
        "variant_history": [
            (round((at_ns - now_ns) / 1e9, 1), width) for at_ns, width in record.width_history
        ],
    }


def counts_document(counts: Counts) -> CountsDocument:
    """Return counts of frames."""
    return {
        "captured": counts.captured,
        "accepted": counts.accepted,
        "on_time": counts.on_time,
        "late": counts.late,
        "pending": counts.pending,
        "dropped": dict(counts.dropped),
        "utility": round(counts.utility, 3),
        "mismatches": counts.mismatches,
    }


def _pipeline(pipeline: Pipeline, metrics: CameraMetrics) -> CameraPipeline:
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


def _site(record: CameraRecord, site: SiteId) -> CameraSite:
    return {"name": site, "inferred": site == record.inferred}


def _told_trouble(record: CameraRecord) -> str:
    """Return why its source gives no pictures, as its camera says; empty: it does, or is gone."""
    told = record.source_trouble if record.connected else None
    return "" if told is None else told.text


def _remedies(
    box: Box, record: CameraRecord, trouble: str, graded: Grade, window: Counts
) -> tuple[Remedy, ...]:
    """Return those of its source, if that is lost, of its misses, or of the plan in force."""
    if trouble:
        source, told = box.sources.get(record.camera.id), record.source_trouble
        if source is not None:
            return source.remedies
        return () if told is None else (check_source(told.remedy),)
    plan = box.last_plan.plan
    planned = None if plan is None else plan.assignments.get(record.camera.id)
    found = planned.remedies if planned is not None and record.connected else ()
    if graded in ("strained", "failing"):
        return miss_remedies(window.dropped, window.late, found, pulled=record.pulled)
    return found


def _left(record: CameraRecord, left_ns: int, now_ns: int) -> Departure:
    ago_ms = (now_ns - left_ns) // 1_000_000
    return {"at_ms": wall_clock_ms() - ago_ms, "why": record.left_because}


def _ago_s(at_ns: int | None, now_ns: int) -> float | None:
    return None if at_ns is None else round(max(0, now_ns - at_ns) / 1e9, 1)


def _first_frame_s(record: CameraRecord) -> float | None:
    if record.first_frame_ns is None:
        return None
    return round((record.first_frame_ns - record.opened_ns) / 1e9, 3)


def _link(record: CameraRecord, now_ns: int) -> Link:
    rtt_ns, error_ns = record.link.rtt_ns, record.link.clock.error_ns(now_ns)
    bandwidth_bps = record.bandwidth_bps(now_ns)
    stability = None if record.pulled else record.link.bandwidth.throughput_stability()
    return {
        "bandwidth_bps": None if bandwidth_bps is None else round(bandwidth_bps),
        "throughput_stability": None if stability is None else round(stability, 3),
        "rtt_ms": None if rtt_ns is None else round(rtt_ns / 1e6, 2),
        "clock_error_ms": None if error_ns is None else round(error_ns / 1e6, 2),
        "history": _history(record, now_ns),
    }


def _history(record: CameraRecord, now_ns: int) -> list[tuple[float, float]]:
    now_s = now_ns / 1e9
    return [
        (round(second - now_s, 1), round(bps))
        for second, bps in record.link_history
        if second > now_s - HISTORY_S
    ]


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
