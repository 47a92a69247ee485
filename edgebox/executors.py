"""Decides which executors a box has, from its configuration and from what its machine has.

Every table of the configuration becomes executors: one for each of its devices and streams. What
`auto` cannot run on any GPU, because there is none or because a model does not run there, gets an
executor on the CPU, with the reason. Blocking: opening takes 0.1 s on a CPU, seconds on a GPU.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from edgebox.config import Config
from edgebox.config_executors import ExecutorParameters, unknown_families, wrong_families
from edgebox.domain.errors import ConfigError, ModelError
from edgebox.domain.models import ExecutorId
from edgebox.inference.executor import SCORE_FLOOR, OnnxExecutor
from edgebox.inference.executor_spec import ExecutorSpec, open_executor
from edgebox.inference.family import Family
from edgebox.inference.gpus import gpu_names
from edgebox.inference.machine import allowed_cores
from edgebox.inference.sessions import Provider, cuda_obstacle


@dataclass(slots=True)
class Opened:
    """The executors that are open."""

    executors: list[OnnxExecutor] = field(default_factory=list)
    specs: dict[ExecutorId, ExecutorSpec] = field(default_factory=dict)
    """What each was opened from."""
    stand_ins: dict[ExecutorId, ExecutorSpec] = field(default_factory=dict)
    """What takes over on the CPU when a GPU's executor cannot be opened any more, where the
    configuration leaves the choice of the device to the box."""
    problems: list[str] = field(default_factory=list)
    """What is not where it was to be, and why, for people."""

    def close(self) -> None:
        """Close all; blocks."""
        for executor in self.executors:
            executor.close()


def open_executors(config: Config, families: Sequence[Family]) -> Opened:
    """Open every executor that the configuration asks for; blocks.

    Raises:
        ConfigError: it asks for what this machine has not; the message has all of that.
        ModelError: an executor that was insisted on has not one family that runs on it.
    """
    opened = Opened()
    names = [family.name for family in families]
    plan = _Plan(config, names)
    tables = []
    try:
        for number, (table, specs) in enumerate(plan.specs()):
            opened.problems += unknown_families(table.families, number, names)
            _open_table(table, specs, plan, families, opened)
            tables.append((table, specs))
        _set_stand_ins(tables, plan, opened)
    except BaseException:
        opened.close()
        raise
    return opened


def open_one(config: Config, family: Family, *, score_floor: float = SCORE_FLOOR) -> OnnxExecutor:
    """Open the first executor that holds a family, with nothing but that family; blocks.

    Raises:
        ConfigError: the configuration asks for what this machine has not.
        ModelError: the family runs on no executor.
    """
    plan = _Plan(config)
    error = ModelError(f"no executor has the family {family.name} ([[executors]])")
    for table, specs in plan.specs():
        of = replace(table, families=(family.name,))
        if table.families and family.name not in table.families:
            continue
        spares = plan.on_cpu(of, [family.name]) if _falls_back(table) else []
        for spec in [*specs, *spares]:
            try:
                return open_executor(spec, [family], score_floor=score_floor)
            except ModelError as found:
                error = found
    raise error


def _not_here(tables: Sequence[ExecutorParameters], gpus: int) -> Iterator[str]:
    """Yield what tables ask for and the machine has not."""
    allowed = allowed_cores()
    for number, table in enumerate(tables):
        kind, _, index = table.device.partition(":")
        path = f"executors[{number}]"
        if kind == "cuda" or index:
            why = cuda_obstacle()
            if why:
                yield f"{path}.device: {why}"
            elif int(index or 0) >= gpus:
                there = f"GPUs 0 to {gpus - 1}" if gpus > 1 else f"{gpus or 'no'} GPU"
                yield f"{path}.device: there is no GPU {index or 0} ({there})"
        if table.cores and allowed is None:
            yield f"{path}.cores: threads cannot be pinned on this system; leave it out"
        elif missing := sorted(set(table.cores) - (allowed or frozenset())):
            yield (
                f"{path}.cores: this process may not use {', '.join(map(str, missing))} "
                f"(it may use {', '.join(map(str, sorted(allowed or ())))})"
            )


class _Plan:
    """Gives out names and shares of memory: both are by device, whatever table it is in."""

    def __init__(self, config: Config, families: Sequence[str] | None = None) -> None:
        """Look at the machine.

        Args:
            config: of the box.
            families: all that can be served; None: not known, one of them is asked for.

        Raises:
            ConfigError: the configuration asks for what it has not.
        """
        tables = config.executors or (ExecutorParameters(),)
        gpus = len(gpu_names()) if any(table.device != "cpu" for table in tables) else 0
        problems = [*_not_here(tables, gpus)]
        if families is not None:
            problems += wrong_families(config.executors, config.inference.family, families)
        if problems:
            raise ConfigError("\n".join([f"{config.source}:", *(f"  {p}" for p in problems)]))
        self._inference = config.inference
        self._tables = tables
        self._gpus = gpus
        self._numbers: Counter[str] = Counter()
        self._sharing: Counter[str] = Counter()
        for table in tables:
            for device in self._devices(table):
                self._sharing[device] += table.streams

    def specs(self) -> Iterator[tuple[ExecutorParameters, list[ExecutorSpec]]]:
        """Yield what each table's executors are to be opened from, in the order of the file.

        A table's are numbered when it is its turn, so that what was added for the tables before it
        on the CPU comes before it.
        """
        for table in self._tables:
            devices = self._devices(table)
            yield table, [self.spec(table, at) for at in devices for _ in range(table.streams)]

    def on_cpu(self, table: ExecutorParameters, families: Sequence[str]) -> list[ExecutorSpec]:
        """Return executors for what a table's GPUs cannot run."""
        self._sharing["cpu"] += table.streams
        of = replace(table, device="cpu", families=tuple(families))
        return [self.spec(of, "cpu") for _ in range(table.streams)]

    def spec(self, table: ExecutorParameters, device: str) -> ExecutorSpec:
        """Return the next executor of a device."""
        number = self._numbers[device]
        self._numbers[device] += 1
        on_gpu = device != "cpu"
        provider: Provider = "cpu"
        if on_gpu:
            provider = "tensorrt" if table.device.startswith("tensorrt") else "cuda"
        return ExecutorSpec(
            id=ExecutorId(f"{device}/{number}"),
            provider=provider,
            device_index=int(device.partition(":")[2]) if on_gpu else 0,
            threads=table.threads,
            cores=table.cores,
            families=table.families,
            memory_limit_bytes=self._inference.memory_limit_bytes // self._sharing[device],
            engine_folder=self._inference.engine_folder,
        )

    def _devices(self, table: ExecutorParameters) -> list[str]:
        """Return a table's devices; none where `auto` finds no GPU that can be used."""
        kind, _, index = table.device.partition(":")
        if kind == "cpu":
            return ["cpu"]
        if index:
            return [f"cuda:{int(index)}"]
        if kind in ("auto", "tensorrt") and cuda_obstacle():
            return []
        return [f"cuda:{number}" for number in range(self._gpus)]


