"""Measures closed-loop adaptation: `python -m benchmarks.adaptation [--json]`.

The 18 settings of Jellyfish's evaluation (section 7.3: 2, 4 and 8 cameras, deadlines of 75, 100 and
150 ms, 15 and 25 frames/s, two workers, 16 variants) over made-up links, or over trace files
(`--traces`). The latency profile is analytic and goes through the paper's figures: 23 ms for the
smallest variant alone and 32 ms for four of it, 34 ms for three of the fourth, 31 ms for one of the
tenth (sections 7.1 and 7.2). The bytes follow its 2, 11 and 26 Mbit/s for 128, 354 and 608 px at 25
frames/s (section 7.3). The links have the medians and quartiles that it gives for its WiFi and LTE
traces, and its steps of 20 s.

One setting (8 cameras, 75 ms, 25 frames/s) overloads the paper's system; means are over the others.
"""

import json
import math
import platform
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.adaptation_ablations import ABLATIONS, Ablation
from benchmarks.adaptation_jellyfish import READINGS, Jellyfish
from edgebox.commands.simulate_cameras import read_scenario
from edgebox.link.shaping import parse_trace
from edgebox.planning.planner import plan
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import PERFECT, Policy, Scenario
from edgebox.simulation.senders import SenderKind

FOLDER = Path(__file__).with_name("scenarios")
STEPS_MBPS = (20.0, 15.0, 10.0, 7.5)
STEP_S = 20.0
SIZES_PX = range(128, 609, 32)
BATCHES = range(1, 9)
SPREAD = (0.86, 0.87, 0.89, 0.9, 0.92, 0.94, 0.96, 1.0, 1.1)
"""Quantiles of a batch's time in units of its P99: a GPU is steady."""
DURATION_S = 65
WARMUP_S = 5
OURS, JELLYFISH, PAPER = "ours", "jellyfish", "paper"
KNOWING, UNRESERVED = "perfect", "unreserved"
POLICIES = {
    OURS: Policy(),
    JELLYFISH: Policy(bandwidth="harmonic"),
    PAPER: Policy(bandwidth="harmonic"),
    KNOWING: Policy(bandwidth=PERFECT),
    UNRESERVED: Policy(bandwidth=PERFECT),
}
"""What is compared. Jellyfish is the paper's client, estimate and planner on our scheduler; "paper"
its client and estimate on our planner; two know what links will carry, the
last of them without the reserves that our planner keeps because it does not."""
RULES = {
    "harmonic": Policy(bandwidth="harmonic"),
    "last": Policy(bandwidth="last"),
    "least": Policy(bandwidth="least"),
    "obedient": Policy(sender=SenderKind.OBEDIENT),
    **dict.fromkeys(READINGS, POLICIES[JELLYFISH]),
}
"""Ours but for what is believed of links, or for the camera's side of it, and Jellyfish read in
other ways; only if asked for."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One of the paper's."""

    cameras: int
    slo_ms: int
    rate_hz: int

    def __str__(self) -> str:
        return f"{self.cameras}-cameras-{self.slo_ms}-ms-{self.rate_hz}-hz"

    @property
    def overloaded(self) -> bool:
        """The one that the paper's system cannot serve."""
        return (self.cameras, self.slo_ms, self.rate_hz) == (8, 75, 25)


SETTINGS = [
    Setting(cameras, slo_ms, rate_hz)
    for cameras in (2, 4, 8)
    for slo_ms in (75, 100, 150)
    for rate_hz in (15, 25)
]
_FOUR = ((75, 15), (100, 25), (150, 15), (150, 25))
_ALL_SIX = ((75, 15), (75, 25), (100, 15), (100, 25), (150, 15), (150, 25))
MIXED = {
    "4-cameras-mixed": [Setting(1, *of) for of in _FOUR],
    "8-cameras-mixed": [Setting(1, *of) for of in (*_ALL_SIX, (100, 15), (150, 25))],
}
"""Deadlines and rates mixed, as in the paper's Table 2, which does not say which: ours."""
SCENARIOS = {str(setting): [setting] for setting in SETTINGS} | MIXED


def p99_ms(side_px: int, batch: int) -> float:
    """Return what a batch takes at its P99; see the module's docstring."""
    return 20 + batch * (2.16 + 0.837 * (side_px / 128) ** 2)


def accuracy(side_px: int) -> float:
    """Return a saturating curve like that of the paper's figure 10."""
    return 0.665 * (1 - math.exp(-side_px / 160))


def made_up_mbps(
    seed: int, median: float, *, sigma: float, memory: float, low: float, high: float
) -> list[float]:
    """Return 200 s of a lognormal random walk, a rate a second."""
    rng = random.Random(seed)
    at, rates = rng.gauss(0, 1), []
    for _ in range(200):
        at = memory * at + math.sqrt(1 - memory**2) * rng.gauss(0, 1)
        rates.append(round(min(max(median * math.exp(sigma * at), low), high), 2))
    return rates


