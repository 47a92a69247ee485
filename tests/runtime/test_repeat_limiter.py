"""The first few of each source are told, and how many more there were."""

from edgebox.runtime.repeat_limiter import RepeatLimiter


def test_the_first_few_of_each_source_pass_and_the_others_are_counted() -> None:
    repeats = RepeatLimiter(2)
    assert [repeats.passes("gate") for _ in range(5)] == [True, True, False, False, False]
    assert [repeats.passes("yard") for _ in range(2)] == [True, True]
    assert repeats.end_period() == {"gate": 3}
    assert repeats.end_period() == {}
    assert repeats.passes("gate")
