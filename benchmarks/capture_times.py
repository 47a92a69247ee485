"""Measures capture instants without clock exchange: `python -m benchmarks.capture_times [--json]`.

Cameras whose clocks the box knows, and the same cameras when they answer no pings, with and without
stamps: how far what the box believes of a frame's capture is from the truth, and what that costs in
misses (by the true capture) and accuracy. Beside the box's estimate stand what it was before
(arrival + SLO, and nothing known of the link), the same with the link known, so that only deadlines
differ, and the bytes of each frame over the bandwidth estimated, without the frame's own bytes.

Links are those of `benchmarks.adaptation`: made up, or trace files (`--traces`).
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.adaptation import FOLDER, MADE_UP, WARMUP_S, Link, behind, links_of
from edgebox.commands.simulate_cameras import read_scenario
from edgebox.link.bandwidth import LinkEstimate
from edgebox.link.transit import FrameArrival, TransitEstimator
from edgebox.simulation.figures import figures
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.simulated_cameras import CameraClock

RTT_NS = 20_000_000
JITTER_NS = 1_000_000
ENCODE_NS = (5_000_000, 15_000_000)


class ByArrival(TransitEstimator):
    """Takes every frame for captured when it arrives; the link is known."""

    def _by_bounds(
        self, captured_ns: int, sent_ns: int, arrival: FrameArrival, here_ns: int
    ) -> tuple[int, int]:
        return arrival.arrival_ns, arrival.arrival_ns


class Blind(ByArrival):
    """The same, and nothing is learnt of the link: as the box was."""

    def echoed(self, sent_ns: int, received_ns: int) -> None:
        """Learn nothing."""

    def _learn_from_train(self, arrival: FrameArrival) -> tuple[int, int] | None:
        return None


class ByMean(TransitEstimator):
    """Takes for transmission what a frame's bytes take at the bandwidth estimated."""

    def _by_bounds(
        self, captured_ns: int, sent_ns: int, arrival: FrameArrival, here_ns: int
    ) -> tuple[int, int]:
        bandwidth_bps = self.bandwidth.bps(arrival.arrival_ns)
        took_ns = round(arrival.size_bytes * 8 / bandwidth_bps * 1e9) if bandwidth_bps else 0
        placed_ns = arrival.arrival_ns - took_ns - (self.rtt_ns or 0) // 2
        return placed_ns, placed_ns


@dataclass(frozen=True, slots=True)
class Way:
    """How the box comes to know when frames were captured."""

    clock: CameraClock
    transit: Callable[[LinkEstimate], TransitEstimator] = TransitEstimator


WAYS = {
    "clock exchanged": Way(CameraClock.EXCHANGED),
    "blind": Way(CameraClock.NONE, Blind),
    "arrival": Way(CameraClock.NONE, ByArrival),
    "bytes / W": Way(CameraClock.NONE, ByMean),
    "no stamps": Way(CameraClock.NONE),
    "stamps": Way(CameraClock.STAMPS),
}


def measure(setting: str, link: Link, way: str, seed: int) -> dict[str, Any]:
    """Run one setting and return its figures."""
    scenario = behind(read_scenario(FOLDER / f"{setting}.toml", seed), link)
    of = WAYS[way]
    cameras = tuple(
        replace(camera, clock=of.clock, rtt_ns=RTT_NS, jitter_ns=JITTER_NS, encode_ns=ENCODE_NS)
        for camera in scenario.cameras
    )
    scenario = replace(scenario, cameras=cameras)
    report = run_scenario(scenario, transit=of.transit)
    everything = figures(report, scenario)["all"]
    return {
        "setting": setting,
        "link": link.name,
        "way": way,
        "miss_rate": everything["miss_rate"],
        "late": everything["late"],
        "accuracy": everything["accuracy"],
        "captured": everything["captured"],
        "error_ms": errors_ms(report),
    }


def errors_ms(report: Report) -> dict[str, float]:
    """Return how far frames are believed younger than they are: quantiles, in ms."""
    errors = [
        (ended.request.captured_ns - ended.truly_captured_ns) / 1e6
        for ended in report.ended
        if ended.truly_captured_ns >= WARMUP_S * 1e9
    ]
    found = np.quantile(np.array(errors), (0.01, 0.5, 0.99))
    absolute = float(np.abs(np.array(errors)).mean())
    p1, p50, p99 = (round(float(each), 2) for each in found)
    return {"p1": p1, "p50": p50, "p99": p99, "mean_absolute": round(absolute, 2)}


def mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean of the same way over several links."""
    error_ms = {
        key: round(sum(row["error_ms"][key] for row in rows) / len(rows), 2)
        for key in rows[0]["error_ms"]
    }
    sums = {key: sum(row[key] for row in rows) for key in ("miss_rate", "accuracy")}
    means = {key: round(value / len(rows), 6) for key, value in sums.items()}
    late = sum(row["late"] for row in rows)
    return {"way": rows[0]["way"], **means, "late": late, "error_ms": error_ms}


def _line(name: str, row: Mapping[str, Any]) -> str:
    error = row["error_ms"]
    return (
        f"{name:12} {row['way']:22} misses {row['miss_rate']:8.3%}  late {row['late']:5}  accuracy "
        f"{row['accuracy']:.4f}  error ms {error['p1']:7.1f} {error['p50']:7.1f} "
        f"{error['p99']:7.1f}  mean absolute {error['mean_absolute']:7.1f}"
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--setting", default="8-cameras-100-ms-15-hz", show_default=True)
@click.option("--ways", default=",".join(WAYS), show_default=True, help="With commas.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--traces", multiple=True, type=click.Path(path_type=Path, exists=True),
    help="Files, or folders of them, instead of the made-up links.",
)  # fmt: skip
@click.option("--step-s", "steps", multiple=True, help="NAME=SECONDS of a trace's steps, if not 1.")
def main(
    *, as_json: bool, setting: str, ways: str, seed: int,
    traces: tuple[Path, ...], steps: tuple[str, ...],
) -> None:  # fmt: skip
    """Print, by link and way, misses and errors (believed younger than in truth: above 0)."""
    links = links_of(traces, steps) or [MADE_UP[name] for name in ("steps", "wifi", "lte")]
    rows = []
    for link in links:
        for way in ways.split(","):
            rows.append(measure(setting, link, way, seed))
            if not as_json:
                click.echo(_line(link.name, rows[-1]))
    means = [mean([row for row in rows if row["way"] == way]) for way in ways.split(",")]
    if as_json:
        json.dump({"seed": seed, "mean": means, "rows": rows}, sys.stdout, indent=1)
        click.echo()
        return
    for row in means:
        click.echo(_line("mean", row))


if __name__ == "__main__":
    main()
