"""Metrics of what was refused, for Prometheus."""

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from edgebox.domain.requests import DropReason
from edgebox.runtime.refusals import REFUSALS
from edgebox.web.connections import TooManyConnectionsError
from edgebox.web.request_limits import TooBusyError, TooManyViewersError

_CODES = (
    *(error.code for error in REFUSALS),
    *(error.code for error in (TooManyConnectionsError, TooBusyError, TooManyViewersError)),
    # Of programs' pictures.
    *(DropReason.QUEUE, DropReason.INFEASIBLE, DropReason.OVERLOAD, DropReason.FAILED),
    DropReason.SHUTDOWN,
)
"""They are there from the start: an alert on an increase would miss the first of each."""


def refusal_family(refused: Mapping[str, int]) -> Metric:
    """Return how much was refused by code."""
    family = CounterMetricFamily(
        "edgebox_refusals", "Refused hellos, connections, requests and pictures.", labels=["code"]
    )
    for code, count in {**dict.fromkeys(map(str, _CODES), 0), **refused}.items():
        family.add_metric([code], count)
    return family
