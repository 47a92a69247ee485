"""Python programs on the pages run as they stand, against a real box."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from edgebox.domain.access import Scope
from edgebox.media.jpeg import encode
from edgebox.media.sources import PictureSource
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import new_token, running, streaming
from tests.end_to_end.streets import street_picture

pytestmark = pytest.mark.usefixtures("few_sizes")

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/how-to/client.md",
    "docs/reference/inference-protocol.md",
)
_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BOX = "127.0.0.1:8787"
_TOKEN = "edgebox_..."

PROGRAMS = [
    pytest.param(program, id=f"{Path(page).stem}-{number}")
    for page in PAGES
    for number, program in enumerate(_PROGRAM.findall((ROOT / page).read_text("utf-8")))
    if "import" in program  # the others continue one
]


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_program_prints_something_and_fails_nowhere(
    program: str, database: Path, tmp_path: Path
) -> None:
    rgb = street_picture(3, 640, 360)
    for name in ("street.jpg", "a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(encode(rgb, 90))
    source = PictureSource((640, 360), 2.0, lambda number: rgb)
    assert _BOX in program
    async with running(database) as app, streaming(app, "gate-2", source=source, rate_hz=2.0):
        token = await new_token(app, Scope.CAMERA, "me")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",
            "-c",
            program.replace(_BOX, app.url.removeprefix("http://")).replace(_TOKEN, token),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        # Some programs go on for ever: three lines of theirs are enough.
        lines: list[bytes] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(lines) < 3 and (line := await process.stdout.readline()):
                lines.append(line)
        if len(lines) == 3:
            process.terminate()
        _, errors = await process.communicate()
    assert b"Traceback" not in errors, errors.decode()
    assert lines, errors.decode()
