"""End-to-end tests run on the loop that the `edgebox` command runs on, and share a browser."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvloop
from playwright.async_api import Browser

from edgebox.config.config_file import Config
from edgebox.inference.profiler import ProfilingLimits
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.web.page_folder import PAGE
from tests.conftest import BUNDLED_FOLDERS, PATIENCE_S, PROFILE_S
from tests.end_to_end.browsing import launched, lent
from tests.end_to_end.on_time_shares import Reports
from tests.end_to_end.test_residency import family_of_files


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def patient_supervision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no executor be given up because a busy machine gives it no time."""
    original = Config.scheduler_parameters

    def patient(config: Config, cores: int = 0) -> SchedulerParameters:
        return replace(original(config, cores), batch_limit_min_ns=round(PATIENCE_S * 1e9))

    monkeypatch.setattr(Config, "scheduler_parameters", patient)


@pytest.fixture(autouse=True)
def on_time_shares(
    record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report with each test what its faults cost the other cameras."""
    monkeypatch.setattr(Reports, "add", record_property)


PROFILING_LIMITS = "edgebox.app.startup.ProfilingLimits"
BURST_NS = "edgebox.inference.interference_measurement._BURST_NS"


def hurried(budget_s: float) -> ProfilingLimits:
    """Return the limits of a box that measures for a tenth of the second that tests ask for.

    A second is the least that a box can be told: small models ran some hundred times in it.
    """
    return ProfilingLimits(budget_s if budget_s > PROFILE_S else 0.1 * budget_s)


@pytest.fixture(autouse=True)
def hurried_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have boxes measure in a hurry what is new to them."""
    monkeypatch.setattr(PROFILING_LIMITS, hurried)
    monkeypatch.setattr(BURST_NS, 5_000_000)


@pytest.fixture
def few_sizes(
    request: pytest.FixtureRequest, small_families: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have boxes come with the three smallest sizes of the bundled families.

    All sixteen take some seconds to measure, on each executor that is not measured already, and
    pictures that have the time are put into large ones: few do for tests that ask neither how good
    answers are nor which size is chosen. One that does is marked `all_sizes`.
    """
    if request.node.get_closest_marker("all_sizes"):
        return
    monkeypatch.setattr(BUNDLED_FOLDERS, lambda: small_families)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """Run one browser for all tests of a process, which run on one loop for that."""
    assert (PAGE / "index.html").is_file(), "build the page first: make page"
    async with launched() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chromium: Browser) -> AsyncIterator[Browser]:
    async with lent(chromium) as browser:
        yield browser


@pytest.fixture
def no_other_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let boxes have the families of their configuration only, which takes less to measure."""
    monkeypatch.setattr(BUNDLED_FOLDERS, list)


@pytest.fixture
def gate(tmp_path: Path) -> dict[str, Any]:
    """Return the configuration of a box with one family of one size."""
    folder = family_of_files(tmp_path / "gate", "gate", (192,))
    return {"inference__families": [str(folder)], "inference__family": "gate"}


@pytest.fixture
def quick_supervision(monkeypatch: pytest.MonkeyPatch, patient_supervision: None) -> None:
    """Let a batch hang after two seconds, however short its profile is."""
    original = Config.scheduler_parameters

    def quick(config: Config, cores: int = 0) -> SchedulerParameters:
        return replace(original(config, cores), batch_limit_min_ns=2_000_000_000)

    monkeypatch.setattr(Config, "scheduler_parameters", quick)
