"""Owns the notation of settings that override a hello: in requests, and stored. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edgebox.domain.field_reader import FieldReader
from edgebox.domain.model_family import FamilyName
from edgebox.domain.overrides import Overrides
from edgebox.domain.pipelines import PipelineName
from edgebox.domain.requests import SiteId
from edgebox.link.from_camera import RATE_MAX_HZ, SLO_MAX_MS, SLO_MIN_MS
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.link.zone_messages import read_lines, read_zones, refuse_repeated, written_zones

NAMES = (
    "slo_ms", "rate_hz", "app", "min_accuracy", "site", "pipeline", "family", "tracking", "zones",
    "lines",
)  # fmt: skip
RATE_MIN_HZ = 0.01
"""The minimum rate; to get fewer frames, disconnect the camera."""
_FIELDS = {"slo_ms": "slo_ns"} | {name: name for name in NAMES[1:]}


def changed(before: Overrides, fields: Mapping[str, object]) -> Overrides:
    """Return overrides after a change: null removes one, absent ones stay.

    Raises:
        InvalidInputError: lists every wrong field.
    """
    read = FieldReader("settings", fields)
    read.refuse_unknown(NAMES)
    given = {name for name in NAMES if fields.get(name) is not None}
    changes: dict[str, Any] = {_FIELDS[name]: None for name in NAMES if name in fields}
    if "slo_ms" in given:
        changes["slo_ns"] = round(read.number("slo_ms", SLO_MIN_MS, SLO_MAX_MS) * 1e6)
    if "rate_hz" in given:
        changes["rate_hz"] = read.number("rate_hz", RATE_MIN_HZ, RATE_MAX_HZ)
    if "app" in given:
        changes["app"] = read.text("app", pattern=NAME_PATTERN, expected=NAME_WANTED)
    if "min_accuracy" in given:
        changes["min_accuracy"] = read.number("min_accuracy", 0, 1)
    if "site" in given:
        changes["site"] = SiteId(read.text("site", pattern=NAME_PATTERN, expected=NAME_WANTED))
    if "pipeline" in given:
        name = read.text("pipeline", pattern=NAME_PATTERN, expected=NAME_WANTED)
        changes["pipeline"] = PipelineName(name)
    if "family" in given:
        changes["family"] = FamilyName(read.text("family", length_min=1))
    if "tracking" in given:
        changes["tracking"] = read.flag("tracking")
    if "zones" in given:
        changes["zones"] = read_zones(read)
    if "lines" in given:
        changes["lines"] = read_lines(read)
    after = replace(before, **changes)
    if after.family is not None and after.pipeline is not None:
        read.refuse("family", "cannot be set beside a pipeline: set one of the two to null")
    refuse_repeated(read, after.zones or (), after.lines or ())
    read.finish()
    return after


def written(overrides: Overrides) -> dict[str, object]:
    """Return the notation that `changed` reads; null: the hello decides."""
    return {
        "slo_ms": None if overrides.slo_ns is None else overrides.slo_ns / 1e6,
        "rate_hz": overrides.rate_hz,
        "app": overrides.app,
        "min_accuracy": overrides.min_accuracy,
        "site": overrides.site,
        "pipeline": overrides.pipeline,
        "family": overrides.family,
        "tracking": overrides.tracking,
        "zones": None if overrides.zones is None else written_zones(overrides.zones),
        "lines": None if overrides.lines is None else written_zones(overrides.lines),
    }
