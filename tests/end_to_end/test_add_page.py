"""The page that adds a camera, in a real Chromium, and the addresses it is told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from edgebox.app import App
from tests.end_to_end.running import get_json, running, streaming
from tests.end_to_end.test_page import (
    PHONE,
    STICKING_OUT,
    browser,
    open_page,
    street,
)
from tests.end_to_end.wire import WireCamera

__all__ = ["browser"]  # the fixture
