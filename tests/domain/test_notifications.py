"""What people are told of zones and lines."""

import pytest

from edgebox.domain.notifications import NotificationType, zone_event_text


@pytest.mark.parametrize(
    ("dwell_s", "text"), [(0.0, "car 7 entered yard"), (2.5, "car 7 in yard for 2.5 s")]
)
def test_a_stay_is_told_with_its_length_and_an_entry_without(dwell_s: float, text: str) -> None:
    details = {"zone": "yard", "dwell_s": dwell_s, "track": 7}
    assert zone_event_text(NotificationType.ZONE_DWELL, "car", details) == text
    assert zone_event_text(NotificationType.ZONE_LEFT, "car", details) is None


def test_a_crossing_is_told_with_its_direction() -> None:
    details = {"line": "entry", "direction": "in", "track": 7}
    text = zone_event_text(NotificationType.LINE_CROSSED, "bus", details)
    assert text == "bus 7 crossed entry (in)"
