"""What a subscriber is told: filters, pace, and a queue whose losses are counted."""

import asyncio
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId, Outcome
from edgebox.web.subscription import WAITING_MAX, Filter, Subscription

GATE = CameraId("gate-2")
NAMES = st.text("ab-.", min_size=1, max_size=4)
PATTERNS = st.text("ab-.*?[]", min_size=1, max_size=5)


def taken(subscription: Subscription) -> list[bytes]:
    messages = []
    while (message := subscription.take()) is not None:
        messages.append(message)
    return messages


@given(st.lists(PATTERNS, max_size=3), NAMES)
def test_cameras_are_named_or_matched_by_shell_patterns(patterns: list[str], name: str) -> None:
    subscription = Subscription(Filter(cameras=tuple(patterns)))
    wanted = not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    assert subscription.wants(CameraId(name), Outcome.ON_TIME, 0) == wanted


@given(st.lists(st.integers(1, 60), max_size=200))
def test_what_is_told_and_what_is_skipped_add_up(bursts: list[int]) -> None:
    subscription = Subscription(Filter())
    put, delivered, skipped = 0, [], 0
    for burst in bursts:
        for _ in range(burst):
            subscription.put(GATE, str(put).encode(), 0)
            put += 1
        for _ in range(burst // 2):
            message = subscription.take()
            assert message is not None
            if message.startswith(b"{"):
                skipped += orjson.loads(message)["count"]
            else:
                delivered.append(int(message))
    for message in taken(subscription):
        if message.startswith(b"{"):
            skipped += orjson.loads(message)["count"]
        else:
            delivered.append(int(message))
    assert len(delivered) + skipped == put
    assert delivered == sorted(set(delivered)), "in order, none twice"
    assert delivered[-WAITING_MAX:] == list(range(put))[-WAITING_MAX:][-len(delivered) :], (
        "the newest stay"
    )


def test_replies_are_never_skipped_and_keep_their_place() -> None:
    subscription = Subscription(Filter())
    subscription.put(GATE, b"before", 0)
    sent = subscription.reply(b"reply")
    for number in range(WAITING_MAX + 10):
        subscription.put(GATE, str(number).encode(), 0)
    assert not sent.is_set()
    skipped, reply, *rest = taken(subscription)
    assert orjson.loads(skipped) == {"type": "skipped", "count": 12}
    assert reply == b"reply"
    assert sent.is_set()
    assert rest == [str(number).encode() for number in range(11, WAITING_MAX + 10)]


@given(
    st.floats(0.5, 50),
    st.lists(st.integers(1_000_000, 400_000_000), min_size=1, max_size=300),
)
def test_the_pace_is_kept_by_camera(max_hz: float, gaps_ns: list[int]) -> None:
    subscription = Subscription(Filter(max_hz=max_hz))
    period_ns = 1e9 / max_hz
    other = CameraId("other")
    now_ns, told_ns = 0, []
    for gap_ns in gaps_ns:
        now_ns += gap_ns
        if subscription.wants(GATE, Outcome.ON_TIME, now_ns):
            subscription.put(GATE, b"x", now_ns)
            told_ns.append(now_ns)
    # At most one more than fits in any stretch, and never idle for two periods while frames come.
    for first, at_ns in enumerate(told_ns):
        for count, later_ns in enumerate(told_ns[first + 1 :], 1):
            assert later_ns - at_ns > (count - 1) * period_ns - 2
    assert told_ns
    for earlier_ns, later_ns in pairwise(told_ns):
        assert later_ns - earlier_ns < 2 * period_ns + max(gaps_ns)
    assert subscription.wants(other, Outcome.ON_TIME, now_ns)


def test_a_pace_that_divides_badly_is_reached_on_average() -> None:
    subscription = Subscription(Filter(max_hz=4))
    delivered = 0
    for at_ns in range(0, 10_000_000_000, 100_000_000):
        if subscription.wants(GATE, Outcome.ON_TIME, at_ns):
            subscription.put(GATE, b"x", at_ns)
            delivered += 1
    assert delivered == 40


async def test_next_waits_for_news_and_ends_when_closed() -> None:
    subscription = Subscription(Filter())
    waiting = asyncio.create_task(subscription.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    subscription.put(GATE, b"x", 0)
    assert await waiting == b"x"
    waiting = asyncio.create_task(subscription.next())
    await asyncio.sleep(0)
    await subscription.close()
    assert await waiting is None


def test_a_filter_is_read_and_told_alike() -> None:
    fields: dict[str, Any] = {
        "cameras": ["gate-*"], "classes": ["car"], "score_min": 0.5, "outcomes": ["dropped"],
        "max_hz": 2.5, "format": "coco", "empty": False,
    }  # fmt: skip
    read = Filter.read("subscribe", fields)
    assert orjson.loads(orjson.dumps(read.to_json())) == fields
    assert Filter.read("subscribe", {}) == Filter()
    assert Filter.read("subscribe", {"max_hz": None}).max_hz is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"camera": "x"}, 'there is no subscribe."camera"; there are cameras, '),
        ({"cameras": "x"}, "subscribe.cameras must be an array of at most 100 items"),
        ({"cameras": ["x"] * 101}, "subscribe.cameras must be an array of at most 100 items"),
        ({"cameras": [7]}, "subscribe.cameras must be texts of 1 to 64 characters"),
        ({"classes": [""]}, "subscribe.classes must be texts of 1 to 64 characters"),
        ({"score_min": float("nan")}, "subscribe.score_min must be a number from 0 to 1"),
        ({"score_min": "much"}, 'subscribe.score_min must be a number from 0 to 1, not "much"'),
        ({"max_hz": 0}, "subscribe.max_hz must be a number from 0.001 to 1000"),
        ({"outcomes": ["good"]}, "subscribe.outcomes must be of on_time, late, dropped"),
        ({"format": "xml"}, "subscribe.format must be native, coco, supervision"),
        ({"empty": "no"}, "subscribe.empty must be true or false"),
    ],
)
def test_a_wrong_filter_is_told_what_is_wrong(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Filter.read("subscribe", fields)
    assert message in str(refused.value)
