"""The page about security: each risk names tests that there are, and what it says of the page."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/security.md"
_TEST = re.compile(r"\[(\w+)\]\(([^)]*tests/[^)]*\.py)\)")
_MAKES_ELEMENTS_OF_TEXT = re.compile(
    r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\("
    r"|new Function\b|createContextualFragment|srcdoc"
)


def risks() -> dict[str, list[tuple[str, str]]]:
    """Return the tests of each risk, as name and file."""
    rows = PAGE.read_text("utf-8").split("## Risks and defences")[1].split("## ")[0].splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")]
    return {risk: _TEST.findall(shown) for risk, _, shown in cells[1:]}


@pytest.mark.parametrize("risk", risks())
def test_each_risk_names_tests_that_there_are(risk: str) -> None:
    named = risks()[risk]
    assert named
    for name, file in named:
        tree = ast.parse((PAGE.parent / file).read_text("utf-8"))
        there = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in there, f"{file} has no {name}"


def test_the_page_makes_no_elements_of_text() -> None:
    sources = [
        file
        for file in (ROOT / "webui/src").rglob("*")
        if file.suffix in {".ts", ".tsx", ".html"} and ".test." not in file.name
    ]
    assert len(sources) > 50
    found = {
        file.name: hit[0]
        for file in sources
        if (hit := _MAKES_ELEMENTS_OF_TEXT.search(file.read_text("utf-8")))
    }
    assert found == {}
