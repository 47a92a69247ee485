"""One estimate for cameras that share an uplink, against links whose rate is known."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link import throughput_samples
from edgebox.link.bandwidth import NOISE_NS, BandwidthEstimate
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.link.site_estimates import SiteEstimates
from edgebox.link.throughput_samples import OPEN_MAX, Samples
from edgebox.simulation.shared_links import FairLink, Queueing

MS = 1_000_000
S = 1000 * MS
BASE_NS = 3 * MS

Frame = tuple[int, str, int]
"""When it is handed over, by whom, and its bytes."""


def carried(
    trace: BandwidthTrace, queueing: Queueing, frames: Sequence[Frame]
) -> list[tuple[int, str, int, int]]:
    """Return (arrival, camera, bytes, sent) of frames, in the order of their arrivals."""
    link = ShapedLink(trace, 0)
    if queueing is Queueing.FIFO:
        return [
            (link.leaves_ns(sent_ns, size_bytes) + BASE_NS, who, size_bytes, sent_ns)
            for sent_ns, who, size_bytes in frames
        ]
    fair, left = FairLink(link), dict[int, int]()
    for number, (sent_ns, who, size_bytes) in enumerate(frames):
        fair.hand_over(sent_ns, CameraId(who), number, size_bytes)
        left.update((frame, at_ns) for _, frame, at_ns in fair.left(sent_ns))
    left.update((frame, at_ns) for _, frame, at_ns in fair.left(10**15))
    passages = [
        (left[at] + BASE_NS, who, size_bytes, sent_ns)
        for at, (sent_ns, who, size_bytes) in enumerate(frames)
    ]
    return sorted(passages)


def streams(
    phases_ms: Sequence[float], size_bytes: int, rate_hz: float, seconds: float
) -> list[Frame]:
    """Return the frames of cameras of one rate, each from its own instant on."""
    frames = [
        (round((phase_ms / 1e3 + number / rate_hz) * S), f"c{at}", size_bytes)
        for at, phase_ms in enumerate(phases_ms)
        for number in range(round(seconds * rate_hz))
    ]
    return sorted(frames)


phases = st.lists(st.floats(0, 66), min_size=1, max_size=6)


@given(
    queueing=st.sampled_from(Queueing),
    mbps=st.floats(2, 50),
    filled=st.floats(0.2, 0.9),
    phases_ms=phases,
)
def test_on_a_constant_link_it_is_the_whole_links_rate_whoever_overlaps(
    queueing: Queueing, mbps: float, filled: float, phases_ms: list[float]
) -> None:
    size_bytes = round(mbps * 1e6 / 8 * filled / 15 / len(phases_ms))
    frames = streams(phases_ms, size_bytes, 15, 6)
    estimate = BandwidthEstimate(noise_ns=0)
    for arrival_ns, who, size, sent_ns in carried(BandwidthTrace.constant(mbps), queueing, frames):
        estimate.add(size, sent_ns, arrival_ns, BASE_NS, who)
        if arrival_ns > S:
            assert estimate.bps(arrival_ns) == pytest.approx(mbps * 1e6, rel=0.01)
    assert estimate.throughput_stability() == pytest.approx(1, abs=0.01)


@given(
    queueing=st.sampled_from(Queueing),
    phases_ms=phases,
    factor=st.floats(0.1, 0.7),
)
def test_it_follows_a_step_down_within_a_round_of_its_cameras(
    queueing: Queueing, phases_ms: list[float], factor: float
) -> None:
    trace = BandwidthTrace((0, 2 * S), (20e6, 20e6 * factor), 100 * S)
    # As much as fills half of what is left.
    size_bytes = round(20e6 * factor / 8 / 15 / len(phases_ms) / 2)
    estimate = BandwidthEstimate()
    wholly_after: set[str] = set()
    busy_ns = size_bytes * 8 / (20e6 * factor) * 1e9
    forgiven = busy_ns / max(busy_ns - NOISE_NS, busy_ns / 10)
    passages = carried(trace, queueing, streams(phases_ms, size_bytes, 15, 3))
    # A frame that was under way at the step makes one sample with those that overlap it.
    after_ns = max(at_ns for at_ns, _, _, sent_ns in passages if sent_ns < 2 * S)
    for arrival_ns, who, size, sent_ns in passages:
        estimate.add(size, sent_ns, arrival_ns, BASE_NS, who)
        if sent_ns >= max(2 * S, after_ns):
            if len(wholly_after) == len(phases_ms):
                believed = estimate.bps(arrival_ns)
                assert believed is not None
                assert believed <= 20e6 * factor * forgiven * 1.01
            wholly_after.add(who)
    assert len(wholly_after) == len(phases_ms)


def test_frames_that_share_a_link_do_not_make_it_look_slow() -> None:
    frames = streams((0, 0, 1, 2), 20_000, 15, 4)
    own, shared = BandwidthEstimate(), BandwidthEstimate()
    for arrival_ns, who, size, sent_ns in carried(
        BandwidthTrace.constant(20), Queueing.FAIR, frames
    ):
        shared.add(size, sent_ns, arrival_ns, BASE_NS, who)
        if who == "c0":
            own.add(size, sent_ns, arrival_ns, BASE_NS)
    of_own, of_shared = own.bps(4 * S), shared.bps(4 * S)
    assert of_own is not None
    assert of_shared is not None
    assert of_own < 8e6
    assert of_shared == pytest.approx(20e6, rel=0.01)


def test_cameras_of_a_site_share_an_estimate_and_others_do_not() -> None:
    sites = SiteEstimates(BandwidthEstimate)
    yard = SiteId("yard")
    gate = sites.join(CameraId("gate"), yard)
    door = sites.join(CameraId("door"), yard)
    alone = sites.join(CameraId("alone"), None)
    gate.add(10_000, 0, 10 * MS)
    assert door.bps(20 * MS) == gate.bps(20 * MS) == pytest.approx(8e6)
    assert door.newest() == (80_000, 10 * MS)
    assert alone.bps(20 * MS) is None
    sites.leave(CameraId("gate"))
    again = sites.join(CameraId("gate"), yard)
    assert again.bps(20 * MS) == pytest.approx(8e6)  # the other one had stayed
    for camera in ("gate", "door"):
        sites.leave(CameraId(camera))
    assert sites.join(CameraId("gate"), yard).bps(20 * MS) is None


def test_a_camera_that_left_is_waited_for_no_more() -> None:
    sites = SiteEstimates(BandwidthEstimate)
    yard = SiteId("yard")
    gate = sites.join(CameraId("gate"), yard)
    door = sites.join(CameraId("door"), yard)
    for at in range(10):
        gate.add(25_000, at * 100 * MS, at * 100 * MS + 20 * MS)
        door.add(25_000, at * 100 * MS, at * 100 * MS + 40 * MS)
    assert gate.bps(S) == pytest.approx(10e6)
    sites.leave(CameraId("door"))
    gate.add(25_000, S, S + 100 * MS)
    believed = gate.bps(S + 100 * MS)
    assert believed is not None
    assert believed <= 25_000 * 8 / (100 * MS - NOISE_NS) * 1e9 * 1.001


def test_a_camera_that_is_silent_is_waited_for_no_longer_than_the_window() -> None:
    estimate, size_bytes = BandwidthEstimate(), 50_000
    took_ns = 20 * MS  # at 20 Mbit/s
    for at in range(5):
        sent_ns = at * 100 * MS
        estimate.add(size_bytes, sent_ns, sent_ns + took_ns, 0, "silent")
        estimate.add(size_bytes, sent_ns, sent_ns + 2 * took_ns, 0, "door")
    estimate.add(25_000, 500 * MS, 700 * MS, 0, "door")
    for at in range(30):
        sent_ns = S + at * 100 * MS
        estimate.add(size_bytes, sent_ns, sent_ns + took_ns, 0, "door")
    assert estimate.bps(sent_ns + took_ns) == pytest.approx(20e6, rel=0.01)


@given(
    silent=st.integers(1, 3),
    frames=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=5, max_size=60),
)
def test_open_samples_are_no_older_than_the_window(
    silent: int, frames: list[tuple[int, int]]
) -> None:
    """However many cameras fall silent."""
    samples, now_ns = Samples(S), 0
    for at in range(silent):
        samples.add(f"c{at}", 10_000, 0, MS, 0)
    for pause_ms, took_ms in frames:
        now_ns += pause_ms * MS
        samples.add("door", 10_000, now_ns, now_ns + took_ms * MS, 0)
        now_ns += took_ms * MS
        assert all(sample.end_ns > now_ns - S for sample in samples.open())


def test_only_so_many_samples_are_open_however_many_frames_come() -> None:
    samples = Samples(S)
    samples.add("b", 100, 0, 100_000, 0)
    count, settled = 0, 0
    for at in range(1, 3 * OPEN_MAX):
        done, _ = samples.add("a", 100, at * 200_000, at * 200_000 + 100_000, 0)
        settled += len(done)
        count = max(count, len(samples.open()))
    assert count == OPEN_MAX
    assert settled


def test_a_question_looks_at_no_more_cameras_than_decide_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    is_due = throughput_samples._Last.next_is_due

    def counted(of: throughput_samples._Last, at_ns: int) -> bool:
        nonlocal asked
        asked += 1
        return is_due(of, at_ns)

    monkeypatch.setattr(throughput_samples._Last, "next_is_due", counted)
    rng, cameras, free_ns = random.Random(1), 200, 0
    estimate = BandwidthEstimate()
    sent = sorted(
        (round((rng.random() + at) * 200 * MS), f"c{camera}")
        for camera in range(cameras)
        for at in range(8)
        if rng.random() > 0.3
    )
    for sent_ns, camera in sent:
        free_ns = max(free_ns, sent_ns) + MS // 2
        estimate.add(10_000, sent_ns, free_ns, 0, camera)
        assert estimate.bps(free_ns)
    assert len(estimate._sampling.open()) > 64
    assert 0 < asked < 4 * cameras * len(sent)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(1, 9)), max_size=40))
def test_the_bound_of_an_open_sample_counts_every_camera_that_may_have_sent(
    frames: list[tuple[int, int, int]],
) -> None:
    samples, now_ns = Samples(S), 0
    for camera, pause_ms, kilobytes in frames:
        sent_ns = now_ns + pause_ms * MS
        now_ns = sent_ns + 5 * MS
        samples.add(f"c{camera}", 1_000 * kilobytes, sent_ns, now_ns, 0)
    for sample in samples.open():
        unknown = [
            min(last.bits, sample.bits)
            for camera, last in samples._last.items()
            if camera not in sample.cameras
            and samples._newest_ns - S < last.arrival_ns <= sample.end_ns
            and last.next_is_due(sample.end_ns)
        ]
        most = sample.bits + sum(unknown)
        assert samples.carried_less(sample, most + 1) == most
        assert samples.carried_less(sample, most) is None


def test_a_site_that_is_formed_knows_what_its_cameras_frames_say_together() -> None:
    """Apart, each camera seemed to have half of the link."""
    sites, yard = SiteEstimates(BandwidthEstimate), SiteId("yard")
    names = ("gate", "door")
    separate = [sites.join(CameraId(name), None) for name in names]
    for at in range(30):
        sent_ns = at * 100 * MS
        for estimate in separate:
            estimate.add(25_000, sent_ns, sent_ns + 20 * MS)
    end_ns = sent_ns + 20 * MS
    assert [round((each.bps(end_ns) or 0) / 1e6) for each in separate] == [10, 10]
    together = [sites.join(CameraId(name), yard) for name in names]
    for member in together:
        assert member.bps(end_ns) == pytest.approx(20e6, rel=0.01)
    for member in together:
        member.add(25_000, end_ns + 100 * MS, end_ns + 120 * MS)
    assert together[0].newest() == together[1].newest()
    assert together[0].bps(end_ns + 120 * MS) == pytest.approx(20e6, rel=0.01)


def test_a_camera_that_leaves_its_site_begins_with_what_the_site_knew() -> None:
    sites, yard = SiteEstimates(BandwidthEstimate), SiteId("yard")
    gate, door = (sites.join(CameraId(name), yard) for name in ("gate", "door"))
    for at in range(100):
        sent_ns = at * 100 * MS
        gate.add(25_000, sent_ns, sent_ns + 20 * MS)
        door.add(25_000, sent_ns, sent_ns + 20 * MS)
    end_ns = sent_ns + 20 * MS
    alone = sites.join(CameraId("gate"), None)
    assert alone.bps(end_ns) == door.bps(end_ns) == pytest.approx(20e6, rel=0.01)
    assert alone.throughput_stability() == door.throughput_stability() == pytest.approx(1)
    believed = door.bps(end_ns + 200 * MS)
    alone.add(25_000, end_ns, end_ns + 200 * MS)
    assert alone.bps(end_ns + 200 * MS) == pytest.approx(1e6, rel=0.1)
    assert door.bps(end_ns + 200 * MS) == believed


def test_cameras_whose_site_is_found_out_stay_measured() -> None:
    sites, scene = SiteEstimates(BandwidthEstimate), streams((0, 3), 70_000, 15, 60)
    estimates = {name: sites.join(CameraId(name), None, "198.51.100.7") for name in ("c0", "c1")}
    rng = random.Random(1)
    frames = [(at, who, round(size * rng.uniform(0.5, 1.1))) for at, who, size in scene]
    found = False
    for arrival_ns, who, size, sent_ns in carried(
        BandwidthTrace.constant(20), Queueing.FIFO, frames
    ):
        estimates[who].add(size, sent_ns, arrival_ns, BASE_NS)
        for camera, site, estimate in sites.take_updates():
            found |= site is not None
            estimates[camera] = estimate
            assert estimate.bps(arrival_ns) == pytest.approx(20e6, rel=0.05)
    assert found


def test_cameras_that_enter_a_site_together_make_its_estimate_anew_once() -> None:
    made = []

    def make() -> BandwidthEstimate:
        made.append(BandwidthEstimate())
        return made[-1]

    sites, names = SiteEstimates(make), [f"c{at}" for at in range(6)]
    estimates = {name: sites.join(CameraId(name), None, "198.51.100.7") for name in names}
    rng = random.Random(1)
    scene = streams([3 * at for at in range(6)], 24_000, 15, 60)
    frames = [(at, who, round(size * rng.uniform(0.5, 1.1))) for at, who, size in scene]
    entered, most = set(), 0
    for arrival_ns, who, size, sent_ns in carried(
        BandwidthTrace.constant(20), Queueing.FIFO, frames
    ):
        estimates[who].add(size, sent_ns, arrival_ns, BASE_NS)
        before, news = len(made), sites.take_updates()
        entering = [camera for camera, site, _ in news if site is not None]
        assert len(made) - before <= len({site for _, site, _ in news if site is not None})
        entered |= {*entering}
        most = max(most, len(entering))
        estimates |= {camera: estimate for camera, _, estimate in news}
    assert entered == {*names}
    assert most > 1
