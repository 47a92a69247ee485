"""Reads the families and profiles of a box on this machine from its database."""

import asyncio

from edgebox.app.executor_setup import Opened, open_executors
from edgebox.app.startup import load_families
from edgebox.config.config_file import Config
from edgebox.domain.core_factors import with_core_factors
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.interference import with_interference
from edgebox.domain.model_family import ExecutorId, LatencyProfile, Variant
from edgebox.inference.fingerprint import fingerprint, neighbours
from edgebox.storage.database import Storage


async def stored_profiles(
    config: Config,
) -> tuple[list[Variant], dict[ExecutorId, list[LatencyProfile]]]:
    """Return this machine's variants and stored profiles as a box would, without measuring.

    Raises:
        EdgeboxError: the models or the database cannot be used, or a profile is missing.
    """
    storage = await Storage.open(config.storage.file)
    opened = Opened()
    found: dict[ExecutorId, list[LatencyProfile]] = {}
    try:
        families, _ = await asyncio.to_thread(load_families, config)
        opened = await asyncio.to_thread(open_executors, config, families)
        for executor in opened.executors:
            found[executor.id] = []
            for family in families:
                if family.name not in executor.families:
                    continue
                names = {variant.name for variant in family.variants}
                key = fingerprint(executor, family)
                beside = await storage.load_interference(
                    key, executor.id, neighbours(executor, opened.executors)
                )
                stored = await storage.load_profiles(key)
                cores = await storage.load_core_factors(key, executor.id)
                counts = executor.thread_counts
                known = [
                    with_interference(with_core_factors(p, cores, counts) if counts else p, beside)
                    for p in stored
                    if p.executor == executor.id and p.variant in names
                ]
                if {profile.variant for profile in known} != names:
                    raise EdgeboxError(
                        f"{config.storage.file} has no profiles of {family.name} on {executor.id}: "
                        "run edgebox profile first"
                    )
                found[executor.id] += known
    finally:
        await asyncio.to_thread(opened.close)
        await storage.close()
    return [variant for family in families for variant in family.variants], found
