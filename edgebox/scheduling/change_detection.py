"""Decides whether the newest samples of a window contradict the older ones.

Pure. When the distribution changes abruptly (another power mode, another type of scene), all
earlier samples are wrong at once. The samples are cut into the newest n and the rest, for n of 32,
64, 128 and so on: a large change shows in few samples, a small one in many. A cut is significant if
the Kolmogorov-Smirnov distance of its two parts occurs with a probability of at most `FALSE_ALARM`
for samples of one distribution, whatever that distribution is.

Source: the two-sample Kolmogorov-Smirnov test with its asymptotic bound (Smirnov 1948). For few
samples and for ties it errs towards no change.

Limits: consecutive samples are correlated (one street, one minute), so the change that is found may
be one of the scene and not of the machine. In both cases the newest samples describe the present.
"""

import math
from collections.abc import Sequence
from itertools import islice
from typing import Literal

import numpy as np
import numpy.typing as npt

NEWEST_MIN = 32
"""The fewest samples that may contradict the rest."""

NEWEST_MAX = 1024

TEST_EVERY = NEWEST_MIN // 2
"""Samples between two tests; a cut into the newest n is tested every n / 2 samples."""

KEPT_MIN = 20
"""The number of samples that always remain."""

FALSE_ALARM = 1e-6
"""Probability per test. Ten samples a second are several hundred thousand tests a day."""

_STRICTNESS = math.sqrt(math.log(2 / FALSE_ALARM) / 2)

_CUTS = tuple(1 << at for at in range(NEWEST_MIN.bit_length() - 1, NEWEST_MAX.bit_length()))
_FINER = 48
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

Floats = npt.NDArray[np.float64]


def newest_that_hold(recent: Sequence[float], ordered: Sequence[float], added: int) -> int:
    """Return how many of the newest samples to keep: all, if no cut is significant.

    One significant cut among those that are due is enough. Then cuts are compared at a finer
    resolution, and the most significant one is used. Costs some array operations over the window:
    about 0.1 ms for 2,000 samples.

    Args:
        recent: the window, oldest first.
        ordered: the same samples, rising.
        added: number of samples ever added; it determines which cuts are due.
    """
    count = len(recent)
    due = [n for n in _CUTS if 2 * n <= count and added % (n // 2) == 0]
    if not due:
        return count
    every = np.array(ordered, dtype=np.float64)
    newest = _newest(recent, due[-1])
    if max(_contradiction(newest[:n], every) for n in due) <= 1:
        return count
    newest = _newest(recent, count - KEPT_MIN)
    finer = np.unique(np.geomspace(KEPT_MIN, count - KEPT_MIN, _FINER).astype(np.intp)).tolist()
    return int(max(finer, key=lambda n: _contradiction(newest[:n], every)))


def _newest(recent: Sequence[float], count: int) -> Floats:
    return np.fromiter(islice(reversed(recent), count), dtype=np.float64, count=count)


def _contradiction(newest: Floats, every: Floats) -> float:
    """Return the distance between some samples and the rest, in units of the critical value.

    Args:
        newest: (n,), in any order.
        every: (n + m,): those and the rest, rising.
    """
    n, m = len(newest), len(every) - len(newest)
    points = np.sort(newest)
    # The CDF of `newest` is flat between its points, so the distance is greatest at one of them
    # or just before it.
    gap = max(
        float(
            np.abs(
                points.searchsorted(points, side) / n - every.searchsorted(points, side) / (n + m)
            ).max()
        )
        for side in _SIDES
    )
    # F_newest - F_rest = (F_newest - F_every) * (n + m) / m
    distance = gap * (n + m) / m
    return distance / (_STRICTNESS * math.sqrt((n + m) / (n * m)))
