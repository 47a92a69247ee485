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
from tests.web.sites import box_that_waits

SPEC = OpenInferenceSpec(ExecutorId("box:1/0"), ServerAddress("http://box:1"), "{variant}")


class Adder:
    """Fails for a while, each time for a given reason."""

    def __init__(self, *reasons: str) -> None:
        self._reasons: Iterator[str] = iter(reasons)
        self.shown: list[str | None] = []
        """What the box shows as each attempt begins."""
        self.box = box_that_waits()

    async def open(self, spec: object) -> ModelExecutor:
        shown = self.box.absent.get(SPEC.id)
        assert shown is None or shown.retry_ns is None, "it is being tried"
        self.shown.append(None if shown is None else shown.because)
        for reason in self._reasons:
            raise ModelError(reason)
        return cast(ModelExecutor, SimpleNamespace(device="a box"))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_executors, "Backoff", lambda *_: SimpleNamespace(wait_s=lambda: 0.0))


async def told(absent: Absent, adder: Adder) -> list[tuple[str, str]]:
    published: list[tuple[str, str]] = []
    adder.box.notices = cast(Notices, SimpleNamespace(publish=lambda *said: published.append(said)))
    added: list[ModelExecutor] = []

    async def on_added(executor: ModelExecutor) -> None:
        added.append(executor)

    late = LateExecutors(Opened(absent=[absent]), cast(ExecutorAdder, adder), adder.box, on_added)
    await late.run()
    assert len(added) == 1
    assert not adder.box.absent
    return published


async def test_what_was_told_at_the_start_is_not_told_again() -> None:
    adder = Adder("no", "no", "another", "another", "no")
    assert await told(Absent(SPEC, "no"), adder) == [
        ("warning", "box:1/0 cannot be opened yet: another"),
        ("warning", "box:1/0 cannot be opened yet: no"),
        ("info", "box:1/0 is there: a box"),
    ]
    assert adder.shown == ["no", "no", "no", "another", "another", "no"]


async def test_one_that_was_never_measured_is_announced() -> None:
    adder = Adder()
    assert await told(Absent(SPEC), adder) == [
        ("info", "box:1/0 was never measured: that is done while the box serves"),
        ("info", "box:1/0 is there: a box"),
    ]
    assert adder.shown == [None], "nothing is wrong with it"
