"""The shaped link against a bit-by-bit account; traces as files have them."""

import math
import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.link.shaping import BandwidthTrace, ShapedLink, lte_trace, parse_trace, wifi_trace

S = 1_000_000_000
MS = 1_000_000


def carried_bits(trace: BandwidthTrace, origin_ns: int, from_ns: int, until_ns: int) -> float:
    """Sum up, step by step, what a trace carries between two instants."""
    bits = 0.0
    at_ns = from_ns
    ends = (*trace.starts_ns[1:], trace.period_ns)
    while at_ns < until_ns:
        within_ns = (at_ns - origin_ns) % trace.period_ns
        step_end_ns = at_ns - within_ns + next(end for end in ends if end > within_ns)
        stop_ns = min(step_end_ns, until_ns)
        bits += trace.bps_at(at_ns - origin_ns) * (stop_ns - at_ns) / 1e9
        at_ns = stop_ns
    return bits


traces = (
    st.lists(
        st.tuples(st.integers(50 * MS, 3 * S), st.sampled_from((0.0, 0.3, 1.0, 7.5, 40.0))),
        min_size=1,
        max_size=6,
    )
    .filter(lambda steps: any(rate for _, rate in steps))
    .map(
        lambda steps: BandwidthTrace(
            tuple(sum(span for span, _ in steps[:index]) for index in range(len(steps))),
            tuple(rate * 1e6 for _, rate in steps),
            sum(span for span, _ in steps),
        )
    )
)


def test_a_constant_link_takes_bits_over_rate_and_queues() -> None:
    link = ShapedLink(BandwidthTrace.constant(8.0), origin_ns=5 * S)
    assert link.leaves_ns(5 * S, 10_000) == 5 * S + 10 * MS
    assert link.free_ns(5 * S + 1) == 5 * S + 10 * MS
    assert link.leaves_ns(5 * S + 1, 10_000) == 5 * S + 20 * MS
    # Idle time is not saved up.
    assert link.leaves_ns(9 * S, 10_000) == 9 * S + 10 * MS


def test_a_frame_waits_out_seconds_without_a_link_and_the_trace_repeats() -> None:
    link = ShapedLink(BandwidthTrace.per_second([1.0, 0.0]), origin_ns=0)
    assert link.leaves_ns(0, 125_000) == 1 * S  # just in time, before the gap
    assert link.leaves_ns(1 * S, 12_500) == 2 * S + 100 * MS
    assert link.leaves_ns(2 * S + 100 * MS, 125_000) == 4 * S + 100 * MS


@given(traces, st.data())
def test_bits_up_to_the_end_of_a_step_leave_at_the_end_of_the_last_that_carries(
    trace: BandwidthTrace, data: st.DataObject
) -> None:
    link = ShapedLink(trace, S)
    end_ns = data.draw(st.sampled_from((*trace.starts_ns, trace.period_ns)))
    bits = link.bits_until(S + end_ns)
    at_ns = link.instant_of(bits)
    assert carried_bits(trace, S, S, at_ns) == pytest.approx(bits, abs=0.2)
    assert bits == 0 or carried_bits(trace, S, S, at_ns - 1_000) < bits


@pytest.mark.parametrize("rates_mbps", [(0, 8, 4), (0, 1, 0), (0, 1)])
def test_a_trace_may_begin_with_a_pause(rates_mbps: tuple[float, ...]) -> None:
    link = ShapedLink(BandwidthTrace.per_second(rates_mbps), 0)
    assert link.instant_of(0.0) == 0
    last_s = max(at for at, rate in enumerate(rates_mbps, start=1) if rate)
    assert link.instant_of(sum(rates_mbps) * 1e6) == last_s * S


@given(
    trace=traces,
    origin_ns=st.integers(0, 10**15),
    frames=st.lists(st.tuples(st.integers(0, 2 * S), st.integers(1, 400_000)), max_size=12),
)
def test_a_frame_leaves_exactly_when_its_bits_have_been_carried(
    trace: BandwidthTrace, origin_ns: int, frames: list[tuple[int, int]]
) -> None:
    link = ShapedLink(trace, origin_ns)
    now_ns = free_ns = origin_ns
    for gap_ns, size in frames:
        now_ns += gap_ns
        start_ns = max(now_ns, free_ns)
        left_ns = link.leaves_ns(now_ns, size)
        assert left_ns >= start_ns
        bits = carried_bits(trace, origin_ns, start_ns, left_ns)
        earlier = carried_bits(trace, origin_ns, start_ns, left_ns - 1_000)
        assert bits == pytest.approx(size * 8, abs=0.2)
        assert earlier < size * 8
        free_ns = left_ns


def test_files_with_one_rate_per_line() -> None:
    trace = parse_trace("# made up\n1.5\n\n 3 \n0\n", "lab.txt")
    assert trace == BandwidthTrace.per_second([1.5, 3.0, 0.0])
    assert trace.bps_at(1 * S) == 3e6
    assert trace.bps_at(3 * S) == 1.5e6


