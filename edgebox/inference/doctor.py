"""Checks an installation and suggests fixes, for `edgebox doctor`.

It changes nothing. The caller passes what the configuration says of page, database and port.
"""

import errno
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.inference.decoder_checks import check_decoders
from edgebox.inference.executor import Executor
from edgebox.inference.family import Family
from edgebox.inference.findings import Finding, Health
from edgebox.inference.gpu_checks import Cuda, Gpu, check_cuda, check_gpus, find_cuda, find_gpus
from edgebox.inference.machine import (
    cgroup_cpu_limit,
    memory_bytes,
    processor_name,
    usable_cores,
)
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.onnx_runtime import has_runtime
from edgebox.inference.package_checks import check_extras, check_libraries, check_runtime
from edgebox.inference.sessions import CPU, available_providers
from edgebox.inference.zoo import Zoo, load_zoo
from edgebox.storage.connecting import has_room
from edgebox.storage.probe import probe

PipelineCheck = Callable[[Sequence[Family]], tuple[Collection[str], Mapping[Any, str]]]
"""Returns the names of the configured pipelines, and why others cannot be served, by name."""

_GIB = 1 << 30


class Executors(Protocol):
    """Executors that were opened to be looked at."""

    @property
    def executors(self) -> Sequence[ModelExecutor]:
        """Those that are open."""

    @property
    def problems(self) -> Sequence[str]:
        """Problems of opening executors."""

    def close(self) -> None:
        """Close all."""


def examine(
    *,
    families: Sequence[Path],
    opening: Callable[[Sequence[Family]], Executors] | None = None,
    pipelines: PipelineCheck | None = None,
    default: Callable[[Zoo], None] | None = None,
    storage_file: str | None = None,
    page_built: bool | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> list[Finding]:
    """Check everything that edgebox needs.

    Args:
        families: folders of families, the bundled ones among them.
        opening: opens the configured executors; None: not checked.
        pipelines: returns which pipelines are configured; None: not checked.
        default: raises what is wrong with the default family; None: not checked.
        storage_file: the database's file; None: not checked.
        page_built: whether the page's files exist; None: not checked.
        host: address to try the port on.
        port: port to listen on; None: not checked.
    """
    gpus = find_gpus()
    findings = [
        check_python(),
        check_runtime(),
        *check_libraries(),
        check_extras(),
        check_decoders(),
        check_gpus(gpus),
        check_cores(usable_cores(), cgroup_cpu_limit()),
        check_memory(memory_bytes()),
    ]
    if has_runtime():
        findings += _examine_models(load_zoo(families), gpus, opening, pipelines, default)
    if page_built is not None:
        findings.append(check_page(page_built))
    if storage_file is not None:
        findings.append(check_storage(storage_file))
    if port is not None:
        findings.append(check_port(host, port))
    return findings


def _examine_models(
    zoo: Zoo,
    gpus: Sequence[Gpu] | None,
    opening: Callable[[Sequence[Family]], Executors] | None,
    pipelines: PipelineCheck | None,
    default: Callable[[Zoo], None] | None,
) -> list[Finding]:
    cuda = find_cuda()
    return [
        *check_cuda(gpus, cuda),
        *([] if opening is None else check_executors(zoo, gpus, cuda, opening)),
        *check_families(zoo),
        *([] if default is None else check_default(zoo, default)),
        *([] if pipelines is None else check_pipelines(zoo, pipelines)),
    ]


def check_python() -> Finding:
    """Report which Python runs."""
    found = f"{platform.python_implementation()} {platform.python_version()} on {sys.platform}"
    return Finding("Python", Health.OK, f"{found}, {platform.machine()}")


def check_executors(
    zoo: Zoo,
    gpus: Sequence[Gpu] | None,
    cuda: Cuda,
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
        findings = [_executor_finding(each, zoo, gpus, cuda) for each in opened.executors]
    finally:
        opened.close()
    mend = "the other executors serve it; take it out of this one's families, or mend the cause"
    findings += [Finding("Executors", Health.WARN, text, mend) for text in opened.problems]
    return [*findings, Finding("Providers", Health.OK, listed)]


def check_default(zoo: Zoo, default: Callable[[Zoo], None]) -> list[Finding]:
    """Report why the default family cannot be used, if so."""
    try:
        default(zoo)
    except EdgeboxError as error:
        mend = "name one that is there, or let edgebox models default choose one"
        return [Finding("Default model", Health.FAIL, str(error), mend)]
    return []


def check_pipelines(zoo: Zoo, pipelines: PipelineCheck) -> list[Finding]:
    """Report which pipelines are configured, and whether models can be their stages."""
    try:
        names, missing = pipelines(zoo.families)
    except EdgeboxError as error:
        mend = "correct [[pipelines]], or add the family that is missing"
        return [Finding("Pipelines", Health.FAIL, str(error), mend)]
    mend = "do what is said; until then a box serves everything else"
    return [
        *([Finding("Pipelines", Health.OK, ", ".join(names))] if names else []),
        *(Finding(f"Pipeline {n}", Health.FAIL, why, mend) for n, why in missing.items()),
    ]


def _executor_finding(
    executor: ModelExecutor, zoo: Zoo, gpus: Sequence[Gpu] | None, cuda: Cuda
) -> Finding:
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
    if executor.provider == CPU and executor.note:
        return Finding(check, Health.WARN, f"{found}: {executor.note}", cuda.mend(gpus or ()))
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
