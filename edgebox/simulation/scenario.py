"""Owns the scenario file: cameras, links, variants and executors of a simulated box. TOML in.

Pure: the text, and a function that reads the trace files it names, are arguments. Every error is
one line that names file, line and key. docs/explanation/simulation.md describes the format.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgebox.domain.accuracy_by_side import read_accuracy_by_side
from edgebox.domain.field_reader import FieldReader
from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import Camera, CameraId, SiteId
from edgebox.link.bandwidth import SIZE_EXPONENT, EstimatorKind
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.scheduling.policies import POLICIES
from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule, SchedulerParameters
from edgebox.simulation.scenario_pipelines import (
    read_object_sides,
    read_objects,
    read_pipeline_of,
    read_pipelines,
)
from edgebox.simulation.scenario_traces import ReadFile, read_trace, read_trace_start_s
from edgebox.simulation.senders import SenderKind
from edgebox.simulation.shared_links import Queueing, SimulatedSite
from edgebox.simulation.simulated_cameras import CameraClock, PictureBytes, SimulatedCamera
from edgebox.simulation.toml_lines import parse_toml

MS = 1_000_000
S = 1000 * MS
PERFECT = "perfect"
ESTIMATES = (*(str(rule) for rule in EstimatorKind), PERFECT)
FAMILY = FamilyName("default")
DATABASE = "database"


@dataclass(frozen=True, slots=True)
class Policy:
    """The variables of a comparison: batching policy, link estimator, sender."""

    batching: str = "adaptive"
    bandwidth: str = str(EstimatorKind.CAUTIOUS)
    sender: SenderKind = SenderKind.WINDOW
    plans: bool = True
    """Whether the box plans; otherwise every camera gets its largest variant at its own rate."""


@dataclass(frozen=True, slots=True)
class BoxCosts:
    """The box's costs apart from inference."""

    prepare_ns: tuple[int, int] = (1 * MS, 4 * MS)
    overhead_ns: int = 300_000
    planning_ns: int | None = None
    """The time of a plan; None: as measured on one machine for this many cameras."""
    planning_measured: bool = False
    """Whether a plan takes its real time on this machine; then no two runs are equal."""
    timer_early_ns: int = 500_000
    slowdown: float = 1.0
    """The factor by which all executors are slower than the scheduler assumes, in addition to their
    own."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The variants and executors of the box."""

    variants: tuple[Variant, ...]
    profiles: Mapping[ExecutorId, tuple[LatencyProfile, ...]]
    slowdown: Mapping[ExecutorId, float] = field(default_factory=dict)
    taken: Mapping[ExecutorId, tuple[LatencyProfile, ...]] = field(default_factory=dict)
    """The actual profiles of executors, where they differ from those of the scheduler."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run."""

    cameras: tuple[SimulatedCamera, ...]
    hardware: Hardware | None
    """None: that of this machine, from the box's database."""
    duration_ns: int
    warmup_ns: int = 0
    """Frames captured before this are not counted."""
    seed: int = 1
    policy: Policy = Policy()
    planning: PlanningParameters = field(default_factory=PlanningParameters)
    scheduling: SchedulerParameters = field(default_factory=SchedulerParameters)
    costs: BoxCosts = BoxCosts()
    refuses: bool = False
    """Whether cameras are refused that would take service from others."""


def parse_scenario(text: str, name: str, read: ReadFile, seed: int | None = None) -> Scenario:
    """Read a scenario.

    Args:
        text: of the file.
        name: of the file, for messages.
        read: returns the text of a trace file; its errors must be one-liners.
        seed: replaces the scenario's own.

    Raises:
        InvalidInputError: the first mistake, with file, line and key.
    """
    top = parse_toml(text, name)
    own_seed = top.count("seed", 1)
    seed = own_seed if seed is None else seed
    duration_s = top.number("duration_s", 0, 86_400, above=True)
    warmup_s = top.number("warmup_s", 0, duration_s, 0.0)
    planning, scheduling, refuses = _planner(top.inner("planner", optional=True))
    policy, scheduling = _policy(top.inner("policy", optional=True), scheduling)
    if top.choice("profiles", ("inline", DATABASE), "inline") == DATABASE:
        hardware, families = None, None
    else:
        hardware = _hardware(top)
        families = sorted({variant.family for variant in hardware.variants})
    entries = top.objects("cameras", default=[])
    if not entries:
        raise top.wrong("cameras", "there must be at least one [[cameras]]")
    pipelines = read_pipelines(top, families, None if hardware is None else hardware.variants)
    rng = random.Random(seed)
    context = _Context(families, pipelines, _sites(top, rng, read), read)
    cameras = [camera for entry in entries for camera in _cameras(entry, context, rng)]
    seen: set[CameraId] = set()
    for camera in cameras:
        if camera.camera.id in seen:
            raise top.wrong("cameras", f"there are two cameras named {camera.camera.id!r}")
        seen.add(camera.camera.id)
    scenario = Scenario(
        tuple(cameras),
        hardware,
        round(duration_s * S),
        round(warmup_s * S),
        seed,
        policy,
        planning,
        scheduling,
        _costs(top.inner("box", optional=True)),
        refuses,
    )
    top.refuse_unknown()
    return scenario


