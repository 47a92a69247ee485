"""Compares simulated with real runs: `python -m benchmarks.links [SCENARIO.toml]...`.

The same scenario runs twice: for real (a box, one daemon per camera, links that follow the traces;
links_run.py) and by `edgebox simulate cameras`, with the profiles in the database of the same box.
A third column is the simulator with the costs measured in that run, which it otherwise assumes:
decoding, encoding, planning, slowdown, bytes of pictures, the cameras' phases. Where the columns
differ, the third shows whether the assumptions or the model are the cause.

A scenario's executors are taken by number only, and its variants are the box's own. Uplinks are
shaped by tc in network namespaces where that works, else by the camera daemon itself.
"""

import asyncio
import contextlib
import functools
import os
import platform
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import click
import orjson

from benchmarks.links_accounting import measured, report_of, with_measured_costs
from benchmarks.links_network import Loopback, Network, namespaces, why_not
from benchmarks.links_run import DATABASE, RealRun, Tell, run_for_real, write_config
from benchmarks.links_tables import points, show, show_summary, summary
from edgebox.camera.shutdown import on_end_signals
from edgebox.commands.console import clear_errors, err, print_json, progress_bar
from edgebox.commands.simulate_cameras import read_scenario
from edgebox.commands.stored_profiles import stored_profiles
from edgebox.config.config_file import load
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.model_family import FamilyName
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Hardware, Scenario

FOLDER = Path(__file__).with_name("scenarios")
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Profiling:
    """How the box gets to know this machine first."""

    seconds: float
    """For how long it measures what is not known."""
    known: Path | None = None
    """The database of another box on this machine, which has measured."""

    def prepare(self, database: Path) -> None:
        """Give a box that has not started yet what is known."""
        if self.known is not None:
            for file in self.known.parent.glob(f"{self.known.name}*"):  # its write-ahead log, too
                shutil.copy(file, f"{database}{file.name.removeprefix(self.known.name)}")


async def compare(
    path: Path, scenario: Scenario, network: Network, profiling: Profiling, tell: Tell
) -> dict[str, Any]:
    """Run a scenario for real and simulate it; return the figures of both.

    Args:
        path: of the scenario, for its name.
        scenario: its own hardware counts by the number of executors.
        network: where the real run lives.
        profiling: how the box gets to know this machine.
        tell: called with the progress.

    Raises:
        EdgeboxError: it cannot be run for real, or a program failed.
    """
    with tempfile.TemporaryDirectory(prefix="edgebox-links-") as name:
        folder = Path(name)
        config = write_config(scenario, network, folder, profiling.seconds)
        profiling.prepare(folder / DATABASE)
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
    as_measured = with_measured_costs(scenario, found)
    real = figures(report_of(run, scenario), scenario)
    del real["plans"], real["seed"]  # nobody counts the former, and chance is not ours to seed
    columns = {
        "simulated": figures(run_scenario(scenario), scenario),
        "as_measured": figures(run_scenario(as_measured), as_measured),
        "real": real,
    }
    missed = {column: of["all"]["miss_rate"] for column, of in columns.items()}
    return {
        "scenario": name,
        "seed": scenario.seed,
        "shaping": "tc" if network.shapes else "daemon",
        "cores_busy": {
            "by_this_benchmark": round(run.machine.ours, 2),
            "by_others": round(run.machine.others, 2),
        },
        "load_before": round(run.machine.load_before, 2),
        "load_after": round(run.machine.load_after, 2),
        "misses_real_less_simulated_points": points(missed),
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
        say: called with the reason if tc is not used.

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
    paths: Sequence[Path], shaping: str, seeds: Sequence[int], profiling: Profiling, quiet: bool
) -> dict[str, Any]:
    """Run scenarios one after the other; return the whole document.

    Args:
        paths: of the scenarios.
        shaping: see `network_for`.
        seeds: a run for each; none: with the scenario's own.
        profiling: how each box gets to know this machine.
        quiet: show nothing.

    Raises:
        EdgeboxError: a file is wrong, or a run failed.
    """
    scenarios = [(path, read_scenario(path, seed)) for path in paths for seed in seeds or (None,)]
    say = functools.partial(err.print, markup=False, soft_wrap=True)
    runs = []
    for path, scenario in scenarios:
        with progress_bar(quiet) as progress:
            tell = functools.partial(_tell, progress, f"{path.stem}, seed {scenario.seed}")
            async with network_for(scenario, shaping, say) as network:
                runs.append(await compare(path, scenario, network, profiling, tell))
        if not quiet:
            show(runs[-1])
    return {
        "date": date.today().isoformat(),
        "machine": f"{processor_name()}, {usable_cores()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "summary": summary(runs),
        "runs": runs,
    }


def _tell(progress: Tell, name: str, text: str, share: float) -> None:
    progress(f"{name}: {text}", share)


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
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInputError(f"--out {path}: cannot be written")


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--shaping",
    type=click.Choice(["auto", "tc", "daemon"]),
    default="auto",
    show_default=True,
    help="What shapes uplinks: tc in network namespaces (root), or the camera daemon.",
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0),
    multiple=True,
    help="Instead of the scenarios' own; several: a run with each.",
)
@click.option(
    "--profile-s",
    type=click.FloatRange(1, 60),
    default=10.0,
    show_default=True,
    help="Seconds for which the box measures this machine first.",
)
@click.option(
    "--known",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The database of a box that has measured this machine: what it knows is not measured.",
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
    seeds: tuple[int, ...],
    profile_s: float,
    known: Path | None,
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
        work = measure(paths, shaping, seeds, Profiling(profile_s, known), as_json)
        document = asyncio.run(_until_stopped(work))
        if out_file is not None:
            out_file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    if as_json:
        print_json(document)
    elif len(document["runs"]) > 1:
        show_summary(document["summary"])


if __name__ == "__main__":
    main()
