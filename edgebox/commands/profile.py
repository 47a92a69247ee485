"""`edgebox profile`: how long variants take on this machine, and how good they are. Thin.

Imports what a command needs when it runs.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.box_options import (
    FINGERPRINT,
    SERVER_OPTION,
    TOKEN_FILE,
    given_token,
    naming_token_file,
)
from edgebox.commands.console import clear_errors, err, out, print_json, progress_bar, table
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from edgebox.app.accuracy_measurement import AccuracyMeasurement
    from edgebox.config.config_file import Config
    from edgebox.domain.model_family import LatencyProfile
    from edgebox.inference.accuracy.evaluation import Evaluator
    from edgebox.inference.family import Family
    from edgebox.inference.model_executor import ModelExecutor
    from edgebox.scheduling.concurrency import DeviceConcurrency

_SECONDS = 120.0
_BOX = "http://127.0.0.1:8787"


@click.command()
@click.argument("family", required=False)
@CONFIG
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    help=f"Time to measure each family on each executor.  [default: {_SECONDS:g}]",
)
@click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    help="Accuracy: labelled pictures, a folder with COCO or YOLO annotations, or their file.",
)
@click.option("--frames", help="Accuracy without labels: a folder of pictures, a video, rtsp://...")
@click.option("--from-camera", "camera", help="Accuracy without labels: a camera of a running box.")
@click.option(*SERVER_OPTION, "box", default=_BOX, show_default=True, help="Address of that box.")
@TOKEN_FILE
@FINGERPRINT
@click.option(
    "--limit", type=click.IntRange(1), help="Most pictures to use; each run takes the same ones."
)
@click.option("--keep-all", is_flag=True, help="Keep all variants, also dominated ones.")
@JSON
def profile(
    *,
    family: str | None,
    config_file: Path | None,
    seconds: float | None,
    dataset: Path | None,
    frames: str | None,
    camera: str | None,
    box: str,
    token_file: Path | None,
    fingerprint: str | None,
    limit: int | None,
    keep_all: bool,
    as_json: bool,
) -> None:
    """Measure the execution times of variants or, given pictures, the accuracy of FAMILY's.

    What is found is kept in the database for the next start of the box.
    """
    from edgebox.config.config_file import load

    with clear_errors("profile"), naming_token_file():
        sources = [source for source in (dataset, frames, camera) if source is not None]
        if len(sources) > 1:
            raise InvalidInputError("give one of --dataset, --frames and --from-camera")
        config = load(config_file, {} if seconds is None else {"inference.profile_s": seconds})
        if not sources:
            thorough = config if seconds else load(config_file, {"inference.profile_s": _SECONDS})
            _measure_times(thorough, family, as_json)
            return
        found = _family(config, family)
        if found is None:
            raise InvalidInputError("name the family whose accuracy is to be measured")
        with progress_bar(as_json) as progress, _interrupts() as stopping:
            from edgebox.app import accuracy_measurement

            evaluator: Evaluator
            if dataset is not None:
                from edgebox.inference.accuracy.evaluation import LabelEvaluator

                evaluator = LabelEvaluator(accuracy_measurement.read_dataset(dataset), found, limit)
            elif frames is not None:
                evaluator = accuracy_measurement.frames_evaluator(found, frames, limit)
            else:
                from edgebox.client import BoxAccess

                access = BoxAccess(box, given_token(token_file), fingerprint)
                wanted = limit or accuracy_measurement.FRAMES_DEFAULT
                live = accuracy_measurement.LiveCamera(access, camera or "", wanted)
                evaluator = accuracy_measurement.camera_evaluator(found, live, progress, stopping)
            assessment = accuracy_measurement.assess(
                config, found, evaluator, progress, stopping, keep_all=keep_all
            )
    kept = assessment.kept and config.storage.file != ":memory:"
    if as_json:
        print_json(_document(assessment, kept))
    else:
        _print(assessment, kept)


def _family(config: "Config", name: str | None) -> "Family | None":
    from edgebox.app.family_folders import known_folders
    from edgebox.inference.zoo import load_zoo

    return None if name is None else load_zoo(known_folders(config.inference)).family(name)


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end the work in good order, the second at once."""
    interrupted: list[int] = []

    def note(number: int, _frame: object) -> None:
        if interrupted:
            raise KeyboardInterrupt
        interrupted.append(number)
        err.print("stopping after the pictures under way; Ctrl-C again stops at once")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(interrupted)
    finally:
        signal.signal(signal.SIGINT, before)


