"""The section that says which executors a box has: where models run, and which.

Limits: what depends on the machine (whether a core or a GPU is there) is found out at the start of
the box, by `edgebox.app.executor_setup`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgebox.config.keys import key

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


@dataclass(frozen=True, slots=True)
class ExecutorParameters:
    """Executors on one kind of device. Without any such table there is one with the defaults."""

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
    families: tuple[str, ...] = key((), "Model families of these executors; empty: all")


def contradictions(executors: Sequence[ExecutorParameters]) -> Iterator[str]:
    """Yield what is wrong with executors although each key alone is right."""
    for number, table in enumerate(executors):
        path, cores = f"executors[{number}]", table.cores
        twice = sorted({core for core in cores if cores.count(core) > 1})
        if twice:
            yield f"{path}.cores: {', '.join(map(str, twice))} is there twice"
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
