"""The environment of processes that a box starts for one task: without secrets."""

import os
from pathlib import Path

import edgebox

_KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX",
)  # fmt: skip
"""What such a process is given of this one's environment. The rest may hold secrets."""


def environment_without_secrets() -> dict[str, str]:
    """Return an environment without secrets, in which edgebox is found from any folder."""
    root = str(Path(edgebox.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}
