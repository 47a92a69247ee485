"""A camera's calibration: what is expected follows what the large model finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.cascades import CascadeCurve, CascadePoint, Decider
from edgebox.vision.cascade_calibration import SEEN, SEEN_MIN, CascadeCalibration
from edgebox.vision.cascade_decider import Floats, logistic, logit, measured_curve

DECIDER = Decider((1.0,), 0.0)


def losses_of(rng: np.random.Generator, logits: Floats) -> Floats:
    """Return losses whose means are what a line in logits says."""
    mean = logistic(logits)
    return rng.beta(4 * mean, 4 * (1 - mean))


def fitted() -> CascadeCurve:
    logits = np.random.default_rng(1).normal(-1, 1, 1000)
    return measured_curve(logistic(logits), logistic(logits))


def row(value: float) -> Floats:
    return np.array((value,))


def test_until_something_was_compared_what_was_fitted_is_believed() -> None:
    curve = fitted()
    calibration = CascadeCalibration(DECIDER, curve)
    assert calibration.losses() is None
    for at in range(SEEN_MIN - 1):
        assert calibration.expected(row(at / 10 - 5)) == pytest.approx(
            float(logistic(row(at / 10 - 5))[0])
        )
        assert calibration.curve() == curve


@pytest.mark.long
@given(st.integers(0, 1000), st.floats(-1.5, 1.5), st.floats(0.6, 1.5))
def test_a_scene_that_is_harder_or_easier_is_learned(seed: int, shift: float, slope: float) -> None:
    rng = np.random.default_rng(seed)
    calibration = CascadeCalibration(DECIDER, fitted())
    logits = rng.normal(-1, 1, 400)
    losses = losses_of(rng, slope * logits + shift)
    for each, loss in zip(logits, losses, strict=True):
        calibration.compare(row(each), loss, hard=each > 0)
    assert calibration.compared <= 256
    grid = np.linspace(-3, 1, 30)
    expected = [calibration.expected(row(each)) for each in grid]
    assert expected == pytest.approx(logistic(slope * grid + shift).tolist(), abs=0.15)
    mean = calibration.losses()
    assert mean is not None
    # What was fitted still counts as 40 pictures.
    assert mean[0] == pytest.approx(mean[1], abs=0.08)


@given(st.integers(0, 1000), st.floats(-1, 1), st.floats(0.1, 0.9))
def test_a_share_stays_that_share_when_pictures_become_harder(
    seed: int, harder: float, share: float
) -> None:
    rng = np.random.default_rng(seed)
    calibration = CascadeCalibration(DECIDER, fitted())
    for each in rng.normal(-1 + harder, 1, SEEN):
        calibration.expected(row(each))
    threshold = calibration.curve().at_share(share).threshold
    later = logistic(rng.normal(-1 + harder, 1, 4000))
    assert (later > threshold).mean() == pytest.approx(share, abs=0.09)


def test_a_fitted_curve_without_inner_points_is_no_evidence() -> None:
    flat = CascadeCurve((CascadePoint(1, 0, 1), CascadePoint(0, 1, 0)))
    calibration = CascadeCalibration(DECIDER, flat)
    for value in (0.2, 0.4, 0.6):
        calibration.compare(row(float(logit(row(value))[0])), value, hard=True)
    assert calibration.expected(row(0.0)) == pytest.approx(0.5, abs=0.01)


@pytest.mark.long
@given(st.integers(0, 1000), st.integers(0, 300), st.integers(0, 300))
def test_a_calibration_goes_on_from_the_evidence_of_another(
    seed: int, seen: int, compared: int
) -> None:
    rng = np.random.default_rng(seed)
    first = CascadeCalibration(DECIDER, fitted())
    for each in rng.normal(-1, 1, seen):
        first.expected(row(each))
    logits = rng.normal(-1, 1, compared)
    for each, loss in zip(logits, losses_of(rng, 1.3 * logits + 1), strict=True):
        first.compare(row(each), loss, hard=each > 0)
    again = CascadeCalibration(DECIDER, fitted(), first.evidence)
    assert again.evidence == first.evidence
    assert again.compared == first.compared
    assert again.losses() == first.losses()
    for each in (-3.0, 0.0, 2.0):
        assert again.expected(row(each)) == first.expected(row(each))
    if seen < SEEN_MIN - 3:
        assert again.curve() == first.curve() == fitted()
    else:
        assert again.curve() != fitted()
