"""Opens the executors of a box, from its configuration and its machine's devices.

Every table of the configuration becomes executors: one for each of its devices and streams. Models
that `auto` cannot run on any GPU get an executor on the CPU, with the reason. An executor that
hangs while it is opened is abandoned, and the others go on. Blocking: opening takes 0.1 s on a CPU,
seconds on a GPU.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from edgebox.app.ray_tables import RayTable, ray_tables
from edgebox.app.remote_executors import remote_specs
from edgebox.config.config_file import Config
from edgebox.config.executor_section import (
    AUTO,
    LOCAL,
    ExecutorParameters,
    unknown_families,
    wrong_families,
)
from edgebox.domain.errors import ConfigError, ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.cuda_libraries import built_with_cuda
from edgebox.inference.executor import RUN_LIMIT_S, SCORE_FLOOR, HungError
from edgebox.inference.executor_spec import ExecutorSpec, open_executor
from edgebox.inference.family import Family
from edgebox.inference.gpus import gpu_names, has_nvidia_device
from edgebox.inference.machine import allowed_cores, offered_threads, usable_cores
from edgebox.inference.model_executor import ExecutorSpecification, ModelExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import Provider, cuda_obstacle
from edgebox.runtime.threads import within

_OPENED_AT_ONCE = 32
"""How many executors elsewhere are opened side by side."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A remote executor that is not in use yet; it is tried while the box runs."""

    spec: ExecutorSpecification
    told: str = ""
    """Why it cannot be used, as people were told; empty: nothing is known against it."""


@dataclass(slots=True)
class Opened:
    """The executors that are open."""

    executors: list[ModelExecutor] = field(default_factory=list)
    specs: dict[ExecutorId, ExecutorSpecification] = field(default_factory=dict)
    """Specification of each executor."""
    absent: list[Absent] = field(default_factory=list)
    """Remote executors that are tried while the box runs."""
    ray_tables: list[RayTable] = field(default_factory=list)
    """Tables of Ray clusters; some bring further executors later."""
    cpu_fallbacks: dict[ExecutorId, ExecutorSpec] = field(default_factory=dict)
    """Replacement on the CPU of each executor on a GPU, once that one cannot be opened any more, if
    the configuration leaves the choice of the device to the box."""
    problems: list[str] = field(default_factory=list)
    """Executors that could not be opened as configured, and why."""
    hung: HungError | None = None
    """The last error of an executor that hung while it was opened."""

    def leave_out(self, hung: Collection[ExecutorId]) -> None:
        """Remove executors that hang."""
        self.executors = [each for each in self.executors if each.id not in hung]

    def close(self) -> None:
        """Close all; blocks."""
        for close in self.closings:
            close()

    @property
    def closings(self) -> list[Callable[[], None]]:
        """What closes each part; every one blocks."""
        return [e.close for e in self.executors] + [table.close for table in self.ray_tables]


def open_executors(config: Config, families: Sequence[Family]) -> Opened:
    """Open all configured executors; blocks.

    Raises:
        ConfigError: this machine lacks configured devices; the message names all.
        ModelError: no family runs on an explicitly configured executor.
        HungError: something hangs, and nothing else can serve the default family.
    """
    opened = Opened()
    names = [family.name for family in families]
    plan = _Plan(config, names)
    tables = []
    try:
        for number, table in enumerate(config.executors):
            opened.problems += unknown_families(table.families, number, names)
        for table, specs in plan.local_specs():
            _open_table(table, specs, plan, families, opened)
            tables.append((table, specs))
        _open_remote(plan.remote_specs(), families, opened)
        opened.ray_tables = ray_tables(config.executors)
        for cluster in opened.ray_tables:
            _open_workers(cluster, families, opened)
        _choose_cpu_fallbacks(tables, plan, opened)
        held = {name for executor in opened.executors for name in executor.families}
        if opened.hung is not None and config.inference.family not in held:
            raise opened.hung
    except BaseException:
        opened.close()
        raise
    return opened


def open_one(config: Config, family: Family, *, score_floor: float = SCORE_FLOOR) -> OnnxExecutor:
    """Open the first executor of this machine for a family, with only that family; blocks.

    Raises:
        ConfigError: this machine lacks configured devices.
        ModelError: the family runs on no executor.
    """
    plan = _Plan(config)
    error = ModelError(f"no executor has the family {family.name} ([[executors]])")
    for table, specs in plan.local_specs():
        of = replace(table, families=(family.name,))
        if table.families and family.name not in table.families:
            continue
        spares = plan.on_cpu(of, [family.name]) if _falls_back(table) else []
        for spec in [*specs, *spares]:
            try:
                return open_local(spec, [family], score_floor=score_floor)
            except ModelError as found:
                error = found
    raise error


def open_local(
    spec: ExecutorSpec, families: Sequence[Family], *, score_floor: float = SCORE_FLOOR
) -> OnnxExecutor:
    """Open an executor of this machine; see `open_in_time`."""
    executor = open_in_time(spec, families, score_floor=score_floor)
    assert isinstance(executor, OnnxExecutor)
    return executor


