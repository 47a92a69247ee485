"""What is described of the timeline."""

from edgebox.scheduling.events import ExecutorGone
from edgebox.web import timeline_routes
from edgebox.web.openapi import document
from edgebox.web.timeline_documents import drop_document
from tests.runtime.driving import Bench, ManualExecutor
from tests.scheduling.scene import CPU


async def test_a_frame_that_no_executor_can_run_is_dropped_for_a_reason_that_is_described() -> None:
    bench = Bench(ManualExecutor())
    bench.driver.feed(ExecutorGone(CPU))
    bench.submit()
    _, (drop,) = bench.driver.decisions.timeline.drops.after(0)
    schemas = document(timeline_routes.ROUTES, "1")["components"]["schemas"]
    described = schemas["DroppedRequest"]["properties"]["reason"]["enum"]
    reason = drop_document(drop)["reason"]
    assert reason == "failed"
    assert reason in described
    assert "sender" not in described
