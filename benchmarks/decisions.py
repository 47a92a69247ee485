"""Counts the CPU time of the core's decisions for many cameras: `python -m benchmarks.decisions`.

The pure core runs under virtual time with 1,000 cameras of 10 frames/s that obey their advice, on
accelerators that have time for all of them. Frames are decoded, batches take what the profile says,
links are measured, plans are computed. Counted is the CPU time of `Scheduler.handle`, and of
`next_wakeup_ns`, which the driver calls after each; a plan is computed in a thread of its own on a
box, so it is counted apart. The machine's other programs change CPU time little.

--crowd N    instead: N cameras connect within a second to a box that has four
"""

import heapq
import itertools
import json
import platform
import random
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import click

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.requests import Camera, CameraId, LinkState, Request, RequestId
from edgebox.planning.planner import plan
from edgebox.runtime.garbage import collect_on_request_only
from edgebox.runtime.planning_thread import PLANNER_ITERATIONS_MAX
from edgebox.scheduling.actions import Advise, ComputePlan, Drop, Finish, Infer, Prepare
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    Event,
    ExecutorStarted,
    LinkMeasured,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
    VariantsAvailable,
)
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters

MS = 1_000_000
FAMILY = FamilyName("street")
SIZES_PX = (256, 416, 608)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
SPREAD = tuple(0.9 + 0.2 * q for q in QUANTILES)
LOAD = 0.6
"""Of the executors' time that all frames of the smallest size take in full batches."""
DECODING_NS = 2 * MS
LINK_EVERY_NS = 250 * MS
"""How often a link's state reaches the core."""
PLANNING_NS = 50 * MS
"""How long a plan takes in virtual time."""
SLOS_MS = (200, 300)


@dataclass(slots=True)
class Costs:
    """CPU times in nanoseconds, by kind of event."""

    core: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    plans: list[int] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)
    """Of the calls that started a batch."""

    def clear(self) -> None:
        """Forget what was counted."""
        self.core.clear()
        self.plans.clear()
        self.decisions.clear()


