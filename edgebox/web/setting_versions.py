"""Refuses a change of a camera's settings that would undo another one without a word.

Whoever changes settings may say which versions of them they saw. A version is the digest of a
setting's value by which boxes of a fleet compare settings: it needs no counter, and is the same on
every box and after a restart. Lives on the event loop.
"""

from collections.abc import Callable, Mapping

from edgebox.domain.access import Identity
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.field_reader import FieldReader
from edgebox.domain.overrides import Overrides
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import FIELDS, digest_of, value_of
from edgebox.link.override_messages import NAMES, written


class SettingsChangedError(EdgeboxError):
    """A setting is not any more what the sender of a change saw."""

    http_status = 409
    code = "settings_changed"
    title = "The settings were changed meanwhile"


def versions(overrides: Overrides) -> dict[str, str]:
    """Return the version of each field; the fields of one setting have the same."""
    of = {name: digest_of(value) for name, value in _values(overrides).items()}
    return {field: of[name] for name, fields in FIELDS.items() for field in fields}


def read_change(fields: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """Return the settings of a request, and the versions that its sender saw, where it says so.

    Raises:
        InvalidInputError: these are no versions; the message says what is wrong.
    """
    settings = {name: value for name, value in fields.items() if name != "base"}
    read = FieldReader("settings", fields)
    base = read.inner("base", optional=True)
    base.refuse_unknown(NAMES)
    seen = {name: base.text(name) for name in base.names() if name in NAMES}
    read.finish()
    return settings, seen


def differing(before: Overrides, after: Overrides) -> list[str]:
    """Return the names of the settings that differ."""
    one, other = _values(before), _values(after)
    return [name for name in FIELDS if one[name] != other[name]]


def _values(overrides: Overrides) -> dict[str, bytes]:
    fields = written(overrides)
    return {name: value_of(fields, name) for name in FIELDS}


def refuse_unseen(
    camera: CameraId,
    seen: Mapping[str, str],
    before: Overrides,
    after: Overrides,
    who: Callable[[str], str],
) -> None:
    """Refuse a change of settings that are others than its sender saw.

    What the change leaves as it is may be any; so a change can be repeated.

    Args:
        camera: whose settings they are.
        seen: the versions that the sender saw, of any fields.
        before: what is set.
        after: what would be.
        who: returns who set a setting last, as the end of a sentence.

    Raises:
        SettingsChangedError: says which ones, and who changed them.
    """
    now = versions(before)
    changed = [
        " and ".join(FIELDS[name]) + who(name)
        for name in differing(before, after)
        if any(seen.get(field, now[field]) != now[field] for field in FIELDS[name])
    ]
    if changed:
        raise SettingsChangedError(
            f"settings of {camera} were changed meanwhile: {', '.join(changed)}; load what is set "
            "now, then change it again"
        )


class Setters:
    """Who set what on this box since it started."""

    def __init__(self) -> None:
        """Know of nobody."""
        self._names: dict[tuple[CameraId, str], str] = {}

    def note(self, camera: CameraId, settings: list[str], by: Identity) -> None:
        """Remember who changed some settings of a camera."""
        for setting in settings:
            self._names[camera, setting] = "" if by.token is None else by.token.name

    def forget(self, camera: CameraId) -> None:
        """Forget who set a camera."""
        for setting in FIELDS:
            self._names.pop((camera, setting), None)

    def of(self, camera: CameraId, setting: str) -> str:
        """Return who changed a setting last; empty: it is not known."""
        return self._names.get((camera, setting), "")
