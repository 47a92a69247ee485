"""What variants see of pictures, and the figures made of it: worked by hand, and on the street."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.accuracy.evaluation import (
    LabelEvaluator,
    ReferenceModelEvaluator,
    accuracy_reports,
)
from edgebox.inference.accuracy.inference_run import (
    Fetch,
    Frame,
    Predictions,
    as_sent,
    best_batch_sizes,
    predict,
)
from edgebox.inference.accuracy.labelled import Dataset, LabelledPicture, make_truth
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import bundled_folders, load_family
from edgebox.scene.street_camera import Scene
from edgebox.vision.average_precision import as_boxes
from edgebox.vision.detections import SHOWN_SCORE_MIN, Detections
from tests.inference.tiny_onnx import ROOTS_32, write_family

Box = tuple[float, float, float, float]
NEAR: Box = (0.0, 0.0, 20.0, 20.0)
FAR: Box = (50.0, 0.0, 60.0, 10.0)
SIZE_PX = (100, 80)


@pytest.fixture(scope="module")
def street() -> Family:
    """Two variants of the bundled family."""
    whole = load_family(bundled_folders()[0])
    return replace(whole, variants=(whole.variants[0], whole.variants[4]))


def found(*rows: tuple[Box, float, int]) -> Detections:
    return Detections(
        as_boxes([row[0] for row in rows]).astype(np.float32),
        np.array([row[1] for row in rows], np.float32),
        np.array([row[2] for row in rows], np.int64),
    )


def prediction(family: Family, number: int, small: Detections, large: Detections) -> Predictions:
    names = [variant.name for variant in family.variants]
    return Predictions(number, SIZE_PX, dict(zip(names, (small, large), strict=True)))


def nothing(share: float) -> None:
    """Take no notice of progress."""


def test_f1_worked_by_hand(street: Family) -> None:
    small, large = (variant.name for variant in street.variants)
    evaluator = ReferenceModelEvaluator(street, "yard.mp4", [], 3)
    # Finds one of two, and something else: 1 hit, 2 shown, 2 to be found.
    both = found((NEAR, 0.9, 1), (FAR, 0.5, 1))
    evaluator.take(prediction(street, 0, found((NEAR, 0.4, 1), ((30, 30, 40, 40), 0.8, 1)), both))
    # Another label is another object, and what scores too little is shown to nobody.
    evaluator.take(
        prediction(street, 1, found((NEAR, 0.9, 0), (FAR, SHOWN_SCORE_MIN - 0.01, 1)), both)
    )
    # Nothing on it, nothing found: neither right nor wrong.
    evaluator.take(prediction(street, 2, Detections.empty(), found((NEAR, 0.29, 1))))
    measured = evaluator.measured(nothing)
    assert measured[small].accuracy == pytest.approx(2 * 1 / (3 + 4))
    assert measured[small].details == pytest.approx({"precision": 1 / 3, "recall": 1 / 4})
    assert measured[large].accuracy == 1.0
    assert measured[large].error == 0.0
    # A resample has the first picture a times, the second b times, the third for the rest.
    possible = [2 * a / (4 * a + 3 * b) for a in range(4) for b in range(4 - a) if a + b] + [1.0]
    for value in measured[small].resampled:
        assert min(abs(value - each) for each in possible) < 1e-9
    assert len(set(measured[small].resampled)) > 3


def test_where_the_largest_finds_nothing_there_is_no_f1(street: Family) -> None:
    evaluator = ReferenceModelEvaluator(street, "night.mp4", [], 1)
    with pytest.raises(InvalidInputError, match=r"night.mp4: no picture could be evaluated"):
        evaluator.measured(nothing)
    evaluator.take(prediction(street, 0, found((NEAR, 0.9, 1)), Detections.empty()))
    with pytest.raises(InvalidInputError, match="street-256 found nothing on 1 pictures"):
        evaluator.measured(nothing)


def dataset(*truths: list[tuple[Box, int]]) -> Dataset:
    """Return made-up pictures of the street's people (0) and of yaks (1)."""
    pictures = [
        LabelledPicture(
            Path(f"{at}.png"), make_truth([b for b, _ in rows], [k for _, k in rows]), SIZE_PX
        )
        for at, rows in enumerate(truths)
    ]
    return Dataset("zoo", ("Person", "yak"), tuple(pictures))


def test_map_worked_by_hand(street: Family) -> None:
    small, large = (variant.name for variant in street.variants)
    evaluator = LabelEvaluator(dataset([(NEAR, 0), (FAR, 0), (FAR, 1)]), street)
    # A car is no mistake where cars are not annotated.
    everything = found((NEAR, 0.9, 0), (FAR, 0.8, 0), (NEAR, 0.99, 1))
    evaluator.take(prediction(street, 0, found((NEAR, 0.01, 0)), everything))
    measured = evaluator.measured(nothing)
    assert measured[small].accuracy == pytest.approx(51 / 101)
    assert measured[large].accuracy == 1.0
    assert measured[large].details == {"mAP50": 1.0, "mAP75": 1.0, "small": 1.0}
    assert evaluator.remarks == [
        "objects the family has no label for, left out: yak (1)",
        "labels the dataset does not have, not evaluated: car, bus, truck, motorbike",
        "pycocotools agrees: street-256 has an mAP of 1.0000 on 1 pictures",
    ]


