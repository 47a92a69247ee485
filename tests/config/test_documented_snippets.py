"""Every configuration that a page shows is one that a box takes."""

import re
import textwrap
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from edgebox.config.config_file import Config, load

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "docs/explanation/simulation.md"
"""Its sections have the same names and are those of `edgebox simulate`."""
PAGES = {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - {SCENARIOS}
_TOML = re.compile(r"^( *)```toml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SHORTENED = re.compile(r"\b([0-9a-f]{4})\.\.\.")  # fingerprints
SECTIONS = {field.name for field in fields(Config)}


def snippets() -> list[tuple[str, str]]:
    """Return the configurations of all pages; scenarios and manifests are TOML as well."""
    found = []
    for page in sorted(PAGES):
        for number, (_, text) in enumerate(_TOML.findall(page.read_text("utf-8"))):
            snippet = _SHORTENED.sub(lambda found: found[1] * 16, textwrap.dedent(text))
            if tomllib.loads(snippet).keys() & SECTIONS:
                found.append((f"{page.relative_to(ROOT)} {number}", snippet))
    return found


@pytest.mark.parametrize("snippet", [pytest.param(s, id=name) for name, s in snippets()])
def test_a_configuration_on_a_page_is_taken(snippet: str, tmp_path: Path) -> None:
    file = tmp_path / "edgebox.toml"
    file.write_text(snippet, "utf-8")
    assert load(file) != Config()


def test_the_pages_have_many_of_them() -> None:
    assert len(snippets()) > 15
