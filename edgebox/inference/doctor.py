"""Checks an installation and suggests fixes, for `edgebox doctor`.

It changes nothing. The caller passes what the configuration says of page, database and port.
"""

import errno
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Protocol

from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.inference.cuda_libraries import missing_cuda_libraries
from edgebox.inference.executor import Executor, OnnxExecutor
from edgebox.inference.family import Family
from edgebox.inference.machine import (
    cgroup_cpu_limit,
    memory_bytes,
    processor_name,
    usable_cores,
)
from edgebox.inference.sessions import (
    CPU,
    available_providers,
    runtime_version,
)
from edgebox.inference.zoo import Zoo, load_zoo
from edgebox.storage.connecting import has_room
from edgebox.storage.probe import probe

_GIB = 1 << 30
_LIBRARIES = (
    "aiohttp", "aiosqlite", "click", "lapx", "numpy", "onnx", "orjson", "pillow",
    "prometheus-client", "rich", "uvloop",
)  # fmt: skip
_DISPENSABLE = {"uvloop": "the box runs on asyncio's slower event loop", "onnx": "no importing"}
_RUNTIME_PACKAGES = re.compile(r"onnxruntime([_-].+)?", re.IGNORECASE)
_CUDA_MEND = "pip install 'onnxruntime-gpu[cuda,cudnn]' brings CUDA and cuDNN as packages"
_CAPABILITY_MIN = (7, 5)
"""Older GPUs have no code in ONNX Runtime's packages."""


