"""`edgebox cameras`. Thin: reads flags, calls, prints."""

import asyncio
from pathlib import Path
from typing import Any

import click

from edgebox.commands.camera import source_credentials
from edgebox.commands.console import clear_errors, print_json
from edgebox.commands.shared_options import JSON
from edgebox.domain.source_address import Credentials


@click.group()
def cameras() -> None:
    """Network cameras that a box can fetch."""


@cameras.command()
@click.option("--source-username", metavar="USER", help="User name that the cameras ask for.")
@click.option(
    "--source-password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with its password; or put it into $EDGEBOX_SOURCE_PASSWORD.",
)
@JSON
def discover(source_username: str | None, source_password_file: Path | None, as_json: bool) -> None:
    """List the ONVIF cameras of the local network with the addresses of their streams.

    The password goes, hashed, to every camera that answers. Needs the extra onvif.
    """
    with clear_errors("cameras discover"):
        credentials = source_credentials(source_username, source_password_file)
        found = asyncio.run(_discovered(credentials))
    if as_json:
        print_json({"cameras": found})
        return
    if not found:
        click.echo("no camera answered; ONVIF and discovery must be switched on in the camera")
    for camera in found:
        click.echo(f"{camera['name'] or 'camera'} at {camera['host']}:{camera['port']}")
        if camera["why"]:
            click.echo(f"  {camera['why']}")
        for stream in camera["streams"]:
            size = f"{stream['width_px']} x {stream['height_px']} px"
            click.echo(f"  {stream['url']}  {stream['codec']}, {size}")


async def _discovered(credentials: Credentials | None) -> list[dict[str, Any]]:
    from dataclasses import asdict

    from edgebox.ingest.onvif_cameras import (
        DiscoveryError,
        OnvifCamera,
        check_installed,
        find_cameras,
        streams_of,
    )

    check_installed()

    async def asked(camera: OnvifCamera) -> dict[str, Any]:
        try:
            streams, why = await streams_of(camera, credentials), ""
        except DiscoveryError as error:
            streams, why = [], str(error)
        return {**asdict(camera), "why": why, "streams": [asdict(each) for each in streams]}

    return [await asked(camera) for camera in await find_cameras()]
