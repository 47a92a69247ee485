"""Factors of thread counts at a start: what cannot be measured costs nothing but the choice."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgebox.app import core_profiles
from edgebox.app.core_profiles import provide_core_factors
from edgebox.app.interference_profiles import Measuring
from edgebox.domain.core_factors import MeasuredCoreFactor
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import VariantName
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import CPU as SESSION_CPU
from edgebox.storage.database import Storage
from tests.scheduling.scene import CPU, name, profile

PROFILE = profile(128)


class Stored:
    """A database that holds what the test says."""

    def __init__(self, *found: MeasuredCoreFactor) -> None:
        self.found = list(found)
        self.saves = 0

    async def load_core_factors(self, *_: object) -> list[MeasuredCoreFactor]:
        return self.found

    def save_core_factors(self, *factors: Any) -> None:
        self.saves += 1
        self.found = list(factors[-1])


def executor(counts: tuple[int, ...] = (1, 2), threads: int = 2) -> OnnxExecutor:
    return cast(
        OnnxExecutor,
        SimpleNamespace(
            id=CPU, thread_counts=counts, cpu_threads=threads, provider=SESSION_CPU,
            is_loaded=lambda of: of == name(128),
        ),
    )  # fmt: skip


FAMILY = cast(
    Family,
    SimpleNamespace(
        name="street",
        files={name(128): 0, name(256): 0},
        variants=(SimpleNamespace(name=name(128)), SimpleNamespace(name=name(256))),
    ),
)


@pytest.fixture(autouse=True)
def _fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_profiles, "fingerprint", lambda *_: "any")


async def provide(
    stored: Stored, of: OnnxExecutor, *profiles: Any
) -> tuple[dict[Any, Any], list[str]]:
    known = {CPU: list(profiles or (PROFILE,))}
    measuring = Measuring(storage=cast(Storage, stored), profile_s=1)
    return await provide_core_factors([of], [FAMILY], known, measuring)


def measured(monkeypatch: pytest.MonkeyPatch, *factors: tuple[int, float]) -> None:
    """The machine measures these: batch size and factor of one thread."""
    found = [MeasuredCoreFactor(name(128), n, 1, factor) for n, factor in factors]
    monkeypatch.setattr(core_profiles, "measure_core_factors", lambda *_: found)


async def test_sizes_between_those_measured_follow_from_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(monkeypatch, (1, 1.2), (4, 1.9))
    stored = Stored()
    found, problems = await provide(stored, executor())
    (known,) = found[CPU]
    assert problems == []
    assert known.core_factor(1, 1) == 1.2 and known.core_factor(4, 1) == 1.9
    assert 1.2 <= known.core_factor(2, 1) <= 1.9
    # What was stored is not measured again.
    monkeypatch.setattr(core_profiles, "measure_core_factors", None)
    assert await provide(stored, executor()) == (found, [])
    assert stored.saves == 1


async def test_a_variant_that_is_not_in_memory_gets_the_greatest_factors_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(monkeypatch, (1, 1.2), (4, 1.9))
    found, _ = await provide(Stored(), executor(), PROFILE, profile(256))
    assert [known.core_factor(1, 1) for known in found[CPU]] == [1.2, 1.9]


async def test_what_cannot_be_measured_runs_on_all_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> list[MeasuredCoreFactor]:
        raise ModelError("a batch failed")

    monkeypatch.setattr(core_profiles, "measure_core_factors", fails)
    found, (problem,) = await provide(Stored(), executor())
    assert "uses all its threads for street" in problem and "a batch failed" in problem
    (known,) = found[CPU]
    assert known.thread_counts == (2,), "no choice; the core knows what its batches take"


async def test_an_executor_that_hangs_is_not_taken_for_a_model_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hangs(*_: object) -> list[MeasuredCoreFactor]:
        raise HungError("a batch did not come back")

    monkeypatch.setattr(core_profiles, "measure_core_factors", hangs)
    with pytest.raises(HungError):
        await provide(Stored(), executor())


async def test_fixed_threads_are_measured_for_nothing() -> None:
    stored = Stored()
    found, problems = await provide(stored, executor((), threads=3))
    assert (found[CPU][0].thread_counts, problems, stored.saves) == ((3,), [], 0)


async def test_stored_factors_of_another_set_of_sizes_are_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(monkeypatch, (1, 1.2), (4, 1.9))
    stored = Stored(MeasuredCoreFactor(VariantName("street-128"), 1, 1, 5.0))
    found, _ = await provide(stored, executor())
    assert found[CPU][0].core_factor(1, 1) == 1.2
