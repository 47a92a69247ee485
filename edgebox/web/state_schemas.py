"""Schemas of the state document. docs/reference/http-api.md specifies its fields."""

from edgebox.scheduling.supervision import ExecutorState
from edgebox.web.cascade_documents import CAMERA_CASCADE
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    Schema,
    array,
    constant,
    described,
    mapping,
    nullable,
    one_of,
    record,
    tuple_of,
)
from edgebox.web.zone_schemas import CAMERA_TRACKING

LEVEL = one_of("info", "warning", "error")
COUNTS = Schema(
    "Counts",
    record(
        captured=COUNT, accepted=COUNT, on_time=COUNT, late=COUNT, pending=COUNT,
        dropped=mapping(COUNT), utility=NUMBER, mismatches=COUNT,
    ),
)  # fmt: skip
GROUP = Schema("Group", record(executors=array(TEXT), variants=array(TEXT), steal_budget_ms=NUMBER))
ADVICE = Schema(
    "Advice",
    record(
        variant=TEXT, width_px=COUNT, height_px=COUNT, rate_hz=NUMBER, quality=COUNT,
        bandwidth_bps=COUNT, reason=TEXT,
    ),
)  # fmt: skip
LATER = array(tuple_of(NUMBER, NUMBER))
_PARTS = Schema(
    "LatencyParts",
    record(network=NUMBER, queue=NUMBER, inference=NUMBER, total=NUMBER, **{"return": NUMBER}),
)
_LINK = Schema(
    "Link",
    record(
        bandwidth_bps=nullable(COUNT),
        throughput_stability=nullable(SHARE),
        rtt_ms=nullable(NUMBER),
        clock_error_ms=nullable(NUMBER),
        history=array(tuple_of(NUMBER, NUMBER)),
    ),
)
CAMERA_STATE = Schema(
    "CameraState",
    record(
        id=TEXT,
        app=TEXT,
        family=TEXT,
        pipeline=nullable(
            record(
                name=TEXT,
                partial=described(COUNT, "Answers without some stage for some object"),
                stages=array(
                    Schema(
                        "CameraStage",
                        record(
                            name=TEXT,
                            family=TEXT,
                            after=array(TEXT),
                            answered=described(COUNT, "Crops; 0 of the first stage"),
                            remembered=described(COUNT, "Objects whose track was known"),
                            dropped=described(mapping(COUNT), "Crops, by reason"),
                        ),
                    )
                ),
            )
        ),
        connected=BOOLEAN,
        first_frame_s=nullable(NUMBER),
        left=nullable(record(at_ms=COUNT, why=TEXT)),
        agent=TEXT,
        address=nullable(TEXT),
        site=nullable(record(name=TEXT, inferred=BOOLEAN)),
        slo_ms=NUMBER,
        later=LATER,
        rate_hz=NUMBER,
        width_px=COUNT,
        height_px=COUNT,
        advice=nullable(ADVICE),
        on_time_share=nullable(SHARE),
        dropped_in_window=mapping(COUNT),
        fps=NUMBER,
        latency_ms=nullable(record(p50=_PARTS, p99=_PARTS)),
        link=_LINK,
        counts=COUNTS,
        cascade=nullable(CAMERA_CASCADE),
        tracking=nullable(CAMERA_TRACKING),
        variant_history=array(tuple_of(NUMBER, COUNT)),
    ),
)
_QUANTILES_MS = record(p50=NUMBER, p99=NUMBER)
_DEVICE = Schema(
    "Device",
    record(
        device=TEXT,
        executors=array(TEXT),
        concurrent_batches=COUNT,
        throughput_gains=array(NUMBER),
        reason=TEXT,
    ),
)
_EXECUTOR = Schema(
    "Executor",
    record(
        id=TEXT,
        provider=TEXT,
        device=TEXT,
        note=TEXT,
        threads=COUNT,
        cores=array(COUNT),
        families=array(TEXT),
        interference=nullable(NUMBER),
        utilisation=NUMBER,
        threads_mean=nullable(NUMBER),
        batch_size_mean=nullable(NUMBER),
        running=nullable(TEXT),
        state=one_of(*ExecutorState),
        restarts=COUNT,
        losses=mapping(COUNT),
        abandoned_threads=COUNT,
        retry_s=nullable(NUMBER),
        last_error=nullable(record(at_ms=COUNT, text=TEXT)),
    ),
)
_APPLICATION = Schema(
    "AppLatency",
    record(
        app=TEXT,
        variant=TEXT,
        executor=TEXT,
        count=COUNT,
        measured_ms=nullable(_QUANTILES_MS),
        profile_ms=_QUANTILES_MS,
        expected_ms=_QUANTILES_MS,
    ),
)
_DESTINATION = Schema(
    "Destination",
    record(
        kind=one_of("mqtt", "webhook"),
        name=TEXT,
        connected=nullable(BOOLEAN),
        queued=COUNT,
        sent=COUNT,
        dropped=mapping(COUNT),
        last_error=nullable(record(at_ms=COUNT, text=TEXT)),
    ),
)
_BATCH_QUANTILES_MS = record(p50=NUMBER, p90=NUMBER, p99=NUMBER)
_BATCH_TIMES = Schema(
    "BatchTimes",
    record(
        executor=TEXT,
        variant=TEXT,
        batch_size=COUNT,
        count=COUNT,
        measured_ms=_BATCH_QUANTILES_MS,
        profile_ms=_BATCH_QUANTILES_MS,
        factor=NUMBER,
    ),
)
_MEMORY = Schema(
    "ModelMemory",
    record(
        executor=TEXT,
        limit_bytes=COUNT,
        used_bytes=COUNT,
        resident=array(record(weights=TEXT, size_bytes=COUNT)),
        loading=nullable(TEXT),
        loads=COUNT,
        hits=COUNT,
        misses=COUNT,
        hit_ratio=nullable(SHARE),
        switch_ms=nullable(NUMBER),
    ),
)
_BOX = Schema(
    "BoxState",
    record(
        name=TEXT,
        version=TEXT,
        ready=BOOLEAN,
        ready_reason=TEXT,
        uptime_s=NUMBER,
        family=TEXT,
        labels=array(TEXT),
        executors=array(_EXECUTOR),
        devices=array(_DEVICE),
        applications=array(_APPLICATION),
        latencies=array(_BATCH_TIMES),
        memory=array(_MEMORY),
        queue_length=COUNT,
        planner=record(
            last_ms=nullable(NUMBER), age_s=nullable(NUMBER), runs=COUNT, groups=array(GROUP)
        ),
        decision_us=nullable(_QUANTILES_MS),
        loop_lag_ms=nullable(record(p50=NUMBER, p99=NUMBER, p999=NUMBER, max=NUMBER)),
        energy=array(record(source=TEXT, total_j=NUMBER, power_w=nullable(NUMBER))),
        window_s=NUMBER,
        counts=COUNTS,
        refused=mapping(COUNT),
        destinations=array(_DESTINATION),
        events=array(record(at_ms=COUNT, level=LEVEL, camera=nullable(TEXT), text=TEXT)),
    ),
)
STATE = Schema(
    "State",
    record(type=constant("state"), now_ms=COUNT, box=_BOX, cameras=array(CAMERA_STATE)),
)
