"""Executors in workers of a Ray cluster: what opens them, from one table of the configuration."""

from collections.abc import Sequence

from edgebox.config.executor_section import ALL, RAY, ExecutorParameters, custom_resources
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.remote.ray_connection import RayClusterView
from edgebox.inference.remote.ray_executor import RayNeeds, RaySpec


class RayTable:
    """One table: a number of workers, or as many as the cluster has room for at the moment."""

    def __init__(self, table: ExecutorParameters, number: int) -> None:
        """Connect to nothing yet.

        Args:
            table: the table.
            number: its number among those of this kind, from 0; it is in the executors' names.
        """
        self._table = table
        self._device = "ray" if number == 0 else f"ray-{number + 1}"
        custom = tuple(custom_resources(table.resources).items())
        self._needs = RayNeeds(table.num_cpus, table.num_gpus, custom)
        self._view = RayClusterView(table.address, self._needs.document)

    @property
    def grows(self) -> bool:
        """Whether nodes that join later bring further executors."""
        return self._table.count == ALL

    def specs(self) -> list[RaySpec]:
        """Return what opens its executors at the moment; blocks where it grows.

        Raises:
            ModelError: the cluster cannot be used.
        """
        table = self._table
        count = self._view.workers() if self.grows else int(table.count)
        return [
            RaySpec(
                ExecutorId(f"{self._device}:{number}/0"),
                table.address,
                self._needs,
                families=table.families,
            )
            for number in range(count)
        ]

    def close(self) -> None:
        """Disconnect."""
        self._view.close()


def ray_tables(tables: Sequence[ExecutorParameters]) -> list[RayTable]:
    """Return the tables of this kind, in the order of the file."""
    of_ray = [table for table in tables if table.kind == RAY]
    return [RayTable(table, number) for number, table in enumerate(of_ray)]
