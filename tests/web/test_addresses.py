"""Where others reach this machine: by what it listens on."""

from ipaddress import IPv4Address

import pytest

from edgebox.web.addresses import reachable_at


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_what_listens_for_its_own_machine_is_not_reached(host: str) -> None:
    assert reachable_at(host) == []


@pytest.mark.parametrize("host", ["192.168.7.5", "box.example", "fd00::5"])
def test_what_listens_on_one_address_is_reached_there(host: str) -> None:
    assert reachable_at(host) == [host]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_what_listens_everywhere_is_reached_at_each_address_once(host: str) -> None:
    found = reachable_at(host)
    assert len(set(found)) == len(found)
    assert not any(IPv4Address(each).is_loopback for each in found)
