"""Measures families outside a running box, and stores their profiles for its next start."""

import asyncio
from collections.abc import Sequence

from edgebox.app.core_profiles import measure_shared_cores
from edgebox.app.executor_setup import Opened, open_executors
from edgebox.app.interference_profiles import Measuring, Progress
from edgebox.app.profile_lookup import stored_profiles
from edgebox.app.startup import FamilyMeasurement, load_families
from edgebox.config.config_file import Config
from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.model_executor import ModelExecutor
from edgebox.storage.database import Storage


async def profiles_of(
    config: Config, executor: ModelExecutor, family: Family, on_progress: Progress
) -> list[LatencyProfile]:
    """Return a family's profiles on an executor; measure and store missing ones.

    Raises:
        EdgeboxError: the model or the database cannot be used.
    """
    storage = await Storage.open(config.storage.file)
    try:
        found = await stored_profiles(storage, executor, family, config.inference.batch_size_max)
        if not found:
            work = FamilyMeasurement(config.inference, executor, family, on_progress)
            found, _ = await asyncio.to_thread(work.do)
            storage.save_profiles(fingerprint(executor, family), found)
        return found
    finally:
        await storage.close()


async def measure_and_store(
    config: Config, on_progress: Progress | None = None, families: Sequence[Family] = ()
) -> list[tuple[Family, ModelExecutor, list[LatencyProfile]]]:
    """Measure families on every executor again and store the profiles for the next start.

    Args:
        config: the configuration.
        on_progress: called with the present step and the share done.
        families: what is measured; empty: all that can be served.

    Returns:
        The profiles of each family on each executor that runs it.

    Raises:
        EdgeboxError: the models or the database cannot be used.
    """
    storage = await Storage.open(config.storage.file)
    opened = Opened()
    done: list[tuple[Family, ModelExecutor, list[LatencyProfile]]] = []
    try:
        if not families:
            families, _ = await asyncio.to_thread(load_families, config)
        opened = await asyncio.to_thread(open_executors, config, families)
        profiles: dict[ExecutorId, list[LatencyProfile]] = {e.id: [] for e in opened.executors}
        for executor in opened.executors:
            for family in families:
                if family.name not in executor.families:
                    continue
                work = FamilyMeasurement(config.inference, executor, family, on_progress)
                found, _ = await asyncio.to_thread(work.do)
                storage.save_profiles(fingerprint(executor, family), found)
                profiles[executor.id] += found
        measuring = Measuring(
            storage=storage,
            profile_s=config.inference.profile_s,
            on_progress=on_progress,
            again=True,
        )
        profiles, _ = await measure_shared_cores(opened.executors, families, profiles, measuring)
        for executor in opened.executors:
            for family in families:
                of = [p for p in profiles[executor.id] if p.variant in family.files]
                if of:
                    done.append((family, executor, of))
    finally:
        await asyncio.to_thread(opened.close)
        await storage.close()
    return done
