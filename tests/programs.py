"""The programs that tests need and pip cannot bring; `make test` sees to them."""

import os
import shutil

import pytest

PLACES = os.pathsep.join(["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin"])
"""Where programs lie that may not be on everybody's PATH."""


def program(package: str, *names: str) -> str:
    """Return where the first of these programs is, or the one that is named as its package.

    Without it the test fails, and is skipped if somebody has said so: `make test WITHOUT=...`.
    """
    if package in os.environ.get("WITHOUT", "").split():
        pytest.skip(f"WITHOUT names {package}")
    path = os.pathsep.join([os.environ.get("PATH", ""), PLACES])
    for name in names or (package,):
        if found := shutil.which(name, path=path):
            return found
    pytest.fail(f"this test needs {package}: `make test` installs it, or apt-get install {package}")
