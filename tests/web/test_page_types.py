"""What the page knows of the API is what the API is described to answer."""

from pathlib import Path

import pytest

from webui.generate_types import files


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.name))
def test_the_pages_types_are_those_of_the_openapi_document(file: Path) -> None:
    assert file.read_text() == files()[file], "run python -m webui.generate_types"
