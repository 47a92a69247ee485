"""Cameras that share an uplink: the link against its definition, and whole runs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.simulation.figures import figures
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from edgebox.simulation.shared_links import FairLink, Queueing, SimulatedSite
from edgebox.simulation.simulated_cameras import CameraClock, SimulatedCamera
from tests.link.test_shaping import traces
from tests.scheduling.scene import camera
from tests.simulation.scenes import scenario_text

pytestmark = pytest.mark.long

MS = 1_000_000
S = 1000 * MS

Frame = tuple[int, str, int]
"""When it is handed over, by whom, and its bytes."""
Carried = tuple[str, int, int]
"""Whose frame it was, when its first bit left by what was known then, when its last left."""

frames_of = st.lists(
    st.tuples(st.integers(0, S // 2), st.sampled_from("abc"), st.integers(1, 400_000)),
    min_size=1,
    max_size=12,
)
"""Gaps, whose, and bytes."""


def at_instants(gaps: Sequence[tuple[int, str, int]]) -> list[Frame]:
    out, now_ns = [], 0
    for gap_ns, who, size_bytes in gaps:
        now_ns += gap_ns
        out.append((now_ns, who, size_bytes))
    return out


def carried_fairly(trace: BandwidthTrace, frames: Sequence[Frame]) -> list[Carried]:
    """Return each frame's passage, in the order in which they were handed over."""
    link = FairLink(ShapedLink(trace, 0))
    starts_ns, left = [], dict[int, int]()

    def until(now_ns: int) -> None:
        while (at_ns := link.next_ns()) is not None and at_ns <= now_ns:
            left.update((frame, left_ns) for _, frame, left_ns in link.left(at_ns))

    for number, (now_ns, who, size_bytes) in enumerate(frames):
        until(now_ns)
        starts_ns.append(link.hand_over(now_ns, CameraId(who), number, size_bytes))
        left.update((frame, left_ns) for _, frame, left_ns in link.left(now_ns))
    until(10**18)
    return [(who, starts_ns[at], left[at]) for at, (_, who, _) in enumerate(frames)]


@given(trace=traces, gaps=frames_of)
def test_a_link_shared_fairly_is_never_idle_and_carries_every_byte(
    trace: BandwidthTrace, gaps: list[tuple[int, str, int]]
) -> None:
    frames = at_instants(gaps)
    one_queue = ShapedLink(trace, 0)
    queued = [one_queue.leaves_ns(now_ns, size_bytes) for now_ns, _, size_bytes in frames]
    fair = carried_fairly(trace, frames)
    # Work conserving: whoever's frames go first, the link is free at the same instants.
    arrivals = [now_ns for now_ns, _, _ in frames]
    for at, (now_ns, after_ns) in enumerate(pairwise([*arrivals, 10**18])):
        if queued[at] < after_ns:  # the queue was empty in between
            assert max(left_ns for _, _, left_ns in fair[: at + 1]) == pytest.approx(
                queued[at], abs=2
            )
        assert fair[at][2] >= now_ns
    for who in "abc":  # each camera's own frames stay in order
        own = [left_ns for name, _, left_ns in fair if name == who]
        assert own == sorted(own)


@given(trace=traces, gaps=frames_of)
def test_alone_on_a_shared_link_a_camera_has_it_to_itself(
    trace: BandwidthTrace, gaps: list[tuple[int, str, int]]
) -> None:
    frames = [(now_ns, "a", size_bytes) for now_ns, _, size_bytes in at_instants(gaps)]
    own = ShapedLink(trace, 0)
    alone = [
        ("a", own.free_ns(now_ns), own.leaves_ns(now_ns, size_bytes))
        for now_ns, _, size_bytes in frames
    ]
    for shared, expected in zip(carried_fairly(trace, frames), alone, strict=True):
        assert shared[1:] == pytest.approx(expected[1:], abs=2)


