"""What a webhook is told by a real box with a real camera, and what the box says about that."""

from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from edgebox.app.composition import App
from edgebox.config.config_file import load
from tests.conftest import settings
from tests.end_to_end.running import get_json, streaming, until
from tests.end_to_end.streets import street_source
from tests.notifications.receiver import SECRET, receiving


async def test_a_box_tells_its_day(database: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET, encoding="utf-8")
    file = tmp_path / "edgebox.toml"
    async with receiving() as receiver:
        file.write_text(
            f"""
            [[webhooks]]
            name = "barn"
            url = "{receiver.url}"
            secret_file = "secret"
            [[detections]]
            score_min = 0.3
            """,
            encoding="utf-8",
        )
        app = App(load(file, settings(database)))
        await app.start()
        try:
            async with streaming(app, "gate", source=street_source(1, 5.0), rate_hz=5.0):
                await until(lambda: "camera_up" in receiver.kinds(), "the camera")
                await until(lambda: "detection" in receiver.kinds(), "a detection")
            await until(lambda: "camera_down" in receiver.kinds(), "its leave")
            # Detections that have ended are told of a while after their camera.
            await until(lambda: ended(receiver.kinds()), "the end of what was seen")
            destination = app.box.destinations[0]
            await until(lambda: destination.queued == 0, "the last answer")
            _, state = await get_json(app, "/v1/state")
            assert state["box"]["destinations"] == [
                {
                    "kind": "webhook",
                    "name": "barn",
                    "connected": True,
                    "queued": 0,
                    "sent": len(receiver.taken),
                    "dropped": {},
                    "last_error": None,
                }
            ]
            assert await scraped(app, "edgebox_events_sent_total") == len(receiver.taken)
            assert await scraped(app, "edgebox_events_connected") == 1
        finally:
            await app.stop()
        kinds = receiver.kinds()
        assert kinds[0] == "box_online"
        assert kinds[-1] == "box_offline"
        ids = [event["id"] for event in receiver.taken]
        assert len(set(ids)) == len(ids)
        seen = next(event for event in receiver.taken if event["type"] == "detection")
        assert seen["camera"] == "gate"
        assert len(seen["box"]) == 4


def ended(kinds: list[str]) -> bool:
    return kinds.count("detection") == kinds.count("detection_ended")


async def scraped(app: App, name: str) -> float:
    """Return the one value that a scrape gives for a metric of the webhook."""
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/metrics") as response:
        families = text_string_to_metric_families(await response.text())
        (value,) = (
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and sample.labels == {"destination": "barn", "kind": "webhook"}
        )
    return value
