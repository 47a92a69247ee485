"""The JSON in which boxes compare and fetch settings: what is broken is one clear error."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import parse_object
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import (
    BUCKETS,
    COUNTER_MAX,
    NOTHING,
    ReplicatedSettings,
    Revision,
    Setting,
    SettingKey,
    Version,
    value_of,
)
from edgebox.fleet.settings_documents import (
    ANSWER_BYTES_MAX,
    VALUE_BYTES_MAX,
    WANTED_MAX,
    comparison,
    read_comparison,
    read_settings,
    read_versions,
    read_wish,
    settings_answer,
    versions_answer,
    wish,
)

GATE = CameraId("gate")
KEY = SettingKey(GATE, "slo")
SLO = Setting(Version(7, "box-1 at http://box-1:8787"), b'{"slo_ms":250.0}')
DIGEST = SLO.revision.digest
NAMES = st.text("abcdefgh.-_0123456789", min_size=1, max_size=12)


def fetched(here: ReplicatedSettings, there: ReplicatedSettings) -> int:
    """Fetch as a box does, over the documents; return how many requests that took."""
    first: int | None = 0
    requests = 0
    while first is not None:
        asked = read_comparison(parse_object(comparison(here.digests(), first)))
        found = read_versions(versions_answer(there, *asked))
        first, newer = found.next, here.to_fetch(found.versions)
        requests += 1
        while newer:
            wanted = read_wish(parse_object(wish(newer[:WANTED_MAX])))
            body = settings_answer(there.settings, wanted)
            assert len(body) <= ANSWER_BYTES_MAX + VALUE_BYTES_MAX
            settings, refused = read_settings(body, wanted)
            assert settings and not refused
            here.take(settings)
            newer = [key for key in newer if key not in settings]
            requests += 1
    return requests


@given(st.dictionaries(NAMES, st.integers(50, 900), max_size=8), st.data())
def test_both_have_the_same_after_each_has_fetched(
    slos: dict[str, int], data: st.DataObject
) -> None:
    boxes = [ReplicatedSettings(), ReplicatedSettings()]
    for at, (camera, slo_ms) in enumerate(slos.items()):
        box = data.draw(st.integers(0, 1))
        boxes[box].change(CameraId(camera), {"slo_ms": slo_ms}, f"box-{box}", at)
    fetched(*boxes)
    fetched(*reversed(boxes))
    assert boxes[0].settings == boxes[1].settings
    assert boxes[0].digest() == boxes[1].digest()
    assert fetched(*boxes) == 1  # nothing differs: no second request


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["gate", "yard"]).map(CameraId),
            st.tuples(
                st.builds(Version, st.integers(1, 2), st.sampled_from("ab")),
                st.sampled_from([50.0, 60.0, None]),
            ),
        ),
        min_size=3,
        max_size=3,
    ),
    st.permutations([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]),
)
def test_boxes_agree_after_exchanges_in_any_order_also_on_values_of_one_version(
    known: list[dict[CameraId, tuple[Version, float | None]]], order: list[tuple[int, int]]
) -> None:
    boxes = [
        ReplicatedSettings(
            {
                SettingKey(camera, "slo"): Setting(version, value_of({"slo_ms": slo_ms}, "slo"))
                for camera, (version, slo_ms) in of_box.items()
            }
        )
        for of_box in known
    ]
    for here, there in [*order, *order]:  # twice: what one box has comes to another by a third
        fetched(boxes[here], boxes[there])
    assert boxes[0].settings == boxes[1].settings == boxes[2].settings
    assert len({each.digest() for each in boxes}) == 1
    assert fetched(boxes[0], boxes[1]) == 1  # nothing differs any more


def test_thousands_of_cameras_and_values_too_large_for_one_answer_come_in_parts() -> None:
    here, there = ReplicatedSettings(), ReplicatedSettings()
    corners = [[at / 100, 0.0 if at % 2 else 0.123456789] for at in range(60)]
    zones = [{"name": f"z{at}", "points": corners, "min_dwell_s": 0.0} for at in range(16)]
    for number in range(3_000):
        there.change(CameraId(f"camera-{number}"), {"app": "x", "rate_hz": 2.0}, "b", number)
    # Their sides cross, but nobody checks that here: it is about sizes.
    big = Setting(Version(5_000, "b"), orjson.dumps({"zones": zones}))
    wanted = [SettingKey(CameraId(f"big-{number}"), "zones") for number in range(100)]
    answer = settings_answer(dict.fromkeys(wanted, big), wanted)
    assert 0.9 * ANSWER_BYTES_MAX < len(answer) <= ANSWER_BYTES_MAX
    assert fetched(here, there) > 3
    assert here.digest() == there.digest()


def test_what_a_newer_release_has_is_left_out() -> None:
    rows = [[*KEY, 7, "b", DIGEST], [GATE, "new-thing", 7, "b", DIGEST]]
    body = orjson.dumps({"versions": rows, "next": None})
    assert read_versions(body).versions == {KEY: Revision(Version(7, "b"), DIGEST)}
    (answered,) = orjson.loads(settings_answer({KEY: SLO}, [KEY]))["settings"]
    other = SettingKey(GATE, "zones")
    newer = {**answered, "setting": "zones", "value": {"zones": [], "masks": []}}
    settings, refused = read_settings(orjson.dumps({"settings": [answered, newer]}), [KEY, other])
    assert settings == {KEY: SLO}
    assert refused == {other: "gate: the setting zones must be an object with zones, lines"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"camera": "no/name"}, "camera must be"),
        ({"setting": "site"}, "setting was not asked for"),
        ({"counter": COUNTER_MAX + 1}, "counter must be"),
        ({"counter": -1}, "counter must be"),
        ({"counter": 1.5}, "counter must be"),
        ({"box": "x" * 600}, "box must be"),
        ({"box": "a\nb"}, "box must be"),
    ],
)
def test_a_broken_setting_is_one_error_that_says_what_is_wrong(
    change: dict[str, Any], message: str
) -> None:
    (good,) = orjson.loads(settings_answer({KEY: SLO}, [KEY]))["settings"]
    with pytest.raises(InvalidInputError, match=message):
        read_settings(orjson.dumps({"settings": [{**good, **change}]}), [KEY])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"slo_ms": 0}, "slo_ms must be"),
        ({"slo_ms": "fast"}, "slo_ms must be"),
        ({"rate_hz": 1}, "must be an object with slo_ms"),
        (7, "must be an object with slo_ms"),
        (None, "must be an object with slo_ms"),
    ],
)
def test_a_value_that_nobody_could_set_here_is_refused_and_the_others_are_taken(
    value: Any, message: str
) -> None:
    app = SettingKey(GATE, "app")
    known = {KEY: SLO, app: Setting(Version(8, "b"), NOTHING)}
    one, other = orjson.loads(settings_answer(known, [KEY, app]))["settings"]
    settings, refused = read_settings(
        orjson.dumps({"settings": [{**one, "value": value}, other]}), [KEY, app]
    )
    assert settings == {app: known[app]}
    assert [*refused] == [KEY]
    assert message in refused[KEY]


@pytest.mark.parametrize(
    ("read", "fields", "message"),
    [
        (read_comparison, {"digests": ["0" * 16], "first": 0}, f"must be {BUCKETS} texts"),
        (read_comparison, {"digests": ["x" * 16] * BUCKETS, "first": 0}, "hexadecimal"),
        (read_comparison, {"digests": ["0" * 16] * BUCKETS, "first": BUCKETS}, "first must be"),
        (read_comparison, {}, "digests is missing"),
        (read_wish, {"wanted": [["gate", "slo"]] * (WANTED_MAX + 1)}, "at most 500"),
        (read_wish, {"wanted": [["gate"]]}, "a camera's name and a setting"),
        (read_wish, {"wanted": [["../x", "slo"]]}, "a camera's name and a setting"),
        (read_wish, {"wanted": "gate"}, "wanted must be"),
    ],
)
def test_a_broken_request_is_one_error(
    read: Callable[[Mapping[str, object]], object], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(fields)


@pytest.mark.parametrize(
    "row", [["gate", "slo", 7], ["gate", "slo", -1, "b", DIGEST], ["a b", "slo", 7, "b", DIGEST], 7,
            ["gate", "slo", True, "b", DIGEST], ["gate", "slo", 7, "x" * 600, DIGEST],
            ["gate", "slo", 7, "b"], ["gate", "slo", 7, "b", "x" * 16]]
)  # fmt: skip
def test_broken_versions_are_one_error(row: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"answer.versions\[0\] must be"):
        read_versions(orjson.dumps({"versions": [row], "next": None}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMED = st.dictionaries(
    st.sampled_from(["versions", "next", "settings", "camera", "setting", "counter", "box"]),
    JSON,
    max_size=4,
)


@given(st.binary(max_size=60) | NAMED.map(lambda found: json.dumps(found).encode()))
def test_no_answer_breaks_the_readers(body: bytes) -> None:
    for read in (read_versions, lambda answer: read_settings(answer, [KEY])):
        try:
            read(body)
        except InvalidInputError as error:
            assert str(error)
