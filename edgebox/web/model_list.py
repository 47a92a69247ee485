"""GET /v1/models: the families of a box and the latencies of each variant. models.md."""

from collections import Counter
from typing import Any

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.model_family import QUANTILES, AccuracyReport, ExecutorId, Variant, VariantName
from edgebox.inference.family import TASKS, Family
from edgebox.runtime.box import Box
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    Schema,
    array,
    described,
    mapping,
    nullable,
    one_of,
    record,
)
from edgebox.web.web_context import WebContext


async def _models(context: WebContext, request: web.Request) -> web.Response:
    box = context.box
    cameras = Counter(
        each.advice.variant for each in box.cameras.values() if each.connected and each.advice
    )
    families = [_family(box, family, cameras) for family in box.families.values()]
    return json_response(
        {"default": box.models.default_family, "quantiles": QUANTILES, "families": families}
    )


def _family(box: Box, family: Family, cameras: Counter[VariantName]) -> dict[str, Any]:
    origin, offered = family.origin, family.offered
    return {
        "name": family.name,
        "task": family.task,
        "licence": family.licence,
        "description": family.description,
        "labels": family.labels,
        "attributes": [{"name": each.name, "labels": each.labels} for each in family.attributes],
        "embedding_length": family.embedding_length,
        "imported": None
        if origin is None
        else {"layout": origin.layout, "sources": origin.sources, "remarks": origin.remarks},
        "variants": [
            {
                "name": variant.name,
                "width_px": variant.width_px,
                "height_px": variant.height_px,
                **accuracy_document(variant, family),
                "dominated": None if variant in offered else family.dominated(variant.name),
                "in_memory": _in_memory(box, variant.name) if variant in offered else [],
                "sha256": family.files[variant.name].sha256,
                "cameras": cameras[variant.name],
                "profiles": _profiles(box, variant.name),
            }
            for variant in family.variants
        ],
    }


def accuracy_document(variant: Variant, family: Family | None) -> dict[str, Any]:
    """Return a variant's accuracy and how it is known; of a family that is gone it is not."""
    report = None if family is None else family.accuracy_reports.get(variant.name)
    return {
        "accuracy": variant.accuracy,
        "accuracy_assumed": family is None or variant.name in family.accuracy_assumed,
        "accuracy_report": _accuracy_report(report),
    }


def _accuracy_report(found: AccuracyReport | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        **found.origin(),
        "details": {name: round(value, 4) for name, value in found.details.items()},
    }


def _in_memory(box: Box, variant: VariantName) -> list[ExecutorId]:
    """Return the executors that could run a variant at once."""
    return box.driver.scheduler.times.latencies.executors(variant)


def _profiles(box: Box, variant: VariantName) -> dict[str, dict[str, list[float]]]:
    """Return times in ms by executor and batch size, each at the quantiles."""
    return {
        executor: {
            str(size): [round(ns / 1e6, 3) for ns in profiles[variant].quantiles_ns[size]]
            for size in profiles[variant].batch_sizes
        }
        for executor, profiles in box.profiles.items()
        if variant in profiles
    }


_ACCURACY_REPORT = Schema(
    "AccuracyReport",
    record(
        kind=one_of("mAP", "F1"),
        standard_error=NUMBER,
        source=TEXT,
        pictures=COUNT,
        measured_at_ms=COUNT,
        details=mapping(NUMBER),
    ),
)
ACCURACY: dict[str, Any] = {
    "accuracy": described(SHARE, "mAP@0.5:0.95, or the measure named in `accuracy_report`"),
    "accuracy_assumed": described(
        BOOLEAN, "The accuracy was not measured: only the order of variants is meaningful"
    ),
    "accuracy_report": described(
        nullable(_ACCURACY_REPORT), "How its accuracy was measured on this box"
    ),
}
_VARIANT = Schema(
    "Variant",
    record(
        name=TEXT,
        width_px=COUNT,
        height_px=COUNT,
        **ACCURACY,
        dominated=described(nullable(TEXT), "Why cameras are not offered it; null: they are"),
        in_memory=described(array(TEXT), "Executors that could run it at once"),
        sha256=TEXT,
        cameras=described(COUNT, "Connected cameras that are advised to send for it"),
        profiles=described(
            mapping(mapping(array(NUMBER))),
            "Milliseconds by executor and batch size, one for each of `quantiles`",
        ),
    ),
)
_FAMILY = Schema(
    "Family",
    record(
        name=TEXT,
        task=one_of(*TASKS),
        licence=TEXT,
        description=TEXT,
        labels=array(TEXT),
        attributes=described(
            array(Schema("ModelAttribute", record(name=TEXT, labels=array(TEXT)))),
            "What a classifier says of a picture, if it is more than one thing; `labels` has the "
            "labels of all in this order",
        ),
        embedding_length=described(
            nullable(COUNT), "Numbers of an embedding; null: the family gives none"
        ),
        imported=nullable(record(layout=TEXT, sources=array(TEXT), remarks=array(TEXT))),
        variants=array(_VARIANT),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/models",
        answer=_models,
        scope=Scope.VIEWER,
        summary="Model families, their variants and their latencies on this machine",
        answers=(
            Answer(
                "The families; none before the box is ready.",
                record(default=TEXT, quantiles=array(SHARE), families=array(_FAMILY)),
            ),
        ),
    ),
)
