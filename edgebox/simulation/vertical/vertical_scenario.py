"""The scenario of vertical scaling: requests over mobile links, one executor on CPU cores. Pure.

Every request has a link of its own with the rate of the trace at that time, as in Sponge's
evaluation: what one camera sends does not delay another. All requests have one SLO and, within a
run, one size; so they arrive in the order of their deadlines.
"""

import random
from dataclasses import dataclass

import numpy as np

from edgebox.domain.field_reader import FieldReader
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.scheduling.cores.core_latency import CoreLatency, Floats, fit_core_latency
from edgebox.simulation.scenario_traces import ReadFile, read_trace, read_trace_start_s
from edgebox.simulation.toml_lines import parse_toml

MS = 1_000_000
S = 1000 * MS
_REQUESTS_MAX = 500_000
"""Of one run; more take hours and all memory."""
P99 = 2.326
"""In standard deviations of a normal distribution."""


@dataclass(frozen=True, slots=True)
class VerticalScenario:
    """One executor and what it is sent."""

    duration_ns: int
    rate_hz: float
    slo_ns: int
    sizes_bytes: tuple[int, ...]
    """Sizes of pictures: one run each."""
    link: BandwidthTrace
    link_start_ns: int
    latency: CoreLatency
    """The median."""
    spread: float
    """Standard deviation of the logarithm of execution times."""
    batch_max: int
    cores_max: int
    cores_static: tuple[int, ...]
    cold_start_ns: int
    """Time until a new instance of horizontal scaling answers."""
    seed: int

    @property
    def times_ns(self) -> Floats:
        """Median times, (B, C)."""
        return self.latency.table_ns(self.batch_max, self.cores_max)

    @property
    def times_max_ns(self) -> Floats:
        """Times that 1 % of batches exceed, (B, C)."""
        return np.asarray(self.times_ns * np.exp(P99 * self.spread))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests in the order of arrival, which is that of their deadlines."""

    arrivals_ns: tuple[int, ...]
    deadlines_ns: tuple[int, ...]
    captures_ns: tuple[int, ...]


def parse_vertical_scenario(
    text: str, name: str, read: ReadFile, seed: int | None = None
) -> VerticalScenario:
    """Read a scenario.

    Args:
        text: of the file (TOML).
        name: of the file, for messages.
        read: returns the text of a trace file; its errors must be one-liners.
        seed: replaces the scenario's own.

    Raises:
        InvalidInputError: the first mistake, with file, line and key.
    """
    top = parse_toml(text, name)
    own_seed = top.count("seed", 1)
    model = top.inner("model")
    cores_max = model.integer("cores_max", 1, 256, 16)
    link = top.inner("link")
    start_s = read_trace_start_s(link)
    trace = read_trace(link, read)
    link.refuse_unknown()
    if start_s is None:
        start_s = random.Random(own_seed if seed is None else seed).random() * trace.period_ns / S
    usual: list[object] = [each for each in (8, 16) if each <= cores_max] or [cores_max]
    static = top.numbers("cores_static", 1, cores_max, default=usual)
    if any(each != round(each) for each in static):
        raise top.wrong("cores_static", f"must be an array of whole numbers, not {static}")
    duration_s = top.number("duration_s", 0, 86_400, above=True)
    rate_hz = top.number("rate_hz", 0, 10_000, above=True)
    requests = int(duration_s * rate_hz)
    if not 1 <= requests <= _REQUESTS_MAX:
        raise top.wrong(
            "duration_s",
            f"at rate_hz there are {requests} requests; let it be 1 to {_REQUESTS_MAX}",
        )
    scenario = VerticalScenario(
        duration_ns=round(duration_s * S),
        rate_hz=rate_hz,
        slo_ns=round(top.number("slo_ms", 0, 60_000, above=True) * MS),
        sizes_bytes=_sizes(top),
        link=trace,
        link_start_ns=round(start_s * S),
        latency=_latency(model),
        spread=model.number("spread", 0, 1, 0.0),
        batch_max=model.integer("batch_max", 1, 256, 16),
        cores_max=cores_max,
        cores_static=tuple(map(round, static)),
        cold_start_ns=round(top.number("cold_start_s", 0, 600, 2.0) * S),
        seed=own_seed if seed is None else seed,
    )
    model.refuse_unknown()
    top.refuse_unknown()
    return scenario


def _sizes(top: FieldReader) -> tuple[int, ...]:
    sizes = top.numbers("picture_kb", 0.1, 100_000)
    if not sizes:
        raise top.wrong("picture_kb", "give the size of a picture, or of several for one run each")
    return tuple(round(each * 1000) for each in sizes)


def _latency(model: FieldReader) -> CoreLatency:
    """Return the model's times: given by coefficients, or fitted to measurements."""
    factor = model.number("times", 0.001, 1000, 1.0)
    if "measured" not in model:
        names = ("gamma_ms", "epsilon_ms", "delta_ms", "eta_ms")
        values = [model.number(name, 0, 600_000) * MS * factor for name in names]
        if not any(values):
            raise model.wrong("gamma_ms", "a batch that takes no time needs no cores")
        return CoreLatency(*values)
    measured: dict[tuple[int, int], float] = {}
    for row in model.objects("measured"):
        key = row.integer("batch", 1, 4096), row.integer("cores", 1, 4096)
        measured[key] = row.number("ms", 0, 600_000, above=True) * MS * factor
        row.refuse_unknown()
    return fit_core_latency(measured)


def make_arrivals(scenario: VerticalScenario, size_bytes: int) -> Arrivals:
    """Return the requests of one run; transit is the time on the link alone."""
    link = ShapedLink(scenario.link, 0)
    gap_ns = S / scenario.rate_hz
    captures, arrivals = [], []
    for number in range(int(scenario.duration_ns / gap_ns)):
        captured_ns = round(number * gap_ns)
        through = link.bits_until(captured_ns + scenario.link_start_ns) + 8 * size_bytes
        captures.append(captured_ns)
        arrivals.append(max(captured_ns, link.instant_of(through) - scenario.link_start_ns))
    deadlines = tuple(each + scenario.slo_ns for each in captures)
    return Arrivals(tuple(arrivals), deadlines, tuple(captures))
