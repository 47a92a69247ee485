"""Owns the workload format of the batching simulator: lines of JSON in, typed requests out.

Pure: the lines come from wherever the caller reads them. Every error names source, line and field.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import (
    FieldReader,
    Notation,
    dotted,
    is_integer,
    shown_in_document,
)
from edgebox.link.deadlines import LaterDeadlines, read_deadlines, written_deadlines

EXAMPLE = '{"type":"model","c0_ms":8,"c1":0.25,"batch_sizes":[1,2,4,8,16],"workers":1}'
_NUMBER_MAX = 1e12


@dataclass(frozen=True, slots=True)
class Model:
    """The model: a batch of k whose longest member takes l alone takes `c0_ms + c1 * k * l`."""

    c0_ms: float
    c1: float
    batch_sizes: tuple[int, ...]
    """Rising."""
    workers: int = 1
    slo_mult: float | None = None
    """The deadlines in multiples of the P99 of the execution times."""
    interference: float = 0.0
    """k: while n workers run, each takes 1 + k (n - 1) times as long."""

    def batch_ms(self, size: int, longest_ms: float) -> float:
        """Return how long a batch takes at a supported size."""
        return self.c0_ms + self.c1 * size * longest_ms


@dataclass(frozen=True, slots=True)
class Job:
    """One request of a workload."""

    id: int
    at_ms: float
    app: str
    exec_ms: float
    """Its time in a batch of its own; the policies do not know it."""
    slo_ms: float
    later: LaterDeadlines = ()
    """Later deadlines, and the utility of an answer by them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A model, the history of its applications, and the requests by time of arrival."""

    model: Model
    history: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()

    def with_slo_multiple(self, multiple: float) -> "Workload":
        """Return the same requests with deadlines scaled in proportion.

        Raises:
            InvalidInputError: the model line does not give the multiple of its deadlines.
        """
        made_with = self.model.slo_mult
        if made_with is None:
            raise InvalidInputError(
                "the workload's model line has no slo_mult, so its deadlines cannot be rescaled"
            )

        def scaled(ms: float) -> float:
            return ms * multiple / made_with

        jobs = tuple(
            replace(
                job,
                slo_ms=scaled(job.slo_ms),
                later=tuple((scaled(by_ms), utility) for by_ms, utility in job.later),
            )
            for job in self.jobs
        )
        return replace(self, model=replace(self.model, slo_mult=multiple), jobs=jobs)

    def with_later(self, later: Sequence[tuple[float, float]]) -> "Workload":
        """Return the same requests with further deadlines, as a multiple and a utility each.

        Raises:
            InvalidInputError: they do not rise from the first deadline on, or their utilities do
                not fall from 1, or the model line does not give the multiple of the first.
        """
        made_with = self.model.slo_mult
        if made_with is None:
            raise InvalidInputError(
                "the workload's model line has no slo_mult, so there is nothing to multiply"
            )
        try:
            _, read = read_deadlines([(made_with, 1.0), *later], 0, _NUMBER_MAX)
        except InvalidInputError as error:
            raise InvalidInputError(f"deadlines{error}") from None
        jobs = tuple(
            replace(
                job,
                later=tuple(
                    (job.slo_ms * multiple / made_with, utility) for multiple, utility in read
                ),
            )
            for job in self.jobs
        )
        return replace(self, jobs=jobs)


def parse_workload(lines: Iterable[bytes | str], source: str) -> Workload:
    """Read a workload.

    Args:
        lines: of the file.
        source: its name in errors.

    Raises:
        InvalidInputError: the first mistake, with source, line and field.
    """
    reader = _Reader(source)
    for number, line in enumerate(lines, 1):
        if line.strip():
            reader.take(number, line)
    return reader.result()


def workload_lines(workload: Workload) -> Iterator[bytes]:
    """Yield the lines that `parse_workload` reads the workload from."""
    model = workload.model
    line: dict[str, Any] = {
        "type": "model", "c0_ms": model.c0_ms, "c1": model.c1,
        "batch_sizes": list(model.batch_sizes), "workers": model.workers,
    }  # fmt: skip
    if model.slo_mult is not None:
        line["slo_mult"] = model.slo_mult
    if model.interference:
        line["interference"] = model.interference
    yield orjson.dumps(line) + b"\n"
    for app, times in workload.history.items():
        if not times:
            yield orjson.dumps({"type": "application", "app": app}) + b"\n"
        for exec_ms in times:
            yield orjson.dumps({"type": "history", "app": app, "exec_ms": exec_ms}) + b"\n"
    for job in workload.jobs:
        line = {
            "type": "request", "id": job.id, "at_ms": job.at_ms, "app": job.app,
            "exec_ms": job.exec_ms,
            "slo_ms": written_deadlines(job.slo_ms, job.later),
        }  # fmt: skip
        yield orjson.dumps(line) + b"\n"


class _Reader:
    """The state of reading a workload line by line."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._line = 0
        self._notation = Notation(lambda path: f"{source}:{self._line}: {dotted(path)}: ")
        self._model: Model | None = None
        self._history: dict[str, list[float]] = {}
        self._jobs: list[Job] = []
        self._ids: set[int] = set()

    def take(self, number: int, line: bytes | str) -> None:
        """Read one line."""
        self._line = number
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._wrong(f"is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise self._wrong("must be a JSON object")
        read = FieldReader((), record, self._notation)
        kind = read.raw("type")
        if self._model is None:
            if kind != "model":
                raise read.wrong("type", f"the first line must be the model, like {EXAMPLE}")
            self._model = _read_model(read)
        elif kind == "history":
            times = self._history.setdefault(read.nonempty("app"), [])
            times.append(_number(read, "exec_ms"))
        elif kind == "application":
            self._history.setdefault(read.nonempty("app"), [])
        elif kind == "request":
            self._jobs.append(self._read_job(read))
        elif kind == "model":
            raise read.wrong("type", "there is a second model line")
        else:
            raise read.wrong("type", 'must be "history", "application" or "request"', kind)

    def result(self) -> Workload:
        """Return what was read."""
        if self._model is None:
            raise InvalidInputError(f"{self._source}:1: is empty; its first line must be {EXAMPLE}")
        history = {app: tuple(times) for app, times in self._history.items()}
        return Workload(self._model, history, tuple(self._jobs))

    def _read_job(self, read: FieldReader) -> Job:
        slo_ms, later = self._deadlines(read)
        job = Job(
            id=read.count("id"),
            at_ms=_number(read, "at_ms"),
            app=read.nonempty("app"),
            exec_ms=_number(read, "exec_ms"),
            slo_ms=slo_ms,
            later=later,
        )
        if job.app not in self._history:
            known = ", ".join(sorted(self._history)) or "none"
            app = shown_in_document(job.app)
            raise read.wrong(
                "app", f"{app} has no history or application line before (known: {known})"
            )
        if self._jobs and job.at_ms < self._jobs[-1].at_ms:
            before = self._jobs[-1].at_ms
            raise read.wrong("at_ms", f"{job.at_ms:g} is before the request above ({before:g})")
        if job.id in self._ids:
            raise read.wrong("id", f"{job.id} is there twice")
        self._ids.add(job.id)
        return job

    def _deadlines(self, read: FieldReader) -> tuple[float, LaterDeadlines]:
        written = read.raw("slo_ms")
        if not isinstance(written, list):
            return _number(read, "slo_ms"), ()
        try:
            return read_deadlines(written, 0, _NUMBER_MAX)
        except InvalidInputError as error:
            raise self._wrong(f"slo_ms{error}") from None

    def _wrong(self, what: str) -> InvalidInputError:
        return InvalidInputError(f"{self._source}:{self._line}: {what}")


def _read_model(read: FieldReader) -> Model:
    sizes: Any = read.raw("batch_sizes")
    good = isinstance(sizes, list) and sizes and all(is_integer(size, 1, 4096) for size in sizes)
    if not good or sizes != sorted(set(sizes)):
        raise read.wrong("batch_sizes", "must be rising whole numbers from 1", sizes)
    c0_ms, c1 = _number(read, "c0_ms"), _number(read, "c1")
    if c1 == 0:
        raise read.wrong("c1", "must be above 0")
    multiple = _number(read, "slo_mult") if "slo_mult" in read else None
    if multiple == 0:
        raise read.wrong("slo_mult", "must be above 0")
    workers = read.count("workers", 1)
    if workers < 1:
        raise read.wrong("workers", "must be at least 1")
    interference = _number(read, "interference") if "interference" in read else 0.0
    return Model(c0_ms, c1, tuple(sizes), workers, multiple, interference)


def _number(read: FieldReader, key: str) -> float:
    return read.number(key, 0, _NUMBER_MAX, expected="a number from 0 to 1e12")
