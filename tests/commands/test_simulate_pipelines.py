"""`edgebox simulate pipelines` as its users meet it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.pipelines import MADE_UP, made_up_counts
from benchmarks.pipelines_scenario import scenario_text
from edgebox.commands.root import main
from edgebox.scheduling.policies import POLICIES
from tests.simulation.pipelines import COUNTS, pipelines_text, yard


def run(*arguments: str | Path) -> Result:
    line = ["simulate", "pipelines", *map(str, arguments)]
    return CliRunner().invoke(main, line, catch_exceptions=False)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS)
    path = tmp_path / "yard.toml"
    recorded = 'objects = "counts.csv"\nobjects_video = "a"'
    cameras = yard(objects=recorded), yard("gate")
    path.write_text(pipelines_text(*cameras, top="duration_s = 5"))
    return path


def test_policies_side_by_side_as_one_json_document(scenario: Path) -> None:
    result = run(scenario, "--policy", "all", "--seed", "4", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["seed"] == 4
    assert [of["policy"] for of in document["policies"]] == [*POLICIES]
    for of in document["policies"]:
        assert of["objects_per_s"] == pytest.approx(sum(of["cameras"].values()), abs=0.02)
        assert of["objects_per_s"] <= of["objects_bound_per_s"] <= of["objects_shown_per_s"]
        assert sum(of["executor_time"].values()) == pytest.approx(1, abs=1e-3)
    assert document == json.loads(run(scenario, "--policy", "all", "--seed", "4", "--json").output)


def test_a_person_gets_a_table_and_the_bound(scenario: Path) -> None:
    result = run(scenario, "--frame-admission", "none")
    assert result.exit_code == 0, result.output
    assert "yard.toml: objects answered in time" in result.output
    assert "no scheduler exceeds" in result.output
    assert "gate" in result.output


def test_mistakes_have_one_clear_line(scenario: Path) -> None:
    result = run(scenario, "--policy", "fastest")
    assert result.exit_code == 1
    assert "--policy: there is no policy 'fastest' (there are: " in result.output
    scenario.write_text(scenario.read_text().replace('pipeline = "cars"', 'family = "detect"'))
    result = run(scenario)
    assert result.exit_code == 1
    assert "no camera has a pipeline" in result.output


def test_the_number_of_batches_at_once_can_be_set(tmp_path: Path) -> None:
    scenario = tmp_path / "pipelines.toml"
    (tmp_path / "counts.csv").write_text(made_up_counts(1))
    text = scenario_text(1.0, 1.4, 1, MADE_UP, 0)
    times = "duration_s = 60\nwarmup_s = 10"
    assert times in text
    scenario.write_text(text.replace(times, "duration_s = 5\nwarmup_s = 2"))
    one, three = (
        json.loads(run(scenario, "--concurrent-batches", count, "--json").output)["policies"][0]
        for count in ("1", "3")
    )
    # They slow each other as much as there are, so three at once answer later.
    assert three["objects_per_s"] < one["objects_per_s"]