def scenario_files() -> dict[str, str]:
    """Return the benchmark's files by their path in its folder."""
    lte = made_up_mbps(15, 22.8, sigma=1.0, memory=0.7, low=3, high=110)
    narrow = made_up_mbps(15, 14.7, sigma=0.4, memory=0.6, low=2.85, high=26.3)
    wifi = made_up_mbps(13, 53.1, sigma=0.28, memory=0.5, low=15, high=90)
    files = {
        f"traces/{name}.txt": f"# Mbit/s, one a {every}; made up\n"
        + "".join(f"{rate:g}\n" for rate in rates)
        for name, every, rates in (
            ("steps", "step of 20 s", STEPS_MBPS),
            ("wifi", "second", wifi),
            ("lte", "second", lte),
            ("lte-narrow", "second", narrow),
        )
    }
    return files | {f"{name}.toml": _scenario_text(groups) for name, groups in SCENARIOS.items()}


def _scenario_text(groups: Sequence[Setting]) -> str:
    lines = [
        "# Written by python -m benchmarks.adaptation --write",
        f"duration_s = {DURATION_S}", f"warmup_s = {WARMUP_S}", "",
        "[box]", "prepare_ms = [0.5, 1.5]", "",
    ]  # fmt: skip
    for number, group in enumerate(groups):
        name = "camera" if len(groups) == 1 else f"camera-{number}"
        lines += [
            "[[cameras]]", f'name = "{name}"', f"count = {group.cameras}",
            f"slo_ms = {group.slo_ms}", f"rate_hz = {group.rate_hz}",
            "width_px = 608", "height_px = 608",
            "bytes_per_pixel = 0.478", "bytes_exponent = 0.176", "bytes_spread = 0.05",
            "rtt_ms = 1", "joins_apart_s = 0.5",
            'trace = "traces/steps.txt"', f"step_s = {STEP_S:g}", 'trace_start_s = "random"', "",
        ]  # fmt: skip
    for worker in range(2):
        lines += ["[[executors]]", f'name = "gpu/{worker}"', f"spread = {list(SPREAD)}", ""]
    for side_px in SIZES_PX:
        times = ", ".join(f"{batch} = {p99_ms(side_px, batch):.2f}" for batch in BATCHES)
        lines += [
            "[[variants]]", f'name = "square-{side_px}"', f"width_px = {side_px}",
            f"accuracy = {accuracy(side_px):.4f}", f"batch_ms = {{ {times} }}", "",
        ]  # fmt: skip
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Link:
    """What all cameras of a run are behind, each from another moment on."""

    name: str
    file: Path
    step_s: float = 1.0


MADE_UP = {
    "steps": Link("steps", FOLDER / "traces/steps.txt", STEP_S),
    "wifi": Link("wifi", FOLDER / "traces/wifi.txt"),
    "lte": Link("lte", FOLDER / "traces/lte.txt"),
    "lte-narrow": Link("lte-narrow", FOLDER / "traces/lte-narrow.txt"),
}
"""LTE as the paper's section 7.3 describes it, and as narrow as the trace that its authors
published: a median of 14.7 Mbit/s, half of all seconds within 6.5."""


def behind(scenario: Scenario, link: Link) -> Scenario:
    """Put a scenario's cameras behind another link, at the same shares of its trace."""
    trace = parse_trace(link.file.read_text("utf-8"), str(link.file), link.step_s)
    cameras = tuple(
        replace(
            camera,
            trace=trace,
            trace_start_ns=camera.trace_start_ns * trace.period_ns // camera.trace.period_ns,
        )
        for camera in scenario.cameras
    )
    return replace(scenario, cameras=cameras)


def measure(setting: str, link: Link, policy: str, seed: int) -> dict[str, Any]:
    """Run one setting and return its figures."""
    scenario = behind(read_scenario(FOLDER / f"{setting}.toml", seed), link)
    ablation: Ablation | None = ABLATIONS.get(policy)
    start_s = time.perf_counter()
    scenario = replace(scenario, policy=(POLICIES | RULES)[PAPER if ablation else policy])
    if policy == JELLYFISH or policy in READINGS:
        plain = replace(scenario.scheduling, variant_per_batch=False)
        scenario = replace(scenario, scheduling=plain)
    if policy == UNRESERVED:
        reckless = replace(
            scenario.planning,
            uplink_utilisation_max=1.0,
            link_upgrade=1.0,
            upgrade_hold_ns=0,
        )
        scenario = replace(scenario, planning=reckless)
    if ablation is None:
        report = run_scenario(scenario, **_jellyfish(policy, scenario))
    else:
        report = run_scenario(
            scenario, sender=ablation.sender, planner=ablation.planner(scenario.planning)
        )
    took_s = time.perf_counter() - start_s
    found = figures(report, scenario)
    everything = found["all"]
    return {
        "setting": setting,
        "link": link.name,
        "policy": policy,
        "captured": everything["captured"],
        "miss_rate": everything["miss_rate"],
        "accuracy": everything["accuracy"],
        "dropped": everything["dropped"],
        "late": everything["late"],
        "changes_per_camera_minute": everything["changes_per_camera_minute"],
        "mismatch_rate": everything["mismatch_rate"],
        "p99_ms": everything["latency_ms"]["all"]["p99"],
        "utilisation": found["utilisation"],
        "took_s": round(took_s, 2),
    }


