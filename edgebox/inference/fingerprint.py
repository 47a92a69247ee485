"""Decides when a stored profile is valid: only while nothing that it depends on has changed."""

from collections.abc import Sequence

from edgebox.inference.family import Family
from edgebox.inference.family_prints import family_print
from edgebox.inference.machine import usable_cores
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.sessions import runtime_version

_MEASURING = 2
"""Raised when what the profiler measures changes its meaning."""


def fingerprint(executor: ModelExecutor, family: Family) -> str:
    """Return the device, library, model and threads behind a profile, as one stable line.

    Two executors on one device share it; their ids are kept beside the profiles.
    """
    return " | ".join(
        (
            f"measuring {_MEASURING}",
            executor.device,
            f"{usable_cores()} cores",
            f"{executor.provider} {runtime_version()}",
            f"{executor.cpu_threads} threads",
            *([f"cores {','.join(map(str, sorted(executor.cores)))}"] if executor.cores else []),
            family_print(family),
        )
    )


def neighbours(executor: ModelExecutor, executors: Sequence[ModelExecutor]) -> str:
    """Return which other executors a box has, as one stable line: what interference depends on."""
    return " | ".join(
        sorted(
            f"{other.id} {other.device} cores {','.join(map(str, other.cores)) or 'any'}"
            for other in executors
            if other.id != executor.id and other.shares_machine
        )
    )


def model_print(family: Family) -> str:
    """Return the fingerprint of a family's model, independent of executors."""
    return f"measuring {_MEASURING} | {family_print(family)}"
