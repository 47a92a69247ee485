"""Settings that boxes share: whatever order they hear of changes in, they agree."""

from collections.abc import Iterable
from functools import reduce

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from edgebox.domain.overrides import NOTHING_SET
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import (
    AHEAD_MAX_MS,
    BUCKETS,
    BYTES_MAX,
    COUNTER_MAX,
    FIELDS,
    NOTHING,
    TOKEN,
    TOMBSTONE_MS,
    ReplicatedSettings,
    Revision,
    Setting,
    SettingKey,
    Settings,
    Version,
    bucket_of,
    fields_of,
    merged,
    value_of,
    without_old,
)
from edgebox.link.override_messages import NAMES, changed, written

GATE, YARD = CameraId("gate"), CameraId("yard")
KEYS = st.builds(
    SettingKey, st.sampled_from([GATE, YARD, CameraId("dock")]), st.sampled_from([*FIELDS])
)
VERSIONS = st.builds(Version, st.integers(0, 4), st.sampled_from("ab"))
VALUES = st.sampled_from([NOTHING, b'{"a":1}', b'{"a":2}'])
SETTINGS = st.dictionaries(KEYS, st.builds(Setting, VERSIONS, VALUES), max_size=12)
NO_SETTINGS: Settings = {}


def revisions(settings: Settings) -> dict[SettingKey, Revision]:
    return {key: of.revision for key, of in settings.items()}


LIMIT = 5
"""So few that merges forget some."""


@given(SETTINGS, SETTINGS, SETTINGS)
def test_a_merge_is_commutative_associative_idempotent_and_bounded(
    a: Settings, b: Settings, c: Settings
) -> None:
    def merge(*several: Settings) -> Settings:
        return reduce(lambda one, other: merged(one, other, LIMIT), several)

    a, b, c = (merged({}, each, LIMIT) for each in (a, b, c))
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, a) == a
    assert merge(a, b, a, b) == merge(a, b)
    assert len(merge(a, b, c)) <= LIMIT


@given(SETTINGS, SETTINGS)
def test_of_too_many_the_latest_changes_are_kept(a: Settings, b: Settings) -> None:
    by_age = sorted((of, key) for key, of in merged(a, b).items())
    assert merged(a, b, LIMIT) == {key: of for of, key in by_age[-LIMIT:]}


@given(st.lists(SETTINGS, max_size=6))
def test_boxes_that_heard_the_same_have_the_same_and_the_same_digests(
    heard: list[dict[SettingKey, Setting]],
) -> None:
    def box(documents: Iterable[Settings]) -> ReplicatedSettings:
        replicated = ReplicatedSettings()
        for each in documents:
            replicated.take(each)
        return replicated

    one, other = box(heard), box([*reversed(heard), *heard])
    whole = ReplicatedSettings(reduce(merged, heard, NO_SETTINGS))
    for each in (one, other):
        assert each.settings == whole.settings
        assert each.digests() == whole.digests()
        assert each.digest() == whole.digest()
        assert each.bytes == sum(len(of.value) for of in each.settings.values())
    by_bucket = [one.in_bucket(each) for each in range(BUCKETS)]
    assert {key: of for part in by_bucket for key, of in part.items()} == one.settings
    assert all(bucket_of(key.camera) == n for n, part in enumerate(by_bucket) for key in part)


@given(SETTINGS, SETTINGS)
def test_what_differs_elsewhere_and_is_not_older_makes_both_the_same(
    here: Settings, there: Settings
) -> None:
    replicated = ReplicatedSettings(here)
    fetched = replicated.to_fetch(revisions(there))
    replicated.take({key: there[key] for key in fetched})
    assert replicated.settings == merged(here, there)
    differing = [key for key in fetched if key in here]
    assert all(there[key] != here[key] for key in differing)
    assert all(there[key].version >= here[key].version for key in differing)


