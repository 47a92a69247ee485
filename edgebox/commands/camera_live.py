"""The terminal output of a running camera: a live line, plain lines, the final table."""

import asyncio
import time
from collections.abc import Mapping

import click

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera, Status
from edgebox.domain.latency_histogram import PARTS
from edgebox.domain.requests import DropReason
from edgebox.planning.wording import bandwidth_text

LIVE_PERIOD_S = 0.5
PLAIN_PERIOD_S = 10.0
_RATE_WINDOW_S = 5.0


def describe(status: Status, fps: float | None) -> str:
    """Return a status as one line."""
    if not status.connected:
        return f"not connected: {status.remark or 'connecting'}"
    parts = [f"{fps:.1f} frames/s" if fps is not None else "- frames/s"]
    if status.advice is not None:
        parts.append(f"{status.advice.width_px} × {status.advice.height_px} px")
    if status.on_time_share is not None:
        parts.append(f"{status.on_time_share:.1%} on time (10 s)")
    if status.latency_ms is not None:
        parts.append(f"{status.latency_ms:.0f} ms")
    if status.bandwidth_bps is not None:
        parts.append(f"link {bandwidth_text(status.bandwidth_bps)}")
    if status.advice is not None:
        parts.append(status.advice.variant)
        if status.advice.reason:
            parts.append(status.advice.reason)
    return " | ".join(parts)


def render(summary: Summary) -> str:
    """Return a summary as a few lines of text."""
    dropped = sum(summary.dropped.values())
    share = f"{summary.on_time_share:.2%}" if summary.on_time_share is not None else "-"
    lines = [
        f"{summary.camera}: {summary.captured} frames in {summary.duration_s:.1f} s, "
        f"{share}{_of_those(summary)} answered within {summary.slo_ms:g} ms" + _worth(summary),
        f"  captured {summary.captured} = on time {summary.on_time} + late {summary.late} "
        f"+ dropped {dropped}" + (f" + pending {summary.pending}" if summary.pending else ""),
        f"  sent {summary.sent} ({summary.bytes_sent / 1e6:.1f} MB), accepted {summary.accepted}",
    ]
    if summary.detected:
        lines.append(f"  first stage here {summary.detected}, as boxes and crops")
    if dropped:
        lines.append(f"  dropped: {_listed(summary.dropped)}")
    if summary.skipped:
        lines.append(f"  of these never sent: {_listed(summary.skipped)}")
    if summary.latency_ms:
        lines.append("  latency, ms       P50      P90      P99      max")
        lines += [
            f"    {part:<10}"
            + "".join(f"{value:9.1f}" for value in summary.latency_ms[part].values())
            for part in PARTS
        ]
    if summary.width_sent_mean_px is not None:
        lines.append(f"  mean width sent {summary.width_sent_mean_px:.0f} px")
    if summary.variants:
        lines.append(f"  variants: {_listed(summary.variants)}")
    if summary.detections:
        lines.append(f"  detections: {_listed(summary.detections)}")
    if summary.reconnects:
        lines.append(f"  reconnected {summary.reconnects} times")
    return "\n".join(lines)


def _of_those(summary: Summary) -> str:
    """Return how many frames the share is of, if the box asked for fewer than were captured."""
    unasked = summary.dropped.get(DropReason.PLAN, 0)
    return f" of the {summary.captured - unasked} asked for" if unasked else ""


def _worth(summary: Summary) -> str:
    """Return the mean utility of the frames, if there are later deadlines."""
    if not summary.later or not summary.captured:
        return ""
    return f", utility {summary.utility / summary.captured:.3f} a frame"


class _Rate:
    """Frames per second from a counter, over the last few seconds."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def of(self, count: int) -> float | None:
        now_s = time.monotonic()
        self._seen = [seen for seen in self._seen if seen[0] > now_s - _RATE_WINDOW_S]
        self._seen.append((now_s, count))
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None


async def show_live(camera: Camera) -> None:
    """Keep one line on a terminal up to date until cancelled."""
    from rich.live import Live
    from rich.text import Text

    rate = _Rate()
    with Live(Text("connecting"), auto_refresh=False, transient=True) as live:
        while True:
            status = camera.status()
            line = describe(status, rate.of(status.sent))
            live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)
            await asyncio.sleep(LIVE_PERIOD_S)


async def show_plain(camera: Camera) -> None:
    """Write a line to standard error every 10 s until cancelled."""
    rate = _Rate()
    rate.of(camera.status().sent)
    next_s = time.monotonic() + PLAIN_PERIOD_S
    while True:
        await asyncio.sleep(1.0)
        status = camera.status()
        fps = rate.of(status.sent)
        if time.monotonic() >= next_s:
            next_s += PLAIN_PERIOD_S
            click.echo(f"{camera.hello.camera}: {describe(status, fps)}", err=True)


def _listed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count}" for name, count in ordered)
