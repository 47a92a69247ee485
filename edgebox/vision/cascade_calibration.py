"""Keeps what a cascade expects true to what its camera shows now. Pure: numpy only.

A decider is fitted once, but nights, weather and busy hours come later. Two things are learned for
each camera. What the large model found on pictures that were sent on says how large losses are: a
line in logits (Platt 1999) from expected to measured losses. How many pictures have which expected
loss says which share a threshold sends on: with both, the curve of share, threshold and loss is
that of the last pictures, most of which the large model never saw.

As many of the pictures with a small expected loss count as of those with a large one, though
cascades send on the latter: a sample of the former is run on purpose, while the box is idle (as in
Apparate, Dai et al. 2024; theirs adjusts thresholds step by step until the accuracy of a window is
kept, ours estimates the whole curve, which planning needs).
"""

from collections import deque

import numpy as np

from edgebox.domain.cascades import CascadeCurve, CascadeEvidence, Decider
from edgebox.vision.cascade_decider import (
    PICTURES_MIN,
    Floats,
    line,
    logistic,
    logit,
    measured_curve,
)

COMPARED = 128
"""Pictures with a small and with a large expected loss that were compared last."""
SEEN = 512
"""Pictures whose expected losses make the curve."""
CURVE_EVERY = 32
"""After so many pictures the curve is computed anew: some 0.2 ms."""
SEEN_MIN = 100
"""With fewer the curve is the fitted one."""


class CascadeCalibration:
    """What one camera's pictures say of a cascade."""

    def __init__(
        self, decider: Decider, fitted: CascadeCurve, evidence: CascadeEvidence | None = None
    ) -> None:
        """Believe what was fitted, and what was learned before.

        Args:
            decider: of the cascade.
            fitted: the curve measured when it was fitted; it counts as `PICTURES_MIN` pictures.
            evidence: of an earlier calibration with the same decider.
        """
        self._decider = decider
        self._line: tuple[float, float] | None = None
        """Slope and shift; None: to be fitted, since something was compared after the last time."""
        inner = [point.threshold for point in fitted.points if 0 < point.threshold < 1]
        at = np.linspace(0, max(0, len(inner) - 1), PICTURES_MIN).round().astype(int)
        losses = np.array(inner)[at] if inner else np.empty(0)
        self._prior: tuple[Floats, Floats] = logit(losses), losses
        before = evidence or CascadeEvidence()
        self._hard = deque(before.hard, maxlen=COMPARED)
        self._easy = deque(before.easy, maxlen=COMPARED)
        self._logits = deque(before.logits, maxlen=SEEN)
        self._curve, self._since = fitted, len(self._logits)
        if not self.compared:
            self._line = 1.0, 0.0

    @property
    def evidence(self) -> CascadeEvidence:
        """What was learned, for a calibration that goes on where this one is."""
        return CascadeEvidence(tuple(self._hard), tuple(self._easy), tuple(self._logits))

    @property
    def compared(self) -> int:
        """The number of pictures that both models have seen lately."""
        return len(self._hard) + len(self._easy)

    def expected(self, features: Floats) -> float:
        """Return the expected loss of a picture, in (0, 1), and count the picture.

        Args:
            features: (d,) of the picture.
        """
        fitted = float(features @ np.array(self._decider.weights)) + self._decider.bias
        self._logits.append(fitted)
        self._since += 1
        return float(self._recalibrated(np.array(fitted)))

    def compare(self, features: Floats, loss: float, *, hard: bool) -> None:
        """Note what the small model lost on a picture; what is expected next fits the line anew.

        Args:
            features: (d,) of the picture.
            loss: measured, in [0, 1].
            hard: whether it was sent on for its expected loss, and not as a sample.
        """
        fitted = float(features @ np.array(self._decider.weights)) + self._decider.bias
        (self._hard if hard else self._easy).append((fitted, loss))
        self._line = None

    def _recalibrated(self, fitted: Floats) -> Floats:
        """Return the losses to expect by what was compared; a new line takes some 0.2 ms."""
        believed = self._line
        if believed is None:
            pairs = np.array([*self._hard, *self._easy])
            logits = np.concatenate((self._prior[0], pairs[:, 0]))
            losses = np.concatenate((self._prior[1], pairs[:, 1]))
            believed = self._line = line(logits, losses)
        slope, shift = believed
        return logistic(slope * fitted + shift)

    def losses(self) -> tuple[float, float] | None:
        """Return the mean expected and measured loss of the compared pictures; None: none yet."""
        pairs = np.array([*self._hard, *self._easy])
        if not len(pairs):
            return None
        expected = self._recalibrated(pairs[:, 0])
        return float(expected.mean()), float(pairs[:, 1].mean())

    def curve(self) -> CascadeCurve:
        """Return the curve of the last pictures; until there are enough, the fitted one."""
        if self._since >= CURVE_EVERY and len(self._logits) >= SEEN_MIN:
            expected = self._recalibrated(np.array(self._logits))
            self._curve, self._since = measured_curve(expected, expected), 0
        return self._curve
