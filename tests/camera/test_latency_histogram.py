"""Latency histograms, judged by the latencies they count."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from edgebox.camera.latency_histogram import QUANTILES, added, bucket, quantiles_ms

LATENCIES = st.lists(st.floats(0.02, 60_000), min_size=1, max_size=60)


def counted(latencies_ms: list[float]) -> Counter[str]:
    return Counter(map(bucket, latencies_ms))


@given(LATENCIES, LATENCIES)
def test_quantiles_of_added_histograms_are_those_of_all_latencies(
    here: list[float], there: list[float]
) -> None:
    found = quantiles_ms(added([counted(here), counted(there)]))
    ordered = sorted(here + there)
    for name, q in QUANTILES.items():
        true = ordered[round(q * (len(ordered) - 1))]
        # Half a bucket, and the two digits that are kept.
        assert abs(found[name] - true) <= 0.01 * true + 0.006


def test_nothing_counted_has_no_quantiles() -> None:
    assert quantiles_ms({}) == {}
    assert quantiles_ms({bucket(0.0): 3})["max"] == 0.01
