"""Log lines: what programs read back is what was logged, and repeats are limited."""

import json
import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.commands.logs import FewRepeats, JsonFormatter, LogfmtFormatter
from tests.conftest import PATIENCE_S

ANY_TEXT = st.text(st.characters(), max_size=30)


def record(message: str, camera: str | None = None, lineno: int = 1) -> logging.LogRecord:
    made = logging.LogRecord("edgebox.x", logging.WARNING, "x.py", lineno, message, None, None)
    made.camera = camera
    return made


def parsed(line: str) -> dict[str, str]:
    """Read a line of logfmt."""
    found, rest = {}, line
    while rest:
        key, _, rest = rest.partition("=")
        if rest.startswith('"'):
            value, end = json.JSONDecoder().raw_decode(rest)
            rest = rest[end + 1 :]
        else:
            value, _, rest = rest.partition(" ")
        found[key] = value
    return found


@given(ANY_TEXT, st.none() | st.text(min_size=1, max_size=10))
def test_a_line_is_one_line_and_says_what_was_logged(message: str, camera: str | None) -> None:
    expected = {
        "level": "warning",
        "logger": "edgebox.x",
        "message": message.encode("utf-8", "backslashreplace").decode(),
    }
    if camera:
        expected["camera"] = camera.encode("utf-8", "backslashreplace").decode()
    for formatter, read in ((JsonFormatter(), json.loads), (LogfmtFormatter(), parsed)):
        line = formatter.format(record(message, camera))
        assert "\n" not in line
        assert "\r" not in line
        found = read(line)
        time.strptime(found.pop("time")[:-5], "%Y-%m-%dT%H:%M:%S")
        assert found == expected


def test_an_exception_is_part_of_the_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        about = record("it failed")
        about.exc_info = (type(error), error, error.__traceback__)
    found = json.loads(JsonFormatter().format(about))
    assert found["exception"].endswith("ValueError: broken")
    assert "Traceback" in found["exception"]


def test_repeats_of_each_source_are_limited_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    few = FewRepeats(2, period_s=0.05)
    assert [few.filter(record("a", "gate")) for _ in range(5)] == [True, True, False, False, False]
    assert few.filter(record("another camera", "yard"))
    assert few.filter(record("another place", "gate", lineno=2))
    deadline_s = time.monotonic() + PATIENCE_S
    while not caplog.messages:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert caplog.messages == [
        "3 more lines within a minute from edgebox.x, line 1 about gate",
    ]
    assert few.filter(caplog.records[0])
    assert few.filter(record("a", "gate"))
