"""Owns the JSON in which boxes of a fleet compare and fetch settings of cameras. Pure.

A box that sees another digest asks twice: for the versions in the parts that differ, with digests
of the values, and then for the settings that are newer there. Requests change nothing where they
are answered.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import FieldReader, is_integer, parse_object
from edgebox.domain.overrides import NOTHING_SET
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import (
    BUCKETS,
    COUNTER_MAX,
    FIELDS,
    NAMES,
    ReplicatedSettings,
    Revision,
    Setting,
    SettingKey,
    Settings,
    Version,
)
from edgebox.link.override_messages import changed
from edgebox.link.protocol import NAME_PATTERN

DIGEST_PATTERN = re.compile(r"[0-9a-f]{16}")
WANTED_MAX = 500
"""Settings that are asked for at once."""
VALUE_BYTES_MAX = 1 << 17
"""A value is read from a request of half as much; JSON may write its numbers longer."""
ANSWER_BYTES_MAX = 1 << 20
"""An answer with settings has as many as fit, at least one."""
VERSIONS_BYTES_MAX = 1 << 22
"""An answer with versions is far shorter, unless most settings are in one part."""
_VERSIONS_PER_ANSWER = 2_000
_BOX_LENGTH_MAX = 512


# -- requests ---------------------------------------------------------------------------------


def comparison(digests: Sequence[str], first: int) -> bytes:
    """Return the request for versions.

    Args:
        digests: of all parts, where this box's settings are.
        first: the part to begin with.
    """
    return orjson.dumps({"digests": list(digests), "first": first})


def read_comparison(fields: Mapping[str, object]) -> tuple[list[str], int]:
    """Read such a request.

    Raises:
        InvalidInputError: it is none; the message says what is wrong.
    """
    read = FieldReader("comparison", fields)
    digests = read.items("digests", BUCKETS)
    fits = all(isinstance(each, str) and DIGEST_PATTERN.fullmatch(each) for each in digests)
    if len(digests) != BUCKETS or not fits:
        read.refuse("digests", f"must be {BUCKETS} texts of 16 hexadecimal digits")
    first = read.integer("first", 0, BUCKETS - 1)
    read.finish()
    return [str(each) for each in digests], first


def wish(keys: Sequence[SettingKey]) -> bytes:
    """Return the request for settings, at most `WANTED_MAX`."""
    return orjson.dumps({"wanted": [list(key) for key in keys]})


def read_wish(fields: Mapping[str, object]) -> list[SettingKey]:
    """Read such a request.

    Raises:
        InvalidInputError: it is none; the message says what is wrong.
    """
    read = FieldReader("wish", fields)
    wanted = []
    for at, item in enumerate(read.items("wanted", WANTED_MAX)):
        match item:
            case [str() as camera, str() as name] if NAME_PATTERN.fullmatch(camera):
                wanted.append(SettingKey(CameraId(camera), name))
            case _:
                read.refuse(("wanted", at), "must be a camera's name and a setting", item)
                break
    read.finish()
    return wanted


# -- answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions in some of the parts that differ."""

    versions: Mapping[SettingKey, Revision]
    next: int | None
    """The part to go on with; None: these were all."""


def versions_answer(settings: ReplicatedSettings, digests: Sequence[str], first: int) -> bytes:
    """Return the versions of the parts from `first` on whose digests are others here.

    Whole parts only, until there are `_VERSIONS_PER_ANSWER`.
    """
    own = settings.digests()
    rows: list[tuple[str, str, int, str, str]] = []
    following = None
    for bucket in range(first, BUCKETS):
        if len(rows) >= _VERSIONS_PER_ANSWER:
            following = bucket
            break
        if own[bucket] != digests[bucket]:
            rows += [
                (*key, version.counter, version.box, digest)
                for key, setting in settings.in_bucket(bucket).items()
                for version, digest in (setting.revision,)
            ]
    return orjson.dumps({"versions": rows, "next": following})


