"""Prepares the models of a box: which families run where, their latencies and memory.

Profiles come from the database or are measured; sizes in memory are measured at every start where
there is a limit. Blocking work is done in threads.
"""

import asyncio
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgebox.app.core_profiles import measure_shared_cores
from edgebox.app.family_folders import check_default, served_folders
from edgebox.app.interference_profiles import Measuring, Progress
from edgebox.app.profile_lookup import stored_profiles
from edgebox.app.weights_loading import WeightsLoader, load_in_time
from edgebox.config.config_file import Config
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ConfigError, ModelError
from edgebox.domain.model_family import (
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
    Weights,
    WeightsId,
)
from edgebox.inference.executor import RUN_LIMIT_S, Executor, HungError
from edgebox.inference.family import Family, ModelFile
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.profiler import ProfilingLimits, profile
from edgebox.inference.sessions import CPU
from edgebox.inference.tensors import Canvas
from edgebox.inference.zoo import load_zoo
from edgebox.media.typical import typical_canvases
from edgebox.runtime.threads import within
from edgebox.scheduling.events import MemoryLimited
from edgebox.scheduling.weight_placement import Fit, choose_resident, fit_to_memory
from edgebox.storage.database import Storage


@dataclass(slots=True)
class ModelInventory:
    """The models of a box at its start."""

    families: list[Family] = field(default_factory=list)
    profiles: dict[ExecutorId, list[LatencyProfile]] = field(default_factory=dict)
    limits: list[MemoryLimited] = field(default_factory=list)
    """Memory limits of executors; empty: all hold everything."""
    loaders: dict[ExecutorId, WeightsLoader] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """Models that are left out, and why."""
    profiled: bool = False
    """Whether profiles had to be measured."""
    hung: dict[ExecutorId, HungError] = field(default_factory=dict)
    """Executors that hung and were abandoned; nothing else here concerns them."""
    failures: dict[ExecutorId, ModelError] = field(default_factory=dict)
    """The first error of each executor on which a family failed."""


def load_families(config: Config) -> tuple[list[Family], list[ModelError]]:
    """Return the families that can be served, and the errors of others.

    Raises:
        ConfigError: none can, or not the default one.
        HungError: their files cannot be read, because their file system hangs.
    """
    folders = served_folders(config)
    try:
        zoo = within(
            RUN_LIMIT_S * len(folders), lambda: load_zoo(folders), "load", lambda late: None
        )
    except TimeoutError:
        names = ", ".join(map(str, folders))
        raise HungError(f"reading the files of the model families hangs: {names}") from None
    problems = list(zoo.problems)
    if not zoo.families:
        why = "; ".join(map(str, problems)) or "no folder with a family.toml was found"
        raise ConfigError(f"no model family can be served: {why}")
    check_default(config, zoo)
    return list(zoo.families), problems


async def measured(
    inference: InferenceParameters,
    storage: Storage,
    executors: Sequence[ModelExecutor],
    families: Sequence[Family],
    on_progress: Progress,
) -> ModelInventory:
    """Return the families that run on any executor, their profiles and where these live.

    A family that fails on its first batch is left out on that executor, and left out entirely if it
    runs on no executor. An executor that hangs is abandoned. A remote executor whose times are not
    known is measured only for the sake of a family that runs on no other one; otherwise it has no
    profiles here.

    Raises:
        ModelError: the default family fails on every executor, or does not fit the memory limit.
        HungError: executors hang, and no other one runs the default family.
    """
    # The default family must fit first.
    families = sorted(families, key=lambda family: family.name != inference.family)
    measurer = _Measurer(inference, storage, executors, on_progress)
    out = measurer.out
    later = [each for each in executors if not await measurer.is_known(each, families)]
    at_once = [each for each in executors if each not in later]
    for family in families:
        failures = await measurer.run(family, at_once, only_if_needed=later)
        for each in out.families:  # their executors may have hung since
            await measurer.run(each, (), only_if_needed=later)
        _take_in(family, failures, inference, out)
    needed = [each for each in later if out.profiles.get(each.id)]
    for family in out.families:
        await measurer.run(family, needed)
    executors = [executor for executor in executors if executor.id not in out.hung]
    if any(executor.memory_limit_bytes for executor in executors):
        await asyncio.to_thread(_limit, inference, executors, measurer.sizes, out)
    measuring = Measuring(storage=storage, profile_s=inference.profile_s, on_progress=on_progress)
    out.profiles, unknown = await measure_shared_cores(
        executors, out.families, out.profiles, measuring
    )
    out.problems += unknown
    return out


