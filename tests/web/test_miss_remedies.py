"""Every kind of miss has a remedy, that of the plan where it has one with figures."""

import pytest

from edgebox.domain.plans import Remedy, RemedyAction
from edgebox.domain.requests import DropReason
from edgebox.web.miss_remedies import BETTER_UPLINK, EVEN_SOURCE, MORE_TIME, miss_remedies


@pytest.mark.parametrize("reason", [each for each in DropReason if each != DropReason.PLAN])
@pytest.mark.parametrize("pulled", [True, False])
def test_every_reason_has_a_remedy(reason: DropReason, pulled: bool) -> None:
    assert miss_remedies(dict.fromkeys([str(reason), "plan"], 3), 0, (), pulled=pulled)


def test_the_most_frequent_reason_counts() -> None:
    dropped: dict[str, int] = {DropReason.SENDER: 8, DropReason.INFEASIBLE: 3, DropReason.PLAN: 80}
    assert BETTER_UPLINK in miss_remedies(dropped, 0, (), pulled=False)
    assert miss_remedies(dropped, 0, (), pulled=True)[0] == EVEN_SOURCE
    assert miss_remedies({DropReason.INFEASIBLE: 1}, 0, (), pulled=True)[0] == EVEN_SOURCE


def test_answers_that_come_late_count_among_the_misses() -> None:
    dropped: dict[str, int] = {DropReason.SENDER: 3}
    assert miss_remedies(dropped, 3, (), pulled=False)[0] == MORE_TIME
    assert BETTER_UPLINK in miss_remedies(dropped, 2, (), pulled=False)


def test_answers_that_come_late_need_more_time() -> None:
    assert miss_remedies({}, 4, (), pulled=False)[0] == MORE_TIME
    assert miss_remedies({DropReason.PLAN: 4}, 1, (), pulled=False)[0] == MORE_TIME


def test_the_plan_has_figures() -> None:
    planned = Remedy(RemedyAction.IMPROVE_UPLINK, "give gate-2 an uplink of 2.6 Mbit/s", 2.6e6)
    other = Remedy(RemedyAction.IMPORT_BETTER_MODEL, "import a more accurate model")
    found = miss_remedies({DropReason.SENDER: 1}, 0, (other, planned), pulled=False)
    assert planned in found
    assert other not in found
