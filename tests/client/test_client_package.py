"""The package edgebox-client: light, whole, typed, and the same code as edgebox."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from edgebox import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENT = ROOT / "client"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text("utf-8"))["project"]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def build(source: Path, target: Path, kind: str) -> Path:
    """Build a source tree; return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(CLIENT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the wheel is unpacked."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_it_has_what_it_imports_and_nothing_of_the_box(installed: Path) -> None:
    modules = {
        file.relative_to(installed).as_posix()
        for file in installed.rglob("*")
        if file.is_file() and ".dist-info/" not in file.as_posix()
    }
    inner = "edgebox_client/_edgebox/"
    shared = {name.removeprefix(inner) for name in modules if name.startswith(inner)}
    assert {"edgebox_client/py.typed", "edgebox_client/LICENSE"} <= modules
    assert {"camera/daemon.py", "link/sender.py", "media/sources.py"} <= shared
    heavy = ("app", "commands", "inference", "runtime", "scheduling", "planning", "web")
    assert not [name for name in shared if name.split("/")[0] in heavy]
    for name in shared:
        text = (installed / inner / name).read_text("utf-8")
        text = text.replace("edgebox_client._edgebox", "edgebox")
        assert text == (ROOT / "edgebox" / name).read_text("utf-8")


def test_the_wheel_of_the_sdist_is_that_of_the_repository(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(build(CLIENT, tmp_path / "sdist", "sdist"), tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    assert build(source, tmp_path / "again", "wheel").read_bytes() == wheel.read_bytes()


def test_its_versions_are_those_of_edgebox() -> None:
    assert PROJECT["version"] == WHOLE["version"] == __version__
    assert PROJECT["requires-python"] == WHOLE["requires-python"]
    assert set(PROJECT["dependencies"]) <= set(WHOLE["dependencies"])
    assert PROJECT["optional-dependencies"]["video"] == WHOLE["optional-dependencies"]["camera"]
    assert PROJECT["optional-dependencies"]["mdns"] == WHOLE["optional-dependencies"]["mdns"]


_ALONE = """
import sys
sys.modules["edgebox"] = None  # an import of it fails
import edgebox_client
from edgebox_client._edgebox.scene.street_camera import Scene
edgebox_client.open_source("scene:1").close()
here = {name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])
assert not here, here
print(edgebox_client.__file__)
"""


def test_it_runs_without_edgebox_and_its_libraries(installed: Path) -> None:
    libraries = ["onnxruntime", "onnx", "aiosqlite", "click", "rich", "prometheus_client", "lap"]
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, *libraries],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(installed / "edgebox_client/__init__.py")


_TYPED = """
from edgebox_client import Client

def labels(path: str) -> list[str]:
    with Client("box", token="x") as box:
        seen = [found.label for found in box.infer(path).detections]
        for result in box.results("gate-*", classes=["car"]):
            seen += [found.label for found in result.detections]
        with box.camera("gate", size_px=(320, 180), on_result=lambda result: None) as camera:
            camera.summary().on_time.bit_length()
        box.change("gate", base=box.cameras()[0].versions, rate_hz=2, site=None)
    return seen

with Client() as box:
    wrong: int = box.infer("x.jpg")
    box.camera("gate", rate="fast")
    box.change("gate", rate_hz="fast")
"""


def test_a_users_program_is_checked_against_its_types(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_TYPED, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 3, done.stdout
    assert 'expression has type "Answer", variable has type "int"' in errors[0]
    assert '"rate"' in errors[1]
    assert '"rate_hz"' in errors[2]
