"""`edgebox models`: brings model files in, shows what there is. Thin: reads flags, calls, prints.

Imports what a command needs when it runs.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import (
    clear_errors,
    err,
    out,
    print_json,
    progress_bar,
    scatter,
    table,
)
from edgebox.commands.lazy_group import Group
from edgebox.commands.models_cascade import cascade
from edgebox.commands.models_get import default, get, remove
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.domain.errors import EdgeboxError, ModelError

if TYPE_CHECKING:
    from edgebox.app.import_process import ImportResult
    from edgebox.config.config_file import Config
    from edgebox.domain.model_family import AccuracyReport, LatencyProfile
    from edgebox.inference.family import Family
    from edgebox.inference.importing.layouts import Layout

_SIDES_PX = range(16, 4097)
_QUICK_PROFILE_S = 10.0


def _insist_on_a_second(profile_s: float) -> float:
    if 0 < profile_s < 1:
        raise click.BadParameter(f"{profile_s:g} is neither 0 nor at least 1.")
    return profile_s


@click.group(cls=Group)
def models() -> None:
    """Get, import, list and remove models."""


@models.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", "--family", "name", help="Name of the family.  [default: the file's]")
@click.option("--labels", help="A file with a label name per line, or coco80.")
@click.option("--sizes", help="Input sizes, as 320,640 or 640x384.  [default: 320,416,512,640]")
@click.option(
    "--layout", help="The layout, if it is not recognised; docs/how-to/models.md lists them."
)
@click.option(
    "--task",
    type=click.Choice(["embed"]),
    help="embed: the files give embeddings, as models for re-identification do.  [default: "
    "detectors and classifiers, which are told apart]",
)
@click.option("--licence", "--license", "licence", help="The licence.  [default: the file's]")
@click.option(
    "--batch",
    type=click.IntRange(1, 1),
    help="1: single pictures only, for files whose batch axis does not work.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16"]),
    default="fp32",
    show_default=True,
    help="Number format; fp16 is for GPUs, and is used only if its detections agree.",
)
@click.option(
    "--picture",
    "pictures",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A picture to verify with; repeatable.  [default: synthetic streets]",
)
@click.option(
    "--profile-s",
    type=click.FloatRange(0, 3600),
    callback=lambda _context, _option, value: _insist_on_a_second(value),
    default=_QUICK_PROFILE_S,
    show_default=True,
    help="Seconds to measure execution times for, at least 1; 0: do not measure.",
)
@click.option(
    "--time-limit-s",
    type=click.FloatRange(1),
    help="Seconds after which the import is stopped, without measuring.  [default: 900]",
)
@CONFIG
@JSON
def import_models(
    *,
    files: tuple[Path, ...],
    name: str | None,
    labels: str | None,
    sizes: str | None,
    layout: str | None,
    task: str | None,
    licence: str | None,
    batch: int | None,
    precision: str,
    pictures: tuple[Path, ...],
    profile_s: float,
    time_limit_s: float | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Make a model family of ONNX FILES: recognised, rewritten, compared, measured."""
    began_s = time.monotonic()
    with clear_errors("models import"):
        from edgebox.app.family_folders import known_folders
        from edgebox.app.import_process import IMPORT_S, ImportOrder, import_in_process
        from edgebox.config.config_file import load
        from edgebox.inference.zoo import load_family, load_zoo

        _insist_on_onnx()
        from edgebox.inference.importing.labels import read_labels

        overrides = {"inference.profile_s": profile_s} if profile_s else {}
        config = load(config_file, overrides)
        there = load_zoo(known_folders(config.inference)).families
        order = ImportOrder(
            files=files,
            folder=Path.cwd(),
            models=config.inference.models_folder,
            name=name,
            taken=[family.name for family in there],
            layout=None if layout is None else _layout(layout, task).name,
            labels=None if labels is None else read_labels(labels),
            embeds=task == "embed",
            licence=" ".join((licence or "").split()) or None,
            sizes_px=None if sizes is None else parse_sizes(sizes),
            batch=batch,
            half=precision == "fp16",
            pictures=pictures,
            limit_s=time_limit_s or IMPORT_S,
        )
        ask = None if as_json or not sys.stdin.isatty() else _ask
        with progress_bar(as_json) as progress:
            imported = asyncio.run(import_in_process(order, progress, ask))
            family = load_family(imported.folder)
            profiles = _measured(config, family, progress) if profile_s else []
    took_s = time.monotonic() - began_s
    if as_json:
        print_json(_import_document(imported, family, profiles, took_s))
    else:
        _print_import(imported, family, profiles, took_s)


def _insist_on_onnx() -> None:
    if find_spec("onnx") is None:
        raise ModelError(
            "importing needs the onnx package, which belongs to edgebox but is missing here: "
            "pip install onnx; what is imported is served without it"
        )


