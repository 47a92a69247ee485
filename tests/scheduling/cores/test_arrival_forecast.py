"""When the next frames of cameras come, and how long they will have left."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import CameraId
from edgebox.scheduling.cores.arrival_forecast import CAMERAS_MAX, ArrivalForecast
from tests.scheduling.scene import MS, name, request


def arrive(forecast: ArrivalForecast, at_ms: float, left_ms: float = 200, of: str = "a") -> None:
    forecast.arrived(request(1, at_ms + left_ms, of=of), name(128), round(at_ms * MS))


def foreseen(forecast: ArrivalForecast, now_ms: float, end_ms: float, limit: int = 9) -> list[int]:
    found = forecast.until(round(now_ms * MS), round(end_ms * MS), limit)
    return sorted(each.arrival_ns // MS for each in found)


def test_a_steady_camera_goes_on() -> None:
    forecast = ArrivalForecast()
    arrive(forecast, 0)
    assert foreseen(forecast, 1, 1000) == [], "one frame says nothing of a rate"
    for at in range(1, 4):
        arrive(forecast, 100 * at)
    assert foreseen(forecast, 310, 610) == [400, 500, 600]
    assert foreseen(forecast, 310, 600) == [400, 500], "those before the end"
    assert foreseen(forecast, 310, 10_000, limit=2) == [400, 500]
    (frame,) = forecast.until(310 * MS, 450 * MS, 9)
    assert frame.deadline_ns == 600 * MS
    assert frame.variant == name(128)


def test_one_that_is_late_comes_now_and_one_that_is_gone_does_not() -> None:
    forecast = ArrivalForecast()
    arrive(forecast, 0)
    arrive(forecast, 100)
    assert foreseen(forecast, 250, 260) == [250]
    assert foreseen(forecast, 401, 900) == [], "more than three gaps: it has left"


def test_a_pause_is_no_gap() -> None:
    forecast = ArrivalForecast()
    for at_ms in (0, 100, 200, 60_000):
        arrive(forecast, at_ms)
    assert foreseen(forecast, 60_001, 60_150) == [60_100]


def test_one_shot_names_are_forgotten() -> None:
    forecast = ArrivalForecast()
    arrive(forecast, 0, of="steady")
    arrive(forecast, 100, of="steady")
    for at in range(CAMERAS_MAX):
        arrive(forecast, 101, of=f"once-{at}")
    assert CameraId("steady") not in forecast._cameras
    assert len(forecast._cameras) == CAMERAS_MAX


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 500)), max_size=30),
    st.integers(0, 1000),
    st.integers(0, 3000),
    st.integers(1, 6),
)
def test_all_that_is_foreseen_lies_ahead(
    steps: list[tuple[str, int]], later_ms: int, span_ms: int, limit: int
) -> None:
    forecast, now_ms = ArrivalForecast(), 0
    for of, gap_ms in steps:
        now_ms += gap_ms
        arrive(forecast, now_ms, of=of)
    now_ms += later_ms
    found = forecast.until(now_ms * MS, (now_ms + span_ms) * MS, limit)
    assert len(found) <= limit
    assert all(now_ms * MS <= each.arrival_ns <= (now_ms + span_ms) * MS for each in found)
