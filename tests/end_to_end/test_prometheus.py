"""What a scraper gets from a real box, read with Prometheus's own parser."""

import math
from collections import defaultdict
from pathlib import Path

import aiohttp
import numpy as np
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from edgebox.app.composition import App
from edgebox.link.messages import AdviceMessage, Welcome
from edgebox.media.jpeg import encode
from tests.end_to_end.running import counts_of, gone, running, until
from tests.end_to_end.wire import WireCamera

TINY = encode(np.full((36, 64, 3), 90, np.uint8))


async def scrape(app: App) -> dict[str, Metric]:
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/metrics") as response:
        assert response.status == 200
        assert response.content_type == "text/plain"
        assert response.headers["Content-Type"].split("; ")[1] == "version=0.0.4"
        families = list(text_string_to_metric_families(await response.text()))
    by_name = {family.name: family for family in families}
    assert len(by_name) == len(families)
    assert all(family.documentation for family in families)
    return by_name


def one(metric: Metric, **labels: str) -> float:
    """Return the value of the only sample with these labels."""
    (sample,) = (
        s
        for s in metric.samples
        if labels.items() <= s.labels.items() and not s.name.endswith(("_bucket", "_created"))
    )
    return sample.value


def advised_rates_hz(camera: WireCamera) -> set[float]:
    """Return every rate that the camera has been advised to send at."""
    return {
        message.advice.rate_hz
        for message in camera.received
        if isinstance(message, (Welcome, AdviceMessage))
    }


async def test_the_counts_of_a_scrape_add_up(database: Path) -> None:
    async with running(database) as app:
        async with WireCamera(app) as camera:
            for picture in (TINY, None, b"no picture", None):
                sent = await (camera.frame() if picture is None else camera.frame(picture))
                if picture != b"no picture":
                    await camera.result(sent)
            await camera.result(await camera.frame())
            metrics = await scrape(app)
            counts = counts_of(app, "gate")
            rate_hz = one(metrics["edgebox_advised_rate_hertz"])
            await until(lambda: rate_hz in advised_rates_hz(camera), "the advice that was scraped")
        frames = metrics["edgebox_frames"]
        assert one(frames, camera="gate", outcome="on_time") == counts.on_time
        assert one(frames, camera="gate", outcome="dropped", reason="invalid") == 1
        assert one(frames, camera="gate", outcome="dropped", reason="failed") == 0
        ended = sum(sample.value for sample in frames.samples)
        captured = one(metrics["edgebox_frames_captured"], camera="gate")
        assert captured == counts.captured == 5
        assert captured == ended + one(metrics["edgebox_frames_pending"], camera="gate")
        assert one(metrics["edgebox_box_frames"], outcome="on_time") == counts.on_time
        assert one(metrics["edgebox_frames_mismatched"]) == counts.mismatches
        assert one(metrics["edgebox_camera_connected"], camera="gate") == 1
        width = one(metrics["edgebox_advised_width_pixels"], camera="gate")
        assert width >= 128
        assert one(metrics["edgebox_link_bandwidth_bits_per_second"]) > 0
        assert one(metrics["edgebox_ready"]) == 1
        assert one(metrics["process_resident_memory_bytes"]) > 1 << 20
        assert one(metrics["process_open_fds"]) > 3
        assert one(metrics["edgebox_threads"]) > 2
        assert one(metrics["edgebox_tasks"]) > 2
        assert one(metrics["edgebox_python_blocks"]) > 1000
        assert one(metrics["edgebox_build_info"], version=app.box.version) == 1
        await gone(app, "gate")
        assert one((await scrape(app))["edgebox_camera_connected"], camera="gate") == 0


async def test_histograms_of_latency_and_batches(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        await camera.wait_for(Welcome)
        results = [await camera.result(await camera.frame()) for _ in range(6)]
        metrics = await scrape(app)
    latency = metrics["edgebox_frame_latency_seconds"]
    for part in ("network", "queue", "inference", "return", "total"):
        mine = [s for s in latency.samples if s.labels["part"] == part]
        buckets = [(float(s.labels["le"]), s.value) for s in mine if s.name.endswith("_bucket")]
        bounds, cumulative = zip(*buckets, strict=True)
        assert list(bounds) == sorted(bounds)
        assert bounds[-1] == math.inf
        assert list(cumulative) == sorted(cumulative)
        (count,) = (s.value for s in mine if s.name.endswith("_count"))
        assert count == cumulative[-1] == len(results)
        (total_s,) = (s.value for s in mine if s.name.endswith("_sum"))
        reported = [getattr(result.timing, f"{part}_ms") for result in results]
        assert abs(total_s - sum(reported) / 1e3) < 1e-3 * len(results)
        for bound, below in buckets:
            # Reported times are rounded to microseconds or so.
            assert below >= sum(ms / 1e3 < bound - 1e-4 for ms in reported)
            assert below <= sum(ms / 1e3 <= bound + 1e-4 for ms in reported)
    batches: defaultdict[tuple[str, str | None], float] = defaultdict(float)
    for sample in metrics["edgebox_batch_size"].samples:
        if not sample.name.endswith("_created"):
            batches[sample.name.removeprefix("edgebox_batch_size"), sample.labels.get("le")] += (
                sample.value
            )
    assert batches["_count", None] == batches["_bucket", "+Inf"] == batches["_bucket", "1.0"] == 6
    assert batches["_sum", None] == 6
    assert one(metrics["edgebox_executor_busy_seconds"]) > 0
