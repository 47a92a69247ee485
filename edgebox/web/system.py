"""GET /v1/system: versions, providers, storage and licences, read in a thread."""

import asyncio
import platform
import shutil
from functools import cache
from importlib import metadata
from typing import Any

from aiohttp import web

from edgebox import __version__
from edgebox.domain.access import Scope
from edgebox.domain.errors import StorageError
from edgebox.domain.home_folder import expanded
from edgebox.inference.sessions import available_providers
from edgebox.storage.database import IN_MEMORY
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import COUNT, TEXT, Schema, array, described, mapping, nullable, record
from edgebox.web.web_context import WebContext

_RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
_LICENCE_LENGTH_MAX = 200
"""Longest licence name; some packages put a whole licence's text there."""


async def _system(context: WebContext, request: web.Request) -> web.Response:
    sizes = await context.storage.sizes()
    file = context.config.storage.file
    on_disk = await asyncio.to_thread(_on_disk, file)
    providers = await asyncio.to_thread(available_providers)
    return json_response(
        {
            "edgebox": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "onnxruntime": await asyncio.to_thread(_runtime_version),
            "providers": providers,
            "storage": {
                "file": file,
                "rows": sizes.rows,
                "waiting_rows": context.storage.waiting_rows,
                "lost_rows": context.storage.lost_rows,
                "last_error": context.storage.last_error,
                "database_bytes": sizes.database_bytes,
                **on_disk,
            },
            "packages": await asyncio.to_thread(packages),
        }
    )


def _on_disk(file: str) -> dict[str, int | None]:
    """Return the sizes of the database's log and of the free space."""
    if file == IN_MEMORY:
        return {"log_bytes": 0, "free_bytes": None}
    path = expanded(file)
    log = path.with_name(f"{path.name}-wal")
    return {
        "log_bytes": log.stat().st_size if log.exists() else 0,
        "free_bytes": shutil.disk_usage(path.parent).free,
    }


@cache
def _runtime_version() -> str | None:
    for name in _RUNTIMES:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


@cache
def packages() -> list[dict[str, Any]]:
    """Return every installed package with its licence, as its own metadata name it."""
    found: dict[str, dict[str, Any]] = {}
    for each in metadata.distributions():
        name = each.metadata["Name"]
        if name and name.lower() not in found:  # the first on the path is the one in use
            found[name.lower()] = {
                "name": name, "version": each.version, "licence": licence_of(each.metadata),
            }  # fmt: skip
    return [found[name] for name in sorted(found)]


def licence_of(about: metadata.PackageMetadata) -> str | None:
    """Return a package's licence: the expression, else the classifiers, else the free text."""
    if expression := _field(about, "License-Expression"):
        return expression
    prefix = "License :: "
    classified = [
        text.rsplit(" :: ", 1)[-1]
        for text in about.get_all("Classifier") or []
        if text.startswith(prefix) and text != f"{prefix}OSI Approved"
    ]
    if classified:
        return ", ".join(classified)
    first_line = next(iter(_field(about, "License").strip().splitlines()), "")
    return first_line[:_LICENCE_LENGTH_MAX] or None


def _field(about: metadata.PackageMetadata, name: str) -> str:
    return str(about[name]) if name in about else ""


_PACKAGE = Schema("Package", record(name=TEXT, version=TEXT, licence=nullable(TEXT)))
_STORAGE = Schema(
    "Storage",
    record(
        file=TEXT,
        database_bytes=COUNT,
        log_bytes=described(COUNT, "Size of its write-ahead log"),
        free_bytes=described(
            nullable(COUNT), "Free space on its disk; null: the database is in memory"
        ),
        rows=described(mapping(COUNT), "By table"),
        waiting_rows=described(COUNT, "Rows not written yet"),
        lost_rows=described(COUNT, "Rows lost since the start"),
        last_error=described(TEXT, "Why writing fails; empty: it works"),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/system",
        answer=_system,
        scope=Scope.VIEWER,
        summary="Versions, storage, and the licences of what is installed",
        answers=(
            Answer(
                "The system.",
                Schema(
                    "System",
                    record(
                        edgebox=TEXT,
                        python=TEXT,
                        platform=TEXT,
                        onnxruntime=nullable(TEXT),
                        providers=described(array(TEXT), "Providers in this ONNX Runtime"),
                        storage=_STORAGE,
                        packages=array(_PACKAGE),
                    ),
                ),
            ),
        ),
        problems=(StorageError,),
    ),
)
