"""A real run beside a simulated one: traces, the relay, and what is refused."""

import asyncio
import random
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import links_network
from benchmarks.links_network import Loopback, Namespaces
from benchmarks.links_relay import Port, listen
from benchmarks.links_run import let_in_ns, write_config
from benchmarks.links_traces import STEP_MIN_NS, as_csv, begun_at, rate_changes
from edgebox.config.config_file import load
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.link.shaping import BandwidthTrace, ShapedLink, parse_trace
from edgebox.simulation.scenario import Scenario, parse_scenario
from tests.simulation.scenes import gate, scenario_text

MS = 1_000_000
S = 1000 * MS

traces = st.lists(
    st.tuples(st.integers(1, 3 * S), st.sampled_from([0.0, 1e5, 3e5, 2e6, 5e7])),
    min_size=1,
    max_size=6,
).filter(lambda steps: any(bps for _, bps in steps))


def trace_of(steps: list[tuple[int, float]]) -> BandwidthTrace:
    starts, at_ns = [], 0
    for length_ns, _ in steps:
        starts.append(at_ns)
        at_ns += length_ns
    return BandwidthTrace(tuple(starts), tuple(bps for _, bps in steps), at_ns)


def scenario(*cameras: str, top: str = "duration_s = 20") -> Scenario:
    return parse_scenario(scenario_text(*cameras, top=top), "test.toml", lambda name: name)


# -- traces --------------------------------------------------------------------------------------


@given(traces, st.integers(0, 20 * S), st.lists(st.integers(0, 20 * S), min_size=1))
def test_a_trace_that_begins_elsewhere_is_the_same_from_there_on(
    steps: list[tuple[int, float]], start_ns: int, instants: list[int]
) -> None:
    trace = trace_of(steps)
    moved = begun_at(trace, start_ns)
    assert moved.period_ns == trace.period_ns
    for at_ns in instants:
        assert moved.bps_at(at_ns) == trace.bps_at(start_ns + at_ns)


@given(traces.map(lambda steps: [(2 * length, bps) for length, bps in steps]))
def test_a_trace_file_is_the_trace(steps: list[tuple[int, float]]) -> None:
    trace = trace_of(steps)
    read = parse_trace(as_csv(trace), "a.csv")
    assert read.period_ns == trace.period_ns
    for start_ns, end_ns in pairwise((*trace.starts_ns, trace.period_ns)):
        assert read.bps_at(start_ns) == read.bps_at(end_ns - 1) == trace.bps_at(start_ns)


@given(traces, st.integers(0, 20 * S), st.sampled_from([1, 20 * MS, S]))
def test_a_real_link_carries_what_its_trace_says(
    steps: list[tuple[int, float]], start_ns: int, step_min_ns: int
) -> None:
    trace, until_ns = trace_of(steps), 8 * S
    if step_min_ns == 1:  # every step of its own
        until_ns = min(until_ns, 40 * trace.period_ns)
    changes = list(rate_changes(trace, start_ns, until_ns, step_min_ns))
    instants = [at_ns for at_ns, _ in changes]
    assert instants[0] == 0
    assert all(b - a >= step_min_ns for a, b in pairwise(instants))
    link = ShapedLink(trace, -start_ns)
    for (at_ns, bps), (end_ns, _) in pairwise(changes):
        assert bps == pytest.approx(link.mean_bps(at_ns, end_ns), rel=1e-3, abs=1)


def test_rates_change_when_the_trace_does_and_not_otherwise() -> None:
    trace = BandwidthTrace.per_second([4, 4, 1])
    assert list(rate_changes(trace, 0, 6 * S)) == [
        (0, 4e6), (2 * S, 1e6), (3 * S, 4e6), (5 * S, 1e6),
    ]  # fmt: skip
    assert list(rate_changes(trace, 1500 * MS, 2 * S))[:2] == [(0, 4e6), (500 * MS, 1e6)]
    assert list(rate_changes(BandwidthTrace.constant(3), 0, 60 * S)) == [(0, 3e6)]
    fine = BandwidthTrace.stepwise([1, 3] * 50, 0.001)
    [(at_ns, bps)] = rate_changes(fine, 0, S, STEP_MIN_NS)
    assert at_ns == 0
    assert bps == pytest.approx(2e6)