class Box:
    """One Scheduler under virtual time."""

    def __init__(self, policy: str, *, variants: int, executors: int, frames_hz: float) -> None:
        self.scheduler = Scheduler(SchedulerParameters(box_pending_max=10**6), make_policy(policy))
        self.costs = Costs()
        self.ended = {"on_time": 0, "late": 0, "dropped": 0}
        self.now_ns = 0
        self.cameras: dict[CameraId, Camera] = {}
        self._rng = random.Random(1)
        self._agenda: list[tuple[int, int, Event | CameraId | None]] = []
        self._order, self._ids = itertools.count(), itertools.count(1)
        self._wakeup_ns: int | None = None
        self._send: dict[CameraId, tuple[float, int, int, VariantName]] = {}
        """The rate, the size and the variant that each camera is advised."""
        self._start(variants, executors, frames_hz)

    def connect(self, number: int, app: str, rate_hz: float, at_ns: int) -> None:
        """Have a camera connect and send frames from then on."""
        name = CameraId(f"camera-{number}")
        slo_ns = SLOS_MS[number % 2] * MS
        camera = self.cameras[name] = Camera(name, app, FAMILY, slo_ns, rate_hz, 1280, 720)
        self._at(at_ns, CameraConnected(camera))
        link = LinkState(self._rng.uniform(2e7, 4e7), MS, 0, 0.2)
        self._at(at_ns + LINK_EVERY_NS // 2, LinkMeasured(name, link))
        self._at(at_ns + self._rng.randrange(int(1e9 / rate_hz)), name)

    def run(self, until_ns: int) -> None:
        """Let this much virtual time pass."""
        while self._agenda and self._agenda[0][0] <= until_ns:
            self.now_ns, order, what = heapq.heappop(self._agenda)
            if what is None and order != self._wakeup_order:
                continue  # it was set to another instant
            if isinstance(what, str):
                self._arrive(CameraId(what))
                continue
            if isinstance(what, LinkMeasured):
                link = LinkState(self._rng.uniform(2e7, 4e7), MS, 0, 0.2)
                self._at(self.now_ns + LINK_EVERY_NS, LinkMeasured(what.camera, link))
            self._tell(what)
        self.now_ns = until_ns

    def _tell(self, event: Event | None) -> None:
        started_ns = time.thread_time_ns()
        actions = self.scheduler.handle(event, self.now_ns)
        due_ns = self.scheduler.next_wakeup_ns()
        took_ns = time.thread_time_ns() - started_ns
        kind = "wake-up" if event is None else type(event).__name__
        if any(isinstance(action, ComputePlan) for action in actions):
            kind += " + snapshot"
        self.costs.core[kind].append(took_ns)
        if any(isinstance(action, Infer) for action in actions):
            self.costs.decisions.append(took_ns)
        for action in actions:
            self._carry_out(action)
        if due_ns is not None and due_ns != self._wakeup_ns:
            self._wakeup_order = self._at(max(due_ns, self.now_ns), None)
        elif due_ns is None:
            self._wakeup_order = -1
        self._wakeup_ns = due_ns

    _wakeup_order = -1

    def _carry_out(self, action: object) -> None:
        match action:
            case Prepare(request, _):
                self._at(self.now_ns + DECODING_NS, RequestPrepared(request, DECODING_NS))
            case Infer():
                rows = self._profiles[action.variant].quantiles_ns[action.batch_size]
                took_ns = self._rng.choice(rows)
                done = BatchCompleted(action.executor, action.batch, took_ns)
                self._at(self.now_ns + took_ns, done)
            case ComputePlan(snapshot):
                started_ns = time.thread_time_ns()
                answer = plan(snapshot, PLANNER_ITERATIONS_MAX)
                self.costs.plans.append(time.thread_time_ns() - started_ns)
                self._at(self.now_ns + PLANNING_NS, PlanComputed(answer))
            case Advise(camera, advice):
                size = advice.width_px, advice.height_px
                self._send[camera] = (advice.rate_hz, *size, advice.variant)
            case Finish():
                self.ended[str(action.outcome)] += 1
            case Drop():
                self.ended["dropped"] += 1

    def _arrive(self, name: CameraId) -> None:
        camera = self.cameras[name]
        rate_hz, width_px, height_px, variant = self._send[name]
        self._at(self.now_ns + int(1e9 / rate_hz), name)
        request = Request(
            id=RequestId(next(self._ids)),
            camera=name,
            app=camera.app,
            captured_ns=self.now_ns - 10 * MS,
            arrival_ns=self.now_ns,
            deadline_ns=self.now_ns + camera.slo_ns - 10 * MS,
            width_px=width_px,
            height_px=height_px,
            size_bytes=20_000,
            advised=variant,
        )
        self._tell(RequestArrived(request))

    def _at(self, at_ns: int, what: Event | CameraId | None) -> int:
        order = next(self._order)
        heapq.heappush(self._agenda, (at_ns, order, what))
        return order

    def _start(self, variants: int, executors: int, frames_hz: float) -> None:
        sizes_px = SIZES_PX[:variants]
        names = {px: VariantName(f"street-{px}") for px in sizes_px}
        # The largest batch of the smallest size takes what gives the load.
        full_ns = LOAD * executors * BATCHES[-1] / frames_hz * 1e9
        known = [Variant(names[px], FAMILY, px, px, 0.3 + px / 2000) for px in sizes_px]
        self._tell(VariantsAvailable(tuple(known)))
        for at in range(executors):
            executor = ExecutorId(f"cuda:{at}/0")
            self._profiles = {
                names[px]: LatencyProfile(
                    names[px],
                    executor,
                    {
                        size: tuple(
                            round(k * full_ns * (0.2 + 0.8 * size / BATCHES[-1]) * (px / 256) ** 2)
                            for k in SPREAD
                        )
                        for size in BATCHES
                    },
                )
                for px in sizes_px
            }
            self._tell(ExecutorStarted(executor, tuple(self._profiles.values())))


def _figures(took: list[int], seconds: float) -> dict[str, Any]:
    ordered = sorted(took)
    return {
        "calls": len(took),
        "p50_us": round(statistics.median(took) / 1e3, 1),
        "p99_us": round(ordered[int(0.99 * (len(took) - 1))] / 1e3, 1),
        "share": round(sum(took) / seconds / 1e9, 4),
    }


def measure(
    policy: str, *, cameras: int, rate_hz: float, apps: int, variants: int, executors: int,
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Return the costs of a steady state, as shares of one core."""
    box = Box(policy, variants=variants, executors=executors, frames_hz=cameras * rate_hz)
    for number in range(cameras):
        box.connect(number, f"app-{number % apps}", rate_hz, 10 * MS)
    box.run(2_000 * MS)
    box.costs.clear()
    box.ended = dict.fromkeys(box.ended, 0)
    box.run(2_000 * MS + round(seconds * 1e9))
    return _document(box, seconds)


def crowd(policy: str, *, cameras: int, rate_hz: float) -> dict[str, Any]:
    """Return what it costs that cameras connect at once to a box that has no time for them."""
    box = Box(policy, variants=1, executors=1, frames_hz=cameras * rate_hz / 5)
    for number in range(4):
        box.connect(number, "default", rate_hz, 0)
    box.run(1_000 * MS)
    box.costs.clear()
    for number in range(4, 4 + cameras):
        at_ns = 1_000 * MS + round((number - 4) / cameras * 1e9)
        box.connect(number, "default", rate_hz, at_ns)
    box.run(3_000 * MS)
    return _document(box, 2.0)


def _document(box: Box, seconds: float) -> dict[str, Any]:
    costs = box.costs
    whole_ns = sum(map(sum, costs.core.values()))
    return {
        "core_share": round(whole_ns / seconds / 1e9, 4),
        "us_per_frame": round(whole_ns / 1e3 / max(1, sum(box.ended.values())), 1),
        "decision": _figures(costs.decisions, seconds),
        "plan": _figures(costs.plans, seconds),
        "ended": box.ended,
        "kinds": {kind: _figures(took, seconds) for kind, took in sorted(costs.core.items())},
    }


@click.command()
@click.option("--cameras", default=1_000, show_default=True)
@click.option("--rate-hz", default=10.0, show_default=True, help="Of each camera.")
@click.option("--policy", "policies", type=click.Choice(list(POLICIES)), multiple=True)
@click.option("--apps", default=1, show_default=True, help="Applications.")
@click.option("--variants", default=1, show_default=True, help="Up to three.")
@click.option("--executors", default=1, show_default=True)
@click.option("--seconds", default=4.0, show_default=True, help="Of virtual time.")
@click.option("--crowd", "newcomers", type=int, help="So many cameras connect at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    *, cameras: int, rate_hz: float, policies: tuple[str, ...], apps: int, variants: int,
    executors: int, seconds: float, newcomers: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Print what the core's decisions cost."""
    collect_on_request_only()
    found = {}
    for policy in policies or ("adaptive", "edf"):
        if newcomers:
            found[policy] = crowd(policy, cameras=newcomers, rate_hz=rate_hz)
        else:
            found[policy] = measure(
                policy, cameras=cameras, rate_hz=rate_hz, apps=apps, variants=variants,
                executors=executors, seconds=seconds,
            )  # fmt: skip
        if not as_json:
            _print(policy, found[policy])
    if as_json:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        json.dump({**machine, "policies": found}, sys.stdout, indent=1)
        click.echo()


def _print(policy: str, of: dict[str, Any]) -> None:
    click.echo(
        f"{policy}: the core takes {of['core_share']:.0%} of a core, {of['us_per_frame']} us a "
        f"frame; frames {of['ended']}"
    )
    rows = {"(calls that start a batch)": of["decision"], "(plans, apart)": of["plan"]}
    for kind, each in {**of["kinds"], **rows}.items():
        click.echo(
            f"  {kind:32} P50 {each['p50_us']:9.1f} us  P99 {each['p99_us']:9.1f} us  "
            f"{each['share']:6.1%}  ({each['calls']} calls)"
        )


if __name__ == "__main__":
    main()
