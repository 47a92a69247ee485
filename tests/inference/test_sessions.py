"""Sessions are opened on one provider: what ONNX Runtime says of a failure, and prints, is kept."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgebox.domain.errors import ModelError
from edgebox.inference import sessions
from edgebox.inference.cuda_libraries import DRIVER, PROVIDER
from edgebox.inference.sessions import CPU, TENSORRT, Session, open_session


class Runtime:
    """An `InferenceSession` of a machine whose provider fails; falls back as the real one does."""

    error = ""
    silent = False
    stdout: Any = None

    def __init__(
        self, path: str, options: object, providers: list[Any], enable_fallback: int = 1
    ) -> None:
        type(self).stdout = sys.stdout
        names = [each if isinstance(each, str) else each[0] for each in providers]
        self._providers = [CPU] if self.silent else names
        if self.error and names[0] != CPU:
            if not enable_fallback:
                raise RuntimeError(self.error)
            print(f"EP Error {self.error}")
            self._providers = [CPU]

    def get_providers(self) -> list[str]:
        return self._providers

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="pictures")]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> type[Runtime]:
    class Own(Runtime):
        pass

    module = SimpleNamespace(
        InferenceSession=Own,
        set_default_logger_severity=lambda level: None,
        get_available_providers=lambda: [TENSORRT, PROVIDER, CPU],
    )
    monkeypatch.setattr(sessions, "onnx_runtime", lambda: module)
    monkeypatch.setattr(sessions, "session_options", lambda threads: None)
    monkeypatch.setattr(sessions, "missing_cuda_libraries", list)
    return Own


def test_opening_a_model_leaves_standard_output_alone(runtime: type[Runtime]) -> None:
    # It is the process's: a model that hangs while it is opened would keep it for ever.
    opened = open_session(Path("model.onnx"), "cpu", 1)
    assert isinstance(opened, Session)
    assert runtime.stdout is sys.stdout


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_the_cause_is_the_providers_own(
    runtime: type[Runtime], capsys: pytest.CaptureFixture[str], provider: Any
) -> None:
    runtime.error = "CUDA failure 2: out of memory"
    with pytest.raises(ModelError, match=r"model\.onnx.*CUDA failure 2: out of memory"):
        open_session(Path("model.onnx"), provider, 1)
    assert capsys.readouterr().out == ""


def test_what_is_missing_is_told_rather_than_what_fails_without_it(
    runtime: type[Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.error = "Please install TensorRT libraries"
    with pytest.raises(ModelError, match="TensorRT cannot open it: Please install TensorRT"):
        open_session(Path("model.onnx"), "tensorrt", 1)
    monkeypatch.setattr(sessions, "missing_cuda_libraries", lambda: [DRIVER])
    with pytest.raises(ModelError, match="there is no NVIDIA driver on this machine"):
        open_session(Path("model.onnx"), "tensorrt", 1)


@pytest.mark.parametrize(
    ("provider", "said"), [("cuda", "the driver or the GPU"), ("tensorrt", "libnvinfer")]
)
def test_a_provider_that_is_left_out_without_a_word_is_told(
    runtime: type[Runtime], provider: Any, said: str
) -> None:
    runtime.silent = True
    with pytest.raises(ModelError, match=said):
        open_session(Path("model.onnx"), provider, 1)
