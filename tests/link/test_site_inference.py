"""Who shares an uplink, found out from frames over links of which it is known."""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.busy_sites import Stall, read_late, stalls
from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.shaping import BandwidthTrace
from edgebox.link.site_inference import SiteInference
from edgebox.simulation.shared_links import Queueing
from tests.link.test_site_estimates import BASE_NS, S, carried

ADDRESS = "198.51.100.7"


@dataclass
class Scene:
    """Cameras of one address that now and then change their size, as cameras do."""

    rng: random.Random
    names: Sequence[str]
    mbps: float = 20.0
    filled: float = 0.8
    seconds: int = 60

    def frames(self) -> list[tuple[int, str, int]]:
        """Return (sent, camera, bytes), by instant."""
        usual = self.mbps * 1e6 / 8 * self.filled / 15 / len(self.names)
        out = []
        for name in self.names:
            phase_s, size = self.rng.random() * 0.2 / 15, usual  # so that they overlap
            for number in range(self.seconds * 15):
                if self.rng.random() < 0.05:
                    size = usual * self.rng.uniform(0.5, 1.5)
                size_bytes = round(size * self.rng.lognormvariate(0, 0.05))
                out.append((round((phase_s + number / 15) * S), name, size_bytes))
        return sorted(out)


def inferred(
    arrivals: Sequence[tuple[int, str, int, int]],
    names: Sequence[str],
    address: str = ADDRESS,
    stalled: Sequence[Stall] = (),
) -> tuple[SiteInference, set[str], dict[CameraId, SiteId]]:
    """Tell of frames in the order of their arrivals, and of stalls as they end.

    Return also whoever was ever of a site, and the sites at the end.
    """
    waiting = deque(stalled)
    inference, ever, sites = SiteInference(), set[str](), dict[CameraId, SiteId]()
    for name in names:
        inference.opened(CameraId(name), address)
    for arrival_ns, name, size_bytes, sent_ns in sorted(arrivals):
        while waiting and waiting[0][1] <= arrival_ns:
            inference.stalled(*waiting.popleft())
        inference.add(CameraId(name), size_bytes, sent_ns + BASE_NS, arrival_ns)
        for camera, site in inference.take_updates().items():
            sites.pop(camera, None)
            if site is not None:
                sites[camera] = site
        ever |= sites.keys()
    return inference, ever, sites


def one_link(scene: Scene, queueing: Queueing) -> list[tuple[int, str, int, int]]:
    return carried(BandwidthTrace.constant(scene.mbps), queueing, scene.frames())


def own_links(scene: Scene, traces: Sequence[BandwidthTrace]) -> list[tuple[int, str, int, int]]:
    frames = scene.frames()
    return [
        passage
        for name, trace in zip(scene.names, traces, strict=True)
        for passage in carried(trace, Queueing.FIFO, [each for each in frames if each[1] == name])
    ]


def swinging(rng: random.Random, mbps: float) -> BandwidthTrace:
    return BandwidthTrace.per_second([mbps * rng.lognormvariate(0, 0.4) for _ in range(60)])


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("queueing", Queueing)
def test_cameras_that_share_an_uplink_are_found(queueing: Queueing, seed: int, count: int) -> None:
    scene = Scene(random.Random(seed), [f"c{at}" for at in range(count)])
    *_, sites = inferred(one_link(scene, queueing), scene.names)
    assert sites == dict.fromkeys(scene.names, f"({ADDRESS})")


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), swings=st.booleans(), count=st.integers(2, 4))
def test_cameras_behind_a_proxy_with_links_of_their_own_are_not(
    seed: int, swings: bool, count: int
) -> None:
    rng = random.Random(seed)
    scene = Scene(rng, [f"c{at}" for at in range(count)])
    part = scene.mbps / count
    traces = [swinging(rng, part) if swings else BandwidthTrace.constant(part) for _ in scene.names]
    _, ever, _ = inferred(own_links(scene, traces), scene.names)
    assert not ever


