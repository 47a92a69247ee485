"""The CUDA libraries that ONNX Runtime needs: loads them and reports which are missing.

Limits: only those of the CUDA provider, by their names on Linux.
"""

import contextlib
import ctypes
import io

from edgebox.inference.onnx_runtime import onnx_runtime

DRIVER = "libcuda.so.1"
"""Comes with the driver; all others can come as Python packages."""
CUDA_BUILD = "a build of ONNX Runtime with CUDA"
"""What is missing where the package for CPUs is installed."""
DRIVER_MIN = {"12": 525, "13": 580}
"""The first driver, by the CUDA release that ONNX Runtime was built for."""


def cuda_major() -> str:
    """Return the CUDA release ONNX Runtime was built for ("13"); empty: none, or unknown."""
    return str(getattr(onnx_runtime(), "cuda_version", "") or "").partition(".")[0]


def cuda_runtime() -> ctypes.CDLL | None:
    """Return the CUDA runtime that ONNX Runtime uses; None: there is none."""
    return _loaded(f"libcudart.so.{cuda_major()}")


def missing_cuda_libraries() -> list[str]:
    """Load what the CUDA provider needs, also from packages; return what cannot be loaded."""
    major = cuda_major()
    if not major:
        return [CUDA_BUILD]
    ort = onnx_runtime()
    if hasattr(ort, "preload_dlls"):
        # It prints what it misses, which on a machine without a GPU would only alarm.
        with contextlib.redirect_stdout(io.StringIO()):
            ort.preload_dlls()
    wanted = [DRIVER, f"libcudart.so.{major}", f"libcublas.so.{major}"]
    wanted += [f"libcublasLt.so.{major}", "libcurand.so.10", "libcudnn.so.9"]
    return [name for name in wanted if _loaded(name) is None]


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
