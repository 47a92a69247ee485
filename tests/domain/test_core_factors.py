"""By what factor batches take longer on fewer threads."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.core_factors import (
    MeasuredCoreFactor,
    with_core_factors,
    with_greatest_core_factors,
)
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


def test_one_whose_factors_are_not_known_has_the_greatest_of_others() -> None:
    some = replace(profile(128), core_factors={1: {1: 2.0, 4: 3.0}, 2: {1: 1.0, 4: 1.0}})
    more = replace(profile(256), core_factors={1: {1: 2.5}, 2: {1: 1.0}})
    found = with_greatest_core_factors(profile(416), [some, profile(608), more])
    assert found.thread_counts == (1, 2)
    sizes = profile(416).batch_sizes
    assert found.core_factors == {1: dict.fromkeys(sizes, 3.0), 2: dict.fromkeys(sizes, 1.0)}
    assert with_greatest_core_factors(some, [more]) == some
    fixed = replace(profile(128), core_factors={4: {}})
    assert with_greatest_core_factors(profile(416), [fixed]).core_factors == {4: {}}
    assert with_greatest_core_factors(profile(416), [profile(608)]) == profile(416)