class _Measurer:
    """Measures families on executors, and keeps what it finds."""

    def __init__(
        self,
        inference: InferenceParameters,
        storage: Storage,
        executors: Sequence[ModelExecutor],
        on_progress: Progress,
    ) -> None:
        self.out = ModelInventory(profiles={executor.id: [] for executor in executors})
        self.sizes: dict[ExecutorId, list[Weights]] = {executor.id: [] for executor in executors}
        self._inference = inference
        self._storage = storage
        self._on_progress = on_progress
        self._tried: set[tuple[ExecutorId, FamilyName]] = set()

    async def is_known(self, executor: ModelExecutor, families: Sequence[Family]) -> bool:
        """Return whether an executor needs no measuring, or is of this machine."""
        if executor.shares_machine:
            return True
        held = [family for family in families if family.name in executor.families]
        return all([await self._stored(executor, family) for family in held])

    def runs(self, family: Family) -> bool:
        """Return whether a family runs on any executor."""
        names = {variant.name for variant in family.variants}
        return any(profile.variant in names for of in self.out.profiles.values() for profile in of)

    async def run(
        self,
        family: Family,
        executors: Sequence[ModelExecutor],
        *,
        only_if_needed: Sequence[ModelExecutor] = (),
    ) -> list[ModelError]:
        """Measure a family on executors, unless its times are stored; return why it fails.

        Args:
            family: it; on each executor it is tried once.
            executors: those on which it is measured.
            only_if_needed: further ones, for as long as it runs on no executor.
        """
        failures: list[ModelError] = []
        for executor in (*executors, *only_if_needed):
            key = executor.id, family.name
            if family.name not in executor.families or key in self._tried:
                continue
            if executor in only_if_needed and self.runs(family):
                continue
            self._tried.add(key)
            if executor.id in self.out.hung:
                failures.append(self.out.hung[executor.id])
                continue
            try:
                await self._measure(family, executor)
            except ModelError as error:
                failures.append(error)
                self.out.failures.setdefault(executor.id, error)
                if not isinstance(error, HungError):
                    self.out.problems.append(
                        f"{family.name} does not run on {executor.id}: {error}"
                    )
                    continue
                _leave_behind(executor, error, self.out)
                if family.name != self._inference.family:
                    break  # the model may be the cause: keep other executors for other families
        return failures

    async def _measure(self, family: Family, executor: ModelExecutor) -> None:
        stored = await self._stored(executor, family)
        work = FamilyMeasurement(self._inference, executor, family, self._on_progress, stored)
        found, weights = await asyncio.to_thread(work.do)
        if not stored:
            self._storage.save_profiles(fingerprint(executor, family), found)
            self.out.profiled = True
        self.out.profiles[executor.id] += found
        self.sizes[executor.id] += weights

    async def _stored(self, executor: ModelExecutor, family: Family) -> list[LatencyProfile]:
        size_max = self._inference.batch_size_max
        return await stored_profiles(self._storage, executor, family, size_max)


def _leave_behind(executor: ModelExecutor, error: HungError, out: ModelInventory) -> None:
    """Abandon an executor that hangs."""
    executor.abandon()
    out.hung[executor.id] = error
    del out.profiles[executor.id]
    out.problems.append(f"{executor.id} is left out: {error}")


def _take_in(
    family: Family,
    failures: Sequence[ModelError],
    inference: InferenceParameters,
    out: ModelInventory,
) -> None:
    """Add a measured family; remove those whose executors have hung.

    Raises:
        ModelError: the default family runs on no executor.
    """
    run = {profile.variant for of in out.profiles.values() for profile in of}
    kept = []
    for each in [*out.families, family]:
        # A family that was served before lost its executors, because they hang now.
        why = failures if each is family else list(out.hung.values())
        if any(variant.name in run for variant in each.variants):
            kept.append(each)
        elif each.name == inference.family:
            raise why[0] if why else ModelError(f"no executor holds {each.name}")
        elif why:  # otherwise [[executors]] does not name it
            out.problems.append(f"the model family {each.name} is left out: {why[0]}")
    out.families = kept


