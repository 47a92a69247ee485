"""Measures what one decision of the core costs: `python -m benchmarks.scheduler [--json]`.

A box with eight cameras, one executor and as many waiting requests as asked for, in a steady
state: a frame arrives, is prepared, a batch completes, the next starts. Times are of
`Scheduler.handle` alone, plus `next_wakeup_ns`, which the driver calls after each.
"""

import json
import platform
import random
import statistics
import sys
import time
from collections import defaultdict

import click

from edgebox.domain.models import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.domain.requests import Camera, CameraId, LinkState, Request, RequestId
from edgebox.planning.planner import plan
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraOpened,
    ComputePlan,
    Event,
    ExecutorStarted,
    Infer,
    LinkMeasured,
    PlanComputed,
    Prepare,
    RequestArrived,
    RequestPrepared,
    VariantsOffered,
)
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters

MS = 1_000_000
EXECUTOR = ExecutorId("cuda:0/0")
SIZES_PX = (128, 192, 256, 320, 416, 512, 608, 704)
CAMERAS = 8
SPREAD = (0.9, 0.92, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)


class Bench:
    """One Scheduler kept at a constant number of waiting requests."""

    def __init__(self, pending: int) -> None:
        parameters = SchedulerParameters(camera_pending_max=10**6, box_pending_max=10**6)
        self.scheduler = Scheduler(parameters, EarliestDeadlineFirst())
        self.took_ns: dict[str, list[int]] = defaultdict(list)
        self._pending = pending
        self._rng = random.Random(1)
        self._now_ns = 0
        self._next_id = 1
        self._running: Infer | None = None
        self._preparing: list[RequestId] = []
        self._set_up()

    def rounds(self, count: int) -> None:
        """Let frames come and batches go."""
        for _ in range(count):
            self._now_ns += MS
            while self.scheduler.queue_length < self._pending:
                self._arrive()
            infer = self._running
            if infer is not None:
                took_ns = MS
                self.tell(BatchCompleted(EXECUTOR, infer.batch, took_ns))
            self.tell(None)
            of = CameraId(f"gate-{self._rng.randrange(CAMERAS)}")
            bandwidth_bps = self._rng.uniform(2e7, 4e7)
            self.tell(LinkMeasured(of, LinkState(bandwidth_bps, MS, 0, 0.2)))

    def tell(self, event: Event | None) -> None:
        """Time one call and carry out what matters of its orders."""
        kind = "wake-up" if event is None else type(event).__name__
        if isinstance(event, BatchCompleted):
            self._running = None
        start_ns = time.perf_counter_ns()
        actions = self.scheduler.handle(event, self._now_ns)
        self.scheduler.next_wakeup_ns()
        spent_ns = time.perf_counter_ns() - start_ns
        if any(isinstance(action, ComputePlan) for action in actions):
            kind += " + snapshot"
        self.took_ns[kind].append(spent_ns)
        for action in actions:
            if isinstance(action, Prepare):
                self._preparing.append(action.request)
            elif isinstance(action, Infer):
                self._running = action
            elif isinstance(action, ComputePlan):
                self._plan(action)

    def _plan(self, order: ComputePlan) -> None:
        start_ns = time.perf_counter_ns()
        answer = plan(order.snapshot, self._rng, 1000)
        self.took_ns["(the planner itself)"].append(time.perf_counter_ns() - start_ns)
        self.tell(PlanComputed(answer))

    def _set_up(self) -> None:
        variants, profiles = [], []
        for at, px in enumerate(SIZES_PX):
            name = VariantName(f"street-{px}")
            variants.append(Variant(name, FamilyName("street"), px, px, 0.3 + 0.05 * at))
            median_ns = 1.5 * MS + px * px * 8
            rows = {
                size: tuple(round(median_ns * (0.6 + 0.4 * size) * k) for k in SPREAD)
                for size in (1, 2, 4, 8, 16)
            }
            profiles.append(LatencyProfile(name, EXECUTOR, rows))
        self.tell(VariantsOffered(tuple(variants)))
        self.tell(ExecutorStarted(EXECUTOR, tuple(profiles)))
        for at in range(CAMERAS):
            of = CameraId(f"gate-{at}")
            slo_ns = 10_000 * MS + at * MS
            camera = Camera(of, "default", FamilyName("street"), slo_ns, 30, 1280, 720)
            self.tell(CameraOpened(camera))

    def _arrive(self) -> None:
        request = Request(
            id=RequestId(self._next_id),
            camera=CameraId(f"gate-{self._next_id % CAMERAS}"),
            app="default",
            captured_ns=self._now_ns,
            arrival_ns=self._now_ns,
            deadline_ns=self._now_ns + self._rng.randint(5_000 * MS, 10_000 * MS),
            width_px=self._rng.choice(SIZES_PX),
            height_px=128,
            size_bytes=20_000,
        )
        self._next_id += 1
        self.tell(RequestArrived(request))
        while self._preparing:
            self.tell(RequestPrepared(self._preparing.pop(), 2 * MS))


def measure(pending: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return median and P99 in microseconds by kind of event."""
    bench = Bench(pending)
    bench.rounds(rounds // 10)
    bench.took_ns.clear()
    bench.rounds(rounds)
    return {
        kind: {
            "calls": len(took),
            "p50_us": round(statistics.median(took) / 1e3, 1),
            "p99_us": round(sorted(took)[int(0.99 * (len(took) - 1))] / 1e3, 1),
        }
        for kind, took in sorted(bench.took_ns.items())
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--rounds", default=3000, show_default=True, help="Batches per setting.")
def main(as_json: bool, rounds: int) -> None:
    """Print what a decision costs, by kind of event and number of waiting requests."""
    found = {pending: measure(pending, rounds) for pending in (10, 100, 1000)}
    if as_json:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        json.dump({**machine, "pending": found}, sys.stdout, indent=1)
        click.echo()
        return
    for pending, kinds in found.items():
        click.echo(f"{pending} waiting requests, {CAMERAS} cameras")
        for kind, of in kinds.items():
            figures = f"P50 {of['p50_us']:8.1f} us   P99 {of['p99_us']:8.1f} us"
            click.echo(f"  {kind:28} {figures}   ({of['calls']:.0f} calls)")


if __name__ == "__main__":
    main()