# -- the relay -----------------------------------------------------------------------------------


async def test_the_relay_delays_both_ways_keeps_the_order_and_lets_in_at_its_moment() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    box = await asyncio.start_server(echo, "127.0.0.1", 0)
    opens_ns = time.monotonic_ns() + 150 * MS
    port = Port("gate", "127.0.0.1", 0, 40 * MS, opens_ns)
    relay = await listen(port, box.sockets[0].getsockname()[:2])
    reader, writer = await asyncio.open_connection(*relay.sockets[0].getsockname()[:2])
    sent = random.Random(1).randbytes(300_000)
    writer.write(sent[:1])
    assert await reader.readexactly(1) == sent[:1]
    assert time.monotonic_ns() >= opens_ns + 80 * MS
    began_ns = time.monotonic_ns()
    writer.write(sent)
    writer.write_eof()
    assert await reader.read(-1) == sent
    assert time.monotonic_ns() - began_ns >= 80 * MS
    writer.close()
    relay.close()
    box.close()


# -- what a real run cannot be -------------------------------------------------------------------


def test_a_box_is_configured_as_the_scenario_says(tmp_path: Path) -> None:
    top = """
duration_s = 5
[policy]
batching = "adaptive"
bandwidth = "least"
[planner]
interval_ms = 250
utilisation_max = 0.6
uplink_utilisation_max = 0.7
rate_min_hz = 2
"""
    parsed = scenario(gate(), top=top)
    config = load(write_config(parsed, Loopback(), tmp_path, 2.5))
    assert (config.scheduler.batching, config.planner.bandwidth) == ("adaptive", "least")
    assert config.scheduler_parameters().planning_interval_ns == 250 * MS
    assert config.planning_parameters().uplink_utilisation_max == 0.7
    assert (config.executors[0].streams, config.inference.profile_s) == (1, 2.5)
    assert Path(config.storage.file).parent == tmp_path
    assert (config.server.host, config.server.port) == ("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("top", "complaint"),
    [
        ('[policy]\nbandwidth = "perfect"', "nobody knows a real link perfectly"),
        ('[policy]\nsender = "obedient"', "edgebox camera has no sender obedient"),
        ("[planner]\nupgrade_hold_ms = 9", "a box's configuration has only interval_ms,"),
        ("[planner]\nutilisation_upgrade = 0.5", "a box's configuration has only interval_ms,"),
    ],
)
def test_what_no_real_box_has_is_refused(top: str, complaint: str, tmp_path: Path) -> None:
    parsed = scenario(gate(), top=f"duration_s = 5\n{top}")
    with pytest.raises(InvalidInputError, match=complaint):
        write_config(parsed, Loopback(), tmp_path, 1)


def test_a_camera_is_let_in_so_that_its_first_picture_is_in_time() -> None:
    parsed = scenario(gate() + "\njoins_s = 2\nphase_ms = 30\nrtt_ms = 8")
    # Two round trips later, for the upgrade and the hello, it is where the simulator's is.
    assert let_in_ns(parsed.cameras[0]) + 2 * 8 * MS == 2 * S + 8 * MS + 30 * MS


def test_without_the_tools_tc_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why = links_network.why_not()
    assert why in ("network namespaces need root", "ip and tc of iproute2 cannot be found")


def test_there_are_not_networks_for_everybody() -> None:
    with pytest.raises(EdgeboxError, match="at most 256 uplinks"):
        Namespaces([f"gate-{at}" for at in range(257)])
    most = Namespaces([f"gate-{at}" for at in range(256)])
    assert most.relay_host("gate-255") == "10.201.255.1"
