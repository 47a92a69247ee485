"""MQTT topics and what Home Assistant is told."""

import re
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.protocol import NAME_PATTERN
from edgebox.notifications.topics import Topics, device

TOPICS = Topics("edgebox")
names = st.from_regex(NAME_PATTERN, fullmatch=True)
labels = st.text(min_size=1, max_size=20)


def discovery(camera: str, *labels: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(device(TOPICS, camera, labels, "box", "0.1.0"))
    return found


@given(camera=names, label=labels)
def test_topics_have_no_wildcards_and_know_their_camera(camera: str, label: str) -> None:
    of = (
        TOPICS.event(camera),
        TOPICS.connected(camera),
        TOPICS.on_time(camera),
        TOPICS.metrics(camera),
        TOPICS.picture(camera),
        TOPICS.count(camera, label),
    )
    assert len(set(of)) == len(of)
    for topic in of:
        assert not set(topic) & set("+#\0")
        assert TOPICS.camera_of(topic) == camera
    assert TOPICS.count(camera, label).startswith(TOPICS.count(camera, ""))
    assert TOPICS.camera_of(TOPICS.availability) is None
    assert TOPICS.camera_of(TOPICS.box_event) is None
    assert Topics("other").camera_of(of[0]) is None


@given(cameras=st.lists(names, min_size=2, max_size=2, unique=True), label=labels)
def test_ids_are_home_assistants_and_unlike(cameras: list[str], label: str) -> None:
    uids: list[str] = []
    where = set()
    for camera in cameras:
        topic = TOPICS.discovery("homeassistant", camera)
        assert re.fullmatch(r"homeassistant/device/edgebox/[A-Za-z0-9_-]+/config", topic)
        where.add(topic)
        uids += [entity["unique_id"] for entity in discovery(camera, label)["components"].values()]
    assert len(where) == 2
    assert len(set(uids)) == len(uids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", uid) for uid in uids)


def test_a_device_has_the_sensors_of_a_camera() -> None:
    document = discovery("gate-2", "person")
    assert document["device"]["name"] == "gate-2"
    components = document["components"]
    kinds = {key: entity["platform"] for key, entity in components.items()}
    assert kinds == {
        "connected": "binary_sensor",
        "on_time": "binary_sensor",
        "fps": "sensor",
        "latency_p50": "sensor",
        "latency_p99": "sensor",
        "on_time_share": "sensor",
        "variant": "sensor",
        "present_person": "binary_sensor",
        "count_person": "sensor",
    }
    assert components["present_person"]["state_topic"] == "edgebox/camera/gate-2/count/person"
    # What a camera shows is unknown while it is away; whether it is there never is.
    for key, entity in components.items():
        topics = [source["topic"] for source in entity["availability"]]
        expected = ["edgebox/availability", "edgebox/camera/gate-2/connected"]
        assert topics == (expected[:1] if key == "connected" else expected)
