"""What CUDA needs, as builds of ONNX Runtime say it; no GPU, and libraries that are pretended."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgebox.inference import cuda_libraries, sessions
from edgebox.inference.cuda_libraries import (
    CUDA_BUILD,
    DRIVER,
    PROVIDER,
    built_with_cuda,
    cuda_runtime_library,
    missing_cuda_libraries,
)
from edgebox.inference.sessions import CPU, cuda_obstacle

LIBRARIES = {DRIVER, "libcudart.so.12", "libcublasLt.so.12", "libcublas.so.12", "libcurand.so.10"}


class Machine:
    """A build of ONNX Runtime, and the libraries that can be loaded beside it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there: set[str] = set()
        self.loaded: list[str] = []
        self.registered = 0
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(cuda_libraries, "ctypes", SimpleNamespace(CDLL=self._load))
        monkeypatch.setattr(cuda_libraries, "find_spec", lambda name: None)

    def _load(self, name: str) -> Any:
        if name not in self.there:
            raise OSError(f"{name}: cannot open shared object file")
        self.loaded.append(name)
        return SimpleNamespace(name=name)

    def runtime(self, release: str, providers: Sequence[str]) -> None:
        """Set which build of ONNX Runtime there is."""

        def preload(cuda: bool = True, cudnn: bool = True) -> None:
            assert not cuda, "it prints what it does not find"
            assert not cudnn
            self.registered += 1

        module = SimpleNamespace(
            __version__="1.32.0",
            cuda_version=release,
            get_available_providers=lambda: list(providers),
            preload_dlls=preload,
        )
        for place in (cuda_libraries, sessions):
            self._monkeypatch.setattr(place, "onnx_runtime", lambda: module)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_build_that_does_not_name_its_release_is_one_with_cuda(machine: Machine) -> None:
    machine.runtime("", [PROVIDER, CPU])
    assert built_with_cuda()
    assert missing_cuda_libraries() == [DRIVER]
    assert "no NVIDIA driver" in cuda_obstacle()
    machine.there = {DRIVER}
    assert missing_cuda_libraries() == []
    assert cuda_obstacle() == ""


def test_a_build_for_cpus_lacks_cuda(machine: Machine) -> None:
    machine.there = {DRIVER}
    machine.runtime("", [CPU])
    assert not built_with_cuda()
    assert missing_cuda_libraries() == [CUDA_BUILD]
    assert "1.32.0 is built without it" in cuda_obstacle()


def test_what_a_release_needs_is_named(machine: Machine) -> None:
    machine.there = set(LIBRARIES)
    machine.runtime("12.8", [PROVIDER, CPU])
    assert missing_cuda_libraries() == ["libcudnn.so.9"]
    assert "libcudnn.so.9 cannot be loaded: pip install 'edgebox[cuda]'" in cuda_obstacle()
    assert machine.registered == 0
    machine.there |= {"libcudnn.so.9", "libcufft.so.11"}
    assert missing_cuda_libraries() == []
    assert "libcufft.so.11" in machine.loaded  # some releases need it
    assert cuda_obstacle() == ""


def test_a_provider_that_comes_as_a_plug_in_is_offered_once_its_libraries_are_loaded(
    machine: Machine,
) -> None:
    machine.runtime("12.8", [CPU])
    machine.there = set(LIBRARIES)
    assert "libcudnn.so.9 cannot be loaded" in cuda_obstacle()
    machine.there = {*LIBRARIES, "libcudnn.so.9"}
    assert missing_cuda_libraries() == []
    assert machine.registered == 1


@pytest.mark.parametrize("layout", ["cublas", "cu12"])
def test_packages_come_before_the_system(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, layout: str
) -> None:
    library = tmp_path / layout / "lib" / "libcublas.so.12"
    library.parent.mkdir(parents=True)
    library.touch()
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(cuda_libraries, "find_spec", lambda name: spec)
    machine.runtime("12.8", [PROVIDER, CPU])
    machine.there = {*LIBRARIES, str(library)}
    assert missing_cuda_libraries() == ["libcudnn.so.9"]
    assert str(library) in machine.loaded
    assert "libcublas.so.12" not in machine.loaded
    machine.there.remove(str(library))  # it is broken
    assert missing_cuda_libraries() == ["libcudnn.so.9"]


def test_the_runtime_library_is_the_one_that_is_loaded(machine: Machine, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    path = "/usr/local/cuda 12/lib64/libcudart.so.12.6.68"
    maps.write_text(
        "7f00-7f01 r-xp 00000000 08:01 12  /usr/lib/libc.so.6\n"
        "7f02-7f03 rw-p 00000000 00:00 0\n"
        f"7f04-7f05 r-xp 00000000 08:01 13    {path}\n"
    )
    machine.there = {path, "libcudart.so.13"}
    machine.runtime("", [PROVIDER, CPU])
    assert _name(cuda_runtime_library(maps)) == path
    assert cuda_runtime_library(tmp_path / "none") is None
    machine.runtime("13.0", [PROVIDER, CPU])
    assert _name(cuda_runtime_library(maps)) == "libcudart.so.13"
    machine.there = set()
    assert cuda_runtime_library(maps) is None


def _name(library: ctypes.CDLL | None) -> str:
    assert library is not None
    return str(getattr(library, "name", ""))
