"""The locks of requirements/: they satisfy pyproject.toml, are complete and agree."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from itertools import combinations
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    "cpu": ("cpu", "mqtt", "tls"),
    "cuda": ("cuda", "mqtt", "tls"),
    "jetson": ("mqtt", "tls"),
    "camera": ("camera",),
    "ray": ("ray",),
    "onvif": ("onvif",),
    "zmq": ("zmq",),
}
"""By lock, what it is made of beside the base."""
UNLOCKED = {"accuracy", "plot", "train", "fuzz", "dev", "mdns"}
"""Extras that no box needs in a container, and one with a licence that no image is shipped with."""
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "python_full_version": "3.11.7"}


def entries(lock: str) -> Iterator[tuple[Requirement, int]]:
    """Yield what a lock pins, with the number of hashes."""
    text = (ROOT / f"requirements/{lock}.txt").read_text("utf-8").replace("\\\n", "")
    for line in text.splitlines():
        stated, *hashes = re.split(r"\s+--hash=", line)
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), stated
        yield Requirement(stated), len(hashes)


def pinned(lock: str) -> dict[str, str]:
    """Return the versions that a lock gives Linux and the Python of the images."""
    return {
        canonicalize_name(entry.name): next(iter(entry.specifier)).version
        for entry, _ in entries(lock)
        if entry.marker is None or entry.marker.evaluate(LINUX)
    }


def test_each_lock_is_known() -> None:
    assert {file.stem for file in (ROOT / "requirements").iterdir()} == set(EXTRAS)


def test_what_the_pages_describe_can_be_had_in_an_image() -> None:
    locked = {extra for extras in EXTRAS.values() for extra in extras}
    assert set(PROJECT["optional-dependencies"]) - locked == UNLOCKED
    page = (ROOT / "docs/how-to/docker.md").read_text("utf-8")
    assert {lock for lock in EXTRAS if f"`{lock}`" not in page} == {"jetson"}
    assert "`mdns`" in page


@pytest.mark.parametrize("lock", EXTRAS)
def test_everything_is_pinned_with_hashes(lock: str) -> None:
    for entry, hashes in entries(lock):
        assert [each.operator for each in entry.specifier] == ["=="], entry
        assert hashes > 0, entry


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_satisfies_the_project(lock: str) -> None:
    asked = [*PROJECT["dependencies"]]
    for extra in EXTRAS[lock]:
        asked += PROJECT["optional-dependencies"][extra]
    versions = pinned(lock)
    for text in asked:
        wanted = Requirement(text)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), text


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_is_complete(lock: str) -> None:
    """What locked packages require is locked, as far as they are installed here."""
    versions = pinned(lock)
    missing = []
    for name in versions:
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for wanted in map(Requirement, required):
            applies = wanted.marker is None or wanted.marker.evaluate({**LINUX, "extra": ""})
            if applies and canonicalize_name(wanted.name) not in versions:
                missing.append(f"{name}: {wanted}")
    assert missing == []


def test_locks_can_be_installed_together_and_none_has_two_onnx_runtimes() -> None:
    runtimes = {"cpu": "onnxruntime", "cuda": "onnxruntime-gpu"}
    versions = {lock: pinned(lock) for lock in EXTRAS}
    for lock, found in versions.items():
        assert {name for name in found if name.startswith("onnxruntime")} == (
            {runtimes[lock]} if lock in runtimes else set()
        )
    for one, other in combinations(versions, 2):
        both = versions[one].keys() & versions[other].keys()
        assert {n: versions[one][n] for n in both} == {n: versions[other][n] for n in both}


def test_markers_are_those_that_images_decide_alike() -> None:
    """No version depends on the processor: x86-64 and aarch64 get the same."""
    markers = {str(entry.marker) for lock in EXTRAS for entry, _ in entries(lock)} - {"None"}
    assert not [text for text in markers if "machine" in str(Marker(text))]
