"""Sets the simulator beside the real thing: `python -m benchmarks.links [SCENARIO.toml]...`.

The same scenario file twice: for real (a box, a camera daemon each, links that follow the traces;
links_run.py) and by `edgebox simulate cameras`, with the profiles that this very box measured and
keeps in its database. A third column is the simulator told what the run says of the limbs it can
only guess at: decoding, encoding, planning, slowdown, what pictures weigh, the cameras' phases.
Where the columns differ, the third says whether the guesses or the model are to blame.

A scenario's executors are taken by number only, and its variants are the box's own. Uplinks are
shaped by tc in network namespaces where that works, else by the camera daemon itself.
"""

import asyncio
import contextlib
import functools
import platform
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click
import orjson

from benchmarks.links_books import fed, measured, report_of
from benchmarks.links_network import Loopback, Network, namespaces, why_not
from benchmarks.links_run import RealRun, Tell, run_for_real, write_config
from edgebox.camera.ending import on_end_signals
from edgebox.config import load
from edgebox.console import clear_errors, err, out, print_json, progress_bar, table
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.models import FamilyName
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.simulate.cameras import read_scenario
from edgebox.simulate.stored import stored_profiles
from edgebox.simulation.figures import PARTS, figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Hardware, Scenario

FOLDER = Path(__file__).with_name("scenarios")
COLUMNS = {
    "simulated": "simulated",
    "as_measured": "as measured",
    "real": "real",
}
_INTERRUPTED = 130


async def compare(
    path: Path, scenario: Scenario, network: Network, profile_s: float, tell: Tell
) -> dict[str, Any]:
    """Run a scenario for real and simulate it; return the figures of both.

    Args:
        path: of the scenario, for its name.
        scenario: its own hardware counts by the number of executors.
        network: where the real run lives.
        profile_s: seconds for which the box measures this machine first.
        tell: told of the progress.

    Raises:
        EdgeboxError: it cannot be run for real, or a program failed.
    """
    with tempfile.TemporaryDirectory(prefix="edgebox-links-") as name:
        folder = Path(name)
        config = write_config(scenario, network, folder, profile_s)
        if scenario.hardware is not None:
            family = FamilyName(load(config).inference.family)
            cameras = (
                replace(s, camera=replace(s.camera, family=family)) for s in scenario.cameras
            )
            scenario = replace(scenario, cameras=tuple(cameras))
        run = await run_for_real(scenario, network, folder, config, tell)
        variants, profiles = await stored_profiles(load(config))
    hardware = Hardware(tuple(variants), {executor: tuple(on) for executor, on in profiles.items()})
    return await asyncio.to_thread(
        _document, path.name, network, replace(scenario, hardware=hardware), run
    )


def _document(name: str, network: Network, scenario: Scenario, run: RealRun) -> dict[str, Any]:
    assert scenario.hardware is not None
    found = measured(run, scenario, scenario.hardware)
    told = fed(scenario, found)
    real = figures(report_of(run, scenario), scenario)
    del real["plans"], real["seed"]  # nobody counts the former, and chance is not ours to seed
    columns = {
        "simulated": figures(run_scenario(scenario), scenario),
        "as_measured": figures(run_scenario(told), told),
        "real": real,
    }
    missed = {column: of["all"]["miss_rate"] for column, of in columns.items()}
    return {
        "scenario": name,
        "shaping": "tc" if network.shapes else "daemon",
        "cores_busy": {
            "by_this_benchmark": round(run.machine.ours, 2),
            "by_others": round(run.machine.others, 2),
        },
        "load_before": round(run.machine.load_before, 2),
        "load_after": round(run.machine.load_after, 2),
        "misses_real_less_simulated_points": {
            column: round(100 * (missed["real"] - missed[column]), 2)
            for column in ("simulated", "as_measured")
        },
        "measured": found.to_json(),
        **columns,
    }


@contextlib.asynccontextmanager
async def network_for(
    scenario: Scenario, shaping: str, say: Callable[[str], None]
) -> AsyncIterator[Network]:
    """Make what a scenario's uplinks are shaped by, and unmake it.

    Args:
        scenario: whose cameras need uplinks.
        shaping: "tc", "daemon" or "auto".
        say: told why tc is not used.

    Raises:
        EdgeboxError: tc was asked for and does not work here.
    """
    reason = None if shaping == "daemon" else await asyncio.to_thread(why_not)
    if shaping == "tc" and reason is not None:
        raise EdgeboxError(f"--shaping tc: {reason}")
    if reason is not None:
        say(f"{reason}: the camera daemon's own --link shapes the uplinks instead")
    if shaping == "daemon" or reason is not None:
        yield Loopback()
        return
    async with namespaces([spec.camera.id for spec in scenario.cameras]) as network:
        yield network


