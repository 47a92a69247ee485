"""Measures first stages at the camera on poor uplinks: `python -m benchmarks.placement [TRACE...]`.

One camera with edgebox's own sender streams over a shaped link to a box that is not busy. Its first
stage runs on the box for every frame (never), at the camera for every frame (always), or where its
answer is expected earlier (auto). The links are files given on the command line (`--share` scales
their rates), or synthetic ones. Virtual time; the sizes and times below were measured with the
families street and vehicles on scenes of 1280 x 720 px and two cores.
"""

import heapq
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import click

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import StagePlacement
from edgebox.inference.family import read_manifest
from edgebox.link.bandwidth import message_bytes
from edgebox.link.placement import PlacementCosts, PlacementMode
from edgebox.link.sender import Decision, Send, SenderWindow
from edgebox.link.shaping import BandwidthTrace, ShapedLink, lte_trace, parse_trace

MS = 1_000_000
OWN_PX = (1280, 720)
ADVICE = Advice(VariantName("street-608"), 608, 342, 10.0, 85, 0, "")
BYTES_PER_PIXEL = 0.28
"""34 kB at 608 x 342 px, quality 85."""
ENCODE_NS = 6 * MS
BOX_NS = 25 * MS
"""The first stage on a box with a GPU or several cores, decoding and the wait for a batch."""
LATER_NS = 15 * MS
"""Cutting, decoding and classifying crops."""
DETECT_NS = 65 * MS
"""street-416 on two cores,"""
DETECT_PX = 416
"""and its width."""
CROP_BYTES = 1_650
"""A vehicle at 64 x 64 px, quality 85."""
CROPS_MAX = 8
OBJECT_BYTES = 28
RETURN_NS = 15 * MS
"""One way of the link."""
SPREAD = 0.15
"""Standard deviation of the logarithm of sizes and times."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one camera's frames."""

    frames: int
    on_time: float
    """Share of the frames."""
    at_camera: float
    """Share of the frames that were answered."""
    kbytes_a_frame: float
    """What was sent, over all frames."""
    width_px: float
    """Mean width of the pictures that were sent."""
    accuracy: float
    """Mean accuracy of the variants that answered, over all frames; 0 for a frame without."""


class Camera:
    """One camera, its link, and a box that is not busy."""

    def __init__(
        self, trace: BandwidthTrace, mode: PlacementMode, slo_ns: int, rate_hz: float, seed: int
    ) -> None:
        self._rng = random.Random(seed)
        self._link = ShapedLink(trace, 0)
        self._slo_ns, self._rate_hz = slo_ns, rate_hz
        self._window = SenderWindow(*OWN_PX, slo_ns, rate_hz)
        self._window.advised(ADVICE)
        if mode is not PlacementMode.NEVER:
            self._window.placement = PlacementCosts(mode, DETECT_NS)
        self._events: list[tuple[int, int, str, int]] = []
        self._captured_ns: dict[int, int] = {}
        self._placed: dict[int, tuple[StagePlacement, int]] = {}
        self._bytes = self._on_time = self._answered = self._here = 0
        self._widths: list[int] = []
        self._encoder_free_ns = 0
        self._took_ns = 0
        self._accuracy = 0.0
        self._width_of: dict[int, int] = {}
        self._pictures: dict[int, tuple[int, int]] = {}
        self._events_total = 0

    def run(self, seconds: float) -> Figures:
        """Stream for so long."""
        frames = round(seconds * self._rate_hz)
        for number in range(1, frames + 1):
            self._at(round(number / self._rate_hz * 1e9), "captured", number)
        while self._events:
            now_ns, _, what, frame = heapq.heappop(self._events)
            self._handle(what, frame, now_ns)
        return Figures(
            frames,
            self._on_time / frames,
            self._here / max(1, self._answered),
            self._bytes / frames / 1e3,
            sum(self._widths) / max(1, len(self._widths)),
            self._accuracy / frames,
        )

    def _at(self, at_ns: int, what: str, frame: int) -> None:
        heapq.heappush(self._events, (at_ns, self._events_total, what, frame))
        self._events_total += 1

    def _varied(self, value: float) -> int:
        return round(value * self._rng.lognormvariate(0, SPREAD))

    def _handle(self, what: str, frame: int, now_ns: int) -> None:
        window = self._window
        if what == "captured":
            self._captured_ns[frame] = now_ns
            self._apply(window.captured(frame, now_ns, now_ns), now_ns)
        elif what == "encoded":
            window.encoded(frame, *self._pictures.pop(frame), now_ns)
        elif what == "detected":
            crops = min(CROPS_MAX, int(self._rng.expovariate(1 / 4)))
            size = self._varied(44 + 30 * OBJECT_BYTES + crops * CROP_BYTES)
            decisions = window.detected(frame, size, self._took_ns, now_ns)
            if not any(d.frame == frame for d in decisions):
                self._leave(frame, size, now_ns)
                window.encoded(frame, size, 0, now_ns)
            self._apply([d for d in decisions if d.frame != frame], now_ns)
        elif what == "acknowledged":
            self._apply(window.acknowledged(frame, now_ns, 2 * RETURN_NS), now_ns)
        else:
            self._end(frame, now_ns)

    def _apply(self, decisions: Sequence[Decision], now_ns: int) -> None:
        for decision in decisions:
            if not isinstance(decision, Send):
                continue
            began_ns = max(now_ns, self._encoder_free_ns)
            here = decision.placement is StagePlacement.CAMERA
            took_ns = self._varied(DETECT_NS if here else ENCODE_NS)
            self._placed[decision.frame] = decision.placement, 0
            if here:
                self._took_ns = began_ns + took_ns - now_ns
                self._at(began_ns + took_ns, "detected", decision.frame)
                continue
            self._encoder_free_ns = began_ns + took_ns
            self._widths.append(decision.width_px)
            self._width_of[decision.frame] = decision.width_px
            pixels = decision.width_px * decision.height_px
            size = self._varied(message_bytes(BYTES_PER_PIXEL, pixels))
            self._pictures[decision.frame] = size, pixels
            if self._window.placement is not None:
                self._window.placement.encoded(took_ns)
            self._at(began_ns + took_ns, "encoded", decision.frame)
            self._leave(decision.frame, size, began_ns + took_ns)

    def _leave(self, frame: int, size: int, now_ns: int) -> None:
        self._bytes += size
        arrived_ns = self._link.leaves_ns(now_ns, size) + RETURN_NS
        self._at(arrived_ns + RETURN_NS, "acknowledged", frame)
        placement, _ = self._placed[frame]
        here = placement is StagePlacement.CAMERA
        box_ns = self._varied(LATER_NS if here else BOX_NS + LATER_NS)
        self._placed[frame] = placement, box_ns
        if arrived_ns + box_ns <= self._captured_ns[frame] + self._slo_ns - RETURN_NS:
            self._at(arrived_ns + box_ns + RETURN_NS, "answered", frame)

    def _end(self, frame: int, now_ns: int) -> None:
        placement, box_ns = self._placed.pop(frame)
        self._window.answered(box_ns + RETURN_NS, now_ns, placement)
        self._answered += 1
        self._here += placement is StagePlacement.CAMERA
        if now_ns <= self._captured_ns[frame] + self._slo_ns:
            self._on_time += 1
            self._accuracy += accuracy_at(self._width_of.get(frame, DETECT_PX))


