"""ONNX Runtime: imported when it is needed; where it is missing, one line says what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgebox.domain.errors import MissingRuntimeError
from edgebox.inference.onnx_runtime import onnx_runtime, runtime_packages
from edgebox.inference.package_checks import check_runtime

HIDDEN = 'raise ImportError("No module named onnxruntime")\n'


def edgebox(tmp_path: Path, runtime: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where another module comes before the installed ONNX Runtime."""
    package = tmp_path / "path" / "onnxruntime"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(runtime)
    env = {**os.environ, "PYTHONPATH": str(package.parent), "XDG_DATA_HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-m", "edgebox", *arguments],
        env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "0"),
        ("demo", "--duration", "1"),
        ("detect", "x.jpg", "--family", "street"),
        ("profile",),
        ("models", "list"),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_it_says_in_one_line_what_to_install(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = edgebox(tmp_path, HIDDEN, *arguments)
    assert done.returncode == 78
    (line,) = done.stderr.splitlines()
    assert "ONNX Runtime" in line
    assert "edgebox[cpu]" in line
    assert "edgebox[cuda]" in line
    if arguments[0] == "serve":
        assert not list(tmp_path.rglob("*.sqlite3"))


def test_doctor_goes_on_without_it(tmp_path: Path) -> None:
    done = edgebox(tmp_path, HIDDEN, "doctor")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "✗ ONNX Runtime" in done.stdout
    assert "edgebox[cpu]" in done.stdout
    assert "Database" in done.stdout


@pytest.mark.parametrize("arguments", [("camera", "--help"), ("simulate", "--help")])
def test_what_runs_no_model_needs_none(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert edgebox(tmp_path, HIDDEN, *arguments).returncode == 0


def test_what_an_uninstallation_left_over_is_no_runtime(tmp_path: Path) -> None:
    done = edgebox(tmp_path, "", "serve", "--port", "0")
    assert done.returncode == 78
    assert "pip uninstall -y onnxruntime" in done.stderr


def test_it_is_here() -> None:
    assert onnx_runtime() is onnx_runtime()
    assert check_runtime().found.startswith("onnxruntime")
    names = {"onnxruntime": "1", "onnxruntime-gpu": "2", "onnx": "3", "onnxruntime_gpu": "4"}
    assert set(runtime_packages(names)) == set(names) - {"onnx"}


def test_the_error_ends_a_service_for_good() -> None:
    assert MissingRuntimeError.exit_code == 78
