"""What is installed with edgebox: licences that it may be shipped with, requirements that hold."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from edgebox.web.system import licence_of

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("cpu", "mqtt", "tls", "camera", "onvif", "zmq", "accuracy", "plot")
"""Those that users install; `dev` and `train` are not shipped, and `cuda` is not here."""
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT", "MIT-0", "MIT-CMU",
    "PSF-2.0", "Zlib",
    "MPL-2.0",  # obliges to publish changes of its own files, and we change none
    # As classifiers and older packages write them:
    "3-Clause BSD License", "Apache Software License", "BSD License", "FreeBSD", "MIT License",
    "Mozilla Public License 2.0 (MPL 2.0)", "Python Software Foundation License",
}  # fmt: skip


def is_allowed(licence: str) -> bool:
    """Say whether a licence is allowed: all parts of an AND, one of an OR."""
    text = licence.strip()
    if text in ALLOWED:  # some names have parentheses
        return True
    while (inner := re.sub(r"\(([^()]*)\)", lambda m: _value(m[1]), text)) != text:
        text = inner
    return _value(text) == "yes"


def _value(text: str) -> str:
    holds = all(
        any(part.strip() in ALLOWED | {"yes"} for part in both.split(" OR "))
        for both in re.split(r" AND |, ", text)
    )
    return "yes" if holds else "no"


def installed(name: str, extras: tuple[str, ...]) -> dict[str, metadata.Distribution]:
    """Return a package and all that it requires here, by name."""
    found: dict[str, metadata.Distribution] = {canonicalize_name(name): metadata.distribution(name)}
    waiting = [(name, extras)]
    while waiting:
        of, wanted_extras = waiting.pop()
        for wanted in requirements(of, wanted_extras):
            key = canonicalize_name(wanted.name)
            if key not in found:
                found[key] = metadata.distribution(wanted.name)
                waiting.append((wanted.name, tuple(wanted.extras)))
    return found


def requirements(name: str, extras: tuple[str, ...]) -> list[Requirement]:
    """Return what a package requires on this machine."""
    every = [Requirement(text) for text in metadata.requires(name) or []]
    return [
        each
        for each in every
        if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in (*extras, ""))
    ]


def test_every_package_has_a_licence_that_is_allowed() -> None:
    packages = installed("edgebox", EXTRAS)
    assert {"aiohttp", "onnxruntime", "aiomqtt", "multidict"} <= set(packages)
    licences = {name: licence_of(package.metadata) for name, package in packages.items()}
    assert {name: found for name, found in licences.items() if not is_allowed(found or "")} == {}


def test_every_requirement_is_met_by_what_is_installed() -> None:
    packages = installed("edgebox", EXTRAS)
    wrong = [
        f"{name} requires {wanted}, {packages[canonicalize_name(wanted.name)].version} is installed"
        for name in packages
        for wanted in requirements(name, EXTRAS if name == "edgebox" else ())
        if canonicalize_name(wanted.name) in packages
        and not wanted.specifier.contains(packages[canonicalize_name(wanted.name)].version, True)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("EPL-2.0 OR BSD-3-Clause", True),
        ("MIT AND (GPL-3.0-only OR AGPL-3.0-only)", False),
        ("(MIT OR GPL-2.0-only) AND LGPL-2.1-only", False),
        ("MIT License, Apache Software License", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("", False),
    ],
)
def test_licences_are_read(licence: str, allowed: bool) -> None:
    assert is_allowed(licence) is allowed


def test_the_notices_name_every_library_in_the_page() -> None:
    package = json.loads((ROOT / "webui/package.json").read_text("utf-8"))
    notices = (ROOT / "NOTICES.md").read_text("utf-8")
    assert set(re.findall(r"^## (.+)$", notices, re.MULTILINE)) == set(package["dependencies"])
    for name in package["dependencies"]:
        folder = ROOT / "webui/node_modules" / name
        for file in folder.glob("LICENSE*"):  # absent where the page's tools are not installed
            holders = re.findall(r"^Copyright .*$", file.read_text("utf-8"), re.MULTILINE)
            assert holders
            assert holders[0] in notices
    lock = json.loads((ROOT / "webui/package-lock.json").read_text("utf-8"))["packages"]
    for name in package["dependencies"]:
        assert lock[f"node_modules/{name}"]["license"] == "MIT", name
