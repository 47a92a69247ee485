"""Cameras with links of their own at a busy box: how many are taken for cameras of a site.

    python -m benchmarks.busy_sites [--seeds 6] [--seconds 120]

Four cameras of one address, 15 frames/s each. The box reads nothing for a while now and then, as on
a machine with other programs, and then reads what has arrived, one frame after the other. Of its
stalls it knows those in which its probe was due, from then on. Prints how many cameras were ever
joined: as it is; with a probe every 10 or 100 ms; if stalls are not told; and without `CLEAR` as
well. A last case has one link that all share, in one queue.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Sequence

import click

from benchmarks.changed_constant import changed
from edgebox.domain.requests import CameraId
from edgebox.link import site_inference
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.link.site_inference import SiteInference
from edgebox.runtime.looplag import PERIOD_S

MS = 1_000_000
S = 1_000_000_000
READ_NS = 500_000
"""What the box needs to read one frame."""
CASES = (
    ("loopback", (1000,), 8, 0.2, 15),
    ("loopback", (1000,), 8, 0.4, 40),
    ("40 Mbit/s each", (40,), 60, 0.2, 15),
    ("40 Mbit/s each", (40,), 60, 0.4, 40),
    ("40, 40, 10 and 0.6 Mbit/s", (40, 40, 10, 0.6), 40, 0.4, 40),
    ("10 Mbit/s each", (10,), 40, 0.4, 40),
    ("one of 20 Mbit/s", (), 40, 0.2, 15),
)
"""Links, their Mbit/s, KB of a frame at most, share of the time in stalls, and ms of a stall."""
Stall = tuple[int, int]
Passage = tuple[int, str, int, int]
"""(arrival or reading, camera, bytes, sent); instants in ns."""


def stalls(rng: random.Random, share: float, mean_ms: float, seconds: float) -> list[Stall]:
    """Return when the box reads nothing: this share of the time, each time so long on average."""
    found, at_s = list[Stall](), 0.0
    while at_s < seconds:
        at_s += rng.expovariate(share / (1 - share) / (mean_ms / 1e3))
        length_s = rng.expovariate(1e3 / mean_ms)
        found.append((round(at_s * S), round((at_s + length_s) * S)))
        at_s += length_s
    return found


def noticed(at: Sequence[Stall], period_ns: int) -> list[Stall]:
    """Return stalls as a probe sees them that is due so long after it last ran (`LoopLag`)."""
    found, due_ns = list[Stall](), period_ns
    for start_ns, end_ns in at:
        if due_ns < start_ns:
            due_ns += math.ceil((start_ns - due_ns) / period_ns) * period_ns
        if due_ns < end_ns:
            found.append((due_ns, end_ns))
            due_ns = end_ns + period_ns
    return found


def read_late(passages: Sequence[Passage], at: Sequence[Stall]) -> list[Passage]:
    """Return frames as a box sees them that reads one after the other, and nothing in a stall."""
    free_ns, out = 0, []
    for arrival_ns, name, size_bytes, sent_ns in sorted(passages):
        free_ns = max(arrival_ns, free_ns)
        within = bisect_right(at, (free_ns, free_ns)) - 1
        if within >= 0:
            free_ns = max(free_ns, at[within][1])
        free_ns += READ_NS
        out.append((free_ns, name, size_bytes, sent_ns))
    return out


def arrivals(
    rng: random.Random, mbps: Sequence[float], kbytes: float, at: Sequence[Stall], seconds: float
) -> list[Passage]:
    """Return all frames in the order in which they are read."""
    frames = []
    for number in range(4):
        link_mbps = mbps[number % len(mbps)] if mbps else 20.0
        usual = min(kbytes * 1e3, link_mbps * 1e6 / 8 / 15 * (0.4 if mbps else 0.2))
        phase_s = rng.random() / 15
        for frame in range(round(15 * seconds)):
            size = usual * (rng.uniform(0.5, 1.5) if rng.random() < 0.05 else 1.0)
            sent_ns = round((phase_s + frame / 15) * S)
            frames.append((sent_ns, number, round(size * rng.lognormvariate(0, 0.05))))
    rates = [mbps[number % len(mbps)] for number in range(4)] if mbps else [20.0]
    links = [ShapedLink(BandwidthTrace.constant(rate), 0) for rate in rates]
    passages = [
        (links[number % len(links)].leaves_ns(sent_ns, size), f"c{number}", size, sent_ns)
        for sent_ns, number, size in sorted(frames)
    ]
    return read_late(passages, at)


def joined(frames: Sequence[Passage], stalls: Sequence[Stall]) -> int:
    """Return how many cameras were ever taken for cameras of a site."""
    inference, ever, waiting = SiteInference(), set[str](), list(reversed(stalls))
    for number in range(4):
        inference.opened(CameraId(f"c{number}"), "address")
    for read_ns, name, size_bytes, sent_ns in frames:
        while waiting and waiting[-1][1] <= read_ns:
            inference.stalled(*waiting.pop())
        inference.add(CameraId(name), size_bytes, sent_ns, read_ns)
        ever |= {name for name, site in inference.take_updates().items() if site is not None}
    return len(ever)


@click.command()
@click.option("--seeds", default=6, show_default=True)
@click.option("--seconds", default=120.0, show_default=True)
def main(*, seeds: int, seconds: float) -> None:
    """Print a table in Markdown."""
    periods_ns = [round(PERIOD_S * S), 10 * MS, 100 * MS]
    print("| links | stalls | as it is | 10 ms | 100 ms | stalls not told | and without `CLEAR` |")
    print("|---|---|---|---|---|---|---|")
    for label, mbps, kbytes, share, mean_ms in CASES:
        found = [0] * (len(periods_ns) + 2)
        for seed in range(seeds):
            rng = random.Random(seed)
            at = stalls(rng, share, mean_ms, seconds)
            frames = arrivals(rng, mbps, kbytes, at, seconds)
            for number, period_ns in enumerate(periods_ns):
                found[number] += joined(frames, noticed(at, period_ns))
            found[-2] += joined(frames, ())
            with changed(site_inference, "CLEAR", 1e9):
                found[-1] += joined(frames, ())
        cells = " | ".join(f"{of} of {4 * seeds}" for of in found)
        print(f"| {label} | {share:.0%} of the time, {mean_ms} ms | {cells} |", flush=True)


if __name__ == "__main__":
    main()
