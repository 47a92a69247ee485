"""Which box a camera streams to that was not told: this machine's, or one that announces itself."""

import asyncio
import sys
from collections.abc import Sequence

import click

from edgebox.camera.finding import accepts, can_find, find_boxes
from edgebox.domain.errors import InvalidInputError
from edgebox.link.announcement import FoundBox

_LOCAL = ("127.0.0.1", 8787)
LOCAL = "ws://{}:{}".format(*_LOCAL)
_PAUSE_S = 2.0


def chosen_box(*, trusted: bool) -> str:
    """Return the address of a box; looks until there is one. Blocks.

    A box of this machine comes first. Without the extra mdns it is the only one.

    Args:
        trusted: no secret is sent to a box that is found, or its certificate is known.

    Raises:
        InvalidInputError: there are several and nobody to ask, or a secret would be sent.
        FindingError: the network does not let boxes be looked for.
    """
    boxes = asyncio.run(_found()) if can_find() else []
    if not boxes:
        return LOCAL
    box = boxes[0] if len(boxes) == 1 else _asked(boxes)
    if not trusted:
        raise InvalidInputError(
            f"found {box.name} at {box.url}, but a token is not sent to a box that was only "
            "found, which anything in the network can pretend to be: name the box with --server, "
            "or its certificate with --fingerprint"
        )
    click.echo(f"found {box.name} at {box.url}", err=True)
    return box.url


async def _found() -> list[FoundBox]:
    """Return the boxes that announce themselves, once there are any; none: this machine has one."""
    said = False
    while not await accepts(*_LOCAL):
        if boxes := await find_boxes():
            return boxes
        if not said:
            said = True
            click.echo(
                "no box is found yet: start one, let it announce itself (edgebox serve "
                "--announce), or name it with --server; looking until there is one",
                err=True,
            )
        await asyncio.sleep(_PAUSE_S)
    return []


def _asked(boxes: Sequence[FoundBox]) -> FoundBox:
    """Return the box that a person chooses.

    Raises:
        InvalidInputError: there is nobody to ask.
    """
    listed = [f"{number}  {box.name}  {box.url}" for number, box in enumerate(boxes, 1)]
    if not sys.stdin.isatty():
        raise InvalidInputError(
            "\n  ".join(["several boxes are found; name one with --server:", *listed])
        )
    click.echo("\n  ".join(["several boxes are found:", *listed]), err=True)
    number: int = click.prompt(
        "Which one", type=click.IntRange(1, len(boxes)), err=True, prompt_suffix="? "
    )
    return boxes[number - 1]
