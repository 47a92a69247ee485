"""Sums over the last samples, against adding them up one by one."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.throughput_samples import Sample, SettledSamples

# How long after the last one a sample ends, how long it lasts and how many bits it carries; how
# long before it everything is forgotten, if anything is.
ADDED = st.tuples(
    st.integers(0, 50),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.none() | st.integers(0, 100),
)


@given(st.lists(ADDED, max_size=60), st.integers(-10, 200))
def test_sums_and_numbers_are_those_of_what_is_left(
    added: list[tuple[int, int, int, int | None]], ago_ns: int
) -> None:
    samples, left, now_ns = SettledSamples(), list[Sample](), 0
    for gap_ns, length_ns, bits, keep_ns in added:
        now_ns += gap_ns
        sample = Sample(now_ns - length_ns, now_ns, bits, frozenset("a"))
        samples.append(sample)
        left.append(sample)
        if keep_ns is not None:
            samples.drop_until(now_ns - keep_ns)
            left = [each for each in left if each.end_ns > now_ns - keep_ns]
        before = samples.copy()
        number = before.number_since(now_ns - ago_ns)
        recent = [each for each in left if each.end_ns > now_ns - ago_ns]
        assert number == len(recent)
        assert len(before) == len(left)
        assert before.sums(number) == (
            sum(each.bits for each in recent),
            sum(each.busy_ns for each in recent),
        )
        assert before.newest(number) == recent[::-1]
        assert before.newest(len(left) + 1) == left[::-1]


def test_a_copy_goes_its_own_way() -> None:
    samples = SettledSamples()
    samples.append(Sample(0, 10, 100, frozenset("a")))
    copied = samples.copy()
    samples.append(Sample(10, 20, 200, frozenset("a")))
    assert (len(copied), len(samples)) == (1, 2)
    copied.drop_until(10)
    assert (len(copied), samples.sums(2)[0]) == (0, 300)
