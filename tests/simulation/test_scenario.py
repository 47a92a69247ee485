"""What a scenario file means, and what is said of a wrong one."""

import random

import pytest

from benchmarks.adaptation import FOLDER, SETTINGS, scenario_files
from edgebox.domain.errors import InvalidInputError
from edgebox.link.shaping import BandwidthTrace, lte_trace
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from edgebox.simulation.senders import SenderKind
from tests.simulation.scenes import gate, scenario_text

MS = 1_000_000
S = 1000 * MS
FILES = {
    "slow.txt": "2\n1\n",
    "lab.csv": "at_s,mbps\n0,5\n2,1\n",
    "cell.up": "1\n2\n",
    "bad.txt": "x",
}


def parse(text: str, seed: int | None = None) -> Scenario:
    return parse_scenario(text, "plan.toml", FILES.__getitem__, seed)


def with_camera(*lines: str, top: str = "duration_s = 20") -> str:
    return scenario_text("\n".join(['name = "a"', "slo_ms = 100", "rate_hz = 5", *lines]), top=top)


def test_what_is_not_said_has_a_default() -> None:
    scenario = parse(with_camera("mbps = 3"))
    [spec] = scenario.cameras
    assert (spec.camera.family, spec.camera.app) == ("default", "default")
    assert (spec.camera.width_px, spec.camera.height_px) == (1280, 720)
    assert spec.trace == BandwidthTrace.constant(3)
    assert 0 <= spec.phase_ns < 200 * MS
    assert scenario.policy.bandwidth == "cautious"
    assert scenario.hardware is not None
    [profiles] = scenario.hardware.profiles.values()
    assert profiles[0].quantile_ns(2, 0.99) == 5 * MS
    assert profiles[0].quantile_ns(1, 0.5) == 0.9 * 4 * MS


