"""`edgebox simulate` as its users meet it."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edgebox.commands.root import main
from edgebox.scheduling.policies import POLICIES
from tests.simulation.scenes import scenario_text


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "two.jsonl.gz"
    made = run(
        "make-workload", "--kind", "modal-2", "--requests", "120", "--seed", "3", "--out", path
    )
    assert made.exit_code == 0, made.output
    return path


def test_policies_side_by_side_as_one_json_document(workload: Path, tmp_path: Path) -> None:
    outcomes = tmp_path / "outcomes.jsonl"
    result = run("batching", workload, "--policy", "all", "--json", "--outcomes", outcomes)
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["requests"] == 120
    assert [of["policy"] for of in document["policies"]] == [*POLICIES, "clairvoyant"]
    for of in document["policies"]:
        assert of["on_time"] + of["late"] + of["dropped"] == 120
        assert of["finish_rate"] == pytest.approx(of["on_time"] / 120, abs=1e-6)
        assert of["mean_batch"] * of["batches"] <= 120.5
        assert 0 < of["decision_us"]["p50"] <= of["decision_us"]["p99"]
        assert of["samples"] == 0
    ends = [json.loads(line) for line in outcomes.read_text().splitlines()]
    adaptive = [end for end in ends if end["policy"] == "adaptive"]
    assert sorted(end["id"] for end in adaptive) == list(range(120))
    on_time = sum(end["outcome"] == "on_time" for end in adaptive)
    assert on_time == document["policies"][0]["on_time"]
    assert all(end["at_ms"] <= end["deadline_ms"] for end in ends if end["outcome"] == "on_time")


def test_samples_are_taken_where_they_are_asked_for(workload: Path) -> None:
    options = ("--policy", "adaptive,edf", "--sample-share", "0.5", "--json")
    result = run("batching", workload, *options)
    assert result.exit_code == 0, result.output
    taken = {of["policy"]: of["samples"] for of in json.loads(result.output)["policies"]}
    assert taken["adaptive"] > 0
    assert taken["edf"] == 0


def test_a_person_gets_a_table(workload: Path) -> None:
    result = run("batching", workload, "--policy", "edf,fifo")
    assert result.exit_code == 0
    assert "requests that finished by their deadlines" in result.output
    assert "fifo" in result.output


def test_deadlines_can_be_rescaled(workload: Path) -> None:
    def rate(multiple: str) -> float:
        arguments = ("batching", workload, "--slo-multiple", multiple, "--json")
        return float(json.loads(run(*arguments).output)["policies"][0]["finish_rate"])

    assert rate("1") < rate("5")


def test_the_same_seed_makes_the_same_file(workload: Path) -> None:
    again = run("make-workload", "--kind", "modal-2", "--requests", "120", "--seed", "3")
    assert again.stdout_bytes == gzip.decompress(workload.read_bytes())


def test_the_kinds_can_be_listed() -> None:
    assert "rare-long" in run("make-workload", "--kind", "list").output.split()


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_curves_are_drawn(workload: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"curves.{suffix}"
    assert run("batching", workload, "--policy", "edf", "--plot", target).exit_code == 0
    start = target.read_bytes()[:8]
    assert start == b"\x89PNG\r\n\x1a\n" if suffix == "png" else start.startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "best"), "there is no policy 'best' (there are: adaptive, "),
        (("--plot", "curves.pdf"), "curves.pdf: a plot is a .png or .svg file"),
        (("--plot", "/nowhere/at/all.svg"), "/nowhere/at/all.svg: cannot be written: No such file"),
        (("--outcomes", "/nowhere/at/all"), "/nowhere/at/all: cannot be written"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    workload: Path, arguments: tuple[str, str], message: str
) -> None:
    result = run("batching", workload, *arguments)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())


def test_a_missing_extra_is_named(workload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("batching", workload, "--plot", "curves.png")
    assert result.exit_code == 1
    assert "pip install 'edgebox[plot]'" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.jsonl", None, "there is no such file"),
        ("cut.jsonl.gz", gzip.compress(b"{}" * 999, mtime=0)[:20], "is not a whole gzip file"),
        ("plain.jsonl.gz", b"{}", "is not a whole gzip file"),
        ("wrong.jsonl", b'{"type":"request"}\n', ":1: type: the first line must be the model"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = run("batching", path)
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert message.replace(" ", "") in said.replace(" ", "")
    assert name in said


def test_an_unknown_kind_is_named() -> None:
    result = run("make-workload", "--kind", "sawtooth")
    assert result.exit_code == 1
    assert "there is no kind 'sawtooth'" in result.stderr


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "weak.txt").write_text("3\n1\n", "utf-8")
    path = tmp_path / "two.toml"
    lines = 'name = "gate"\nslo_ms = 200\nrate_hz = 10\ntrace = "weak.txt"\ncount = 2'
    path.write_text(scenario_text(lines, top="duration_s = 4"), "utf-8")
    return path


def test_cameras_as_one_json_document(scenario: Path) -> None:
    result = run("cameras", scenario, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert list(document["cameras"]) == ["gate-1", "gate-2"]
    everything = document["all"]
    assert everything["captured"] == 80
    dropped = sum(everything["dropped"].values())
    assert everything["on_time"] + everything["late"] + dropped == 80
    assert run("cameras", scenario, "--json").output == result.output
    knowing = json.loads(run("cameras", scenario, "--json", "--bandwidth", "perfect").output)
    assert knowing["policy"]["bandwidth"] == "perfect"
    other = json.loads(run("cameras", scenario, "--json", "--seed", "5").output)
    assert other["seed"] == 5
    assert other["cameras"] != document["cameras"]


def test_cameras_for_a_person(scenario: Path) -> None:
    result = run("cameras", scenario)
    assert result.exit_code == 0, result.output
    for text in ("two.toml: frames by camera", "gate-2", "sending", "busy: gpu/0"):
        assert text in result.output


def test_who_was_refused_is_named(tmp_path: Path) -> None:
    wish = "slo_ms = 200\nrate_hz = 450\nmin_rate_hz = 450\nmbps = 100"
    cameras = (f'name = "first"\n{wish}', f'name = "second"\n{wish}\njoins_s = 1')
    path = tmp_path / "full.toml"
    top = 'duration_s = 3\nplanner = { admission = "refuse" }'
    path.write_text(scenario_text(*cameras, top=top), "utf-8")
    result = run("cameras", path)
    assert result.exit_code == 0, result.output
    assert "refused 1 times: second" in result.output


def test_a_wrong_scenario_is_one_line(scenario: Path) -> None:
    (scenario.parent / "weak.txt").write_text("3\nmany\n", "utf-8")
    result = run("cameras", scenario)
    assert result.exit_code == 1
    assert "weak.txt:2: expected a number" in result.output
    assert len(result.output.strip().splitlines()) == 1
    missing = run("cameras", scenario.parent / "none.toml")
    assert missing.exit_code == 1
    assert "none.toml: there is no such file" in missing.output


def test_a_box_that_was_never_measured_says_what_to_do(tmp_path: Path) -> None:
    path, config = tmp_path / "a.toml", tmp_path / "box.toml"
    path.write_text(
        'duration_s = 4\nprofiles = "database"\n[[cameras]]\nname = "a"\nfamily = "street"\n'
        "slo_ms = 200\nrate_hz = 5\nmbps = 2\n",
        "utf-8",
    )
    config.write_text('storage.path = ":memory:"\n[[executors]]\ndevice = "cpu"\n', "utf-8")
    result = run("cameras", path, "--config", config)
    assert result.exit_code == 1
    assert "run edgebox profile first" in result.output


def test_sizes_over_time_can_be_drawn(scenario: Path, tmp_path: Path) -> None:
    target = tmp_path / "sizes.svg"
    result = run("cameras", scenario, "--plot", target)
    assert result.exit_code == 0, result.output
    assert "<svg" in target.read_text("utf-8")
