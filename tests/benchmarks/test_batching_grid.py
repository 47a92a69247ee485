"""The grid's second look: which cells are run again, and what the new runs say of the lead."""

import math

import pytest
from click.testing import CliRunner

from benchmarks.batching_grid import Cell, behind, cells_again, confirmed, main

STATIC, TEXT = ("static", 0.9, 2.0), ("lognormal", 0.5, 1.5)


def cell(where: tuple[str, float, float], seed: int) -> Cell:
    return Cell(*where, requests=100, seed=seed)


def test_what_seems_behind_is_run_again_with_its_rivals_only() -> None:
    once = [
        (cell(STATIC, 1), {"adaptive": 0.9, "fifo": 0.2, "orloj": 0.8}),
        (cell(TEXT, 1), {"adaptive": 0.7, "fifo": 0.71, "orloj": 0.72}),
    ]
    lost = [
        entry
        for rivals in (("fifo",), ("orloj",))
        for entry in behind(once, rivals)
        if entry["by"] > 0
    ]
    assert [(entry["kind"], entry["rival"], entry["by"]) for entry in lost] == [
        ("lognormal", "fifo", 0.01),
        ("lognormal", "orloj", 0.02),
    ]
    assert cells_again(lost, requests=100, seeds=[2, 3]) == [
        (cell(TEXT, seed), ("adaptive", "fifo", "orloj")) for seed in (2, 3)
    ]


def test_a_lead_is_judged_by_the_runs_of_its_cell_alone() -> None:
    entry = {"kind": "lognormal", "load": 0.5, "slo_multiple": 1.5, "rival": "orloj", "by": 0.05}
    leads = [0.01, 0.02, -0.03, 0.04]
    runs = [
        (cell(TEXT, seed), {"adaptive": 0.5, "orloj": 0.5 + lead, "fifo": 0.9})
        for seed, lead in enumerate(leads)
    ]
    others = [(cell(STATIC, seed), {"adaptive": 0.1, "orloj": 0.9}) for seed in range(3)]
    found = confirmed(entry, runs + others)
    assert found == {
        **entry,
        "again": pytest.approx(0.01),
        # The squares of the distances from the mean are 0, 1, 16 and 9 times 1e-4.
        "standard_error": pytest.approx(math.sqrt(26e-4 / 3 / 4), abs=1e-4),
    }


def test_one_more_run_is_refused() -> None:
    ended = CliRunner().invoke(main, ["--again", "1", "--requests", "1"])
    assert ended.exit_code == 2
    assert "no standard error" in ended.output