def open_in_time(
    spec: ExecutorSpecification, families: Sequence[Family], *, score_floor: float = SCORE_FLOOR
) -> ModelExecutor:
    """Open an executor for the first time; it has a time limit, by its files.

    Raises:
        ModelError: nothing runs on it.
        HungError: it hangs and is abandoned.
    """
    limit_s = spec.limit_s(families)
    try:
        return within(
            limit_s,
            lambda: open_executor(spec, families, score_floor=score_floor),
            f"open-{spec.id}",
            lambda late: late.abandon(),
        )
    except TimeoutError:
        raise HungError(
            f"opening {spec.id} did not come back within {limit_s:.0f} s: the device, its "
            "driver or its server hangs"
        ) from None


@dataclass(frozen=True, slots=True)
class _Gpus:
    """The GPUs that CUDA reports."""

    count: int = 0
    obstacle: str = ""
    """Why no GPU can be used; empty: there may be some."""
    hung: HungError | None = None
    """The error of a hung CUDA driver."""
    absent: bool = False
    """Whether nothing here is meant to run on a GPU: CUDA finds none, and ONNX Runtime's build is
    for CPUs or the machine has none."""


def _gpus() -> _Gpus:
    """Query CUDA, whose driver may hang."""

    def ask() -> _Gpus:
        count = len(gpu_names())
        absent = not count and not (built_with_cuda() and has_nvidia_device())
        return _Gpus(count, cuda_obstacle(), absent=absent)

    try:
        return within(RUN_LIMIT_S, ask, "look-for-gpus", lambda late: None)
    except TimeoutError:
        error = HungError(
            f"CUDA cannot be used: its driver did not say within {RUN_LIMIT_S:.0f} s which GPUs "
            "there are"
        )
        return _Gpus(0, str(error), error)


def _not_here(tables: Sequence[ExecutorParameters], gpus: _Gpus) -> Iterator[str]:
    """Yield the configured devices that the machine lacks."""
    allowed = allowed_cores()
    for number, table in enumerate(tables):
        if table.kind != LOCAL:
            continue
        kind, _, index = table.device.partition(":")
        path = f"executors[{number}]"
        if (kind == "cuda" or index) and gpus.hung is None:
            if gpus.obstacle:
                yield f"{path}.device: {gpus.obstacle}"
            elif int(index or 0) >= gpus.count:
                count = gpus.count
                there = f"GPUs 0 to {count - 1}" if count > 1 else f"{count or 'no'} GPU"
                yield f"{path}.device: there is no GPU {index or 0} ({there})"
        if isinstance(table.threads, int) and table.threads > (here := usable_cores()):
            yield (
                f"{path}.threads: {table.threads} is more than the {here} cores that this process "
                'may use; name fewer, or write "all"'
            )
        if table.cores and allowed is None:
            yield f"{path}.cores: threads cannot be pinned on this system; leave it out"
        elif missing := sorted(set(table.cores) - (allowed or frozenset())):
            yield (
                f"{path}.cores: this process may not use {', '.join(map(str, missing))} "
                f"(it may use {', '.join(map(str, sorted(allowed or ())))})"
            )


class _Plan:
    """Assigns names and memory shares per device, across tables."""

    def __init__(self, config: Config, families: Sequence[str] | None = None) -> None:
        """Query the machine.

        Args:
            config: the configuration.
            families: families that can be served; None: unknown, one of them is needed.

        Raises:
            ConfigError: this machine lacks configured devices.
        """
        tables = config.executors or (ExecutorParameters(),)
        local = [table for table in tables if table.kind == LOCAL]
        gpus = _gpus() if any(table.device != "cpu" for table in local) else _Gpus()
        problems = [*_not_here(tables, gpus)]
        if families is not None:
            problems += wrong_families(config.executors, config.inference.family, families)
        if problems:
            raise ConfigError("\n".join([f"{config.source}:", *(f"  {p}" for p in problems)]))
        self._inference = config.inference
        self._tables = tables
        self.gpus = gpus
        """GPUs of the machine, if any are configured."""
        self._numbers: Counter[str] = Counter()
        self._sharing: Counter[str] = Counter()
        for table in local:
            for device in self._devices(table):
                self._sharing[device] += table.streams

    def remote_specs(self) -> list[ExecutorSpecification]:
        """Return the specifications of executors elsewhere.

        Raises:
            ConfigError: a token cannot be read.
        """
        return remote_specs(self._tables)

    def local_specs(self) -> Iterator[tuple[ExecutorParameters, list[ExecutorSpec]]]:
        """Yield the specifications of each table's executors here, in the order of the file.

        Numbers are assigned table by table, so that CPU executors added for earlier tables come
        first.
        """
        for table in self._tables:
            if table.kind != LOCAL:
                continue
            devices = self._devices(table)
            yield table, [self.spec(table, at) for at in devices for _ in range(table.streams)]

    def on_cpu(self, table: ExecutorParameters, families: Sequence[str]) -> list[ExecutorSpec]:
        """Return executors for models that a table's GPUs cannot run."""
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
        threads = table.threads
        if isinstance(threads, str):
            threads = min(len(table.cores) or usable_cores(), usable_cores())
        return ExecutorSpec(
            id=ExecutorId(f"{device}/{number}"),
            provider=provider,
            device_index=int(device.partition(":")[2]) if on_gpu else 0,
            threads=threads,
            thread_counts=offered_threads(threads) if table.threads == AUTO and not on_gpu else (),
            cores=table.cores,
            families=table.families,
            memory_limit_bytes=self._inference.memory_limit_bytes // self._sharing[device],
            engine_folder=self._inference.engine_folder,
            cuda_graphs=table.cuda_graphs and provider == "cuda",
        )

    def _devices(self, table: ExecutorParameters) -> list[str]:
        """Return a table's devices; none where `auto` finds no usable GPU."""
        kind, _, index = table.device.partition(":")
        if kind == "cpu":
            return ["cpu"]
        if self.gpus.obstacle:
            return []
        if index:
            return [f"cuda:{int(index)}"]
        return [f"cuda:{number}" for number in range(self.gpus.count)]


