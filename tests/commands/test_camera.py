"""`edgebox camera` as a program: its options, its output, its end."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from edgebox.commands.camera import camera, parse_link, parse_size, parse_slo
from edgebox.domain.errors import InvalidInputError
from edgebox.link.messages import ErrorMessage
from edgebox.link.shaping import BandwidthTrace
from tests.camera.box import Box

PROGRAM = "from edgebox.commands.camera import camera; camera()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        Image.new("RGB", (320, 180), (number * 80,) * 3).save(tmp_path / f"{number}.png")
    return tmp_path


async def start(box: Box, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        *arguments,
        "--server",
        box.url,
        "--name",
        "gate",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_json_is_all_that_is_printed(folder: Path) -> None:
    async with Box() as box:
        program = await start(box, str(folder), "--duration", "0.5", "--rate-hz", "20", "--json")
        out, err = await program.communicate()
    assert program.returncode == 0
    assert err == f"connected to test-box at {box.url}/v1/stream\n".encode()
    summary = json.loads(out)
    assert summary["camera"] == "gate"
    assert summary["captured"] >= 1
    assert summary["pending"] == 0
    ended = summary["on_time"] + summary["late"] + sum(summary["dropped"].values())
    assert summary["captured"] == ended


async def test_every_frame_can_be_written_down(folder: Path, tmp_path: Path) -> None:
    frames = tmp_path / "frames.jsonl"
    async with Box() as box:
        program = await start(
            box, str(folder), "--duration", "0.5", "--rate-hz", "20", "--json",
            "--frames", str(frames),
        )  # fmt: skip
        out, _ = await program.communicate()
    summary = json.loads(out)
    lines = [json.loads(line) for line in frames.read_text().splitlines()]
    assert len(lines) == summary["captured"]
    assert len({line["frame"] for line in lines}) == len(lines)
    assert sum(line["outcome"] == "on_time" for line in lines) == summary["on_time"]
    assert sum(line["size_bytes"] or 0 for line in lines) == summary["bytes_sent"]
    for line in lines:
        if line["outcome"] != "dropped":
            assert line["captured_ns"] < line["sent_ns"] < line["ended_ns"]
            assert line["encode_ms"] > 0
            assert line["advised"] == "street-256"


async def test_a_disk_that_is_full_ends_the_notes_and_not_the_camera(folder: Path) -> None:
    async with Box() as box:
        program = await start(
            box, str(folder), "--duration", "0.5", "--rate-hz", "20", "--json",
            "--slo-ms", "30000", "--frames", "/dev/full",
        )  # fmt: skip
        out, err = await program.communicate()
    assert program.returncode == 0
    assert json.loads(out)["on_time"] >= 1
    message = [line for line in err.decode().splitlines() if "connected to" not in line]
    assert message == [
        "edgebox camera: --frames /dev/full: cannot be written any more: No space left on device; "
        "the camera goes on without"
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_with_the_summary(folder: Path, number: signal.Signals) -> None:
    async with Box() as box:
        program = await start(box, str(folder))
        await box.first_frame.wait()
        program.send_signal(number)
        out, err = await program.communicate()
    assert program.returncode == 0
    assert b"answered within 300 ms" in out
    assert b"connected to test-box" in err


async def test_a_fatal_refusal_is_one_line(folder: Path) -> None:
    async with Box(refuse=ErrorMessage("unknown_family", "no family called x", True)) as box:
        program = await start(box, str(folder), "--family", "x", "--min-rate-hz", "4", "--json")
        out, err = await program.communicate()
    assert program.returncode == 1
    assert out == b""
    assert err == b"edgebox camera: no family called x\n"
    assert box.hellos[0].family == "x"
    assert box.hellos[0].min_rate_hz == 4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["scene:", "--link", sys.executable], "is not a text file in UTF-8"),
        (["scene:", "--link", "-3"], "above 0 Mbit/s"),
        (["scene:", "--size", "big"], "WIDTHxHEIGHT"),
        (["scene:", "--rate-hz", "0"], "--rate-hz must be a number above 0"),
        (["scene:", "--duration", "-1"], "--duration must be above 0"),
        (["scene:", "--slo-ms", "0", "--size", "64x64"], "camera: --slo-ms must be"),
        (["scene:", "--name", "a b", "--size", "64x64"], "camera: --name must be 1 to 64 letters"),
        (["scene:", "--slo-ms", "fast"], "--slo-ms must be a deadline in ms like 300, or several"),
        (["scene:", "--slo-ms", "100,300"], "like 100,300:0.3, not '100,300'"),
        (["scene:", "--slo-ms", "nan"], "--slo-ms must be a deadline in ms"),
        (
            ["scene:", "--slo-ms", "100,90:0.5", "--size", "64x64"],
            "--slo-ms[1][0] must be above",
        ),
        (["scene:", "--min-rate-hz", "11", "--size", "64x64"], "must not be above rate_hz (10)"),
        (["scene:", "--server", "ftp://x", "--size", "64x64"], "must be an address"),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], complaint: str) -> None:
    """The status is that of an unknown option, after which a service is not started again."""
    ended = CliRunner().invoke(camera, arguments)
    assert ended.exit_code == 2
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["webcam:63"], "there is no such camera on this machine"),
        (["/no/such/thing"], "no such file or folder"),
        (["/no/such/thing.mp4"], "no such file or folder"),
        (["{folder}"], "no pictures in this folder"),
        (["scene:", "--link", "/no/such/trace"], "no such file; give a rate"),
        (["scene:", "--link", "/"], "--link /: cannot be read: Is a directory"),
        (
            ["scene:", "--source-password-file", "/no/such/file"],
            "--source-password-file /no/such/file: there is no such file",
        ),
        (["scene:", "--token-file", "/no/such/file"], "/no/such/file: there is no such file"),
        (["scene:", "--frames", "/no/such/folder/x"], "/x: cannot be written: No such file"),
    ],
)
def test_what_may_be_there_later_is_no_wrong_command_line(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    """A folder may be mounted after the service has started."""
    ended = CliRunner().invoke(camera, [each.format(folder=tmp_path) for each in arguments])
    assert ended.exit_code == 1
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def test_links(tmp_path: Path) -> None:
    assert parse_link("2.5") == BandwidthTrace.constant(2.5)
    assert parse_link("lte") == parse_link("lte:0")
    assert parse_link("lte:1") != parse_link("lte:2")
    trace = tmp_path / "trace.txt"
    trace.write_text("1\n2\n")
    assert parse_link(str(trace)) == BandwidthTrace.per_second([1, 2])
    trace.write_text("1\nx\n")
    with pytest.raises(InvalidInputError, match=r"trace\.txt:2: expected a number"):
        parse_link(str(trace))
    with pytest.raises(InvalidInputError, match="there is no user 'nobody-of-this-name'"):
        parse_link("~nobody-of-this-name/trace.txt")


def test_deadlines() -> None:
    assert parse_slo("250") == 250
    assert parse_slo("100,300:0.3,1e3:0.1") == [(100, 1), (300, 0.3), (1000, 0.1)]


def test_sizes() -> None:
    assert parse_size("640x360") == (640, 360)
    for wrong in ("640", "0x0", "63x100", "9999x100", "640x360x3"):
        with pytest.raises(InvalidInputError, match="--size"):
            parse_size(wrong)


async def test_starting_loads_neither_the_server_nor_the_models() -> None:
    check = (
        "import sys, edgebox.commands.camera; "
        "print([name for name in ('onnxruntime', 'aiohttp.web', 'av', 'rich', 'edgebox.web') "
        "if name in sys.modules])"
    )
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", check, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await program.communicate()
    assert out == b"[]\n"
