"""`edgebox simulate vertical` as its users meet it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edgebox.commands.root import main

TEXT = """
duration_s = 20
rate_hz = 10
slo_ms = 800
picture_kb = [50, 200]
cores_static = [4]
[link]
trace = "uplink.txt"
[model]
cores_max = 8
gamma_ms = 143
epsilon_ms = 23
delta_ms = 5
eta_ms = 53
"""


def run(*arguments: str | Path) -> Result:
    line = ["simulate", "vertical", *map(str, arguments)]
    return CliRunner().invoke(main, line, catch_exceptions=False)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "uplink.txt").write_text("12\n8\n20\n5\n")
    path = tmp_path / "yard.toml"
    path.write_text(TEXT)
    return path


def test_policies_side_by_side_as_one_json_document(scenario: Path) -> None:
    result = run(scenario, "--seed", "4", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["seed"] == 4
    assert document["latency_ms"] == {"gamma": 143, "epsilon": 23, "delta": 5, "eta": 53}
    assert [of["picture_kb"] for of in document["runs"]] == [50, 200]
    for of in document["runs"]:
        assert of["requests"] == 200
        names = [each["policy"] for each in of["policies"]]
        assert names == ["per-batch", "sponge", "static-4", "horizontal"]


def test_a_person_sees_a_table_for_each_size(scenario: Path) -> None:
    result = run(scenario, "--policy", "per-batch,static")
    assert result.exit_code == 0, result.output
    for shown in ("pictures of 50 KB", "pictures of 200 KB", "per-batch", "static-4", "perfect"):
        assert shown in result.output
    assert "horizontal" not in result.output


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--policy", "elastic"], "there is no policy 'elastic' (there are: per-batch, sponge"),
        (["--policy", ""], "--policy names no policy (there are: per-batch, sponge"),
    ],
)
def test_an_unknown_policy_is_one_clear_error(
    scenario: Path, arguments: list[str], error: str
) -> None:
    result = run(scenario, *arguments)
    assert result.exit_code == 1
    assert error in " ".join(result.output.split())


def test_a_missing_trace_is_one_clear_error(scenario: Path) -> None:
    (scenario.parent / "uplink.txt").unlink()
    result = run(scenario)
    assert result.exit_code == 1
    assert "there is no such file" in " ".join(result.output.split())
