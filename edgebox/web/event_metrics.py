"""Metrics of the destinations of events, for Prometheus."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from edgebox.runtime.destinations import LOSSES, Destination


def event_families(destinations: Iterable[Destination]) -> Iterator[Metric]:
    """Yield what became of events, by destination."""
    labels = ["destination", "kind"]
    connected = GaugeMetricFamily(
        "edgebox_events_connected", "Whether the destination accepts events.", labels=labels
    )
    queued = GaugeMetricFamily("edgebox_events_queued", "Events that wait.", labels=labels)
    sent = CounterMetricFamily("edgebox_events_sent", "Events taken.", labels=labels)
    dropped = CounterMetricFamily(
        "edgebox_events_dropped", "Events lost.", labels=[*labels, "reason"]
    )
    for destination in destinations:
        known = [destination.name, destination.kind]
        if destination.connected is not None:
            connected.add_metric(known, float(destination.connected))
        queued.add_metric(known, destination.queued)
        sent.add_metric(known, destination.sent)
        for reason in LOSSES:  # from the start: an alert on an increase would miss the first
            dropped.add_metric([*known, reason], destination.dropped[reason])
    yield from (connected, queued, sent, dropped)
