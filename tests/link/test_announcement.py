"""What a box announces, and how it is read."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.announcement import (
    SERVICE_TYPE,
    FoundBox,
    found_box,
    host_label,
    instance_name,
    properties,
)


@given(st.text(max_size=100), st.text(max_size=100))
def test_a_name_is_a_label_that_terminals_can_show(box: str, host: str) -> None:
    name = instance_name(box, host)
    assert len(name.encode()) <= 63
    assert not any(ord(letter) < 32 or ord(letter) == 127 for letter in name)


@given(st.text(max_size=100), st.integers(1, 65_535))
def test_a_hosts_name_is_one_of_the_dns(host: str, port: int) -> None:
    label, _, rest = host_label(host, port).partition(".")
    assert len(label) <= 63
    assert set(label) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert rest == "local."


def test_a_box_is_read_as_it_was_announced() -> None:
    name = instance_name("Yard no. 2", "pi")
    for tls, scheme in ((False, "http"), (True, "https")):
        said = {key.encode(): value.encode() for key, value in properties(tls).items()}
        found = found_box(f"{name}.{SERVICE_TYPE}", "10.0.0.7", 8787, said)
        assert found == FoundBox("Yard no. 2 on pi", f"{scheme}://10.0.0.7:8787")
    assert found_box(f"a\x1b[2J.{SERVICE_TYPE}", "10.0.0.7", 1, {}).name == "a [2J"
