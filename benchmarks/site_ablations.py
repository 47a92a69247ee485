"""What the constants are worth that find sites: `python -m benchmarks.site_ablations [--json]`.

The cases of `benchmarks.sites` with cameras that say nothing, one constant changed at a time:
cameras that share a link in a queue or fairly, and cameras of a proxy that share none. Told are how
many of the former were found and after how long, how many of the latter were taken for a site, and
the misses of all.

`--open-samples`: how many samples are open at once where a site has many cameras, what the estimate
then costs per frame, and how far it is off, with other bounds on the open samples.
"""

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from statistics import fmean
from types import ModuleType
from typing import Any

import click

from benchmarks.changed_constant import changed
from benchmarks.sites import PROXY, SHARED, made_up, measure
from edgebox.link import site_inference, throughput_samples
from edgebox.link.bandwidth import BandwidthEstimate

CHANGES: tuple[tuple[ModuleType, str, tuple[float, ...]], ...] = (
    (site_inference, "JUDGED", (100,)),
    (site_inference, "JOIN", (56, 72)),
    (site_inference, "LEAVE", (60,)),
    (site_inference, "CLEAR", (0.5, 1e9)),
    (site_inference, "JUDGE_NS", (100_000_000, 300_000_000)),
    (site_inference, "SETTLED_NS", (200_000_000,)),
    (site_inference, "REFERENCE_NS", (3_000_000_000,)),
    (site_inference, "NOISE_NS", (1_000_000,)),
)
SITES = ((16, 15, 60), (64, 15, 200), (100, 25, 500), (300, 5, 500), (1000, 1, 500))
"""Cameras, their rate in Hz, and what their uplink carries, in Mbit/s."""
BOUNDS = (16, 256, 1_000_000)
_FRAME_BYTES = 15_000
_SKIPPED = 0.3


def inference_results(links: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Return what was found behind these links, and what was missed."""
    rows = [
        measure(link, kind, "undeclared", seeds)
        for link in made_up()
        if link.name in links
        for kind in (*SHARED, PROXY)
    ]
    shared = [row for row in rows if row["kind"] in SHARED]
    seconds = [row["found_s"] for row in shared if row["found_s"] is not None]
    return {
        "found": sum(row["found"] for row in shared),
        "of": 4 * len(seeds) * len(shared),
        "found_s": round(fmean(seconds), 1) if seconds else None,
        "false": sum(row["found"] for row in rows if row["kind"] == PROXY),
        "miss_rate": round(fmean(row["miss_rate"] for row in rows), 5),
        "accuracy": round(fmean(row["accuracy"] for row in rows), 4),
    }


def frames_of(cameras: int, rate_hz: int, mbps: int) -> list[tuple[str, int, int]]:
    """Return camera, sending and arrival of 5 s of frames in one queue; cameras skip some."""
    rng, sent = random.Random(1), []
    for camera in range(cameras):
        phase_s = rng.random() / rate_hz
        sent += [
            (phase_s + number / rate_hz + rng.uniform(0, 0.004), f"c{camera}")
            for number in range(5 * rate_hz)
            if rng.random() > _SKIPPED
        ]
    frames, free_s = [], 0.0
    for at_s, name in sorted(sent):
        free_s = max(at_s, free_s) + _FRAME_BYTES * 8 / (mbps * 1e6)
        frames.append((name, round(at_s * 1e9), round(free_s * 1e9)))
    return frames


def open_samples() -> Iterator[str]:
    """Yield what a bound on open samples changes."""
    for cameras, rate_hz, mbps in SITES:
        frames = frames_of(cameras, rate_hz, mbps)
        for bound in BOUNDS:
            estimate, most, errors = BandwidthEstimate(), 0, [0.0]
            with changed(throughput_samples, "OPEN_MAX", bound):
                started_ns = time.process_time_ns()
                for name, sent_ns, arrival_ns in frames:
                    estimate.add(_FRAME_BYTES, sent_ns, arrival_ns, 0, name)
                    bps = estimate.bps(arrival_ns) or 0.0
                    most = max(most, len(estimate._sampling.open()))
                    if arrival_ns > 2e9:
                        errors.append(abs(bps / (mbps * 1e6) - 1))
                took_us = (time.process_time_ns() - started_ns) / 1e3 / len(frames)
            yield (
                f"{cameras} cameras, {rate_hz} Hz, at most {bound}: {most} open, "
                f"{took_us:.0f} us per frame, off by {max(errors):.1%} at most"
            )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--links", default="constant,lte-narrow", show_default=True, help="With commas.")
@click.option("--seeds", default="1", show_default=True, help="With commas.")
@click.option("--open-samples", "bounds", is_flag=True, help="Only the bound on open samples.")
@click.option("--only", default="", help="Names of constants, with commas; empty: all.")
def main(*, as_json: bool, links: str, seeds: str, bounds: bool, only: str) -> None:
    """Print what each constant of the inference of sites is worth."""
    if bounds:
        for line in open_samples():
            click.echo(line)
        return
    names, numbers = links.split(","), [int(seed) for seed in seeds.split(",")]
    rows: list[dict[str, Any]] = []

    def note(constant: str, value: object) -> None:
        rows.append({"constant": constant, "value": value} | inference_results(names, numbers))
        if not as_json:
            click.echo(
                "{constant:14} {value!s:>11}  found {found} of {of} after {found_s} s, falsely "
                "{false}, misses {miss_rate:.2%}, accuracy {accuracy:.4f}".format(**rows[-1])
            )
            sys.stdout.flush()

    note("as they are", "")
    chosen = set(filter(None, only.split(",")))
    for module, name, values in CHANGES:
        for value in values if not chosen or name in chosen else ():
            with changed(module, name, value):
                note(name, value)
    if as_json:
        json.dump({"links": names, "seeds": numbers, "rows": rows}, sys.stdout, indent=1)
        click.echo()


if __name__ == "__main__":
    main()