@dataclass(frozen=True, slots=True)
class FamilyMeasurement:
    """The measurements of one family on one executor."""

    inference: InferenceParameters
    executor: ModelExecutor
    family: Family
    on_progress: Progress | None
    stored: Sequence[LatencyProfile] = ()
    """Its stored profiles."""

    def do(self) -> tuple[list[LatencyProfile], list[Weights]]:
        """Return profiles, measured unless stored, and sizes where memory is limited; blocks."""
        offered = {variant.name for variant in self.family.offered}
        if not self.executor.memory_limit_bytes:
            found = list(self.stored) or self.measure()
            warm(self.executor, [p for p in found if p.variant in offered])
            return found, []
        # One file at a time: memory may be too small for two.
        profiles: list[LatencyProfile] = []
        sizes: list[Weights] = []
        for file in self.family.model_files:
            names = variants_of(self.family, file)
            found = [p for p in self.stored if p.variant in names]
            needed = not offered.isdisjoint(names)
            if needed or not found:
                before = self.executor.memory_used_bytes()
                load_in_time(self.executor, file.path)
                found = found or self.measure(file)
                self.executor.warm_each([(p.variant, p.batch_sizes[-1]) for p in found])
                size_bytes = _grown(before, self.executor.memory_used_bytes(), file)
                self.executor.unload(file.path)
                if needed:
                    sizes.append(weights_of(self.family, file, size_bytes))
            profiles += found
        order = [variant.name for variant in self.family.variants]
        return sorted(profiles, key=lambda p: order.index(p.variant)), sizes

    def measure(self, file: ModelFile | None = None) -> list[LatencyProfile]:
        """Measure the family, or one of its files."""
        return measure(self.inference, self.executor, self.family, self.on_progress, file)


def measure(
    inference: InferenceParameters,
    executor: Executor,
    family: Family,
    on_progress: Progress | None,
    file: ModelFile | None = None,
    *,
    batch_ns_max: int | None = None,
) -> list[LatencyProfile]:
    """Measure a family, or one of its files, for its part of `inference.profile_s`; blocks.

    Batches that take longer than `batch_ns_max` are not looked for; None: as usual.
    """
    files = family.model_files
    number = 0 if file is None else files.index(file)
    parts = 1 if file is None else len(files)

    def report(share: float) -> None:
        if on_progress is not None:
            on_progress(f"measuring {family.name} on {executor.id}", (number + share) / parts)

    names = variants_of(family, file)
    limits = ProfilingLimits(budget_s=inference.profile_s / parts)
    if batch_ns_max is not None:
        limits = replace(limits, batch_ns_max=batch_ns_max)
    return profile(
        executor,
        [variant for variant in family.variants if variant.name in names],
        family.batch_sizes(inference.batch_size_max),
        limits,
        report,
        pictures=functools.partial(_pictures, family),
        networks=family.files,
    )


def _pictures(family: Family, variant: Variant) -> list[Canvas]:
    return typical_canvases(
        variant.width_px, variant.height_px, family.input.fill, family.input.fit
    )


def variants_of(family: Family, file: ModelFile | None) -> list[VariantName]:
    """Return the variants that run on a file; None: on any."""
    return [v.name for v in family.variants if file is None or family.files[v.name] == file]


def weights_of(family: Family, file: ModelFile, size_bytes: int) -> Weights:
    """Return a file as the core's weights, with its offered variants, at least one."""
    variants = [v for v in family.offered if family.files[v.name] == file]
    return Weights(
        weights_id(family, file),
        family.name,
        size_bytes,
        max(variant.pixels for variant in variants),
        tuple(variant.name for variant in variants),
    )


def weights_id(family: Family, file: ModelFile) -> WeightsId:
    """Return a file's name in the core."""
    return WeightsId(f"{family.name}/{file.path.name}")


def _grown(before: int | None, after: int | None, file: ModelFile) -> int:
    """Return the measured memory of a session, but at least that of its weights."""
    least = file.path.stat().st_size
    return least if before is None or after is None else max(least, after - before)


