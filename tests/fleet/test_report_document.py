"""The JSON of a box's report."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName, BoxReport, Service
from edgebox.fleet.report_document import REPORT_BYTES_MAX, decoded, encoded

PRINTABLE = st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)
NAMES = st.text(PRINTABLE, min_size=1, max_size=20)
RATES = st.floats(0, 1e9, exclude_min=True)
"""Frames/s: a slow device has far less than one."""
REPORTS = st.builds(
    BoxReport,
    box=NAMES.map(BoxName),
    address=st.just("http://box:8787"),
    load=st.integers(0, 40).map(lambda quarter: quarter / 4),
    services=st.dictionaries(NAMES.map(Service), RATES, max_size=4),
    cameras=st.integers(0, 1000),
    cameras_max=st.integers(0, 1000),
    draining=st.booleans(),
    ready=st.booleans(),
    version=st.text(PRINTABLE, max_size=9),
    absent_s=st.dictionaries(NAMES.map(CameraId), st.integers(0, 900).map(float), max_size=4),
    fingerprint=st.none() | st.just("ab" * 32),
    settings=st.just("") | st.just("cd" * 16),
)


def test_the_largest_box_can_report() -> None:
    cameras = {CameraId(f"{number:05}".ljust(64, "x")): 599.9 for number in range(30_000)}
    report = BoxReport(BoxName("box"), "http://box:8787", 0.5, {}, absent_s=cameras)
    body = encoded(report)
    assert len(body) <= REPORT_BYTES_MAX
    assert decoded(body) == report


@given(REPORTS)
def test_what_is_written_is_read(report: BoxReport) -> None:
    assert decoded(encoded(report)) == report


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("load", -1, "report.load must be"),
        ("load", "much", "report.load must be"),
        ("services", {"street": 0}, "report.services must be an object of numbers"),
        ("services", {"street": -1}, "report.services must be an object of numbers"),
        ("services", [1], "report.services must be an object of numbers"),
        ("absent_s", {"gate": None}, "report.absent_s must be an object of numbers"),
        ("cameras", 1.5, "report.cameras must be"),
        ("fingerprint", 7, "report.fingerprint must be"),
        ("box", "", "report.box must be"),
    ],
)
def test_what_is_wrong_is_named(field: str, value: Any, message: str) -> None:
    good = BoxReport(BoxName("a"), "http://a:1", 0.5, {Service("street"): 100.0})
    document = {**orjson.loads(encoded(good)), field: value}
    with pytest.raises(InvalidInputError, match=message):
        decoded(orjson.dumps(document))


def test_a_load_beyond_all_measure_is_readable() -> None:
    report = BoxReport(BoxName("a"), "http://a:1", 1e9, {Service("street"): 1e-8})
    assert decoded(encoded(report)).load == 1e6


@given(st.binary(max_size=60))
def test_no_answer_breaks_the_reader(body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        decoded(body)
