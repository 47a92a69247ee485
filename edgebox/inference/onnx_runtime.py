"""Imports ONNX Runtime at its first use, and says how to install it where there is none.

Two packages provide it, one for CPUs and one for NVIDIA GPUs. Each overwrites the other's files, so
that edgebox requires neither; the extras `cpu` and `cuda` bring one.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from typing import Any

from edgebox.domain.errors import MissingRuntimeError

HOW_TO_INSTALL = "pip install 'edgebox[cpu]', or 'edgebox[cuda]' on a machine with an NVIDIA GPU"
_PACKAGE = re.compile(r"onnxruntime([_-].+)?", re.IGNORECASE)
_MODULE = "onnxruntime/__init__.py"
"""What only a package has that provides ONNX Runtime; others have names that look like its."""


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
    packages = runtime_packages()
    if not packages:
        return f"ONNX Runtime, which runs models, is not installed: {HOW_TO_INSTALL}"
    return (
        f"ONNX Runtime cannot be imported ({' '.join(error.split())}): "
        f"pip uninstall -y {' '.join(packages)}, then {HOW_TO_INSTALL}"
    )


def runtime_packages(installed: Iterable[metadata.Distribution] | None = None) -> dict[str, str]:
    """Return the packages that provide ONNX Runtime, with their versions, by name.

    Args:
        installed: the packages to look at; None: all that are installed.
    """
    found = {
        package.name: package.version
        for package in (metadata.distributions() if installed is None else installed)
        if package.name and _PACKAGE.fullmatch(package.name) and _provides(package)
    }
    return dict(sorted(found.items()))


def _provides(package: metadata.Distribution) -> bool:
    """Return whether a package has the module; one that does not list its files may have it."""
    files = package.files
    return files is None or any(file.as_posix() == _MODULE for file in files)
