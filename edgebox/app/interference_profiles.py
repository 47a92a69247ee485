"""Provides the interference between executors, from the database or measured while all run.

A box with one executor has none. Otherwise measuring takes a tenth of the time of profiles, once
for each executor and family, and again when the executors change.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, LatencyProfile, Variant, VariantName
from edgebox.inference.executor import HungError, OnnxExecutor
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint, neighbours
from edgebox.inference.interference import Load, interference, load_of
from edgebox.storage.database import Storage

_BUDGET_SHARE = 0.1

Profiles = Mapping[ExecutorId, Sequence[LatencyProfile]]
Progress = Callable[[str, float], None]
"""Called with the present step and the share done."""


async def measure_interference(
    storage: Storage,
    executors: Sequence[OnnxExecutor],
    families: Sequence[Family],
    profiles: Profiles,
    *,
    profile_s: float,
    on_progress: Progress | None = None,
    again: bool = False,
) -> tuple[dict[ExecutorId, list[LatencyProfile]], list[str]]:
    """Return profiles with their interference, and problems.

    Args:
        storage: stores the measurements.
        executors: all executors of the box, warm.
        families: their families, the default one first.
        profiles: by executor.
        profile_s: time for measuring the profiles of one family.
        on_progress: called with the present step and the share done.
        again: whether to measure even stored values again.

    Raises:
        HungError: a batch hangs on an executor.
    """
    out = {executor: list(of) for executor, of in profiles.items()}
    problems = []
    for executor in executors:
        loads = [
            load
            for other in executors
            if other is not executor
            if (load := _load(other, families, profiles)) is not None
        ]
        for done, family in enumerate(families if loads else ()):
            held = _in_memory(executor, family, profiles)
            if not held:
                continue
            key, beside = fingerprint(executor, family), neighbours(executor, executors)
            found = {} if again else await storage.load_interference(key, executor.id, beside)
            if not found:
                if on_progress is not None:
                    text = f"measuring {family.name} on {executor.id} while the others run"
                    on_progress(text, done / len(families))
                try:
                    found = await asyncio.to_thread(
                        interference, executor, held, loads, _BUDGET_SHARE * profile_s
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
    profiles: list[LatencyProfile], family: Family, found: Mapping[VariantName, float]
) -> None:
    """Add interference to the profiles of a family; variants outside memory get the greatest."""
    greatest = max(found.values())
    for at, known in enumerate(profiles):
        if known.variant in family.files:
            profiles[at] = replace(known, interference=found.get(known.variant, greatest))


def _in_memory(
    executor: OnnxExecutor, family: Family, profiles: Profiles
) -> dict[VariantName, tuple[Variant, int]]:
    """Return the variants in memory of an executor, each with its smallest batch."""
    known = {p.variant: p for p in profiles[executor.id]}
    return {
        variant.name: (variant, known[variant.name].batch_sizes[0])
        for variant in family.offered
        if variant.name in known and executor.is_loaded(variant.name)
    }


def _load(executor: OnnxExecutor, families: Sequence[Family], profiles: Profiles) -> Load | None:
    """Return the load that keeps an executor busy: a medium variant of its first family."""
    for family in families:
        held = sorted(
            _in_memory(executor, family, profiles).values(), key=lambda each: each[0].pixels
        )
        if held:
            variant, size = held[len(held) // 2]
            return load_of(executor, variant, size)
    return None