def test_the_error_is_that_of_the_mean_over_pictures(street: Family) -> None:
    small, large = (variant.name for variant in street.variants)
    evaluator = LabelEvaluator(dataset(*[[(NEAR, 0)]] * 400), street)
    for number in range(400):
        half = found((NEAR, 0.9, 0)) if number % 2 else Detections.empty()
        evaluator.take(prediction(street, number, half, found((NEAR, 0.9, 0))))
    measured = evaluator.measured(nothing)
    # One of two is found, always rightly: mAP is the recall, whose error is known.
    assert measured[small].accuracy == pytest.approx(0.5, abs=0.01)
    assert measured[small].error == pytest.approx((0.5 * 0.5 / 400) ** 0.5, rel=0.2)
    assert measured[large].error == 0.0


def test_limits_take_the_same_pictures_each_time(street: Family) -> None:
    many = dataset(*[[(NEAR, 0)]] * 50)
    orders = []
    for limit in (10, 10, 20, None):
        evaluator = LabelEvaluator(many, street, limit)
        assert evaluator.planned == (limit or 50)
        orders.append(
            [fetch.args[0] for fetch in evaluator.fetches() if isinstance(fetch, partial)]
        )
    assert orders[0] == orders[1]
    assert len(set(orders[3])) == 50
    assert orders[0] != sorted(orders[0])


def test_classifiers_are_not_judged_by_boxes(street: Family) -> None:
    with pytest.raises(InvalidInputError, match="street is a classifier"):
        LabelEvaluator(dataset([(NEAR, 0)]), replace(street, task="classify"))


def test_accuracy_reports_hold_all_that_is_known(street: Family) -> None:
    small, large = (variant.name for variant in street.variants)
    evaluator = ReferenceModelEvaluator(street, "yard.mp4", [], 30)
    for number in range(30):
        evaluator.take(prediction(street, number, found((NEAR, 0.9, 1)), found((NEAR, 0.9, 1))))
    took = {name: {ExecutorId("cpu/0"): ms} for name, ms in ((small, 5), (large, 9))}
    made = accuracy_reports(evaluator, street.variants, evaluator.measured(nothing), took, 1234)
    assert (made[large].kind, made[large].source, made[large].pictures) == ("F1", "yard.mp4", 30)
    assert made[large].measured_at_ms == 1234
    assert made[large].dominated.startswith("street-128 is no slower")
    assert made[small].dominated == ""
    measured_family = street.with_reports(made)
    assert [variant.accuracy for variant in measured_family.variants] == [1.0, 1.0]
    assert [variant.name for variant in measured_family.offered] == [small]
    assert replace(measured_family, keep_all=True).offered == measured_family.variants
    kept = accuracy_reports(
        evaluator, street.variants, evaluator.measured(nothing), took, 1, keep_all=True
    )
    assert street.with_reports(kept).offered == measured_family.variants


def test_the_batch_size_with_the_most_pictures_a_second() -> None:
    rows = {1: (10,) * 9, 2: (15,) * 9, 4: (31,) * 9}
    profile = LatencyProfile(VariantName("v"), ExecutorId("cpu/0"), rows)
    assert best_batch_sizes([profile]) == {"v": 2}


def streets(count: int) -> Iterator[Frame]:
    for seed in range(count):
        yield Scene(seed, 320, 180).render(4.0).rgb


def no_picture() -> Frame:
    raise InvalidInputError("broken.png: not a picture that can be read")


def test_an_answer_without_sense_ends_the_measurement(tmp_path: Path) -> None:
    family = load_family(write_family(tmp_path, ROOTS_32))
    bright, dark = (np.full((32, 32, 3), level, np.uint8) for level in (114, 0))
    executor = OnnxExecutor(0, [family], providers="cpu")
    try:
        pictures = [partial(np.copy, each) for each in (bright, dark, bright)]
        with pytest.raises(ModelError, match="no finite numbers"):
            list(predict(executor, family, {family.variants[0].name: 3}, pictures))
    finally:
        executor.close()


def test_every_variant_sees_every_picture_as_if_it_were_sent_alone(street: Family) -> None:
    frames = list(streets(5))
    fetches: list[Fetch] = [partial(np.copy, frame) for frame in frames]
    fetches.insert(2, no_picture)
    executor = OnnxExecutor(0, [street], providers="cpu", score_floor=SHOWN_SCORE_MIN)
    try:
        sizes = {street.variants[0].name: 2, street.variants[1].name: 4}
        seen = list(predict(executor, street, sizes, fetches))
        assert [each.number for each in seen] == list(range(6))
        assert seen[2].problem == "broken.png: not a picture that can be read"
        some = 0
        for frame, each in zip(frames, [*seen[:2], *seen[3:]], strict=True):
            assert (each.problem, each.size_px) == ("", (320, 180))
            for variant in street.variants:
                canvas, placed = as_sent(frame, variant, street.input)
                (alone,) = executor.submit(variant.name, [canvas], 1).result().detections
                alone = placed.to_source(alone, 320, 180)
                np.testing.assert_allclose(each.found[variant.name].boxes, alone.boxes, atol=0.05)
                some += len(alone)
        assert some > 10
    finally:
        executor.close()


def test_pictures_are_shrunk_never_enlarged(street: Family) -> None:
    small, large = street.variants
    rgb = Scene(1, 200, 112).render(1.0).rgb
    _, placed = as_sent(rgb, small, street.input)
    assert (placed.width_px, placed.height_px) == (128, 72)
    canvas, placed = as_sent(rgb, large, street.input)
    # Sent as it is; the box scales it to fill its canvas.
    assert (canvas.shape, placed.width_px) == ((160, 256, 3), 256)
