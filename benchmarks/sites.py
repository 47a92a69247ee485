"""Measures cameras that share one uplink: `python -m benchmarks.sites [--json]`.

Four cameras (150 ms, 15 frames/s, the hardware of `benchmarks.adaptation`) of one site, whose link
is constant, made up, or a trace file (`--traces`), in one queue and shared fairly; and the same
cameras with a quarter of that link each, which is what sharing should come to. Cameras behind a
proxy have such a quarter each, too, from another moment of the trace, and one address: the box has
to find out that they share nothing. Each is five minutes of one seed each, because it matters when
cameras of one period take their pictures.
"""

import json
import platform
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from benchmarks.adaptation import FOLDER, MADE_UP, links_of
from edgebox.commands.simulate_cameras import read_scenario
from edgebox.domain.requests import SiteId
from edgebox.link.shaping import BandwidthTrace, lte_trace, parse_trace
from edgebox.simulation.figures import figures
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario
from edgebox.simulation.shared_links import Queueing, SimulatedSite

SETTING = "4-cameras-150-ms-15-hz"
SEEDS = (1, 2, 3, 4, 5)
SITE = SiteId("site")
SEPARATE = "separate"
PROXY = "proxy"
SHARED = tuple(str(queueing) for queueing in Queueing)
KINDS = (SEPARATE, *SHARED, PROXY)
KNOWN = {"declared": True, "undeclared": False}
"""Whether cameras tell the box that they share a link."""


@dataclass(frozen=True, slots=True)
class SharedLink:
    """The uplink of a site."""

    name: str
    trace: BandwidthTrace


def made_up() -> list[SharedLink]:
    """Return a constant link, and mobile ones that are made up."""
    names = ("lte", "lte-narrow", "wifi")
    files = [(name, MADE_UP[name].file) for name in names]
    return [
        SharedLink("constant", BandwidthTrace.constant(20)),
        *(SharedLink(name, parse_trace(file.read_text("utf-8"), name)) for name, file in files),
        SharedLink("phone", lte_trace(random.Random(1))),
    ]


def recorded(traces: Iterable[Path], steps: Iterable[str]) -> list[SharedLink]:
    """Return the links of trace files and folders, as `benchmarks.adaptation` reads them."""
    return [
        SharedLink(link.name, parse_trace(link.file.read_text("utf-8"), link.name, link.step_s))
        for link in links_of(traces, steps)
    ]


def share(trace: BandwidthTrace, parts: int) -> BandwidthTrace:
    """Return an equal part of a link."""
    return replace(trace, rates_bps=tuple(rate / parts for rate in trace.rates_bps))


def scenario_of(link: SharedLink, kind: str, seed: int, *, declared: bool) -> Scenario:
    """Return the setting behind a link, which begins elsewhere in its trace with each seed."""
    scenario = read_scenario(FOLDER / f"{SETTING}.toml", seed)
    start_ns = round(random.Random(seed).random() * link.trace.period_ns)
    part = share(link.trace, len(scenario.cameras))
    if kind == SEPARATE:
        cameras = [
            # The trace of a camera of its own counts from when it connects.
            replace(spec, trace=part, trace_start_ns=start_ns + spec.opens_ns)
            for spec in scenario.cameras
        ]
    elif kind == PROXY:
        spread_ns = link.trace.period_ns // len(scenario.cameras)
        cameras = [
            replace(spec, trace=part, trace_start_ns=start_ns + at * spread_ns, address=PROXY)
            for at, spec in enumerate(scenario.cameras)
        ]
    else:
        site = SimulatedSite(SITE, link.trace, Queueing(kind), start_ns)
        cameras = [
            replace(
                spec,
                camera=replace(spec.camera, site=SITE if declared else None),
                trace=link.trace,
                site=site,
            )
            for spec in scenario.cameras
        ]
    return replace(scenario, cameras=tuple(cameras))


def size_changes(report: Report, scenario: Scenario) -> int:
    """Count how often a camera sent another size than before, the warm-up left out."""
    widths: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for ended in report.ended:
        if ended.truly_captured_ns >= scenario.warmup_ns:
            size = ended.truly_captured_ns, ended.request.width_px
            widths[ended.request.camera].append(size)
    return sum(
        before != after
        for sizes in widths.values()
        for (_, before), (_, after) in pairwise(sorted(sizes))
    )


