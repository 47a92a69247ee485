"""The repository itself: its pages, its sizes and its promises, read as text."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from edgebox.inference import package_checks

ROOT = Path(__file__).resolve().parent.parent
FILE_BYTES_MAX = 8 << 20
LINES_MAX = 500
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_IMAGE_OR_LINK = re.compile(r"(?:src|href)=\"([^\"]+)\"")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files git knows, new ones it would take included."""
    # The folder may belong to another user than the one who tests, as in a container.
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    try:
        listed = subprocess.run(
            [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return tuple(sorted(found()))
    files = {ROOT / name for name in listed.split("\0") if name}
    return tuple(sorted(file for file in files if file.is_file()))


def found() -> Iterator[Path]:
    """Yield what git would take, where there is no git or no clone: an unpacked archive."""
    ignored = [".git", *(ROOT / ".gitignore").read_text(encoding="utf-8").split()]

    def taken(file: Path) -> bool:
        names = (file.name, relative(file))
        return not any(fnmatch(name, rule.rstrip("/")) for rule in ignored for name in names)

    for place, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if taken(Path(place, name))]
        yield from (file for name in files if taken(file := Path(place, name)))


def pages() -> list[Path]:
    """Return every Markdown page."""
    return [file for file in tracked() if file.suffix == ".md"]


def relative(file: Path) -> str:
    """Return a file's name as people write it."""
    return file.relative_to(ROOT).as_posix()


def links_of(text: str) -> list[str]:
    """Return where a page's links and pictures lead; what is shown as code is none."""
    prose = _CODE.sub("", text)
    return _LINK.findall(prose) + _IMAGE_OR_LINK.findall(prose)


def anchors_of(text: str) -> set[str]:
    """Return the anchors that a page's headings get."""
    headings = re.findall(r"^#+\s+(.*)$", _CODE_BLOCK.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.strip().lower()) for heading in headings)
    return {re.sub(r"\s", "-", heading) for heading in plain}


def leads_somewhere(page: Path, link: str) -> bool:
    """Say whether a link within the repository has a file, and the heading it names."""
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors_of(target.read_text(encoding="utf-8"))


def test_there_are_pages_to_look_at() -> None:
    names = {relative(page) for page in pages()}
    assert {
        "docs/reference/protocol.md",
        "docs/explanation/architecture.md",
        "CHANGELOG.md",
    } <= names


def test_an_archive_has_the_same_files_as_a_clone() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is an archive")
    assert set(found()) >= set(tracked())
    assert not [file for file in found() if ".venv" in file.parts or "node_modules" in file.parts]


@pytest.mark.parametrize("page", pages(), ids=relative)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    inner = (link for link in links_of(page.read_text("utf-8")) if not _ADDRESS.match(link))
    dead = [link for link in inner if not leads_somewhere(page, link)]
    assert not dead, f"{relative(page)} has links that lead nowhere: {', '.join(dead)}"


def test_files_are_small() -> None:
    large = [relative(file) for file in tracked() if file.stat().st_size > FILE_BYTES_MAX]
    assert not large, f"above {FILE_BYTES_MAX >> 20} MiB: {', '.join(large)}"


def test_modules_are_short() -> None:
    lines = {
        relative(file): len(file.read_text(encoding="utf-8").splitlines())
        for file in tracked()
        if file.suffix == ".py" and file.is_relative_to(ROOT / "edgebox")
    }
    long = [f"{name} ({count})" for name, count in lines.items() if count > LINES_MAX]
    assert lines
    assert not long, f"more than {LINES_MAX} lines: {', '.join(long)}"


def test_no_exception_is_made_once_and_raised_often() -> None:
    """Each raise adds its frames to one traceback, which holds what they held."""
    constant = re.compile(r"^\s*raise (?:\w+\.)*_?[A-Z][A-Z0-9_]+\s*(?:from|#|$)", re.MULTILINE)
    raising = [
        relative(file)
        for file in tracked()
        if file.suffix == ".py"
        and any(file.is_relative_to(ROOT / each) for each in ("edgebox", "client"))
        and constant.search(file.read_text(encoding="utf-8"))
    ]
    assert not raising, f"a constant is raised: {', '.join(raising)}"


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_lock_file_holds_no_addresses() -> None:
    lock = json.loads((ROOT / "webui" / "package-lock.json").read_text(encoding="utf-8"))
    addressed = [name for name, package in lock["packages"].items() if "resolved" in package]
    assert lock["packages"]
    assert not addressed, f"npm would only look there: {', '.join(addressed)}"


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked_for = [
        *project["project"]["dependencies"],
        *(requirement for extra in extras.values() for requirement in extra),
        *project["build-system"]["requires"],
    ]
    page = json.loads((ROOT / "webui" / "package.json").read_text(encoding="utf-8"))
    names = {found[0] for text in asked_for if (found := _REQUIREMENT.match(text))}
    names |= set(page.get("dependencies", {})) | set(page.get("devDependencies", {}))
    record = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    missing = sorted(name for name in names if f"`{name}`" not in record)
    assert not missing, f"0001-dependencies.md gives no reason for {', '.join(missing)}"


def test_what_is_installed_is_what_the_record_and_the_doctor_say() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {
        found[0] for text in project["dependencies"] if (found := _REQUIREMENT.match(text))
    }
    record = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    table = record.split("At run time:")[1].split("Extras,")[0]
    assert set(re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)) == installed
    assert f"has {len(installed)} direct dependencies" in record
    assert set(package_checks.LIBRARIES) == installed


def test_no_way_to_install_brings_two_onnx_runtimes_that_overwrite_each_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ways = {"": project["dependencies"], **project["optional-dependencies"]}
    brings = {
        name: {
            found[0]
            for text in requirements
            if (found := _REQUIREMENT.match(text)) and found[0].startswith("onnxruntime")
        }
        for name, requirements in ways.items()
    }
    assert {name: found for name, found in brings.items() if found} == {
        "cpu": {"onnxruntime"},
        "cuda": {"onnxruntime-gpu"},
        "dev": {"onnxruntime"},
    }


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d[^\]]*)\]", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == project["version"]


def test_modules_that_pages_name_exist() -> None:
    named = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`")
    missing = [
        f"{relative(page)}: {name}"
        for page in pages()
        if "decisions" not in page.parts and page.name != "CHANGELOG.md"
        for name in named.findall(page.read_text(encoding="utf-8"))
        if not any((ROOT / folder / name).exists() for folder in (".", "edgebox"))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("runtime", "other"), [("cpu", "onnxruntime-gpu"), ("cuda", "onnxruntime")]
)
def test_make_takes_the_other_onnx_runtime_away_first(runtime: str, other: str) -> None:
    make = ["make", "--dry-run", "--always-make", "--directory", str(ROOT), "WITHOUT="]
    done = subprocess.run(
        [*make, f"RUNTIME={runtime}", "demo"], capture_output=True, text=True, check=True
    )
    gone = done.stdout.index(f"pip show --quiet {other} ")
    uninstalled = done.stdout.index("uninstall --quiet --yes onnxruntime onnxruntime-gpu")
    assert gone < uninstalled < done.stdout.index(f"-e '.[{runtime}]'")
