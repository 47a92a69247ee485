"""Which objects later stages take, and where their crops are, against brute force."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import CropOrder, PipelineStage, StageName
from edgebox.vision.cropping import crop_of, taken
from edgebox.vision.detections import Detections

LABELS = ("person", "car", "dog")
WIDTH_PX, HEIGHT_PX = 64, 48
Object = tuple[int, int, int, int, float, int]


@st.composite
def objects(draw: st.DrawFn) -> Object:
    """Return (left, top, right, bottom, score, label) within the picture."""
    left, top = draw(st.integers(0, WIDTH_PX - 1)), draw(st.integers(0, HEIGHT_PX - 1))
    right, bottom = draw(st.integers(left, WIDTH_PX)), draw(st.integers(top, HEIGHT_PX))
    score = draw(st.sampled_from((0.0, 0.25, 0.5, 0.75)))  # ties, and exact as float32
    return left, top, right, bottom, score, draw(st.integers(0, 3))


@st.composite
def stages(draw: st.DrawFn) -> PipelineStage:
    quarters = st.integers(0, 4).map(lambda n: n / 4)
    region = draw(st.none() | st.tuples(quarters, quarters, quarters, quarters))
    return PipelineStage(
        StageName("read"),
        FamilyName("street"),
        (StageName("find"),),
        labels=tuple(draw(st.lists(st.sampled_from((*LABELS, "ghost")), max_size=2))),
        score_min=draw(st.sampled_from((0.0, 0.25, 0.6))),
        side_min_px=draw(st.integers(1, 20)),
        region=region,
        crops_max=draw(st.integers(1, 5)),
        order=draw(st.sampled_from(CropOrder)),
    )


def passes(stage: PipelineStage, of: Object) -> bool:
    left, top, right, bottom, score, label = of
    if stage.labels and (label >= len(LABELS) or LABELS[label] not in stage.labels):
        return False
    if stage.region is not None:
        x, y = (left + right) / 2 / WIDTH_PX, (top + bottom) / 2 / HEIGHT_PX
        x0, y0, x1, y1 = stage.region
        if not (x0 <= x <= x1 and y0 <= y <= y1):
            return False
    return score >= stage.score_min and min(right - left, bottom - top) >= stage.side_min_px


@given(stages(), st.lists(objects(), min_size=1, max_size=12))
def test_a_stage_takes_the_best_of_what_passes_its_filters(
    stage: PipelineStage, found: list[Object]
) -> None:
    def rank(row: int) -> tuple[float, int]:
        left, top, right, bottom, score, _ = found[row]
        area = (right - left) * (bottom - top)
        return -(score if stage.order is CropOrder.SCORE else area), row

    expected = sorted((r for r in range(len(found)) if passes(stage, found[r])), key=rank)
    boxes = np.array([of[:4] for of in found], np.float32)
    detections = Detections(
        boxes,
        np.array([of[4] for of in found], np.float32),
        np.array([of[5] for of in found], np.int64),
    )
    rows = taken(stage, detections, boxes, LABELS, (HEIGHT_PX, WIDTH_PX, 3))
    assert rows.tolist() == expected[: stage.crops_max]


@given(objects(), st.sampled_from((0.0, 0.125, 0.5, 2.0)))
def test_a_crop_is_every_pixel_that_its_box_and_margin_touch(of: Object, margin: float) -> None:
    left, top, right, bottom = of[:4]
    x, y = (right - left) * margin, (bottom - top) * margin
    columns = [c for c in range(WIDTH_PX) if c + 1 > left - x and c < right + x]
    rows = [r for r in range(HEIGHT_PX) if r + 1 > top - y and r < bottom + y]
    x0, y0, x1, y1 = crop_of(np.array(of[:4], np.float32), margin, WIDTH_PX, HEIGHT_PX)
    if left < right:
        assert (x0, x1) == (columns[0], columns[-1] + 1)
    if top < bottom:
        assert (y0, y1) == (rows[0], rows[-1] + 1)
    assert 0 <= x0 < x1 <= WIDTH_PX
    assert 0 <= y0 < y1 <= HEIGHT_PX


@given(
    st.floats(0, WIDTH_PX, width=32),
    st.floats(0, HEIGHT_PX, width=32),
    st.floats(0, WIDTH_PX, width=32),
    st.floats(0, HEIGHT_PX, width=32),
)
def test_a_crop_is_never_empty_and_within_the_picture(
    x: float, y: float, across: float, down: float
) -> None:
    right, bottom = min(WIDTH_PX, x + across), min(HEIGHT_PX, y + down)
    box = np.array((x, y, right, bottom), np.float32)
    x0, y0, x1, y1 = crop_of(box, 0.0, WIDTH_PX, HEIGHT_PX)
    assert 0 <= x0 < x1 <= WIDTH_PX
    assert 0 <= y0 < y1 <= HEIGHT_PX
    assert x0 <= math.floor(float(box[0]))
    assert x1 >= min(WIDTH_PX, math.ceil(float(box[2])))
