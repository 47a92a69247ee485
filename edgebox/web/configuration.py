"""GET /v1/config: the configuration in force, and where each value is from. docs/config.md."""

from typing import Any

from aiohttp import web

from edgebox.config import Config, KeyInfo, keys
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import BOOLEAN, TEXT, Schema, array, described, one_of, record
from edgebox.web.site import Site

MASK = "********"
"""What is shown of a secret that is set."""


def shown(config: Config) -> list[dict[str, Any]]:
    """Return every key with its value, its default and where the value is from."""
    return [_key(config, info) for info in keys()]


def _key(config: Config, info: KeyInfo) -> dict[str, Any]:
    path = f"{info.section}.{info.name}"
    return {
        "key": path,
        "value": _masked(info, _value(config, path)),
        "default": _masked(info, _value(Config(), path)),
        "origin": config.origins.get(path, "default"),
        "secret": info.secret,
        "expected": info.expected,
        "doc": info.doc,
    }


def _value(config: Config, path: str) -> object:
    if path == "storage.path":
        return config.storage.file
    if path == "inference.models":
        return str(config.inference.models_folder)
    section, name = path.split(".")
    return getattr(getattr(config, section), name)


def _masked(info: KeyInfo, value: object) -> object:
    return MASK if info.secret and value else value


async def _config(site: Site, request: web.Request) -> web.Response:
    return json_response({"keys": shown(site.config)})


_VALUE = {"type": ["string", "number", "boolean", "array"]}
_KEY = Schema(
    "ConfigKey",
    record(
        key=described(TEXT, "Section and key, as in the configuration file"),
        value=described(_VALUE, "What is in force, with what is left empty filled in"),
        default=_VALUE,
        origin=one_of("default", "file", "environment", "option"),
        secret=described(BOOLEAN, "Its value is not shown"),
        expected=TEXT,
        doc=TEXT,
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/config",
        answer=_config,
        summary="The configuration in force, and where each value is from",
        answers=(Answer("Every key, in the order of the example file.", record(keys=array(_KEY))),),
    ),
)
