"""Measures JPEG decoding: as edgebox does it, and with nvImageCodec where that is installed.

A picture ends where edgebox wants it, on a canvas in host memory. edgebox's decoder reduces while
it decodes; nvImageCodec decodes whole pictures, which are then copied from the device and scaled.
`decoded` begins with a picture that is decoded: what is left if decoding cost nothing.
`cpu_ms` is what a picture costs the processor, `p50_ms` how long it takes in one thread, and
`threads_hz` is how many a second go through threads on all cores.
"""

import functools
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu_half import streets
from benchmarks.gpu_points import Setup
from benchmarks.gpu_results import Figures, Row, failing
from edgebox.domain.errors import ModelError
from edgebox.inference.machine import usable_cores
from edgebox.media.jpeg import decode_into, encode, lay_into, resize_rgb

SIZES_PX = ((640, 360), (1280, 720), (1920, 1080))
CANVAS_PX = (640, 360)
PER_THREAD = 20

Decode = Callable[[bytes, NDArray[np.uint8]], object]
"""Puts a picture on a canvas."""


def rows(setup: Setup) -> Iterator[Row]:
    """Yield each decoder and size of picture."""
    rgb = streets(1)[0].rgb
    decoders: dict[str, Decode] = {"edgebox": decode_into}
    try:
        decoders["nvimagecodec"] = _nvimagecodec(setup)
    except ModelError as error:
        yield failing("nvimagecodec", error)
    width_px, height_px = CANVAS_PX
    for size in SIZES_PX:
        picture = resize_rgb(rgb, *size)
        jpeg = encode(picture)
        decoded: Decode = functools.partial(_decoded, picture)
        for name, decode in {**decoders, "decoded": decoded}.items():
            yield Row(
                f"{name} {size[0]}x{size[1]} to {width_px}x{height_px}",
                functools.partial(_measure, setup, decode, jpeg),
            )


def _decoded(rgb: NDArray[np.uint8], _jpeg: bytes, canvas: NDArray[np.uint8]) -> None:
    """Put a decoded picture on a canvas."""
    if rgb.shape == canvas.shape:
        np.copyto(canvas, rgb)
    else:
        lay_into(rgb, canvas)


def _measure(setup: Setup, decode: Decode, jpeg: bytes) -> Figures:
    canvas = np.empty((CANVAS_PX[1], CANVAS_PX[0], 3), np.uint8)
    wall_ms, cpu_ms = [], []
    until_s = time.monotonic() + setup.row_s
    for run in range(setup.runs):
        began_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
        decode(jpeg, canvas)
        wall_ms.append((time.monotonic_ns() - began_ns) / 1e6)
        cpu_ms.append((time.process_time_ns() - cpu_ns) / 1e6)
        if run >= PER_THREAD and time.monotonic() > until_s:
            break
    return {
        "p50_ms": statistics.median(wall_ms),
        "cpu_ms": statistics.median(cpu_ms),
        "threads_hz": _threads_hz(decode, jpeg, usable_cores()),
        "jpeg_bytes": len(jpeg),
    }


def _threads_hz(decode: Decode, jpeg: bytes, threads: int) -> float:
    def some(_: int) -> None:
        canvas = np.empty((CANVAS_PX[1], CANVAS_PX[0], 3), np.uint8)
        for _ in range(PER_THREAD):
            decode(jpeg, canvas)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, range(threads)))  # each thread's decoder is made
        began_s = time.monotonic()
        list(pool.map(some, range(threads)))
        return threads * PER_THREAD / (time.monotonic() - began_s)


def _nvimagecodec(setup: Setup) -> Decode:
    """Return what decodes with nvImageCodec: two threads must not share a decoder of it.

    Raises:
        ModelError: it is not installed, or decodes nothing here.
    """
    os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
    try:
        from nvidia import nvimgcodec  # noqa: PLC0415 - is nowhere required
    except ImportError as error:
        package = "pip install nvidia-nvimgcodec-cu13[nvjpeg]"
        raise ModelError(f"nvImageCodec is not installed ({package})") from error
    kinds, own = nvimgcodec.BackendKind, threading.local()
    cpu = setup.device == "cpu"
    kind = (kinds.CPU_ONLY,) if cpu else (kinds.HW_GPU_ONLY, kinds.HYBRID_CPU_GPU, kinds.GPU_ONLY)

    def decoder() -> Any:
        if not hasattr(own, "decoder"):
            own.decoder = nvimgcodec.Decoder(
                device_id=nvimgcodec.NVIMGCODEC_DEVICE_CPU_ONLY if cpu else 0,
                max_num_cpu_threads=1,
                backends=[nvimgcodec.Backend(each) for each in kind],
            )
        return own.decoder

    def decode(jpeg: bytes, canvas: NDArray[np.uint8]) -> None:
        picture = decoder().decode(jpeg)
        if picture is None:
            raise ModelError("nvImageCodec cannot decode a picture that edgebox encoded")
        _decoded(np.asarray(picture.cpu()), jpeg, canvas)

    try:
        decode(encode(np.zeros((8, 8, 3), np.uint8)), np.empty((8, 8, 3), np.uint8))
    except RuntimeError as error:
        raise ModelError(f"nvImageCodec cannot be used: {error}") from error
    return decode
