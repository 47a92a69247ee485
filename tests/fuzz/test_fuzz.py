"""The readers that are fuzzed, on their first inputs and on small changes of them.

`make fuzz` looks further, guided by what code is reached.
"""

import random

import pytest

from tests.fuzz.harnesses import HARNESSES

CHANGED = 150


@pytest.mark.parametrize("name", HARNESSES)
def test_first_inputs_and_what_was_found(name: str) -> None:
    for data in HARNESSES[name].inputs(name):
        HARNESSES[name].run(data)


@pytest.mark.parametrize("name", HARNESSES)
def test_changed_inputs(name: str) -> None:
    harness, rng = HARNESSES[name], random.Random(11)
    firsts = harness.inputs(name)
    for _ in range(CHANGED):
        data = bytearray(rng.choice(firsts))
        for _ in range(rng.randint(1, 4)):
            _change(data, rng)
        harness.run(bytes(data[: harness.length_max]))


def _change(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(4):
        case 0:
            del data[at : at + rng.randint(1, 30)]
        case 1:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        case 2:
            data[at:at] = data[at : at + rng.randint(1, 60)]
        case _ if at < len(data):
            data[at] = rng.randrange(256)
        case _:
            pass
