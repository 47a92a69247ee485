"""Keeps the settings that people make of cameras the same on all boxes of a fleet.

What is in force is decided by `fleet/replicated_settings`; this applies it to the box, stores it,
and takes in what is set here. Lives on the event loop; nothing here waits for another box.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import (
    FIELDS,
    NAMES,
    TOKEN,
    Changes,
    ReplicatedSettings,
    Setting,
    SettingKey,
    Settings,
    Version,
    cameras_of,
    fields_of,
    merged,
)
from edgebox.link.override_messages import changed, written
from edgebox.runtime.box import Box
from edgebox.storage.database import Storage
from edgebox.storage.wall_clock import wall_clock_ms

_log = logging.getLogger(__name__)
_PART_BYTES = 32_768
"""Values that are put into force at once: the largest zones of a camera take some 60 ms."""
_NOTICES_MAX = 20
"""Of more cameras at once, their number is told."""


class FleetSettings:
    """The settings of all cameras of the fleet, as this box knows them."""

    def __init__(self, box: Box, storage: Storage) -> None:
        """Know no settings; `load` reads them."""
        self.name = box.name
        """The name of this box in the versions of what is set here."""
        self.replicated = ReplicatedSettings()
        self.on_revoked: Callable[[], None] = lambda: None
        """Called after tokens were revoked on other boxes."""
        self._box = box
        self._storage = storage
        self._set_here: set[SettingKey] = set()
        """Those whose value in force was set on this box, under whatever name it had then."""

    async def load(self) -> None:
        """Read what is stored; to be called once the box has its own cameras' settings.

        Raises:
            StorageError: the database cannot be read.
        """
        rows = await self._storage.fleet_settings.load()
        stored = {
            SettingKey(camera, name): Setting(Version(counter, box), value)
            for camera, name, counter, box, value, _ in rows
            if name in NAMES
        }
        self._set_here = {
            SettingKey(camera, name) for camera, name, *_, here in rows if here and name in NAMES
        }
        self.replicated = ReplicatedSettings(merged({}, stored))
        known: dict[CameraId, Mapping[str, object]] = {}
        for camera in await self._storage.cameras():
            try:
                fields = written(changed(NOTHING_SET, camera.overrides))
            except InvalidInputError:
                continue  # damaged: what the fleet knows is in force
            known[camera.camera] = fields
        self._store(self.replicated.change_unseen(known, self.name), here=True)
        for name in cameras_of(self.replicated.settings):
            if name not in known:
                self._apply(name)

    # -- what is set here -----------------------------------------------------------------------

    def set_here(self, camera: CameraId, overrides: Overrides) -> None:
        """Tell the fleet that a camera was set on this box."""
        fields = written(overrides)
        changes = self.replicated.change(camera, fields, self.name, wall_clock_ms())
        self._store(changes, here=True)

    def forgotten_here(self, camera: CameraId) -> None:
        """Tell the fleet that a camera was forgotten on this box."""
        self.set_here(camera, NOTHING_SET)

    def revoked_here(self, tokens: Mapping[str, int]) -> None:
        """Tell the fleet which tokens were revoked on this box: Unix milliseconds by their ids."""
        self._store(self.replicated.revoke(tokens, self.name, wall_clock_ms()), here=True)

    def forget_old(self) -> None:
        """Forget what was removed long ago."""
        self._store(self.replicated.forget_old(wall_clock_ms()))

    def set_elsewhere(self, camera: CameraId, setting: str) -> str:
        """Return the box on which a setting was changed last; empty: this one, or it is not set."""
        found = self.replicated.of(camera).get(setting)
        if found is None or SettingKey(camera, setting) in self._set_here:
            return ""
        box = found.version.box
        return "" if box == self.name else box  # an earlier release stored no more than the name

    # -- what others set ------------------------------------------------------------------------

    async def take(self, others: Settings) -> int:
        """Take in settings from another box; return for how many there is no room.

        A few cameras at a time, so that frames are served in between; each is stored and in force
        when others are looked at.
        """
        left_out = 0
        differing: dict[CameraId, Settings] = {}
        for part in _parts(others):
            fitting, too_many = self.replicated.fitting(part)
            left_out += len(too_many)
            differing |= self._take_part(fitting)
            await asyncio.sleep(0)
        if len(differing) > _NOTICES_MAX:
            text = f"the settings of {len(differing)} cameras came from other boxes of the fleet"
            self._box.notices.publish("info", text)
        else:
            for camera, settings in differing.items():
                self._tell(camera, settings)
        return left_out

    def _take_part(self, others: Settings) -> dict[CameraId, Settings]:
        """Take in some settings; return the cameras that are set otherwise now, and how."""
        before = self.replicated.settings
        changes = self.replicated.take(others, wall_clock_ms())
        self._store(changes)
        if any(key.name == TOKEN for key in changes.changed):
            self.on_revoked()
        differing: dict[CameraId, dict[SettingKey, Setting]] = {}
        for key in changes.changed:
            if key.name == TOKEN:
                continue
            known, setting = before.get(key), self.replicated.settings[key]
            if known is None or known.value != setting.value:
                differing.setdefault(key.camera, {})[key] = setting
        return {camera: of for camera, of in differing.items() if self._apply(camera)}

    def _tell(self, camera: CameraId, settings: Settings) -> None:
        boxes = {setting.version.box for setting in settings.values()}
        names = ", ".join(field for key in settings for field in FIELDS[key.name])
        text = f"{camera} was set on {', '.join(sorted(boxes))}: {names}"
        self._box.notices.publish("info", text, camera)

    def _apply(self, camera: CameraId) -> bool:
        """Put what the fleet knows of a camera into force; return whether anything changed."""
        before = self._box.overrides.get(camera, NOTHING_SET)
        fields: dict[str, object] = {}
        for name, setting in self.replicated.of(camera).items():
            fields |= fields_of(SettingKey(camera, name), setting.value)
        try:
            after = changed(before, fields)
        except InvalidInputError as error:  # only a damaged database has such
            _log.warning("the fleet's settings of %s are damaged: %s", camera, error)
            return False
        self._box.override(camera, after)
        self._storage.record_overrides(camera, written(after))
        return after != before

    def _store(self, changes: Changes, *, here: bool = False) -> None:
        """Store what changed; `here`: it was set on this box."""
        self._set_here.difference_update(changes.changed, changes.forgotten)
        if here:
            self._set_here.update(changes.changed)
        for key in changes.changed:
            setting = self.replicated.settings[key]
            version = setting.version
            self._storage.fleet_settings.record(
                (key.camera, key.name, version.counter, version.box, setting.value, here)
            )
        for key in changes.forgotten:
            self._storage.fleet_settings.forget(key.camera, key.name)


def _parts(settings: Settings) -> Iterator[Settings]:
    """Yield settings in parts, those of one camera together."""
    part: dict[SettingKey, Setting] = {}
    size_bytes = 0
    for _, keys in groupby(sorted(settings), key=lambda key: key.camera):
        of_camera = {key: settings[key] for key in keys}
        part |= of_camera
        size_bytes += sum(len(each.value) for each in of_camera.values())
        if size_bytes >= _PART_BYTES:
            yield part
            part, size_bytes = {}, 0
    if part:
        yield part
