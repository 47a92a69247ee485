"""What is done every so many minutes."""

from edgebox.runtime.minute_period import MinutePeriod


def test_a_period_ends_every_so_many_minutes() -> None:
    period = MinutePeriod(3)
    assert [period.end_minute() for _ in range(7)] == [
        False,
        False,
        True,
        False,
        False,
        True,
        False,
    ]


def test_one_that_ends_early_begins_again() -> None:
    period = MinutePeriod(3)
    assert [period.end_minute(early=minute == 1) for minute in range(5)] == [
        False, True, False, False, True,
    ]  # fmt: skip
