"""What the mapping solvers find, and how fast: `python -m benchmarks.mapping [--json]`.

Part one: problem P1 on made-up instances like Jellyfish's (section 7.6: rates, SLOs, bandwidths;
the latencies are fitted to what the paper says of its figure 10) and on instances of any kind.
The yardstick is the optimum up to 16 cameras, else the best of all runs, two of 0.7 s among them.

Part two: one accelerator. Today's planner beside the round-robin cycle and beside one variant for
all, on the bundled detector's latencies and on ten times shorter ones. Each plan is then played:
cameras at random phases, earliest deadline first, what is hopeless is dropped.
"""

import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import click

from edgebox.domain.models import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, LinkState
from edgebox.planning.budgets import budget
from edgebox.planning.cycle import shared_in_turn
from edgebox.planning.mapping_annealing import annealed_mapping
from edgebox.planning.mapping_exact import exact_mapping
from edgebox.planning.mapping_fast import fast_mapping
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
    violations,
)
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.planner import plan
from tests.planning.mapping_scene import anything, jellyfish

SIZES = ((1, 8, 10), (2, 12, 10), (2, 16, 10), (4, 16, 10), (4, 24, 20), (4, 32, 40), (16, 160, 50))
"""Workers, cameras and the budget in milliseconds."""
MAKERS: dict[str, Callable[[random.Random, int, int], MappingProblem]] = {
    "like the paper's": jellyfish,
    "any kind": anything,
}
STREET = (  # width, height, mAP@0.5:0.95, ms: the model card's table
    (128, 96, 0.113, 1.3), (192, 128, 0.230, 2.5), (256, 160, 0.310, 3.9), (320, 192, 0.362, 6.0),
    (384, 224, 0.406, 8.2), (448, 256, 0.443, 10.6), (512, 288, 0.456, 13.8),
    (608, 352, 0.473, 19.8),
)  # fmt: skip
SLOW = 2.0
"""P99 of a busy machine's core over the median of the table."""
DEVICES = {
    "street": (1.0, 0.0),
    "street, 10 x faster": (0.1, 0.0),
    "street, batches gain": (1.0, 0.8),
}
"""Factor on the table's times, and the share of a batch of one that does not grow with it."""
CPU = ExecutorId("cpu/0")
BATCHES = 8
Ends = tuple[int, int]
"""Requests that missed, and all."""


def timed(solve: Callable[[], Mapping]) -> tuple[Mapping, float]:
    started_ns = time.perf_counter_ns()
    mapping = solve()
    return mapping, (time.perf_counter_ns() - started_ns) / 1e6


def fast(problem: MappingProblem, budget_ms: float, seed: int = 1) -> Mapping:
    end_ns = time.perf_counter_ns() + budget_ms * 0.95e6
    return fast_mapping(
        problem, random.Random(seed), should_stop=lambda: time.perf_counter_ns() >= end_ns
    )


def compare(kind: str, workers: int, cameras: int, budget_ms: float, count: int) -> dict[str, Any]:
    shares: list[float] = []
    paper_shares: list[float] = []
    times, paper_times, fewer, fewer_than_paper = [], [], 0, 0
    for seed in range(count):
        problem = MAKERS[kind](random.Random(7000 + seed), workers, cameras)
        found, took_ms = timed(lambda p=problem: fast(p, budget_ms))  # type: ignore[misc]
        theirs, theirs_ms = timed(
            lambda p=problem: annealed_mapping(p, random.Random(1), should_stop=lambda: False)  # type: ignore[misc]
        )
        assert not violations(problem, found)
        assert not violations(problem, theirs)
        if cameras <= 16:
            best = exact_mapping(problem)
        else:
            runs = [found, theirs, *(fast(problem, 700, seed) for seed in range(2))]
            best = max(runs, key=lambda m: (m.served, m.objective(problem)))
        times.append(took_ms)
        paper_times.append(theirs_ms)
        fewer += found.served < best.served
        fewer_than_paper += found.served < theirs.served
        for mapping, into in ((found, shares), (theirs, paper_shares)):
            if mapping.served == best.served and best.served:
                into.append(mapping.objective(problem) / best.objective(problem))
    return {
        "kind": kind,
        "workers": workers,
        "cameras": cameras,
        "instances": count,
        "share_of_best": round(statistics.mean(shares), 5),
        "least": round(min(shares), 4),
        "fewer_served": fewer,
        "fewer_than_annealing": fewer_than_paper,
        "ms": round(statistics.median(times), 1),
        "annealing_share": round(statistics.mean(paper_shares), 4) if paper_shares else None,
        "annealing_as_many": len(paper_shares),
        "annealing_ms": round(statistics.median(paper_times), 1),
    }


