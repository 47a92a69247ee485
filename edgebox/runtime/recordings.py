"""Reads and writes journal files: gzip JSON lines, named after the time.

The files may come from untrusted people. They are read line by line within bounds, nothing in them
is executed, and errors name the line.
"""

import asyncio
import contextlib
import gzip
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson

from edgebox import __version__
from edgebox.runtime.entries import JournalEntry, JournalError, read_entry
from edgebox.runtime.journal import FORMAT, FORMAT_VERSION, Journal, Recording
from edgebox.scheduling.checkpoint import StateError, read_state
from edgebox.scheduling.scheduler import Scheduler
from edgebox.storage.rows import Level
from edgebox.storage.unfinished_folder import is_forgotten

KEPT = 10
"""Files kept in a folder; a further one replaces the oldest."""
_LEVEL = 1
_LINE_BYTES_MAX = 64 << 20
_GZIP = b"\x1f\x8b"


def file_name() -> str:
    """Return a name with the present time, UTC."""
    return time.strftime("edgebox-journal-%Y%m%dT%H%M%SZ.jsonl.gz", time.gmtime())


def compressed(recording: Recording) -> Iterator[bytes]:
    """Yield the gzip file of a recording in pieces. Slow: not for the event loop."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in recording.lines():
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def write_file(recording: Recording, folder: Path) -> Path:
    """Write a recording atomically into a folder, and delete the oldest and forgotten files.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name()
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(compressed(recording))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    for old in _oldest_first(folder.glob("edgebox-journal-*.jsonl.gz"), path)[:-KEPT]:
        old.unlink(missing_ok=True)
    _remove_forgotten(folder)
    return path


def _remove_forgotten(folder: Path) -> None:
    for part in folder.glob("edgebox-journal-*.part"):
        with contextlib.suppress(FileNotFoundError):  # another box is done with it just now
            if is_forgotten(part):
                part.unlink()


def _oldest_first(files: Iterable[Path], newest: Path) -> list[Path]:
    """Sort files by the times in their names; the newest is known.

    What is named after a later time was written before the wall clock was set back: these are
    older than all others.
    """
    return sorted(files, key=lambda file: (file.name <= newest.name, file.name))


async def keep(journal: Journal, folder: Path, note: Callable[[Level, str], None]) -> Path | None:
    """Write a journal into a folder and publish a notice; None: writing failed."""
    try:
        path = await asyncio.to_thread(write_file, journal.recording(), folder)
    except (JournalError, OSError) as error:
        note("error", f"the journal was not written: {error}")
        return None
    note("warning", f"the journal was written to {path}")
    return path


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file."""

    edgebox: str
    policy: str
    parameters: dict[str, Any]
    entries: int
    clock_ns: int
    clock_unix_ms: int

    def unix_ms(self, at_ns: int) -> float:
        """Return an instant of the box's clock as Unix time."""
        return self.clock_unix_ms - (self.clock_ns - at_ns) / 1e6


class RecordingFile:
    """A journal's file, open for one pass from beginning to end."""

    def __init__(self, path: Path) -> None:
        """Read header and state.

        Raises:
            JournalError: it is not a journal, or has another version.
        """
        self._path = path
        self._number = 0
        self._file: gzip.GzipFile | BufferedReader | None = None
        try:
            with path.open("rb") as probe:
                zipped = probe.read(2) == _GZIP
            self._file = gzip.open(path) if zipped else path.open("rb")  # noqa: SIM115
        except OSError as error:
            raise JournalError(f"{path}: cannot be read: {error.strerror}") from None
        try:
            self.header = self._read_header()
            self.scheduler: Scheduler = self._read_scheduler()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def entries(self) -> Iterator[JournalEntry]:
        """Yield the calls in order, as many as the header says; close the file at the end.

        Raises:
            JournalError: a line is damaged, or lines are missing.
        """
        try:
            for _ in range(self.header.entries):
                line = self._line()
                try:
                    yield read_entry(line)
                except JournalError as error:
                    raise self._wrong(str(error)) from None
        finally:
            self.close()

    def _line(self) -> bytes:
        assert self._file is not None, "the file was read before"
        self._number += 1
        try:
            line = self._file.readline(_LINE_BYTES_MAX)
        except (OSError, EOFError, zlib.error) as error:
            raise self._wrong(f"is cut off or damaged ({error})") from None
        if not line:
            raise self._wrong("is missing: the file is cut off")
        if not line.endswith(b"\n"):
            raise self._wrong("is cut off")
        return line

    def _wrong(self, what: str) -> JournalError:
        return JournalError(f"{self._path}: line {self._number} {what}")

    def _read_header(self) -> Header:
        try:
            header = orjson.loads(self._line())
        except (orjson.JSONDecodeError, JournalError):
            header = None
        if type(header) is not dict or header.get("format") != FORMAT:
            raise JournalError(f"{self._path}: is not a journal of edgebox")
        version, edgebox = header.get("format_version"), header.get("edgebox")
        if version != FORMAT_VERSION or edgebox != __version__:
            raise JournalError(
                f"{self._path}: is a journal of edgebox {edgebox} (format {version}); this is "
                f"edgebox {__version__} (format {FORMAT_VERSION}): replay it with that version"
            )
        try:
            return Header(
                edgebox=str(edgebox),
                policy=str(header["policy"]),
                parameters=dict(header["parameters"]),
                entries=int(header["entries"]),
                clock_ns=int(header["clock"]["ns"]),
                clock_unix_ms=int(header["clock"]["unix_ms"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._wrong(f"is no header of a journal ({error!r})") from None

    def _read_scheduler(self) -> Scheduler:
        line = self._line()
        try:
            return read_state(orjson.loads(line)["state"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise self._wrong("is not the state that a journal begins with") from None
        except StateError as error:
            raise self._wrong(str(error)) from None