def _open_table(
    table: ExecutorParameters,
    specs: Sequence[ExecutorSpec],
    plan: _Plan,
    families: Sequence[Family],
    opened: Opened,
) -> None:
    """Open a table's executors, and CPU executors for models that its GPUs cannot run."""
    falls_back = _falls_back(table)
    why = (plan.gpus.obstacle or "CUDA finds no GPU") if falls_back and not specs else ""
    if plan.gpus.hung is not None and not specs:
        opened.hung = plan.gpus.hung
        opened.problems.append(f"device = {table.device!r}: {opened.hung}")
    held: set[str] = set()
    for spec in specs:
        try:
            held |= _open(spec, families, opened)
        except ModelError as error:
            hung = isinstance(error, HungError)
            if not falls_back and not hung:
                raise ModelError(f"{error} (device = {table.device!r} was asked for)") from error
            why = why or str(error)
            opened.problems.append(f"{spec.id} cannot be opened: {error}")
    wanted = [f.name for f in families if not table.families or f.name in table.families]
    left = [name for name in wanted if name not in held]
    if falls_back and left:
        # Without any GPU they stand in for the whole table, families of later imports included.
        as_meant = plan.gpus.absent and table.device == AUTO
        note = "" if as_meant else why or f"no GPU can run {', '.join(left)}"
        for spec in plan.on_cpu(table, left if held else table.families):
            _open(spec, families, opened, note=note)


def _open_remote(
    specs: Sequence[ExecutorSpecification], families: Sequence[Family], opened: Opened
) -> None:
    """Open executors elsewhere, side by side, because each may wait for a machine that is away.

    A box starts without those that fail.
    """
    with ThreadPoolExecutor(_OPENED_AT_ONCE, "open-remote") as pool:
        attempts = [pool.submit(open_in_time, spec, families) for spec in specs]
    for spec, attempt in zip(specs, attempts, strict=True):
        try:
            _keep(attempt.result(), spec, opened)
        except ModelError as error:
            opened.absent.append(Absent(spec, str(error)))
            opened.problems.append(f"{spec.id} cannot be opened, and is tried again: {error}")


def _open_workers(table: RayTable, families: Sequence[Family], opened: Opened) -> None:
    """Open the executors of a Ray table; a box starts without those that fail."""
    try:
        specs = table.specs()
    except ModelError as error:
        opened.problems.append(f'kind = "ray": {error}; it is tried again')
        return
    if not specs:
        opened.problems.append(
            'kind = "ray": no node of the cluster has room for a worker; executors follow when '
            "nodes join"
        )
    _open_remote(specs, families, opened)


def _choose_cpu_fallbacks(
    tables: Sequence[tuple[ExecutorParameters, Sequence[ExecutorSpec]]],
    plan: _Plan,
    opened: Opened,
) -> None:
    """Name the replacements of GPUs' executors; last, so that they do not take others' numbers."""
    for table, specs in tables:
        on_gpu = [spec.id for spec in specs if spec.id in opened.specs]
        if _falls_back(table) and on_gpu:
            (stand_in,) = plan.on_cpu(replace(table, streams=1), table.families)
            opened.cpu_fallbacks |= dict.fromkeys(on_gpu, stand_in)


def _falls_back(table: ExecutorParameters) -> bool:
    return table.device.startswith(("auto", "tensorrt"))


def _open(
    spec: ExecutorSpec, families: Sequence[Family], opened: Opened, note: str = ""
) -> set[str]:
    """Open one more executor; return the families that it holds.

    Raises:
        ModelError: it cannot be opened.
    """
    try:
        executor = open_in_time(spec, families)
    except HungError as error:
        opened.hung = error
        raise
    if note:
        executor.note = note
    return _keep(executor, spec, opened)


def _keep(executor: ModelExecutor, spec: ExecutorSpecification, opened: Opened) -> set[str]:
    opened.executors.append(executor)
    opened.specs[executor.id] = spec
    for family, failure in executor.failed.items():
        opened.problems.append(f"{family} does not run on {executor.id}: {failure}")
    return set(executor.families)
