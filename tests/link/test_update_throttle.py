"""When the core hears of a link."""

from edgebox.domain.requests import LinkState
from edgebox.link.update_throttle import PERIOD_NS, REFRESH_NS, LinkUpdateThrottle

MS = 1_000_000


def due(news: LinkUpdateThrottle, at_ns: int, link: LinkState) -> LinkState | None:
    """Ask whether a link in this state is due."""
    return news.due(at_ns, lambda: link.bandwidth_bps, lambda: link)


def test_news_come_periodically_and_a_step_at_once() -> None:
    news = LinkUpdateThrottle()
    first = LinkState(bandwidth_bps=10e6)
    assert due(news, 1000 * MS, first) == first
    told_ns = 1000 * MS
    slightly = LinkState(bandwidth_bps=11e6)
    assert due(news, told_ns + PERIOD_NS - 1, slightly) is None
    assert due(news, told_ns + PERIOD_NS + REFRESH_NS, slightly) == slightly
    told_ns += PERIOD_NS + REFRESH_NS
    halved = LinkState(bandwidth_bps=5e6)
    assert due(news, told_ns + REFRESH_NS, halved) == halved


def test_the_estimate_is_not_looked_at_for_every_frame_and_the_rest_only_when_it_is_due() -> None:
    news, looks, states = LinkUpdateThrottle(), [], []

    def look() -> float:
        looks.append(1)
        return 1e6

    def state() -> LinkState:
        states.append(1)
        return LinkState(bandwidth_bps=1e6)

    for at_ms in range(200, 1200):
        news.due(at_ms * MS, look, state)
    assert len(states) == 1000 * MS // PERIOD_NS
    assert len(looks) == 1000 * MS // REFRESH_NS - len(states)


def test_what_is_the_same_is_not_news() -> None:
    news, link = LinkUpdateThrottle(), LinkState(bandwidth_bps=1e6)
    assert due(news, PERIOD_NS, link) == link
    assert due(news, 3 * PERIOD_NS, link) is None
