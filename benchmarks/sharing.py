"""Models that share an accelerator: `python -m benchmarks.sharing [--json]`.

Two tables. The first has one model with up to four batches at once, by interference k, deadline and
load: what number at once is best, and which one the box chooses (`scheduling.concurrency`). The
second has three models, as of cameras that detect vehicles and look at each one twice, under
`coral`, `edf` and `adaptive`. The simulated executors slow each other while they run
(`simulation.shared_device`). Execution times are exact. Limits: no links, no decoding, no joins of
frames; crops come 40 ms after their frame, whenever that was answered.
"""

import json
import random
import statistics
from collections import Counter
from dataclasses import asdict, dataclass, replace

import click

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.requests import CameraId, Outcome, Request, RequestId
from edgebox.scheduling.actions import Finish, Infer
from edgebox.scheduling.concurrency import concurrent_batches
from edgebox.scheduling.events import (
    BatchCompleted,
    Event,
    ExecutorStarted,
    RequestArrived,
    RequestPrepared,
    VariantsAvailable,
)
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.simulation.batching_simulator import MS, PARAMETERS, BatchingSimulation
from edgebox.simulation.generation import make_workload
from edgebox.simulation.shared_device import SharedDevice

STREAMS = 4
POLICIES = ("edf", "adaptive", "coral")
SEEDS = (11, 12)
"""The rule was chosen on seeds 1 and 2; these are others."""


@dataclass(frozen=True)
class Model:
    """One model of the second table."""

    name: str
    fixed_ms: float
    each_ms: float
    """A batch of n takes fixed + n * each."""
    slo_ms: float
    per_frame: float
    """Mean number of requests for each frame; 1: exactly one."""

    def batch_ms(self, size: int) -> float:
        """Return what a batch takes on an idle device."""
        return self.fixed_ms + size * self.each_ms


MODELS = (
    Model("detector", 6, 5, 120, 1),
    Model("type", 2, 0.8, 80, 4),
    Model("plate", 3, 1.2, 80, 2),
)
SIZES = (1, 2, 4, 8, 16, 32)
RATE_HZ = 15.0


def best_number(k: float, slo_multiple: float, load: float) -> list[float]:
    """Return the share on time with 1 to 4 batches at once, under `edf`."""
    shares = []
    for number in range(1, STREAMS + 1):
        found = []
        for seed in SEEDS:
            best = STREAMS / (1 + k * (STREAMS - 1))
            work = make_workload(
                "static", load=load * best / STREAMS, slo_multiple=slo_multiple, requests=800,
                rng=random.Random(seed), workers=STREAMS,
            )  # fmt: skip
            work = replace(work, model=replace(work.model, interference=k))
            parameters = replace(PARAMETERS, concurrent_batches=number)
            run = BatchingSimulation(
                work, make_policy("edf"), rng=random.Random(seed), parameters=parameters
            )
            found.append(run.run().finish_rate)
        shares.append(statistics.fmean(found))
    return shares


def requests_of(cameras: int, seconds: float, rng: random.Random) -> list[Request]:
    """Return the requests of some cameras, by arrival: frames, and crops in bursts."""
    drawn: list[tuple[int, Model, int]] = []
    for camera in range(cameras):
        at_s = rng.random() / RATE_HZ
        density = rng.uniform(0.3, 1.7)
        while at_s < seconds:
            for model in MODELS:
                mean = model.per_frame * density
                count = 1 if model.per_frame == 1 else _poisson(mean, rng)
                delay_s = 0 if model.per_frame == 1 else 0.04
                drawn += [(round((at_s + delay_s) * 1e9), model, camera)] * count
            at_s += max(0.0, rng.gauss(1.0, 0.1)) / RATE_HZ
    drawn.sort(key=lambda each: each[0])
    return [
        Request(
            id=RequestId(number),
            camera=CameraId(f"camera-{camera}"),
            app="default",
            captured_ns=at_ns,
            arrival_ns=at_ns,
            deadline_ns=at_ns + round(model.slo_ms * MS),
            width_px=1,
            height_px=1,
            size_bytes=0,
            variant=VariantName(model.name),
        )
        for number, (at_ns, model, camera) in enumerate(drawn)
    ]


def _poisson(mean: float, rng: random.Random) -> int:
    count, left = 0, rng.expovariate(1.0)
    while left < mean:
        count, left = count + 1, left + rng.expovariate(1.0)
    return count