def first_found_s(report: Report) -> list[float]:
    """Return when each camera was first found to share its uplink, of those that were."""
    first: dict[str, float] = {}
    for at_ns, camera, site in report.sites:
        if site is not None:
            first.setdefault(camera, at_ns / 1e9)
    return list(first.values())


def measure(link: SharedLink, kind: str, known: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Run one case with every seed and return its figures."""
    captured = missed = changes = resized = 0
    accuracy = minutes = 0.0
    worst, dropped = 0.0, defaultdict[str, int](int)
    found_s: list[float] = []
    for seed in seeds:
        scenario = scenario_of(link, kind, seed, declared=KNOWN[known])
        report = run_scenario(scenario)
        found = figures(report, scenario)["all"]
        frames = found["captured"] - found["departed"]
        captured += frames
        missed += frames - found["on_time"]
        worst = max(worst, found["miss_rate"])
        accuracy += found["accuracy"] * frames
        found_s += first_found_s(report)
        changes += sum(report.changes.values())
        resized += size_changes(report, scenario)
        minutes += scenario.duration_ns / 60e9 * len(scenario.cameras)
        for reason, count in {**found["dropped"], "late": found["late"]}.items():
            dropped[reason] += count
    return {
        "link": link.name,
        "kind": kind,
        "known": known if kind in SHARED else "",
        "found": len(found_s),
        "found_s": round(sum(found_s) / len(found_s), 1) if found_s else None,
        "seeds": len(seeds),
        "captured": captured,
        "miss_rate": round(missed / captured, 6),
        "worst_miss_rate": worst,
        "accuracy": round(accuracy / captured, 6),
        "changes_per_camera_minute": round(changes / minutes, 3),
        "sizes_per_camera_minute": round(resized / minutes, 3),
        "missed": dict(sorted(dropped.items())),
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="With commas.")
@click.option("--known", default=",".join(KNOWN), show_default=True, help="With commas.")
@click.option("--links", default="", help="Names with commas; all if none is given.")
@click.option(
    "--seeds", default=",".join(map(str, SEEDS)), show_default=True, help="A minute each."
)
@click.option(
    "--traces", multiple=True, type=click.Path(path_type=Path, exists=True),
    help="Files, or folders of them, instead of the links made up.",
)  # fmt: skip
@click.option("--step-s", "steps", multiple=True, help="NAME=SECONDS of a trace's steps, if not 1.")
def main(
    *, as_json: bool, kinds: str, known: str, links: str, seeds: str,
    traces: tuple[Path, ...], steps: tuple[str, ...],
) -> None:  # fmt: skip
    """Print misses, accuracy and changes of cameras that share a link, or have a quarter each."""
    shared = recorded(traces, steps) or made_up()
    wanted = links.split(",") if links else [link.name for link in shared]
    rows = []
    for link in shared:
        if link.name not in wanted:
            continue
        for kind in kinds.split(","):
            for declared in known.split(",")[: None if kind in SHARED else 1]:
                rows.append(measure(link, kind, declared, [int(seed) for seed in seeds.split(",")]))
                if not as_json:
                    click.echo(_line(rows[-1]))
    if as_json:
        document = {
            "date": date.today().isoformat(),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "setting": SETTING,
            "rows": rows,
        }
        json.dump(document, sys.stdout, indent=1)
        click.echo()


def _line(row: Mapping[str, Any]) -> str:
    return (
        f"{row['link']:16} {row['kind']:9} {row['known']:11} misses {row['miss_rate']:8.3%} "
        f"(worst {row['worst_miss_rate']:.2%})  accuracy {row['accuracy']:.4f}  variants "
        f"{row['changes_per_camera_minute']:5.1f}/min  sizes {row['sizes_per_camera_minute']:6.1f}"
        f"/min  found {row['found']} at {row['found_s']} s  {row['missed']}"
    )


if __name__ == "__main__":
    main()
