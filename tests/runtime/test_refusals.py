"""Who was turned away is counted every time and told once."""

from edgebox.domain.requests import CameraId
from edgebox.runtime.refusals import BoxFullError, NoCapacityError, Refusals

S = 1_000_000_000


def test_each_attempt_counts_and_a_camera_that_keeps_asking_is_told_once() -> None:
    now_ns = 0
    notices: list[tuple[str, CameraId | None]] = []
    refusals = Refusals(
        lambda text, camera, address: notices.append((text, camera)), lambda: now_ns
    )
    gate, yard = CameraId("gate"), CameraId("yard")
    for at_s in range(0, 300, 15):
        now_ns = at_s * S
        refusals.add(gate, "10.0.0.7", NoCapacityError("too many"))
    assert notices == [("gate was refused: too many", gate)]
    refusals.add(gate, "10.0.0.7", BoxFullError("full"))
    refusals.add(yard, "10.0.0.7", NoCapacityError("too many"))
    assert [text for text, _ in notices[1:]] == [
        "gate was refused: full",
        "yard was refused: too many",
    ]
    now_ns += 61 * S
    refusals.add(gate, "10.0.0.7", NoCapacityError("too many"))
    assert len(notices) == 4
    assert refusals.counts == {"no_capacity": 22, "box_full": 1}


def test_refused_requests_are_counted_and_one_notice_tells_of_each_kind() -> None:
    now_ns = 0
    notices: list[tuple[str, CameraId | None]] = []
    refusals = Refusals(
        lambda text, camera, address: notices.append((text, camera)), lambda: now_ns
    )
    for number in range(100):
        now_ns = number * S
        refusals.add_request(f"10.0.0.{number}", BoxFullError("full"))
    assert notices == [("a request from 10.0.0.0 was refused: full", None)]
    assert refusals.counts == {"box_full": 100}
