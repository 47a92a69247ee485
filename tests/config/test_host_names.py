"""Which `Host` headers name the box, by the configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.config.config_file import load
from edgebox.config.host_names import KnownHosts, host_of
from edgebox.domain.errors import ConfigError

OWN = ("gate-box", "gate-box.local")
LOOPBACK = KnownHosts.of("127.0.0.1", (), OWN)
OPEN = KnownHosts.of("0.0.0.0", (), OWN)
NAMED = KnownHosts.of("0.0.0.0", ("Box.Example.com", ".street.example"), OWN)


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ("box", "box"),
        ("box:8787", "box"),
        ("box:", "box"),
        ("BOX.Example.COM.:80", "box.example.com"),
        ("127.0.0.1:8787", "127.0.0.1"),
        ("[::1]:8787", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[fe80::1%eth0]:1", "fe80::1%eth0"),
        ("my_service:8787", "my_service"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_a_host_is_read(said: str, host: str) -> None:
    assert host_of(said) == host


@pytest.mark.parametrize(
    "said",
    [
        "", ":8787", "::1", "[box]", "[127.0.0.1]", "[::1", "box:port", "box:65536", "box:-1",
        "box:8787:8787", "a b", "a,b", "http://box", "box/", "me@box", "box@evil", "b\u00fccher",
        ".", "..", "box..", "-box", "a" * 64, ".".join(["abc"] * 70), "*", "box\n", "box:\u0661",
    ],
)  # fmt: skip
def test_what_is_no_host_is_none(said: str) -> None:
    assert host_of(said) is None


@given(st.text(max_size=30))
def test_any_text_is_a_host_or_none(text: str) -> None:
    host = host_of(text)
    assert host is None or host == host.lower()


@pytest.mark.parametrize("known", [LOOPBACK, OPEN, NAMED])
@pytest.mark.parametrize(
    "host",
    ["localhost", "box.localhost", "127.0.0.1", "10.1.2.3", "203.0.113.7", "::1", "fe80::1", *OWN],
)
def test_addresses_and_the_machines_own_names_are_always_known(
    known: KnownHosts, host: str
) -> None:
    assert known.has(host)


@pytest.mark.parametrize("known", [LOOPBACK, OPEN, NAMED])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost.example",
        "gate-box.evil.example", "evil.local.example", "evilstreet.example", "10.0.0",
    ],
)  # fmt: skip
def test_names_that_anybody_can_register_are_not_known(known: KnownHosts, host: str) -> None:
    assert not known.has(host)


@pytest.mark.parametrize(
    "host", ["box", "edgebox", "other.local", "box.lan", "box.home.arpa", "box.internal"]
)
def test_names_that_only_this_network_can_give_are_known_where_others_are_let_in(host: str) -> None:
    """Whoever can give them reaches the box without any browser, but not one on loopback."""
    assert OPEN.has(host)
    assert not LOOPBACK.has(host)
    assert not NAMED.has(host)  # who names hosts means those


def test_named_hosts_are_known() -> None:
    for host in ("box.example.com", "street.example", "a.street.example", "b.a.street.example"):
        assert NAMED.has(host)
    assert not NAMED.has("a.box.example.com")
    assert KnownHosts.of("box.example.com", (), ()).has("box.example.com")
    assert KnownHosts.of("127.0.0.1", ("box.example.",), ()).has("box.example")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("allowed_hosts", ["https://box.example"], "'https://box.example' is no host name"),
        ("allowed_hosts", ["box.example:8787"], "without scheme and port"),
        ("allowed_hosts", ["*.example.com"], r".example.com for it and all names below"),
        ("allowed_hosts", ["*"], "'*' is no host name"),
        ("allowed_hosts", ["box", "."], "'.' is no host name"),
        ("allowed_hosts", "box.example", "must be a list of texts"),
        ("trusted_proxies", ["proxy.example"], "'proxy.example' is no address"),
        ("trusted_proxies", ["10.0.0.0/33"], "'10.0.0.0/33' is no address"),
    ],
)
def test_what_cannot_be_meant_is_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, {f"server.{key}": value})
    assert message in str(refused.value)
    assert f"server.{key}" in str(refused.value)


def test_what_can_be_meant_is_taken() -> None:
    server = load(
        None,
        {
            "server.allowed_hosts": ["box.example", ".street.example", "my_box", "::1"],
            "server.trusted_proxies": ["10.0.0.2", "10.1.0.9/24", "fd00::/8"],
        },
    ).server
    assert len(server.allowed_hosts) == 4
