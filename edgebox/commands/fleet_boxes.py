"""`edgebox fleet`: the boxes of a fleet, as one of them knows them. Thin: asks, prints."""

import asyncio
from pathlib import Path
from typing import Any

import click

from edgebox.client import get_document
from edgebox.commands.box_options import (
    FINGERPRINT,
    SERVER_OPTION,
    TOKEN_FILE,
    given_token,
    naming_token_file,
)
from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.commands.shared_options import JSON


@click.command()
@click.option(*SERVER_OPTION, default="http://127.0.0.1:8787", show_default=True, help="Any box.")
@TOKEN_FILE
@FINGERPRINT
@JSON
def fleet(*, server: str, token_file: Path | None, fingerprint: str | None, as_json: bool) -> None:
    """List the boxes of a fleet that are up, with their cameras and loads, and why others are not.

    A load of 1 is all that a box can serve, at the smallest sizes. Needs a token of the scope
    viewer.
    """
    with clear_errors("fleet"), naming_token_file():
        found = asyncio.run(
            get_document(server, "fleet", token=given_token(token_file), fingerprint=fingerprint)
        )
    if as_json:
        print_json(found)
        return
    headings = ("box", "cameras", "load", "models", "version", "state")
    rows = [_row(box) for box in found["boxes"]]
    out.print(table("boxes that are up; the first was asked", headings, rows))
    for box in found["left_out"]:
        out.print(f"{box['address']} is left out: {box['reason']}", markup=False)


def _row(box: dict[str, Any]) -> tuple[str, ...]:
    return (
        box["box"],
        f"{box['cameras']} of {box['cameras_max']}",
        f"{box['load']:.0%}",
        ", ".join(service[:24] for service in box["services"]) or "none",
        box["version"],
        _state(box),
    )


def _state(box: dict[str, Any]) -> str:
    if not box["ready"]:
        return "not ready"
    return "stopping" if box["draining"] else "serving"
