"""The wheel and the sdist: complete, and the same whenever and from whichever they are built."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.test_repository import relative, tracked

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def build(source: Path, target: Path) -> None:
    """Build the wheel of a source tree, and its sdist where that is the repository."""
    kinds = ["wheel", "sdist"] if source == ROOT else ["wheel"]
    env = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    for kind in kinds:
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
        done = subprocess.run(
            command, cwd=source, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def one(folder: Path, ending: str) -> Path:
    (file,) = folder.glob(f"*{ending}")
    return file


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the wheel and the sdist of this repository."""
    if not (ROOT / "edgebox/web/page/index.html").exists():
        pytest.skip("the page is not built: make page")
    target = tmp_path_factory.mktemp("built")
    build(ROOT, target)
    return target


def test_the_wheel_has_all_that_runs(built: Path) -> None:
    with zipfile.ZipFile(one(built, ".whl")) as wheel:
        names = set(wheel.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(about))
    code = {relative(file) for file in tracked() if file.is_relative_to(ROOT / "edgebox")}
    page = {relative(file) for file in (ROOT / "edgebox/web/page").rglob("*") if file.is_file()}
    forced = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert code | page | set(forced.values()) <= names
    assert "edgebox/app/units/edgebox.service" in names
    licences = {name.rsplit("licenses/", 1)[1] for name in names if ".dist-info/licenses/" in name}
    assert licences == set(PROJECT["project"]["license-files"])
    assert set(metadata.get_all("Provides-Extra") or []) == set(
        PROJECT["project"]["optional-dependencies"]
    )
    others = {name.split("/")[0] for name in names} - {"edgebox", about.split("/")[0]}
    assert others == set()


def test_the_sdist_has_the_repository_and_the_page(built: Path) -> None:
    with tarfile.open(one(built, ".tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    missing = {relative(file) for file in tracked()} - names
    # hatchling leaves out what tells git alone what to do.
    assert {name for name in missing if not name.endswith(".gitignore")} == set()
    assert "edgebox/web/page/index.html" in names
    assert not [name for name in names if name.startswith((".venv", "webui/node_modules"))]


def test_they_come_out_the_same_again(built: Path, tmp_path: Path) -> None:
    build(ROOT, tmp_path)
    for ending in (".whl", ".tar.gz"):
        assert one(tmp_path, ending).read_bytes() == one(built, ending).read_bytes()


def test_the_wheel_of_the_sdist_is_that_of_the_repository(built: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(one(built, ".tar.gz"), tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    build(source, tmp_path / "wheel")
    assert one(tmp_path / "wheel", ".whl").read_bytes() == one(built, ".whl").read_bytes()
