"""A command that is told to end deletes what it has not finished."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgebox.commands.root import main

PROGRAM = """
import os, signal, sys
from pathlib import Path
import click
from edgebox.commands.root import main
from edgebox.storage.unfinished_folder import unfinished_folder

@main.command("backup")
def work():
    with unfinished_folder(Path(sys.argv[2]), ".work-") as folder:
        (folder / "half").write_text("half")
        os.kill(os.getpid(), signal.Signals[sys.argv[3]])
    raise AssertionError("it went on")

main(["backup"])
"""


@pytest.mark.parametrize(("by", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 1)])
def test_what_is_unfinished_goes_when_a_command_is_ended(
    tmp_path: Path, by: str, status: int
) -> None:
    command = [sys.executable, "-c", PROGRAM, "backup", str(tmp_path), by]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, list(tmp_path.iterdir())) == (status, []), ended.stderr


def test_the_signals_of_a_program_that_runs_a_command_are_as_before() -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    CliRunner().invoke(main, ["tokens", "--help"])
    CliRunner().invoke(main, ["backup"])
    assert [signal.getsignal(number) for number in numbers] == before