def parse_sizes(text: str) -> tuple[tuple[int, int], ...]:
    """Return widths and heights from a text like "320,640x384".

    Raises:
        ModelError: it is not such a list.
    """
    sizes = []
    for entry in text.split(","):
        width, _, height = entry.strip().lower().partition("x")
        sides = [width, height or width]
        if not all(side.isdecimal() and int(side) in _SIDES_PX for side in sides):
            raise ModelError(
                f"--sizes: {entry.strip()!r} is no size; sizes are {_SIDES_PX[0]} to "
                f"{_SIDES_PX[-1]} px, as in 320,640 or 640x384"
            )
        sizes.append((int(sides[0]), int(sides[1])))
    return tuple(dict.fromkeys(sizes))


def _layout(name: str, task: str | None) -> "Layout":
    from edgebox.inference.importing.layouts import EMBEDDING_LAYOUTS, LAYOUTS, layout_named

    found = layout_named(name)
    if found is None:
        known = ", ".join(layout.name for layout in (*LAYOUTS, *EMBEDDING_LAYOUTS))
        raise ModelError(f"--layout: there is no layout {name!r}; there are {known}")
    if task == "embed" and found.task != "embed":
        raise ModelError(f"--layout: {name!r} gives no embeddings; leave it or --task embed out")
    return found


def _ask(file: str, layouts: Sequence[str]) -> int | None:
    """Show what each layout would find, and let a person choose."""
    err.print(f"The layout of {file} is not certain. What each would find:", markup=False)
    for at, each in enumerate(layouts, 1):
        err.print(f"  {at} {each}", markup=False)
    number: int = click.prompt("Which (0: none)", type=click.IntRange(0, len(layouts)), err=True)
    return number - 1 if number else None


def _measured(config: "Config", family: "Family", progress: Any) -> "list[LatencyProfile]":
    from edgebox.app.offline_profiling import measure_and_store

    try:
        measured = asyncio.run(measure_and_store(config, progress, [family]))
    except EdgeboxError as error:
        # The family is there and good; serve will measure it where it can.
        err.print("[yellow]not measured:[/] ", end="")
        err.print(str(error), markup=False)
        return []
    return [profile for _, _, profiles in measured for profile in profiles]


def _variant_documents(
    family: "Family", profiles: "Sequence[LatencyProfile]" = ()
) -> list[dict[str, Any]]:
    documents = []
    for variant in family.variants:
        document: dict[str, Any] = {
            "name": variant.name,
            "width_px": variant.width_px,
            "height_px": variant.height_px,
            "file": family.files[variant.name].path.name,
            "accuracy": (None if variant.name in family.accuracy_assumed else variant.accuracy),
            "dominated": family.dominated(variant.name),
            "accuracy_report": _accuracy_report_document(family.accuracy_reports.get(variant.name)),
        }
        timed = [profile for profile in profiles if profile.variant == variant.name]
        if timed:
            document["p50_ms"] = {
                str(size): round(timed[0].quantile_ns(size, 0.5) / 1e6, 2)
                for size in timed[0].batch_sizes
            }
        documents.append(document)
    return documents


def _accuracy_report_document(found: "AccuracyReport | None") -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        **found.origin(),
        **{key: round(value, 4) for key, value in found.details.items()},
    }


def _import_document(
    imported: "ImportResult",
    family: "Family",
    profiles: "Sequence[LatencyProfile]",
    took_s: float,
) -> dict[str, Any]:
    return {
        "family": family.name,
        "folder": str(imported.folder),
        "layout": imported.layout,
        "title": imported.title,
        "task": family.task,
        "licence": family.licence,
        "labels": list(family.labels),
        "batch_size_fixed": family.batch_size_fixed,
        "found": imported.found,
        "compared": imported.compared,
        "remarks": list(imported.remarks),
        "variants": _variant_documents(family, profiles),
        "took_s": round(took_s, 1),
    }


def _print_import(
    imported: "ImportResult",
    family: "Family",
    profiles: "Sequence[LatencyProfile]",
    took_s: float,
) -> None:
    document = _import_document(imported, family, profiles, took_s)
    what = "embeddings" if family.task == "embed" else "detections"
    shown = ", ".join(family.labels[:3]) + ("..." if len(family.labels) > 3 else "")
    for key, text in (
        ("layout", f"{document['layout']} ({document['title']})"),
        ("licence", family.licence),
        ("labels", f"{len(family.labels)}: {shown}"),
        ("found", str(document["found"])),
        ("compared", f"{imported.compared} {what} agree with the original's"),
        *(("note", remark) for remark in imported.remarks),
    ):
        out.print(f"[bold]{key}[/] ", end="")
        out.print(text, markup=False, soft_wrap=True)
    rows = [
        (
            str(row["name"]),
            f"{row['width_px']} × {row['height_px']}",
            ", ".join(f"{size}: {ms:.1f}" for size, ms in row.get("p50_ms", {}).items()),
        )
        for row in document["variants"]
    ]
    out.print(table("variants", ("name", "px", "batch: p50 ms"), rows))
    out.print(f"[green]imported[/] {family.name} in {took_s:.1f} s to ", end="")
    out.print(str(imported.folder), markup=False, soft_wrap=True)
    out.print(f"  try it: edgebox detect PICTURE --family {family.name}", markup=False)


