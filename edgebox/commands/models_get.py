"""`edgebox models get`, `default` and `remove`. Thin: reads flags, calls, prints.

Imports what a command needs when it runs.
"""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import clear_errors, err, out, print_json, progress_bar, table
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.domain.errors import ModelError

if TYPE_CHECKING:
    from edgebox.config.config_file import Config
    from edgebox.inference.catalogue import CatalogueEntry
    from edgebox.inference.family import Family


@click.command()
@click.argument("name", required=False)
@click.option(
    "--from",
    "mirror",
    metavar="FOLDER|URL",
    help="Where the file is taken from instead of its source: a folder, or the URL of one.",
)
@click.option("--as", "family_name", metavar="NAME", help="Name of the family.  [default: NAME]")
@click.option(
    "--default/--no-default",
    "make_default",
    default=None,
    help="Make it the model of cameras that name none.  [default: ask on a terminal, else no]",
)
@CONFIG
@JSON
def get(
    *,
    name: str | None,
    mirror: str | None,
    family_name: str | None,
    make_default: bool | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Download the model NAME and import it; without NAME, list what there is.

    Proxies are those of HTTPS_PROXY, HTTP_PROXY and NO_PROXY. The file's size and checksum are
    compared with the catalogue before anything reads it.
    """
    from edgebox.config.config_file import load
    from edgebox.inference.catalogue import entry_named

    with clear_errors("models get"):
        if name is None:
            _list_catalogue(as_json, load(config_file))
            return
        entry = entry_named(name)
        config = load(config_file)
        there = _installed(config)
        chosen = family_name or entry.name
        old = next((family for family in there if family.name == chosen), None)
        if old is not None and (old.origin is None or old.origin.sources != (entry.file,)):
            raise ModelError(
                f"there is a family {chosen!r} already, which is not from the catalogue; --as NAME "
                "gives this one another name"
            )
        remarks: tuple[str, ...] = ()
        if old is None:
            with progress_bar(as_json) as progress:
                remarks = _fetch_and_import(
                    entry, chosen, config, mirror=mirror, there=there, progress=progress
                )
        if not as_json:
            _print_installed(entry, chosen, config, old is not None, remarks)
        made = _offer_default(entry, chosen, config, make_default, quiet=as_json)
    if as_json:
        print_json(
            {
                **entry.document(),
                "family": chosen,
                "folder": str(config.inference.models_folder / chosen),
                "was_installed": old is not None,
                "default": made,
                "remarks": list(remarks),
            }
        )


def _installed(config: "Config") -> "tuple[Family, ...]":
    from edgebox.app.family_folders import known_folders
    from edgebox.inference.zoo import load_zoo

    return load_zoo(known_folders(config.inference)).families


def _list_catalogue(as_json: bool, config: "Config") -> None:
    from edgebox.inference.catalogue import catalogue

    installed = {family.name for family in _installed(config)}
    if as_json:
        documents = [{**e.document(), "installed": e.name in installed} for e in catalogue()]
        print_json({"models": documents})
        return
    rows = [
        (
            entry.name,
            entry.task,
            str(len(entry.labels)) if len(entry.labels) != 1 else entry.labels[0],
            f"{entry.width_px} × {entry.height_px}",
            f"{entry.size_bytes / 1e6:.1f}",
            "" if entry.accuracy is None else f"{entry.accuracy:.3f}",
            entry.licence,
            "yes" if entry.name in installed else "",
        )
        for entry in catalogue()
    ]
    headings = ("model", "task", "classes", "px", "MB", "published mAP", "licence", "installed")
    out.print(table("", headings, rows))
    for entry in catalogue():
        out.print(f"[bold]{entry.name}[/] ", end="")
        out.print(f"{entry.title}, by {entry.authors}", markup=False, soft_wrap=True)
        out.print(f"  {entry.url}", markup=False, soft_wrap=True)
        out.print(f"  sha256 {entry.sha256}", markup=False, soft_wrap=True)
    out.print(
        "Published accuracies are their authors'. This list downloads nothing; edgebox models get "
        "NAME downloads one."
    )


def _fetch_and_import(
    entry: "CatalogueEntry",
    name: str,
    config: "Config",
    *,
    mirror: str | None,
    there: "tuple[Family, ...]",
    progress: Any,
) -> tuple[str, ...]:
    from edgebox.app.import_process import ImportOrder, import_in_process
    from edgebox.app.model_download import fetched
    from edgebox.inference.importing.folder import family_name

    models = config.inference.models_folder
    family_name(name, Path())  # refuses a bad name before anything is downloaded
    with fetched(entry, models, mirror, progress) as file:
        order = ImportOrder(
            files=(Path(file.name),),
            folder=file.absolute().parent,
            models=models,
            name=name,
            taken=[family.name for family in there],
            layout=entry.layout,
            labels=entry.labels or None,
            embeds=entry.task == "embed",
            licence=entry.licence,
        )
        return asyncio.run(import_in_process(order, progress)).told


def _print_installed(
    entry: "CatalogueEntry", name: str, config: "Config", before: bool, remarks: tuple[str, ...]
) -> None:
    for remark in remarks:
        out.print(f"  {remark}", markup=False, soft_wrap=True)
    if before:
        out.print(f"{name} is installed already: ", end="")
    else:
        out.print(f"[green]installed[/] {name}, licence {entry.licence}, in ", end="")
    out.print(str(config.inference.models_folder / name), markup=False, soft_wrap=True)


def _offer_default(
    entry: "CatalogueEntry", name: str, config: "Config", wanted: bool | None, *, quiet: bool
) -> bool:
    """Make it the default, as wanted or answered; return whether it is."""
    if config.inference.family == name:
        return True
    if wanted is None and entry.task == "detect" and not quiet and sys.stdin.isatty():
        question = f"Make {name} the model of cameras that name none, instead of "
        wanted = click.confirm(f"{question}{config.inference.family}?", default=True, err=True)
    if wanted:
        _choose(name, config)
    if quiet:
        return bool(wanted)
    if wanted:
        out.print(f"cameras that name no model now get {name}")
    elif entry.task == "detect":
        out.print(f"  make it the default: edgebox models default {name}", markup=False)
    out.print(f"  try it: edgebox detect PICTURE --family {name}", markup=False)
    return bool(wanted)


def _choose(name: str, config: "Config") -> None:
    """Store the default family.

    Raises:
        ModelError: the configuration file names one, which would win.
    """
    from edgebox.config.default_family import store_default

    if config.origins.get("inference.family") == "file" and config.inference.family != name:
        raise ModelError(
            f"{config.source} sets inference.family = {config.inference.family!r}, which counts "
            f"more: change it there to {name!r}, or take the line out"
        )
    store_default(config.inference.models_folder, name)


@click.command()
@click.argument("name", required=False)
@CONFIG
@JSON
def default(*, name: str | None, config_file: Path | None, as_json: bool) -> None:
    """Make NAME the model of cameras that name none; without NAME, show which it is."""
    from edgebox.app.family_folders import known_folders
    from edgebox.config.config_file import load
    from edgebox.inference.zoo import load_zoo

    with clear_errors("models default"):
        config = load(config_file)
        if name is not None:
            load_zoo(known_folders(config.inference)).family(name).insist_on_pictures()
            _choose(name, config)
    shown = name or config.inference.family
    if as_json:
        print_json({"default": shown})
    elif name is None:
        out.print(shown, markup=False)
    else:
        out.print(f"cameras that name no model now get {name}")


@click.command()
@click.argument("name")
@CONFIG
@JSON
def remove(*, name: str, config_file: Path | None, as_json: bool) -> None:
    """Delete the imported family NAME."""
    from edgebox.app.family_removal import remove_family
    from edgebox.config.config_file import load

    with clear_errors("models remove"):
        folder = remove_family(load(config_file), name)
    if as_json:
        print_json({"removed": name, "folder": str(folder)})
    else:
        out.print(f"removed {name}; a box that runs keeps it for cameras that use it", markup=False)
        err.print(f"  deleted {folder}", markup=False, soft_wrap=True)
