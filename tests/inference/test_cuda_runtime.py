"""Calls of the CUDA runtime: on one GPU only, and without errors that stay behind."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from edgebox.inference.cuda_runtime import CudaRuntime
from tests.inference.cuda_library import CudaLibrary


def lock(cuda: CudaRuntime) -> bool:
    return cuda.page_lock(4096, 10)


def unlock(cuda: CudaRuntime) -> bool:
    cuda.page_lock(4096, 10)
    cuda.unlock(4096)
    return False


def ask(cuda: CudaRuntime) -> bool:
    return cuda.used_bytes() is not None


def test_a_gpu_tells_what_is_used_by_anybody() -> None:
    assert CudaRuntime(CudaLibrary(), 2).used_bytes() == 30


@pytest.mark.parametrize("call", [lock, unlock, ask])
def test_only_the_gpu_in_question_is_touched(call: Callable[[CudaRuntime], bool]) -> None:
    library = CudaLibrary()
    with ThreadPoolExecutor(1) as fresh:
        fresh.submit(call, CudaRuntime(library, 1)).result()
        assert library.touched == {1}
        # Nothing else of the thread has chosen another one.
        fresh.submit(library.cudaMemGetInfo, *[_Number(), _Number()]).result()
    assert library.touched == {1}


class _Number:
    def __init__(self) -> None:
        self._obj = self
        self.value = 0


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cudaHostRegister", lock),
        ("cudaSetDevice", lock),
        ("cudaHostUnregister", unlock),
        ("cudaMemGetInfo", ask),
        ("cudaSetDevice", ask),
    ],
)
def test_a_failure_leaves_no_error_to_what_runs_next(
    name: str, call: Callable[[CudaRuntime], bool]
) -> None:
    library = CudaLibrary(fails={name: 801})
    assert not call(CudaRuntime(library, 0))
    assert library.last_error == 0