def fluid(rate_bps: float, frames: Sequence[Frame]) -> list[float]:
    """Return when each frame has left, by following every share from event to event."""
    left_bits = [size_bytes * 8.0 for _, _, size_bytes in frames]
    done: dict[int, float] = {}
    at_ns = 0.0
    while len(done) < len(frames):
        heads: dict[str, int] = {}
        for number, (now_ns, who, _) in enumerate(frames):
            if now_ns <= at_ns and number not in done:
                heads.setdefault(who, number)
        coming = min((now_ns for now_ns, _, _ in frames if now_ns > at_ns), default=float("inf"))
        if not heads:
            at_ns = coming
            continue
        share = rate_bps / 1e9 / len(heads)
        first = min(left_bits[number] for number in heads.values()) / share
        step_ns = min(first, coming - at_ns)
        for number in heads.values():
            left_bits[number] -= step_ns * share
        at_ns += step_ns
        for number in heads.values():
            if left_bits[number] < 1e-4:
                done[number] = at_ns
    return [done[number] for number in range(len(frames))]


@given(mbps=st.floats(0.5, 50), gaps=frames_of)
def test_all_that_have_something_to_send_get_the_same(
    mbps: float, gaps: list[tuple[int, str, int]]
) -> None:
    frames = at_instants(gaps)
    carried = carried_fairly(BandwidthTrace.constant(mbps), frames)
    expected = fluid(mbps * 1e6, frames)
    for (_, _, left_ns), by_definition in zip(carried, expected, strict=True):
        assert left_ns == pytest.approx(by_definition, abs=20)


def test_a_frame_that_comes_later_makes_one_under_way_leave_later() -> None:
    link = FairLink(ShapedLink(BandwidthTrace.constant(8.0), 0))
    gate, door = CameraId("gate"), CameraId("door")
    assert link.hand_over(0, gate, 1, 10_000) == 0
    assert link.next_ns() == 10 * MS
    assert link.hand_over(5 * MS, door, 2, 2_500) == 5 * MS
    assert link.next_ns() == 10 * MS  # the short one: 2,500 bytes at half the rate
    assert link.left(9 * MS) == []
    assert link.left(10 * MS) == [(door, 2, 10 * MS)]
    assert link.next_ns() == 12_500_000
    assert link.hand_over(11 * MS, gate, 3, 1_000) == 12_500_000  # behind its own
    assert link.left(20 * MS) == [(gate, 1, 12_500_000), (gate, 3, 13_500_000)]


def site_scenario(*more: str, site: str = "", cameras: int = 3, seconds: int = 20) -> Scenario:
    own = [f'name = "c{at}"\nslo_ms = 200\nrate_hz = 10' for at in range(cameras)]
    lines = [f'{camera}\nsite = "yard"' for camera in own]
    top = f"duration_s = {seconds}"
    sites = f'[[sites]]\nname = "yard"\n{site}\n'
    text = scenario_text(*lines, *more, top=top) + sites
    return parse_scenario(text, "test.toml", lambda name: name)


def test_a_site_is_read() -> None:
    scenario = site_scenario(site='mbps = [4, 8]\nqueueing = "fair"\ntrace_start_s = 1')
    site = SimulatedSite(SiteId("yard"), BandwidthTrace.stepwise([4, 8], 1), Queueing.FAIR, S)
    for spec in scenario.cameras:
        assert (spec.site, spec.camera.site) == (site, "yard")
    undeclared = site_scenario(site="mbps = 8\ndeclared = false").cameras[0]
    assert undeclared.camera.site is None
    assert undeclared.site is not None
    assert undeclared.site.queueing is Queueing.FIFO