def test_files_with_instants() -> None:
    trace = parse_trace("at_s, mbps\n10,2\n10.5,4\n12.5,0.5\n", "lab.csv")
    assert trace.starts_ns == (0, S // 2, 5 * S // 2)
    assert trace.rates_bps == (2e6, 4e6, 0.5e6)
    assert trace.period_ns == 9 * S // 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "^t:1: no bandwidth in it"),
        ("# nothing\n", "^t:1: no bandwidth in it"),
        ("1\n2\nfast\n", "^t:3: expected a number from 0 to 1e.06, not 'fast'"),
        ("1\n-2\n", "^t:2: expected a number"),
        ("nan\n", "^t:1: expected a number"),
        ("1e9\n", "^t:1: expected a number"),
        ("0\n0\n", "^t: a bandwidth trace that is 0 throughout"),
        ("at_s,mbps\n", "^t:1: no bandwidth in it"),
        ("at_s,mbps\n0,1,2\n", "^t:2: expected at_s,mbps, not '0,1,2'"),
        ("at_s,mbps\n0,1\n0,2\n", "^t:3: at_s must rise"),
        ("at_s,mbps\nx,1\n", "^t:2: expected a number"),
    ],
)
def test_wrong_files_name_the_line(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        parse_trace(text, "t")


@given(text=st.text(alphabet="0123456789.,-e\n #atsmbp_", max_size=60))
def test_any_file_is_a_trace_or_an_error(text: str) -> None:
    try:
        trace = parse_trace(text, "t")
    except InvalidInputError as error:
        assert str(error).startswith("t")
        return
    left_ns = ShapedLink(trace, 0).leaves_ns(0, 1)
    assert left_ns >= 0


@pytest.mark.parametrize(
    ("starts", "rates", "period"),
    [
        ((), (), 1),
        ((0,), (1.0, 2.0), 1),
        ((1,), (1.0,), 2),
        ((0, 0), (1.0, 1.0), 2),
        ((0,), (1.0,), 0),
        ((0,), (-1.0,), 1),
        ((0,), (math.nan,), 1),
        ((0,), (0.0,), 1),
    ],
)
def test_traces_that_cannot_be(
    starts: tuple[int, ...], rates: tuple[float, ...], period: int
) -> None:
    with pytest.raises(InvalidInputError):
        BandwidthTrace(starts, rates, period)


@pytest.mark.parametrize("seed", range(5))
def test_the_made_up_phone_swings_as_described(seed: int) -> None:
    trace = lte_trace(random.Random(seed))
    assert trace == lte_trace(random.Random(seed))
    rates = [bps / 1e6 for bps in trace.rates_bps]
    assert len(rates) == 300
    assert 0.25 <= min(rates) < 1.5
    assert 10 < max(rates) <= 22
    assert 3 < sum(rates) / len(rates) < 14


def test_a_rate_may_last_for_any_step() -> None:
    trace = parse_trace("2\n4\n", "t.txt", step_s=20)
    assert trace.period_ns == 40 * S
    assert [trace.bps_at(at * S) for at in (0, 19, 20, 39, 40)] == [2e6, 2e6, 4e6, 4e6, 2e6]


def test_mahimahi_packets_become_rates() -> None:
    # Two packets by 1 ms, none by 2, one by 3 and by 4.
    trace = parse_trace("1\n1\n3\n4\n", "verizon.up")
    assert trace == parse_trace("1\n1\n3\n4\n", "x", form="mahimahi")
    assert trace.period_ns == 4_000_000
    assert [trace.bps_at(at * 1_000_000) for at in range(5)] == [24e6, 0, 12e6, 12e6, 24e6]
    link = ShapedLink(trace, 0)
    assert link.leaves_ns(0, 3000) == 1_000_000
    assert link.leaves_ns(0, 1500) == 3_000_000


@given(gaps=st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_a_mahimahi_link_delivers_each_packet_by_its_millisecond(gaps: list[int]) -> None:
    at_ms = list(accumulate([1, *gaps]))
    trace = parse_trace("\n".join(map(str, at_ms)), "t.down")
    link = ShapedLink(trace, 0)
    for due_ms in at_ms:
        left_ns = link.leaves_ns(0, 1500)
        assert due_ms * 1_000_000 - 1_000_000 < left_ns <= due_ms * 1_000_000 + 10


@pytest.mark.parametrize(
    ("text", "form", "complaint"),
    [
        ("1\n2.5\n", "mahimahi", "^t:2: expected a whole number of milliseconds, not '2.5'"),
        ("5\n4\n", "mahimahi", "^t:2: the milliseconds must not fall"),
        ("1,2\n", "csv", "^t:1: the first line must be at_s,mbps"),
        ("at_s,mbps\n0,1\n", "mbps", "^t:1: expected a number"),
    ],
)
def test_a_format_that_is_named_is_insisted_on(text: str, form: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        parse_trace(text, "t", form=form)


def test_the_mean_rate_between_two_instants() -> None:
    link = ShapedLink(BandwidthTrace.per_second([2.0, 6.0]), origin_ns=0)
    assert link.mean_bps(0, 2 * S) == pytest.approx(4e6)
    assert link.mean_bps(S // 2, S + S // 2) == pytest.approx(4e6)
    assert link.mean_bps(7 * S, 8 * S) == pytest.approx(6e6)


@pytest.mark.parametrize("seed", range(3))
def test_a_made_up_wireless_link_is_good_and_repeats(seed: int) -> None:
    trace = wifi_trace(random.Random(seed))
    assert trace == wifi_trace(random.Random(seed))
    assert all(10e6 < rate <= 90e6 for rate in trace.rates_bps)
