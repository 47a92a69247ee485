"""Runs an import in a process of its own, with limits on time, memory and files.

A model file is a program: in this process it could take all memory or never end, and Ctrl-C would
not end it.
"""

import asyncio
import contextlib
import json
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgebox.domain.job_errors import ImportRefusedError
from edgebox.inference.child_environment import environment_without_secrets
from edgebox.runtime.child_process import ended

_WORKER_MODULE = "edgebox.inference.importing.import_worker"
IMPORT_S = 900.0
"""Time limit of an import, if nothing else is asked."""
_LINE_BYTES_MAX = 1 << 20
_TAIL_BYTES = 65_536

Progress = Callable[[str, float], None]
Ask = Callable[[str, Sequence[str]], int | None]
"""Is given a file and the layouts it may have, in words; returns the index of one, or None."""


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """What is to be imported."""

    files: tuple[Path, ...]
    """One model file, or several for the same classes; seen from `folder`, and named so in
    messages."""
    folder: Path
    """Where the import runs."""
    models: Path
    """The folder of imported families."""
    name: str | None = None
    """Name of the new family; None: that of the file."""
    taken: Sequence[str] = ()
    """Names of the families there are."""
    layout: str | None = None
    """Its row in the table of layouts; None: it is recognised."""
    labels: tuple[str, ...] | None = None
    """None: those in the file, or COCO's."""
    embeds: bool = False
    licence: str | None = None
    """None: the one in the file."""
    sizes_px: tuple[tuple[int, int], ...] | None = None
    """Input sizes; None: the usual ones."""
    batch: int | None = None
    """1: single pictures only."""
    half: bool = False
    """Compute in half precision, if that finds the same."""
    pictures: tuple[Path, ...] = ()
    """Pictures to verify with; none: synthetic streets."""
    limit_s: float = IMPORT_S
    """Time limit, without that in which a person is asked."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of it."""

    folder: Path
    """The folder of the new family."""
    layout: str
    """The layout's name."""
    title: str
    """The layout, in words."""
    variants: int
    found: str
    """What the first file found at first sight, in words."""
    compared: int
    """Detections that the served graphs and the originals were found to agree on."""
    remarks: tuple[str, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """What a person is told of it."""
        return f"it finds {self.found} on the pictures it was tried on", *self.remarks


async def import_in_process(
    order: ImportOrder, progress: Progress, ask: Ask | None = None
) -> ImportResult:
    """Import model files; the process has ended when this returns or raises.

    Args:
        order: what to import.
        progress: called with the present step and the share done.
        ask: chooses between possible layouts; None: several are an error. It may block.

    Raises:
        ImportRefusedError: the files cannot be imported, or took too long.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _WORKER_MODULE),
        stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=order.folder, env=environment_without_secrets(),
        limit=_LINE_BYTES_MAX,
    )  # fmt: skip
    try:
        async with asyncio.timeout(order.limit_s) as limit:
            asks = None if ask is None else _timed(ask, limit)
            done = await _followed(process, _written(order, ask is not None), progress, asks)
    except TimeoutError:
        raise ImportRefusedError(
            f"the import was not done after {_duration_text(order.limit_s)} and was stopped"
        ) from None
    finally:
        await ended(process)
    return ImportResult(
        **{**done, "folder": Path(done["folder"]), "remarks": tuple(done["remarks"])}
    )


def _timed(ask: Ask, limit: asyncio.Timeout) -> Ask:
    """Let a limit not count the time in which a person is asked."""

    def asked(file: str, layouts: Sequence[str]) -> int | None:
        began_s = time.monotonic()
        answer = ask(file, layouts)
        at_s = limit.when()
        assert at_s is not None
        limit.reschedule(at_s + time.monotonic() - began_s)
        return answer

    return asked


def _duration_text(duration_s: float) -> str:
    return f"{duration_s / 60:g} minutes" if duration_s >= 120 else f"{duration_s:g} s"


def _written(order: ImportOrder, asks: bool) -> dict[str, object]:
    return {
        "files": [str(file) for file in order.files],
        "models": str(order.models.absolute()),
        "name": order.name,
        "layout": order.layout,
        "labels": order.labels,
        "embeds": order.embeds,
        "licence": order.licence,
        "taken": list(order.taken),
        "sizes_px": order.sizes_px,
        "batch": order.batch,
        "half": order.half,
        "pictures": [str(picture) for picture in order.pictures],
        "asks": asks,
    }


async def _followed(
    process: Process, order: Mapping[str, object], progress: Progress, ask: Ask | None
) -> dict[str, Any]:
    """Send a process its order, report its progress, answer it and return its result.

    Raises:
        ImportRefusedError: the file cannot be imported, or the process crashed.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.ensure_future(_end_of(process.stderr))
    await _tell(process.stdin, order)
    async for line in process.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # a library's print
        if not isinstance(message, dict):
            continue  # the same: a number is JSON, too
        if "refused" in message:
            raise ImportRefusedError(message["refused"])
        if "done" in message:
            done: dict[str, Any] = message["done"]
            return done
        if "ask" in message:
            assert ask is not None
            await _tell(process.stdin, ask(message["ask"], message["layouts"]))
            continue
        progress(message["text"], message["share"])
    last = (await complaints).decode(errors="replace").strip().splitlines()[-1:]
    raise ImportRefusedError(
        f"the import ended before its time{': ' if last else ''}{''.join(last)}"
    )


async def _end_of(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end, and return the last of it: graphs can make much noise."""
    last = b""
    while part := await stream.read(_TAIL_BYTES):
        last = (last + part)[-_TAIL_BYTES:]
    return last


async def _tell(stdin: asyncio.StreamWriter, what: object) -> None:
    stdin.write(json.dumps(what).encode() + b"\n")
    with contextlib.suppress(ConnectionError):
        await stdin.drain()
