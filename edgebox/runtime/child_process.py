"""The end of a process that the box started for one task."""

import asyncio
import contextlib
from asyncio.subprocess import Process

_END_S = 3.0


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
