"""edgebox beside other servers: python -m benchmarks.peers [--peer NAME]... [--json]

One picture after another, as raw pixels of the model's size, to the bundled detector on one thread;
each server has one core to itself, the load generator the others. A "peer" is bare ONNX Runtime in
a loop, the least that serves it over HTTP, edgebox by each of its three doors, or another server as
it is shipped, in an environment that this command makes. What cannot be installed is left out with
a message.

overhead    latency with one request in flight beyond that of bare ONNX Runtime: median, P99
throughput  answers per second with eight requests in flight, of those of bare ONNX Runtime
goodput     answers within the deadline per second, of what bare ONNX Runtime does, at so many times
            its rate; Poisson arrivals, which do not wait for answers
recovery    after three times the rate, until 95 % of the arrivals of a tenth of a second at half
            the rate are answered in time
refusals    how late they come: median

Machines differ and others use them: compare the rows of one run. Bare ONNX Runtime is measured
again before each peer, and each peer compared with the mean of the two beside it.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from benchmarks.ingest import machine, quantiles_ms
from benchmarks.peers.known import (
    DEADLINE_MS,
    PEERS,
    Bare,
    Peer,
    Target,
    UnavailableError,
    bare,
    serving,
)

CLIENT = Path(__file__).with_name("client.py")
FACTORS = (0.9, 1.5, 3.0, 10.0)
IN_FLIGHT = 8
CALM = 0.5
"""Of the rate of bare ONNX Runtime: the load after the overload."""
WINDOW_S = 0.1
RECOVERED = 0.95
OK, UNAVAILABLE, TOO_MANY = 200, 503, 429
Ended = list[tuple[float, int, int]]


class Generator:
    """The load generator's process."""

    def __init__(self, process: asyncio.subprocess.Process, target: Target) -> None:
        """Use `generator`."""
        self._process = process
        self._target = target

    async def order(self, **what: Any) -> Ended:
        """Send requests; return what became of each."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**self._target.order(), **what}).encode() + b"\n")
        line = await self._process.stdout.readline()
        return [tuple(each) for each in json.loads(line)]


def answered(ended: Ended, deadline_ns: int) -> int:
    """Return how many were answered in time."""
    return sum(status == OK and took <= deadline_ns for _, took, status in ended)


def recovery_s(ended: Ended, calm_s: float, deadline_ns: int) -> float | None:
    """Return how long after `calm_s` arrivals are answered in time again; None: never."""
    calm = sorted(each for each in ended if each[0] >= calm_s)
    windows: dict[int, list[bool]] = {}
    for at_s, took, status in calm:
        windows.setdefault(int((at_s - calm_s) / WINDOW_S), []).append(
            status == OK and took <= deadline_ns
        )
    good = [statistics.mean(windows[each]) >= RECOVERED for each in sorted(windows)]
    if not any(good):
        return None
    return round(good.index(True) * WINDOW_S, 1)


async def measured(generator: Generator, beside: Bare, seconds: float) -> dict[str, Any]:
    """Measure one peer."""
    deadline_ns = round(DEADLINE_MS * 1e6)
    await generator.order(in_flight=2, seconds=2.0)  # it warms up
    alone = [t for _, t, s in await generator.order(in_flight=1, seconds=seconds) if s == OK]
    if not alone:
        raise UnavailableError("it answered no request")
    full = await generator.order(in_flight=IN_FLIGHT, seconds=seconds)
    goodput: dict[str, float] = {}
    refused: list[int] = []
    for factor in FACTORS:
        ended = await generator.order(rates_hz=[[factor * beside.rate_hz, seconds]])
        goodput[f"{factor:g}"] = round(answered(ended, deadline_ns) / seconds / beside.rate_hz, 3)
        refused += [took for _, took, status in ended if status in (UNAVAILABLE, TOO_MANY)]
    over = [[3 * beside.rate_hz, 2.0], [CALM * beside.rate_hz, 3.0]]
    ended = await generator.order(rates_hz=over)
    alone_ms = quantiles_ms(alone)
    return {
        "latency_ms": {"median": alone_ms["p50"], "p99": alone_ms["p99"]},
        "overhead_ms": {
            "median": round(alone_ms["p50"] - beside.median_ms, 2),
            "p99": round(alone_ms["p99"] - beside.p99_ms, 2),
        },
        "throughput": round(
            sum(s == OK and at + t / 1e9 <= seconds for at, t, s in full)
            / seconds
            / beside.rate_hz,
            3,
        ),
        "goodput": goodput,
        "recovery_s": recovery_s(ended, 2.0, deadline_ns),
        "refusal_ms": quantiles_ms(refused)["p50"] if refused else None,
    }


async def measure(peer: Peer, folder: Path, environments: Path, seconds: float) -> dict[str, Any]:
    """Start a peer, measure it beside bare ONNX Runtime, and end it."""
    cores = sorted(os.sched_getaffinity(0))
    before = await bare(cores[0], seconds, decoded=peer.jpeg)
    async with serving(peer, folder, environments, cores[0]) as target:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(CLIENT),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 28,
            preexec_fn=lambda: os.sched_setaffinity(0, cores[1:] or cores),
        )  # fmt: skip
        try:
            figures = await measured(Generator(process, target), before, seconds)
        finally:
            process.terminate()
            await process.wait()
    after = await bare(cores[0], seconds, decoded=peer.jpeg)
    return {
        **figures,
        "bare": {
            "rate_hz": [round(before.rate_hz, 1), round(after.rate_hz, 1)],
            "median_ms": [round(before.median_ms, 2), round(after.median_ms, 2)],
        },
    }


def row(name: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    over, goodput = found["overhead_ms"], found["goodput"]
    many = " ".join(f"{goodput[f'{factor:g}']:5.2f}" for factor in FACTORS)
    return (
        f"{name:20} {over['median']:7.2f} {over['p99']:7.2f}  {found['throughput']:5.2f}  {many}"
        f"  {found['recovery_s']!s:>5}  {found['refusal_ms']!s:>6}"
    )


@click.command()
@click.option("--peer", "names", multiple=True, type=click.Choice(list(PEERS)), help="Only these.")
@click.option("--seconds", default=5.0, show_default=True, help="Of each measurement.")
@click.option(
    "--environments",
    type=click.Path(path_type=Path),
    default=Path.home() / ".cache" / "edgebox-peers",
    show_default=True,
    help="Where other servers are installed; kept for the next run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(*, names: tuple[str, ...], seconds: float, environments: Path, as_json: bool) -> None:
    """Measure servers in turn."""
    found: dict[str, Any] = {}
    click.echo(
        f"{'':20} overhead, ms     through-  goodput at {', '.join(f'{f:g}x' for f in FACTORS)}"
        "   recovery  refusal\n"
        f"{'':20}  median     P99  put",
        err=as_json,
    )
    for name in names or PEERS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[name] = asyncio.run(measure(PEERS[name], Path(folder), environments, seconds))
            except UnavailableError as error:
                found[name] = {"left_out": str(error)}
                click.echo(f"{name:20} left out: {error}", err=True)
                continue
        click.echo(row(name, found[name]), err=as_json)
    if as_json:
        click.echo(json.dumps({"machine": machine(), "seconds": seconds, "peers": found}, indent=1))


if __name__ == "__main__":
    main()
