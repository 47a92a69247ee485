"""Decides what a box starts with: which families run where, how fast, and what memory they take.

Profiles come from the database or are measured; sizes in memory are measured at every start where
there is a limit. Blocking work is done in threads.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgebox.config import Config, InferenceParameters
from edgebox.domain.errors import ModelError
from edgebox.domain.models import (
    ExecutorId,
    LatencyProfile,
    VariantName,
    Weights,
    WeightsId,
)
from edgebox.inference.executor import Executor, OnnxExecutor
from edgebox.inference.family import Family, ModelFile
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.profiler import ProfilingLimits, profile
from edgebox.inference.sessions import CPU
from edgebox.inference.zoo import bundled_folders, imported_folders, load_zoo
from edgebox.scheduling.events import MemoryLimited
from edgebox.scheduling.holding import fitting, hold
from edgebox.storage.database import Storage

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""


@dataclass(slots=True)
class Measured:
    """What a box starts with."""

    families: list[Family] = field(default_factory=list)
    profiles: dict[ExecutorId, list[LatencyProfile]] = field(default_factory=dict)
    limits: list[MemoryLimited] = field(default_factory=list)
    """Of the executors that do not hold everything; empty: all do."""
    loaders: dict[ExecutorId, "WeightsLoader"] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """What is left out, and why."""
    profiled: bool = False
    """Whether profiles had to be measured."""


class WeightsLoader:
    """Loads files of an executor under the names that the core knows, and warms them."""

    def __init__(
        self,
        executor: OnnxExecutor,
        files: Mapping[WeightsId, Path],
        runs: Mapping[WeightsId, Sequence[tuple[VariantName, int]]],
    ) -> None:
        """Load nothing yet; `runs`: the batches that warm each."""
        self._executor = executor
        self._files = files
        self._runs = runs

    def load(self, weights: WeightsId) -> None:
        """Bring weights in and run them once.

        Raises:
            ModelError: they cannot be loaded.
        """
        self._executor.load(self._files[weights], self._runs[weights])

    def unload(self, weights: WeightsId) -> None:
        """Take weights out."""
        self._executor.unload(self._files[weights])


def family_folders(inference: InferenceParameters) -> list[Path]:
    """Return every folder with a family: bundled, named in the configuration, imported."""
    named = [Path(folder) for folder in inference.families]
    return [*bundled_folders(), *named, *imported_folders(inference.models_folder)]


def load_families(inference: InferenceParameters) -> tuple[list[Family], list[ModelError]]:
    """Return the families that can be served, and what is wrong with those that cannot.

    Raises:
        ModelError: none can, or not the default one.
    """
    zoo = load_zoo(family_folders(inference))
    problems = list(zoo.problems)
    if not zoo.families:
        why = "; ".join(map(str, problems)) or "no folder with a family.toml was found"
        raise ModelError(f"no model family can be served: {why}")
    zoo.family(inference.family)
    return list(zoo.families), problems


def open_executors(
    inference: InferenceParameters, families: Sequence[Family]
) -> list[OnnxExecutor]:
    """Open the executors of this machine; each tries the provider that the configuration allows.

    Raises:
        ModelError: a model cannot be opened, or CUDA was insisted on and is not usable.
    """
    return [
        OnnxExecutor(
            number,
            families,
            providers=inference.providers,
            cpu_threads=inference.cpu_threads,
            memory_limit_bytes=inference.executor_memory_bytes,
            engine_folder=inference.engine_folder,
        )
        for number in range(inference.executors_per_device)
    ]


async def measured(
    inference: InferenceParameters,
    storage: Storage,
    executors: Sequence[OnnxExecutor],
    families: Sequence[Family],
    on_progress: Progress,
) -> Measured:
    """Return the families that run on every executor, their profiles and where these live.

    A family can open and still fail on its first batch: it is left out like a broken file.

    Raises:
        ModelError: the default family fails, or does not fit the memory limit.
    """
    out = Measured(profiles={executor.id: [] for executor in executors})
    # The default family is what must fit first.
    families = sorted(families, key=lambda family: family.name != inference.family)
    sizes: dict[ExecutorId, list[Weights]] = {executor.id: [] for executor in executors}
    for family in families:
        found: dict[ExecutorId, list[LatencyProfile]] = {}
        weights: dict[ExecutorId, list[Weights]] = {}
        try:
            for executor in executors:
                stored = await stored_profiles(storage, executor, family)
                work = _Work(inference, executor, family, on_progress, stored)
                found[executor.id], weights[executor.id] = await asyncio.to_thread(work.do)
                if not stored:
                    storage.save_profiles(fingerprint(executor, family), found[executor.id])
                    out.profiled = True
        except ModelError as error:
            if family.name == inference.family:
                raise
            out.problems.append(f"a model family is left out: {error}")
            continue
        out.families.append(family)
        for executor in executors:
            out.profiles[executor.id] += found[executor.id]
            sizes[executor.id] += weights[executor.id]
    if inference.executor_memory_bytes:
        await asyncio.to_thread(_limit, inference, executors, sizes, out)
    return out


async def stored_profiles(
    storage: Storage, executor: OnnxExecutor, family: Family
) -> list[LatencyProfile]:
    """Return a family's profiles from the database; empty: not all of them are there."""
    names = {variant.name for variant in family.variants}
    found = [
        stored
        for stored in await storage.load_profiles(fingerprint(executor, family))
        if stored.executor == executor.id and stored.variant in names
    ]
    return found if {stored.variant for stored in found} == names else []


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be found out about one family on one executor."""

    inference: InferenceParameters
    executor: OnnxExecutor
    family: Family
    on_progress: Progress | None
    stored: Sequence[LatencyProfile] = ()
    """Its profiles, where they are known."""

    def do(self) -> tuple[list[LatencyProfile], list[Weights]]:
        """Return profiles, measured unless stored, and sizes where memory is limited; blocks."""
        offered = {variant.name for variant in self.family.offered}
        if not self.inference.executor_memory_bytes:
            found = list(self.stored) or self.measure()
            warm(self.executor, [p for p in found if p.variant in offered])
            return found, []
        # One file at a time: there may be no room for two.
        profiles: list[LatencyProfile] = []
        sizes: list[Weights] = []
        for file in self.family.model_files:
            names = variants_of(self.family, file)
            found = [p for p in self.stored if p.variant in names]
            needed = not offered.isdisjoint(names)
            if needed or not found:
                before = self.executor.memory_used_bytes()
                self.executor.load(file.path)
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
) -> list[LatencyProfile]:
    """Measure a family, or one of its files, for its part of `inference.profile_s`; blocks."""
    files = family.model_files
    number = 0 if file is None else files.index(file)
    parts = 1 if file is None else len(files)

    def report(share: float) -> None:
        if on_progress is not None:
            on_progress(f"measuring {family.name} on {executor.id}", (number + share) / parts)

    names = variants_of(family, file)
    return profile(
        executor,
        [variant for variant in family.variants if variant.name in names],
        family.batch_sizes(inference.batch_size_max),
        ProfilingLimits(budget_s=inference.profile_s / parts),
        report,
        networks=family.files,
    )


def variants_of(family: Family, file: ModelFile | None) -> list[VariantName]:
    """Return the variants that run on a file; None: on any."""
    return [v.name for v in family.variants if file is None or family.files[v.name] == file]


def weights_of(family: Family, file: ModelFile, size_bytes: int) -> Weights:
    """Return a file as the core knows it: only what is offered runs on it, one variant at least."""
    variants = [v for v in family.offered if family.files[v.name] == file]
    return Weights(
        weights_id(family, file),
        family.name,
        size_bytes,
        max(variant.pixels for variant in variants),
        tuple(variant.name for variant in variants),
    )


def weights_id(family: Family, file: ModelFile) -> WeightsId:
    """Return the name under which the core knows a file."""
    return WeightsId(f"{family.name}/{file.path.name}")


def _grown(before: int | None, after: int | None, file: ModelFile) -> int:
    """Return what a session took: what was measured, but never less than its weights."""
    least = file.path.stat().st_size
    return least if before is None or after is None else max(least, after - before)


def _limit(
    inference: InferenceParameters,
    executors: Sequence[OnnxExecutor],
    sizes: Mapping[ExecutorId, Sequence[Weights]],
    out: Measured,
) -> None:
    """Decide what stays out, and bring in what shall be there at first; blocks.

    Raises:
        ModelError: the default family has no room.
    """
    # All executors of a device hold the same; the largest size that one saw counts for all.
    largest: dict[WeightsId, Weights] = {}
    for each in (weights for of in sizes.values() for weights in of):
        known = largest.get(each.id)
        if known is None or each.size_bytes > known.size_bytes:
            largest[each.id] = each
    fit = fitting(list(largest.values()), inference.executor_memory_bytes)
    if fit.left_out:
        text = _left_out_text(inference, fit.left_out, fit.any_bytes, fit.all_bytes)
        if all(each.family != inference.family for each in fit.kept):
            raise ModelError(text)
        out.problems.append(text)
    gone = {variant for each in fit.left_out for variant in each.variants}
    kept_families = {each.family for each in fit.kept}
    out.families = [
        replace(family, variants=tuple(v for v in family.variants if v.name not in gone))
        for family in out.families
        if family.name in kept_families
    ]
    kept = {variant.name for family in out.families for variant in family.variants}
    first = {each.id: int(each.family == inference.family) for each in fit.kept[:1]}
    resident = hold(fit.kept, first, (), inference.executor_memory_bytes)
    files = {
        weights_id(family, file): file.path
        for family in out.families
        for file in family.model_files
    }
    for executor in executors:
        profiles = [p for p in out.profiles[executor.id] if p.variant in kept]
        out.profiles[executor.id] = profiles
        runs = {
            each.id: [
                run for p in profiles if p.variant in each.variants for run in _runs(executor, p)
            ]
            for each in fit.kept
        }
        loader = out.loaders[executor.id] = WeightsLoader(executor, files, runs)
        for weights in resident:
            loader.load(weights)
        out.limits.append(
            MemoryLimited(executor.id, inference.executor_memory_bytes, fit.kept, tuple(resident))
        )


def _left_out_text(
    inference: InferenceParameters, left_out: Sequence[Weights], any_bytes: int, all_bytes: int
) -> str:
    names = ", ".join(f"{each.id} ({each.size_bytes / 1e6:.0f} MB)" for each in left_out)
    shares = inference.executors_per_device
    return (
        f"inference.memory_limit_mb = {inference.memory_limit_mb:g} leaves out {names}: with "
        f"{_mb(any_bytes * shares)} each of them could be held beside the smallest of every "
        f"family, with {_mb(all_bytes * shares)} all at once"
    )


def _mb(size_bytes: int) -> int:
    return -(-size_bytes // 1_000_000)


def warm(executor: OnnxExecutor, profiles: Sequence[LatencyProfile]) -> None:
    """Run each variant once, so that none is slow when it matters; blocks."""
    executor.warm_each([run for known in profiles for run in _runs(executor, known)])


def _runs(executor: OnnxExecutor, known: LatencyProfile) -> list[tuple[VariantName, int]]:
    """Return what warms a variant; a GPU picks its kernels by shape, so there each batch size."""
    sizes = known.batch_sizes if executor.provider != CPU else known.batch_sizes[:1]
    return [(known.variant, size) for size in sizes]


async def profiles_of(
    config: Config, executor: OnnxExecutor, family: Family, on_progress: Progress
) -> list[LatencyProfile]:
    """Return a family's profiles on an executor, measured and kept now where there are none.

    Raises:
        EdgeboxError: the model or the database cannot be used.
    """
    storage = await Storage.open(config.storage.file)
    try:
        found = await stored_profiles(storage, executor, family)
        if not found:
            work = _Work(config.inference, executor, family, on_progress)
            found, _ = await asyncio.to_thread(work.do)
            storage.save_profiles(fingerprint(executor, family), found)
        return found
    finally:
        await storage.close()


async def measure_and_store(
    config: Config, on_progress: Progress | None = None, families: Sequence[Family] = ()
) -> list[tuple[Family, OnnxExecutor, list[LatencyProfile]]]:
    """Measure families on every executor anew and keep the profiles for the next start.

    Args:
        config: of the box.
        on_progress: told what is measured, and the share done.
        families: which; none: all that can be served.

    Raises:
        EdgeboxError: the models or the database cannot be used.
    """
    storage = await Storage.open(config.storage.file)
    executors: list[OnnxExecutor] = []
    done = []
    try:
        if not families:
            families, _ = await asyncio.to_thread(load_families, config.inference)
        executors = await asyncio.to_thread(open_executors, config.inference, families)
        for executor in executors:
            for family in families:
                work = _Work(config.inference, executor, family, on_progress)
                found, _ = await asyncio.to_thread(work.do)
                storage.save_profiles(fingerprint(executor, family), found)
                done.append((family, executor, found))
    finally:
        for executor in executors:
            await asyncio.to_thread(executor.close)
        await storage.close()
    return done