def _document(found: "AccuracyMeasurement", kept: bool) -> dict[str, Any]:
    evaluator = found.evaluator
    took = {p.variant: p.quantile_ns(p.batch_sizes[0], 0.5) for p in found.profiles}
    return {
        "family": found.family.name,
        "kind": evaluator.kind,
        "source": evaluator.source,
        "pictures": evaluator.pictures,
        "pictures_planned": evaluator.planned,
        "interrupted": found.interrupted,
        "kept": kept,
        "remarks": list(found.remarks),
        "variants": [
            {
                "name": name,
                "accuracy": round(each.accuracy, 4),
                "standard_error": round(each.error, 4),
                "p50_ms": round(took[name] / 1e6, 2),
                "dominated": each.dominated,
                **{key: round(value, 4) for key, value in each.details.items()},
            }
            for name, each in found.accuracy_reports.items()
        ],
    }


def _print(found: "AccuracyMeasurement", kept: bool) -> None:
    document = _document(found, kept)
    details = ("mAP50", "mAP75", "small", "medium", "large", "precision", "recall")
    shown = [key for key in details if any(key in row for row in document["variants"])]
    rows = [
        (
            row["name"],
            f"{row['accuracy']:.3f} ± {2 * row['standard_error']:.3f}",
            *(f"{row[key]:.3f}" if key in row else "-" for key in shown),
            f"{row['p50_ms']:.1f}",
            "dominated" if row["dominated"] else "",
        )
        for row in document["variants"]
    ]
    kind = (
        "mAP" if found.evaluator.kind == "mAP" else f"F1 against {found.family.variants[-1].name}"
    )
    title = f"{kind} on {document['pictures']} pictures of {document['source']}"
    out.print(table(title, ("variant", found.evaluator.kind, *shown, "p50 ms", ""), rows))
    for row in document["variants"]:
        if row["dominated"]:
            out.print(f"{row['name']} is dominated: {row['dominated']}", markup=False)
    for remark in found.remarks:
        out.print(f"note: {remark}", markup=False, soft_wrap=True)
    if found.interrupted:
        out.print(
            f"[yellow]interrupted[/]: {document['pictures']} of {document['pictures_planned']} "
            "pictures; nothing is kept (--limit measures so many and keeps the result)"
        )
    elif kept:
        out.print("kept in the database; edgebox serve goes by it from its next start on")


def _measure_times(config: "Config", name: str | None, as_json: bool) -> None:
    from edgebox.app.offline_profiling import measure_and_store
    from edgebox.scheduling.concurrency import device_concurrency

    family = _family(config, name)
    with progress_bar(as_json) as progress:
        families = () if family is None else (family,)
        measured = asyncio.run(measure_and_store(config, progress, families))
    known = {
        executor.id: {
            of.variant: of for _, on, profiles in measured if on is executor for of in profiles
        }
        for _, executor, _ in measured
    }
    devices = [*device_concurrency(known, config.scheduler.concurrent_batches).values()]
    rows = _time_rows(measured)
    if as_json:
        at_once = [
            {"device": of.device, "concurrent_batches": of.limit, "reason": of.reason}
            for of in devices
        ]
        print_json({"profiles": rows, "devices": at_once})
    else:
        _print_times(rows, devices)


def _time_rows(
    measured: "Iterable[tuple[Family, ModelExecutor, list[LatencyProfile]]]",
) -> list[dict[str, Any]]:
    return [
        {
            "family": family.name,
            "executor": executor.id,
            "provider": executor.provider,
            "variant": found.variant,
            "batch_size": size,
            "interference": round(found.interference, 3),
            "interference_factors": [round(each, 3) for each in found.interference_factors],
            "p50_ms": round(found.quantile_ns(size, 0.5) / 1e6, 2),
            "p90_ms": round(found.quantile_ns(size, 0.9) / 1e6, 2),
            "p99_ms": round(found.quantile_ns(size, 0.99) / 1e6, 2),
        }
        for family, executor, profiles in measured
        for found in profiles
        for size in found.batch_sizes
    ]


def _print_times(rows: list[dict[str, Any]], devices: "Iterable[DeviceConcurrency]") -> None:
    several = len({row["executor"] for row in rows}) > 1
    headings: tuple[str, ...] = (
        "variant", "executor", "batch", "p50 ms", "p90 ms", "p99 ms", "pictures/s",
    )  # fmt: skip
    headings += ("per other",) if several else ()
    cells = [
        (
            str(row["variant"]),
            str(row["executor"]),
            str(row["batch_size"]),
            f"{row['p50_ms']:.2f}",
            f"{row['p90_ms']:.2f}",
            f"{row['p99_ms']:.2f}",
            f"{row['batch_size'] / row['p50_ms'] * 1e3:.0f}",
            *((f"+{row['interference']:.0%}",) if several else ()),
        )
        for row in rows
    ]
    out.print(table("Execution times, kept in the database", headings, cells))
    if several:
        out.print("per other: what each other executor that runs adds to a batch")
        for of in devices:
            batches = "batch" if of.limit == 1 else "batches"
            out.print(f"{of.device}: {of.limit} {batches} at once: {of.reason}", highlight=False)
