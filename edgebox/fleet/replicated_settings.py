"""Decides which settings of cameras are in force in a fleet, whatever order boxes hear of them in.

Every box keeps all settings and changes them without asking. A change has a version, and of two
values of one setting the one with the higher version stays. So boxes that have heard of the same
changes have the same settings, in whatever order and however often they heard of them, and a box
that was away undoes nothing that was changed meanwhile.

A version is a hybrid logical clock (Kulkarni et al., Logical Physical Clocks, OPODIS 2014): one
more than every version that the box has seen, of other settings up to `AHEAD_MAX_MS` from now, and
at least the milliseconds of its wall clock. A change by somebody who could see another one always
wins over that, as with Lamport's clock; of changes that did not know of each other the later one
wins, as far as wall clocks agree, and not that of the box where more was changed. Boxes are told
apart by name; where even that is equal, as with two boxes of one name or one that was put back from
a backup, the value decides, so the order is total and merging commutative, associative and
idempotent. Boxes compare versions with digests of the values, so that they find such values, too.

A setting is what is valid alone: a pipeline and a model family exclude each other, and zones and
lines share their names, so each of these pairs is one setting. A setting that was removed stays as
an empty value for `TOMBSTONE_MS`, so that boxes which were away do not bring it back; one that is
away for longer may. A removal that is as old teaches nothing to a box that does not know the
setting: boxes forget it at different times, and would learn of it again from each other for ever.
Of more than `SETTINGS_MAX` the most recently changed are kept.

That a token was revoked is shared in the same way, as a setting of the token that was removed.

Complexity: a merge is linear in the settings kept, and n log k with k above their limit. Pure.
"""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from edgebox.domain.requests import CameraId

FIELDS: Mapping[str, tuple[str, ...]] = {
    "slo": ("slo_ms",),
    "rate": ("rate_hz",),
    "app": ("app",),
    "accuracy": ("min_accuracy",),
    "site": ("site",),
    "model": ("pipeline", "family"),
    "tracking": ("tracking",),
    "zones": ("zones", "lines"),
}
"""The settings, and the fields of each in `link/override_messages`."""
TOKEN = "token"
"""A token of a box, under its id. It is removed when it is revoked, and never anything else."""
NAMES = (*FIELDS, TOKEN)
SETTINGS_MAX = 20_000
BYTES_MAX = 1 << 26
"""Values of all settings together; more are not taken from other boxes."""
BUCKETS = 256
"""Into so many parts cameras are divided, each with a digest, so that boxes compare few names."""
TOMBSTONE_MS = 30 * 86_400_000
AHEAD_MAX_MS = 86_400_000
"""A version further ahead of the wall clock comes of a clock that was wrong, or of a box that lies,
and counts for its own setting alone: after one of `COUNTER_MAX` no setting could be changed."""
COUNTER_MAX = 1 << 52
"""The highest version, exact in any JSON. What has it is not changed any more."""
NOTHING = b"{}"
"""The value of a setting that was removed."""
_DIGEST_BYTES = 8


class Changes(NamedTuple):
    """What a box's settings became."""

    changed: list["SettingKey"]
    """Those whose version is another now."""
    forgotten: list["SettingKey"]
    """Those that it shares no more: there are too many. They stay in force on the box."""


class SettingKey(NamedTuple):
    """One setting of one camera."""

    camera: CameraId
    """Of a token: its id."""
    name: str
    """One of `NAMES`."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """When a setting was changed, among all changes of the fleet, and by which box."""

    counter: int
    """Milliseconds of a hybrid logical clock."""
    box: str


class Revision(NamedTuple):
    """What boxes compare of a setting before they fetch it."""

    version: Version
    digest: str
    """Of its value, as `digest_of` makes it."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """A value of a setting; the greater one of two is in force."""

    version: Version
    value: bytes
    """The fields that are set, as canonical JSON: `NOTHING` if none is."""

    @property
    def revision(self) -> Revision:
        """Return what tells it from other values of the same setting."""
        return Revision(self.version, digest_of(self.value))


Settings = Mapping[SettingKey, Setting]


def value_of(fields: Mapping[str, object], name: str) -> bytes:
    """Return the value of the setting of this name in all fields of a camera; null: not set."""
    given = {field: fields[field] for field in FIELDS[name] if fields.get(field) is not None}
    return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)


def digest_of(value: bytes) -> str:
    """Return a digest of a setting's value, in hexadecimal."""
    return hashlib.sha256(value).hexdigest()[: 2 * _DIGEST_BYTES]


_NO_DIGEST = digest_of(NOTHING)


def fields_of(key: SettingKey, value: bytes) -> dict[str, object]:
    """Return all fields of a setting; null: not set."""
    return {**dict.fromkeys(FIELDS[key.name]), **orjson.loads(value)}


