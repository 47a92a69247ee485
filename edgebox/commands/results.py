"""`edgebox results`: what a box's cameras see, line by line."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import orjson

from edgebox.camera.shutdown import on_end_signals
from edgebox.client import subscribe
from edgebox.commands.box_options import (
    FINGERPRINT,
    SERVER_OPTION,
    TOKEN_FILE,
    given_token,
    naming_token_file,
)
from edgebox.commands.console import clear_errors
from edgebox.domain.notifications import zone_event_text

_COLOURS = {"on_time": "green", "late": "yellow", "dropped": "red"}
_OBJECTS_SHOWN = 5


@click.command()
@click.option(*SERVER_OPTION, default="http://127.0.0.1:8787", show_default=True, help="The box.")
@click.option(
    "--camera", "cameras", multiple=True, help="A name, or a pattern like 'gate-*'; repeatable."
)
@click.option(
    "--class", "classes", multiple=True, help="Only detections of this class; repeatable."
)
@click.option("--score-min", type=click.FloatRange(0, 1), help="Least score of a detection.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice(["on_time", "late", "dropped"]),
    help="Frames with this outcome; repeatable.  [default: on_time, late]",
)
@click.option("--max-hz", type=float, help="Most results per second and camera.")
@TOKEN_FILE
@FINGERPRINT
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per message.")
def results(
    *,
    server: str,
    token_file: Path | None,
    fingerprint: str | None,
    cameras: tuple[str, ...],
    classes: tuple[str, ...],
    score_min: float | None,
    outcomes: tuple[str, ...],
    max_hz: float | None,
    as_json: bool,
) -> None:
    """Print the results of a box's cameras as they arrive, until Ctrl-C.

    With --class or --score-min, frames without such a detection are left out.
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
    with clear_errors("results"), naming_token_file():
        messages = subscribe(
            server,
            query,
            token=given_token(token_file),
            fingerprint=fingerprint,
            on_remark=_remark,
        )
        asyncio.run(_print(messages, as_json))


async def _print(messages: AsyncIterator[dict[str, Any]], as_json: bool) -> None:
    async def work() -> None:
        async for message in messages:
            if message["type"] == "subscribed":
                if message.get("connected") == []:
                    _remark(_nobody(message["cameras"]))
                continue
            click.echo(orjson.dumps(message).decode() if as_json else line_of(message))

    working = asyncio.create_task(work())
    on_end_signals(lambda: _cancel(working))
    with contextlib.suppress(asyncio.CancelledError):
        await working


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _nobody(cameras: Sequence[str]) -> str:
    """Return what to say while no camera is connected whose results were asked for."""
    which = f" that fits {' or '.join(cameras)}" if cameras else ""
    return f"no camera{which} is connected; waiting for one"


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
    seen = _seen(message["detections"]) or "nothing"
    parts = [
        seen,
        *_zones(message.get("zones", {})),
        *_lines(message.get("lines", {})),
        *_missing(message.get("missing", ())),
    ]
    line = f"{head} {outcome} {total_ms:.0f} ms {message['variant']}: {'; '.join(parts)}"
    return "\n".join([line, *_events(message.get("events", ()))])


def _seen(detections: Sequence[Mapping[str, Any]]) -> str:
    """Return how many objects of each class there are, with what is known of the best of them."""
    kinds: dict[str, list[str]] = {}
    for found in detections:
        kinds.setdefault(found["label"], []).append(_object(found))
    texts = []
    for label, objects in kinds.items():
        more = ", ..." if len(objects) > _OBJECTS_SHOWN else ""
        texts.append(f"{len(objects)} {label} ({', '.join(objects[:_OBJECTS_SHOWN])}{more})")
    return ", ".join(texts)


def _object(found: Mapping[str, Any]) -> str:
    """Return an object's score, what later stages say about it, and its track: "0.91 red #7"."""
    stages: Sequence[Mapping[str, Any]] = [*found.get("stages", {}).values()]
    said = [
        answer["label"]
        for stage in stages
        for answer in (stage, *stage.get("attributes", {}).values())
        if "label" in answer
    ]
    own = {found["label"]}  # nothing is said twice
    words = [f"{found['score']:.2f}", *(text for text in dict.fromkeys(said) if text not in own)]
    if found.get("track") is not None:
        words.append(f"#{found['track']}")
    within = [one for stage in stages for one in stage.get("detections", ())]
    return " ".join([*words, *(["with", _seen(within)] if within else [])])


def _zones(zones: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield what is in each zone that is not empty."""
    for name, counts in zones.items():
        inside = ", ".join(f"{count} {label}" for label, count in counts.items() if count)
        if inside:
            yield f"zone {name}: {inside}"


def _lines(lines: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    """Yield the crossings of each line that has been crossed."""
    for name, directions in lines.items():
        sums = {way: sum(counts.values()) for way, counts in directions.items()}
        if any(sums.values()):
            yield f"line {name}: {', '.join(f'{count} {way}' for way, count in sums.items())}"


def _events(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what happened in zones and on lines with the frame, a line each."""
    for event in events:
        text = zone_event_text(event["type"], event["label"], event)
        if text is not None:
            yield click.style(f"  {text}", "cyan")


def _missing(stages: Sequence[str]) -> Iterator[str]:
    """Yield what a partial answer lacks."""
    if stages:
        yield click.style(f"without {', '.join(stages)}", "yellow")
