"""Owns the JSON of a box's report. Pure."""

import orjson

from edgebox.domain.field_reader import FieldReader, is_number, parse_object
from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName, BoxReport, Service

REPORT_BYTES_MAX = 1 << 22
"""Of `_NAMES_MAX` cameras with the longest names it has 2.4 MB."""
_LOAD_MAX = 1e6
_NAMES_MAX = 30_000
"""A box may have 10,000 cameras, and remembers twice as many that have left."""
_TEXT_MAX = 512


def encoded(report: BoxReport) -> bytes:
    """Return a report as JSON."""
    return orjson.dumps(
        {
            "box": report.box,
            "address": report.address,
            "fingerprint": report.fingerprint,
            "load": min(round(report.load, 4), _LOAD_MAX),
            "services": dict(report.services),
            "cameras": report.cameras,
            "cameras_max": report.cameras_max,
            "draining": report.draining,
            "ready": report.ready,
            "version": report.version,
            "absent_s": {name: round(s, 1) for name, s in report.absent_s.items()},
            "settings": report.settings,
        }
    )


def decoded(body: bytes) -> BoxReport:
    """Read a report.

    Raises:
        InvalidInputError: it is none; the message says what is wrong.
    """
    read = FieldReader("report", parse_object(body, "a report"))
    report = BoxReport(
        box=BoxName(read.text("box", length_min=1, length_max=_TEXT_MAX)),
        address=read.text("address", length_min=1, length_max=_TEXT_MAX),
        load=read.number("load", 0, _LOAD_MAX),
        services={Service(name): hz for name, hz in _numbers(read, "services", above=True).items()},
        cameras=read.integer("cameras", 0, 1_000_000),
        cameras_max=read.integer("cameras_max", 0, 1_000_000),
        draining=read.flag("draining", False),
        ready=read.flag("ready", True),
        version=read.text("version", "", length_max=_TEXT_MAX),
        absent_s={CameraId(name): s for name, s in _numbers(read, "absent_s").items()},
        fingerprint=_text(read, "fingerprint"),
        settings=read.text("settings", ""),
    )
    read.finish()
    return report


def _text(read: FieldReader, name: str) -> str | None:
    return read.text(name, length_max=_TEXT_MAX) if read.raw(name) is not None else None


def _numbers(read: FieldReader, name: str, *, above: bool = False) -> dict[str, float]:
    """Read an object whose values are numbers from 0, or `above` it."""
    found = read.raw(name)
    fits = (
        isinstance(found, dict)
        and len(found) <= _NAMES_MAX
        and all(is_number(value, 0, 1e12, above=above) for value in found.values())
    )
    if not fits or not isinstance(found, dict):
        read.refuse(name, "must be an object of numbers", found)
        return {}
    return {str(key): float(value) for key, value in found.items()}
