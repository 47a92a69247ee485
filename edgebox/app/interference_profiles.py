"""Provides the interference between executors, from the database or measured while others run.

A box with one executor has none. Otherwise measuring takes a tenth of the time of profiles, once
for each executor and family, and again when the executors change. Executors of the same device join
first: how many batches may run at once is decided for each device.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edgebox.domain.errors import ModelError
from edgebox.domain.interference import MeasuredInterference, with_interference
from edgebox.domain.model_family import (
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
    device_of,
)
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint, neighbours
from edgebox.inference.interference_measurement import Load, interference, load_of
from edgebox.inference.model_executor import ModelExecutor
from edgebox.storage.database import Storage

_BUDGET_SHARE = 0.1
_OTHER_FAMILIES_MAX = 2
"""How many other families a family is measured beside, so that the time stays bounded."""

Profiles = Mapping[ExecutorId, Sequence[LatencyProfile]]
Progress = Callable[[str, float], None]
"""Called with the present step and the share done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How the times of families that are known on executors are measured further."""

    storage: Storage
    """Has what was measured before, and stores what is."""
    profile_s: float
    """Time in which the profiles of one family are measured; this takes a share of it."""
    on_progress: Progress | None = None
    again: bool = False
    """Whether even stored values are measured again."""


async def measure_interference(
    executors: Sequence[ModelExecutor],
    families: Sequence[Family],
    profiles: Profiles,
    measuring: Measuring,
) -> tuple[dict[ExecutorId, list[LatencyProfile]], list[str]]:
    """Return profiles with their interference, and problems.

    Args:
        executors: all executors of the box, warm.
        families: their families, the default one first.
        profiles: by executor.
        measuring: how it is measured.

    Raises:
        HungError: a batch hangs on an executor.
    """
    out = {executor: list(of) for executor, of in profiles.items()}
    problems = []
    storage = measuring.storage
    for executor in executors:
        near = sorted(
            (other for other in executors if other is not executor),
            key=lambda other: device_of(other.id) != device_of(executor.id),
        )
        for done, family in enumerate(families):
            held = _in_memory(executor, family, profiles)
            loads = _beside(near, family, families, profiles)
            if not held or not loads:
                continue
            key, beside = fingerprint(executor, family), neighbours(executor, executors)
            found = (
                [] if measuring.again else await storage.load_interference(key, executor.id, beside)
            )
            if not found:
                if measuring.on_progress is not None:
                    text = f"measuring {family.name} on {executor.id} while others run"
                    measuring.on_progress(text, done / len(families))
                try:
                    found = await asyncio.to_thread(
                        interference, executor, held, loads, _BUDGET_SHARE * measuring.profile_s
                    )
                except HungError:
                    raise  # nothing else runs on that executor any more
                except ModelError as error:
                    problems.append(
                        f"the interference on {executor.id} could not be measured: {error}"
                    )
                    continue
                storage.save_interference(key, executor.id, beside, found)
            _take_in(out[executor.id], family, found)
    return out, problems


def _take_in(
    profiles: list[LatencyProfile], family: Family, found: Sequence[MeasuredInterference]
) -> None:
    """Add interference to the profiles of a family; variants outside memory get the greatest."""
    measured = {each.variant for each in found}
    greatest: dict[tuple[FamilyName, int], float] = {}
    for each in found:
        setting = each.beside, each.others
        greatest[setting] = max(each.factor, greatest.get(setting, 1.0))
    for at, known in enumerate(profiles):
        if known.variant in measured:
            profiles[at] = with_interference(known, found)
        elif known.variant in family.files:
            of = [
                MeasuredInterference(known.variant, *setting, factor)
                for setting, factor in greatest.items()
            ]
            profiles[at] = with_interference(known, of)


def _in_memory(
    executor: ModelExecutor, family: Family, profiles: Profiles
) -> dict[VariantName, tuple[Variant, int]]:
    """Return the variants in memory of an executor, each with its smallest batch."""
    known = {p.variant: p for p in profiles[executor.id]}
    return {
        variant.name: (variant, known[variant.name].batch_sizes[0])
        for variant in family.offered
        if variant.name in known and executor.is_loaded(variant.name)
    }


def _beside(
    others: Sequence[ModelExecutor],
    family: Family,
    families: Sequence[Family],
    profiles: Profiles,
) -> list[list[Load]]:
    """Return the loads to measure a family beside: first its own, then some other families."""
    rest = [each for each in families if each is not family]
    own = [load for other in others if (load := _load(other, [family, *rest], profiles))]
    if not own:
        return []
    found = [own]
    for beside in rest:
        first = next((load for other in others if (load := _load(other, [beside], profiles))), None)
        if first is not None and first.variant.family != own[0].variant.family:
            found.append([first])
    return found[: 1 + _OTHER_FAMILIES_MAX]


def _load(executor: ModelExecutor, families: Sequence[Family], profiles: Profiles) -> Load | None:
    """Return the load that keeps an executor busy: a medium variant of the first family that
    it has in memory."""
    for family in families:
        held = sorted(
            _in_memory(executor, family, profiles).values(), key=lambda each: each[0].pixels
        )
        if held:
            variant, size = held[len(held) // 2]
            return load_of(executor, variant, size)
    return None
