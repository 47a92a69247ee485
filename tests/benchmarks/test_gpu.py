"""What benchmarks/gpu.py does apart from measuring: its file, its budget, and what it concludes."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.gpu_box import figures, limit
from benchmarks.gpu_half import halved
from benchmarks.gpu_points import RUNS_MIN, WARM_RUNS, alternating, with_gains
from benchmarks.gpu_results import Budget, Figures, Results, Row, failing, tables
from benchmarks.ingest_client import Order, pictures_of
from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.inference.sessions import open_session
from edgebox.inference.zoo import bundled_folders, load_zoo

ABOUT = {"device": "a GPU", "edgebox": "1"}


class Rows:
    """Rows of a part, and which of them were measured."""

    def __init__(self) -> None:
        self.measured: list[str] = []

    def of(self, *keys: str) -> list[Row]:
        """Return rows that note that they were measured."""

        def row(key: str) -> Row:
            def measure() -> Figures:
                self.measured.append(key)
                return {"ms": float(len(key))}

            return Row(key, measure)

        return [row(key) for key in keys]


def quiet() -> Console:
    """Return a console that prints nothing."""
    return Console(quiet=True)


def test_a_later_call_measures_what_an_earlier_one_had_no_time_for(tmp_path: Path) -> None:
    file, rows = tmp_path / "deep" / "results.json", Rows()
    first = Results(file, ABOUT)
    assert first.measure("points", rows.of("a"), Budget(60.0), quiet()) == 0
    assert first.measure("points", rows.of("a", "bb", "ccc"), Budget(0.0), quiet()) == 2
    assert Results(file, ABOUT).measure("points", rows.of("a", "bb"), Budget(60.0), quiet()) == 0
    assert Results(file, ABOUT).measure("box", rows.of("a"), Budget(60.0), quiet()) == 0
    assert rows.measured == ["a", "bb", "a"]
    parts = json.loads(file.read_text("utf-8"))["parts"]
    assert parts == {"points": {"a": {"ms": 1.0}, "bb": {"ms": 2.0}}, "box": {"a": {"ms": 1.0}}}


def test_what_was_measured_is_kept_where_a_later_row_breaks_off(tmp_path: Path) -> None:
    def interrupted() -> Figures:
        raise KeyboardInterrupt

    file, rows = tmp_path / "results.json", Rows()
    with pytest.raises(KeyboardInterrupt):
        Results(file, ABOUT).measure(
            "points", [*rows.of("a"), Row("b", interrupted)], Budget(60.0), quiet()
        )
    assert Results(file, ABOUT).rows("points") == {"a": {"ms": 1.0}}


def test_a_row_that_cannot_be_measured_says_why_once_and_is_tried_again(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), record=True, width=200)
    file, rows, why = tmp_path / "results.json", Rows(), ModelError("no libnvinfer [here]")
    failed = [failing("x1", why), failing("x2", why)]
    assert Results(file, ABOUT).measure("points", failed, Budget(60.0), console) == 0
    assert console.export_text().count("no libnvinfer [here]") == 1
    later = Results(file, ABOUT)
    assert later.rows("points")["x1"] == {"unavailable": "no libnvinfer [here]"}
    later.measure("points", rows.of("x2"), Budget(60.0), quiet())
    assert later.rows("points") == {"x2": {"ms": 2.0}}


@pytest.mark.parametrize(
    "content", ["", "[]", '{"parts": {}}', json.dumps({"about": {**ABOUT, "device": "another"}})]
)
def test_results_of_something_else_are_not_gone_on_with(tmp_path: Path, content: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(content, "utf-8")
    with pytest.raises(InvalidInputError):
        Results(file, ABOUT)
    assert file.read_text("utf-8") == content


def test_results_of_another_machine_say_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    Results(file, ABOUT).save()
    with pytest.raises(InvalidInputError, match=r"another device; choose another file"):
        Results(file, {**ABOUT, "device": "another"})


def test_tables_have_a_kind_of_row_each_and_turn_where_they_are_wide() -> None:
    wide = {f"figure {number}": number for number in range(12)}
    rows: dict[str, Figures] = {
        "a x1": {"ms": 1.5, "quantiles": [1, 2]},
        "a x2": {"ms": 12345.6, "quantiles": [1, 2]},
        "tensorrt": {"unavailable": "no"},
        "2 cameras": wide,
    }
    console = Console(file=io.StringIO(), record=True, width=120)
    shown = list(tables(rows))
    for table in shown:
        console.print(table)
    assert [table.row_count for table in shown] == [2, 12]
    text = console.export_text()
    assert "12,346" in text
    assert "quantiles" not in text


def test_two_ways_take_turns_until_the_time_is_over() -> None:
    turns: list[str] = []

    def way(name: str, took_ns: int) -> int:
        turns.append(name)
        return took_ns

    first, second = alternating(lambda: way("a", 1), lambda: way("b", 2), 100, 0.0)
    assert first == [1] * RUNS_MIN
    assert second == [2] * RUNS_MIN
    assert turns == ["a", "b"] * (WARM_RUNS + RUNS_MIN)


def test_a_gain_is_over_batch_1_of_the_same_variant_and_provider() -> None:
    points: dict[str, Figures] = {
        "cuda s x1": {"pictures_hz": 100.0},
        "cuda s x4": {"pictures_hz": 250.0},
        "tensorrt s x4": {"pictures_hz": 900.0},
        "tensorrt": {"unavailable": "no"},
    }
    gains = {key: row.get("gain", "none") for key, row in with_gains(points).items()}
    assert gains == {
        "cuda s x1": 1.0, "cuda s x4": 2.5, "tensorrt s x4": None, "tensorrt": "none",
    }  # fmt: skip


def test_a_box_is_held_against_its_plan() -> None:
    plans = [[("small", 10.0), ("large", 10.0)], [("small", 10.0), ("small", 10.0)]]
    seen = {
        "sent": 80, "dropped": 10, "skipped": 1, "cpu_s": 0.4, "variants": {"small": 60},
        "answer_ns": [5_000_000] * 70, "behind_ns": [1_000_000] * 80,
    }  # fmt: skip
    found = figures(plans, [seen], {"small": 0.2, "large": 0.6}, seconds=4.0, box_cores=0.5)
    assert found["planned_hz"] == 20.0
    assert found["sent_hz"] == 20.0
    assert found["planned_accuracy"] == pytest.approx(0.3)
    assert found["seen_accuracy"] == pytest.approx(0.2)
    assert found["on_time"] == pytest.approx(60 / 80)
    assert found["cameras"] == pytest.approx(0.1)
    assert found["limit"] == ""


def test_what_else_than_the_box_was_the_limit_is_said() -> None:
    assert limit(busiest=0.5, behind_ms=2.0, used=1.0, cores=16) == ""
    assert "whole core" in limit(busiest=0.97, behind_ms=2.0, used=1.0, cores=16)
    assert "all cores" in limit(busiest=0.5, behind_ms=2.0, used=15.0, cores=16)
    assert "late themselves" in limit(busiest=0.5, behind_ms=60.0, used=1.0, cores=16)


def test_a_camera_has_its_picture_in_the_sizes_of_its_order() -> None:
    whole, small = (base64.b64encode(jpeg).decode() for jpeg in (b"whole", b"small"))
    order = Order(
        port=1, cameras=1, jpeg=whole, width_px=1280, height_px=720, frames_hz=1.0, window=1,
        sizes={"320x180": small},
    )  # fmt: skip
    assert pictures_of(order) == {(1280, 720): b"whole", (320, 180): b"small"}


def test_the_bundled_detector_in_half_precision_finds_almost_the_same(tmp_path: Path) -> None:
    family = load_zoo(bundled_folders()).family("street")
    half = halved(family, tmp_path / "half")
    files = [each.model_files[0].path for each in (family, half)]
    assert files[1].stat().st_size < 0.6 * files[0].stat().st_size
    canvas = np.random.default_rng(0).integers(0, 256, (1, 96, 128, 3), dtype=np.uint8)
    scores = []
    for file in files:
        session = open_session(file, "cpu", 1)
        scores.append(session.session.run(["scores"], {session.input_name: canvas})[0])
    assert 0 < np.abs(scores[0] - scores[1]).max() < 0.02
