"""A running box while its models change: a camera that is being admitted loses its own."""

from types import SimpleNamespace
from typing import cast

import pytest

from edgebox.domain.model_family import FamilyName
from edgebox.domain.overrides import Overrides
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, DropReason
from edgebox.inference.family import Family
from edgebox.link.bandwidth import EstimatorKind
from edgebox.link.from_camera import FrameHeader
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import Session
from edgebox.runtime.frames import ArrivedFrame, FrameResult, PendingFrame, Refusal
from edgebox.runtime.model_choice import ModelChoice
from edgebox.runtime.refusals import UnavailableError
from edgebox.scheduling.events import CameraDisconnected
from tests.runtime.driving import Bench, ManualExecutor, settle
from tests.scheduling.scene import FAMILY, STREET, camera


async def test_naming_the_model_that_a_camera_already_has_leaves_its_connection() -> None:
    bench = Bench(ManualExecutor())
    box = Box(
        name="box",
        version="1",
        cameras_max=4,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda _: None,
        on_camera=lambda _: None,
    )
    other = FamilyName("yard")
    families = {
        name: cast(Family, SimpleNamespace(name=name, offered=FAMILY)) for name in (STREET, other)
    }
    box.offer(ModelChoice(families, STREET))
    box.attach(bench.driver, {})
    told: list[str] = []
    session = SimpleNamespace(
        address="10.0.0.7", reconnect=told.append, advised=lambda advice: None, replaced=None
    )
    await box.open_camera(camera("gate"), "agent", None, cast(Session, session))
    box.override(CameraId("gate"), Overrides(family=STREET))
    assert not told
    assert box.cameras[CameraId("gate")].overrides.family == STREET
    box.override(CameraId("gate"), Overrides(family=other))
    assert told == ["its model was changed on the box"]
    await bench.driver.stop(1)


async def test_a_camera_whose_model_is_removed_while_it_is_admitted_is_told_to_try_again() -> None:
    def admits(snapshot: PlanningSnapshot, of: Camera) -> None:
        """Be slow: the box goes on meanwhile."""
        box.offer(ModelChoice({}, STREET))

    bench = Bench(ManualExecutor())
    box = Box(
        name="box",
        version="1",
        cameras_max=4,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda _: None,
        on_camera=lambda _: None,
        admission=admits,
    )
    family = cast(Family, SimpleNamespace(name=STREET, offered=FAMILY))
    box.offer(ModelChoice({STREET: family}, STREET))
    box.attach(bench.driver, {})
    session = cast(Session, SimpleNamespace(address="10.0.0.7"))
    with pytest.raises(UnavailableError, match="street cannot run now: it was removed"):
        await box.open_camera(camera("yard"), "agent", None, session)
    assert not box.cameras
    await bench.driver.stop(1)


async def test_a_frame_ends_whose_camera_left_and_whose_model_was_removed_meanwhile() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    box = Box(
        name="box",
        version="1",
        cameras_max=4,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda _: None,
        on_camera=lambda _: None,
    )
    family = SimpleNamespace(name=STREET, offered=FAMILY, labels=("person",))
    box.offer(ModelChoice({STREET: cast(Family, family)}, STREET))
    box.attach(bench.driver, {})
    session = SimpleNamespace(address="10.0.0.7", advised=lambda advice: None, replaced=None)
    record = await box.open_camera(camera("gate"), "agent", None, cast(Session, session))
    now_ns = bench.driver.clock_ns()
    header = FrameHeader(1, now_ns, now_ns, 1280, 720, 1)
    endings: list[FrameResult] = []
    frames: list[PendingFrame] = []
    box.observers.add(lambda record, frame, ending: frames.append(frame))
    arrived = ArrivedFrame(header, b"jpeg", 36, (416, 234))
    box.submit_frame(record, arrived, lambda frame, ending: endings.append(ending))
    assert not endings
    (batch,) = executor.batches
    bench.driver.feed(CameraDisconnected(record.camera.id))
    box.offer(ModelChoice({}, STREET))
    batch.complete()
    await settle()
    (ending,) = endings
    assert isinstance(ending, Refusal)
    assert ending.reason is DropReason.DEPARTED
    (frame,) = frames
    assert (frame.number, frame.family, frame.sender) == (1, STREET, record.camera.id)
    await bench.driver.stop(1)
