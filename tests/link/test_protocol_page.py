"""docs/reference/protocol.md against the code: its messages, and its tables of fields and codes."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson
import pytest

from edgebox.domain.requests import DropReason
from edgebox.link.fleet_messages import OtherBoxes, Redirect
from edgebox.link.messages import (
    ERROR_CODES,
    Hello,
    decode_from_box,
    decode_from_camera,
)

PAGE = (Path(__file__).parents[2] / "docs/reference/protocol.md").read_text("utf-8")
_JSON = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r'`(\{"type": .*?\})`')
(ADVICE,) = (block for block in _JSON.findall(PAGE) if block.startswith('{"variant"'))


def comes_from_camera(shown: dict[str, Any]) -> bool:
    """Say who sends a message; pings and pongs go both ways."""
    return (
        shown["type"] in ("hello", "report")
        or "camera_ns" in shown
        or (shown["type"] == "ping" and "box_ns" not in shown)
    )


def messages() -> list[dict[str, Any]]:
    """Return the messages that the page shows, with advice where it leaves it out."""
    shown = [block for block in _JSON.findall(PAGE) if block.startswith('{"type"')]
    shown += _INLINE.findall(PAGE)
    return [orjson.loads(text.replace("{...}", ADVICE)) for text in shown]


def shown_in(part: object, whole: object) -> bool:
    """Say whether a document has all that another one shows; numbers may be written otherwise."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and shown_in(part[name], whole[name]) for name in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(shown_in, part, whole))
    return part == whole


@pytest.mark.parametrize("shown", messages(), ids=lambda shown: str(shown["type"]))
def test_a_message_on_the_page_is_read_and_written_as_it_stands(shown: dict[str, Any]) -> None:
    decode = decode_from_camera if comes_from_camera(shown) else decode_from_box
    written = orjson.loads(decode(orjson.dumps(shown)).encode())
    assert shown_in(shown, written), written


def test_the_page_shows_a_message_of_each_kind() -> None:
    kinds = {shown["type"] for shown in messages()}
    assert kinds >= {
        *("hello", "welcome", "ack", "result", "drop", "advice", "ping", "pong", "report"),
        *("error", "bye", Redirect.TYPE, OtherBoxes.TYPE),
    }


def test_the_page_has_every_field_of_a_hello() -> None:
    section = PAGE[PAGE.index("## 2.") : PAGE.index("## 3.")]
    rows = re.findall(r"^\| (`.*?) \| (?:yes|no)", section, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row.partition("|")[0])}
    assert names == {field.name for field in fields(Hello)} - {"later", "named"}


def test_the_page_has_every_error_with_its_close_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{4}|-) \| (yes|no) \|", PAGE, re.MULTILINE)
    assert {code: (close, fatal) for code, close, fatal in rows} == {
        row.code: (str(row.close_code or "-"), "yes" if row.fatal else "no")
        for row in ERROR_CODES.values()
    }


def test_the_page_has_every_reason_for_a_drop() -> None:
    section = PAGE[PAGE.index("## 4.") : PAGE.index("## 5.")]
    rows = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert rows == set(DropReason) - {DropReason.PLAN, DropReason.SENDER}
