"""ONNX Runtime: imported when it is needed; where it is missing, one line says what to install."""

import os
import subprocess
import sys
from importlib import metadata
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


class Package(metadata.Distribution):
    """An installed package with some files; None: it does not list them."""

    def __init__(self, name: str, version: str, *files: str | None) -> None:
        self._texts = {"METADATA": f"Name: {name}\nVersion: {version}\n"}
        if None not in files:
            self._texts["RECORD"] = "\n".join(f"{file},," for file in files)

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(__file__)  # what is not there is left out


def test_what_provides_it_has_its_module() -> None:
    module = "onnxruntime/__init__.py"
    packages = [
        Package("onnxruntime", "1", module, "onnxruntime/capi/x.so"),
        Package("onnxruntime_gpu", "2", module),
        Package("onnxruntime-extensions", "3", "onnxruntime_extensions/__init__.py"),
        Package("onnxruntime-genai", "4", "onnxruntime_genai/__init__.py"),
        Package("onnxruntime-from-the-system", "5", None),
        Package("onnx", "6", module),
    ]
    assert runtime_packages(packages) == {
        "onnxruntime": "1", "onnxruntime-from-the-system": "5", "onnxruntime_gpu": "2",
    }  # fmt: skip
    assert len(runtime_packages()) == 1


def test_the_error_ends_a_service_for_good() -> None:
    assert MissingRuntimeError.exit_code == 78
