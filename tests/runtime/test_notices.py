"""The latest notices: what a camera's moves leave of the others."""

from edgebox.runtime.box_event import BoxEvent
from edgebox.runtime.notices import Notices
from edgebox.runtime.peers import Peers
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE

HERE = "192.0.2.7"


def notices() -> tuple[Notices, list[BoxEvent]]:
    stored: list[BoxEvent] = []
    return Notices(Peers(4, lambda: 0), stored.append), stored


def test_a_move_takes_the_place_of_the_move_before_it_and_each_is_stored() -> None:
    latest, stored = notices()
    latest.publish("warning", "door: its picture is dark", "door")
    texts = [f"gate moved to {size_px} px" for size_px in (320, 256, 320)]
    for text in texts:
        latest.moved(HERE, "gate", text)
    assert [(each.text, each.moves) for each in latest.recent] == [
        ("door: its picture is dark", 0),
        ("gate moved to 320 px", 3),
    ]
    assert [each.text for each in stored[1:]] == texts
    assert latest.recent[-1].since_ms == stored[1].at_ms


def test_moves_begin_anew_after_anything_else_about_the_camera() -> None:
    latest, _ = notices()
    latest.moved(HERE, "gate", "gate moved to 320 px")
    latest.moved(HERE, "door", "door moved to 320 px")
    latest.moved(HERE, "gate", "gate moved to 256 px")
    latest.publish("info", "gate left", "gate")
    latest.moved(HERE, "gate", "gate moved to 320 px")
    assert [(each.camera, each.moves) for each in latest.recent] == [
        ("door", 1),
        ("gate", 2),
        ("gate", 0),
        ("gate", 1),
    ]


def test_moves_are_limited_like_all_notices_of_a_camera() -> None:
    latest, stored = notices()
    for _ in range(NOTICES_PER_MINUTE + 5):
        latest.moved(HERE, "gate", "gate moved to 320 px")
    assert len(stored) == latest.recent[0].moves == NOTICES_PER_MINUTE
    latest.end_minute({"gate"})
    assert latest.recent[-1].text == "gate: 5 more notices within a minute"