def test_a_camera_beside_a_site_of_the_same_address_is_left_out() -> None:
    rng = random.Random(4)
    scene = Scene(rng, ["c0", "c1", "c2"])
    alone = Scene(rng, ["alone"], mbps=6)
    passages = one_link(scene, Queueing.FIFO)
    passages += own_links(alone, [BandwidthTrace.constant(6)])
    *_, sites = inferred(passages, [*scene.names, *alone.names])
    assert sites == dict.fromkeys(scene.names, f"({ADDRESS})")


def test_a_link_much_faster_than_its_frames_decides_nothing() -> None:
    scene = Scene(random.Random(1), ["c0", "c1", "c2", "c3"], mbps=1000, filled=0.02)
    _, ever, _ = inferred(one_link(scene, Queueing.FIFO), scene.names)
    assert not ever


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("mbps", "filled", "share", "mean_ms"),
    [(1000, 0.02, 0.2, 15), (1000, 0.02, 0.4, 40), (40, 0.8, 0.2, 15), (10, 2.0, 0.4, 40)],
)
def test_a_busy_box_does_not_make_links_look_shared(
    mbps: float, filled: float, share: float, mean_ms: float, seed: int
) -> None:
    """Frames of all cameras look long and overlap where the box reads nothing for some time."""
    rng = random.Random(seed)
    scene = Scene(rng, ["c0", "c1", "c2", "c3"], mbps=mbps, filled=filled)
    at = stalls(rng, share, mean_ms, 60)
    passages = own_links(scene, [BandwidthTrace.constant(mbps)] * 4)
    _, ever, _ = inferred(read_late(passages, at), scene.names, stalled=at)
    assert not ever


@pytest.mark.parametrize("queueing", Queueing)
def test_a_shared_uplink_is_found_by_a_busy_box(queueing: Queueing) -> None:
    rng = random.Random(3)
    scene = Scene(rng, ["c0", "c1", "c2", "c3"], filled=0.5)
    at = stalls(rng, 0.2, 15, 60)
    passages = read_late(one_link(scene, queueing), at)
    *_, sites = inferred(passages, scene.names, stalled=at)
    assert sites == dict.fromkeys(scene.names, f"({ADDRESS})")


@pytest.mark.parametrize("mbps", [40, 1000])
def test_stalls_that_nobody_notices_join_no_fast_links(mbps: float) -> None:
    """A time that no prediction explains is no evidence: another machine's stalls are not seen."""
    rng = random.Random(6)
    scene = Scene(rng, ["c0", "c1", "c2", "c3"], mbps=mbps, filled=0.02)
    passages = own_links(scene, [BandwidthTrace.constant(mbps)] * 4)
    _, ever, _ = inferred(read_late(passages, stalls(rng, 0.4, 40, 60)), scene.names)
    assert not ever


def test_cameras_of_different_addresses_are_never_one_site() -> None:
    scene = Scene(random.Random(1), ["c0", "c1"])
    inference = SiteInference()
    for name in scene.names:
        inference.opened(CameraId(name), name)
    for arrival_ns, name, size_bytes, sent_ns in one_link(scene, Queueing.FIFO):
        inference.add(CameraId(name), size_bytes, sent_ns + BASE_NS, arrival_ns)
    assert inference.take_updates() == {}


def test_who_is_left_alone_is_of_no_site_any_more() -> None:
    scene = Scene(random.Random(1), ["c0", "c1"])
    inference, ever, _ = inferred(one_link(scene, Queueing.FIFO), scene.names)
    assert ever == {"c0", "c1"}
    inference.closed(CameraId("c0"))
    assert inference.take_updates() == {"c1": None}
    inference.closed(CameraId("c1"))
    assert inference.take_updates() == {}


def test_cameras_that_get_links_of_their_own_are_parted() -> None:
    rng = random.Random(5)
    scene = Scene(rng, ["c0", "c1"])
    shared = one_link(scene, Queueing.FIFO)
    shift_ns = shared[-1][0] + S
    own = own_links(scene, [BandwidthTrace.constant(10)] * 2)
    later = [(at + shift_ns, name, size, sent + shift_ns) for at, name, size, sent in own]
    _, ever, sites = inferred([*shared, *later], scene.names)
    assert ever == {"c0", "c1"}
    assert sites == {}
