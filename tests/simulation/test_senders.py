"""The senders and the knowledge that only simulations have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.link.bandwidth import BandwidthEstimate, EstimatorKind, message_bytes
from edgebox.link.sender import Send
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.simulation.senders import KnownLink, ObedientSender
from tests.scheduling.scene import camera

MS = 1_000_000
S = 1000 * MS


def advice(px: int) -> Advice:
    return Advice(VariantName("v"), px, px * 9 // 16, 10, 85, 0, "")


@given(mbps=st.floats(0.3, 20), bytes_per_pixel=st.floats(0.1, 0.6))
def test_the_obedient_sender_sends_the_largest_that_the_link_sustains(
    mbps: float, bytes_per_pixel: float
) -> None:
    sender = ObedientSender(camera(rate_hz=10), BandwidthEstimate(rule=EstimatorKind.HARMONIC))
    sender.advised(advice(608))
    link, decided = ShapedLink(BandwidthTrace.constant(mbps), 0), []
    for frame in range(12):
        now_ns = frame * S // 10
        [decision] = sender.captured(frame, now_ns, now_ns)
        assert isinstance(decision, Send)
        pixels = decision.width_px * decision.height_px
        size = round(message_bytes(bytes_per_pixel, pixels))
        sent_ns = link.free_ns(now_ns)
        sender.encoded(frame, size, pixels, sent_ns)
        sender.acknowledged(frame, link.leaves_ns(now_ns, size), 0)
        decided.append((decision, size))
    last, size = decided[-1]
    sustained = mbps * 1e6 / 10
    assert 8 * size <= sustained * 1.001 or last.width_px == 128
    larger = min(608, last.width_px + 32)
    if last.width_px < 608:
        bits = 8 * message_bytes(bytes_per_pixel, larger * round(larger * 9 / 16))
        assert bits > sustained * 0.97


def test_knowledge_looks_ahead() -> None:
    link = ShapedLink(BandwidthTrace.per_second([8.0, 2.0]), 0)
    known = KnownLink(link, 500 * MS)
    known.add(10_000, 0, S)
    assert known.bps(0) == pytest.approx(8e6)
    assert known.bps(750 * MS) == pytest.approx(5e6)
    assert known.bps(1200 * MS) == pytest.approx(2e6)
