"""Runs an import in a process of its own, with limits on time, memory and files.

A model file is a program: in this process it could take all memory or never end.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import edgebox
from edgebox.web.web_context import ImportRefusedError

_WORKER_MODULE = "edgebox.inference.importing.import_worker"
_KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS", "MALLOC_ARENA_MAX",
)  # fmt: skip
"""What an import is given of this process's environment. The rest may hold secrets."""
_IMPORT_S = 900.0
_END_S = 3.0
_LINE_BYTES_MAX = 1 << 20

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """What is to be imported."""

    file: Path
    """The model file; nothing else in its folder is read."""
    models: Path
    """The folder of imported families."""
    name: str
    """Name of the new family."""
    taken: Sequence[str] = ()
    """Names of the families there are."""
    layout: str | None = None
    """Its row in the table of layouts; None: it is recognised."""
    labels: tuple[str, ...] | None = None
    """None: those in the file, or COCO's."""
    embeds: bool = False
    licence: str | None = None
    """None: the one in the file."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of it."""

    layout: str
    """The layout, in words."""
    variants: int
    remarks: tuple[str, ...]


async def import_in_process(order: ImportOrder, progress: Progress) -> ImportResult:
    """Import one file; the process has ended when this returns or raises.

    Raises:
        ImportRefusedError: the file cannot be imported, or took too long.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _WORKER_MODULE),
        stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=order.file.parent, env=_environment(),
        limit=_LINE_BYTES_MAX,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_IMPORT_S):
            done = await _followed(process, _written(order), progress)
    except TimeoutError:
        raise ImportRefusedError(
            f"the import was not done after {_IMPORT_S / 60:g} minutes and was stopped"
        ) from None
    finally:
        await _ended(process)
    return ImportResult(done["layout"], done["variants"], tuple(done["remarks"]))


def _written(order: ImportOrder) -> dict[str, object]:
    return {
        "file": order.file.name,
        "models": str(order.models.absolute()),
        "name": order.name,
        "layout": order.layout,
        "labels": order.labels,
        "embeds": order.embeds,
        "licence": order.licence,
        "taken": list(order.taken),
    }


async def _followed(
    process: Process, order: Mapping[str, object], progress: Progress
) -> dict[str, Any]:
    """Send a process its order, report its progress and return its result.

    Raises:
        ImportRefusedError: the file cannot be imported, or the process crashed.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.ensure_future(process.stderr.read())
    process.stdin.write(json.dumps(order).encode() + b"\n")
    with contextlib.suppress(ConnectionError):
        await process.stdin.drain()
    async for line in process.stdout:
        message = json.loads(line)
        if "refused" in message:
            raise ImportRefusedError(message["refused"])
        if "done" in message:
            done: dict[str, Any] = message["done"]
            return done
        progress(message["text"], message["share"])
    last = (await complaints).decode(errors="replace").strip().splitlines()[-1:]
    raise ImportRefusedError(
        f"the import ended before its time{': ' if last else ''}{''.join(last)}"
    )


async def _ended(process: Process) -> None:
    """Make sure that a process has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """Return an environment without secrets, in which edgebox is found from any folder."""
    root = str(Path(edgebox.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}