def test_settings_that_exclude_each_other_are_one() -> None:
    assert sorted(field for fields in FIELDS.values() for field in fields) == sorted(NAMES)
    one, other = ReplicatedSettings(), ReplicatedSettings()
    one.change(GATE, written(changed(NOTHING_SET, {"pipeline": "vehicles"})), "a", 10)
    other.change(GATE, written(changed(NOTHING_SET, {"family": "street"})), "b", 11)
    one.take(other.settings)
    fields: dict[str, object] = {}
    for name, setting in one.of(GATE).items():
        fields |= fields_of(SettingKey(GATE, name), setting.value)
    assert changed(NOTHING_SET, fields).family == "street"
    assert changed(NOTHING_SET, fields).pipeline is None


def test_a_change_by_somebody_who_saw_the_other_wins_whatever_the_clock_says() -> None:
    ahead, behind = ReplicatedSettings(), ReplicatedSettings()
    ahead.change(GATE, {"app": "early"}, "ahead", 9_000)
    behind.take(ahead.settings)
    behind.change(GATE, {"app": "late"}, "behind", 10)
    ahead.take(behind.settings)
    assert ahead.of(GATE)["app"].value == b'{"app":"late"}'
    assert ahead.of(GATE)["app"].version == Version(9_001, "behind")


@pytest.mark.parametrize("counter", [COUNTER_MAX, 10 * AHEAD_MAX_MS])
def test_one_setting_from_the_far_future_leaves_the_others_to_be_changed(counter: int) -> None:
    one, other = ReplicatedSettings(), ReplicatedSettings()
    lie = {SettingKey(GATE, "slo"): Setting(Version(counter, "liar"), b'{"slo_ms":1}')}
    for box in (one, other):
        box.take(lie)
    for number in range(3):
        one.change(YARD, {"app": f"app {number}"}, "one", 1_000)
        (seen,) = one.of(YARD).values()
        assert 1_000 < seen.version.counter <= 1_001 + AHEAD_MAX_MS + number
    other.change(YARD, {"app": "later"}, "other", 2_000)
    one.take(other.settings)
    other.take(one.settings)
    assert one.settings == other.settings
    assert one.of(YARD)["app"].value == b'{"app":"later"}'
    one.change(GATE, {"slo_ms": 2}, "one", 3_000)
    one.change_unseen({GATE: {"slo_ms": 3}}, "one")
    assert one.of(GATE)["slo"].version.counter <= COUNTER_MAX


def test_of_changes_that_did_not_know_of_each_other_the_later_one_wins() -> None:
    busy, quiet = ReplicatedSettings(), ReplicatedSettings()
    for number in range(50):
        busy.change(YARD, {"rate_hz": 1.0 + number}, "busy", 100 + number)
    busy.change(GATE, {"app": "early"}, "busy", 150)
    quiet.change(GATE, {"app": "late"}, "quiet", 500)
    busy.take(quiet.settings)
    assert busy.of(GATE)["app"].value == b'{"app":"late"}'


def test_what_is_set_again_as_it_was_is_no_change() -> None:
    replicated = ReplicatedSettings()
    assert replicated.change(GATE, {"app": "x", "slo_ms": 100.0}, "a", 1).changed == [
        SettingKey(GATE, "slo"), SettingKey(GATE, "app")
    ]  # fmt: skip
    digest = replicated.digest()
    assert not replicated.change(GATE, {"app": "x", "slo_ms": 100.0}, "a", 2).changed
    assert replicated.digest() == digest
    assert replicated.change(GATE, {"app": "x"}, "a", 3).changed == [SettingKey(GATE, "slo")]
    assert replicated.of(GATE)["slo"].value == NOTHING


def test_a_change_outside_the_fleet_follows_what_was_known_and_precedes_what_came_since() -> None:
    away = ReplicatedSettings()
    away.change(GATE, {"app": "first", "site": "yard"}, "away", 100)
    fleet = ReplicatedSettings(away.settings)
    fleet.change(GATE, {"app": "fleet", "site": "yard"}, "other", 200)
    alone = {"app": "alone", "site": "dock"}
    away.change_unseen({GATE: alone}, "away")
    away.change_unseen({GATE: alone}, "away")
    assert away.of(GATE)["site"].version == Version(101, "away")
    away.take(fleet.settings)
    assert away.of(GATE)["app"].value == b'{"app":"fleet"}'
    assert away.of(GATE)["site"].value == b'{"site":"dock"}'
    never = ReplicatedSettings()
    never.change_unseen({GATE: {"app": "never shared"}}, "b")
    never.take(fleet.settings)
    assert never.of(GATE)["app"].value == b'{"app":"fleet"}'


