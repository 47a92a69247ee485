"""When the core hears of a link."""

from edgebox.domain.requests import LinkState
from edgebox.link.update_throttle import PERIOD_NS, REFRESH_NS, LinkUpdateThrottle

MS = 1_000_000


def test_news_come_periodically_and_a_step_at_once() -> None:
    news = LinkUpdateThrottle()
    first = LinkState(bandwidth_bps=10e6)
    assert news.due(1000 * MS, lambda: first) == first
    told_ns = 1000 * MS
    slightly = LinkState(bandwidth_bps=11e6)
    assert news.due(told_ns + PERIOD_NS - 1, lambda: slightly) is None
    assert news.due(told_ns + PERIOD_NS + REFRESH_NS, lambda: slightly) == slightly
    told_ns += PERIOD_NS + REFRESH_NS
    halved = LinkState(bandwidth_bps=5e6)
    assert news.due(told_ns + REFRESH_NS, lambda: halved) == halved


def test_the_estimate_is_not_looked_at_for_every_frame() -> None:
    news, looks = LinkUpdateThrottle(), []

    def look() -> LinkState:
        looks.append(1)
        return LinkState(bandwidth_bps=1e6)

    for at_ms in range(100, 200):
        news.due(at_ms * MS, look)
    assert len(looks) == 100 * MS // REFRESH_NS


def test_what_is_the_same_is_not_news() -> None:
    news, link = LinkUpdateThrottle(), LinkState(bandwidth_bps=1e6)
    assert news.due(PERIOD_NS, lambda: link) == link
    assert news.due(3 * PERIOD_NS, lambda: link) is None
