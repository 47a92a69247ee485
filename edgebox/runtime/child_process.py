"""What processes that the box starts for one task have in common: no secrets, and an end."""

import asyncio
import contextlib
import os
from asyncio.subprocess import Process
from pathlib import Path

import edgebox

_KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS", "MALLOC_ARENA_MAX",
)  # fmt: skip
"""What such a process is given of this one's environment. The rest may hold secrets."""
_END_S = 3.0


def environment_without_secrets() -> dict[str, str]:
    """Return an environment without secrets, in which edgebox is found from any folder."""
    root = str(Path(edgebox.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}


async def ended(process: Process) -> None:
    """Make sure that a process has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if not isinstance(error, TimeoutError):
                raise
            await process.wait()
