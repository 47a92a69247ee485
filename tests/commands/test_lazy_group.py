"""Importing without delay leaves the garbage collector as it was."""

import gc

import pytest

from edgebox.commands.lazy_group import importing


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool) -> None:
    try:
        if not enabled:
            gc.disable()
        with importing(), importing():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
