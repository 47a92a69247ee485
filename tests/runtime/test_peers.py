"""What one address can bring about, under however many names, and how long that is remembered."""

import pytest

from edgebox.domain.requests import CameraId
from edgebox.runtime.peers import NAMES_PER_CAMERA, Peers
from edgebox.runtime.refusals import BoxFullError
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE

S = 1_000_000_000
CAMERAS_MAX = 4
NAMES_MAX = NAMES_PER_CAMERA * CAMERAS_MAX
HERE, THERE = "192.0.2.7", "192.0.2.8"


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def peers(clock: Clock) -> Peers:
    return Peers(CAMERAS_MAX, clock)


def name(number: int) -> CameraId:
    return CameraId(f"camera-{number}")


def fill(peers: Peers, address: str = HERE) -> None:
    for number in range(NAMES_MAX):
        peers.named(address, name(number))


def test_an_address_brings_only_so_many_names_within_an_hour(peers: Peers, clock: Clock) -> None:
    fill(peers)
    with pytest.raises(BoxFullError, match=rf"{NAMES_MAX} camera names connected from {HERE}"):
        peers.named(HERE, name(99))
    peers.named(THERE, name(99))
    for number in range(NAMES_MAX):
        peers.named(HERE, name(number))
    clock.now_ns += 3_601 * S
    peers.named(HERE, name(99))


def test_a_name_that_keeps_coming_stays_known(peers: Peers, clock: Clock) -> None:
    fill(peers)
    clock.now_ns += 3_000 * S
    peers.named(HERE, name(0))
    clock.now_ns += 3_000 * S
    for number in range(1, NAMES_MAX):
        peers.named(HERE, name(100 + number))
    with pytest.raises(BoxFullError):
        peers.named(HERE, name(200))
    peers.named(HERE, name(0))


def test_addresses_that_have_gone_are_forgotten(peers: Peers, clock: Clock) -> None:
    for number in range(1_000):
        peers.named(f"10.0.{number // 250}.{number % 250}", name(1))
    clock.now_ns += 3_601 * S
    peers.end_minute()
    assert not peers._seen_ns


def test_the_end_of_a_minute_makes_no_room_within_an_hour(peers: Peers, clock: Clock) -> None:
    fill(peers)
    clock.now_ns += 60 * S
    peers.end_minute()
    with pytest.raises(BoxFullError):
        peers.named(HERE, name(99))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::5", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::5", "2001:db8:1:3::5", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::ffff:192.0.2.7", HERE, True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
        ("?", "?", True),
    ],
)
def test_whom_an_address_belongs_to(peers: Peers, one: str, other: str, same: bool) -> None:
    fill(peers, one)
    if same:
        with pytest.raises(BoxFullError):
            peers.named(other, name(99))
    else:
        peers.named(other, name(99))


def test_notices_of_an_address_are_bounded_and_the_others_counted(peers: Peers) -> None:
    passed = sum(peers.passes(HERE) for _ in range(1_000))
    assert passed == NOTICES_PER_MINUTE + 2 * CAMERAS_MAX
    assert peers.passes(THERE)
    assert peers.end_minute() == {HERE: 1_000 - passed}
    assert peers.passes(HERE)
