"""Memory as this machine tells it."""

from pathlib import Path

import numpy as np
import pytest

from edgebox.inference.memory import give_back, resident_bytes


def test_what_is_touched_is_resident_and_what_is_freed_is_not() -> None:
    before = resident_bytes()
    if before is None:
        pytest.skip("this system does not report resident memory")
    held = np.ones(64 << 20, np.uint8)
    during = resident_bytes()
    del held
    give_back()
    after = resident_bytes()
    assert during is not None
    assert after is not None
    assert during - before > 60 << 20
    assert during - after > 60 << 20


def test_a_system_that_does_not_tell_is_unknown(tmp_path: Path) -> None:
    assert resident_bytes(tmp_path / "statm") is None
    (tmp_path / "statm").write_text("words")
    assert resident_bytes(tmp_path / "statm") is None
