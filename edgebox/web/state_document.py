"""Builds the state document: what the page shows, as JSON. http-api.md explains it."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from statistics import median

import orjson

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.inference.sessions import CPU
from edgebox.runtime.availability import AbsentExecutor
from edgebox.runtime.box import Box
from edgebox.runtime.destinations import Destination
from edgebox.runtime.frame_metrics import WINDOW_S
from edgebox.runtime.machine_measurements import Energy, MachineMeasurements
from edgebox.runtime.planning_thread import OVERDUE_NS
from edgebox.runtime.supervisor import LastError
from edgebox.scheduling.residency import Memory
from edgebox.scheduling.supervised import ExecutorState
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.web.camera_state import camera_state, counts_document, known_cameras
from edgebox.web.source_documents import source_document
from edgebox.web.state_types import (
    AppLatency,
    BatchPercentiles,
    BatchTimes,
    BoxState,
    Device,
    EnergySource,
    Executor,
    LoopLagPercentiles,
    ModelMemory,
    Percentiles,
    PlannerState,
    State,
    Supervision,
)
from edgebox.web.state_types import Destination as DestinationDocument
from edgebox.web.state_types import Group as GroupDocument
from edgebox.web.state_types import LastError as LastErrorDocument

STATE_PERIOD_S = 0.5
"""Period at which viewers receive it."""
_EVENTS_SHOWN = 30
_CAMERAS_PER_SLICE = 4


class StateCache:
    """A cached state document for all viewers."""

    def __init__(self, box: Box, machine: MachineMeasurements) -> None:
        """Build documents of `box`."""
        self.in_fleet = False
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
                    await state_document(self._box, self._machine, in_fleet=self.in_fleet),
                    option=orjson.OPT_SERIALIZE_NUMPY,
                )
                self._built_s = now_s
        return self._document


async def state_document(
    box: Box, machine: MachineMeasurements, *, in_fleet: bool = False
) -> State:
    """Build the document, yielding to the loop after every few cameras."""
    cameras = [camera_state(box, record) async for record in known_cameras(box, _CAMERAS_PER_SLICE)]
    return {
        "type": "state",
        "now_ms": wall_clock_ms(),
        "box": _box(box, machine, in_fleet),
        "cameras": cameras,
        "sources": [source_document(status) for status in box.sources.values()],
    }


def _box(box: Box, machine: MachineMeasurements, in_fleet: bool) -> BoxState:
    family = box.families.get(box.models.default_family)
    document: BoxState = {
        "name": box.name,
        "version": box.version,
        "ready": box.ready,
        "ready_reason": box.not_ready_because,
        "uptime_s": round((time.monotonic_ns() - box.started_ns) / 1e9, 1),
        "family": box.models.default_family,
        "labels": [] if family is None else family.labels,
        "only_synthetic": box.models.only_synthetic,
        "in_fleet": in_fleet,
        "executors": [],
        "devices": [],
        "applications": [],
        "latencies": [],
        "memory": [],
        "queue_length": 0,
        "planner": _planner(box),
        "decision_us": None,
        "loop_lag_ms": _loop_lag(machine.lag.quantiles_ms()),
        "energy": [_energy(each) for each in machine.energy],
        "window_s": WINDOW_S,
        "counts": counts_document(box.metrics.total()),
        "refused": dict(box.refusals.counts),
        "destinations": [_destination(each) for each in box.destinations],
        "events": list(box.notices.recent)[-_EVENTS_SHOWN:],
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
        if (taken := driver.decisions.quantiles_us()) is not None:
            document["decision_us"] = {"p50": taken["p50"], "p99": taken["p99"]}
    return document


def _loop_lag(quantiles_ms: Mapping[str, float] | None) -> LoopLagPercentiles | None:
    if quantiles_ms is None:
        return None
    ms = {name: round(value, 2) for name, value in quantiles_ms.items()}
    return {"p50": ms["p50"], "p99": ms["p99"], "p999": ms["p999"], "max": ms["max"]}


def _planner(box: Box) -> PlannerState:
    last = box.last_plan
    age_ns = last.age_ns(box.driver.clock_ns()) if box.ready else None
    if age_ns is None:
        return {
            "last_ms": None, "age_s": None, "overdue": False, "runs": last.runs, "groups": [],
        }  # fmt: skip
    parameters = box.driver.scheduler.parameters
    apart_ns = max(parameters.planning_interval_ns, last.took_ns / parameters.replan_share)
    return {
        "last_ms": round(last.took_ns / 1e6, 2),
        "age_s": round(age_ns / 1e9, 2),
        "overdue": bool(box.connected) and age_ns >= apart_ns + OVERDUE_NS,
        "runs": last.runs,
        "groups": group_documents(box.driver.scheduler.groups),
    }


def group_documents(groups: Iterable[Group]) -> list[GroupDocument]:
    """Return the partition of executors; empty: all executors serve all cameras."""
    return [
        {
            "executors": group.executors,
            "variants": group.variants,
            "steal_budget_ms": round(group.steal_budget_ns / 1e6, 2),
        }
        for group in groups
    ]


def _executors(box: Box, now_ns: int) -> list[Executor]:
    driver = box.driver
    running = {of: each for of, each in driver.scheduler.running.items() if each.requests}
    documents: list[Executor] = []
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
                "core_seconds": round(meter.core_ns / 1e9, 1) if executor.provider == CPU else None,
                "batch_size_mean": None if batch_size_mean is None else round(batch_size_mean, 2),
                "running": running[executor.id].variant if executor.id in running else None,
                **_supervised(box, executor.id, now_ns),
            }
        )
    return documents + [_absent(*each, now_ns) for each in box.absent.items()]


def _absent(executor: ExecutorId, absent: AbsentExecutor, now_ns: int) -> Executor:
    """Return an executor that the box started without, as if it were lost."""
    retry_ns = absent.retry_ns
    return {
        "id": executor,
        "provider": "",
        "device": "",
        "note": "",
        "threads": 0,
        "cores": (),
        "families": (),
        "interference": None,
        "utilisation": 0.0,
        "threads_mean": None,
        "core_seconds": None,
        "batch_size_mean": None,
        "running": None,
        "state": ExecutorState.OPENING if retry_ns is None else ExecutorState.WAITING,
        "restarts": 0,
        "losses": {},
        "abandoned_threads": 0,
        "retry_s": _left_s(retry_ns, now_ns),
        "last_error": _error(LastError(absent.since_ns, absent.because), now_ns),
    }


def _supervised(box: Box, executor: ExecutorId, now_ns: int) -> Supervision:
    """Return an executor's state and its last error."""
    of = box.driver.scheduler.supervised[executor]
    last = box.driver.supervisor.last_errors.get(executor)
    return {
        "state": of.state,
        "restarts": of.restarts,
        "losses": {cause.value: count for cause, count in of.losses.items()},
        "abandoned_threads": of.threads_abandoned,
        "retry_s": _left_s(of.retry_ns, now_ns),
        "last_error": None if last is None else _error(last, now_ns),
    }


