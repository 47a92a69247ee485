"""Signatures of webhooks, against the specification's own example and any tampering."""

import base64
import hashlib
import hmac
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.notifications.signature import headers, key_bytes
from tests.notifications.receiver import genuine


def test_the_example_of_the_specification() -> None:
    found = headers(
        key_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert found == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@given(body=st.binary(max_size=50), at_s=st.integers(0, 2**33), key=st.binary(min_size=1))
def test_it_covers_id_time_and_body(body: bytes, at_s: int, key: bytes) -> None:
    def of(event: str, at_s: int, body: bytes, key: bytes) -> str:
        return headers(key, event, at_s, body)["webhook-signature"]

    signed = b"evt_1." + str(at_s).encode() + b"." + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    good = of("evt_1", at_s, body, key)
    assert good == f"v1,{digest}"
    others = (
        of("evt_2", at_s, body, key),
        of("evt_1", at_s + 1, body, key),
        of("evt_1", at_s, body + b" ", key),
        of("evt_1", at_s, body, key + b"x"),
    )
    assert good not in others


def test_the_check_in_the_docs_takes_what_is_genuine_and_nothing_else() -> None:
    now_s = int(time.time())
    good = headers(b"word", "evt_1", now_s, b"{}")
    assert genuine(good, b"{}", "word")
    both = good | {"webhook-signature": "v1,b2xk " + good["webhook-signature"]}
    assert genuine(both, b"{}", "word")
    assert not genuine(good, b"{ }", "word")
    assert not genuine(good, b"{}", "sword")
    assert not genuine(headers(b"word", "evt_1", now_s - 600, b"{}"), b"{}", "word")


def test_without_a_key_nothing_is_signed() -> None:
    assert set(headers(None, "evt_1", 1, b"")) == {"webhook-id", "webhook-timestamp"}


def test_secrets_are_text_or_base64() -> None:
    assert key_bytes("a word") == b"a word"
    assert key_bytes("whsec_AAEC") == bytes((0, 1, 2))
    with pytest.raises(ValueError, match="Base64"):
        key_bytes("whsec_no base64!")
