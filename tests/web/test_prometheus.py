"""What a scrape has from the start, so that alerts on an increase see the first case."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from edgebox.domain.requests import DropReason
from edgebox.runtime.destinations import Destination
from edgebox.runtime.refusals import REFUSALS
from edgebox.web.event_metrics import event_families
from edgebox.web.refusal_metrics import refusal_family


def values(families: Iterable[Metric], name: str, label: str) -> dict[str, float]:
    (family,) = (each for each in families if each.name == name)
    return {sample.labels[label]: sample.value for sample in family.samples}


def test_every_refusal_of_a_camera_is_there_before_it_happens() -> None:
    fresh = values([refusal_family({})], "edgebox_refusals", "code")
    assert {error.code for error in REFUSALS} <= fresh.keys()
    assert {"too_busy", "too_many_connections", DropReason.OVERLOAD.value} <= fresh.keys()
    assert set(fresh.values()) == {0}
    later = values([refusal_family({"box_full": 2, "new": 1})], "edgebox_refusals", "code")
    assert later == {**fresh, "box_full": 2, "new": 1}


def test_every_loss_of_an_event_is_there_before_it_happens() -> None:
    destination = Destination("webhook", "barn")
    name = "edgebox_events_dropped"
    none = dict.fromkeys(("overflow", "refused", "expired"), 0)
    assert values(event_families([destination]), name, "reason") == none
    destination.dropped["expired"] += 1
    assert values(event_families([destination]), name, "reason") == {**none, "expired": 1}
    assert destination.dropped == {"expired": 1}, "asking adds none"
