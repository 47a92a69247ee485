"""Notices what commands change in the folder of imported families, and lets a running box follow.

So `edgebox models get`, `default` and `remove` need no restart. Limits: what configuration files
say is read at the start only.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgebox.app.live_families import LiveFamilies
from edgebox.config.default_family import stored_default
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import FamilyName
from edgebox.inference.zoo import imported_folders
from edgebox.runtime.job_runner import BusyError, Finished, Job, Jobs

_log = logging.getLogger(__name__)

_PERIOD_S = 2.0


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of imported families, as it was at some moment."""

    families: Mapping[str, Path]
    """Folders by name."""
    default: str | None
    """The default family that was stored; None: none was."""


def look_into(models: Path) -> Folder:
    """Return what is in the folder of imported families now; blocks."""
    families = {folder.name: folder for folder in imported_folders(models)}
    return Folder(families, stored_default(models))


class FamilyWatch:
    """The folder of imported families as it was seen last."""

    def __init__(self, live: LiveFamilies, jobs: Jobs, at_start: Folder) -> None:
        """Watch from a moment on that lies before the box loaded its families."""
        self._live = live
        self._jobs = jobs
        self._seen = set(at_start.families)
        """Names of families that are there; each is tried once."""
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
        found = await asyncio.to_thread(look_into, live.config.inference.models_folder)
        try:
            self._jobs.check_free()
        except BusyError:
            return  # it may be what changes the folder; look again later
        for name in self._seen - found.families.keys():
            self._seen.remove(name)
            live.forget(name)
        for name, folder in found.families.items():
            if name not in self._seen:
                self._seen.add(name)
                if name not in live.box.families:
                    self._add(name, folder)
                    return  # one job at a time
        default = found.default
        if default is not None and default != self._default and default in live.box.families:
            self._default = default
            if live.config.origins.get("inference.family", "default") in ("default", "stored"):
                await live.use_default(FamilyName(default))

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
