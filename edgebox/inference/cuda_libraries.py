"""The CUDA libraries that ONNX Runtime needs: loads them and reports which are missing.

Nothing here prints, or changes what is printed: other threads do at the same time. Limits: only
libraries of the CUDA provider, by their names on Linux.
"""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from edgebox.inference.onnx_runtime import onnx_runtime

PROVIDER = "CUDAExecutionProvider"
DRIVER = "libcuda.so.1"
"""Comes with the driver; all others can come as Python packages."""
CUDA_BUILD = "a build of ONNX Runtime with CUDA"
"""What is missing where the package for CPUs is installed."""
DRIVER_MIN = {"12": 525, "13": 580}
"""The first driver, by the CUDA release that ONNX Runtime was built for."""
_RUNTIME = "libcudart.so."
_MAPS = Path("/proc/self/maps")


def cuda_major() -> str:
    """Return the CUDA release ONNX Runtime was built for ("13"); empty: none, or unknown.

    Its builders may leave the release out.
    """
    return str(getattr(onnx_runtime(), "cuda_version", "") or "").partition(".")[0]


def built_with_cuda() -> bool:
    """Return whether ONNX Runtime was built with CUDA, for whatever release."""
    return bool(cuda_major()) or PROVIDER in onnx_runtime().get_available_providers()


def cuda_runtime_library(maps: Path = _MAPS) -> ctypes.CDLL | None:
    """Return the CUDA runtime that ONNX Runtime uses; None: there is none.

    Args:
        maps: what is loaded in this process; of a build that does not name its release, the
            provider has to be loaded.
    """
    if major := cuda_major():
        return _loaded(_RUNTIME + major)
    try:
        lines = maps.read_text(errors="replace").splitlines()
    except OSError:
        return None
    paths = (line.split(maxsplit=5)[-1] for line in lines)
    return next((_loaded(path) for path in paths if Path(path).name.startswith(_RUNTIME)), None)


def missing_cuda_libraries() -> list[str]:
    """Load what the CUDA provider needs, also from packages; return what cannot be loaded.

    Of a build that does not name its CUDA release only the driver is known to be needed.
    """
    if not built_with_cuda():
        return [CUDA_BUILD]
    needed, optional = _libraries(cuda_major())
    folders = _package_folders()
    missing = [name for name in (DRIVER, *needed) if _loaded(name, folders) is None]
    for name in optional:
        _loaded(name, folders)
    ort = onnx_runtime()
    if not missing and hasattr(ort, "preload_dlls"):
        # Builds with CUDA as a plug-in offer it only once what it needs is loaded.
        ort.preload_dlls(cuda=False, cudnn=False)
    return missing


def _libraries(major: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return what a release of the provider needs, and what only some do, what others use first."""
    if not major.isdigit():
        return (), ()
    needed = (_RUNTIME + major, f"libcublasLt.so.{major}", f"libcublas.so.{major}")
    # The interface of cuFFT is one release behind CUDA's.
    optional = (f"libnvrtc.so.{major}", f"libcufft.so.{int(major) - 1}")
    return (*needed, "libcurand.so.10", "libcudnn.so.9"), optional


def _package_folders() -> list[Path]:
    """Return the folders of libraries that NVIDIA's packages have brought."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec is not None else None
    return sorted(folder for place in places or () for folder in Path(place).glob("*/lib"))


def _loaded(name: str, folders: Sequence[Path] = ()) -> ctypes.CDLL | None:
    """Return a library from one of these folders, else from where the system finds it."""
    for path in (*(folder / name for folder in folders), name):
        with suppress(OSError):
            return ctypes.CDLL(str(path))
    return None
