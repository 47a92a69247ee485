"""`edgebox results` and `subscribe`: against a real box, which goes and comes back."""

import asyncio
import re
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from edgebox.client import SubscriptionRefusedError, subscribe
from edgebox.commands.box_options import given_token
from edgebox.commands.results import line_of
from edgebox.domain.errors import InvalidInputError
from edgebox.media.sources import PictureSource
from edgebox.scene.street_camera import Scene
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import edgebox, finish, said, start
from tests.end_to_end.running import CLOSED, running, streaming
from tests.end_to_end.test_pipelines import PIPELINE

AT_MS = 1_790_000_000_250.4
RESULT: dict[str, Any] = {
    "type": "result", "camera": "gate-2", "frame": 17, "captured_at_ms": AT_MS,
    "outcome": "on_time", "variant": "street-256", "timing_ms": {"total": 33.2},
    "detections": [
        {"label": "car", "score": 0.912}, {"label": "person", "score": 0.8},
        {"label": "car", "score": 0.5},
    ],
}  # fmt: skip

ZONE = """
[[zones]]
camera = "gate"
name = "yard"
points = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
"""


def plain(line: str) -> str:
    """Return a line without its colours."""
    for code in ("\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[36m", "\x1b[0m"):
        line = line.replace(code, "")
    return line


def test_lines_are_for_people() -> None:
    at = f"{datetime.fromtimestamp(AT_MS / 1e3):%H:%M:%S}.250"
    assert plain(line_of(RESULT)) == (
        f"{at} gate-2 #17 on_time 33 ms street-256: 2 car (0.91, 0.50), 1 person (0.80)"
    )
    assert plain(line_of({**RESULT, "detections": []})).endswith("street-256: nothing")
    crowd = [{"label": "car", "score": 0.9}] * 6
    assert plain(line_of({**RESULT, "detections": crowd})).endswith(
        "6 car (0.90, 0.90, 0.90, 0.90, 0.90, ...)"
    )
    drop = {**RESULT, "type": "drop", "outcome": "dropped", "message": "too late"}
    assert plain(line_of(drop)) == f"{at} gate-2 #17 dropped: too late"
    assert plain(line_of({"type": "skipped", "count": 3})) == (
        "3 results were left out: too slow here"
    )


def seen(**fields: Any) -> str:
    """Return the end of a line, after the variant."""
    return plain(line_of({**RESULT, **fields})).split("street-256: ")[1]


def test_lines_say_what_later_stages_and_tracking_know() -> None:
    vehicle = {
        "variant": "vehicles-64",
        "attributes": {
            "type": {"label": "car", "score": 0.98},
            "colour": {"label": "red", "score": 0.87},
        },
    }
    text = {"label": "GX12", "score": 0.9, "variant": "texts-96"}
    plate = {"label": "plate", "score": 0.8, "box": [0, 0, 9, 3], "stages": {"text": text}}
    stages = {
        "vehicle": vehicle,
        "who": {"variant": "reid-128", "embedding": [0.6, 0.8]},
        "plate": {"variant": "plates-96", "detections": [plate]},
    }
    cars = [
        {"label": "car", "score": 0.912, "track": 7, "stages": stages},
        {"label": "car", "score": 0.5, "track": None, "stages": {"plate": {"detections": []}}},
    ]
    person = {"label": "person", "score": 0.8, "track": 12}
    assert seen(detections=[*cars, person]) == (
        "2 car (0.91 red #7 with 1 plate (0.80 GX12), 0.50), 1 person (0.80 #12)"
    )


def test_lines_say_what_is_in_zones_and_what_is_missing() -> None:
    zones = {"yard": {"car": 2, "person": 1}, "gate": {}, "door": {"bus": 0}}
    assert seen(zones=zones, missing=["vehicle", "plate"], detections=[]) == (
        "nothing; zone yard: 2 car, 1 person; without vehicle, plate"
    )
    assert seen(zones={}, missing=[]) == "2 car (0.91, 0.50), 1 person (0.80)"


def test_lines_say_what_happened_on_lines_and_in_zones() -> None:
    lines = {"entry": {"in": {"car": 2, "bus": 1}, "out": {}}, "exit": {"in": {}, "out": {}}}
    events = [
        {"type": "line_crossed", "label": "car", "track": 7, "line": "entry", "direction": "in"},
        {"type": "zone_dwell", "label": "bus", "track": 3, "zone": "yard", "dwell_s": 5.1},
        {"type": "zone_left", "label": "bus", "track": 4, "zone": "yard", "dwell_s": 9.0},
    ]
    assert seen(lines=lines, events=events, detections=[]) == (
        "nothing; line entry: 3 in, 0 out\n  car 7 crossed entry (in)\n  bus 3 in yard for 5.1 s"
    )


