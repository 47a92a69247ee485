"""Checks of the installed packages, for `edgebox doctor`: ONNX Runtime, libraries, extras."""

from collections.abc import Mapping
from importlib import metadata

from edgebox.domain.errors import MissingRuntimeError
from edgebox.inference.findings import Finding, Health
from edgebox.inference.onnx_runtime import (
    HOW_TO_INSTALL,
    onnx_runtime,
    runtime_packages,
)

LIBRARIES = (
    "aiohttp", "aiosqlite", "click", "lapx", "numpy", "onnx", "orjson", "pillow",
    "prometheus-client", "rich", "simplejpeg", "uvloop",
)  # fmt: skip
_DISPENSABLE = {"uvloop": "the box runs on asyncio's slower event loop", "onnx": "no importing"}
EXTRAS = {
    "camera": ("av", "video files, network and USB cameras"),
    "mqtt": ("aiomqtt", "events over MQTT"),
    "onvif": ("onvif-zeep-async", "finding network cameras"),
    "mdns": ("zeroconf", "finding boxes in the local network"),
    "zmq": ("pyzmq", "being the detector of Frigate over ZeroMQ"),
    "ray": ("ray", "executors in the workers of a Ray cluster"),
    "tls": ("cryptography", "a certificate that the box signs itself"),
    "accuracy": ("pycocotools", "a second opinion on accuracy"),
    "plot": ("matplotlib", "plots of simulations"),
}
"""What a user may want beside a runtime: a package that tells it is there, and its use."""


def check_runtime() -> Finding:
    """Report whether ONNX Runtime can be imported, and is what pip says it is."""
    try:
        imported = str(onnx_runtime().__version__)
    except MissingRuntimeError as error:
        found, _, mend = str(error).partition(": ")
        return Finding("ONNX Runtime", Health.FAIL, found, mend)
    return check_runtime_packages(runtime_packages(), imported)


def check_runtime_packages(packages: Mapping[str, str], imported: str) -> Finding:
    """Report whether exactly one package provides ONNX Runtime; several overwrite each other.

    Args:
        packages: those that provide it, with their versions.
        imported: the version that Python finds.
    """
    listed = ", ".join(f"{name} {version}" for name, version in packages.items())
    if len(packages) > 1:
        return Finding(
            "ONNX Runtime",
            Health.FAIL,
            f"{listed} are installed over each other; {imported} is what Python finds",
            f"pip uninstall -y {' '.join(packages)}, then {HOW_TO_INSTALL}",
        )
    if packages and imported not in packages.values():
        return Finding(
            "ONNX Runtime",
            Health.FAIL,
            f"{listed} is installed, but Python finds {imported}",
            f"pip install --force-reinstall --no-deps {next(iter(packages))}",
        )
    return Finding("ONNX Runtime", Health.OK, listed or f"{imported}, not installed by pip")


def check_libraries() -> list[Finding]:
    """Report which versions of the libraries are there."""
    versions = {name: _version(name) for name in LIBRARIES}
    missing = [name for name, version in versions.items() if version is None]
    without = [
        f"{name} ({_DISPENSABLE[name]})" if name in _DISPENSABLE else name for name in missing
    ]
    listed = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    findings = [Finding("Libraries", Health.OK, listed)]
    if missing:
        mend = "pip install " + " ".join(missing)
        health = Health.WARN if _DISPENSABLE.keys() >= set(missing) else Health.FAIL
        findings.append(Finding("Libraries", health, f"missing: {', '.join(without)}", mend))
    return findings


def check_extras() -> Finding:
    """Report which extras are there, and what those that are not would be good for."""
    there = [name for name, (package, _) in EXTRAS.items() if _version(package)]
    absent = [
        f"{name} ({use}: pip install 'edgebox[{name}]')"
        for name, (_, use) in EXTRAS.items()
        if name not in there
    ]
    text = ", ".join(there) or "none"
    return Finding(
        "Extras", Health.OK, f"{text}; not installed: {', '.join(absent)}" if absent else text
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
