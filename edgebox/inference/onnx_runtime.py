"""Imports ONNX Runtime at its first use, and says how to install it where there is none.

Two packages provide it, one for CPUs and one for NVIDIA GPUs. Each overwrites the other's files, so
that edgebox requires neither; the extras `cpu` and `cuda` bring one.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any

from edgebox.domain.errors import MissingRuntimeError

HOW_TO_INSTALL = "pip install 'edgebox[cpu]', or 'edgebox[cuda]' on a machine with an NVIDIA GPU"
_PACKAGE = re.compile(r"onnxruntime([_-].+)?", re.IGNORECASE)


@cache
def onnx_runtime() -> Any:
    """Return the module `onnxruntime`, which has no type information.

    Raises:
        MissingRuntimeError: it is not installed, or what is installed cannot be imported.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - cameras and simulations never need it
    except ImportError as error:
        raise MissingRuntimeError(_problem(str(error))) from error
    # Uninstalling one of two packages leaves a folder that can be imported, with nothing in it.
    if not hasattr(onnxruntime, "InferenceSession"):
        raise MissingRuntimeError(_problem("onnxruntime has no InferenceSession"))
    return onnxruntime


def has_runtime() -> bool:
    """Say whether ONNX Runtime can be used."""
    try:
        onnx_runtime()
    except MissingRuntimeError:
        return False
    return True


def _problem(error: str) -> str:
    packages = runtime_packages(installed_packages())
    if not packages:
        return f"ONNX Runtime, which runs models, is not installed: {HOW_TO_INSTALL}"
    return (
        f"ONNX Runtime cannot be imported ({' '.join(error.split())}): "
        f"pip uninstall -y {' '.join(packages)}, then {HOW_TO_INSTALL}"
    )


def installed_packages() -> dict[str, str]:
    """Return the versions of all installed packages by name."""
    return {
        distribution.name: distribution.version
        for distribution in metadata.distributions()
        if distribution.name
    }


def runtime_packages(installed: Mapping[str, str]) -> dict[str, str]:
    """Return the packages that provide ONNX Runtime, with their versions."""
    return {
        name: version for name, version in sorted(installed.items()) if _PACKAGE.fullmatch(name)
    }
