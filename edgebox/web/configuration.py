"""GET /v1/config: the configuration in force, and where each value is from. config.md."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from edgebox.config.config_file import Config, keys
from edgebox.config.inference_section import InferenceParameters
from edgebox.config.keys import KeyInfo
from edgebox.config.notification_sections import WebhookParameters
from edgebox.config.storage_section import StorageParameters
from edgebox.domain.access import Scope
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import BOOLEAN, TEXT, Schema, array, described, one_of, record
from edgebox.web.web_context import WebContext

MASK = "********"
"""Shown in place of a secret, and of everything after a URL's host."""


def shown(config: Config) -> list[dict[str, Any]]:
    """Return every key with its value, its default and where the value is from.

    A section that may occur several times has its keys once for each occurrence.
    """
    sections: dict[str, list[KeyInfo]] = {}
    for info in keys():
        sections.setdefault(info.section, []).append(info)
    return [
        _key(config, path, table, info)
        for section, known in sections.items()
        for path, table in _tables(config, section)
        for info in known
    ]


def _tables(config: Config, section: str) -> Iterator[tuple[str, object]]:
    """Yield the path and the values of each table of a section, "pipelines.stages" for one."""
    tables: list[tuple[str, object]] = [("", config)]
    for name in section.split("."):
        inner: list[tuple[str, object]] = []
        for path, table in tables:
            found, at = getattr(table, name), f"{path}.{name}".lstrip(".")
            if isinstance(found, tuple):
                inner += ((f"{at}[{number}]", each) for number, each in enumerate(found))
            else:
                inner.append((at, found))
        tables = inner
    yield from tables


def _key(config: Config, path: str, table: object, info: KeyInfo) -> dict[str, Any]:
    dotted = f"{path}.{info.name}"
    return {
        "key": dotted,
        "value": _masked(info, _value(table, info.name)),
        "default": _masked(info, _value(type(table)(), info.name)),
        "origin": config.origins.get(dotted, "default"),
        "secret": bool(info.secret),
        "expected": info.expected,
        "doc": info.doc,
    }


def _value(table: object, name: str) -> object:
    """Return a value; an empty one is replaced by its effective value."""
    match table, name:
        case StorageParameters(), "path":
            return table.file
        case InferenceParameters(), "models":
            return str(table.models_folder)
        case WebhookParameters(), "name":
            return table.shown_name
    return getattr(table, name)


def _masked(info: KeyInfo, value: object) -> object:
    if not info.secret or not value:
        return value
    if info.secret == "all":
        return MASK
    url = urlsplit(str(value))
    host = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
    return host if value == host else f"{host}/{MASK}"


async def _config(context: WebContext, request: web.Request) -> web.Response:
    return json_response({"keys": shown(context.config)})


_VALUE = {"type": ["string", "number", "boolean", "array"]}
_KEY = Schema(
    "ConfigKey",
    record(
        key=described(TEXT, "Section and key; of sections that repeat, with a number from 0"),
        value=described(_VALUE, "What is in force, with what is left empty filled in"),
        default=_VALUE,
        origin=one_of("default", "file", "environment", "option", "stored"),
        secret=described(BOOLEAN, "Its value is not shown, or of a URL only scheme and host"),
        expected=TEXT,
        doc=TEXT,
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/config",
        answer=_config,
        scope=Scope.OPERATOR,
        summary="The configuration in force, and where each value is from",
        answers=(Answer("Every key, in the order of the example file.", record(keys=array(_KEY))),),
    ),
)
