"""Remote executors that come after the start, and what people are told of them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from edgebox.app import late_executors
from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_setup import Absent, Opened
from edgebox.app.late_executors import LateExecutors
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec
from edgebox.runtime.notices import Notices

SPEC = OpenInferenceSpec(ExecutorId("box:1/0"), ServerAddress("http://box:1"), "{variant}")


class Adder:
    """Fails for a while, each time for a given reason."""

    def __init__(self, *reasons: str) -> None:
        self._reasons: Iterator[str] = iter(reasons)

    async def open(self, spec: object) -> ModelExecutor:
        for reason in self._reasons:
            raise ModelError(reason)
        return cast(ModelExecutor, SimpleNamespace(device="a box"))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_executors, "Backoff", lambda *_: SimpleNamespace(wait_s=lambda: 0.0))


async def told(absent: Absent, *reasons: str) -> list[tuple[str, str]]:
    published: list[tuple[str, str]] = []
    notices = cast(Notices, SimpleNamespace(publish=lambda *said: published.append(said)))
    adder = cast(ExecutorAdder, Adder(*reasons))
    added: list[ModelExecutor] = []

    async def on_added(executor: ModelExecutor) -> None:
        added.append(executor)

    await LateExecutors(Opened(absent=[absent]), adder, notices, on_added).run()
    assert len(added) == 1
    return published


async def test_what_was_told_at_the_start_is_not_told_again() -> None:
    assert await told(Absent(SPEC, "no"), "no", "no", "another", "another", "no") == [
        ("warning", "box:1/0 cannot be opened yet: another"),
        ("warning", "box:1/0 cannot be opened yet: no"),
        ("info", "box:1/0 is there: a box"),
    ]


async def test_one_that_was_never_measured_is_announced() -> None:
    assert await told(Absent(SPEC)) == [
        ("info", "box:1/0 was never measured: that is done while the box serves"),
        ("info", "box:1/0 is there: a box"),
    ]