@pytest.mark.parametrize(
    ("more", "site", "complaint"),
    [
        ("", "", r"sites\[1\].mbps: give exactly one of mbps, trace"),
        ("", 'mbps = 3\nqueueing = "lifo"', r"queueing: must be one of fifo, fair, not 'lifo'"),
        ("", "mbps = 3\ndeclared = 1", r"sites\[1\].declared: must be true or false, not 1"),
        ("", "mbps = 3\nrtt_ms = 1", r"sites\[1\].rtt_ms: there is no such key"),
        ("", 'mbps = 3\n[[sites]]\nname = "yard"\nmbps = 1', r"there are two sites named 'yard'"),
        ('name = "x"\nslo_ms = 9\nrate_hz = 1\nsite = "barn"', "mbps = 3",
         r"cameras\[4\].site: there is no site named 'barn'"),
        ('name = "x"\nslo_ms = 9\nrate_hz = 1\nsite = "yard"\nmbps = 1', "mbps = 3",
         r"cameras\[4\].mbps: there is no such key"),
        ('name = "x"\nslo_ms = 9\nrate_hz = 1\nsite = "yard"\nclock = "none"',
         'mbps = 3\nqueueing = "fair"', r"clock: must be exchanged on a link shared fairly"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_site_is_named(more: str, site: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        site_scenario(*[more] if more else [], site=site)


def test_clocks_must_be_known_where_a_link_is_shared_fairly() -> None:
    trace = BandwidthTrace.constant(5)
    site = SimulatedSite(SiteId("yard"), trace, Queueing.FAIR)
    with pytest.raises(InvalidInputError, match="must exchange clocks"):
        SimulatedCamera(camera(), trace, clock=CameraClock.STAMPS, site=site)


@pytest.mark.parametrize("queueing", Queueing)
def test_a_run_repeats_and_its_counts_add_up(queueing: Queueing) -> None:
    scenario = site_scenario(site=f'mbps = [6, 1, 12]\nstep_s = 3\nqueueing = "{queueing}"')
    first, again = run_scenario(scenario), run_scenario(scenario)
    assert first.ended == again.ended
    for name, found in figures(first, scenario)["cameras"].items():
        dropped = sum(found["dropped"].values())
        assert found["captured"] == found["on_time"] + found["late"] + dropped
        assert found["captured"] == first.captured[CameraId(name)] > 150


@pytest.mark.parametrize("queueing", Queueing)
def test_a_camera_alone_at_its_site_runs_as_behind_a_link_of_its_own(queueing: Queueing) -> None:
    site = f'mbps = [6, 1, 12]\nstep_s = 3\nqueueing = "{queueing}"\ndeclared = false'
    shared = site_scenario(site=site, cameras=1)
    [spec] = shared.cameras
    own = replace(shared, cameras=(replace(spec, site=None),))
    of_shared, of_own = run_scenario(shared), run_scenario(own)
    assert figures(of_shared, shared) == figures(of_own, own)


def arrivals(report: Report) -> list[tuple[int, str, int]]:
    """Return (arrival, camera, bytes) of the frames that came, in their order."""
    requests = sorted((ended.request for ended in report.ended), key=lambda r: r.arrival_ns)
    return [(request.arrival_ns, request.camera, request.size_bytes) for request in requests]


@pytest.mark.parametrize("queueing", Queueing)
def test_cameras_of_a_site_carry_no_more_than_its_link_does(queueing: Queueing) -> None:
    scenario = site_scenario(site=f'mbps = 3\nqueueing = "{queueing}"')
    report = run_scenario(scenario)
    came = arrivals(report)
    bits = [0.0]
    for _, _, size_bytes in came:
        bits.append(bits[-1] + size_bytes * 8)
    # Over any stretch: what came, less the frames under way when it began.
    under_way = 3 * 2 * max(size_bytes for _, _, size_bytes in came) * 8
    for start in range(0, len(came), 10):
        for end in range(start + 1, len(came), 25):
            span_s = (came[end][0] - came[start][0]) / 1e9
            assert bits[end + 1] - bits[start + 1] <= 3e6 * span_s + under_way
    assert {name for _, name, _ in came} == {"c0", "c1", "c2"}


@pytest.mark.parametrize("queueing", Queueing)
def test_the_box_finds_out_who_shares_an_uplink_and_who_does_not(queueing: Queueing) -> None:
    site = f'made_up = "lte"\nqueueing = "{queueing}"\ndeclared = false'
    shared = site_scenario(site=site, cameras=3, seconds=40)
    found = {camera for _, camera, of in run_scenario(shared).sites if of == "(yard)"}
    assert found == {"c0", "c1", "c2"}
    separate = tuple(replace(spec, site=None, address="proxy") for spec in shared.cameras)
    assert run_scenario(replace(shared, cameras=separate)).sites == []
