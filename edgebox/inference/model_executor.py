"""What a box needs of an executor that runs model families, and of what opens one."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.inference.executor import Executor
from edgebox.inference.family import Family


@runtime_checkable
class ModelExecutor(Executor, Protocol):
    """An executor that holds families: `OnnxExecutor` here, others elsewhere."""

    memory_limit_bytes: int
    """Above 0, nothing is in memory but what `load` brings there; 0: it holds everything."""
    shares_machine: bool
    """Whether it computes on this machine, so that it slows others here."""

    @property
    def failed(self) -> Mapping[FamilyName, ModelError]:
        """Families that cannot run there, and why."""
        ...

    def warm_each(self, runs: Sequence[tuple[VariantName, int]]) -> None:
        """Run these variants and batch sizes once. Blocks.

        Raises:
            ModelError: one failed.
        """
        ...

    def load(self, path: Path, runs: Sequence[tuple[VariantName, int]] = ()) -> None:
        """Load a file while others run, and run it once in each of these batch sizes. Blocks."""
        ...

    def unload(self, path: Path) -> None:
        """Take a file out of memory."""
        ...

    def add_family(self, family: Family) -> None:
        """Hold one more family from now on. Blocks.

        Raises:
            ModelError: it cannot run there.
        """
        ...

    def drop_family(self, family: Family) -> None:
        """Hold a family no more, and free what it takes; what runs on it is finished. Blocks.

        Another family that has come under its name meanwhile stays.
        """
        ...

    def is_loaded(self, variant: VariantName) -> bool:
        """Return whether a batch of a variant can run."""
        ...

    def largest_of_each_file(self, variants: Iterable[VariantName]) -> list[VariantName]:
        """Return, of these variants, the largest of each file."""
        ...

    def memory_used_bytes(self) -> int | None:
        """Return what is in use of the memory that models take; None: not known."""
        ...


class ExecutorSpecification(Protocol):
    """What opens an executor: opening it again gives the same executor."""

    @property
    def id(self) -> ExecutorId:
        """Its device and its number there."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether it runs elsewhere: then a box starts without it, and tries again."""
        ...

    def holds(self, family: str) -> bool:
        """Return whether a family is to run there."""
        ...

    def limit_s(self, families: Sequence[Family]) -> float:
        """Return how long opening it with these families may take."""
        ...

    def open(self, families: Sequence[Family], *, score_floor: float) -> ModelExecutor:
        """Open it with these families, at least one. Blocks.

        Raises:
            ModelError: none of them can run there.
        """
        ...