class Health(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """Works, but not as well as it could."""
    FAIL = "fail"
    """Does not work until mended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    health: Health
    found: str
    mend: str = ""
    """Suggested fix; empty when none is needed."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as its driver describes it."""

    name: str
    driver: str
    memory: str
    capability: tuple[int, int]


class Executors(Protocol):
    """Executors that were opened to be looked at."""

    executors: list[OnnxExecutor]
    problems: list[str]
    """Problems of opening executors."""

    def close(self) -> None:
        """Close all."""


def to_json(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """Return findings as plain values."""
    return [asdict(finding) for finding in findings]


def examine(
    *,
    families: Sequence[Path],
    opening: Callable[[Sequence[Family]], Executors] | None = None,
    pipelines: Callable[[Sequence[Family]], Collection[str]] | None = None,
    storage_file: str | None = None,
    page_built: bool | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> list[Finding]:
    """Check everything that edgebox needs.

    Args:
        families: folders of families, the bundled ones among them.
        opening: opens the configured executors; None: not checked.
        pipelines: returns the names of the configured pipelines; None: not checked.
        storage_file: the database's file; None: not checked.
        page_built: whether the page's files exist; None: not checked.
        host: address to try the port on.
        port: port to listen on; None: not checked.
    """
    zoo = load_zoo(families)
    gpus = find_gpus()
    findings = [
        check_python(),
        check_runtime_packages(installed_packages(), runtime_version()),
        *check_libraries(),
        check_gpus(gpus),
        check_cuda_libraries(gpus, missing_cuda_libraries()),
        *([] if opening is None else check_executors(zoo, gpus, opening)),
        check_cores(usable_cores(), cgroup_cpu_limit()),
        check_memory(memory_bytes()),
        *check_families(zoo),
        *([] if pipelines is None else check_pipelines(zoo, pipelines)),
    ]
    if page_built is not None:
        findings.append(check_page(page_built))
    if storage_file is not None:
        findings.append(check_storage(storage_file))
    if port is not None:
        findings.append(check_port(host, port))
    return findings


def check_python() -> Finding:
    """Report which Python runs."""
    found = f"{platform.python_implementation()} {platform.python_version()} on {sys.platform}"
    return Finding("Python", Health.OK, f"{found}, {platform.machine()}")


def installed_packages() -> dict[str, str]:
    """Return the versions of all installed packages by name."""
    return {
        distribution.name: distribution.version
        for distribution in metadata.distributions()
        if distribution.name
    }


def check_runtime_packages(installed: Mapping[str, str], imported: str) -> Finding:
    """Report whether exactly one package provides ONNX Runtime; several overwrite each other."""
    packages = {n: v for n, v in sorted(installed.items()) if _RUNTIME_PACKAGES.fullmatch(n)}
    listed = ", ".join(f"{name} {version}" for name, version in packages.items())
    if len(packages) > 1:
        return Finding(
            "ONNX Runtime",
            Health.FAIL,
            f"{listed} are installed over each other; {imported} is what Python finds",
            f"pip uninstall -y {' '.join(packages)}, then install edgebox again",
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
    versions = {name: _version(name) for name in _LIBRARIES}
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


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def find_gpus() -> list[Gpu] | None:
    """Return the NVIDIA GPUs; None: the driver's tool is there but does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = "--query-gpu=name,driver_version,memory.total,compute_cap"
    try:
        done = subprocess.run(
            [tool, query, "--format=csv,noheader"],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_gpus(done.stdout)


def parse_gpus(table: str) -> list[Gpu]:
    """Read nvidia-smi's rows: name, driver, memory, compute capability."""
    gpus = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            major, _, minor = cells[3].partition(".")
            known = major.isdigit() and minor.isdigit()
            gpus.append(
                Gpu(
                    name=cells[0],
                    driver=cells[1],
                    memory=cells[2],
                    capability=(int(major), int(minor)) if known else _CAPABILITY_MIN,
                )
            )
    return gpus


def check_gpus(gpus: Sequence[Gpu] | None) -> Finding:
    """Report which GPUs there are."""
    if gpus is None:
        mend = "run nvidia-smi by hand; the driver may need to be installed again or loaded"
        return Finding("GPU", Health.WARN, "nvidia-smi is installed but fails", mend)
    if not gpus:
        return Finding("GPU", Health.OK, "no NVIDIA GPU (or no driver): models run on the CPU")
    listed = "; ".join(f"{gpu.name}, {gpu.memory}, driver {gpu.driver}" for gpu in gpus)
    if all(gpu.capability < _CAPABILITY_MIN for gpu in gpus):
        return Finding(
            "GPU",
            Health.WARN,
            f"{listed}: too old for ONNX Runtime's packages (compute capability below 7.5)",
            'set device = "cpu" in [[executors]], or use a newer GPU',
        )
    return Finding("GPU", Health.OK, listed)


def check_cuda_libraries(gpus: Sequence[Gpu] | None, missing: Sequence[str]) -> Finding:
    """Report whether the libraries that the CUDA provider loads are there; `missing` are not."""
    if not missing:
        return Finding("CUDA libraries", Health.OK, "CUDA and cuDNN can be loaded")
    if not gpus:
        return Finding("CUDA libraries", Health.OK, "none, and there is no GPU to need them")
    found = f"cannot be loaded: {', '.join(missing)}"
    return Finding("CUDA libraries", Health.WARN, found, _CUDA_MEND)


def check_executors(
    zoo: Zoo,
    gpus: Sequence[Gpu] | None,
    opening: Callable[[Sequence[Family]], Executors],
) -> list[Finding]:
    """Report which device each executor runs on, by running a model there."""
    listed = f"listed: {', '.join(available_providers())}"
    if not zoo.families:
        return [Finding("Executors", Health.WARN, f"{listed}; not tried, there is no model")]
    try:
        opened = opening(zoo.families)
    except EdgeboxError as error:
        mend = 'correct [[executors]]; without any, or with device = "cpu", the CPU is used'
        return [Finding("Executors", Health.FAIL, str(error), mend)]
    try:
        findings = [_executor_finding(each, zoo, gpus) for each in opened.executors]
    finally:
        opened.close()
    mend = "the other executors serve it; take it out of this one's families, or mend the cause"
    findings += [Finding("Executors", Health.WARN, text, mend) for text in opened.problems]
    return [*findings, Finding("Providers", Health.OK, listed)]


def check_pipelines(
    zoo: Zoo, pipelines: Callable[[Sequence[Family]], Collection[str]]
) -> list[Finding]:
    """Report which pipelines are configured, and whether models can be their stages."""
    try:
        names = pipelines(zoo.families)
    except EdgeboxError as error:
        mend = "correct [[pipelines]], or add the family that is missing"
        return [Finding("Pipelines", Health.FAIL, str(error), mend)]
    return [Finding("Pipelines", Health.OK, ", ".join(names))] if names else []


def _executor_finding(executor: OnnxExecutor, zoo: Zoo, gpus: Sequence[Gpu] | None) -> Finding:
    check = f"Executor {executor.id}"
    family = zoo.family(executor.families[0])
    variant = family.variants[0].name
    batch_sizes = family.batch_sizes(1)
    try:
        # A GPU without code for a model opens a session, and fails only here.
        if executor.memory_limit_bytes:
            executor.load(family.files[variant].path, [(variant, size) for size in batch_sizes])
        else:
            executor.warm([variant], batch_sizes)
    except ModelError as error:
        mend = "the other executors serve; see that one of them has this family"
        return Finding(check, Health.FAIL, str(error), mend)
    found = f"{executor.provider} on {executor.device}{executor_text(executor)}"
    if executor.provider == CPU and gpus and executor.note:
        return Finding(check, Health.WARN, f"{found}: {executor.note}", _CUDA_MEND)
    return Finding(check, Health.OK, f"{found}{f' ({executor.note})' if executor.note else ''}")


def executor_text(executor: Executor) -> str:
    """Return an executor's cores and families as people read them, each after a comma."""
    cores = ", ".join(map(str, executor.cores))
    families = ", ".join(executor.families)
    return f"{f', on cores {cores}' if cores else ''}, with {families}"


def check_cores(usable: int, limit: float | None) -> Finding:
    """Report how many cores this process may use."""
    found = f"{usable} usable of {os.cpu_count()} ({processor_name()})"
    if limit is not None:
        found += f"; the container allows {limit:g}"
    if usable < 2:
        mend = "give it 2 cores or more: decoding, inference and the event loop share one"
        return Finding("Cores", Health.WARN, found, mend)
    return Finding("Cores", Health.OK, found)


def check_memory(usable_bytes: int | None) -> Finding:
    """Report how much memory this process may use."""
    if usable_bytes is None:
        return Finding("Memory", Health.OK, "unknown")
    found = f"{usable_bytes / _GIB:.1f} GiB"
    if usable_bytes < _GIB:
        return Finding("Memory", Health.WARN, found, "give it 1 GiB or more")
    return Finding("Memory", Health.OK, found)


def check_families(zoo: Zoo) -> list[Finding]:
    """Report which model families can run, and what is wrong with the others."""
    findings = [
        Finding(
            "Model families",
            Health.OK,
            "; ".join(
                f"{family.name}: {len(family.variants)} variants, {len(family.labels)} labels"
                for family in zoo.families
            ),
        )
    ]
    if not zoo.families:
        findings = [
            Finding(
                "Model families",
                Health.FAIL,
                "none",
                "install edgebox again, or name a folder in inference.families",
            )
        ]
    # The others can be served without a broken one.
    health = Health.WARN if zoo.families else Health.FAIL
    mend = "correct the family.toml, or take the folder out of inference.families"
    findings += [Finding("Model families", health, str(error), mend) for error in zoo.problems]
    return findings


def check_page(built: bool) -> Finding:
    """Report whether the page can be shown."""
    if built:
        return Finding("Page", Health.OK, "built")
    return Finding(
        "Page", Health.WARN, "not built: cameras are served, the page is not", "make page"
    )


def check_storage(file: str) -> Finding:
    """Report whether the database can be written where it is to be."""
    if file == ":memory:":
        return Finding("Database", Health.OK, "in memory: nothing is kept")
    path = Path(file)
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    problem = _storage_problem(path, place)
    if problem:
        return Finding("Database", Health.FAIL, problem, "name another file in storage.path")
    if not has_room(place if place.is_dir() else place.parent):
        found = f"{path}: its disk is full: a box serves, but keeps nothing"
        return Finding("Database", Health.WARN, found, "make room, then start the box again")
    free_bytes = shutil.disk_usage(place).free
    found = f"{path} ({free_bytes / _GIB:.1f} GiB free)"
    if free_bytes < _GIB // 8:
        return Finding("Database", Health.WARN, found, "make room, or lower the retention days")
    return Finding("Database", Health.OK, found)


def _storage_problem(path: Path, place: Path) -> str:
    """Report why a database cannot be at `path`, of which `place` exists; empty: it can."""
    if path.is_dir():
        return f"{path} is a folder"
    if place != path and not place.is_dir():
        return f"{path}: {place} is no folder"
    if place == path and (problem := probe(path)):
        return problem
    # SQLite writes two more files beside the database.
    folder = path.parent if place == path else place
    for needed, mode in ((place, os.W_OK), (folder, os.W_OK | os.X_OK)):
        if not os.access(needed, mode):
            return f"{path}: {needed} cannot be written"
    return ""


def check_port(host: str, port: int) -> Finding:
    """Report whether the box could listen on a port now."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as listener:
            # As servers do: a port in TIME_WAIT counts as free.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            mend = "stop what listens there (another edgebox?), or set server.port"
            return Finding("Port", Health.FAIL, f"{host}:{port} is taken", mend)
        found = f"{host}:{port} cannot be listened on: {error.strerror or error}"
        return Finding("Port", Health.FAIL, found, "set server.host and server.port")
    return Finding("Port", Health.OK, f"{host}:{port} is free")
