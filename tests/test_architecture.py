"""The diagram in docs/explanation/architecture.md against the imports of the code."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import grimp

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "architecture.md"
_ARROW = re.compile(r"^ +(\w+) --> (\w+)$", re.MULTILINE)

Edges = Mapping[str, set[str]]


def imports() -> Edges:
    """Return which packages of edgebox each package imports."""
    graph = grimp.build_graph("edgebox")
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        package = module.split(".")[1:2]
        for imported in graph.find_modules_directly_imported_by(module):
            other = imported.split(".")[1:2]
            if package and other and package not in (other, ["__main__"]):
                found.setdefault(package[0], set()).add(other[0])
    return found


def drawn() -> Edges:
    """Return the arrows of the diagram."""
    found: dict[str, set[str]] = {}
    for package, other in _ARROW.findall(PAGE.read_text(encoding="utf-8")):
        found.setdefault(package, set()).add(other)
    return found


def reachable(edges: Edges, package: str) -> set[str]:
    """Return all packages at the ends of paths that begin at `package`."""
    found: set[str] = set()
    open_ends = [*edges.get(package, ())]
    while open_ends:
        other = open_ends.pop()
        if other not in found:
            found.add(other)
            open_ends += edges.get(other, ())
    return found


def test_every_import_is_along_the_arrows() -> None:
    arrows = drawn()
    assert len(arrows) > 10
    missing = {
        (package, other)
        for package, others in imports().items()
        for other in others - reachable(arrows, package)
    }
    assert missing == set()


def test_every_arrow_is_an_import() -> None:
    known = imports()
    invented = {
        (package, other)
        for package, others in drawn().items()
        for other in others - known.get(package, set())
    }
    assert invented == set()


def test_no_two_modules_have_the_same_name() -> None:
    """A name in a traceback or a question leads to one file."""
    graph = grimp.build_graph("edgebox")
    packages = {module for module in graph.modules if graph.find_children(module)}
    names = Counter(module.rsplit(".", 1)[-1] for module in graph.modules - packages)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_package_is_described() -> None:
    text = PAGE.read_text(encoding="utf-8")
    packages = {*imports(), *(other for others in imports().values() for other in others)}
    table = text[text.index("| package |") : text.index("An arrow means")]
    assert {p for p in packages if f"`{p}`" not in table} == set()
