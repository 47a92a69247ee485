"""The programs that tests need and pip cannot bring; `make test` sees to them."""

import os
import shutil
import subprocess
from functools import cache

import pytest

PLACES = os.pathsep.join(["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin"])
"""Where programs lie that may not be on everybody's PATH."""

RTSP_PACKAGES = (
    "gir1.2-gst-rtsp-server-1.0",
    "gstreamer1.0-plugins-good",
    "gstreamer1.0-plugins-bad",
    "python3-gi",
)
_HAS_RTSP_SERVER = """
import gi
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer
Gst.init(None)
assert Gst.ElementFactory.find("rtph264pay") and Gst.ElementFactory.find("matroskademux")
"""


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


@cache
def gstreamer_python() -> str:
    """Return a Python that has GStreamer's RTSP server: the system's.

    Without it the test fails, and is skipped if somebody has said so: make test WITHOUT=gstreamer.
    """
    if "gstreamer" in os.environ.get("WITHOUT", "").split():
        pytest.skip("WITHOUT names gstreamer")
    python = "/usr/bin/python3"
    done = subprocess.run([python, "-c", _HAS_RTSP_SERVER], check=False, capture_output=True)
    if done.returncode:
        pytest.fail(
            "this test needs GStreamer's RTSP server: `make test` installs it, or apt-get install "
            + " ".join(RTSP_PACKAGES)
        )
    return python