def _policy(table: FieldReader, core: SchedulerParameters) -> tuple[Policy, SchedulerParameters]:
    plain = Policy()
    policy = Policy(
        table.choice("batching", tuple(POLICIES), plain.batching),
        table.choice("bandwidth", ESTIMATES, plain.bandwidth),
        SenderKind(table.choice("sender", tuple(SenderKind), plain.sender)),
        table.choice("planning", ("adaptive", "none"), "adaptive") == "adaptive",
    )
    rule = table.choice("frame_admission", tuple(FrameAdmissionRule), core.frame_admission)
    core = replace(
        core,
        frame_admission=FrameAdmissionRule(rule),
        variant_per_batch=table.flag("variant_per_batch", core.variant_per_batch),
    )
    table.refuse_unknown()
    return policy, core


def _planner(table: FieldReader) -> tuple[PlanningParameters, SchedulerParameters, bool]:
    plain, core = PlanningParameters(), SchedulerParameters()
    used = table.number("utilisation_max", 0.05, 1, plain.utilisation_max)
    plain = plain.using(used)
    planning = replace(
        plain,
        quantile=table.number("quantile", 0.5, 1, plain.quantile),
        utilisation_upgrade=table.number("utilisation_upgrade", 0.05, 1, plain.utilisation_upgrade),
        uplink_utilisation_max=table.number(
            "uplink_utilisation_max", 0.05, 1, plain.uplink_utilisation_max
        ),
        uplink_utilisation_max_stable=table.number(
            "uplink_utilisation_max_stable", 0.05, 1, plain.uplink_utilisation_max_stable
        ),
        link_upgrade=table.number("link_upgrade", 1, 10, plain.link_upgrade),
        upgrade_hold_ns=_ns(table, "upgrade_hold_ms", plain.upgrade_hold_ns),
        rate_min_hz=table.number("rate_min_hz", 0.01, 1000, plain.rate_min_hz),
    )
    scheduling = replace(
        core,
        planning_interval_ns=_ns(table, "interval_ms", core.planning_interval_ns, low=50),
        utilisation_max=used,
    )
    refuses = table.choice("admission", ("best_effort", "refuse"), "best_effort") == "refuse"
    table.refuse_unknown()
    return planning, scheduling, refuses


def _costs(table: FieldReader) -> BoxCosts:
    plain = BoxCosts()
    measured = isinstance(table.raw("planning_ms"), str)
    if measured:
        table.choice("planning_ms", ("measured",))
    planned = "planning_ms" in table and not measured
    costs = BoxCosts(
        _range_ns(table, "prepare_ms", plain.prepare_ns),
        _ns(table, "overhead_ms", plain.overhead_ns),
        _ns(table, "planning_ms", 0) if planned else None,
        measured,
        _ns(table, "timer_early_ms", plain.timer_early_ns),
        table.number("slowdown", 0.01, 1000, plain.slowdown),
    )
    table.refuse_unknown()
    return costs


def _ns(table: FieldReader, key: str, default_ns: int, low: float = 0.0) -> int:
    return round(table.number(key, low, 600_000, default_ns / MS) * MS)


def _range_ns(table: FieldReader, key: str, default_ns: tuple[int, int]) -> tuple[int, int]:
    if key not in table:
        return default_ns
    least, most = (round(ms * MS) for ms in table.numbers(key, 0, 10_000, length=2))
    if least > most:
        raise table.wrong(key, "the first must not be above the second")
    return least, most


