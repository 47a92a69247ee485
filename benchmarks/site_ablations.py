"""What the constants are worth that find sites: `python -m benchmarks.site_ablations [--json]`.

The cases of `benchmarks.sites` with cameras that say nothing, one constant changed at a time:
cameras that share a link in a queue or fairly, and cameras of a proxy that share none. Told are how
many of the former were found and after how long, how many of the latter were taken for a site, and
the misses of all.
"""

import json
import sys
from collections.abc import Sequence
from statistics import fmean
from types import ModuleType
from typing import Any

import click

from benchmarks.sites import PROXY, SHARED, made_up, measure
from edgebox.link import samples, site_inference

CHANGES: tuple[tuple[ModuleType, str, tuple[int, ...]], ...] = (
    (site_inference, "JUDGED", (40,)),
    (site_inference, "JOIN", (56, 72)),
    (site_inference, "LEAVE", (60,)),
    (site_inference, "JUDGE_NS", (300_000_000,)),
    (site_inference, "SETTLED_NS", (200_000_000,)),
    (site_inference, "REFERENCE_NS", (3_000_000_000,)),
    (site_inference, "NOISE_NS", (1_000_000,)),
    (samples, "OPEN_MAX", (0, 1_000_000)),
)


def told(links: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
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


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--links", default="constant,lte-narrow", show_default=True, help="With commas.")
@click.option("--seeds", default="1", show_default=True, help="With commas.")
def main(*, as_json: bool, links: str, seeds: str) -> None:
    """Print what each constant of the inference of sites is worth."""
    names, numbers = links.split(","), [int(seed) for seed in seeds.split(",")]
    rows: list[dict[str, Any]] = []

    def note(constant: str, value: object) -> None:
        rows.append({"constant": constant, "value": value} | told(names, numbers))
        if not as_json:
            click.echo(
                "{constant:14} {value!s:>11}  found {found} of {of} after {found_s} s, falsely "
                "{false}, misses {miss_rate:.2%}, accuracy {accuracy:.4f}".format(**rows[-1])
            )
            sys.stdout.flush()

    note("as they are", "")
    for module, name, values in CHANGES:
        was = getattr(module, name)
        for value in values:
            setattr(module, name, value)
            try:
                note(name, value)
            finally:
                setattr(module, name, was)
    if as_json:
        json.dump({"links": names, "seeds": numbers, "rows": rows}, sys.stdout, indent=1)
        click.echo()


if __name__ == "__main__":
    main()
