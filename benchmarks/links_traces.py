"""Decides which rate a real link has to have when, so that it follows a trace. Pure."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from edgebox.link.shaping import BandwidthTrace, ShapedLink

STEP_MIN_NS = 20_000_000
"""A real link is changed at most this often; finer steps of a trace become their mean."""


def rate_changes(
    trace: BandwidthTrace, start_ns: int, until_ns: int, step_min_ns: int = STEP_MIN_NS
) -> Iterator[tuple[int, float]]:
    """Yield (instant, bit/s) of every change, the first at 0.

    Args:
        trace: repeats for ever.
        start_ns: where in it instant 0 is.
        until_ns: no changes at or after this instant.
        step_min_ns: changes are at least so far apart.
    """
    link = ShapedLink(trace, -start_ns)
    at_ns, last_bps = 0, -1.0
    while at_ns < until_ns:
        next_ns = max(_next_start(trace, at_ns + start_ns) - start_ns, at_ns + step_min_ns)
        bps = link.mean_bps(at_ns, next_ns)
        if abs(bps - last_bps) > 1e-6 * max(bps, last_bps):
            yield at_ns, bps
            last_bps = bps
        at_ns = next_ns


def _next_start(trace: BandwidthTrace, at_ns: int) -> int:
    """Return when the step begins that follows the one of this instant."""
    periods, within_ns = divmod(at_ns, trace.period_ns)
    starts_ns = (*trace.starts_ns, trace.period_ns)
    return periods * trace.period_ns + starts_ns[bisect_right(starts_ns, within_ns)]


def begun_at(trace: BandwidthTrace, start_ns: int) -> BandwidthTrace:
    """Return the trace that begins `start_ns` into another one."""
    start_ns %= trace.period_ns
    first = bisect_right(trace.starts_ns, start_ns) - 1
    starts_ns = (*trace.starts_ns[first + 1 :], *(trace.period_ns + s for s in trace.starts_ns))
    count = len(trace.starts_ns)
    rates = (*trace.rates_bps[first:], *trace.rates_bps[:first])
    starts = [0, *(s - start_ns for s in starts_ns[: count - 1])]
    if start_ns > trace.starts_ns[first]:  # the first step's beginning is now the end
        starts.append(starts_ns[count - 1] - start_ns)
        rates = (*rates, trace.rates_bps[first])
    return BandwidthTrace(tuple(starts), rates, trace.period_ns)


def as_csv(trace: BandwidthTrace) -> str:
    """Return a trace as a file that `edgebox camera --link` reads.

    The format makes the last step as long as the one before it, so the last one is cut into two
    halves: a period of an odd number of nanoseconds becomes one shorter.
    """
    ends_ns = (*trace.starts_ns, trace.period_ns)
    half_ns = (ends_ns[-2] + ends_ns[-1]) // 2
    steps = [(left, bps) for (left, _), bps in zip(pairwise(ends_ns), trace.rates_bps, strict=True)]
    steps.append((half_ns, trace.rates_bps[-1]))
    lines = [f"{at_ns / 1e9:.9f},{bps / 1e6:.6f}\n" for at_ns, bps in steps]
    return "at_s,mbps\n" + "".join(lines)
