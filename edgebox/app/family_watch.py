"""Notices what commands change in the folder of imported families, and lets a running box follow.

So `edgebox models get`, `default` and `remove` need no restart. Limits: what configuration files
say is read at the start only.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from edgebox.app.live_families import LiveFamilies
from edgebox.config.default_family import stored_default
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import FamilyName
from edgebox.inference.family import MANIFEST
from edgebox.inference.zoo import imported_folders
from edgebox.runtime.job_runner import BusyError, Finished, Job, Jobs

_log = logging.getLogger(__name__)

_PERIOD_S = 2.0


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of imported families, as it was at some moment."""

    families: Mapping[str, str]
    """The SHA-256 of each family's manifest, by the name of its folder."""
    default: str | None
    """The default family that was stored; None: none was."""


def look_into(models: Path) -> Folder:
    """Return what is in the folder of imported families now; blocks."""
    families = {}
    for folder in imported_folders(models):
        with contextlib.suppress(FileNotFoundError):  # removed since it was listed
            families[folder.name] = _sha256_of(folder / MANIFEST)
    return Folder(families, stored_default(models))


def _sha256_of(manifest: Path) -> str:
    """Return a file's SHA-256; empty: it cannot be read, which loading the family explains."""
    try:
        return sha256(manifest.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise
    except OSError:
        return ""


class FamilyWatch:
    """The folder of imported families as it was seen last."""

    def __init__(self, live: LiveFamilies, jobs: Jobs, at_start: Folder) -> None:
        """Watch from a moment on that lies before the box loaded its families."""
        self._live = live
        self._jobs = jobs
        self._seen = dict(at_start.families)
        """Families that are there, or are served although they are not; each is tried once."""
        self._told: dict[str, str | None] = {}
        """Of which change of a family that is in use people know."""
        self._default = at_start.default

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(_PERIOD_S)
            try:
                await self.follow()
            except (EdgeboxError, OSError) as error:
                _log.warning("changes of the imported models cannot be followed: %s", error)

    async def follow(self) -> None:
        """Look once, and follow what has changed."""
        live = self._live
        models = live.config.inference.models_folder
        found = await asyncio.to_thread(look_into, models)
        try:
            self._jobs.check_free()
        except BusyError:
            return  # it may be what changes the folder; look again later
        for name in [each for each, was in self._seen.items() if found.families.get(each) != was]:
            self._changed(name, found.families.get(name))
        for name, manifest in found.families.items():
            if name not in self._seen:
                self._seen[name] = manifest
                if name not in live.box.families:
                    self._add(name, models / name)
                    return  # one job at a time
        default = found.default
        if default is not None and default != self._default and default in live.box.families:
            self._default = default
            if live.config.origins.get("inference.family", "default") in ("default", "stored"):
                await live.use_default(FamilyName(default))

    def _changed(self, name: str, manifest: str | None) -> None:
        """Follow that a family has another manifest now, or none."""
        live = self._live
        if manifest is not None and manifest == live.manifest_of(name):
            self._seen[name] = manifest  # it was exchanged over HTTP
            return
        if by := live.forget(name):
            if self._told.get(name, "") != manifest:
                self._told[name] = manifest
                what = "removed" if manifest is None else "exchanged"
                live.box.notices.publish(
                    "warning",
                    f"the files of the model {name} were {what}, but {by} uses it: the box serves "
                    "it as it was, until nothing uses it any more or the box starts again",
                )
            return
        del self._seen[name]
        self._told.pop(name, None)

    def _add(self, name: str, folder: Path) -> None:
        async def work(job: Job) -> Finished:
            notices = self._live.box.notices
            try:
                executors = await self._live.add(folder, job.progress)
            except EdgeboxError as error:
                notices.publish("warning", f"the new model {name} is not served yet: {error}")
                raise
            text = f"the new model {name} is served from now on, on {', '.join(executors)}"
            notices.publish("info", text)
            return Finished(text)

        self._jobs.start("import", name, work)
