"""The browser camera decides as the camera daemon does: the same situations, the same decisions."""

import random
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.link.bandwidth import message_bytes
from edgebox.link.sender import Decision, Send, SenderWindow, SkipReason
from webui.node import WEBUI, install, npm_command

SEED = 20_260
CASES = 120
FRAMES = 80
MS = 1_000_000
BYTES_PER_PIXEL = 0.3

REASONS = set(SkipReason) - {SkipReason.FAILED}
"""A browser runs no model."""


@dataclass
class Story:
    """One camera on a link that changes: what happened, and what the window in Python decided."""

    rng: random.Random
    options: dict[str, Any]
    window: SenderWindow
    events: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    now_ns: int = 0
    link_free_ns: int = 0
    arrivals: list[tuple[int, int]] = field(default_factory=list)
    """(instant, frame) of the acks that are still to come."""

    def run(self) -> None:
        rate_bps = self.rng.choice((2e5, 1e6, 4e6, 2e7))
        for frame in range(1, FRAMES + 1):
            if self.rng.random() < 0.1:
                rate_bps *= self.rng.choice((0.1, 0.3, 3.0, 6.0))
            if self.rng.random() < 0.15:
                self.advise(rate_bps)
            self.let_pass(rate_bps)
            delay_ns = self.rng.randrange(0, 20 * MS)
            self.obey(
                "captured", rate_bps, frame, self.now_ns - min(self.now_ns, delay_ns), self.now_ns
            )
        self.tell("close", self.window.close)

    def let_pass(self, rate_bps: float) -> None:
        """Let time pass until the next frame; the acks that arrive meanwhile are made."""
        period_ns = 1e9 / self.options["rate_hz"]
        until_ns = self.now_ns + round(period_ns * self.rng.choice((0.5, 0.8, 1.0, 1.2, 4.0)))
        while self.arrivals and self.arrivals[0][0] <= until_ns:
            self.now_ns, frame = self.arrivals.pop(0)
            self.obey("acknowledged", rate_bps, frame, self.now_ns, self.rng.randrange(0, 3 * MS))
            if self.rng.random() < 0.7:
                self.tell("answered", self.window.answered, self.rng.randrange(MS, 90 * MS))
        self.now_ns = until_ns

    def advise(self, rate_bps: float) -> None:
        side = self.rng.choice((97, 128, 256, 320, 451, 608, 2000))
        advice = Advice(
            VariantName("street"),
            width_px=side,
            height_px=self.rng.choice((side, side * 9 // 16)),
            rate_hz=self.options["rate_hz"] * self.rng.choice((0.01, 0.3, 0.5, 1.0, 1.5)),
            quality=self.rng.choice((60, 85)),
            bandwidth_bps=round(self.rng.choice((0.0, 0.5, 1.0, 2.0)) * rate_bps),
            reason="",
        )
        self.tell("advised", self.window.advised, advice)

    def obey(self, event: str, rate_bps: float, *given: int) -> None:
        """Tell the window of something, and send what it decides to send."""
        for decision in self.tell(event, getattr(self.window, event), *given):
            if isinstance(decision, Send):
                pixels = decision.width_px * decision.height_px
                weight = message_bytes(BYTES_PER_PIXEL, pixels) * self.rng.uniform(0.7, 1.3)
                sent_ns = self.now_ns + self.rng.randrange(0, 4 * MS)
                self.tell(
                    "encoded", self.window.encoded, decision.frame, round(weight), pixels, sent_ns
                )
                self.link_free_ns = max(sent_ns, self.link_free_ns) + round(
                    weight * 8 / rate_bps * 1e9
                )
                self.arrivals.append((self.link_free_ns + 2 * MS, decision.frame))

    def tell(self, event: str, call: Callable[..., Any], *given: Any) -> list[Decision]:
        decisions = call(*given) or []
        self.events.append({"event": event, "given": given, "at_ns": self.now_ns})
        self.outcomes.append(
            {
                "decisions": list(map(as_browser, decisions)),
                "bandwidth_bps": self.window.bandwidth_bps(self.now_ns),
                "waiting": self.window.waiting,
                "unacknowledged": self.window.unacknowledged,
                "captured": self.window.captured_total,
                "sent": self.window.sent_total,
                "skipped": {str(reason): self.window.skipped[reason] for reason in REASONS},
            }
        )
        return decisions


def as_browser(decision: Decision) -> dict[str, Any]:
    """Return a decision in the words of the TypeScript module."""
    if isinstance(decision, Send):
        return {
            "kind": "send", "frame": decision.frame, "quality": decision.quality,
            "width_px": decision.width_px, "height_px": decision.height_px,
        }  # fmt: skip
    return {"kind": "skip", "frame": decision.frame, "reason": decision.reason}


def story(rng: random.Random) -> Story:
    """Make up a camera, and let it live through a changing link."""
    slo_ns = rng.choice((80, 150, 300, 1000)) * MS
    options: dict[str, Any] = {
        "width_px": rng.choice((97, 320, 640, 1280, 1919, 3840)),
        "height_px": rng.choice((55, 180, 360, 720, 1081, 2160)),
        "slo_ns": slo_ns,
        "lastSlo_ns": slo_ns * rng.choice((1, 1, 2, 4)),
        "rate_hz": rng.choice((2.0, 7.5, 10.0, 24.0, 30.0)),
        "unacknowledged_max": rng.choice((1, 2, 2, 3)),
    }
    window = SenderWindow(
        options["width_px"],
        options["height_px"],
        options["slo_ns"],
        options["rate_hz"],
        options["unacknowledged_max"],
        last_slo_ns=options["lastSlo_ns"],
    )
    made = Story(rng, options, window)
    made.run()
    return made


def decided_in_the_browser(stories: list[Story]) -> list[list[dict[str, Any]]]:
    install()
    command, environment = npm_command()
    cases = [{"options": each.options, "events": each.events} for each in stories]
    done = subprocess.run(
        [*command, "run", "--silent", "decide"],
        cwd=WEBUI,
        env=environment,
        input=orjson.dumps(cases),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    answers: list[list[dict[str, Any]]] = orjson.loads(done.stdout)
    return answers


def test_the_browser_camera_decides_as_the_daemon_does() -> None:
    rng = random.Random(SEED)
    stories = [story(rng) for _ in range(CASES)]
    kinds: Counter[str] = Counter()
    for made, answers in zip(stories, decided_in_the_browser(stories), strict=True):
        for event, wanted, found in zip(made.events, made.outcomes, answers, strict=True):
            where = (made.options, event)
            bps = (wanted.pop("bandwidth_bps"), found.pop("bandwidth_bps"))
            assert bps[1] == (None if bps[0] is None else pytest.approx(bps[0], rel=1e-12)), where
            assert found == wanted, where
            kinds.update(each.get("reason", each["kind"]) for each in wanted["decisions"])
    # The situations are worth something only if everything that can be decided was.
    assert set(kinds) == {"send", *REASONS}
    assert min(kinds.values()) > 20, kinds