def _jellyfish(policy: str, scenario: Scenario) -> dict[str, Any]:
    """Return what of a run is Jellyfish's, if anything is."""
    if policy == PAPER:
        # Only its own planner says how long batches take, so nothing can be fitted to that.
        system = Jellyfish(
            scenario.planning, random.Random(scenario.seed), READINGS["jellyfish-text"]
        )
        ours = partial(plan, parameters=scenario.planning)
        return {"sender": system.sender, "planner": system.on(ours)}
    if policy == JELLYFISH or policy in READINGS:
        system = Jellyfish(scenario.planning, random.Random(scenario.seed), READINGS.get(policy))
        return {"sender": system.sender, "planner": system}
    return {}


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over the settings that the paper's system can serve."""
    overloaded = {str(setting) for setting in SETTINGS if setting.overloaded}
    out = []
    for link in dict.fromkeys(row["link"] for row in rows):
        for policy in dict.fromkeys(row["policy"] for row in rows):
            of = [
                row
                for row in rows
                if (row["link"], row["policy"]) == (link, policy)
                and row["setting"] not in overloaded
            ]
            if of:
                keys = ("miss_rate", "accuracy", "changes_per_camera_minute", "mismatch_rate")
                means = {key: round(sum(row[key] for row in of) / len(of), 6) for key in keys}
                worst = max(of, key=lambda row: float(row["miss_rate"]))
                out.append(
                    {"link": link, "policy": policy, **means, "worst_miss_rate": worst["miss_rate"],
                     "worst_setting": worst["setting"]}
                )  # fmt: skip
    perfect = {row["link"]: row["accuracy"] for row in out if row["policy"] == KNOWING}
    for row in out:
        if perfect.get(row["link"]):
            row["accuracy_of_perfect"] = round(row["accuracy"] / perfect[row["link"]], 4)
    return out


def links_of(traces: Iterable[Path], steps: Iterable[str]) -> list[Link]:
    """Return the links of trace files and folders; `steps`: NAME=SECONDS of their steps."""
    step_of = {name: float(value) for name, _, value in (step.partition("=") for step in steps)}
    found = []
    for path in traces:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [Link(file.stem, file, step_of.get(file.stem, 1.0)) for file in files]
    return found


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--policies", default=",".join(POLICIES), show_default=True, help="With commas.")
@click.option("--ablations", is_flag=True, help="Also the paper's section 7.4.")
@click.option("--mixed", is_flag=True, help="Deadlines and rates mixed, as in its Table 2.")
@click.option("--links", default="steps,wifi,lte", show_default=True, help="With commas.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--traces", multiple=True, type=click.Path(path_type=Path, exists=True),
    help="Files, or folders of them, instead of the made-up links.",
)  # fmt: skip
@click.option("--step-s", "steps", multiple=True, help="NAME=SECONDS of a trace's steps, if not 1.")
@click.option("--write", is_flag=True, help="Only write the scenario files again.")
def main(
    *, as_json: bool, policies: str, ablations: bool, mixed: bool, links: str, seed: int,
    traces: tuple[Path, ...], steps: tuple[str, ...], write: bool,
) -> None:  # fmt: skip
    """Print misses and accuracy of each policy over each link, and by setting with --json."""
    if write:
        for name, text in scenario_files().items():
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_text(text, "utf-8")
        return
    behind_links = links_of(traces, steps) or [MADE_UP[name] for name in links.split(",")]
    names = [*policies.split(","), *(ABLATIONS if ablations else ())]
    settings = list(MIXED) if mixed else [str(setting) for setting in SETTINGS]
    rows = []
    for link in behind_links:
        for policy in names:
            rows += [measure(setting, link, policy, seed) for setting in settings]
            if not as_json:
                for row in rows[-len(settings) :] if mixed else ():
                    _print_one(row)
                _print(summary(rows)[-1])
    if as_json:
        document = {
            "date": date.today().isoformat(),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "seed": seed,
            "duration_s": DURATION_S,
            "warmup_s": WARMUP_S,
            "summary": summary(rows),
            "rows": rows,
        }
        json.dump(document, sys.stdout, indent=1)
        click.echo()
        return
    click.echo("accuracy as a share of perfect knowledge:")
    for row in summary(rows):
        click.echo(f"  {row['link']:10} {row['policy']:14} {row.get('accuracy_of_perfect', '')}")


def _print_one(row: Mapping[str, Any]) -> None:
    click.echo(
        f"{row['link']:16} {row['policy']:14} misses {row['miss_rate']:8.4%}  accuracy "
        f"{row['accuracy']:.4f}  {row['setting']}"
    )


def _print(row: Mapping[str, Any]) -> None:
    click.echo(
        f"{row['link']:16} {row['policy']:14} misses {row['miss_rate']:8.4%}  accuracy "
        f"{row['accuracy']:.4f}  worst {row['worst_miss_rate']:.3%} ({row['worst_setting']})"
    )


if __name__ == "__main__":
    main()