def _limit(
    inference: InferenceParameters,
    executors: Sequence[ModelExecutor],
    sizes: Mapping[ExecutorId, Sequence[Weights]],
    out: ModelInventory,
) -> None:
    """Choose what fits, and load the initial weights; blocks.

    Raises:
        ModelError: the default family has no room on any executor.
    """
    kept: set[VariantName] = set()
    texts: dict[str, None] = {}
    for executor in executors:
        fit = fit_to_memory(_memory_needs(executor, sizes), executor.memory_limit_bytes)
        if fit.left_out:
            shares = sum(_device(each) == _device(executor) for each in executors)
            texts[_left_out_text(inference, fit, shares)] = None
        kept |= {variant for each in fit.kept for variant in each.variants}
        _fill(inference, executor, fit, out)
    default = [v for f in out.families if f.name == inference.family for v in f.variants]
    if all(variant.name not in kept for variant in default):
        raise ModelError("; ".join(texts))
    out.problems += texts
    # A variant that is not offered has no weights: it stays in its family.
    offered = {v.name for family in out.families for v in family.offered}
    gone = offered - kept
    out.families = [
        replace(family, variants=tuple(v for v in family.variants if v.name not in gone))
        for family in out.families
        if any(variant.name in kept for variant in family.variants)
    ]


def _memory_needs(
    executor: ModelExecutor, sizes: Mapping[ExecutorId, Sequence[Weights]]
) -> list[Weights]:
    """Return an executor's weights, each with the largest size on its device."""
    largest: dict[WeightsId, int] = {}
    for other, of in sizes.items():
        if other.rpartition("/")[0] == _device(executor):
            for each in of:
                largest[each.id] = max(each.size_bytes, largest.get(each.id, 0))
    return [replace(each, size_bytes=largest[each.id]) for each in sizes[executor.id]]


def _device(executor: ModelExecutor) -> str:
    return executor.id.rpartition("/")[0]


def _fill(
    inference: InferenceParameters, executor: ModelExecutor, fit: Fit, out: ModelInventory
) -> None:
    """Load an executor's initial weights."""
    gone = {variant for each in fit.left_out for variant in each.variants}
    held = [family for family in out.families if family.name in {each.family for each in fit.kept}]
    profiles = [
        p
        for p in out.profiles[executor.id]
        if p.variant not in gone and any(p.variant in family.files for family in held)
    ]
    out.profiles[executor.id] = profiles
    first = {each.id: int(each.family == inference.family) for each in fit.kept[:1]}
    resident = choose_resident(fit.kept, first, (), executor.memory_limit_bytes)
    files = {weights_id(family, f): f.path for family in held for f in family.model_files}
    runs = {
        each.id: _runs(executor, [p for p in profiles if p.variant in each.variants])
        for each in fit.kept
    }
    loader = out.loaders[executor.id] = WeightsLoader(executor, files, runs)
    for weights in resident:
        loader.load_in_time(weights)
    out.limits.append(
        MemoryLimited(executor.id, executor.memory_limit_bytes, fit.kept, tuple(resident))
    )


def _left_out_text(inference: InferenceParameters, fit: Fit, shares: int) -> str:
    names = ", ".join(f"{each.id} ({each.size_bytes / 1e6:.0f} MB)" for each in fit.left_out)
    return (
        f"inference.memory_limit_mb = {inference.memory_limit_mb:g} leaves out {names}: with "
        f"{_mb(fit.any_bytes * shares)} each of them could be held beside the smallest of every "
        f"family, with {_mb(fit.all_bytes * shares)} all at once"
    )


def _mb(size_bytes: int) -> int:
    return -(-size_bytes // 1_000_000)


def warm(executor: ModelExecutor, profiles: Sequence[LatencyProfile]) -> None:
    """Run warm-up batches, so that no variant is slow at first; blocks."""
    executor.warm_each(_runs(executor, profiles))


def _runs(
    executor: ModelExecutor, profiles: Sequence[LatencyProfile]
) -> list[tuple[VariantName, int]]:
    """Return the batches that warm these variants.

    A GPU picks its kernels by shape, so each variant runs in each batch size. On a CPU a session's
    first run takes memory: the largest variant takes enough for the others.
    """
    if executor.provider != CPU:
        return [(known.variant, size) for known in profiles for size in known.batch_sizes]
    sizes = {known.variant: known.batch_sizes[0] for known in profiles}
    return [(name, sizes[name]) for name in executor.largest_of_each_file(sizes)]
