"""Owns the motion of tracked boxes: a Kalman filter over the real time between pictures.

Pure. The state of a box is its centre, width and height, each with a velocity that changes at
random (white noise acceleration; Bar-Shalom, Li and Kirubarajan 2001, section 6.2). SORT and
ByteTrack count in frames; here the noise grows with the time that has passed, so a gap widens
what is expected by as much as it lasted.

All noise is a share of the box's height, and the four numbers of a box have the same noise. So
one covariance of position and velocity serves all four, and no matrix is inverted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MEASURED = 0.1
"""Standard deviation of a detected box's numbers, in heights."""
_WANDERING = 0.3
"""Standard deviation of the position after a second, beyond its motion, in heights."""
_ACCELERATION = 0.15
"""Standard deviation of the velocity's change within a second, in heights a second."""
_FIRST_VELOCITY = 1.5
"""Standard deviation of a new box's velocity, in heights a second."""


@dataclass(slots=True)
class Motion:
    """The boxes of n tracks at one instant."""

    at: Floats  #: (n, 4) centre x, centre y, width, height
    velocity: Floats  #: (n, 4) the change of each in a second
    covariance: Floats  #: (n, 3) of position; of position and velocity; of velocity

    @classmethod
    def of(cls, boxes: Floats) -> "Motion":
        """Return the motion of boxes (n, 4; xyxy) that are seen for the first time."""
        at = _centred(boxes)
        covariance = np.zeros((len(at), 3))
        variance = np.square(at[:, 3])
        covariance[:, 0] = _MEASURED**2 * variance
        covariance[:, 2] = _FIRST_VELOCITY**2 * variance
        return cls(at, np.zeros_like(at), covariance)

    def predict(self, seconds: float) -> None:
        """Move all boxes by the time that has passed."""
        self.at += self.velocity * seconds
        np.maximum(self.at[:, 2:], 1e-6, out=self.at[:, 2:])
        variance = np.square(self.at[:, 3])
        q = _ACCELERATION**2 * variance
        c = self.covariance
        c[:, 0] += (2 * c[:, 1] + c[:, 2] * seconds) * seconds
        c[:, 0] += q * (seconds**3 / 3) + _WANDERING**2 * seconds * variance
        c[:, 1] += c[:, 2] * seconds + q * (seconds**2 / 2)
        c[:, 2] += q * seconds

    def correct(self, rows: NDArray[np.intp], boxes: Floats) -> None:
        """Correct some boxes with what was detected of them.

        Args:
            rows: (k,) which ones, each at most once.
            boxes: (k, 4) xyxy.
        """
        seen = _centred(boxes)
        c = self.covariance[rows]
        total = c[:, 0] + _MEASURED**2 * np.square(self.at[rows, 3])
        gain, gain_velocity = c[:, 0] / total, c[:, 1] / total
        surprise = seen - self.at[rows]
        self.at[rows] += gain[:, None] * surprise
        self.velocity[rows] += gain_velocity[:, None] * surprise
        rest = 1.0 - gain
        c[:, 2] -= gain_velocity * c[:, 1]
        c[:, 0] *= rest
        c[:, 1] *= rest
        self.covariance[rows] = c

    def keep_sizes(self, rows: NDArray[np.bool_]) -> None:
        """Let some boxes keep their size: what is not seen is not known to grow."""
        self.velocity[rows, 2:] = 0.0

    def boxes(self) -> Floats:
        """Return the boxes (n, 4) as xyxy."""
        half = self.at[:, 2:] / 2
        return np.concatenate((self.at[:, :2] - half, self.at[:, :2] + half), axis=1)

    def kept(self, rows: NDArray[np.bool_]) -> "Motion":
        """Return the motion of some boxes."""
        return Motion(self.at[rows], self.velocity[rows], self.covariance[rows])

    def joined(self, more: "Motion") -> "Motion":
        """Return the motion of these boxes, followed by others."""
        return Motion(
            np.concatenate((self.at, more.at)),
            np.concatenate((self.velocity, more.velocity)),
            np.concatenate((self.covariance, more.covariance)),
        )


def _centred(boxes: Floats) -> Floats:
    low, high = boxes[:, :2], boxes[:, 2:]
    return np.concatenate(((low + high) / 2, np.maximum(high - low, 1e-6)), axis=1)
