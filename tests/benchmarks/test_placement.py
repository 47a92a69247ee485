"""The simulation of placement: what auto is worth on a poor link, and that it is repeatable."""

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.placement import MS, Camera, Figures, main
from edgebox.link.placement import PlacementMode
from edgebox.link.shaping import BandwidthTrace


def run(mbps: float, mode: PlacementMode) -> Figures:
    return Camera(BandwidthTrace.constant(mbps), mode, 300 * MS, 10.0, 1).run(60)


def test_auto_is_more_accurate_on_a_poor_link_and_leaves_frames_on_the_box_on_a_good_one() -> None:
    for mbps in (0.8, 1.5):
        never, auto = run(mbps, PlacementMode.NEVER), run(mbps, PlacementMode.AUTO)
        assert auto.accuracy > 1.2 * never.accuracy
        assert auto.on_time > never.on_time - 0.02
        assert auto.at_camera > 0.5
    assert run(20.0, PlacementMode.AUTO).at_camera == 0
    assert run(1.5, PlacementMode.ALWAYS).at_camera == 1
    assert run(1.5, PlacementMode.AUTO) == run(1.5, PlacementMode.AUTO)


def test_links_are_files_too(tmp_path: Path) -> None:
    trace = tmp_path / "link.csv"
    trace.write_text("at_s,mbps\n0,40\n10,20\n")
    done = CliRunner().invoke(main, [str(trace), "--share", "0.05", "--seconds", "20", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)["link.csv"]
    assert set(found) == {"never", "always", "auto"}
    assert found["never"]["frames"] == 200
