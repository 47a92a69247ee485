"""Input tensors against a pixel-by-pixel reference."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.inference.cuda_runtime import CudaRuntime
from edgebox.inference.family import InputSpec
from edgebox.inference.tensors import InputTensors
from tests.inference.cuda_library import CudaLibrary

VARIANT = Variant(VariantName("v"), FamilyName("f"), 5, 3, 0.5)


def pictures(count: int, seed: int = 0) -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (3, 5, 3), dtype=np.uint8) for _ in range(count)]


specs = st.builds(
    InputSpec,
    layout=st.sampled_from(["nhwc", "nchw"]),
    dtype=st.just("float32"),
    order=st.sampled_from(["rgb", "bgr"]),
    fit=st.just("top_left"),
    fill=st.just(114),
    size_multiple_px=st.just(1),
    scale=st.sampled_from([1.0, 1 / 255, 2.0]),
    mean=st.sampled_from([(0.0, 0.0, 0.0), (0.485, 0.456, 0.406), (1.0, 20.0, 300.0)]),
    std=st.sampled_from([(1.0, 1.0, 1.0), (0.229, 0.224, 0.225)]),
)


@given(spec=specs, count=st.integers(1, 4), seed=st.integers(0, 99))
def test_every_float_pixel_is_what_the_manifest_says(
    spec: InputSpec, count: int, seed: int
) -> None:
    given_pictures = pictures(count, seed)
    tensor = InputTensors().fill(spec, VARIANT, given_pictures, 4)
    assert tensor.dtype == np.float32
    assert tensor.flags.c_contiguous
    for b, y, x, c in product(range(4), range(3), range(5), range(3)):
        picture = given_pictures[min(b, count - 1)]  # padding repeats the last
        value = float(picture[y, x, c if spec.order == "rgb" else 2 - c])
        expected = (value * spec.scale - spec.mean[c]) / spec.std[c]
        got = tensor[b, y, x, c] if spec.layout == "nhwc" else tensor[b, c, y, x]
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("order", ["rgb", "bgr"])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_bytes_stay_bytes(layout: str, order: str) -> None:
    spec = InputSpec(layout, "uint8", order, "top_left", 114, 1)  # type: ignore[arg-type]
    (picture,) = pictures(1)
    tensor = InputTensors().fill(spec, VARIANT, [picture], 1)
    expected = picture if order == "rgb" else picture[:, :, ::-1]
    got = tensor[0] if layout == "nhwc" else tensor[0].transpose(1, 2, 0)
    assert tensor.dtype == np.uint8
    assert np.array_equal(got, expected)


SPEC = InputSpec("nhwc", "uint8", "rgb", "top_left", 114, 1)


def test_one_buffer_serves_every_batch_and_forgets_the_one_before() -> None:
    tensors = InputTensors()
    large = tensors.fill(SPEC, VARIANT, pictures(4, seed=1), 4)
    small_pictures = pictures(2, seed=2)
    small = tensors.fill(SPEC, VARIANT, small_pictures, 2)
    assert np.shares_memory(large, small)
    assert np.array_equal(small, np.stack(small_pictures))
    floats = replace(SPEC, dtype="float32")
    grown = tensors.fill(floats, VARIANT, small_pictures, 4)
    assert not np.shares_memory(grown, small)
    assert np.array_equal(grown[:2], np.stack(small_pictures))


def test_exactly_the_buffer_in_use_is_page_locked() -> None:
    cuda = CudaLibrary()
    tensors = InputTensors(CudaRuntime(cuda, 0))
    for size in (1, 3, 2):
        array = tensors.fill(SPEC, VARIANT, pictures(1), size)
        assert cuda.locked == {array.ctypes.data: (45, 135, 135)[size - 1]}
    tensors.release()
    assert cuda.locked == {}


def test_a_refusal_to_page_lock_costs_nothing_but_speed() -> None:
    cuda = CudaLibrary(fails={"cudaHostRegister": 2})
    tensors = InputTensors(CudaRuntime(cuda, 0))
    (picture,) = pictures(1)
    assert np.array_equal(tensors.fill(SPEC, VARIANT, [picture], 1)[0], picture)
    assert cuda.last_error == 0, "what runs next in this thread would fail with it"
    tensors.release()


@pytest.mark.parametrize(
    ("canvases", "batch_size", "problem"),
    [
        ([], 1, "0 pictures"),
        (pictures(3), 2, "3 pictures do not fit a batch of 2"),
        ([np.zeros((5, 3, 3), np.uint8)], 1, r"not \(5, 3, 3\) uint8"),
        ([np.zeros((3, 5, 3), np.float32)], 1, "float32"),
    ],
)
def test_what_does_not_fit_is_refused(
    canvases: list[NDArray[np.uint8]], batch_size: int, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        InputTensors().fill(SPEC, VARIANT, canvases, batch_size)
