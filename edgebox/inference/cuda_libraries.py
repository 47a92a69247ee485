"""Owns the CUDA libraries that ONNX Runtime needs: loads them, says which are missing.

Limits: knows only those of the CUDA provider, by their names on Linux.
"""

import contextlib
import ctypes
import io

import onnxruntime as ort


def preload_cuda_libraries() -> str:
    """Load CUDA and cuDNN from their Python packages, if present; return what was complained of.

    ONNX Runtime prints its complaints; on a machine without a GPU they would only alarm.
    """
    said = io.StringIO()
    if hasattr(ort, "preload_dlls"):
        with contextlib.redirect_stdout(said):
            ort.preload_dlls()
    return said.getvalue().strip()


def cuda_major() -> str:
    """Return the CUDA release ONNX Runtime was built for ("13"); empty: none, or not told."""
    return str(getattr(ort, "cuda_version", "") or "").partition(".")[0]


def cuda_runtime() -> ctypes.CDLL | None:
    """Return the CUDA runtime that ONNX Runtime uses; None: there is none."""
    return _loaded(f"libcudart.so.{cuda_major()}")


def missing_cuda_libraries() -> list[str]:
    """Return the libraries the CUDA provider loads that cannot be found."""
    major = cuda_major()
    if not major:
        return ["a build of ONNX Runtime with CUDA"]
    preload_cuda_libraries()
    wanted = ["libcuda.so.1", f"libcudart.so.{major}", f"libcublas.so.{major}"]
    wanted += [f"libcublasLt.so.{major}", "libcudnn.so.9"]
    return [name for name in wanted if _loaded(name) is None]


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
