"""What programs and people are told while an executor gets other profiles."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from edgebox.domain.model_family import LatencyProfile
from edgebox.runtime.box import Box
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.scheduling.events import ExecutorStarted
from edgebox.web.camera_pictures import largest_in_time, worst_latency_ns
from edgebox.web.model_list import _in_memory
from edgebox.web.state_document import state_document
from edgebox.web.state_types import BoxState
from tests.runtime.driving import Bench, ManualExecutor
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, name, profile
from tests.web.sites import box_that_waits

ALL = {name(px): profile(px) for px in MEDIAN_MS}
WITHOUT_416 = {variant: of for variant, of in ALL.items() if variant != name(416)}


@pytest.fixture
async def box() -> Box:
    """Return a box with an executor that runs all variants."""
    made = box_that_waits()
    made.attach(Bench(ManualExecutor()).driver, {CPU: ALL})
    return made


def core_runs(box: Box, profiles: Iterable[LatencyProfile]) -> None:
    """Let the executor come back with some of its profiles, as without a variant that hangs."""
    box.driver.feed(ExecutorStarted(CPU, tuple(profiles)))


async def shown(box: Box) -> BoxState:
    return (await state_document(box, MachineMeasurements()))["box"]


async def test_a_picture_gets_the_largest_variant_that_the_core_can_run_now(box: Box) -> None:
    core_runs(box, WITHOUT_416.values())
    sizes = sorted(MEDIAN_MS)
    assert largest_in_time(box, FAMILY, (416, 234), 1_000) == name(sizes[sizes.index(416) + 1])
    assert worst_latency_ns(box, name(416)) is None
    assert _in_memory(box, name(416)) == []
    assert _in_memory(box, name(256)) == [CPU]


async def test_what_was_measured_of_a_variant_is_shown_for_as_long_as_it_has_a_profile(
    box: Box,
) -> None:
    for px in (256, 416):
        box.driver.measurements.batches.ran(name(px), CPU, 1, MS)
        box.driver.measurements.applications.ran("gates", name(px), CPU, 1, MS)
    box.set_profiles(CPU, WITHOUT_416)
    document = await shown(box)
    assert [each["variant"] for each in document["latencies"]] == [name(256)]
    assert [each["variant"] for each in document["applications"]] == [name(256)]
    core_runs(box, WITHOUT_416.values())
    assert (await shown(box))["latencies"] == document["latencies"]


async def test_a_variant_that_was_measured_again_is_compared_with_its_new_times(box: Box) -> None:
    fewer = replace(ALL[name(416)], quantiles_ns={1: ALL[name(416)].quantiles_ns[1]})
    for size in (1, 4):
        for px in (256, 416):
            box.driver.measurements.batches.ran(name(px), CPU, size, MS)
            box.driver.measurements.applications.ran("gates", name(px), CPU, size, MS)
    box.set_profiles(CPU, {**ALL, name(416): fewer})
    # A batch of the old largest size was under way.
    box.driver.measurements.batches.ran(name(416), CPU, 4, MS)
    box.driver.measurements.applications.ran("gates", name(416), CPU, 4, MS)
    document = await shown(box)
    found = [(each["variant"], each["batch_size"]) for each in document["latencies"]]
    assert found == [(name(256), 1), (name(256), 4)]
    assert [each["variant"] for each in document["applications"]] == [name(256)]
    box.driver.measurements.batches.ran(name(416), CPU, 1, 3 * MS)
    box.driver.measurements.applications.ran("gates", name(416), CPU, 1, 3 * MS)
    document = await shown(box)
    (of_416,) = [each for each in document["latencies"] if each["variant"] == name(416)]
    assert (of_416["batch_size"], of_416["count"], of_416["measured_ms"]["p50"]) == (1, 1, 3)
    counts = {each["variant"]: each["count"] for each in document["applications"]}
    assert counts == {name(256): 2, name(416): 1}
