"""The section that says where profiles, metrics and events are kept."""

from dataclasses import dataclass
from pathlib import Path

from edgebox.config.inference_section import data_folder
from edgebox.config.keys import key
from edgebox.domain.home_folder import expanded
from edgebox.storage.retention import Limits


@dataclass(frozen=True, slots=True)
class StorageParameters:
    """Where profiles, metrics and events are kept."""

    path: str = key(
        "",
        "The database file, relative to this file; empty: edgebox/edgebox.sqlite3 in "
        '$XDG_DATA_HOME or ~/.local/share; ":memory:" keeps nothing',
        may_be_empty=True,
    )
    size_max_mb: int = key(
        512,
        "Megabytes of the file; beyond that the oldest minutes go first, then the oldest hours",
        low=32,
        high=1_000_000,
    )
    second_retention_minutes: int = key(
        60, "Minutes for which metrics are kept by the second, in memory", low=1, high=1440
    )
    minute_retention_days: int = key(
        30, "Days after which metrics by the minute are deleted", low=1, high=3650
    )
    hour_retention_days: int = key(
        400,
        "Days after which metrics by the hour are deleted, but not before those by the minute",
        low=1,
        high=3650,
    )
    event_retention_days: int = key(30, "Days after which events are deleted", low=1, high=3650)

    @property
    def file(self) -> str:
        """The database file with the default filled in, or ":memory:"."""
        if self.path:
            return self.path
        return str(data_folder() / "edgebox.sqlite3")

    @property
    def folder(self) -> Path:
        """The folder of the database; the current one if nothing is kept."""
        return Path() if self.file == ":memory:" else expanded(self.file).parent

    def limits(self) -> Limits:
        """Return how long and how much is kept."""
        return Limits(
            second_minutes=self.second_retention_minutes,
            minute_days=self.minute_retention_days,
            hour_days=self.hour_retention_days,
            event_days=self.event_retention_days,
            size_max_bytes=self.size_max_mb * 1_000_000,
        )