def _hardware(top: FieldReader) -> Hardware:
    executors = top.objects("executors", default=[])
    if not executors:
        raise top.wrong("executors", 'there must be [[executors]], or profiles = "database"')
    entries = top.objects("variants", default=[])
    if not entries:
        raise top.wrong("variants", 'there must be [[variants]], or profiles = "database"')
    variants: dict[VariantName, Variant] = {}
    times: dict[VariantName, dict[int, list[float]]] = {}
    for entry in entries:
        variant = _variant(entry)
        if variant.name in variants:
            raise entry.wrong("name", f"there are two variants named {variant.name!r}")
        variants[variant.name] = variant
        times[variant.name] = _batch_ms(entry)
        entry.refuse_unknown()
    profiles: dict[ExecutorId, tuple[LatencyProfile, ...]] = {}
    slowdown: dict[ExecutorId, float] = {}
    for entry in executors:
        executor = ExecutorId(entry.nonempty("name"))
        if executor in profiles:
            raise entry.wrong("name", f"there are two executors named {executor!r}")
        profiles[executor] = _profiles(entry, executor, times)
        slowdown[executor] = entry.number("slowdown", 0.01, 1000, 1.0)
        entry.refuse_unknown()
    return Hardware(tuple(variants.values()), profiles, slowdown)


def _variant(entry: FieldReader) -> Variant:
    width_px = entry.integer("width_px", 1, 65_536)
    return Variant(
        VariantName(entry.nonempty("name")),
        FamilyName(entry.nonempty("family", FAMILY)),
        width_px,
        entry.integer("height_px", 1, 65_536, width_px),
        entry.number("accuracy", 0, 1),
        read_accuracy_by_side(entry),
    )


def _batch_ms(entry: FieldReader) -> dict[int, list[float]]:
    """Return the times by batch size: one for all quantiles, or one for each."""
    table = entry.inner("batch_ms", optional=True)
    out: dict[int, list[float]] = {}
    for key in table.names():
        if not key.isdecimal() or not 1 <= int(key) <= 4096:
            raise table.wrong(key, "a batch size must be a whole number from 1 to 4096")
        if isinstance(table.raw(key), list):
            times = table.numbers(key, 0, 600_000, length=len(QUANTILES))
            if times != sorted(times):
                raise table.wrong(key, "the times of the quantiles must rise")
        else:
            times = [table.number(key, 0, 600_000, above=True)]
        out[int(key)] = times
    if not out:
        raise entry.wrong("batch_ms", "must give a time for at least one batch size")
    return dict(sorted(out.items()))


def _profiles(
    entry: FieldReader,
    executor: ExecutorId,
    times: Mapping[VariantName, Mapping[int, Sequence[float]]],
) -> tuple[LatencyProfile, ...]:
    spread = [1.0] * len(QUANTILES)
    if "spread" in entry:
        spread = entry.numbers("spread", 0.001, 1000, length=len(QUANTILES))
        if spread != sorted(spread):
            raise entry.wrong("spread", "must rise")
    factor = entry.number("times", 0.001, 1000, 1.0)
    interference = entry.number("interference", 0, 100, 0.0)
    names = entry.texts("variants") or list(times)
    out = []
    for name in names:
        if name not in times:
            raise entry.wrong("variants", f"there is no variant named {name!r}")
        rows = {
            size: tuple(
                round(ms * MS * factor)
                for ms in (given if len(given) > 1 else [given[0] * k for k in spread])
            )
            for size, given in times[VariantName(name)].items()
        }
        out.append(LatencyProfile(VariantName(name), executor, rows, interference))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Site:
    """A site, and whether its cameras state it in their hello."""

    site: SimulatedSite
    declared: bool


def _sites(top: FieldReader, rng: random.Random, read: ReadFile) -> dict[str, _Site]:
    sites: dict[str, _Site] = {}
    for entry in top.objects("sites", default=[]):
        name, trace, start_s = (
            entry.nonempty("name"),
            read_trace(entry, read),
            read_trace_start_s(entry),
        )
        if name in sites:
            raise entry.wrong("name", f"there are two sites named {name!r}")
        start_ns = rng.random() * trace.period_ns if start_s is None else start_s * S
        queueing = Queueing(entry.choice("queueing", tuple(Queueing), Queueing.FIFO))
        site = SimulatedSite(SiteId(name), trace, queueing, round(start_ns))
        sites[name] = _Site(site, declared=entry.flag("declared", True))
        entry.refuse_unknown()
    return sites


def _site(entry: FieldReader, sites: Mapping[str, _Site]) -> _Site | None:
    if "site" not in entry:
        return None
    name = entry.nonempty("site")
    if name not in sites:
        raise entry.wrong("site", f"there is no site named {name!r}")
    return sites[name]


@dataclass(frozen=True, slots=True)
class _Context:
    """What a camera may name."""

    families: Sequence[FamilyName] | None
    """None: not known."""
    pipelines: Mapping[str, Pipeline]
    sites: Mapping[str, _Site]
    read: ReadFile


