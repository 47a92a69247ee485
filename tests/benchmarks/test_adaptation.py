"""The Jellyfish that edgebox is compared with is as good as its paper says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.adaptation import JELLYFISH, MADE_UP, measure
from benchmarks.adaptation_jellyfish import READINGS, ErrorFilter, JellyfishClient, Reading
from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.link.bandwidth import message_bytes
from edgebox.link.sender import Send
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from tests.scheduling.scene import camera

MS = 1_000_000
S = 1000 * MS
RATE_HZ = 25
BYTES_PER_PIXEL = 0.4


def waiting_after_a_fall(reading: Reading, mbps: list[float], seconds: int) -> list[float]:
    """Return how long, in ms, each frame waits for those before it; a trace has a rate a second."""
    client = JellyfishClient(camera(rate_hz=RATE_HZ), reading)
    client.advised(Advice(VariantName("v"), 608, 342, RATE_HZ, 85, 0, ""))
    link = ShapedLink(BandwidthTrace.per_second(mbps), 0)
    acks: list[tuple[int, int]] = []
    out = []
    for frame in range(seconds * RATE_HZ):
        now_ns = frame * S // RATE_HZ
        while acks and acks[0][0] <= now_ns:
            at_ns, acked = acks.pop(0)
            client.acknowledged(acked, at_ns, MS)
        [decision] = client.captured(frame, now_ns, now_ns)
        assert isinstance(decision, Send)
        pixels = decision.width_px * decision.height_px
        free_ns = link.free_ns(now_ns)
        out.append((free_ns - now_ns) / MS)
        size_bytes = round(message_bytes(BYTES_PER_PIXEL, pixels))
        client.encoded(frame, size_bytes, pixels, free_ns)
        acks.append((link.leaves_ns(now_ns, size_bytes) + MS, frame))
    return out


def test_a_queue_that_a_fall_of_the_link_left_drains() -> None:
    # Counted from when the link is free, a request tells nothing of the queue, which then stays.
    mbps = [20.0] * 3 + [4.0] * 27
    stays = waiting_after_a_fall(READINGS["jellyfish-plain"], mbps, 20)
    drains = waiting_after_a_fall(Reading(), mbps, 20)
    assert max(drains[8 * RATE_HZ :]) < 40
    assert min(stays[8 * RATE_HZ : 12 * RATE_HZ]) > 100


def test_the_client_goes_by_its_newest_request() -> None:
    mbps = [20.0] * 3 + [4.0] * 27
    newest = waiting_after_a_fall(READINGS["jellyfish-text"], mbps, 6)
    mean = waiting_after_a_fall(READINGS["jellyfish-waiting"], mbps, 6)
    assert max(newest) < max(mean)


@given(st.floats(0.001, 1e9), st.integers(1, 30))
def test_smoothing_a_constant_changes_nothing(value: float, count: int) -> None:
    smooth = ErrorFilter()
    assert [smooth.add(value) for _ in range(count)] == [value] * count


@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=50))
def test_what_is_smoothed_stays_within_what_was_seen(values: list[float]) -> None:
    smooth = ErrorFilter()
    for value in values:
        found = smooth.add(value)
    assert min(values) - 1e-3 <= found <= max(values) + 1e-3


def test_it_misses_on_lte_about_what_its_paper_says() -> None:
    # The paper: below 1.5 %. Here every setting's mean is 1.1 %; this one is among the worst.
    found = measure("2-cameras-150-ms-25-hz", MADE_UP["lte"], JELLYFISH, seed=1)
    assert found["miss_rate"] < 0.05
    assert found["accuracy"] == pytest.approx(0.56, abs=0.04)