def run(policy: str, k: float, requests: list[Request], at_once: int = 0) -> dict[str, float]:
    """Return the on-time share, and the P99 of the time to an answer in ms."""
    scheduler = Scheduler(replace(PARAMETERS, concurrent_batches=at_once), make_policy(policy))
    by_name = {model.name: model for model in MODELS}
    variants = tuple(
        Variant(VariantName(model.name), FamilyName(model.name), 1, 1, 1.0) for model in MODELS
    )
    started = [
        ExecutorStarted(
            executor,
            tuple(
                LatencyProfile(
                    VariantName(model.name), executor,
                    {n: (round(model.batch_ms(n) * MS),) * len(QUANTILES) for n in SIZES}, k,
                )
                for model in MODELS
            ),
        )
        for executor in (ExecutorId(f"cuda:0/{at}") for at in range(STREAMS))
    ]  # fmt: skip
    device = SharedDevice[Infer](k)
    outcomes: Counter[Outcome] = Counter()
    took_ms: list[float] = []
    facts: list[Event] = [VariantsAvailable(variants), *started]
    coming, now_ns = 0, 0
    while True:
        for action in scheduler.handle_together(facts, now_ns):
            if isinstance(action, Infer):
                alone_ms = by_name[action.variant].batch_ms(action.batch_size)
                device.start(action, round(alone_ms * MS), now_ns)
            elif isinstance(action, Finish):
                outcomes[action.outcome] += 1
                took_ms.append((now_ns - requests[action.request].arrival_ns) / MS)
        due = [scheduler.next_wakeup_ns(), device.next_end_ns()]
        due.append(requests[coming].arrival_ns if coming < len(requests) else None)
        if all(at is None for at in due):
            break
        now_ns = max(now_ns, min(at for at in due if at is not None))
        facts = [
            BatchCompleted(infer.executor, infer.batch, max(1, ns))
            for infer, ns in device.ended(now_ns)
        ]
        while coming < len(requests) and requests[coming].arrival_ns <= now_ns:
            facts += [RequestArrived(requests[coming]), RequestPrepared(RequestId(coming), 0)]
            coming += 1
    return {
        "on_time": outcomes[Outcome.ON_TIME] / max(1, len(requests)),
        "p99_ms": statistics.quantiles(took_ms, n=100)[98] if len(took_ms) > 1 else 0.0,
    }


@click.command()
@click.option("--seconds", default=15.0, show_default=True, help="Simulated time of each run.")
@click.option("--json", "as_json", is_flag=True)
def main(seconds: float, as_json: bool) -> None:
    """Print both tables."""
    numbers = [
        Number(k, slo, load, best_number(k, slo, load))
        for k in (0.15, 0.3, 0.45, 0.6, 0.8, 1.0)
        for slo in (3, 6, 12)
        for load in (0.5, 0.9)
    ]
    shared = [
        _shared(k, cameras, policy, at_once, seconds)
        for k in (0.0, 0.6, 1.0)
        for cameras in (4, 6, 8, 12)
        for policy in POLICIES
        for at_once in (0, STREAMS)
    ]
    if as_json:
        rows = {"numbers": map(asdict, numbers), "models": map(asdict, shared)}
        click.echo(json.dumps({key: list(of) for key, of in rows.items()}, indent=1))
        return
    for number in numbers:
        gains = [n / (1 + number.k * (n - 1)) for n in range(1, STREAMS + 1)]
        shares = " ".join(f"{share:.3f}" for share in number.on_time)
        click.echo(
            f"k {number.k} SLO x{number.slo_multiple} load {number.load}: {shares}; "
            f"chosen {concurrent_batches(gains)}"
        )
    for row in shared:
        click.echo(
            f"k {row.k} cameras {row.cameras} {row.policy:8} at once {row.at_once or 'auto'}: "
            f"{row.on_time:.3f} on time, P99 {row.p99_ms:.0f} ms"
        )


@dataclass(frozen=True)
class Number:
    """A row of the first table."""

    k: float
    slo_multiple: float
    load: float
    on_time: list[float]


@dataclass(frozen=True)
class Shared:
    """A row of the second table."""

    k: float
    cameras: int
    policy: str
    at_once: int
    on_time: float
    p99_ms: float


def _shared(k: float, cameras: int, policy: str, at_once: int, seconds: float) -> Shared:
    runs = [
        run(policy, k, requests_of(cameras, seconds, random.Random(seed)), at_once)
        for seed in SEEDS
    ]
    on_time, p99_ms = (statistics.fmean(of[key] for of in runs) for key in ("on_time", "p99_ms"))
    return Shared(k, cameras, policy, at_once, on_time, p99_ms)


if __name__ == "__main__":
    main()
