"""Decides when a stored profile may be believed: only where nothing it depends on has changed."""

from hashlib import sha256

from edgebox.inference.executor import OnnxExecutor
from edgebox.inference.family import Family
from edgebox.inference.machine import usable_cores
from edgebox.inference.sessions import runtime_version

_MEASURING = 1
"""Raised when what the profiler measures changes its meaning."""


def fingerprint(executor: OnnxExecutor, family: Family) -> str:
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
            family_print(family),
        )
    )


def family_print(family: Family) -> str:
    """Return what a fingerprint ends with: the family, its files and its sizes."""
    sizes = ",".join(f"{v.name}:{v.width_px}x{v.height_px}" for v in family.variants)
    return f"{family.name} {family.sha256[:16]} {sha256(sizes.encode()).hexdigest()[:8]}"