def merged(one: Settings, other: Settings, settings_max: int = SETTINGS_MAX) -> Settings:
    """Return what is in force after a box has heard of both."""
    both = dict(one)
    for key, setting in other.items():
        known = both.get(key)
        if known is None or known < setting:
            both[key] = setting
    surplus = max(0, len(both) - settings_max)
    # As a rule one change makes a few too many: finding these costs less than ordering all.
    for key in heapq.nsmallest(surplus, both, key=lambda key: _order(key, both[key])):
        del both[key]
    return both


def _order(key: SettingKey, setting: Setting) -> tuple[bool, int, str, bytes, SettingKey]:
    """Return what orders settings as they themselves do, and those alike by their keys.

    Tokens are the last to be forgotten: they would be valid again.
    """
    version = setting.version
    return key.name == TOKEN, version.counter, version.box, setting.value, key


def without_old(settings: Settings, now_ms: int) -> Settings:
    """Return settings without those that were removed long ago.

    Args:
        settings: all.
        now_ms: the wall clock, Unix milliseconds.
    """
    return {
        key: setting for key, setting in settings.items() if not _is_old(setting.revision, now_ms)
    }


def _is_old(revision: Revision, now_ms: int) -> bool:
    """Say whether a setting was removed so long ago that boxes forget it."""
    return revision.version.counter < now_ms - TOMBSTONE_MS and revision.digest == _NO_DIGEST


def bucket_of(camera: str) -> int:
    """Return the part that a camera belongs to, on every box the same."""
    return hashlib.sha256(camera.encode()).digest()[0]


