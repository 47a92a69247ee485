"""Decides whether a box serves a camera itself or sends it to another box, and to which.

The rule, for a camera that says hello and for one that is connected alike: of this box, of two
others drawn at random and of the box that the camera was at last, the one that will be the least
loaded *with* the camera serves it. The camera's own box is preferred by `STAY` of load, because
there it keeps its history and its tracks, and because a move costs frames; of a camera that no
box knows it is the one that is asked. A box that would be full comes after all that would not be.

Sources. Two random choices leave the fullest of n boxes about log log n cameras above the mean,
one choice log n / log log n (Azar, Broder, Karlin and Upfal, Balanced allocations, 1999;
Mitzenmacher, The power of two choices in randomized load balancing, 2001). With reports that are
old, the least loaded box of all is the worst choice: until its next report everybody sends it
everything. Two choices are hardly harmed (Mitzenmacher, How useful is old information?, 2000). That
one should count what was sent since the report is of Dahlin, Interpreting stale load information,
2000; he counts what all senders sent, this counts what this box sent, because it knows no more.

How it differs: the box that decides is one of the candidates and knows its own load exactly; loads
are shares of unequal boxes; a camera has a home; and cameras that are connected are moved as well,
each box considering one of them per report. So a box that joins gets two cameras per report at the
most, on average, however many boxes there are. Hello messages are not bounded so: they come one by
one, or after a failure, and then all boxes are candidates.

Why nothing moves for ever: a camera moves only if the box it comes to is then less loaded than the
one it leaves was, by `STAY`. With exact loads every such move lowers the sum of their squares, so
moves end, and none is taken back. With old loads several boxes may fill one at once; they see it in
its next report. A hello is redirected at most `REDIRECTS_MAX` times, then the box serves the
camera. A box to which a camera was sent counts as its own, so it sends it on only if it has
filled up meanwhile.

Complexity: linear in the number of boxes. Pure: reports, instants and randomness are arguments.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from edgebox.domain.requests import CameraId
from edgebox.fleet.box_report import BoxName, BoxReport, KnownBoxes, Service

STAY = 0.1
"""By how much of load a camera's own box is preferred. Cameras that come and go between two reports
change loads by less; `edgebox simulate fleet --stay` shows what other values do."""
REDIRECTS_MAX = 2
"""How often one hello is redirected: once to spread cameras, and once more if the box has filled
up before the camera came."""
CHOICES = 2
"""How many boxes are drawn at random."""


@dataclass(frozen=True, slots=True)
class Placing:
    """A camera that needs a box."""

    camera: CameraId
    service: Service
    rate_hz: float
    redirects: int = 0
    """How often its hello has been redirected."""
    avoided: frozenset[BoxName] = frozenset()
    """Boxes to which it was sent in vain (`returned_cameras`)."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The box that a camera is sent to, and the reason in one sentence."""

    to: BoxReport
    reason: str


def redirect_hello(
    camera: Placing,
    here: BoxReport,
    others: KnownBoxes,
    now_ns: int,
    rng: random.Random,
    *,
    stay: float = STAY,
) -> Redirect | None:
    """Say where a camera that says hello is sent; None: this box serves it, or refuses it itself.

    Args:
        camera: which is not in `here`.
        here: this box at present.
        others: what it knows of the others.
        now_ns: the present.
        rng: draws the candidates.
        stay: see `STAY`.
    """
    serving = _able(camera, others.fresh(now_ns))
    able_here = not here.draining and camera.service in here.services
    if not serving or (able_here and camera.redirects >= REDIRECTS_MAX):
        return None
    known = None if camera.redirects else home_of(camera.camera, [here, *serving])
    home = known or here.box
    drawn = _drawn(serving, home, rng)
    if all(_full(camera, box) for box in ([here, *drawn] if able_here else drawn)):
        roomy = [box for box in serving if not _full(camera, box)]
        drawn += _drawn(roomy, None, rng)
    return _best(camera, here if able_here else None, drawn, home, stay)


def redirect_connected(
    camera: Placing,
    here: BoxReport,
    others: KnownBoxes,
    now_ns: int,
    rng: random.Random,
    *,
    stay: float = STAY,
) -> Redirect | None:
    """Say where a camera that is connected here is better off; None: nowhere.

    A box that is about to stop asks this for all its cameras, any other for one per report.

    Args:
        camera: which is in `here`.
        here: this box at present.
        others: what it knows of the others.
        now_ns: the present.
        rng: draws the candidates.
        stay: see `STAY`.
    """
    serving = _able(camera, others.fresh(now_ns))
    if here.draining:
        return _best(camera, None, _drawn(serving, None, rng), None, stay)
    without = here.with_load(-here.load_of(camera.service, camera.rate_hz), -1)
    return _best(camera, without, _drawn(serving, None, rng), here.box, stay)


def home_of(camera: CameraId, boxes: Sequence[BoxReport]) -> BoxName | None:
    """Return the box that a camera was connected to last; None: none knows it."""
    known = [(box.absent_s[camera], box.box) for box in boxes if camera in box.absent_s]
    return min(known)[1] if known else None


def _able(camera: Placing, boxes: Sequence[BoxReport]) -> list[BoxReport]:
    """Return the boxes that could serve a camera."""
    return [
        box
        for box in boxes
        if not box.draining
        and camera.service in box.services
        and box.cameras < box.cameras_max
        and box.box not in camera.avoided
    ]


def _drawn(boxes: list[BoxReport], home: BoxName | None, rng: random.Random) -> list[BoxReport]:
    """Return `CHOICES` boxes at random, and a camera's own one."""
    drawn = rng.sample(boxes, min(CHOICES, len(boxes)))
    return drawn + [box for box in boxes if box.box == home and box not in drawn]


def _load_with(camera: Placing, box: BoxReport) -> float:
    return box.load + box.load_of(camera.service, camera.rate_hz)


def _full(camera: Placing, box: BoxReport) -> bool:
    return _load_with(camera, box) > 1 or box.cameras >= box.cameras_max


def _best(
    camera: Placing,
    here: BoxReport | None,
    others: Sequence[BoxReport],
    home: BoxName | None,
    stay: float,
) -> Redirect | None:
    """Return the best of some boxes; None: it is this one, which also wins where they are equal."""

    def cost(box: BoxReport) -> tuple[bool, float]:
        preferred = stay if box.box == home else 0.0
        return _full(camera, box), _load_with(camera, box) - preferred

    if not others:
        return None
    best = min(others, key=cost)
    if here is None:
        return Redirect(best, "this box cannot serve it, or is about to stop")
    if cost(best) >= cost(here):
        return None
    there, with_it = _load_with(camera, best), _load_with(camera, here)
    loads = f"it would be loaded {there:.0%}, this box {with_it:.0%}"
    if best.box == home:
        return Redirect(best, f"the camera was at {best.box} last; {loads}")
    return Redirect(best, f"{best.box} has more room: {loads}")
