"""What people are told of zones and lines."""

import pytest

from edgebox.app.tracking_setup import in_words
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId


@pytest.mark.parametrize(
    ("dwell_s", "words"),
    [(0.0, "gate: car 7 entered yard"), (2.5, "gate: car 7 in yard for 2.5 s")],
)
def test_a_stay_is_told_with_its_length_and_an_entry_without(dwell_s: float, words: str) -> None:
    details = {"zone": "yard", "dwell_s": dwell_s, "track": 7}
    event = Notification(NotificationType.ZONE_DWELL, 1, CameraId("gate"), "car", details)
    assert in_words(event) == words
