"""Writes binding constraints and prices as JSON. docs/reference/http-api.md."""

from typing import Any

from edgebox.domain.plans import Limit, Remedy, Resource, ResourcePrice
from edgebox.web.schemas import COUNT, NUMBER, TEXT, Schema, array, one_of, record
from edgebox.web.typed_schemas import schema_of

_UNITS = {
    Resource.UPLINK: ("Mbit/s", 1e6),
    Resource.DEADLINE: ("ms", 1e6),
    Resource.WAITING: ("ms", 1e6),
    Resource.EXECUTORS: ("% of time", 0.01),
}
"""Unit of each resource in documents, and its size in the core's units."""

LIMIT = Schema(
    "Limit",
    record(
        resource=one_of(*Resource), missing=NUMBER, unit=TEXT, gain=NUMBER, price=NUMBER,
        of=TEXT,
    ),
)  # fmt: skip
REMEDY = schema_of(Remedy)
RESOURCE_PRICE = Schema(
    "ResourcePrice",
    record(resource=one_of(*Resource), of=array(TEXT), price=NUMBER, unit=TEXT, cameras=COUNT),
)


def limit_document(limit: Limit | None) -> dict[str, Any] | None:
    """Return a constraint as JSON; None where there is none."""
    if limit is None:
        return None
    unit, factor = _UNITS[limit.resource]
    return {
        "resource": limit.resource.value,
        "missing": round(limit.missing / factor, 3),
        "unit": unit,
        "gain": round(limit.gain, 4),
        "price": round(limit.price * factor, 6),
        "of": limit.of,
    }


def price_document(price: ResourcePrice) -> dict[str, Any]:
    """Return the price of a resource as JSON: the gain of having more of it."""
    unit, factor = _UNITS[price.resource]
    return {
        "resource": price.resource.value,
        "of": list(price.of),
        "price": round(price.price * factor, 6),
        "unit": unit,
        "cameras": price.cameras,
    }
