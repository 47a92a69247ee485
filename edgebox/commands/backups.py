"""`edgebox backup` and `edgebox restore`. Thin: read flags, call, print."""

from datetime import datetime
from pathlib import Path

import click

from edgebox.commands.console import clear_errors, err, print_json
from edgebox.commands.shared_options import CONFIG, JSON


@click.command()
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--models", is_flag=True, help="Imported models, too.")
@click.option(
    "--secrets",
    is_flag=True,
    help="Passwords of cameras and the box's own certificate with its key, too.",
)
@CONFIG
@JSON
def backup(
    dest: Path, models: bool, secrets: bool, config_file: Path | None, as_json: bool
) -> None:
    """Back the box of this machine up into the folder DEST, while it runs or not.

    The folder is made if it is not there, and the file in it is named after the time. A DEST that
    ends in .gz is the file itself. It has the database, the tokens (hashed) and the configuration,
    with what secrets are written there.
    """
    from edgebox.app.backup import SECRETS, back_up
    from edgebox.config.config_file import load

    with clear_errors("backup"):
        made = back_up(load(config_file), config_file, dest, models=models, secrets=secrets)
    if as_json:
        document = {"file": str(made.file), "bytes": made.size_bytes, "left_out": made.left_out}
        print_json({**document, **made.manifest})
        return
    names = ", ".join(name for name in made.manifest["files"] if "/" not in name)
    more = sum("/" in name for name in made.manifest["files"])
    lines = [
        f"{made.file}: {made.size_bytes / 1e6:.1f} MB, checked: {names}"
        f"{f' and {more} files of models' if more else ''}",
        *(f"  not in it: {what}" for what in made.left_out),
    ]
    if any(name in made.manifest["files"] for name in SECRETS):
        lines.append("  it has passwords or keys: keep it as safe as the box")
    err.print("\n".join(lines), markup=False, soft_wrap=True)


@click.command()
@click.argument("src", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--configuration",
    is_flag=True,
    help="Restore the configuration, too, into the file that --config names.",
)
@CONFIG
@JSON
def restore(src: Path, configuration: bool, config_file: Path | None, as_json: bool) -> None:
    """Restore the box of this machine from the backup SRC. The box must not run.

    What it replaces is kept under another name. Run it as the box's user, or as root.
    """
    from edgebox.app.restore import restore as restored_from

    with clear_errors("restore"):
        restored = restored_from(src, config_file, configuration=configuration)
    if as_json:
        print_json(
            {
                "restored": [str(file) for file in restored.files],
                "kept": [str(file) for file in restored.kept],
                **restored.manifest,
            }
        )
        return
    made = datetime.fromtimestamp(restored.manifest["made_ms"] / 1e3)
    lines = [
        f"restored from edgebox {restored.manifest['edgebox']} of {made:%Y-%m-%d %H:%M}:",
        *(f"  {file}" for file in restored.files),
        *(f"  kept: {file}" for file in restored.kept),
    ]
    err.print("\n".join(lines), markup=False, soft_wrap=True)
