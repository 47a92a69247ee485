"""Executors elsewhere: what opens each of them, from the configuration."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from edgebox.config.executor_section import OPEN_INFERENCE, ExecutorParameters
from edgebox.config.secret_values import secret
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.model_executor import ExecutorSpecification
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec


def remote_specs(tables: Sequence[ExecutorParameters]) -> list[ExecutorSpecification]:
    """Return the specifications of all executors elsewhere, in the order of the file.

    Raises:
        ConfigError: a token cannot be read.
    """
    numbers: Counter[str] = Counter()
    return [
        spec
        for number, table in enumerate(tables)
        if table.kind in _KINDS
        for spec in _KINDS[table.kind](table, f"executors[{number}]", numbers)
    ]


def _open_inference(
    table: ExecutorParameters, path: str, numbers: Counter[str]
) -> Iterator[OpenInferenceSpec]:
    token = partial(secret, f"{path}.token", table.token_file, "")
    token()  # what is wrong with it keeps the box from starting
    ca_file = Path(table.ca_file) if table.ca_file else None
    address = ServerAddress(table.url, token, ca_file, table.fingerprint)
    for _ in range(table.streams):
        number = numbers[address.host]
        numbers[address.host] += 1
        executor = ExecutorId(f"{address.host}/{number}")
        yield OpenInferenceSpec(executor, address, table.model, table.families)


_KINDS: Mapping[
    str, Callable[[ExecutorParameters, str, Counter[str]], Iterator[ExecutorSpecification]]
] = {OPEN_INFERENCE: _open_inference}