async def measure(
    paths: Sequence[Path], shaping: str, seed: int | None, profile_s: float, quiet: bool
) -> dict[str, Any]:
    """Run scenarios one after the other; return the whole document.

    Raises:
        EdgeboxError: a file is wrong, or a run failed.
    """
    scenarios = [(path, read_scenario(path, seed)) for path in paths]
    say = functools.partial(err.print, markup=False, soft_wrap=True)
    runs = []
    for path, scenario in scenarios:
        with progress_bar(quiet) as progress:
            tell = functools.partial(_tell, progress, path.stem)
            async with network_for(scenario, shaping, say) as network:
                runs.append(await compare(path, scenario, network, profile_s, tell))
        if not quiet:
            show(runs[-1])
    return {
        "date": date.today().isoformat(),
        "machine": f"{processor_name()}, {usable_cores()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "runs": runs,
    }


def _tell(progress: Tell, name: str, text: str, share: float) -> None:
    progress(f"{name}: {text}", share)


# -- what a person sees -------------------------------------------------------------------------


def show(run: dict[str, Any]) -> None:
    """Print one scenario's columns side by side, then its misses by camera."""
    columns = [run[column] for column in COLUMNS]
    reasons = sorted({reason for of in columns for reason in of["all"]["dropped"]})
    rows = [(label, *(of(column) for column in columns)) for label, of in _ROWS.items()]
    rows[_REASONS_AT:_REASONS_AT] = [
        (f"  dropped, {why}", *(str(of["all"]["dropped"].get(why, 0)) for of in columns))
        for why in reasons
    ]
    busy = run["cores_busy"]
    out.print(
        table(
            f"{run['scenario']}, uplinks shaped by {run['shaping']}", ("", *COLUMNS.values()), rows
        )
    )
    names = list(run["real"]["cameras"])
    rows = [
        (name, *(_percent(of["cameras"][name]["miss_rate"]) for of in columns),
         *(f"{of['cameras'][name]['accuracy']:.3f}" for of in columns))
        for name in names
    ]  # fmt: skip
    headings = ("camera", *(f"misses {name}" for name in COLUMNS.values()), *COLUMNS.values())
    out.print(table("misses and accuracy by camera", headings, rows))
    out.print(
        f"cores busy: {busy['by_this_benchmark']:.2f} by this, {busy['by_others']:.2f} by others; "
        f"misses of the real run less those simulated: "
        f"{run['misses_real_less_simulated_points']['simulated']:+.2f} points",
        soft_wrap=True,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _latency(part: str, of: dict[str, Any]) -> str:
    spread = of["all"]["latency_ms"][part]
    return f"{spread['mean']:.1f} / {spread['p99']:.1f}"


_ROWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "captured": lambda of: str(of["all"]["captured"]),
    "on time": lambda of: str(of["all"]["on_time"]),
    "late": lambda of: str(of["all"]["late"]),
    "misses": lambda of: _percent(of["all"]["miss_rate"]),
    "accuracy, misses 0": lambda of: f"{of['all']['accuracy']:.4f}",
    "accuracy on time": lambda of: f"{of['all']['accuracy_on_time']:.4f}",
    "changes a camera and minute": lambda of: f"{of['all']['changes_per_camera_minute']:.1f}",
    "not on the advised variant": lambda of: _percent(of["all"]["mismatch_rate"]),
    **{f"{part}, mean / P99 ms": functools.partial(_latency, part) for part in PARTS},
    "busy": lambda of: ", ".join(
        f"{name} {share:.0%}" for name, share in of["utilisation"].items()
    ),
}
_REASONS_AT = 3
"""Rows before those of the reasons of drops."""


# -- the command --------------------------------------------------------------------------------


async def _until_stopped(work: Any) -> Any:
    """Run a coroutine; the first Ctrl-C, SIGTERM or SIGHUP cancels it, and it cleans up."""
    task = asyncio.ensure_future(work)
    on_end_signals(task.cancel)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        err.print("stopped; everything is cleaned up")
        raise SystemExit(_INTERRUPTED) from None


def _check_writable(path: Path) -> None:
    """Complain now rather than after minutes of measuring.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    try:
        path.open("ab").close()
    except OSError as error:
        raise InvalidInputError(f"--out {path}: cannot be written: {error.strerror}") from None


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--shaping",
    type=click.Choice(["auto", "tc", "daemon"]),
    default="auto",
    show_default=True,
    help="What shapes uplinks: tc in network namespaces (root), or the camera daemon.",
)
@click.option("--seed", type=click.IntRange(0), help="Instead of the scenarios' own.")
@click.option(
    "--profile-s",
    type=click.FloatRange(1, 60),
    default=10.0,
    show_default=True,
    help="Seconds for which the box measures this machine first.",
)
@click.option(
    "--out",
    "out_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the JSON document into this file as well.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    *,
    scenarios: tuple[Path, ...],
    shaping: str,
    seed: int | None,
    profile_s: float,
    out_file: Path | None,
    as_json: bool,
) -> None:
    """Run SCENARIOS for real and simulated, and print the figures side by side.

    Without any, those of benchmarks/scenarios/ that are made for a machine with two cores.
    """
    paths = scenarios or tuple(sorted(FOLDER.glob("links-*.toml")))
    with clear_errors("links"):
        if out_file is not None:
            _check_writable(out_file)
        work = measure(paths, shaping, seed, profile_s, as_json)
        document = asyncio.run(_until_stopped(work))
        if out_file is not None:
            out_file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    if as_json:
        print_json(document)


if __name__ == "__main__":
    main()