def read_versions(body: bytes) -> Versions:
    """Read such an answer; settings that this release does not know are left out.

    Raises:
        InvalidInputError: it is none; the message says what is wrong.
    """
    read = FieldReader("answer", parse_object(body, "an answer about settings"))
    versions = {}
    for at, item in enumerate(read.items("versions")):
        match item:
            case [str() as camera, str() as name, counter, str() as box, str() as digest] if (
                NAME_PATTERN.fullmatch(camera)
                and is_integer(counter, 0, COUNTER_MAX)
                and _is_box(box)
                and DIGEST_PATTERN.fullmatch(digest)
            ):
                if name in NAMES:
                    key = SettingKey(CameraId(camera), name)
                    versions[key] = Revision(Version(counter, box), digest)
            case _:
                read.refuse(
                    ("versions", at),
                    "must be a camera's name, a setting, a whole number, a box's name and a digest",
                    item,
                )
                break
    following = read.integer("next", 1, BUCKETS - 1, 0) or None
    read.finish()
    return Versions(versions, following)


def settings_answer(settings: Settings, wanted: Sequence[SettingKey]) -> bytes:
    """Return those of the wanted settings that are known and fit into an answer, in order."""
    parts: list[bytes] = []
    size_bytes = 0
    for key in wanted:
        setting = settings.get(key)
        if setting is None:
            continue
        part = orjson.dumps(
            {
                "camera": key.camera,
                "setting": key.name,
                "counter": setting.version.counter,
                "box": setting.version.box,
                "value": orjson.Fragment(setting.value),
            }
        )
        size_bytes += len(part) + 1
        if parts and size_bytes > ANSWER_BYTES_MAX - 1_000:
            break
        parts.append(part)
    return b'{"settings":[' + b",".join(parts) + b"]}"


def read_settings(
    body: bytes, wanted: Sequence[SettingKey]
) -> tuple[dict[SettingKey, Setting], dict[SettingKey, str]]:
    """Read such an answer.

    Args:
        body: of the answer.
        wanted: what was asked for.

    Returns:
        The settings, and why this box refuses the others: a newer release may allow more.

    Raises:
        InvalidInputError: it is no such answer; the message says what is wrong.
    """
    read = FieldReader("answer", parse_object(body, "an answer about settings"))
    found: dict[SettingKey, Setting] = {}
    refused: dict[SettingKey, str] = {}
    asked = set(wanted)
    for one in read.objects("settings", WANTED_MAX):
        camera = one.text("camera", pattern=NAME_PATTERN)
        key = SettingKey(CameraId(camera), one.text("setting"))
        version = Version(
            one.integer("counter", 0, COUNTER_MAX), one.text("box", length_max=_BOX_LENGTH_MAX)
        )
        value = one.raw("value")
        if key not in asked:
            one.refuse("setting", "was not asked for", list(key))
        read.finish()
        try:
            found[key] = Setting(version, _checked(key, value))
        except InvalidInputError as error:
            refused[key] = f"{key.camera}: {error}"
    read.finish()
    return found, refused


def _checked(key: SettingKey, value: object) -> bytes:
    """Return a value as canonical JSON.

    Raises:
        InvalidInputError: it is none that a person could set on this box.
    """
    fields = value if isinstance(value, dict) else {"value": value}
    known = FIELDS.get(key.name, ())
    if any(name not in known for name in fields):
        raise InvalidInputError(
            f"the setting {key.name} must be an object with {', '.join(known) or 'nothing in it'}"
        )
    changed(NOTHING_SET, fields)
    given = {name: each for name, each in fields.items() if each is not None}
    written = orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
    if len(written) > VALUE_BYTES_MAX:
        raise InvalidInputError(
            f"the setting {key.name} has {len(written)} bytes, and may have {VALUE_BYTES_MAX}"
        )
    return written


def _is_box(text: str) -> bool:
    return len(text) <= _BOX_LENGTH_MAX and text.isprintable()
