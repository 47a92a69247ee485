"""Makes what it stands for of a row as SQLite returns it.

All raise one of `damage.READ_ERRORS` for a damaged row.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from edgebox.domain.core_factors import MeasuredCoreFactor
from edgebox.domain.interference import MeasuredInterference
from edgebox.domain.model_family import AccuracyReport, FamilyName, VariantName
from edgebox.domain.requests import CameraId
from edgebox.storage.damage import name_of, object_of
from edgebox.storage.rows import CameraRecord

_BATCH_SIZE_MAX = 1 << 20
_BATCH_NS_MAX = 3_600_000_000_000
"""Longest plausible time of a batch: an hour. A longer one marks a damaged row."""
_INTERFERENCE_MAX = 1e3
_CORE_FACTOR_MAX = 1e3


def profiled_of(row: Sequence[Any]) -> tuple[tuple[str, str], int, tuple[int, ...]]:
    """Return the key of a row, the batch size and its quantiles."""
    executor, variant, batch_size, text = row
    quantiles = orjson.loads(text)
    if not isinstance(quantiles, list) or any(type(ns) is not int for ns in quantiles):
        raise TypeError("quantiles that are no list of integers")
    if not 0 < batch_size <= _BATCH_SIZE_MAX or not quantiles:
        raise ValueError(f"batch size {batch_size}, {len(quantiles)} quantiles")
    if not 0 < quantiles[0] <= quantiles[-1] <= _BATCH_NS_MAX or quantiles != sorted(quantiles):
        raise ValueError("quantiles out of range or out of order")
    return (executor, variant), batch_size, tuple(quantiles)


def interference_of(row: Sequence[Any]) -> MeasuredInterference:
    variant, beside, others, factor = row
    if type(others) is not int or others < 1 or not 1 <= factor <= _INTERFERENCE_MAX:
        raise ValueError(f"the factor {factor!r} beside {others!r} others")
    return MeasuredInterference(
        VariantName(variant), FamilyName(beside), others, factor=float(factor)
    )


def core_factor_of(row: Sequence[Any]) -> MeasuredCoreFactor:
    variant, batch_size, threads, factor = row
    sound_counts = all(type(count) is int and count >= 1 for count in (batch_size, threads))
    if not sound_counts or not 1 <= factor <= _CORE_FACTOR_MAX:
        raise ValueError(f"the factor {factor!r} of {batch_size!r} on {threads!r} threads")
    return MeasuredCoreFactor(VariantName(variant), batch_size, threads, float(factor))


def camera_of(row: Sequence[Any]) -> CameraRecord:
    camera, hello, first_seen_ms, last_seen_ms, overrides = row
    return CameraRecord(
        CameraId(name_of(camera)),
        object_of(hello),
        int(first_seen_ms),
        int(last_seen_ms),
        object_of(overrides),
    )


def accuracy_report_of(row: Sequence[Any]) -> tuple[VariantName, AccuracyReport]:
    variant, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details = row
    if not 0 <= accuracy <= 1 or not 0 <= error <= 1:
        raise ValueError(f"accuracy {accuracy!r} +- {error!r}")
    return VariantName(variant), AccuracyReport(
        kind=kind,
        accuracy=accuracy,
        error=error,
        source=source,
        pictures=pictures,
        measured_at_ms=measured_at_ms,
        dominated=dominated,
        details=object_of(details),
    )