def _cameras(entry: FieldReader, context: _Context, rng: random.Random) -> list[SimulatedCamera]:
    template = _camera(entry, context)
    name, count = template.camera.id, entry.integer("count", 1, 10_000, 1)
    apart_ns = round(entry.number("joins_apart_s", 0, 86_400, 0.0) * S)
    phase_ms = entry.number("phase_ms", -1, 60_000, -1.0)
    start_s = read_trace_start_s(entry) if template.site is None else 0.0
    entry.refuse_unknown()
    made = []
    for at in range(count):
        drawn_phase, drawn_start = rng.random(), rng.random()
        drawn_phase_ns = drawn_phase * S / template.camera.rate_hz
        own_id = CameraId(name if count == 1 else f"{name}-{at + 1}")
        made.append(
            replace(
                template,
                camera=replace(template.camera, id=own_id),
                opens_ns=template.opens_ns + at * apart_ns,
                phase_ns=round(drawn_phase_ns if phase_ms < 0 else phase_ms * MS),
                trace_start_ns=round(
                    drawn_start * template.trace.period_ns if start_s is None else start_s * S
                ),
            )
        )
    return made


def _family(entry: FieldReader, families: Sequence[FamilyName] | None) -> FamilyName:
    family = entry.nonempty("family", families[0] if families and len(families) == 1 else None)
    if families is not None and family not in families:
        raise entry.wrong("family", f"there is no variant of a family named {family!r}")
    return FamilyName(family)


def _camera(entry: FieldReader, context: _Context) -> SimulatedCamera:
    """Return the camera that all cameras of an entry copy."""
    of = _site(entry, context.sites)
    pipeline = read_pipeline_of(entry, context.pipelines)
    family = _family(entry, context.families) if pipeline is None else pipeline.first.family
    width_px = entry.integer("width_px", 16, 65_536, 1280)
    rate_hz = entry.number("rate_hz", 0, 1000, above=True)
    clock = CameraClock(entry.choice("clock", tuple(CameraClock), CameraClock.EXCHANGED))
    if of and of.site.queueing is Queueing.FAIR and clock is not CameraClock.EXCHANGED:
        raise entry.wrong("clock", f"must be {CameraClock.EXCHANGED} on a link shared fairly")
    template = SimulatedCamera(
        Camera(
            CameraId(entry.nonempty("name")),
            entry.nonempty("app", "default"),
            family,
            round(entry.number("slo_ms", 0, 600_000, above=True) * MS),
            rate_hz,
            width_px,
            entry.integer("height_px", 16, 65_536, 720),
            entry.number("min_accuracy", 0, 1, 0.0),
            entry.number("min_rate_hz", 0, rate_hz, 0.0),
            site=of.site.name if of and of.declared else None,
            pipeline=pipeline,
        ),
        read_trace(entry, context.read) if of is None else of.site.trace,
        rtt_ns=_ns(entry, "rtt_ms", 2 * MS),
        jitter_ns=_ns(entry, "jitter_ms", 0),
        weight=PictureBytes(
            entry.number("bytes_per_pixel", 0, 100, 0.3, above=True),
            entry.number("bytes_exponent", 0, 0.9, SIZE_EXPONENT),
            entry.number("bytes_spread", 0, 2, 0.05),
        ),
        opens_ns=round(entry.number("joins_s", 0, 86_400, 0.0) * S),
        encode_ns=_range_ns(entry, "encode_ms", (0, 0)),
        clock=clock,
        work=_work(entry),
        site=of.site if of else None,
        address=entry.nonempty("address", "") if "address" in entry else "",
        objects=read_objects(entry, context.read),
        object_sides=read_object_sides(entry),
        difficulty=entry.number("difficulty", 0.01, 100, 1.0),
    )
    if "leaves_s" in entry:
        leaves_ns = round(entry.number("leaves_s", 0, 86_400, above=True) * S)
        if leaves_ns <= template.opens_ns:
            raise entry.wrong("leaves_s", "must be after joins_s")
        template = replace(template, closes_ns=leaves_ns)
    return template


def _work(entry: FieldReader) -> tuple[float, ...]:
    """Return the work of pictures, by quantile; empty: as much as the profile's."""
    if "work" not in entry:
        return ()
    if not isinstance(entry.raw("work"), list):
        return (entry.number("work", 0.01, 100),) * len(QUANTILES)
    work = entry.numbers("work", 0.01, 100, length=len(QUANTILES))
    if work != sorted(work):
        raise entry.wrong("work", "must rise")
    return tuple(work)
