"""Which box a camera goes to when it loses its own."""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.failover import BOXES_MAX, BoxAddresses


def test_one_box_is_tried_again_after_a_wait() -> None:
    addresses = BoxAddresses(["a"], random.Random(1))
    assert not addresses.several
    assert addresses.lost()
    assert addresses.current == "a"


@given(st.integers(1, 8), st.integers(0, 8), st.integers(0, 99))
def test_all_others_are_tried_at_once_before_any_again(
    configured: int, told: int, seed: int
) -> None:
    names = [f"box-{number}" for number in range(configured + told)]
    addresses = BoxAddresses(names[:configured], random.Random(seed))
    addresses.told(names[configured:])
    tried = [addresses.current]
    while not addresses.lost():
        tried.append(addresses.current)
    assert sorted(tried) == sorted(names)


def test_a_redirect_is_followed_and_counted_until_the_welcome() -> None:
    addresses = BoxAddresses(["a"], random.Random(1))
    addresses.redirected("b")
    assert (addresses.current, addresses.redirects) == ("b", 1)
    assert addresses.several
    addresses.redirected("c")
    assert addresses.redirects == 2
    addresses.welcomed()
    assert addresses.redirects == 0


def test_a_redirect_to_a_dead_box_does_not_end_the_search() -> None:
    addresses = BoxAddresses(["a", "b", "c"], random.Random(1))
    addresses.redirected("dead")
    seen = set()
    while not addresses.lost():
        seen.add(addresses.current)
    assert seen == {"b", "c"}  # a sent it on


def test_no_more_addresses_are_kept_than_a_welcome_may_have() -> None:
    addresses = BoxAddresses(["a"], random.Random(1))
    addresses.told([f"box-{number}" for number in range(10 * BOXES_MAX)])
    tried = 0
    while not addresses.lost():
        tried += 1
    assert tried == BOXES_MAX
