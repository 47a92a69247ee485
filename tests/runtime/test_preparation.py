"""Canvases: decoded pictures, what is wrong with others, and reuse that never shares."""

from dataclasses import replace

import numpy as np
import pytest

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.inference.family import InputSpec
from edgebox.media.jpeg import encode
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.preparation import CanvasPool, batch_inputs, prepare, prepared_as_sent
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Fit
from tests.scheduling.scene import request

TALL = FamilyName("tall")
VARIANT = Variant(VariantName("tall-64"), TALL, 64, 128, 0.5)
WHITE = encode(np.full((100, 100, 3), 255, np.uint8))


def pool(fit: str = "top_left") -> CanvasPool:
    return CanvasPool(
        {
            TALL: InputSpec(
                "nhwc", "uint8", "rgb", "centre" if fit == "centre" else "top_left", 9, 32
            )
        }
    )


def frame(jpeg: bytes = WHITE) -> PendingFrame:
    return PendingFrame(request(1, 300), jpeg, 100, 100, 0, lambda frame, ending: None)


@pytest.mark.parametrize(("fit", "rows"), [("top_left", slice(0, 64)), ("centre", slice(32, 96))])
def test_a_picture_lies_where_its_family_wants_it(fit: Fit, rows: slice) -> None:
    prepared = frame()
    prepare(prepared, VARIANT, pool(fit))
    assert prepared.invalid_because == ""
    assert prepared.canvas is not None
    assert prepared.canvas.shape == (128, 64, 3)
    assert (prepared.canvas[rows] > 250).all()
    grey = np.ones(128, bool)
    grey[rows] = False
    assert (prepared.canvas[grey] == 9).all()
    # A box around the picture on the canvas is a box around the camera's own picture.
    assert prepared.placement is not None
    whole = np.array([[0, rows.start, 64, rows.stop]], np.float32)
    found = Detections(whole, np.ones(1, np.float32), np.zeros(1, np.int64))
    boxes = prepared.placement.to_source(found, 1000, 1000).boxes
    assert boxes.tolist() == [[0, 0, 1000, 1000]]


@pytest.mark.parametrize("fit", ["top_left", "centre"])
def test_raw_pixels_lie_where_their_jpeg_would(fit: str) -> None:
    of_jpeg, of_pixels = frame(), frame(b"")
    of_pixels.rgb = np.full((100, 100, 3), 255, np.uint8)
    for prepared in (of_jpeg, of_pixels):
        prepare(prepared, VARIANT, pool(fit))
        assert prepared.invalid_because == ""
    assert of_pixels.placement == of_jpeg.placement
    assert of_pixels.canvas is not None
    assert of_jpeg.canvas is not None
    assert np.abs(of_pixels.canvas.astype(int) - of_jpeg.canvas).max() <= 5


@pytest.mark.parametrize("fit", ["top_left", "centre", "cover", "stretch"])
def test_pixels_of_the_variants_size_are_its_input_and_stay_their_senders(fit: Fit) -> None:
    canvases = CanvasPool({TALL: InputSpec("nhwc", "uint8", "rgb", fit, 9, 32)})
    as_sent, laid = frame(b""), frame(b"")
    pixels = np.random.default_rng(1).integers(0, 256, (128, 64, 3), np.uint8)
    pixels.flags.writeable = False  # they lie in the request's body
    as_sent.rgb, laid.rgb = pixels, pixels.copy()
    assert prepared_as_sent(as_sent, VARIANT)
    prepare(laid, VARIANT, canvases)
    assert laid.canvas is not None
    assert as_sent.canvas is pixels
    assert (as_sent.canvas == laid.canvas).all()
    assert as_sent.placement == laid.placement
    assert as_sent.canvas_of == laid.canvas_of
    canvases.give_back(as_sent)
    assert canvases.take(VARIANT) is not pixels


