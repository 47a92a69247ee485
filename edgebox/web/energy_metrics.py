"""Metrics of energy, for Prometheus."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily

from edgebox.runtime.machine_measurements import Energy


def energy_family(energy: Iterable[Energy]) -> CounterMetricFamily:
    """Return the energy of each source; one without samples where nothing can be read."""
    found = CounterMetricFamily(
        "edgebox_energy_joules",
        "Energy that the machine's counters and sensors have measured.",
        labels=["source"],
    )
    for of in energy:
        found.add_metric([of.source], of.total_j)
    return found