def _open_table(
    table: ExecutorParameters,
    specs: Sequence[ExecutorSpec],
    plan: _Plan,
    families: Sequence[Family],
    opened: Opened,
) -> None:
    """Open a table's executors, and those on the CPU for what its GPUs cannot run."""
    falls_back = _falls_back(table)
    why = (cuda_obstacle() or "CUDA finds no GPU") if falls_back and not specs else ""
    held: set[str] = set()
    for spec in specs:
        try:
            executor = open_executor(spec, families)
        except ModelError as error:
            if not falls_back:
                raise ModelError(f"{error} (device = {table.device!r} was asked for)") from error
            why = why or str(error)
            opened.problems.append(f"{spec.id} cannot be opened: {error}")
            continue
        held |= set(executor.families)
        _keep(executor, spec, opened)
    wanted = [f.name for f in families if not table.families or f.name in table.families]
    left = [name for name in wanted if name not in held]
    if falls_back and left:
        for spec in plan.on_cpu(table, left):
            executor = open_executor(spec, families)
            executor.note = why or f"no GPU can run {', '.join(left)}"
            _keep(executor, spec, opened)


def _set_stand_ins(
    tables: Sequence[tuple[ExecutorParameters, Sequence[ExecutorSpec]]],
    plan: _Plan,
    opened: Opened,
) -> None:
    """Name what is to take over from GPUs; last, so that it takes no number of what is there."""
    for table, specs in tables:
        on_gpu = [spec.id for spec in specs if spec.id in opened.specs]
        if _falls_back(table) and on_gpu:
            (stand_in,) = plan.on_cpu(replace(table, streams=1), table.families)
            opened.stand_ins |= dict.fromkeys(on_gpu, stand_in)


def _falls_back(table: ExecutorParameters) -> bool:
    return table.device.startswith(("auto", "tensorrt"))


def _keep(executor: OnnxExecutor, spec: ExecutorSpec, opened: Opened) -> None:
    opened.executors.append(executor)
    opened.specs[executor.id] = spec
    for family, error in executor.failed.items():
        opened.problems.append(f"{family} does not run on {executor.id}: {error}")
