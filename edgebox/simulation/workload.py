"""Owns the workload format of the batching simulator: lines of JSON in, typed requests out.

Pure: the lines come from wherever the caller reads them. Every error names source, line and field.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.link.deadlines import LaterDeadlines, read_deadlines, written_deadlines
from edgebox.link.fields import shown

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
        self._record: dict[str, Any] = {}
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
        self._record = record
        kind = record.get("type")
        if self._model is None:
            if kind != "model":
                raise self._wrong(f"type: the first line must be the model, like {EXAMPLE}")
            self._model = self._read_model()
        elif kind == "history":
            times = self._history.setdefault(self._text("app"), [])
            times.append(self._number("exec_ms"))
        elif kind == "application":
            self._history.setdefault(self._text("app"), [])
        elif kind == "request":
            self._jobs.append(self._read_job())
        elif kind == "model":
            raise self._wrong("type: there is a second model line")
        else:
            raise self._wrong(
                f'type: must be "history", "application" or "request", not {shown(kind)}'
            )

    def result(self) -> Workload:
        """Return what was read."""
        if self._model is None:
            raise InvalidInputError(f"{self._source}:1: is empty; its first line must be {EXAMPLE}")
        history = {app: tuple(times) for app, times in self._history.items()}
        return Workload(self._model, history, tuple(self._jobs))

    def _read_model(self) -> Model:
        sizes: Any = self._record.get("batch_sizes")
        good = (
            isinstance(sizes, list)
            and len(sizes) > 0
            and all(type(size) is int and 1 <= size <= 4096 for size in sizes)
        )
        if not good or sizes != sorted(set(sizes)):
            raise self._wrong(
                f"batch_sizes: must be rising whole numbers from 1, not {shown(sizes)}"
            )
        c0_ms, c1 = self._number("c0_ms"), self._number("c1")
        if c1 == 0:
            raise self._wrong("c1: must be above 0")
        multiple = self._number("slo_mult") if "slo_mult" in self._record else None
        if multiple == 0:
            raise self._wrong("slo_mult: must be above 0")
        workers = self._whole("workers") if "workers" in self._record else 1
        if workers < 1:
            raise self._wrong("workers: must be at least 1")
        return Model(c0_ms, c1, tuple(sizes), workers, multiple)

    def _read_job(self) -> Job:
        slo_ms, later = self._deadlines()
        job = Job(
            id=self._whole("id"),
            at_ms=self._number("at_ms"),
            app=self._text("app"),
            exec_ms=self._number("exec_ms"),
            slo_ms=slo_ms,
            later=later,
        )
        if job.app not in self._history:
            known = ", ".join(sorted(self._history)) or "none"
            raise self._wrong(
                f"app: {shown(job.app)} has no history or application line before (known: {known})"
            )
        if self._jobs and job.at_ms < self._jobs[-1].at_ms:
            before = self._jobs[-1].at_ms
            raise self._wrong(f"at_ms: {job.at_ms:g} is before the request above ({before:g})")
        if job.id in self._ids:
            raise self._wrong(f"id: {job.id} is there twice")
        self._ids.add(job.id)
        return job

    def _deadlines(self) -> tuple[float, LaterDeadlines]:
        written = self._present("slo_ms")
        if not isinstance(written, list):
            return self._number("slo_ms"), ()
        try:
            return read_deadlines(written, 0, _NUMBER_MAX)
        except InvalidInputError as error:
            raise self._wrong(f"slo_ms{error}") from None

    def _number(self, key: str) -> float:
        value = self._present(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(f"{key}: must be a number, not {shown(value)}")
        if not math.isfinite(value) or not 0 <= value <= _NUMBER_MAX:
            raise self._wrong(f"{key}: must be a number from 0 to 1e12, not {shown(value)}")
        return float(value)

    def _whole(self, key: str) -> int:
        value = self._present(key)
        if type(value) is not int or not 0 <= value < 1 << 53:
            raise self._wrong(f"{key}: must be a whole number from 0, not {shown(value)}")
        return value

    def _text(self, key: str) -> str:
        value = self._present(key)
        if not isinstance(value, str) or not value:
            raise self._wrong(f"{key}: must be a text that is not empty, not {shown(value)}")
        return value

    def _present(self, key: str) -> Any:
        if key not in self._record:
            raise self._wrong(f"{key}: is missing")
        return self._record[key]

    def _wrong(self, what: str) -> InvalidInputError:
        return InvalidInputError(f"{self._source}:{self._line}: {what}")