def box(rng: random.Random, device: str, cameras: int, weak: bool) -> PlanningSnapshot:
    """Return a box with one executor and cameras on links of many kinds."""
    scale, fixed = DEVICES[device]
    variants, profiles = [], {}
    for width, height, accuracy, ms in STREET:
        name = VariantName(f"street-{width}")
        variants.append(Variant(name, FamilyName("street"), width, height, accuracy))
        rows = {
            b: (round((fixed + (1 - fixed) * b) * ms * scale * SLOW * 1e6),) * len(QUANTILES)
            for b in range(1, BATCHES + 1)
        }
        profiles[name] = LatencyProfile(name, CPU, rows)
    seen = []
    for at in range(cameras):
        slo_ms, rate_hz = rng.choice([100, 150, 300]), rng.choice([5.0, 8.0, 10.0, 15.0])
        mbps = rng.uniform(2, 30)
        if weak and at == 0:
            slo_ms, rate_hz, mbps = 60, 10.0, 3.0
        camera = Camera(
            CameraId(f"c{at}"),
            "",
            FamilyName("street"),
            slo_ms * 1_000_000,
            rate_hz,
            1280,
            720,
            0.0,
        )
        seen.append(CameraSnapshot(camera, LinkState(mbps * 1e6, 2_000_000, 0, 0.3), None))
    return PlanningSnapshot(0, tuple(seen), tuple(variants), {CPU: profiles}, {}, 5_000_000)


def as_problem(of: PlanningSnapshot, utilisation: float) -> MappingProblem:
    """Return the same box as a mapping problem; rates are raised to leave room."""
    variants = tuple(
        MappingVariant(
            v.name,
            v.width_px,
            v.accuracy,
            tuple(
                of.profiles[CPU][v.name].quantile_ns(b, 0.99) / 1e6 for b in range(1, BATCHES + 1)
            ),
        )
        for v in of.variants
    )
    cameras = []
    for c in of.cameras:
        left = [budget(c.camera, c.link, v, of.fixed_ns, PlanningParameters()) for v in of.variants]
        carried = (b.compute_ns / 1e6 if b.rate_hz >= c.camera.rate_hz else 0.0 for b in left)
        budgets = tuple(max(0.0, ms) for ms in carried)
        cameras.append(MappingCamera(c.camera.id, c.camera.rate_hz / utilisation, budgets))
    return MappingProblem(1, BATCHES, variants, tuple(cameras))


def played(problem: MappingProblem, variant_of: dict[int, int], rng: random.Random) -> Ends:
    """Play 20 s of a plan: earliest deadline first, in batches, nothing hopeless is run."""
    coming = []
    for camera, variant in variant_of.items():
        period_ms = 1000 / problem.cameras[camera].rate_hz
        at_ms = rng.uniform(0, period_ms)
        while at_ms < 20_000:
            coming.append((at_ms, at_ms + problem.cameras[camera].budget_ms[variant], variant))
            at_ms += period_ms
    coming.sort()
    waiting: list[tuple[float, int]] = []
    now_ms, at, missed = 0.0, 0, 0
    while at < len(coming) or waiting:
        if not waiting:
            now_ms = max(now_ms, coming[at][0])
        while at < len(coming) and coming[at][0] <= now_ms:
            waiting.append(coming[at][1:])
            at += 1
        late = [w for w in waiting if now_ms + problem.variants[w[1]].latency_ms[0] > w[0]]
        missed += len(late)
        waiting = sorted(w for w in waiting if w not in late)
        if not waiting:
            continue
        deadline_ms, variant = waiting[0]
        alike = [w for w in waiting if w[1] == variant]
        times_ms = problem.variants[variant].latency_ms
        size = 1
        while size < min(len(alike), BATCHES) and now_ms + times_ms[size] <= deadline_ms:
            size += 1
        now_ms += times_ms[size - 1]
        for one in alike[:size]:
            waiting.remove(one)
    return missed, len(coming)


