"""Models that their authors published, which are not in the repository."""

from pathlib import Path

import pytest

_PLACES = [above / "shared" / "data" / "models" for above in Path(__file__).resolve().parents]
REAL_MODELS = next((place for place in _PLACES if place.is_dir()), _PLACES[1])
"""Where they are, if anywhere: in shared/ beside the repository or above."""


def real_model(name: str) -> Path:
    """Return a file; skip the test where it is not."""
    if not (REAL_MODELS / name).exists():
        pytest.skip(f"{name} is not in {REAL_MODELS}")
    return REAL_MODELS / name
