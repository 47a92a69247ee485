"""`edgebox simulate fleet`."""

import itertools
import json
import re
from functools import partial

import pytest
from click.testing import CliRunner

from edgebox.commands import console
from edgebox.commands.simulate_fleet import fleet
from edgebox.simulation.fleet import fleet_run
from edgebox.simulation.fleet.box_model import measure_box
from tests.simulation.fleet.test_fleet_simulator import MODEL

SMALL = ["--boxes", "10", "--cameras", "60", "--executors", "1"]


@pytest.fixture
def measured_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare a run the seconds that measuring the box takes."""
    monkeypatch.setattr(fleet_run, "measured_box", lambda setting: iter([MODEL]))


@pytest.mark.usefixtures("measured_already")
def test_it_prints_what_cameras_get_under_each_policy() -> None:
    result = CliRunner().invoke(fleet, [*SMALL, "--policy", "edgebox,none"])
    assert result.exit_code == 0, result.output
    for shown in ("10 boxes, 60 cameras", "edgebox", "none", "rolling upgrade", "power loss"):
        assert shown in result.output


@pytest.mark.usefixtures("measured_already")
def test_it_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a quarter: of a thousand boxes, one takes minutes."""
    monkeypatch.setattr(console, "LINE_PERIOD_S", 0.0)
    result = CliRunner().invoke(fleet, [*SMALL, "--policy", "none,"])
    assert result.exit_code == 0, result.output
    shares = [int(each) for each in re.findall(r"policy none: (\d+) %", result.stderr)]
    assert shares == sorted(shares)
    assert len(shares) > 100
    assert max(later - one for one, later in itertools.pairwise(shares)) <= 1


def test_it_prints_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    half_a_second = partial(measure_box, seconds=0.5)
    monkeypatch.setattr(fleet_run, "measure_box", half_a_second)
    result = CliRunner().invoke(fleet, [*SMALL, "--policy", "edgebox", "--json", "--seed", "3"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [found[key] for key in ("boxes", "cameras", "seed")] == [10, 60, 3]
    assert 0 < found["policies"]["edgebox"]["on_time"] <= 1
    assert len(found["box"]["by_load"]) == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--boxes", "3"], "3 is not in the range 10<=x<=1000"),
        (["--policy", ","], "--policy names no policy (there are: edgebox, none, random"),
        (["--policy", "best"], "there is no policy 'best' (there are: edgebox, none, random"),
    ],
)
def test_a_wrong_option_is_one_clear_error(options: list[str], message: str) -> None:
    result = CliRunner().invoke(fleet, options)
    assert result.exit_code != 0
    assert message in result.output.replace("\n", " ")
