"""Owns the way from a configuration to families, open executors and their measured profiles.

Everything here blocks but `measure_and_store`: call it in a thread.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from edgebox.config import Config, InferenceParameters
from edgebox.domain.errors import ModelError
from edgebox.domain.models import LatencyProfile
from edgebox.inference.executor import Executor, OnnxExecutor
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.profiler import ProfilingLimits, profile
from edgebox.inference.sessions import CPU
from edgebox.inference.zoo import bundled_folders, imported_folders, load_zoo
from edgebox.storage.database import Storage

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""


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
    executors: list[OnnxExecutor] = []
    for number in range(inference.executors_per_device):
        executor = OnnxExecutor(
            number,
            families,
            providers=inference.providers,
            cpu_threads=inference.cpu_threads,
        )
        executors.append(executor)
    return executors


def measure(
    inference: InferenceParameters,
    executor: Executor,
    family: Family,
    on_progress: Progress | None,
) -> list[LatencyProfile]:
    """Measure a family on an executor for `inference.profile_s` seconds; blocks."""

    def report(share: float) -> None:
        if on_progress is not None:
            on_progress(f"measuring {family.name} on {executor.id}", share)

    return profile(
        executor,
        family.variants,
        family.batch_sizes(inference.batch_size_max),
        ProfilingLimits(budget_s=inference.profile_s),
        report,
    )


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
    measured = []
    try:
        if not families:
            families, _ = await asyncio.to_thread(load_families, config.inference)
        executors = await asyncio.to_thread(open_executors, config.inference, families)
        for executor in executors:
            for family in families:
                found = await asyncio.to_thread(
                    measure, config.inference, executor, family, on_progress
                )
                storage.save_profiles(fingerprint(executor, family), found)
                measured.append((family, executor, found))
    finally:
        for executor in executors:
            await asyncio.to_thread(executor.close)
        await storage.close()
    return measured


def warm(executor: OnnxExecutor, profiles: Sequence[LatencyProfile]) -> None:
    """Run each variant once; a GPU picks its kernels by shape, so there each batch size too."""
    every_size = executor.provider != CPU
    for known in profiles:
        sizes = known.batch_sizes if every_size else known.batch_sizes[:1]
        executor.warm([known.variant], sizes)