@pytest.mark.parametrize("shape", [(64, 128, 3), (128, 65, 3), (127, 64, 3)])
def test_pixels_of_any_other_size_are_laid_into_a_canvas(shape: tuple[int, int, int]) -> None:
    other = frame(b"")
    other.rgb = np.zeros(shape, np.uint8)
    assert not prepared_as_sent(other, VARIANT)
    assert not prepared_as_sent(frame(), VARIANT)
    assert other.canvas is None


SMALLER = Variant(VariantName("tall-32"), TALL, 32, 64, 0.4)
STRIPES = encode(
    np.repeat(np.linspace(0, 255, 100).astype(np.uint8)[:, None], 300, axis=1).reshape(100, 100, 3)
)


@pytest.mark.parametrize("fit", ["top_left", "centre", "cover", "stretch"])
def test_a_frame_for_another_variant_lies_as_if_it_had_been_prepared_for_it(fit: Fit) -> None:
    canvases = CanvasPool({TALL: InputSpec("nhwc", "uint8", "rgb", fit, 9, 32)})
    moved, own, other = frame(STRIPES), frame(STRIPES), frame(STRIPES)
    prepare(moved, VARIANT, canvases)
    before = moved.canvas
    prepare(own, SMALLER, canvases)
    prepare(other, SMALLER, canvases)
    inputs = batch_inputs([moved, other], SMALLER, canvases)
    assert moved.canvas is before, "it is scaled when the executor's thread reads it"
    made = list(inputs)
    assert made[1] is other.canvas
    assert made[0] is moved.canvas
    assert moved.canvas is not None
    assert own.canvas is not None
    assert moved.canvas_of == SMALLER.name
    assert moved.placement == own.placement
    assert np.abs(moved.canvas.astype(int) - own.canvas).mean() < 3


def test_what_is_wrong_with_a_picture_is_kept_for_its_camera() -> None:
    broken = frame(WHITE[: len(WHITE) // 2])
    prepare(broken, VARIANT, pool())
    assert "truncated" in broken.invalid_because


def test_a_canvas_given_back_is_used_again_and_never_by_two() -> None:
    canvases = pool()
    first, second = frame(), frame()
    prepare(first, VARIANT, canvases)
    prepare(second, VARIANT, canvases)
    assert first.canvas is not second.canvas
    used = first.canvas
    canvases.give_back(first)
    assert first.canvas is None
    canvases.give_back(first)  # twice is harmless
    third, fourth = frame(), frame()
    prepare(third, VARIANT, canvases)
    prepare(fourth, VARIANT, canvases)
    assert third.canvas is used
    assert fourth.canvas is not used


def test_a_burst_does_not_keep_its_memory() -> None:
    canvases = pool()
    frames = [frame() for _ in range(40)]
    for one in frames:
        prepare(one, VARIANT, canvases)
    before = {id(one.canvas) for one in frames}
    kept = [one.canvas for one in frames]  # so that no id is used again
    for one in frames:
        canvases.give_back(one)
    again = {id(canvases.take(VARIANT)) for _ in range(32)}
    assert again <= before
    assert id(canvases.take(VARIANT)) not in before
    assert len(kept) == 40


def test_a_variant_of_another_size_under_a_known_name_gets_canvases_of_its_own() -> None:
    canvases = pool()
    before, after = frame(), frame()
    prepare(before, VARIANT, canvases)
    canvases.give_back(before)
    other = replace(VARIANT, width_px=32)
    prepare(after, other, canvases)
    assert after.canvas is not None
    assert after.canvas.shape == (128, 32, 3)


def test_canvases_of_sizes_that_are_not_offered_any_more_are_freed() -> None:
    canvases = pool()
    kept, freed, late = frame(), frame(), frame()
    prepare(kept, SMALLER, canvases)
    prepare(freed, VARIANT, canvases)
    prepare(late, VARIANT, canvases)
    used = kept.canvas
    canvases.give_back(kept)
    canvases.give_back(freed)
    canvases.keep_only([SMALLER])
    canvases.give_back(late)
    assert {size: len(spare) for size, spare in canvases._spare.items()} == {(64, 32): 1}
    assert canvases.take(SMALLER) is used
