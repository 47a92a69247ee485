"""Options that many commands have."""

from pathlib import Path

import click

CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="EDGEBOX_CONFIG",
    help="A TOML file; config.example.toml has every key.  [env: EDGEBOX_CONFIG]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
