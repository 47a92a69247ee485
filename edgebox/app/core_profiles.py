"""Provides the factors of thread counts, from the database or measured.

Only executors whose batches may have several thread counts have any (`threads = "auto"`). All batch
sizes are known with all threads, from the profiles. With fewer threads two sizes are measured, and
the others follow from Sponge's model of batch time, fitted to all of these (`core_latency`).
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from edgebox.app.interference_profiles import Measuring, Profiles, measure_interference
from edgebox.domain.core_factors import MeasuredCoreFactor, with_core_factors
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, LatencyProfile
from edgebox.inference.core_factor_measurement import measure_core_factors
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.sessions import CPU
from edgebox.scheduling.cores.core_latency import fit_core_latency

_BUDGET_SHARE = 0.2


async def provide_core_factors(
    executors: Sequence[ModelExecutor],
    families: Sequence[Family],
    profiles: Profiles,
    measuring: Measuring,
) -> tuple[dict[ExecutorId, list[LatencyProfile]], list[str]]:
    """Return profiles with the factors of their thread counts, and problems.

    Args:
        executors: all executors of the box, warm.
        families: their families.
        profiles: by executor.
        measuring: how they are measured.

    Raises:
        HungError: a batch hangs on an executor.
    """
    out = {executor: list(of) for executor, of in profiles.items()}
    problems = []
    storage = measuring.storage
    steps = max(1, len(executors) * len(families))
    for at_executor, executor in enumerate(executors):
        for at_family, family in enumerate(families):
            held = [p for p in out[executor.id] if p.variant in family.files]
            if not held or not executor.thread_counts:
                continue
            key = fingerprint(executor, family)
            found = [] if measuring.again else await storage.load_core_factors(key, executor.id)
            if not _all_known(found, held, executor):
                if measuring.on_progress is not None:
                    done = (at_executor * len(families) + at_family) / steps
                    text = f"measuring {family.name} on {executor.id}, by threads"
                    measuring.on_progress(text, done)
                try:
                    found = await asyncio.to_thread(
                        _measure, executor, family, held, _BUDGET_SHARE * measuring.profile_s
                    )
                except HungError:
                    raise  # nothing else runs on that executor any more
                except ModelError as error:
                    problems.append(
                        f"{executor.id} uses all its threads for {family.name}, because its times "
                        f"with fewer could not be measured: {error}"
                    )
                    continue
                storage.save_core_factors(key, executor.id, found)
            for at, profile in enumerate(out[executor.id]):
                if profile.variant in family.files:
                    out[executor.id][at] = with_core_factors(profile, found, executor.thread_counts)
    with_all = {e.id: e.cpu_threads for e in executors if e.provider == CPU}
    for name, threads in with_all.items():
        # Of the others the core knows how many cores their batches take from the machine.
        out[name] = [p if p.core_factors else fixed_threads(p, threads) for p in out[name]]
    return out, problems


async def measure_shared_cores(
    executors: Sequence[ModelExecutor],
    families: Sequence[Family],
    profiles: Profiles,
    measuring: Measuring,
) -> tuple[dict[ExecutorId, list[LatencyProfile]], list[str]]:
    """Return profiles with core factors and interference; see `provide_core_factors`."""
    with_cores, problems = await provide_core_factors(executors, families, profiles, measuring)
    here = [executor for executor in executors if executor.shares_machine]
    found, more = await measure_interference(here, families, with_cores, measuring)
    return found, problems + more


def fixed_threads(profile: LatencyProfile, threads: int) -> LatencyProfile:
    """Return the profile of an executor that always computes with so many threads."""
    return replace(profile, core_factors={threads: {}})


def _all_known(
    found: Sequence[MeasuredCoreFactor], held: Sequence[LatencyProfile], executor: ModelExecutor
) -> bool:
    known = {(each.variant, each.batch_size, each.threads) for each in found}
    return known >= {
        (profile.variant, size, threads)
        for profile in held
        for size in profile.batch_sizes
        for threads in executor.thread_counts[:-1]
    }


def _measure(
    executor: ModelExecutor, family: Family, held: Sequence[LatencyProfile], budget_s: float
) -> list[MeasuredCoreFactor]:
    """Measure the variants in memory; one that is not gets the greatest factors of the others."""
    variants = {variant.name: variant for variant in family.variants}
    loaded = {
        p.variant: (variants[p.variant], p.batch_sizes)
        for p in held
        if executor.is_loaded(p.variant)
    }
    if not loaded:
        raise ModelError("none of its variants is in memory")
    measured = measure_core_factors(executor, loaded, budget_s)
    found = [each for p in held if p.variant in loaded for each in _fitted(p, measured, executor)]
    greatest: dict[int, float] = {}
    for each in found:
        greatest[each.threads] = max(each.factor, greatest.get(each.threads, 1.0))
    return found + [
        MeasuredCoreFactor(p.variant, size, threads, factor)
        for p in held
        if p.variant not in loaded
        for size in p.batch_sizes
        for threads, factor in greatest.items()
    ]


def _fitted(
    profile: LatencyProfile, measured: Sequence[MeasuredCoreFactor], executor: ModelExecutor
) -> Iterator[MeasuredCoreFactor]:
    """Yield the factors of all batch sizes: as measured, else by the fitted model.

    The model finds the shape between two measured sizes; their factors bound it.
    """
    most = executor.cpu_threads
    full_ns: Mapping[int, int] = {
        n: max(1, profile.quantile_ns(n, 0.5)) for n in profile.batch_sizes
    }
    factors = {
        (e.batch_size, e.threads): e.factor for e in measured if e.variant == profile.variant
    }
    times_ns: dict[tuple[int, int], float] = {(n, most): float(ns) for n, ns in full_ns.items()}
    times_ns |= {(n, threads): f * full_ns[n] for (n, threads), f in factors.items()}
    model = fit_core_latency(times_ns)
    for size in profile.batch_sizes:
        for threads in executor.thread_counts[:-1]:
            fitted = model.of_ns(size, threads) / model.of_ns(size, most)
            measured_here = [f for (_, n), f in factors.items() if n == threads]
            fitted = min(max(fitted, min(measured_here)), max(measured_here))
            factor = factors.get((size, threads), fitted)
            yield MeasuredCoreFactor(profile.variant, size, threads, factor)
