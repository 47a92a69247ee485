"""A real box that is started again knows the execution times that it had learned."""

from pathlib import Path

from edgebox.domain.model_family import VariantName
from edgebox.scheduling.distributions import SAMPLES_MIN
from tests.end_to_end.running import get_json, post, running
from tests.end_to_end.wire import JPEG

SMALL = VariantName("street-128")


async def test_learned_times_outlive_a_restart(database: Path) -> None:
    async with running(database) as app:
        for _ in range(SAMPLES_MIN + 5):
            query = {"deadline_ms": 30_000, "variant": SMALL, "app": "night"}
            assert (await post(app, JPEG, query))[0] == 200
        learned = app.box.driver.scheduler.times.learning.distribution(SMALL, "night")
        assert learned is not None
        before = learned.quantile(0.5)
        assert learned.samples >= SAMPLES_MIN
    async with running(database) as app:
        again = app.box.driver.scheduler.times.learning.distribution(SMALL, "night")
        assert again is not None
        assert again.samples >= SAMPLES_MIN
        assert 0.5 * before <= again.quantile(0.5) <= 2 * before
        _, state = await get_json(app, "/v1/state")
        rows = [row for row in state["box"]["applications"] if row["app"] == "night"]
        assert [(row["variant"], row["count"], row["measured_ms"]) for row in rows] == [
            (SMALL, 0, None)
        ]
        assert rows[0]["expected_ms"]["p50"] > 0