class ReplicatedSettings:
    """All settings that a box of a fleet knows, and the digests of their versions."""

    def __init__(self, settings: Settings | None = None) -> None:
        """Begin with some settings."""
        self._settings: Settings = {}
        self._in_bucket: list[set[SettingKey]] = [set() for _ in range(BUCKETS)]
        self._sums = [0] * BUCKETS
        """Sums of the settings' hashes, which need no order."""
        self._highest = 0
        self.bytes = 0
        """Of all values."""
        self.take(settings or {})

    @property
    def settings(self) -> Settings:
        """All settings; those that were removed have an empty value."""
        return self._settings

    def of(self, camera: CameraId) -> dict[str, Setting]:
        """Return the settings of one camera by their names."""
        found = ((name, self._settings.get(SettingKey(camera, name))) for name in FIELDS)
        return {name: setting for name, setting in found if setting is not None}

    def is_revoked(self, token: str) -> bool:
        """Say whether the token with this id was revoked."""
        return SettingKey(CameraId(token), TOKEN) in self._settings

    # -- changes ------------------------------------------------------------------------------

    def change(
        self, camera: CameraId, fields: Mapping[str, object], box: str, now_ms: int
    ) -> Changes:
        """Set a camera on this box.

        Args:
            camera: it.
            fields: all its fields as they are now; null: not set.
            box: this one's name.
            now_ms: the wall clock, Unix milliseconds.
        """
        seen = self._next_counter(now_ms)
        found = {}
        for key, value in self._different(camera, fields):
            before = self._settings.get(key)
            counter = seen if before is None else max(seen, before.version.counter + 1)
            found[key] = Setting(Version(min(counter, COUNTER_MAX), box), value)
        return self.take(found)

    def revoke(self, tokens: Mapping[str, int], box: str, now_ms: int) -> Changes:
        """Take in that tokens were revoked on this box, where that is not known, or as of earlier.

        Args:
            tokens: when by id, Unix milliseconds: no earlier than anything descends from them.
                So boxes remember it long enough, also if the clock was behind meanwhile.
            box: this one's name.
            now_ms: the wall clock, Unix milliseconds.
        """
        next_counter = self._next_counter(now_ms)
        found = {}
        for token, at_ms in tokens.items():
            key = SettingKey(CameraId(token), TOKEN)
            known = self._settings.get(key)
            if known is None or known.version.counter < min(at_ms, COUNTER_MAX):
                counter = min(max(next_counter, at_ms), COUNTER_MAX)
                found[key] = Setting(Version(counter, box), NOTHING)
        return self.take(found)

    def _next_counter(self, now_ms: int) -> int:
        return max(min(self._highest, now_ms + AHEAD_MAX_MS) + 1, now_ms)

    def change_unseen(self, cameras: Mapping[CameraId, Mapping[str, object]], box: str) -> Changes:
        """Take in how cameras are set that may have been changed here while this was in no fleet.

        Such a change follows what the box knew then, and precedes whatever the fleet changed since.

        Args:
            cameras: with all their fields; null: not set.
            box: this one's name.
        """
        found = {}
        for camera, fields in cameras.items():
            for key, value in self._different(camera, fields):
                before = self._settings.get(key)
                counter = 1 if before is None else before.version.counter + 1
                found[key] = Setting(Version(min(counter, COUNTER_MAX), box), value)
        return self.take(found)

    def _different(
        self, camera: CameraId, fields: Mapping[str, object]
    ) -> Iterator[tuple[SettingKey, bytes]]:
        for name in FIELDS:
            key, value = SettingKey(camera, name), value_of(fields, name)
            before = self._settings.get(key)
            if value != (NOTHING if before is None else before.value):
                yield key, value

    def take(self, others: Settings, now_ms: int = 0) -> Changes:
        """Take in settings from elsewhere.

        Args:
            others: the settings.
            now_ms: the wall clock, Unix milliseconds: what was removed long before is not taken in
                if it is not known. 0: nothing was.
        """
        others = {
            key: setting
            for key, setting in others.items()
            if key in self._settings or not _is_old(setting.revision, now_ms)
        }
        before, after = self._settings, merged(self._settings, others)
        changed = [key for key in others if key in after and after[key] != before.get(key)]
        forgotten = []
        if len(after) < len(before.keys() | others.keys()):
            forgotten = [key for key in before if key not in after]
        self._replace(after, [*changed, *forgotten])
        return Changes(changed, forgotten)

    def forget_old(self, now_ms: int) -> Changes:
        """Forget what was removed long ago."""
        after = without_old(self._settings, now_ms)
        gone = [key for key in self._settings if key not in after]
        self._replace(after, gone)
        return Changes([], gone)

    def _replace(self, settings: Settings, differing: Iterable[SettingKey]) -> None:
        for key in differing:
            self._count(key, self._settings.get(key), -1)
            self._count(key, settings.get(key), 1)
        self._settings = settings

    def _count(self, key: SettingKey, setting: Setting | None, sign: int) -> None:
        if setting is None:
            return
        bucket = bucket_of(key.camera)
        self._sums[bucket] = (self._sums[bucket] + sign * _hash(key, setting)) % (
            1 << 8 * _DIGEST_BYTES
        )
        self.bytes += sign * len(setting.value)
        if sign > 0:
            self._in_bucket[bucket].add(key)
            self._highest = max(self._highest, setting.version.counter)
        else:
            self._in_bucket[bucket].discard(key)

    # -- what boxes compare -------------------------------------------------------------------

    def digest(self) -> str:
        """Return a digest of all settings and their versions."""
        return hashlib.sha256("".join(self.digests()).encode()).hexdigest()[: 4 * _DIGEST_BYTES]

    def digests(self) -> list[str]:
        """Return the digest of each bucket, in hexadecimal."""
        return [f"{each:0{2 * _DIGEST_BYTES}x}" for each in self._sums]

    def in_bucket(self, bucket: int) -> dict[SettingKey, Setting]:
        """Return the settings of one bucket, in order."""
        return {key: self._settings[key] for key in sorted(self._in_bucket[bucket])}

    def to_fetch(
        self, revisions: Mapping[SettingKey, Revision], now_ms: int = 0
    ) -> list[SettingKey]:
        """Return the settings that are newer, or only known, where these revisions are from.

        And those of the same version with another value: which of the two is in force is decided
        by the values, when there are both. Not those that `take` would leave out.
        """
        wanted = []
        for key, there in revisions.items():
            known = self._settings.get(key)
            if known is None:
                differs = not _is_old(there, now_ms)
            else:
                differs = known.version <= there.version and known.revision != there
            if differs:
                wanted.append(key)
        return wanted

    def fitting(self, others: Settings) -> tuple[Settings, Sequence[SettingKey]]:
        """Return the settings for which there is room, and those for which there is none.

        One that takes the place of another needs room only for what it is longer by.
        """
        room = BYTES_MAX - self.bytes
        fitting, left_out = {}, []
        for key, setting in others.items():
            known = self._settings.get(key)
            more_bytes = len(setting.value) - (0 if known is None else len(known.value))
            if more_bytes <= max(room, 0) or key.name == TOKEN:
                room -= more_bytes
                fitting[key] = setting
            else:
                left_out.append(key)
        return fitting, left_out


def _hash(key: SettingKey, setting: Setting) -> int:
    version = setting.version
    text = orjson.dumps([*key, version.counter, version.box])
    found = hashlib.sha256(text + setting.value).digest()
    return int.from_bytes(found[:_DIGEST_BYTES])


def cameras_of(keys: Iterable[SettingKey]) -> list[CameraId]:
    """Return the cameras of some settings, each once."""
    return list(dict.fromkeys(key.camera for key in keys if key.name != TOKEN))
