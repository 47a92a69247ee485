"""The build hook: makes the package of its own modules and of those of edgebox that they import.

A module of edgebox becomes one of `edgebox_client._edgebox`, with its imports changed to match, so
that edgebox and edgebox-client can be installed side by side. Which modules are needed follows from
the imports; nothing is listed but what is left out. An editable install uses edgebox itself.
"""

import ast
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "edgebox_client"
SHARED = "edgebox"
LEFT_OUT = frozenset(("edgebox.camera.local_model",))
"""Imported where it is there only: it runs models, and needs ONNX Runtime."""
_IMPORT = re.compile(rf"^(\s*(?:from|import)\s+){SHARED}(?=[.\s])", re.MULTILINE)


def needed(repository: Path) -> dict[str, Path]:
    """Return the modules of edgebox that the client imports, by their names.

    Imports in functions and for type checkers count.
    """
    found: dict[str, Path] = {}
    waiting = [name for file in own(repository) for name in imported(file)]
    while waiting:
        name = waiting.pop()
        file = _file(repository, name)
        if file is None or name in found or name in LEFT_OUT:
            continue
        found[name] = file
        parent = name.rpartition(".")[0]
        waiting += [*imported(file), *([parent] if parent else ())]
    return found


def own(repository: Path) -> list[Path]:
    """Return the client's own modules."""
    return sorted((repository / "client" / PACKAGE).glob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """Yield the names of edgebox that a module imports; some name what is in a module."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if name.split(".")[0] == SHARED)


def _file(repository: Path, name: str) -> Path | None:
    path = repository.joinpath(*name.split("."))
    if (path / "__init__.py").is_file():
        return path / "__init__.py"
    module = path.with_suffix(".py")
    return module if module.is_file() else None


def moved(text: str) -> str:
    """Return a module's text with edgebox as a part of the client."""
    return _IMPORT.sub(rf"\g<1>{PACKAGE}._{SHARED}", text)


def write_package(repository: Path, target: Path) -> None:
    """Write every file of the package into a folder."""
    sources = {file: Path(file.name) for file in own(repository)}
    for file in needed(repository).values():
        sources[file] = Path(f"_{SHARED}", file.relative_to(repository / SHARED))
    for file, name in sources.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(moved(file.read_text("utf-8")), "utf-8")
    (target / "py.typed").touch()
    shutil.copyfile(repository / "LICENSE", target / "LICENSE")


class ClientBuildHook(BuildHookInterface[Any]):
    """Gives hatchling the files of the package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the package, unless this is an editable install or an sdist, which has it."""
        if version == "editable":
            return
        package, repository = Path(self.root, PACKAGE), Path(self.root).parent
        if not (package / f"_{SHARED}").is_dir():
            if not (repository / SHARED / "camera").is_dir():
                self.app.abort("edgebox-client is built in the repository of edgebox, or its sdist")
            self._made = Path(tempfile.mkdtemp(prefix="edgebox-client-"))
            write_package(repository, package := self._made)
        build_data["force_include"][str(package)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made."""
        if (made := getattr(self, "_made", None)) is not None:
            shutil.rmtree(made, ignore_errors=True)
