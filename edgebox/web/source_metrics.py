"""Metrics of the cameras whose pictures the box fetches, for Prometheus."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from edgebox.runtime.source_status import SourceState, SourceStatus


def source_families(sources: Sequence[SourceStatus]) -> Iterator[Metric]:
    """Yield the metrics of sources; without sources the families have no samples."""
    live = GaugeMetricFamily("edgebox_source_live", "Whether pictures come.", labels=["camera"])
    losses = CounterMetricFamily(
        "edgebox_source_losses", "How often the source was lost.", labels=["camera"]
    )
    pictures = CounterMetricFamily(
        "edgebox_source_pictures",
        "Pictures that were due: used, or left out by the motion gate, or not needed by the plan.",
        labels=["camera", "use"],
    )
    seconds = CounterMetricFamily(
        "edgebox_source_processor_seconds",
        "Processor time of reading and decoding, and of scaling and encoding what was used.",
        labels=["camera", "step"],
    )
    for of in sources:
        name, decoding = of.camera, of.decoding
        live.add_metric([name], float(of.state is SourceState.LIVE))
        losses.add_metric([name], of.losses)
        unused = max(0, decoding.pictures - decoding.used - decoding.still)
        for use, count in (
            ("used", decoding.used), ("still", decoding.still), ("unused", unused)
        ):  # fmt: skip
            pictures.add_metric([name, use], count)
        seconds.add_metric([name, "decode"], decoding.decode_ns / 1e9)
        seconds.add_metric([name, "convert"], decoding.convert_ns / 1e9)
    yield from (live, losses, pictures, seconds)
