"""What is fuzzed: each harness reads bytes as the box does and judges what comes of it.

A harness returns or raises nothing but what the reader promises: one clear error of its own kind.
Its first inputs are valid ones, from which a fuzzer gets far. Files in `inputs/NAME` are what a
fuzzer found, or what is worth keeping; `test_fuzz.py` runs them all.
"""

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgebox.config.config_file import load
from edgebox.domain.errors import ConfigError, InvalidInputError, ModelError, TooLargeError
from edgebox.inference.importing.files import read_source
from edgebox.link.messages import FrameHeader, Hello, Pong, Report, decode_from_camera
from edgebox.media.jpeg import decode_into, encode, probe
from edgebox.simulation.scenario import parse_scenario
from edgebox.web.v2.inference_request import read_request
from tests.inference.tiny_onnx import YOLOX_32
from tests.simulation.scenes import gate, scenario_text

DECODE_CPU_S = 3.0
"""Time of a thread to decode a picture that `probe` lets through: the largest takes a third of a
second, and instrumented code on a slow machine is given ten times that."""
INPUTS = Path(__file__).parent / "inputs"


@dataclass(frozen=True, slots=True)
class Harness:
    """One reader under test."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    length_max: int
    words: tuple[bytes, ...] = ()
    """What a fuzzer may put in."""

    def inputs(self, name: str) -> list[bytes]:
        """Return the first inputs: the valid ones and those that were kept."""
        return [*self.seeds, *(file.read_bytes() for file in sorted((INPUTS / name).glob("*")))]


def one_line(error: Exception) -> None:
    """Insist on an error that fits a log line and a close message."""
    text = str(error)
    assert text, "an error says nothing"
    assert len(text) < 2_000, "an error is longer than anybody reads"


def camera_message(data: bytes) -> None:
    """A text message of a camera; what was understood can be said and understood again."""
    try:
        message = decode_from_camera(data)
    except InvalidInputError as error:
        one_line(error)
        return
    again = decode_from_camera(message.encode())
    assert again == message


def frame_header(data: bytes) -> None:
    """A binary message of a camera."""
    try:
        header, jpeg = FrameHeader.decode(data)
    except InvalidInputError as error:
        one_line(error)
        return
    assert len(jpeg) <= len(data)
    assert FrameHeader.decode(header.encode() + bytes(jpeg))[0] == header


def v2_body(data: bytes) -> None:
    """A body of /v2, its first bytes the length of its JSON as the header says it."""
    said = data[:4].decode("latin-1").strip()
    try:
        request = read_request(data[4:], said or None, 100_000)
    except (InvalidInputError, TooLargeError) as error:
        one_line(error)
        return
    assert request.pictures
    assert len(request.pictures) == len(request.sizes_px)
    assert request.deadline_ms > 0


def configuration(data: bytes) -> None:
    """A configuration file."""
    with tempfile.NamedTemporaryFile(suffix=".toml", dir=_MEMORY) as file:
        file.write(data)
        file.flush()
        try:
            config = load(Path(file.name))
        except ConfigError as error:
            assert str(error)
            return
        config.scheduler_parameters(4)
        config.planning_parameters()


def scenario(data: bytes) -> None:
    """A scenario file of `edgebox simulate`."""

    def nothing(name: str) -> str:
        raise InvalidInputError(f"{name}: there is no such file")

    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        parse_scenario(text, "fuzz.toml", nothing)
    except InvalidInputError as error:
        assert str(error)


def jpeg(data: bytes) -> None:
    """A picture: what is let through is decoded within a time that is bounded, or refused."""
    try:
        width_px, height_px = probe(data)
    except InvalidInputError as error:
        one_line(error)
        return
    assert width_px > 0
    assert height_px > 0
    canvas = np.empty((128, 128, 3), np.uint8)
    began_s = time.thread_time()
    try:
        decode_into(data, canvas)
    except InvalidInputError as error:
        one_line(error)
    took_s = time.thread_time() - began_s
    assert took_s < DECODE_CPU_S, f"{len(data)} bytes took {took_s:.1f} s"


def model_file(data: bytes) -> None:
    """A file for `edgebox models import`."""
    with tempfile.NamedTemporaryFile(suffix=".onnx", dir=_MEMORY) as file:
        file.write(data)
        file.flush()
        try:
            read_source(Path(file.name))
        except ModelError as error:
            one_line(error)


_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_PICTURES = tuple(
    encode(np.random.default_rng(7).integers(0, 255, (h, w, 3), np.uint8), quality)
    for h, w, quality in ((8, 8, 30), (24, 40, 85))
)


def _words(*texts: str) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _v2(json: str, binary: bytes = b"", said: str = "") -> bytes:
    return said.ljust(4).encode() + json.encode() + binary


def _example() -> Iterable[bytes]:
    example = Path(__file__).parents[2] / "config.example.toml"
    yield example.read_bytes()
    # The example's keys are comments: here they are set.
    lines = (line.removeprefix("# ") for line in example.read_text().splitlines())
    yield "\n".join(line for line in lines if "=" in line or line.startswith("[")).encode()


HARNESSES = {
    "camera_message": Harness(
        camera_message,
        (
            Hello("gate", 640, 360, slo_ms=100.0, rate_hz=10.0).encode(),
            Pong(1, 2).encode(),
            Report(3, 1).encode(),
        ),
        4_000,
        _words('"type"', '"hello"', '"pong"', '"report"', '"slo_ms"', '"rate_hz"', '"steps"'),
    ),
    "frame_header": Harness(
        frame_header,
        (FrameHeader(1, 5, 6, 640, 360, 1).encode() + _PICTURES[0],),
        1_000,
    ),
    "v2_body": Harness(
        v2_body,
        (
            _v2('{"inputs":[{"name":"image","shape":[1],"datatype":"BYTES","data":["aGk="]}]}'),
            _v2(
                '{"inputs":[{"name":"image","shape":[1],"datatype":"BYTES",'
                f'"parameters":{{"binary_data_size":{4 + len(_PICTURES[0])}}}}}]}}',
                len(_PICTURES[0]).to_bytes(4, "little") + _PICTURES[0],
                "102",
            ),
        ),
        4_000,
        _words('"inputs"', '"outputs"', '"parameters"', '"shape"', '"UINT8"', '"deadline_ms"'),
    ),
    "configuration": Harness(configuration, tuple(_example()), 8_000),
    "scenario": Harness(scenario, (scenario_text(gate()).encode(),), 4_000),
    "jpeg": Harness(
        jpeg, _PICTURES, 20_000, (b"\xff\xc0", b"\xff\xc2", b"\xff\xda", b"\xff\xd9", b"\xff\xc4")
    ),
    "model_file": Harness(model_file, (YOLOX_32,), 40_000),
}
