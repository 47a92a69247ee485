"""The section that says which executors a box has: where models run, and which.

Limits: what depends on the machine (whether a core or a GPU is there) is found out at the start of
the box, by `edgebox.app.executor_setup`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from edgebox.config.keys import key, one_too_many
from edgebox.domain.errors import InvalidInputError
from edgebox.link.box_address import fingerprint_of

AUTO = "auto"
"""Threads are chosen for each batch."""
ALL = "all"
"""As many threads as cores."""

MOVED = {
    "inference.providers": "it is device in [[executors]] now",
    "inference.cpu_threads": "it is threads in [[executors]] now",
    "inference.executors_per_device": "it is streams in [[executors]] now",
}
"""What became of keys that there were before this section."""


LOCAL = "local"
OPEN_INFERENCE = "open_inference"
RAY = "ray"
KEYS_BY_KIND = {
    LOCAL: ("device", "streams", "threads", "cores", "cuda_graphs"),
    OPEN_INFERENCE: ("streams", "url", "model", "token_file", "ca_file", "fingerprint"),
    RAY: ("address", "count", "num_cpus", "num_gpus", "resources"),
}
"""Keys that not all kinds of executors have; all have the others."""
PATHS = {"executors": ("token_file", "ca_file")}
"""Keys of this section that hold a path."""


@dataclass(frozen=True, slots=True)
class ExecutorParameters:
    """Executors on one kind of device. Without any such table there is one with the defaults."""

    kind: str = key(
        LOCAL,
        "What runs models: local, this process; open_inference, a server that speaks the "
        "Open Inference Protocol over HTTP: another edgebox, Triton, OpenVINO Model Server, "
        "KServe; ray, workers of a Ray cluster",
        choices=tuple(KEYS_BY_KIND),
    )
    device: str = key(
        "auto",
        "Where models run: cpu; cuda, every NVIDIA GPU; cuda:1, that GPU; auto, every "
        "NVIDIA GPU, and the CPU for models that no GPU can run; tensorrt and tensorrt:1, "
        "as auto with TensorRT before CUDA (building each model takes minutes the first "
        "time)",
        pattern=r"auto|cpu|(cuda|tensorrt)(:[0-9]{1,3})?",
        wanted='"auto", "cpu", "cuda", "tensorrt" or one GPU ("cuda:0", "tensorrt:0")',
    )
    streams: int = key(
        1, "Batches that each device runs at the same time, with one executor each", low=1, high=8
    )
    threads: int | str = key(
        0,
        "Threads that each executor computes with on a CPU; 0: one for each of cores, or all cores "
        "but one; all: one for each of cores, or all cores; auto: chosen for each batch, as few of "
        "them as its deadline permits",
        low=0,
        high=512,
        words=(AUTO, ALL),
    )
    cores: tuple[int, ...] = key(
        (),
        "Numbers of the CPU cores that the executors' threads are pinned to (Linux); empty: any",
        of=int,
        wanted="a list of whole numbers, 0 or more (how many compute is threads)",
    )
    cuda_graphs: bool = key(
        False,
        "Whether runs on a GPU are recorded as CUDA graphs and replayed, where that changes no "
        "answer; not with TensorRT or inference.memory_limit_mb",
    )
    families: tuple[str, ...] = key((), "Model families of these executors; empty: all")
    url: str = key(
        "",
        "open_inference: address of the server, http://HOST:PORT or https://HOST:PORT; a path in "
        "front of /v2 may follow",
        may_be_empty=True,
    )
    model: str = key(
        "{family}_{variant}",
        "open_inference: the server's name for the model of a variant. Another edgebox has the "
        "variant's own name, whatever is written here",
    )
    token_file: str = key(
        "",
        "open_inference: a file with the token that the server wants, relative to this file; "
        "empty: none",
        may_be_empty=True,
    )
    ca_file: str = key(
        "",
        "open_inference: certificates to trust instead of the system's, relative to this file",
        may_be_empty=True,
    )
    fingerprint: str = key(
        "",
        "open_inference: SHA-256 of the server's certificate, which is then the only one accepted",
        may_be_empty=True,
    )
    address: str = key(
        "auto",
        "ray: address of the cluster that this machine is a node of: HOST:PORT of its head; auto: "
        "it is found",
        pattern=r"auto|(\[[0-9a-fA-F:]+\]|[^\s:/@]+):[0-9]{1,5}",
        wanted='"auto" or "HOST:PORT"',
    )
    count: int | str = key(
        1,
        "ray: workers, with one executor each; all: as many as the nodes of the cluster have room "
        "for, also on nodes that join while the box runs",
        low=1,
        high=256,
        words=(ALL,),
    )
    num_cpus: float = key(1.0, "ray: CPUs of each worker, as the nodes count them", low=0, high=512)
    num_gpus: float = key(
        0.0, "ray: GPUs of each worker, or a share of one; above 0 models run there", low=0, high=1
    )
    resources: tuple[str, ...] = key(
        (), 'ray: custom resources of each worker, as "NAME=AMOUNT", like "line-3=1"'
    )


def contradictions(executors: Sequence[ExecutorParameters]) -> Iterator[str]:
    """Yield what is wrong with executors although each key alone is right."""
    for number, table in enumerate(executors):
        path, cores = f"executors[{number}]", table.cores
        yield from (f"{path}.{problem}" for problem in _of_kind(table))
        twice = sorted({core for core in cores if cores.count(core) > 1})
        if twice:
            yield f"{path}.cores: {', '.join(map(str, twice))} is there twice"
        if table.cuda_graphs and not table.device.startswith(("auto", "cuda")):
            yield (f'{path}.cuda_graphs: is for CUDA, but device is "{table.device}"; leave it out')
        threads = table.threads
        if isinstance(threads, str):
            if table.device.startswith("cuda"):
                yield (
                    f'{path}.threads: "{threads}" is for CPUs, but device is "{table.device}"; '
                    "leave threads out"
                )
        elif cores and threads > len(cores):
            yield (
                f"{path}.threads: {threads} is more than the {len(cores)} of "
                f"{path}.cores; name more cores, or leave threads out: one for each core"
            )


def _of_kind(table: ExecutorParameters) -> Iterator[str]:
    """Yield which keys are of another kind of executors, and what this kind lacks."""
    for each in fields(table):
        kinds = [kind for kind, names in KEYS_BY_KIND.items() if each.name in names]
        if kinds and table.kind not in kinds and getattr(table, each.name) != each.default:
            yield (
                f'{each.name}: is for kind = "{kinds[0]}", but kind is "{table.kind}"; leave it out'
            )
    if table.kind == OPEN_INFERENCE:
        yield from _of_server(table)
    if table.kind == RAY:
        yield from _of_cluster(table)


def _of_cluster(table: ExecutorParameters) -> Iterator[str]:
    try:
        amounts = custom_resources(table.resources).values()
    except ValueError as error:
        yield f"resources: {error}"
        return
    if table.count == ALL and not (table.num_cpus or table.num_gpus or any(amounts)):
        yield 'count: "all" workers that need nothing are without number; give them num_cpus'


def custom_resources(entries: Sequence[str]) -> dict[str, float]:
    """Return the amounts of custom resources by name, from "NAME=AMOUNT".

    Raises:
        ValueError: an entry is not of that form.
    """
    out = {}
    for entry in entries:
        name, _, amount = entry.partition("=")
        try:
            out[name.strip()] = float(amount)
        except ValueError:
            out[name.strip()] = 0.0
        if not name.strip() or not 0 < out[name.strip()] < math.inf:
            raise ValueError(f'"{entry}" is not of the form "NAME=AMOUNT", like "line-3=1"')
    return out


def _of_server(table: ExecutorParameters) -> Iterator[str]:
    scheme = _scheme(table.url)
    if not scheme:
        yield "url: must be the server's address, like https://box:8787"
    try:
        name = table.model.format(family="f", variant="v")
    except (LookupError, ValueError, AttributeError):
        name = ""
    if not name:
        yield 'model: may have {family} and {variant} in braces, like "{family}_{variant}"'
    if table.fingerprint:
        try:
            fingerprint_of(table.fingerprint)
        except InvalidInputError as error:
            yield f"fingerprint: {error}"
    if table.fingerprint and table.ca_file:
        yield one_too_many("ca_file", "fingerprint")
    if scheme == "http":
        for name in ("ca_file", "fingerprint"):
            if getattr(table, name):
                yield f"{name}: is for https://, but url begins with http://"


def _scheme(url: str) -> str:
    """Return the scheme of a server's address; empty: it is none."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - looking at it checks it
    except ValueError:
        return ""
    odd = parts.username or parts.password or parts.query or parts.fragment
    return (
        "" if odd or not parts.hostname or parts.scheme not in ("http", "https") else parts.scheme
    )


def unknown_families(names: Sequence[str], number: int, families: Sequence[str]) -> Iterator[str]:
    """Yield which names of a table are no family's; `families` are those that can be served."""
    for name in names:
        if name not in families:
            yield (
                f'executors[{number}].families: "{name}" is unknown, or cannot be served '
                f"(there are: {', '.join(families)})"
            )


def wrong_families(
    executors: Sequence[ExecutorParameters], default_family: str, families: Sequence[str]
) -> Iterator[str]:
    """Yield what is wrong with executors once it is known which families can be served.

    One name that is unknown beside others is nothing to stop for: its files may be damaged.
    """
    left_without = [
        number
        for number, table in enumerate(executors)
        if table.families and not set(table.families) & set(families)
    ]
    for number in left_without:
        yield from unknown_families(executors[number].families, number, families)
    if left_without or not executors:
        return
    if all(t.families and default_family not in t.families for t in executors):
        yield (
            f'executors: none has the family "{default_family}" in its families, which cameras get '
            "that name none (inference.family)"
        )
