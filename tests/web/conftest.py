"""The event loops of these tests."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

_ON_BOTH = ("test_listening", "test_repeated_requests")
"""Modules whose tests handle transports, which are not the same on the two loops."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run what handles transports on a box's loop too, and the rest on asyncio's own."""
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
        "asyncio": asyncio.new_event_loop
    }
    if item.path.stem in _ON_BOTH:
        factories["uvloop"] = uvloop.new_event_loop
    return factories
