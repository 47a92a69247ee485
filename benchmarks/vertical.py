"""CPU cores scaled in place: `python -m benchmarks.vertical [--traces FOLDER] [--seeds 3]`.

20 requests a second with pictures of 100, 200 and 500 KB over mobile links, an SLO of 1 s, and one
executor with up to 16 cores: the times of Sponge's Table 1, four times as slow. For each link and
size: violations that perfect knowledge would have avoided, and core-seconds next to it, by policy.
Links are made up (LTE, by seed), or the traces (Mbit/s each second, or CSV) of a folder.
`--spread` is how much execution times vary (standard deviation of their logarithm).
"""

import json
from pathlib import Path
from typing import Any

import click

from edgebox.simulation.vertical.comparison import POLICIES, compare
from edgebox.simulation.vertical.vertical_scenario import parse_vertical_scenario

SCENARIO = """
duration_s = {duration_s}
rate_hz = 20
slo_ms = 1000
picture_kb = [100, 200, 500]
[link]
{link}
[model]
gamma_ms = 35.8
epsilon_ms = 5.74
delta_ms = 1.29
eta_ms = 13.3
times = 4
spread = {spread}
"""


def links(traces: Path | None, seeds: int) -> dict[str, str]:
    """Return the TOML of each link by its name."""
    if traces is None:
        made_up = 'made_up = "lte"\nmade_up_seed = '
        return {f"made up {seed}": f"{made_up}{seed}" for seed in range(1, seeds + 1)}
    files = sorted(each for each in traces.iterdir() if each.suffix in {".txt", ".csv"})
    return {each.stem: f"trace = {json.dumps(str(each))}" for each in files}


@click.command()
@click.option("--traces", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1, 100))
@click.option("--spread", default=0.0, show_default=True, type=click.FloatRange(0, 1))
@click.option("--duration-s", default=200, show_default=True, type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True)
def main(*, traces: Path | None, seeds: int, spread: float, duration_s: int, as_json: bool) -> None:
    """Compare the policies on each link."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, link in links(traces, seeds).items():
        text = SCENARIO.format(link=link, spread=spread, duration_s=duration_s)
        scenario = parse_vertical_scenario(text, name, lambda file: Path(file).read_text("utf-8"))
        found[name] = compare(scenario, POLICIES)
        if not as_json:
            for run in found[name]:
                _print(name, run)
    if as_json:
        click.echo(json.dumps(found, indent=2))


def _print(name: str, run: dict[str, Any]) -> None:
    bound = run["perfect_knowledge"]
    each = "; ".join(
        f"{of['policy']} {of['avoidable']}, {of['of_perfect_knowledge']:.2f}"
        for of in run["policies"]
    )
    click.echo(
        f"{name}, {run['picture_kb']:g} KB: {bound['violations']} of {run['requests']} "
        f"unavoidable; avoidable, core-seconds next to perfect knowledge: {each}"
    )


if __name__ == "__main__":
    main()
