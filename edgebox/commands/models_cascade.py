"""`edgebox models cascade`: fits a cascade and prints what it saves. Thin: reads, calls, prints."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import clear_errors, out, print_json, progress_bar, table
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.domain.cascades import picture_ns, saving
from edgebox.domain.errors import ModelError

if TYPE_CHECKING:
    from edgebox.inference.cascade_file import StoredCascade

_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)


@click.command()
@click.argument("small")
@click.argument("large")
@click.option(
    "--frames",
    required=True,
    help="Pictures of this box's cameras: a folder, a video, or a source of edgebox camera, as "
    "scene:7 or an rtsp address.",
)
@click.option(
    "--limit", type=click.IntRange(1), help="Most pictures.  [default: all of a folder, else 300]"
)
@click.option("--name", help="Name of the cascade.  [default: SMALL-LARGE]")
@CONFIG
@JSON
def cascade(
    *,
    small: str,
    large: str,
    frames: str,
    limit: int | None,
    name: str | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Learn when SMALL is unsure and LARGE should look at a picture, too.

    SMALL and LARGE are variants (street-256), or families: then their largest variants. They may
    be the two parts of a network with an exit, at one size (street-exit-608 street-rest-608).
    """
    from edgebox.app.accuracy_measurement import remembered
    from edgebox.app.cascade_fitting import find_side, fit, insist_on_pair, pictures_of
    from edgebox.app.family_folders import known_folders
    from edgebox.config.config_file import load
    from edgebox.inference.zoo import load_zoo
    from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED

    with clear_errors("models cascade"):
        config = load(config_file)
        families, profiles = remembered(config, load_zoo(known_folders(config.inference)).families)
        sides = find_side(families, small), find_side(families, large)
        names = [side.variant.name for side in sides]
        name = "-".join(names)[:64] if name is None else name
        if not re.fullmatch(NAME_PATTERN, name):
            raise ModelError(f"--name: must be {NAME_WANTED}, not {name!r}")
        insist_on_pair(*sides, profiles)
        with progress_bar(as_json) as progress:
            stored, path = fit(config, sides, pictures_of(frames, limit), name, progress)
        times_ns = [picture_ns(profiles, each) for each in names]
    document = _document(stored, path, times_ns, continues=sides[1].family.after is not None)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _document(
    stored: "StoredCascade", path: Path, times_ns: list[float | None], *, continues: bool
) -> dict[str, Any]:
    small_ns, large_ns = times_ns
    rows = []
    for share in _SHARES:
        point = stored.curve.at_share(share)
        row: dict[str, Any] = {
            "share": share,
            "threshold": round(point.threshold, 4),
            "agreement": round(1 - point.loss, 4),
        }
        if small_ns is not None and large_ns is not None:
            row["ms"] = round((small_ns + share * large_ns) / 1e6, 2)
            row["saving"] = round(saving(share, small_ns, large_ns, continues=continues), 4)
        rows.append(row)
    return {
        "name": stored.name,
        "file": str(path),
        "small": stored.small.variant,
        "large": stored.large.variant,
        "source": stored.source,
        "pictures": stored.pictures,
        "calibration_error": round(stored.calibration_error, 4),
        "shares": rows,
    }


def _print(document: dict[str, Any]) -> None:
    timed = "saving" in document["shares"][0]
    headings = ("sent on to the large model", "threshold", "F1 against it")
    rows = []
    for row in document["shares"]:
        cells = [f"{row['share']:.0%}", f"{row['threshold']:.3f}", f"{row['agreement']:.3f}"]
        if timed:
            cells += [f"{row['ms']:.1f}", f"{row['saving']:.0%}"]
        rows.append(cells)
    heading = f"{document['small']} first, then {document['large']}"
    out.print(table(heading, headings + (("ms a picture", "saves") if timed else ()), rows))
    out.print(
        f"Measured on {document['pictures']} held-out pictures of {document['source']}; expected "
        f"losses are off by {document['calibration_error']:.3f} in the mean.",
        markup=False,
    )
    if not timed:
        out.print("Run edgebox profile to see what it saves.", markup=False)
    out.print(f"[green]stored[/] {document['name']} in ", end="")
    out.print(document["file"], markup=False, soft_wrap=True)
    out.print("A running box uses it once it is restarted.")
