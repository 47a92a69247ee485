"""docs/explanation/planning.md against the code: the constants of its tables."""

import re
from collections.abc import Sized
from importlib import import_module
from pathlib import Path

import pytest

from edgebox.planning.planner_parameters import PlanningParameters

PAGE = (Path(__file__).parents[2] / "docs/explanation/planning.md").read_text("utf-8")
_ROW = re.compile(
    r"^\| `((?:[a-z_]+\.)?[A-Za-z_]+)` \| ([\d.,/]+) ?(s|ms|Hz|prices|cuts)? \|", re.MULTILINE
)
_SCALE = {"s": 1e9, "ms": 1e6}
SITES = {"JOIN", "LEAVE", "JUDGE_NS", "SETTLED_NS", "REFERENCE_NS", "NOISE_NS"}
"""Their tables are dated; the page says below them what has changed since."""
ROUNDING = "options.round_rate"
"""It names a function that has the value."""


def rows() -> list[tuple[str, float]]:
    """Return the name and the value of each row."""
    found = []
    for name, number, unit in _ROW.findall(PAGE):
        over, _, under = number.replace(",", "").partition("/")
        value = float(over) / float(under or 1) * _SCALE.get(unit, 1)
        if name not in SITES | {ROUNDING}:
            found.append((name, value))
    return found


def in_code(name: str) -> object:
    """Return a constant of a module, or the default of a parameter."""
    module, _, constant = name.rpartition(".")
    if not module:
        return getattr(PlanningParameters(), name)
    package = "link" if module == "throughput_samples" else "planning"
    return getattr(import_module(f"edgebox.{package}.{module}"), constant)


@pytest.mark.parametrize(("name", "shown"), rows(), ids=[name for name, _ in rows()])
def test_a_constant_on_the_page_is_that_of_the_code(name: str, shown: float) -> None:
    value = in_code(name)
    assert (len(value) if isinstance(value, Sized) else value) == pytest.approx(shown)


def test_the_page_has_the_parameters_and_the_constants_of_the_search() -> None:
    names = [name for name, _ in rows()]
    assert len(names) > 30
    assert {"utilisation_max", "upgrade_hold_ns", "capacity._GAIN", "laggards.FACTOR"} <= set(names)