def ways(of: PlanningSnapshot) -> dict[str, Callable[[], dict[int, int]]]:
    """Return ways to choose a variant for each camera that is served at its full rate."""
    true, room = as_problem(of, 1.0), as_problem(of, PlanningParameters().utilisation_max)
    number = {v.name: at for at, v in enumerate(of.variants)}

    def today(utilisation: float) -> dict[int, int]:
        parameters = replace(PlanningParameters(), utilisation_max=utilisation)
        answer = plan(of, random.Random(1), 10_000, parameters).assignments
        given = [(at, c.camera, answer[c.camera.id]) for at, c in enumerate(of.cameras)]
        return {
            at: number[got.variant]
            for at, camera, got in given
            if got.served and got.rate_hz == camera.rate_hz
        }

    def single() -> dict[int, int]:
        [worker] = fast_mapping(true, random.Random(1), should_stop=lambda: False).workers
        return dict.fromkeys(worker.cameras, worker.variant)

    return {
        "today, utilisation up to .75": lambda: today(0.75),
        "today, utilisation up to 1": lambda: today(1.0),
        "cycle": lambda: shared_in_turn(true).variant_of,
        "cycle, rates / .75": lambda: shared_in_turn(room).variant_of,
        "one variant for all (P1)": single,
    }


def one_accelerator(device: str, cameras: int, weak: bool, count: int) -> list[dict[str, Any]]:
    rows: dict[str, list[tuple[int, float, Ends, float]]] = {}
    for seed in range(count):
        of = box(random.Random(9000 + seed), device, cameras, weak)
        true = as_problem(of, 1.0)
        rates = sum(c.rate_hz for c in true.cameras)
        for name, way in ways(of).items():
            started_ns = time.perf_counter_ns()
            chosen = way()
            took_ms = (time.perf_counter_ns() - started_ns) / 1e6
            worth = (true.variants[v].accuracy * true.cameras[c].rate_hz for c, v in chosen.items())
            ends = played(true, chosen, random.Random(seed))
            rows.setdefault(name, []).append((len(chosen), sum(worth) / rates, ends, took_ms))
    return [
        {
            "latencies": device,
            "cameras": cameras,
            "one_weak": weak,
            "way": name,
            "served": round(statistics.mean(row[0] for row in of), 2),
            "accuracy": round(statistics.mean(row[1] for row in of), 4),
            "missed_percent": round(
                100 * sum(row[2][0] for row in of) / max(1, sum(row[2][1] for row in of)), 2
            ),
            "ms": round(statistics.median(row[3] for row in of), 1),
        }
        for name, of in rows.items()
    ]


@click.command()
@click.option("--count", default=10, show_default=True, help="Instances of each kind and size.")
@click.option("--json", "as_json", is_flag=True)
def main(count: int, as_json: bool) -> None:
    """Measure both parts."""
    fast(jellyfish(random.Random(0), 4, 16), 20)  # numpy's first use
    solvers = [compare(kind, *size, count) for kind in MAKERS for size in SIZES]
    shared = [
        row
        for device in DEVICES
        for cameras, weak in ((4, False), (6, True), (10, False), (20, False))
        for row in one_accelerator(device, cameras, weak, count)
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    document = {
        "date": date.today().isoformat(),
        "machine": machine,
        "load": round(os.getloadavg()[0], 1),
        "solvers": solvers,
        "one_accelerator": shared,
    }
    if as_json:
        print(json.dumps(document, indent=1))
        return
    for row in (*solvers, *shared):
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
