"""The folder of an imported family: written next to the others, renamed after verification.

Limits: never overwrites a family, and nothing outside the models folder is written.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from edgebox.domain.errors import ModelError
from edgebox.inference.family import FITS, MANIFEST
from edgebox.inference.importing.layouts import Layout
from edgebox.storage.unfinished_folder import unfinished_folder
from edgebox.vision.decoding import EMBEDDING

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
UNFINISHED = ".importing-"


@dataclass(frozen=True, slots=True)
class ImportedVariant:
    """A variant to be written."""

    name: str
    width_px: int
    height_px: int
    file: str
    accuracy: float


@dataclass(frozen=True, slots=True)
class ImportedFamily:
    """A family to be written."""

    name: str
    layout: Layout
    licence: str
    description: str
    labels: tuple[str, ...]
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    files: dict[str, bytes]
    """Content by name."""
    variants: tuple[ImportedVariant, ...]
    embedding_length: int | None = None


def family_name(wanted: str | None, first: Path) -> str:
    """Return the family's name: the requested one, or the file's.

    Raises:
        ModelError: it cannot be the name of a folder that is safe everywhere.
    """
    if wanted is None:
        wanted = re.sub(r"[^a-z0-9._-]+", "-", first.stem.lower()).strip("-._")[:64] or "model"
    if not _NAME.fullmatch(wanted) or wanted.endswith("."):
        raise ModelError(
            f"a family cannot be called {wanted!r}: a name is small letters, digits and . _ - (64 "
            "at most), and begins with a letter or digit"
        )
    return wanted


@contextlib.contextmanager
def unfinished(models: Path) -> Iterator[Path]:
    """Make a temporary folder that is never loaded; it is deleted at the end.

    Raises:
        ModelError: it cannot be made.
    """
    stack = contextlib.ExitStack()
    missing = [folder for folder in (models, *models.parents) if not folder.exists()]
    try:
        models.mkdir(parents=True, exist_ok=True)
        folder = stack.enter_context(unfinished_folder(models, UNFINISHED))
    except OSError as error:
        raise ModelError(f"{models}: cannot be written: {error.strerror}") from None
    try:
        yield folder
    finally:
        stack.close()
        for made in missing:
            with contextlib.suppress(OSError):  # a family is in it by now
                made.rmdir()


def write_family(folder: Path, family: ImportedFamily) -> None:
    """Write a family's files and manifest, down to the disk.

    Raises:
        ModelError: they cannot be written.
    """
    try:
        for name, content in family.files.items():
            _write(folder / name, content)
        _write(folder / MANIFEST, manifest_of(family).encode())
    except OSError as error:
        raise ModelError(f"{folder}: cannot be written: {error.strerror}") from None


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def move_in(folder: Path, models: Path, name: str) -> Path:
    """Give a finished folder its name, at once and whole; return where it is.

    Raises:
        ModelError: there is a family of this name.
    """
    target = models / name
    try:
        # A rename onto an empty folder would succeed.
        if target.exists():
            raise FileExistsError
        folder.rename(target)
    except OSError as error:
        if isinstance(error, FileExistsError) or target.exists():
            raise ModelError(f"{target}: is there already; choose another --name") from None
        raise ModelError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def manifest_of(family: ImportedFamily) -> str:
    """Return the text of a family's manifest."""
    how, length = family.layout.preprocessing, family.embedding_length
    fit = next(name for name, fit in FITS.items() if fit == how.fit)
    lines = [
        f"name = {_text(family.name)}",
        f"task = {_text(family.layout.task)}",
        f"licence = {_text(family.licence)}",
        f"description = {_text(family.description)}",
        f"labels = {_texts(family.labels)}",
        *([] if length is None else [f"embedding_length = {length}"]),
        "",
        "[input]",
        'layout = "nhwc"',
        'dtype = "uint8"',
        'order = "rgb"',
        f"fit = {_text(fit)}",
        f"fill = {how.fill}",
        "size_multiple_px = 1",
        "",
        "[output]",
        f"decoder = {_text('boxes_scores_labels' if length is None else EMBEDDING)}",
        "",
        "[import]",
        f"layout = {_text(family.layout.name)}",
        f"sources = {_texts(family.sources)}",
        f"remarks = {_texts(family.remarks)}",
    ]
    digests = {name: sha256(content).hexdigest() for name, content in family.files.items()}
    for variant in family.variants:
        lines += [
            "",
            "[[variants]]",
            f"name = {_text(variant.name)}",
            f"width_px = {variant.width_px}",
            f"height_px = {variant.height_px}",
            f"accuracy = {variant.accuracy:.4f}",
            "accuracy_assumed = true",
            f"file = {_text(variant.file)}",
            f"sha256 = {_text(digests[variant.file])}",
        ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a text as TOML writes it: JSON's escapes are TOML's, but for DEL.

    Bytes of a file's name that are no UTF-8 become question marks.
    """
    whole = value.encode(errors="replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _texts(values: Sequence[str]) -> str:
    return "[" + ", ".join(_text(value) for value in values) + "]"