def test_removed_settings_are_remembered_for_so_long() -> None:
    replicated = ReplicatedSettings()
    replicated.change(GATE, {"app": "x", "site": "yard"}, "a", 1)
    replicated.change(GATE, {"site": "yard"}, "a", 1_000)
    assert replicated.forget_old(1_000 + TOMBSTONE_MS).forgotten == []
    assert replicated.forget_old(1_001 + TOMBSTONE_MS).forgotten == [SettingKey(GATE, "app")]
    assert [*replicated.of(GATE)] == ["site"]
    fresh = ReplicatedSettings(replicated.settings)
    assert (fresh.digest(), fresh.bytes) == (replicated.digest(), replicated.bytes)


def test_what_boxes_forget_at_different_times_does_not_come_back() -> None:
    one, other = ReplicatedSettings(), ReplicatedSettings()
    one.change(GATE, {"app": "x"}, "a", 1_000)
    one.change(GATE, {}, "a", 2_000)
    other.take(one.settings)
    now_ms = 2_001 + TOMBSTONE_MS
    one.forget_old(now_ms)
    assert one.to_fetch(revisions(other.settings), now_ms) == []
    one.take(other.settings, now_ms)
    assert one.settings == {}
    away = ReplicatedSettings()  # it has the setting: it hears of the removal, however old that is
    away.change(GATE, {"app": "x"}, "a", 1_000)
    fetched = away.to_fetch(revisions(other.settings), now_ms)
    away.take({key: other.settings[key] for key in fetched}, now_ms)
    assert away.settings == other.settings
    assert away.forget_old(now_ms).forgotten == other.forget_old(now_ms).forgotten != []


def test_a_token_is_revoked_as_of_its_last_use_whatever_the_clock_says() -> None:
    box, key = ReplicatedSettings(), SettingKey(CameraId("5c1e7a90"), TOKEN)
    for at_ms, now_ms, counter in ((1_000, 60, 1_000), (1_000, 2_000, 1_000), (3_000, 70, 3_000)):
        box.revoke({key.camera: at_ms}, "a", now_ms)
        assert box.settings[key].version.counter == counter
    box.revoke({key.camera: COUNTER_MAX + 1}, "a", 2_000)
    assert box.settings[key].version.counter == COUNTER_MAX
    assert box.revoke({key.camera: COUNTER_MAX + 1}, "a", 2_000).changed == []


def test_a_revoked_token_is_forgotten_last_and_has_always_room() -> None:
    full = {
        SettingKey(CameraId(f"c{n}"), "app"): Setting(Version(9, "a"), b"{}") for n in range(LIMIT)
    }
    revoked = ReplicatedSettings()
    revoked.revoke({"5c1e7a90": 1}, "a", 1)
    assert [*revoked.settings] == [(key := SettingKey(CameraId("5c1e7a90"), TOKEN))]
    assert key in merged(full, revoked.settings, LIMIT)
    assert revoked.revoke({"5c1e7a90": 1}, "b", 2).changed == []
    big = Setting(Version(1, "b"), b"x" * BYTES_MAX)
    box = ReplicatedSettings({SettingKey(GATE, "zones"): big})
    assert box.fitting(revoked.settings) == (revoked.settings, [])
    assert not box.is_revoked("5c1e7a90")
    box.take(revoked.settings)
    assert box.is_revoked("5c1e7a90")
    box.forget_old(2 + TOMBSTONE_MS)
    assert not box.is_revoked("5c1e7a90")


@given(SETTINGS, st.integers(0, 4))
def test_only_removed_settings_grow_old(settings: Settings, now: int) -> None:
    left = without_old(settings, now + TOMBSTONE_MS)
    assert all(settings[key] == of for key, of in left.items())
    gone = settings.keys() - left.keys()
    assert all(settings[key].value == NOTHING for key in gone)
    assert all(settings[key].version.counter < now for key in gone)


