"""The state document's parts that a live box rarely shows."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import orjson
import pytest
from jsonschema import Draft202012Validator

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Group, Plan
from edgebox.domain.requests import CameraId
from edgebox.link.bandwidth import EstimatorKind
from edgebox.runtime.availability import AbsentExecutor
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.last_plan import LastPlan
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.tracking.settings import TrackingDefaults
from edgebox.web import prometheus
from edgebox.web.prometheus import metrics_text
from edgebox.web.state_document import _planner, group_documents, state_document
from edgebox.web.state_types import Group as GroupDocument
from edgebox.web.typed_schemas import schema_of
from tests.runtime.driving import Bench, ManualExecutor
from tests.scheduling.scene import CPU, camera


def test_executors_that_work_apart() -> None:
    tight = Group((ExecutorId("gpu/0"),), (VariantName("street-256"),), 12_345_678)
    rest = Group((ExecutorId("gpu/1"), ExecutorId("gpu/2")), (VariantName("street-608"),), 0)
    documents = group_documents((tight, rest))
    assert documents[0] == {
        "executors": ("gpu/0",),
        "variants": ("street-256",),
        "steal_budget_ms": 12.35,
    }
    for document in orjson.loads(orjson.dumps(documents)):
        Draft202012Validator(schema_of(GroupDocument).definition).validate(document)


@pytest.mark.parametrize(
    ("interval_s", "took_s", "age_s", "connected", "overdue"),
    [
        (0.5, 0.1, 10.4, True, False),
        (0.5, 0.1, 10.6, True, True),
        (0.5, 0.1, 3600.0, False, False),
        (60.0, 0.1, 69.0, True, False),
        (60.0, 0.1, 71.0, True, True),
        (0.5, 3.0, 24.0, True, False),
        (0.5, 3.0, 26.0, True, True),
    ],
)
def test_a_plan_is_overdue_once_the_next_one_should_long_be_there(
    interval_s: float, took_s: float, age_s: float, connected: bool, overdue: bool
) -> None:
    """Plans are an interval apart, and five times as long as they take."""
    parameters = SchedulerParameters(planning_interval_ns=round(interval_s * 1e9))
    scheduler = SimpleNamespace(parameters=parameters, groups=())
    driver = SimpleNamespace(clock_ns=lambda: round(age_s * 1e9), scheduler=scheduler)
    last = LastPlan(Plan(0), round(took_s * 1e9), 1)
    seen = ["gate"] if connected else []
    box = SimpleNamespace(last_plan=last, driver=driver, ready=True, connected=seen)
    assert _planner(cast(Box, box))["overdue"] is overdue


def box_with_cameras(count: int) -> Box:
    """Return a box that tracks all of its cameras, which have been here and have left."""
    box = Box(
        name="test",
        version="1",
        cameras_max=count,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda event: None,
        on_camera=lambda record: None,
        tracking=TrackingDefaults(cameras=("*",)),
    )
    box.attach(Bench(ManualExecutor()).driver, {CPU: {}})
    for number in range(count):
        of = replace(camera(), id=CameraId(f"camera-{number}"))
        box.cameras[of.id] = CameraRecord(of, "test", None, None)
    return box


async def test_an_executor_that_the_box_started_without_is_shown_as_one_that_is_lost() -> None:
    box = box_with_cameras(0)
    now_ns = box.driver.clock_ns()
    box.absent[ExecutorId("far:1/0")] = AbsentExecutor("no answer", now_ns, now_ns + 10**9)
    document = await state_document(box, MachineMeasurements())
    here, there = document["box"]["executors"]
    assert (here["id"], here["state"]) == (CPU, "up")
    assert (there["id"], there["state"], there["provider"]) == ("far:1/0", "waiting", "")
    assert there["last_error"] is not None
    assert there["last_error"]["text"] == "no answer"
    assert there["retry_s"] is not None
    assert there["retry_s"] <= 1
    exposed = await metrics_text(box, MachineMeasurements())
    assert b'edgebox_executor_up{executor="cpu/0"} 1.0' in exposed
    assert b'edgebox_executor_up{executor="far:1/0"} 0.0' in exposed


async def state(box: Box) -> None:
    document = await state_document(box, MachineMeasurements())
    assert [each["id"] for each in document["cameras"]] == [f"camera-{at}" for at in range(7)]


async def metrics(box: Box) -> None:
    text = await metrics_text(box, MachineMeasurements())
    assert b'camera="camera-6"' in text
    assert b'camera="camera-7"' not in text


@pytest.mark.parametrize("look", [state, metrics])
async def test_a_camera_that_is_forgotten_while_documents_are_made_is_left_out(
    look: Callable[[Box], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_CAMERAS_PER_SLICE", 4)
    box = box_with_cameras(8)
    looking = asyncio.ensure_future(look(box))
    await asyncio.sleep(0)  # it has written the first three
    box.forget(CameraId("camera-7"))
    await looking
    assert CameraId("camera-7") not in box.metrics.cameras