@cache
def accuracy_at(width_px: int) -> float:
    """Return the accuracy of the smallest variant of street that covers pictures so wide."""
    variants = read_manifest(Path("models/street/family.toml")).variants
    return next((v.accuracy for v in variants if v.width_px >= width_px), variants[-1].accuracy)


def scaled(trace: BandwidthTrace, share: float) -> BandwidthTrace:
    """Return a trace whose rates are this share of another's."""
    rates = tuple(rate * share for rate in trace.rates_bps)
    return BandwidthTrace(trace.starts_ns, rates, trace.period_ns)


def synthetic() -> dict[str, BandwidthTrace]:
    """Return the links that are used where none is given."""
    links = {f"{mbps:g} Mbit/s": BandwidthTrace.constant(mbps) for mbps in (0.8, 1.5, 3.0, 8.0)}
    return links | {
        f"lte:{seed} / {divisor}": scaled(lte_trace(random.Random(seed)), 1 / divisor)
        for seed, divisor in ((1, 2), (1, 4), (2, 4))
    }


@click.command()
@click.argument("traces", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--share", default=1.0, show_default=True, help="Of each file's rates.")
@click.option("--slo-ms", default=300.0, show_default=True)
@click.option("--rate-hz", default=10.0, show_default=True)
@click.option("--seconds", default=300.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    traces: tuple[Path, ...],
    *,
    share: float,
    slo_ms: float,
    rate_hz: float,
    seconds: float,
    as_json: bool,
) -> None:
    """Print the share on time and the bytes for never, always and auto, link by link."""
    links = {path.name: scaled(parse_trace(path.read_text(), path.name), share) for path in traces}
    found: dict[str, dict[str, Figures]] = {}
    for name, trace in (links or synthetic()).items():
        found[name] = {
            mode.value: Camera(trace, mode, round(slo_ms * MS), rate_hz, 1).run(seconds)
            for mode in (PlacementMode.NEVER, PlacementMode.ALWAYS, PlacementMode.AUTO)
        }
    if as_json:
        plain = {link: {m: asdict(f) for m, f in of.items()} for link, of in found.items()}
        click.echo(json.dumps(plain, indent=1))
        return
    click.echo("| link | where | on time | accuracy | at the camera | kB a frame | picture, px |")
    click.echo("|---|---|---|---|---|---|---|")
    for link, of in found.items():
        for mode, f in of.items():
            click.echo(
                f"| {link} | {mode} | {f.on_time:.1%} | {f.accuracy:.3f} | {f.at_camera:.0%} "
                f"| {f.kbytes_a_frame:.1f} | {f.width_px:.0f} |"
            )
    if len(found) > 1:
        for mode in next(iter(found.values())):
            mean = sum(of[mode].on_time for of in found.values()) / len(found)
            accuracy = sum(of[mode].accuracy for of in found.values()) / len(found)
            click.echo(f"| all | {mode} | {mean:.1%} | {accuracy:.3f} | | | |")


if __name__ == "__main__":
    main()