def test_more_than_there_is_room_for_is_left_out() -> None:
    replicated = ReplicatedSettings()
    big = Setting(Version(1, "b"), b"x" * (BYTES_MAX // 2))
    fitting, left_out = replicated.fitting(
        {SettingKey(CameraId(f"c{number}"), "zones"): big for number in range(3)}
    )
    assert [key.camera for key in fitting] == ["c0", "c1"]
    assert [key.camera for key in left_out] == ["c2"]


def test_a_full_box_takes_what_is_no_longer_than_what_it_replaces() -> None:
    gate, yard, dock = (SettingKey(CameraId(name), "zones") for name in ("gate", "yard", "dock"))
    replicated = ReplicatedSettings(
        {
            gate: Setting(Version(1, "a"), b"x" * (BYTES_MAX - 100)),
            yard: Setting(Version(1, "a"), b"y" * 100),
        }
    )
    newer, too_much = Version(2, "b"), Setting(Version(2, "b"), b"z" * 101)
    fitting, left_out = replicated.fitting(
        {dock: too_much, yard: Setting(newer, b"z" * 100), gate: Setting(newer, NOTHING)}
    )
    assert left_out == [dock]
    assert [*fitting] == [yard, gate]
    replicated.take(fitting)
    assert replicated.fitting({dock: too_much}) == ({dock: too_much}, [])


@pytest.mark.parametrize("name", FIELDS)
def test_a_value_has_the_fields_that_are_set(name: str) -> None:
    fields = dict.fromkeys(FIELDS[name], 1)
    value = value_of({**dict.fromkeys(NAMES), **fields}, name)
    assert orjson.loads(value) == fields
    assert fields_of(SettingKey(GATE, name), value) == fields
    assert fields_of(SettingKey(GATE, name), NOTHING) == dict.fromkeys(FIELDS[name])


class Fleet(RuleBasedStateMachine):
    """Boxes that are changed, exchange settings two at a time, and crash; none undoes another."""

    boxes: list[ReplicatedSettings]

    @initialize()
    def begin(self) -> None:
        self.boxes = [ReplicatedSettings() for _ in range(3)]
        self.clock = 0

    @rule(
        box=st.integers(0, 2),
        app=st.sampled_from(["x", "y", None]),
        camera=st.sampled_from([GATE, YARD]),
        passed=st.integers(0, 5),
    )
    def change(self, box: int, app: str | None, camera: CameraId, passed: int) -> None:
        self.clock += passed
        self.boxes[box].change(camera, {"app": app}, f"box-{box}", self.clock)
        of = self.boxes[box].of(camera).get("app")
        assert (NOTHING if of is None else of.value) == value_of({"app": app}, "app")

    @precondition(lambda self: self.clock > 0)
    @rule(here=st.integers(0, 2), there=st.integers(0, 2))
    def fetch(self, here: int, there: int) -> None:
        mine, theirs = self.boxes[here], self.boxes[there]
        before = dict(mine.settings)
        differing = [
            bucket
            for bucket, (one, other) in enumerate(
                zip(mine.digests(), theirs.digests(), strict=True)
            )
            if one != other
        ]
        offered = {key: of for part in differing for key, of in theirs.in_bucket(part).items()}
        mine.take({key: offered[key] for key in mine.to_fetch(revisions(offered))})
        assert mine.settings == merged(before, theirs.settings)
        assert all(mine.settings[key] >= of for key, of in before.items())

    @rule(box=st.integers(0, 2))
    def restart(self, box: int) -> None:
        self.boxes[box] = ReplicatedSettings(self.boxes[box].settings)

    @invariant()
    def versions_of_one_box_are_its_own(self) -> None:
        values: dict[tuple[SettingKey, Version], bytes] = {}
        for box in self.boxes:
            for key, of in box.settings.items():
                assert values.setdefault((key, of.version), of.value) == of.value


TestFleet = Fleet.TestCase
