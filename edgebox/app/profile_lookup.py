"""Finds the stored profiles of an executor, its own or those of its like."""

import logging
from dataclasses import replace

from edgebox.domain.model_family import LatencyProfile
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.model_executor import ModelExecutor
from edgebox.storage.database import Storage

_log = logging.getLogger(__name__)


async def stored_profiles(
    storage: Storage, executor: ModelExecutor, family: Family, batch_size_max: int
) -> list[LatencyProfile]:
    """Return a family's profiles from the database; empty: some are missing.

    Batch sizes above `inference.batch_size_max` are left out. An executor elsewhere that was never
    measured has the profile of another one with the same fingerprint: of a cluster, one node of
    each kind is measured.
    """
    size_max = family.batch_sizes(batch_size_max)[-1]
    names = {variant.name for variant in family.variants}
    if not executor.shares_machine:
        await storage.flush()  # another one may just have been measured
    known = await storage.load_profiles(fingerprint(executor, family))
    measured_on = {stored.executor for stored in known if stored.variant in names}
    source = executor.id
    if source not in measured_on and not executor.shares_machine:
        source = min(measured_on, default=source)
    found = [
        _offered(replace(stored, executor=executor.id), size_max)
        for stored in known
        if stored.executor == source and stored.variant in names
    ]
    if gone := [stored.variant for stored in found if not stored.quantiles_ns]:
        _log.warning(
            "profiles of %s on %s have only batch sizes above inference.batch_size_max and are "
            "measured again", ", ".join(gone), executor.id,
        )  # fmt: skip
        return []
    return found if {stored.variant for stored in found} == names else []


def _offered(stored: LatencyProfile, size_max: int) -> LatencyProfile:
    """Return a profile without batch sizes above the limit."""
    rows = {size: ns for size, ns in stored.quantiles_ns.items() if size <= size_max}
    return replace(stored, quantiles_ns=rows)
