"""A process of edgebox starts no threads for numpy, unless its user wants them."""

import subprocess
import sys

import pytest

CODE = """
import contextlib, os, sys
from edgebox.__main__ import main
sys.argv = ["edgebox", "--version"]
with contextlib.suppress(SystemExit):
    main()
import numpy
print(os.environ.get("OPENBLAS_NUM_THREADS"), len(os.listdir("/proc/self/task")))
"""


def threads() -> tuple[str, int]:
    """Return the number of threads that numpy is asked for, and that of the whole process."""
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    asked, found = ran.stdout.split()[-2:]
    return asked, int(found)


def test_numpy_starts_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert threads() == ("1", 1)


def test_the_users_own_number_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    asked, _ = threads()
    assert asked == "2"