@models.command("list")
@CONFIG
@JSON
def list_models(*, config_file: Path | None, as_json: bool) -> None:
    """List the families and variants."""
    from edgebox.app.accuracy_measurement import remembered
    from edgebox.app.family_folders import known_folders
    from edgebox.config.config_file import load
    from edgebox.inference.zoo import load_zoo

    with clear_errors("models list"):
        config = load(config_file)
        zoo = load_zoo(known_folders(config.inference))
        families, newest = remembered(config, zoo.families)
    default = config.inference.family
    documents = [_family_document(family, default, newest) for family in families]
    if as_json:
        problems = [str(problem) for problem in zoo.problems]
        print_json({"families": documents, "problems": problems})
        return
    for document in documents:
        _print_family(document)
    for problem in zoo.problems:
        err.print("[yellow]![/] left out: ", end="")
        err.print(str(problem), markup=False, soft_wrap=True)


def _family_document(
    family: "Family", default: str, newest: "Sequence[LatencyProfile]"
) -> dict[str, Any]:
    origin = family.origin
    return {
        "name": family.name,
        "default": family.name == default,
        "task": family.task,
        "layout": family.decoder if origin is None else origin.layout,
        "sources": [] if origin is None else list(origin.sources),
        "remarks": [] if origin is None else list(origin.remarks),
        "licence": family.licence,
        "description": family.description,
        "labels": list(family.labels),
        "batch_size_fixed": family.batch_size_fixed,
        "folder": str(family.model_files[0].path.parent),
        "keep_all": family.keep_all,
        "variants": _variant_documents(family, newest),
    }


def _print_family(document: dict[str, Any]) -> None:
    sources = ", ".join(document["sources"])
    # Names of files and labels are other people's, and may look like markup.
    out.print(
        f"[bold]{document['name']}[/]{' (the default)' if document['default'] else ''}: ", end=""
    )
    out.print(f"{document['description']}, {len(document['labels'])} labels", markup=False)
    out.print(f"  licence {document['licence']}, layout {document['layout']}", markup=False)
    place = (
        f"  from {sources}, in {document['folder']}" if sources else f"  in {document['folder']}"
    )
    out.print(place, markup=False, soft_wrap=True)
    _print_variants(document)


def _print_variants(document: dict[str, Any]) -> None:
    """Print a family's variants as a table and, where their times are known, as a plot."""
    variants = document["variants"]
    judged = next((row["accuracy_report"] for row in variants if row["accuracy_report"]), None)
    kind = judged["kind"] if judged else "accuracy"
    rows = [
        (
            str(row["name"]),
            f"{row['width_px']} × {row['height_px']}",
            _accuracy_cell(row),
            f"{_single_ms(row):.1f}" if "p50_ms" in row else "",
            "dominated" if row["dominated"] else "",
        )
        for row in variants
    ]
    columns = 5 if any(row["dominated"] for row in variants) else 4
    headings = ("variant", "px", kind, "p50 ms", "note")[:columns]
    out.print(table("", headings, [row[:columns] for row in rows]))
    if judged:
        out.print(
            f"  {kind} ± two standard errors on {judged['pictures']} pictures of "
            f"{judged['source']}",
            markup=False,
        )
    for row in variants:
        if row["dominated"]:
            offered = ", offered all the same (keep_all)" if document["keep_all"] else ""
            out.print(f"  {row['name']}: {row['dominated']}{offered}", markup=False)
    points = [
        (_single_ms(row), row["accuracy"], "x" if row["dominated"] else "●")
        for row in variants
        if "p50_ms" in row and row["accuracy"] is not None
    ]
    if len(points) > 1:
        across = "ms (P50 of one picture), x: dominated" if judged else "ms (P50 of one picture)"
        out.print("\n".join(f"  {line}" for line in scatter(points, across)), markup=False)


def _accuracy_cell(row: dict[str, Any]) -> str:
    if row["accuracy"] is None:
        return "not measured"
    error = (
        f" ± {2 * row['accuracy_report']['standard_error']:.3f}" if row["accuracy_report"] else ""
    )
    return f"{row['accuracy']:.3f}{error}"


def _single_ms(row: dict[str, Any]) -> float:
    """Return what the smallest batch takes."""
    return float(next(iter(row["p50_ms"].values())))


models.add_command(cascade)
models.add_command(default)
models.add_command(get)
models.add_command(remove)
