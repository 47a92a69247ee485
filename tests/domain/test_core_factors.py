"""By what factor batches take longer on fewer threads."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.core_factors import MeasuredCoreFactor, with_core_factors
from tests.scheduling.scene import name, profile

COUNTS = (1, 2, 4)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from((1, 2)), st.sampled_from((1, 2, 4))), st.floats(1, 100)
    )
)
def test_fewer_threads_are_never_faster(measured: dict[tuple[int, int], float]) -> None:
    found = [MeasuredCoreFactor(name(128), n, t, factor) for (t, n), factor in measured.items()]
    out = with_core_factors(profile(128), found, COUNTS)
    counts = out.thread_counts
    assert counts[-1] == 4
    for n in out.batch_sizes:
        factors = [out.core_factor(n, threads) for threads in counts]
        assert factors == sorted(factors, reverse=True)
        assert factors[-1] == 1
    for threads in (1, 2):
        complete = all((threads, n) in measured for n in out.batch_sizes)
        assert (threads in counts) == complete, "of a count with gaps too little is known"


def test_batches_between_measured_sizes_run_padded() -> None:
    found = [MeasuredCoreFactor(name(128), n, 1, 1.0 + n) for n in (1, 2, 4)]
    out = with_core_factors(profile(128), found, (1, 2))
    assert out.core_factor(3, 1) == 5
    assert out.core_factor(9, 1) == 5
    assert out.core_factor(3, 0) == 1, "all threads"


def test_factors_of_other_variants_and_sizes_say_nothing() -> None:
    found = [MeasuredCoreFactor(name(256), n, 1, 2.0) for n in (1, 2, 4)]
    found += [MeasuredCoreFactor(name(128), 8, 1, 2.0)]
    assert with_core_factors(profile(128), found, (1, 2)).thread_counts == (2,)
