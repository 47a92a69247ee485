"""`edgebox results`: what a box's cameras see, line by line; `subscribe` is the same for Python.

Connects again whenever the connection breaks. What happens meanwhile is not made up for: a box
keeps no results.
"""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import datetime
from typing import Any

import aiohttp
import click
import orjson

from edgebox.camera.ending import on_end_signals
from edgebox.console import clear_errors
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.link.backoff import Backoff

_SILENT_S = 45.0
"""The box sends something every 15 s."""
_LINE_BYTES_MAX = 1 << 22
_COLOURS = {"on_time": "green", "late": "yellow", "dropped": "red"}
_SCORES_SHOWN = 5


class SubscriptionRefusedError(EdgeboxError):
    """The box does not tell what was asked for, and would not if asked again."""

    http_status = 400
    code = "refused"


async def subscribe(
    server: str,
    query: Mapping[str, str | list[str]] | None = None,
    *,
    on_remark: Callable[[str], None] | None = None,
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the messages of /v1/results for ever, over as many connections as it takes.

    Args:
        server: the box: "http://BOX:8787" (ws:// is understood, too).
        query: the parameters of /v1/results: which cameras, which classes...
        on_remark: told in a sentence when a connection fails, and when one works again.

    Raises:
        InvalidInputError: `server` is no address.
        SubscriptionRefusedError: the box says that the query is wrong.
    """
    remark = on_remark or (lambda text: None)
    backoff, failed = Backoff(random.Random()), False
    timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=_SILENT_S)
    async with aiohttp.ClientSession(timeout=timeout, read_bufsize=_LINE_BYTES_MAX) as client:
        while True:
            try:
                async for message in _connection(client, _address(server), query or {}):
                    if failed:
                        remark(f"connected to {server} again")
                    failed = False
                    backoff.reset()
                    yield message
                why = "the box ended the connection"
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = str(error) or "nothing was heard from the box"
            if not failed:
                remark(f"{why}; trying again until it works")
            failed = True
            await asyncio.sleep(backoff.wait_s())


def _address(server: str) -> str:
    """Return where results are.

    Raises:
        InvalidInputError: not an address of a server.
    """
    if not re.fullmatch(r"(http|ws)s?://[^/?#\s]+(/[^?#\s]*)?", server):
        raise InvalidInputError(f"--server must be like http://BOX:8787, not {server!r}")
    return re.sub(r"^ws", "http", server).rstrip("/") + "/v1/results"


async def _connection(
    client: aiohttp.ClientSession, address: str, query: Mapping[str, str | list[str]]
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the messages of one connection.

    Raises:
        SubscriptionRefusedError: the box says that the query is wrong.
        aiohttp.ClientError, TimeoutError: it cannot be reached now, or no longer.
    """
    headers = {"Accept": "text/event-stream"}
    async with client.get(address, params=query, headers=headers) as response:
        if 400 <= response.status < 500:
            raise SubscriptionRefusedError(_said(await response.read()))
        if response.status != 200:
            raise aiohttp.ClientPayloadError(_said(await response.read()))
        async for line in response.content:
            if line.startswith(b"data: "):
                message: dict[str, Any] = orjson.loads(line[6:])
                yield message


def _said(body: bytes) -> str:
    """Return what a box's problem document says, or what else answered there."""
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
        return str(orjson.loads(body)["detail"])
    return f"this is no edgebox, or an old one: it said {body[:80]!r}"


@click.command()
@click.option("--server", default="http://127.0.0.1:8787", show_default=True, help="The box.")
@click.option(
    "--camera", "cameras", multiple=True, help="A name, or a pattern like 'gate-*'; repeatable."
)
@click.option("--class", "classes", multiple=True, help="Only what has this label; repeatable.")
@click.option("--score-min", type=click.FloatRange(0, 1), help="Only what scores as much.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice(["on_time", "late", "dropped"]),
    help="Frames that ended so; repeatable.  [default: on_time, late]",
)
@click.option("--max-hz", type=float, help="At most so many results per second and camera.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per message.")
def results(
    *,
    server: str,
    cameras: tuple[str, ...],
    classes: tuple[str, ...],
    score_min: float | None,
    outcomes: tuple[str, ...],
    max_hz: float | None,
    as_json: bool,
) -> None:
    """Print what cameras see as it comes from a box, until Ctrl-C.

    With --class or --score-min, frames on which nothing of the kind is found are left out.
    """
    query: dict[str, str | list[str]] = {
        "camera": list(cameras),
        "class": list(classes),
        "outcome": list(outcomes),
    }
    if score_min is not None:
        query["score_min"] = f"{score_min:g}"
    if max_hz is not None:
        query["max_hz"] = f"{max_hz:g}"
    if classes or score_min is not None:
        query["empty"] = "false"
    with clear_errors("results"):
        asyncio.run(_print(server, query, as_json))


async def _print(server: str, query: Mapping[str, str | list[str]], as_json: bool) -> None:
    async def work() -> None:
        async for message in subscribe(server, query, on_remark=_remark):
            if message["type"] == "subscribed":
                continue
            click.echo(orjson.dumps(message).decode() if as_json else line_of(message))

    working = asyncio.create_task(work())
    on_end_signals(lambda: _cancel(working))
    with contextlib.suppress(asyncio.CancelledError):
        await working


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _remark(text: str) -> None:
    click.echo(f"edgebox results: {text}", err=True)


def line_of(message: Mapping[str, Any]) -> str:
    """Return what a person reads of a message."""
    if message["type"] == "skipped":
        return click.style(f"{message['count']} results were left out: too slow here", "yellow")
    at = datetime.fromtimestamp(message["captured_at_ms"] / 1e3)
    outcome = click.style(message["outcome"], _COLOURS.get(message["outcome"]))
    head = f"{at:%H:%M:%S}.{at.microsecond // 1000:03} {message['camera']} #{message['frame']}"
    if message["type"] == "drop":
        return f"{head} {outcome}: {message['message']}"
    total_ms = message["timing_ms"]["total"]
    return f"{head} {outcome} {total_ms:.0f} ms {message['variant']}: {_seen(message)}"


def _seen(message: Mapping[str, Any]) -> str:
    scores: dict[str, list[float]] = {}
    for found in message["detections"]:
        scores.setdefault(found["label"], []).append(found["score"])
    kinds = []
    for label, of_label in scores.items():
        best = ", ".join(f"{score:.2f}" for score in of_label[:_SCORES_SHOWN])
        more = ", ..." if len(of_label) > _SCORES_SHOWN else ""
        kinds.append(f"{len(of_label)} {label} ({best}{more})")
    return ", ".join(kinds) or "nothing"
