"""Which profiles of the database a box starts with, and which are measured again."""

import logging
from types import SimpleNamespace
from typing import cast

import pytest

from edgebox.app import profile_lookup
from edgebox.app.profile_lookup import stored_profiles
from edgebox.domain.model_family import LatencyProfile
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.storage.database import Storage
from tests.scheduling.scene import CPU, FAMILY, profile

VARIANTS = FAMILY[:2]
SMALL, LARGE = (variant.width_px for variant in VARIANTS)


@pytest.fixture(autouse=True)
def one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_lookup, "fingerprint", lambda executor, family: "this machine")


async def stored(
    storage: Storage, *kept: LatencyProfile, batch_size_max: int
) -> list[LatencyProfile]:
    storage.save_profiles("this machine", kept)
    await storage.flush()
    executor = cast(OnnxExecutor, SimpleNamespace(shares_machine=True, id=CPU))
    family = SimpleNamespace(
        variants=VARIANTS,
        batch_sizes=lambda largest: tuple(1 << at for at in range(largest.bit_length())),
    )
    return await stored_profiles(storage, executor, cast(Family, family), batch_size_max)


async def test_batch_sizes_above_the_limit_are_left_out(storage: Storage) -> None:
    kept = [profile(px, sizes=(1, 2, 4, 8)) for px in (SMALL, LARGE)]
    found = await stored(storage, *kept, batch_size_max=3)
    assert found == [profile(px, sizes=(1, 2)) for px in (SMALL, LARGE)]
    assert await stored(storage, *kept, batch_size_max=64) == kept


async def test_a_profile_of_nothing_but_larger_batches_is_measured_again(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    kept = profile(SMALL, sizes=(1, 2, 4)), profile(LARGE, sizes=(4, 8))
    with caplog.at_level(logging.WARNING):
        assert await stored(storage, *kept, batch_size_max=2) == []
    (message,) = caplog.messages
    assert f"profiles of street-{LARGE} on {CPU}" in message
    assert "measured again" in message


async def test_a_family_of_which_a_variant_is_missing_is_measured_again(storage: Storage) -> None:
    assert await stored(storage, profile(SMALL), batch_size_max=4) == []
