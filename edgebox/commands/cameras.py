"""`edgebox cameras`. Thin: reads flags, calls, prints."""

import asyncio
from pathlib import Path

import click

from edgebox.commands.camera import source_credentials
from edgebox.commands.console import clear_errors, print_json
from edgebox.commands.lazy_group import Group
from edgebox.commands.shared_options import JSON


@click.group(cls=Group)
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
        from edgebox.ingest.onvif_cameras import search

        found = asyncio.run(search(credentials))
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
            size = f"{stream['width_px']} × {stream['height_px']} px"
            click.echo(f"  {stream['url']}  {stream['codec']}, {size}")
