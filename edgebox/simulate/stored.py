"""Owns reading what a box on this machine would run, and how fast, from its database."""

import asyncio

from edgebox.config import Config
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.models import ExecutorId, LatencyProfile, Variant
from edgebox.inference.executor import OnnxExecutor
from edgebox.inference.fingerprint import fingerprint
from edgebox.measuring import load_families, open_executors
from edgebox.storage.database import Storage


async def stored_profiles(
    config: Config,
) -> tuple[list[Variant], dict[ExecutorId, list[LatencyProfile]]]:
    """Return the variants and profiles of this machine as a box would find them, measuring nothing.

    Raises:
        EdgeboxError: the models or the database cannot be used, or a profile is missing.
    """
    storage = await Storage.open(config.storage.file)
    executors: list[OnnxExecutor] = []
    found: dict[ExecutorId, list[LatencyProfile]] = {}
    try:
        families, _ = await asyncio.to_thread(load_families, config.inference)
        executors = await asyncio.to_thread(open_executors, config.inference, families)
        for executor in executors:
            found[executor.id] = []
            for family in families:
                names = {variant.name for variant in family.variants}
                stored = await storage.load_profiles(fingerprint(executor, family))
                known = [p for p in stored if p.executor == executor.id and p.variant in names]
                if {profile.variant for profile in known} != names:
                    raise EdgeboxError(
                        f"{config.storage.file} has no profiles of {family.name} on {executor.id}: "
                        "run edgebox profile first"
                    )
                found[executor.id] += known
    finally:
        for executor in executors:
            await asyncio.to_thread(executor.close)
        await storage.close()
    return [variant for family in families for variant in family.variants], found
