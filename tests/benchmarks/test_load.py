"""The search for how many cameras a core carries."""

import pytest

from benchmarks.load import highest


@pytest.mark.parametrize("limit", [0, 31, 32, 33, 100, 511, 4095, 4096, 5000])
async def test_the_limit_is_found_to_a_tenth_with_few_measurements(limit: int) -> None:
    tried: list[int] = []

    async def holds(number: int) -> bool:
        tried.append(number)
        return number <= limit

    found = await highest(holds, 32, 1.1, 4096)
    reached = min(limit, 4096)
    assert found == 0 if reached < 32 else found <= reached <= 1.1 * found
    assert max(tried) <= 4096
    assert len(tried) == len(set(tried)) <= 13