def test_everything_can_be_said() -> None:
    top = """
duration_s = 30
warmup_s = 2
seed = 9
[policy]
batching = "adaptive"
bandwidth = "least"
sender = "obedient"
[planner]
interval_ms = 250
utilisation_max = 0.6
uplink_utilisation_max = 0.7
admission = "refuse"
upgrade_hold_ms = 1000
[box]
prepare_ms = [1, 2]
planning_ms = 3
slowdown = 1.5
"""
    scenario = parse(
        with_camera(
            "mbps = [4, 2]", "step_s = 5", "count = 3", "joins_s = 1", "joins_apart_s = 0.5",
            "leaves_s = 20", "rtt_ms = 30", "jitter_ms = 4", "phase_ms = 7", "trace_start_s = 6",
            "width_px = 640", "height_px = 480", "min_accuracy = 0.4", 'app = "doors"',
            "min_rate_hz = 2",
            "encode_ms = [3, 6]",
            "bytes_per_pixel = 0.5", "bytes_exponent = 0.2", "bytes_spread = 0.1",
            top=top,
        )
    )  # fmt: skip
    assert [spec.camera.id for spec in scenario.cameras] == ["a-1", "a-2", "a-3"]
    assert [spec.opens_ns for spec in scenario.cameras] == [S, S + S // 2, 2 * S]
    last = scenario.cameras[-1]
    assert (last.phase_ns, last.trace_start_ns, last.closes_ns) == (7 * MS, 6 * S, 20 * S)
    assert last.trace.period_ns == 10 * S
    assert (last.rtt_ns, last.jitter_ns) == (30 * MS, 4 * MS)
    assert (last.camera.min_accuracy, last.camera.min_rate_hz) == (0.4, 2)
    assert last.encode_ns == (3 * MS, 6 * MS)
    assert (scenario.policy.batching, scenario.policy.sender) == ("adaptive", SenderKind.OBEDIENT)
    assert scenario.scheduling.planning_interval_ns == 250 * MS
    assert (scenario.planning.utilisation_max, scenario.planning.uplink_utilisation_max) == (
        0.6,
        0.7,
    )
    assert scenario.planning.utilisation_upgrade == pytest.approx(0.6 * 84 / 90)
    assert scenario.planning.cycle_utilisation_max == 0.6
    assert scenario.costs.prepare_ns == (MS, 2 * MS)
    assert scenario.refuses
    assert scenario.costs.slowdown == 1.5


def test_planning_takes_what_is_told_or_what_is_measured() -> None:
    assert parse(with_camera("mbps = 4")).costs.planning_ns is None
    given = parse(with_camera("mbps = 4", top="duration_s = 1\n[box]\nplanning_ms = 3"))
    assert (given.costs.planning_ns, given.costs.planning_measured) == (3 * MS, False)
    top = 'duration_s = 1\n[box]\nplanning_ms = "measured"'
    measured = parse(with_camera("mbps = 4", top=top))
    assert (measured.costs.planning_ns, measured.costs.planning_measured) == (None, True)
    with pytest.raises(InvalidInputError, match="no clock"):
        run_scenario(measured)
    assert run_scenario(measured, planning_clock_ns=lambda: 0).captured.total() > 0
    with pytest.raises(InvalidInputError, match="planning_ms"):
        parse(with_camera("mbps = 4", top=top.replace("measured", "guessed")))


def test_traces_come_from_files_in_three_formats_or_are_made_up() -> None:
    def trace(*lines: str) -> BandwidthTrace:
        return parse(with_camera(*lines)).cameras[0].trace

    assert trace('trace = "slow.txt"', "step_s = 20") == BandwidthTrace.stepwise([2, 1], 20)
    assert trace('trace = "lab.csv"').rates_bps == (5e6, 1e6)
    assert trace('trace = "cell.up"').rates_bps == (12e6,)
    packets = trace('trace = "slow.txt"', 'trace_format = "mbps"')
    assert packets == BandwidthTrace.per_second([2, 1])
    assert trace('made_up = "lte"', "made_up_seed = 4") == lte_trace(random.Random(4))


def test_the_seed_moves_what_is_drawn() -> None:
    text = with_camera("mbps = [1, 2, 3, 4]", 'trace_start_s = "random"')
    first, again, other = parse(text, 1), parse(text, 1), parse(text, 2)
    assert first == again
    assert first.cameras[0].trace_start_ns != other.cameras[0].trace_start_ns
    assert first.cameras[0].phase_ns != other.cameras[0].phase_ns
    assert other.seed == 2


def test_a_cameras_pictures_may_be_other_work_than_the_profiles() -> None:
    def work(*lines: str) -> tuple[float, ...]:
        return parse(with_camera("mbps = 3", *lines)).cameras[0].work

    assert work() == ()
    assert work("work = 0.25") == (0.25,) * 9
    nine = (0.1, 0.2, 0.3, 0.4, 1, 2, 3, 4, 5)
    assert work(f"work = {list(nine)}") == nine


def test_executors_may_differ() -> None:
    text = (
        with_camera("mbps = 3")
        + """
[[executors]]
name = "slow"
times = 2.5
slowdown = 1.5
variants = ["s-128"]
"""
    )
    hardware = parse(text).hardware
    assert hardware is not None
    [profile] = hardware.profiles[list(hardware.profiles)[1]]
    assert profile.variant == "s-128"
    assert profile.quantile_ns(1, 0.5) == 10 * MS
    assert list(hardware.slowdown.values()) == [1.0, 1.5]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("duration_s = ", r"^plan.toml:1: is not valid TOML"),
        ("", r"^plan.toml:1: duration_s: is missing"),
        ("duration_s = 5", r"^plan.toml:1: executors: there must be \[\[executors\]\]"),
        (with_camera("mbps = 3", top="duration_s = true"),
         r"^plan.toml:1: duration_s: must be a number above 0 and at most 86400, not true"),
        (with_camera("mbps = 3", top="duration_s = 5\nspeed = 3"),
         r"^plan.toml:2: speed: there is no such key \(there are: box, cameras,"),
        (with_camera("mbps = 3", "fps = 5"), r"^plan.toml:\d+: cameras\[1\].fps: there is no such"),
        (with_camera("mbps = 3", top='duration_s = 5\n[policy]\nbandwidth = "best"'),
         r"^plan.toml:3: policy.bandwidth: must be one of cautious, harmonic, last, least, perf"),
        (with_camera("mbps = 3", top="duration_s = 5\n[planner]\nuplink_utilisation_max = 2"),
         r"^plan.toml:3: planner.uplink_utilisation_max: must be a number from 0.05 to 1, not 2"),
        (with_camera(), r"cameras\[1\].mbps: give exactly one of mbps, trace \(a file\) and"),
        (with_camera("mbps = 3", 'trace = "slow.txt"'), r"cameras\[1\].mbps: give exactly one of"),
        (with_camera("mbps = [0, 0]"), r"mbps: a link that is 0 throughout carries nothing"),
        (with_camera('mbps = [1, "a"]'), r"mbps\[2\]: must be a number from 0 to 1e\+06, not 'a'"),
        (with_camera('trace = "bad.txt"'), r"^bad.txt:1: expected a number"),
        (with_camera("mbps = 3", "joins_s = 5", "leaves_s = 4"), r"leaves_s: must be after joins"),
        (with_camera("mbps = 3", 'family = "x"'), r"family: there is no variant of a family named"),
        (scenario_text(gate("a"), gate("a")), r"cameras: there are two cameras named 'a'"),
        (scenario_text(top="duration_s = 5"), r"cameras: there must be at least one \[\[cameras"),
        (with_camera("mbps = 3", "encode_ms = [5, 4]"),
         r"^plan.toml:\d+: cameras\[1\].encode_ms: the first must not be above the second"),
        (with_camera("mbps = 3", "work = 0"),
         r"^plan.toml:\d+: cameras\[1\].work: must be a number from 0.01 to 100, not 0"),
        (with_camera("mbps = 3", "work = [1, 2]"),
         r"^plan.toml:\d+: cameras\[1\].work: must be a list of 9 numbers"),
        (with_camera("mbps = 3", "work = [1, 1, 1, 1, 2, 1, 1, 1, 1]"),
         r"^plan.toml:\d+: cameras\[1\].work: must rise"),
        (with_camera("mbps = 3", "count = 2.5"), r"count: must be a whole number from 1 to 10000"),
        (with_camera("mbps = 3").replace("{ 1 = 4,", "{ 0 = 4,"),
         r"^plan.toml:\d+: variants\[1\].batch_ms.0: a batch size must be a whole number from 1"),
        (with_camera("mbps = 3").replace("1 = 4,", "1 = [1, 2],"), r"must be a list of 9 numbers"),
        (with_camera("mbps = 3").replace('"s-256"', '"s-128"'), r"there are two variants named"),
        (with_camera("mbps = 3", top='duration_s = 5\npolicy = "edf"'), r"policy: must be a table"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_file_line_and_key(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint) as raised:
        parse(text)
    assert "\n" not in str(raised.value)


def test_the_line_named_is_the_keys_own() -> None:
    text = with_camera("mbps = 3", "rtt_ms = -1")
    expected = text.splitlines().index("rtt_ms = -1") + 1
    with pytest.raises(InvalidInputError, match=rf"^plan.toml:{expected}: cameras\[1\].rtt_ms: "):
        parse(text)


def test_the_benchmarks_files_are_what_it_writes_and_can_be_read() -> None:
    files = scenario_files()
    assert len(SETTINGS) == 18
    for name, text in files.items():
        assert (FOLDER / name).read_text("utf-8") == text
    for setting in SETTINGS:
        scenario = parse_scenario(files[f"{setting}.toml"], str(setting), lambda name: files[name])
        assert len(scenario.cameras) == setting.cameras
        assert scenario.hardware is not None
        assert len(scenario.hardware.variants) == 16
