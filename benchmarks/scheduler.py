"""Measures what one decision of the core costs: `python -m benchmarks.scheduler [--json]`.

A box with eight cameras of two applications, one executor and as many waiting requests as asked
for (fewer where a policy refuses more), in a steady state: a frame arrives, is prepared, a batch
completes, the next starts. Times
are of `Scheduler.handle` alone, plus `next_wakeup_ns`, which the driver calls after each. By
default every policy is measured with one variant; `--policy NAME` shows one of them with a family
of eight, by kind of event. With `--later 1` every request has one more deadline.
"""

import json
import platform
import random
import statistics
import sys
import time
from collections import defaultdict

import click

from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.domain.requests import Camera, CameraId, LinkState, Request, RequestId, UtilityStep
from edgebox.planning.planner import plan
from edgebox.scheduling.actions import ComputePlan, Infer, Prepare
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
EXECUTOR = ExecutorId("cuda:0/0")
SIZES_PX = (128, 192, 256, 320, 416, 512, 608, 704)
CAMERAS = 8
APPS = ("gate", "street")
ONE_PX = (416,)
SPREAD = (0.9, 0.92, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)


class Bench:
    """One Scheduler kept at a constant number of waiting requests."""

    def __init__(
        self, pending: int, policy: str, sizes_px: tuple[int, ...] = SIZES_PX, later: int = 0
    ) -> None:
        parameters = SchedulerParameters(camera_pending_max=10**6, box_pending_max=10**6)
        self.scheduler = Scheduler(parameters, make_policy(policy))
        self.took_ns: dict[str, list[int]] = defaultdict(list)
        self._pending = pending
        self._sizes_px = sizes_px
        self._later = later
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
            wakeup_ns = self.scheduler.next_wakeup_ns()
            if self._running is None and wakeup_ns is not None:
                # A policy that waits for a fuller batch decides next when it asked to be woken.
                self._now_ns = max(self._now_ns, wakeup_ns)
            self._fill()
            infer = self._running
            if infer is not None:
                took_ns = MS
                self.tell(BatchCompleted(EXECUTOR, infer.batch, took_ns))
            self.tell(None)
            of = CameraId(f"gate-{self._rng.randrange(CAMERAS)}")
            bandwidth_bps = self._rng.uniform(2e7, 4e7)
            self.tell(LinkMeasured(of, LinkState(bandwidth_bps, MS, 0, 0.2)))

    def _fill(self) -> None:
        """Let frames come until as many wait as asked for, or the policy takes no more."""
        waiting = -1
        while waiting < self.scheduler.queue_length < self._pending:
            waiting = self.scheduler.queue_length
            self._arrive()

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
        answer = plan(order.snapshot, 1000)
        self.took_ns["(the planner itself)"].append(time.perf_counter_ns() - start_ns)
        self.tell(PlanComputed(answer))

    def _set_up(self) -> None:
        variants, profiles = [], []
        for at, px in enumerate(self._sizes_px):
            name = VariantName(f"street-{px}")
            variants.append(Variant(name, FamilyName("street"), px, px, 0.3 + 0.05 * at))
            median_ns = 1.5 * MS + px * px * 8
            rows = {
                size: tuple(round(median_ns * (0.6 + 0.4 * size) * k) for k in SPREAD)
                for size in (1, 2, 4, 8, 16)
            }
            profiles.append(LatencyProfile(name, EXECUTOR, rows))
        self.tell(VariantsAvailable(tuple(variants)))
        self.tell(ExecutorStarted(EXECUTOR, tuple(profiles)))
        for at in range(CAMERAS):
            of = CameraId(f"gate-{at}")
            slo_ns = 10_000 * MS + at * MS
            camera = Camera(of, APPS[at % len(APPS)], FamilyName("street"), slo_ns, 30, 1280, 720)
            self.tell(CameraConnected(camera))

    def _arrive(self) -> None:
        deadline_ns = self._now_ns + self._rng.randint(5_000 * MS, 10_000 * MS)
        later = range(1, self._later + 1)
        request = Request(
            id=RequestId(self._next_id),
            camera=CameraId(f"gate-{self._next_id % CAMERAS}"),
            app=APPS[self._next_id % len(APPS)],
            captured_ns=self._now_ns,
            arrival_ns=self._now_ns,
            deadline_ns=deadline_ns,
            width_px=self._rng.choice(SIZES_PX),
            height_px=128,
            size_bytes=20_000,
            steps=tuple(UtilityStep(deadline_ns + 3_000 * MS * at, 1 / (1 + at)) for at in later),
        )
        self._next_id += 1
        self.tell(RequestArrived(request))
        while self._preparing:
            self.tell(RequestPrepared(self._preparing.pop(), 2 * MS))


def measure(
    pending: int, rounds: int, policy: str, sizes_px: tuple[int, ...] = SIZES_PX, later: int = 0
) -> dict[str, dict[str, float]]:
    """Return median and P99 in microseconds by kind of event."""
    bench = Bench(pending, policy, sizes_px, later)
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


def compare(rounds: int, later: int) -> dict[str, dict[int, dict[str, float]]]:
    """Return what a decision and an insert cost, by policy and number of waiting requests."""
    compared: dict[str, dict[int, dict[str, float]]] = {}
    for policy in POLICIES:
        compared[policy] = {}
        for pending in (10, 100, 1000, 10_000):
            # Long queues are slow to fill and their figures steady.
            count = max(100, rounds * 10 // pending)
            found = measure(pending, count, policy, ONE_PX, later)
            decision, insert = found["BatchCompleted"], found["RequestPrepared"]
            compared[policy][pending] = {
                "decision_p50_us": decision["p50_us"],
                "decision_p99_us": decision["p99_us"],
                "insert_p50_us": insert["p50_us"],
            }
    return compared


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--rounds", default=3000, show_default=True, help="Batches per setting.")
@click.option("--policy", type=click.Choice(list(POLICIES)), help="Show this one in detail.")
@click.option("--later", default=0, help="Deadlines after the first, of every request.")
def main(as_json: bool, rounds: int, policy: str | None, later: int) -> None:
    """Print what a decision costs, by kind of event and number of waiting requests."""
    if policy is None:
        _print_compared(compare(rounds, later), as_json)
        return
    found = {pending: measure(pending, rounds, policy, later=later) for pending in (10, 100, 1000)}
    if as_json:
        _print_json({"policy": policy, "pending": found})
        return
    for pending, kinds in found.items():
        click.echo(f"{policy}: {pending} waiting requests, {CAMERAS} cameras")
        for kind, of in kinds.items():
            figures = f"P50 {of['p50_us']:8.1f} us   P99 {of['p99_us']:8.1f} us"
            click.echo(f"  {kind:28} {figures}   ({of['calls']:.0f} calls)")


def _print_compared(compared: dict[str, dict[int, dict[str, float]]], as_json: bool) -> None:
    if as_json:
        _print_json({"policies": compared})
        return
    click.echo("a batch completes and the next is formed, us (and a request joins the queue, us)")
    for policy, by_pending in compared.items():
        cells = [
            f"{pending:6}: {of['decision_p50_us']:8.1f} ({of['insert_p50_us']:6.1f})"
            for pending, of in by_pending.items()
        ]
        click.echo(f"  {policy:10} {'  '.join(cells)}")


def _print_json(document: dict[str, object]) -> None:
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    json.dump({**machine, **document}, sys.stdout, indent=1)
    click.echo()


if __name__ == "__main__":
    main()