async def test_the_command_prints_what_a_pipeline_and_tracking_say(
    tmp_path: Path, database: Path
) -> None:
    file = tmp_path / "edgebox.toml"
    file.write_text(PIPELINE + ZONE)
    scene = Scene(11, 1280, 720)
    source = PictureSource((1280, 720), 4.0, lambda number: scene.render(number / 4).rgb)
    async with (
        running(database, file=file) as app,
        streaming(app, "gate", pipeline="traffic", rate_hz=4.0, source=source),
    ):
        process = await start(tmp_path, "results", "--server", app.url)
        assert process.stdout is not None
        line = ""
        async with asyncio.timeout(PATIENCE_S):
            while not re.search(r"\(0\.\d\d( [a-z]+)+ #\d+.*\); zone yard: \d", line):
                line = (await process.stdout.readline()).decode()
        process.send_signal(signal.SIGINT)
        assert (await finish(process)).code == 0


async def test_a_program_gets_results_again_when_the_box_is_back(database: Path) -> None:
    remarks: list[str] = []

    async def next_of(messages: Any, kind: str) -> dict[str, Any]:
        """Return the next message of a kind; what lies in buffers goes by."""
        async with asyncio.timeout(PATIENCE_S):
            while (message := await anext(messages))["type"] != kind:
                pass
        assert isinstance(message, dict)
        return message

    async with running(database) as app, streaming(app, "gate"):
        url, port = app.url, app.url.rsplit(":", 1)[1]
        messages = subscribe(url, {"camera": ["gate"]}, on_remark=remarks.append)
        assert (await next_of(messages, "subscribed"))["cameras"] == ["gate"]
        assert (await next_of(messages, "result"))["camera"] == "gate"
    async with running(database, server__port=int(port)) as app, streaming(app, "gate"):
        assert (await next_of(messages, "subscribed"))["cameras"] == ["gate"]
        assert (await next_of(messages, "result"))["camera"] == "gate"
    await messages.aclose()
    assert len(remarks) == 2
    assert "trying again until it works" in remarks[0]
    assert remarks[1] == f"connected to {url} again"


async def test_what_would_fail_again_is_an_error(database: Path) -> None:
    async with running(database) as app:
        with pytest.raises(SubscriptionRefusedError, match="no model family finds unicorn"):
            await anext(subscribe(app.url.replace("http", "ws"), {"class": "unicorn"}))
        with pytest.raises(InvalidInputError, match="must be an address like ws://box:8787"):
            await anext(subscribe("ftp://box:8787"))


async def test_the_command_prints_lines_until_it_is_told_to_end(
    tmp_path: Path, database: Path
) -> None:
    async with running(database) as app, streaming(app, "gate"), streaming(app, "door"):
        options = ("--server", app.url, "--camera", "ga*")
        for as_json in ((), ("--json",)):
            process = await start(tmp_path, "results", *options, *as_json)
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE_S):
                lines = [(await process.stdout.readline()).decode() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            ended = await finish(process)
            assert (ended.code, ended.err) == (0, "")
            if as_json:
                assert {orjson.loads(line)["camera"] for line in lines} == {"gate"}
            else:
                assert all(" gate #" in line and " on_time " in line for line in lines)
        process = await start(tmp_path, "results", "--server", app.url, "--camera", "gat")
        assert "no camera that fits gat is connected" in await said(process, "edgebox results:")
        process.send_signal(signal.SIGINT)
        await finish(process)
        wrong = await edgebox(tmp_path, "results", *options, "--class", "unicorn")
        assert wrong.code == 1
        assert "edgebox results: no model family finds unicorn" in wrong.err.replace("\n", " ")


@pytest.mark.parametrize("command", ["results", "fleet"])
async def test_without_a_token_the_option_is_named(
    tmp_path: Path, database: Path, command: str
) -> None:
    async with running(database, **CLOSED) as app:
        ended = await edgebox(tmp_path, command, "--server", app.url)
    assert ended.code == 1
    assert "name a file that has one with --token-file, or set $EDGEBOX_TOKEN" in ended.err
    assert "header" not in ended.err


async def test_the_command_waits_for_a_box_that_is_not_there_yet(tmp_path: Path) -> None:
    process = await start(tmp_path, "results", "--server", "http://127.0.0.1:1")
    assert "trying again until it works" in await said(process, "edgebox results:")
    process.send_signal(signal.SIGTERM)
    assert (await finish(process)).code == 0


def test_a_file_that_has_no_token_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "video").write_bytes(b"\xff\xfe\xb9")
    for name, words in (("none", "none: there is no such file"), ("video", "video: is no text")):
        with pytest.raises(InvalidInputError, match=f"--token-file .*{words}$"):
            given_token(tmp_path / name)
    with pytest.raises(InvalidInputError, match=r"cannot be read: Is a directory$"):
        given_token(tmp_path)
    (tmp_path / "token").write_text("edgebox_x\n")
    assert given_token(tmp_path / "token") == "edgebox_x"
