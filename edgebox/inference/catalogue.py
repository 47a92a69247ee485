"""The catalogue of models that can be downloaded: facts about each, none of them guessed.

Limits: it downloads nothing.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgebox.domain.errors import ModelError
from edgebox.inference.family import Task
from edgebox.vision.coco import COCO80

_FILE = Path(__file__).with_name("catalogue.toml")
_HOST = "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One model that can be downloaded."""

    name: str
    """Also the name of the family that it becomes."""
    title: str
    task: Task
    labels: tuple[str, ...]
    """Its classes; empty: it gives embeddings."""
    width_px: int
    height_px: int
    layout: str
    """Its row in the importer's table of layouts."""
    licence: str
    authors: str
    file: str
    """Name of the file, also in a mirror."""
    size_bytes: int
    sha256: str
    repository: str
    commit: str
    path: str
    """Where the file is in the repository at that commit."""
    accuracy: float | None = None
    """As its authors published it; None: they did not."""
    accuracy_of: str = ""
    """What the accuracy is of, and who says so."""

    @property
    def url(self) -> str:
        """Address of the file, which always has the same content."""
        return f"{_HOST}/{self.repository}/{self.commit}/{self.path}"

    def document(self) -> dict[str, Any]:
        """Return the entry for programs."""
        return {
            "name": self.name,
            "title": self.title,
            "task": self.task,
            "labels": list(self.labels),
            "width_px": self.width_px,
            "height_px": self.height_px,
            "licence": self.licence,
            "authors": self.authors,
            "published_accuracy": self.accuracy,
            "published_accuracy_of": self.accuracy_of or None,
            "file": self.file,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
            "source": self.url,
        }


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return every model that can be downloaded."""
    tables = tomllib.loads(_FILE.read_text("utf-8"))["models"]
    return tuple(_entry(table) for table in tables)


def _entry(table: dict[str, Any]) -> CatalogueEntry:
    labels = table.get("labels", ())
    return CatalogueEntry(**{**table, "labels": COCO80 if labels == "coco80" else tuple(labels)})


def entry_named(name: str) -> CatalogueEntry:
    """Return one model of the catalogue.

    Raises:
        ModelError: there is none of this name.
    """
    for entry in catalogue():
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in catalogue())
    raise ModelError(
        f"the catalogue has no model {name!r}; it has {known}. Files of your own are brought in "
        "with edgebox models import FILE"
    )
