"""What people are told of drift."""

from dataclasses import replace

import pytest

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.runtime.drift_messages import drift_text
from edgebox.scheduling.actions import ReportDrift


def test_with_one_application_its_requests_may_be_what_has_changed() -> None:
    drift = ReportDrift(ExecutorId("cpu/0"), VariantName("s"), 1.6, 1.6, 0, ("gate",))
    assert "other work on this machine, or more in what 'gate' sends" in drift_text(drift, "2")[1]
    assert "gate" not in drift_text(replace(drift, apps=("gate", "hall")), "2")[1]


@pytest.mark.parametrize(
    ("ratio", "factor", "level", "words"),
    [
        (1.6, 1.6, "warning", "runs 1.6 times slower than profiled since about 14:02 (a hot chip"),
        (0.62, 1.0, "info", "runs as it was profiled again, since about 14:02"),
        (0.5, 0.5, "info", "runs 2.0 times faster than profiled since about 14:02; plans take"),
        (0.7, 2.0, "info", "runs 2.0 times slower than profiled since about 14:02; plans"),
    ],
)
def test_it_says_what_where_and_since_when(
    ratio: float, factor: float, level: str, words: str
) -> None:
    drift = ReportDrift(ExecutorId("cpu/0"), VariantName("street-608"), ratio, factor, 0)
    found, text = drift_text(drift, "14:02")
    assert found == level
    assert text.startswith(f"street-608 on cpu/0 {words}")