def _left_s(retry_ns: int | None, now_ns: int) -> float | None:
    return None if retry_ns is None else round(max(0, retry_ns - now_ns) / 1e9, 1)


def _error(last: LastError, now_ns: int) -> LastErrorDocument:
    at_ms = wall_clock_ms() - (now_ns - last.at_ns) // 1_000_000
    return {"at_ms": at_ms, "text": last.text}


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
    profiles = box.profiles[executor].values()
    known = [profile.interference for profile in profiles if profile.has_interference]
    return round(median(known), 3) if known and len(box.profiles) > 1 else None


def _devices(box: Box) -> list[Device]:
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


def _applications(box: Box) -> list[AppLatency]:
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
) -> AppLatency:
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
    expectations = box.driver.scheduler.times.expectations
    return expectations.single_request_percentiles(executor, variant, app) or profile_ns


def _latencies(box: Box) -> list[BatchTimes]:
    """Return batches' times next to their profile, and the profile's factor."""
    factors = box.driver.scheduler.corrections
    return [
        {
            "executor": times.executor,
            "variant": times.variant,
            "batch_size": times.batch_size,
            "count": times.count,
            "measured_ms": _quantiles_ms(times.quantiles_ns),
            "profile_ms": _quantiles_ms(times.profile_ns),
            "factor": round(factors.get(times.executor, {}).get(times.variant, 1.0), 2),
        }
        for times in box.driver.measurements.batches.times(box.profiles)
    ]


def _quantiles_ms(times_ns: Iterable[int]) -> BatchPercentiles:
    """Return the quantiles that are shown of batches."""
    p50, p90, p99 = (round(ns / 1e6, 2) for ns in times_ns)
    return {"p50": p50, "p90": p90, "p99": p99}


def _memory(executor: ExecutorId, memory: Memory) -> ModelMemory:
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


def _p50_p99_ms(times_ns: tuple[int, int]) -> Percentiles:
    return {"p50": round(times_ns[0] / 1e6, 2), "p99": round(times_ns[1] / 1e6, 2)}


def _destination(of: Destination) -> DestinationDocument:
    return {
        "kind": of.kind,
        "name": of.name,
        "connected": of.connected,
        "queued": of.queued,
        "sent": of.sent,
        "dropped": dict(of.dropped),
        "last_error": {"at_ms": of.error_at_ms, "text": of.error} if of.error else None,
    }


def _energy(of: Energy) -> EnergySource:
    power_w = None if of.power_w is None else round(of.power_w, 2)
    return {"source": of.source, "total_j": round(of.total_j, 1), "power_w": power_w}
