"""Boxes of a fleet, on real sockets."""

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from edgebox.app.composition import App
from tests.conftest import copied
from tests.end_to_end.running import free_port, running, until

SECRET = "shared by the boxes of this test"


def in_fleet(tmp_path: Path) -> dict[str, Any]:
    """Return the options of a box whose fleet has one more, which is not there."""
    secret = tmp_path / "fleet-secret"
    secret.write_text(SECRET)
    return {
        "fleet__boxes": [f"http://127.0.0.1:{free_port()}"],
        "fleet__secret_file": str(secret),
    }


@contextlib.asynccontextmanager
async def fleet(
    database: Path,
    count: int = 2,
    secrets: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
    **overrides: Any,
) -> AsyncIterator[list[App]]:
    """Run some boxes that know each other's addresses; each has heard of the others.

    Each has a copy of a database. Also `others` are in their configuration.
    """
    ports = [free_port() for _ in range(count)]
    async with contextlib.AsyncExitStack() as stack:
        boxes = []
        for number, port in enumerate(ports):
            folder = database.parent / f"box-{number}"
            folder.mkdir()
            (folder / "secret").write_text(secrets[number] if secrets else SECRET)
            options = {
                "server__port": port,
                "server__name": f"box-{number}",
                "fleet__boxes": [*(f"http://127.0.0.1:{each}" for each in ports), *others],
                "fleet__secret_file": str(folder / "secret"),
            }
            box = running(copied(database, folder), **{**options, **overrides})
            boxes.append(await stack.enter_async_context(box))
        if not secrets:
            await until(lambda: all(len(up(box)) == count for box in boxes), "reports")
        yield boxes


def up(box: App) -> list[str]:
    """Return the boxes that a box believes to serve cameras, itself included."""
    member = box.fleet
    assert member is not None
    reports = [member.report(), *member.known.fresh(time.monotonic_ns())]
    return [report.box for report in reports if not report.draining and report.services]
