"""The decider of a cascade: features, fit, calibration, curve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.vision.cascade_decider import (
    FEATURES,
    PICTURES_MIN,
    Floats,
    calibration_error,
    expected_losses,
    features,
    fit,
    fit_cascade,
    frame_loss,
    measured_curve,
)
from edgebox.vision.detections import Detections

SHOWN = 0.3


@st.composite
def found(draw: st.DrawFn) -> Detections:
    """Detections on a picture of 640 × 360 px."""
    n = draw(st.integers(0, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    low = rng.uniform(0, (600, 320), (n, 2))
    boxes = np.hstack((low, low + rng.uniform(1, 40, (n, 2)))).astype(np.float32)
    scores = rng.uniform(0.01, 1, n).astype(np.float32)
    return Detections(boxes, scores, rng.integers(0, 3, n))


@given(found())
def test_features_do_not_depend_on_the_order_or_size_of_the_picture(
    seen: Detections,
) -> None:
    row = features(seen, 640, 360, SHOWN)
    assert row.shape == (len(FEATURES),)
    assert np.isfinite(row).all()
    order = np.arange(len(seen))[::-1]
    assert features(seen.select(order), 640, 360, SHOWN) == pytest.approx(row)
    twice = Detections(2 * seen.boxes, seen.scores, seen.labels)
    assert features(twice, 1280, 720, SHOWN) == pytest.approx(row, rel=1e-4, abs=1e-4)


@given(found())
def test_a_picture_loses_nothing_against_itself(seen: Detections) -> None:
    assert frame_loss(seen, seen, 3, SHOWN) == 0


@given(found())
def test_a_picture_without_detections_loses_all_there_is(seen: Detections) -> None:
    there = len(seen.above(SHOWN)) > 0
    assert frame_loss(Detections.empty(), seen, 3, SHOWN) == float(there)
    assert frame_loss(seen, Detections.empty(), 3, SHOWN) == float(there)


@given(found(), st.integers(0, 11))
def test_the_loss_is_one_minus_f1(seen: Detections, left_out: int) -> None:
    shown = seen.above(SHOWN)
    if left_out >= len(shown):
        return
    part = shown.select(np.arange(len(shown)) != left_out)
    n = len(shown)
    assert frame_loss(part, shown, 3, SHOWN) == pytest.approx(1 - 2 * (n - 1) / (2 * n - 1))


def pictures(seed: int, n: int) -> tuple[Floats, Floats]:
    """Features, and losses that follow a logistic function of the first two, with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, len(FEATURES)))
    rows[:, 5] = 3.0  # one that never changes
    expected = 1 / (1 + np.exp(-(1.5 * rows[:, 0] - rows[:, 1] - 1)))
    losses = np.clip(expected + rng.normal(scale=0.1, size=n), 0, 1)
    return rows, losses


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_a_fit_is_the_minimum_of_its_objective(seed: int) -> None:
    rows, losses = pictures(seed, 60)
    decider = fit(rows, losses)
    # Weights of features of variance 1 are penalised; the one that never changes has none.
    scale = np.where(rows.std(axis=0) > 1e-9, rows.std(axis=0), 1)
    standard = (rows - rows.mean(axis=0)) / scale

    def objective(weights: Floats, bias: float) -> float:
        logits = standard @ weights + bias
        loss = np.logaddexp(0, logits) - losses * logits
        return float(loss.sum() + 0.5 * (weights**2).sum() + 0.5e-6 * bias**2)

    weights = np.array(decider.weights) * scale
    bias = decider.bias + float(np.array(decider.weights) @ rows.mean(axis=0))
    best = objective(weights, bias)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        step = rng.normal(scale=0.05, size=len(weights))
        assert objective(weights + step, bias) >= best - 1e-6
        assert objective(weights, bias + step[0]) >= best - 1e-6


def test_what_can_be_learned_is_learned_and_calibrated() -> None:
    rows, losses = pictures(1, 400)
    fitted = fit_cascade(rows, losses)
    assert fitted.calibration_error < 0.05
    unseen, truth = pictures(2, 400)
    expected = expected_losses(fitted.decider, unseen)
    assert np.corrcoef(expected, truth)[0, 1] > 0.9
    assert calibration_error(expected, truth) < 0.05
    half = fitted.curve.at_share(0.5)
    # A random half would keep half of the loss.
    assert half.loss < 0.25 * fitted.curve.loss_max
    assert np.mean(expected > half.threshold) == pytest.approx(0.5, abs=0.1)


def test_the_same_pictures_give_the_same_decider() -> None:
    assert fit_cascade(*pictures(3, 100)) == fit_cascade(*pictures(3, 100))


def test_what_cannot_be_learned_gives_the_mean_loss() -> None:
    rng = np.random.default_rng(5)
    losses = rng.uniform(0, 1, 200)
    fitted = fit_cascade(rng.normal(size=(200, len(FEATURES))), losses)
    expected = expected_losses(fitted.decider, rng.normal(size=(200, len(FEATURES))))
    assert expected.mean() == pytest.approx(losses.mean(), abs=0.05)
    assert expected.std() < 0.1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=20, max_size=60))
def test_a_curve_says_what_sending_on_does(rows: list[tuple[float, float]]) -> None:
    expected, losses = (np.array(column) for column in zip(*rows, strict=True))
    n, parts = len(rows), 5
    curve = measured_curve(expected, losses, parts)
    for point in curve.points:
        sent = sorted(range(n), key=lambda at: -expected[at])[: round(n * point.share)]
        kept = [losses[at] for at in range(n) if at not in sent]
        assert point.loss == pytest.approx(sum(kept) / n, abs=1e-5)
        assert sum(expected > point.threshold + 1e-5) <= max(len(sent), n * (point.share == 1))


def test_too_few_pictures_and_equal_models_are_refused() -> None:
    rows, losses = pictures(1, PICTURES_MIN - 1)
    with pytest.raises(InvalidInputError, match=f"at least {PICTURES_MIN} pictures"):
        fit_cascade(rows, losses)
    rows, losses = pictures(1, 50)
    with pytest.raises(InvalidInputError, match="found the same on all 50 pictures"):
        fit_cascade(rows, np.zeros(50))
