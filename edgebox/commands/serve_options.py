"""The options of `edgebox serve`, each of which is a key of the configuration."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypedDict

import click

from edgebox.config.log_section import FORMATS, LEVELS
from edgebox.domain.access import OpenTo


class ServeOptions(TypedDict):
    """What is given of them; None or nothing: what the configuration says."""

    host: str | None
    port: int | None
    allowed_hosts: tuple[str, ...]
    tls: str | None
    announce: bool | None
    open_to: str | None
    family: str | None
    log_level: str | None
    log_format: str | None


_KEYS = {
    "host": "server.host",
    "port": "server.port",
    "allowed_hosts": "server.allowed_hosts",
    "tls": "server.tls",
    "announce": "server.announce",
    "open_to": "access.open_to",
    "family": "inference.family",
    "log_level": "log.level",
    "log_format": "log.format",
}


def overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what options say of the configuration, by key."""
    return {key: given[name] for name, key in _KEYS.items() if given[name] not in (None, ())}


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("--host", help="Address to listen on; 0.0.0.0 lets other machines in."),
    click.option("--port", type=int, help="Port to listen on; 0 takes any free one."),
    click.option(
        "--allowed-host",
        "allowed_hosts",
        metavar="NAME",
        multiple=True,
        help="Host name that clients may use, as box.example.com; repeatable.",
    ),
    click.option(
        "--tls",
        type=click.Choice(["off", "self-signed"]),
        help="self-signed: serve https with a certificate of the box's own (extra tls).",
    ),
    click.option(
        "--announce/--no-announce",
        default=None,
        help="Announce the box in the local network, so that cameras find it (extra mdns).",
    ),
    click.option(
        "--open-to",
        type=click.Choice([each.value for each in OpenTo]),
        help="Who needs no token: nobody, programs on this machine, everybody.  [default: nobody]",
    ),
    click.option(
        "--family",
        help="Default model family, for cameras that name none.  [default: that of edgebox models "
        "default, else street]",
    ),
    click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        help="Least level of log lines (on stderr).  [default: warning]",
    ),
    click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        help="How log lines are written.  [default: text]",
    ),
]


def SERVE(command: Any) -> Any:  # noqa: N802 - as the options of shared_options
    """Give a command all of them."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)
