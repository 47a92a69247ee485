"""The command line of the camera daemon: `edgebox camera SOURCE`. Thin.

Imports neither the server nor, without --detect, onnxruntime: a camera starts quickly and stays
small.
"""

import asyncio
import contextlib
import math
import os
import random
import re
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click
import orjson

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera
from edgebox.camera.pairing import KeptTokens, PairingRefusedError, pair
from edgebox.camera.records import FrameRecord
from edgebox.camera.shutdown import on_end_signals
from edgebox.commands.box_choice import LOCAL, chosen_box
from edgebox.commands.box_options import FINGERPRINT, SERVER_OPTION, TOKEN_FILE, given_token
from edgebox.commands.camera_live import render, show_live, show_plain
from edgebox.commands.shared_options import read_text
from edgebox.domain.errors import EdgeboxError, FileAccessError, InvalidInputError
from edgebox.domain.home_folder import given_path
from edgebox.domain.source_address import Credentials
from edgebox.link.backoff import Backoff
from edgebox.link.from_camera import SLO_MS
from edgebox.link.placement import PlacementMode
from edgebox.link.shaping import BandwidthTrace, lte_trace, parse_trace
from edgebox.media.containers import SourceError
from edgebox.media.losses import lost_text
from edgebox.media.sources import SCENE_SIZE_PX, FrameSource, file_named, open_source
from edgebox.runtime.background_stream import stderr_in_background
from edgebox.storage.wall_clock import wall_clock_ms

SCENE_SIDE_MAX_PX = 4096
_LTE = re.compile(r"lte(?::(\d+))?")
_LAST_REMARKS_S = 1.0
"""Time limit for writing the last remarks."""


def parse_link(text: str) -> BandwidthTrace:
    """Read `--link`: a rate in Mbit/s, "lte" or "lte:SEED", or a trace file.

    Raises:
        InvalidInputError: none of these.
    """
    if _names_trace(text):
        return _read_trace(text)
    if made_up := _LTE.fullmatch(text):
        return lte_trace(random.Random(int(made_up[1] or 0)))
    mbps = float(text)
    if not 0 < mbps < float("inf"):
        raise InvalidInputError(f"--link: a rate must be above 0 Mbit/s, not {text}")
    return BandwidthTrace.constant(mbps)


def _names_trace(text: str) -> bool:
    """Return whether `--link` names a trace file."""
    try:
        float(text)
    except ValueError:
        return _LTE.fullmatch(text) is None
    return False


def _read_trace(text: str) -> BandwidthTrace:
    path = given_path(text)
    if not path.exists():
        raise FileAccessError(
            f"--link {text}: no such file; give a rate in Mbit/s, lte, lte:SEED or a trace file"
        )
    contents = read_text(path, "--link")
    return parse_trace(contents, text)


def parse_size(text: str) -> tuple[int, int]:
    """Read `--size`: WIDTHxHEIGHT.

    Raises:
        InvalidInputError: it is not.
    """
    sides = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    size = (int(sides[1]), int(sides[2])) if sides else (0, 0)
    if not all(64 <= side <= SCENE_SIDE_MAX_PX for side in size):
        raise InvalidInputError(
            f"--size must be WIDTHxHEIGHT, each from 64 to {SCENE_SIDE_MAX_PX}, not {text!r}"
        )
    return size


def parse_slo(text: str) -> float | list[tuple[float, float]]:
    """Read `--slo-ms`: the first deadline, then others as MS:UTILITY, with commas between.

    Raises:
        InvalidInputError: it is not.
    """
    first, *later = text.split(",")
    try:
        if not later:
            return _finite(first)
        return [(_finite(first), 1.0), *(_later(each) for each in later)]
    except ValueError:
        raise InvalidInputError(
            "--slo-ms must be a deadline in ms like 300, or several deadlines, the later ones with "
            f"the utility of a result, like 100,300:0.3, not {text!r}"
        ) from None


def _later(text: str) -> tuple[float, float]:
    by_ms, colon, utility = text.partition(":")
    if not colon:
        raise ValueError
    return _finite(by_ms), _finite(utility)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


class AskedOfBox(TypedDict):
    """Options that the camera is given as they are, and that it asks the box for."""

    rate_hz: float
    app: str
    family: str | None
    pipeline: str | None
    detect: str
    min_accuracy: float
    min_rate_hz: float
    site: str | None


@click.command()
@click.argument("source")
@click.option(
    *SERVER_OPTION,
    default=None,
    help="Address of the box, like http://10.0.0.2:8787.  [default: this machine's, or the one "
    "that is found in the network (extra mdns)]",
)
@click.option("--name", default=None, help="The camera's name at the box.  [default: this host's]")
@click.option(
    "--slo-ms",
    default=f"{SLO_MS:g}",
    show_default=True,
    help="Deadline from capture to result. 100,300:0.3: a result within 300 ms has utility 0.3.",
)
@click.option("--rate-hz", default=10.0, show_default=True, help="Frames per second.")
@click.option(
    "--size",
    default="{}x{}".format(*SCENE_SIZE_PX),
    show_default=True,
    help="Size of the frames of scene:",
)
@click.option("--link", default=None, help="Shape the uplink: Mbit/s, lte[:SEED] or a trace file.")
@click.option(
    "--duration",
    type=float,
    default=None,
    help="Seconds to run, once a box is found; an error if none answers.",
)
@click.option("--app", default="default", show_default=True, help="Application of the frames.")
@click.option("--family", default=None, help="Model family.  [default: the box's]")
@click.option(
    "--pipeline", default=None, help="Pipeline of the box to run through.  [default: the box's]"
)
@click.option(
    "--detect",
    type=click.Choice([mode.value for mode in PlacementMode]),
    default=PlacementMode.NEVER.value,
    show_default=True,
    help="Run the first stage here: for frames that are answered earlier so (auto), for none, for "
    "all. Fetches the box's model.",
)
@click.option("--min-accuracy", default=0.0, show_default=True, help="Least accuracy of a variant.")
@click.option(
    "--min-rate-hz", default=0.0, show_default=True, help="Least useful frames per second."
)
@click.option("--site", default=None, help="Name of the uplink shared with other cameras.")
@click.option("--source-username", default=None, help="User name for a network camera.")
@click.option(
    "--source-password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with its password; or put it into $EDGEBOX_SOURCE_PASSWORD.",
)
@click.option("--loop/--no-loop", default=True, show_default=True, help="Repeat files.")
@click.option(
    "--frames",
    "frames_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a line of JSON about each frame: how it was sent, and how it ended.",
)
@TOKEN_FILE
@click.option(
    "--pair",
    "pairing_code",
    metavar="CODE",
    help="Get this camera's token with a code from the box, and keep it for the next starts.",
)
@FINGERPRINT
@click.option("--json", "as_json", is_flag=True, help="Print only the summary, as JSON.")
def camera(
    source: str,
    *,
    server: str | None,
    token_file: Path | None,
    pairing_code: str | None,
    fingerprint: str | None,
    name: str | None,
    slo_ms: str,
    size: str,
    link: str | None,
    duration: float | None,
    source_username: str | None,
    source_password_file: Path | None,
    loop: bool,
    frames_file: Path | None,
    as_json: bool,
    **asked: Unpack[AskedOfBox],
) -> None:
    """Stream SOURCE to a box and count the answers in time.

    SOURCE is scene: or scene:SEED (a synthetic street), webcam:0, rtsp(s)://..., http(s)://..., a
    video file, or a folder of pictures. A network camera that is off is tried again for ever.
    """
    click.get_current_context().with_resource(stderr_in_background(_LAST_REMARKS_S))
    try:
        live = sys.stdout.isatty() and not as_json  # it shows the last remark itself
        show = show_live if live else None if as_json else show_plain
        name = name or host_name()
        with contextlib.ExitStack() as closing:
            with _wrong_command_line():
                wanted = wanted_camera(
                    server=server, fingerprint=fingerprint, name=name, slo_ms=slo_ms, size=size,
                    link=link, duration=duration, **asked,
                )  # fmt: skip
                opening = partial(
                    open_source, rate_hz=asked["rate_hz"], loop=loop, size_px=parse_size(size)
                )
                credentials = source_credentials(source_username, source_password_file)
                given = given_token(token_file)
                on_frame_end = closing.enter_context(_written_to(frames_file))
                frames = _opened(source, opening, credentials)
            made = partial(
                wanted,
                frames,
                on_frame_end=on_frame_end,
                on_remark=None if live else lambda remark: click.echo(remark, err=True),
            )
            if server is None:
                server = chosen_box(trusted=given is None or fingerprint is not None)
            token = _token(server, name, given, pairing_code, fingerprint)
            summary = asyncio.run(_run(made(server, token=token), duration, show))
    except EdgeboxError as error:
        click.echo(f"edgebox camera: {_in_options(str(error))}", err=True)
        raise SystemExit(error.exit_code) from None
    click.echo(_as_json(summary) if as_json else render(summary))


def wanted_camera(
    *,
    server: str | None,
    fingerprint: str | None,
    name: str,
    slo_ms: str,
    size: str,
    link: str | None,
    duration: float | None,
    **asked: Unpack[AskedOfBox],
) -> Callable[..., Camera]:
    """Return what makes the camera of these options, of its source and the address of its box.

    Raises:
        InvalidInputError: the value of an option is wrong.
    """
    if duration is not None and not duration > 0:
        raise InvalidInputError(f"--duration must be above 0, not {duration:g}")
    shaped = parse_link(link) if link is not None else None
    deadlines = parse_slo(slo_ms)
    made = partial(
        Camera, fingerprint=fingerprint, name=name, slo_ms=deadlines, link=shaped, **asked
    )
    try:
        # One that is pushed its frames, whose size an option may say: it says what a box would.
        made(None, server or LOCAL, size_px=parse_size(size))
    except InvalidInputError as error:
        raise InvalidInputError(_in_options(str(error))) from None
    return made


def files_in(given: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files and folders that the arguments of this command name, by argument.

    Raises:
        InvalidInputError: the source is an address that cannot be one.
    """
    found = {name: value for name, value in given.items() if isinstance(value, Path)}
    if (source := file_named(given["source"])) is not None:
        found["source"] = source
    if (link := given["link"]) is not None and _names_trace(link):
        found["link"] = given_path(link)
    return found


def check_options(given: Mapping[str, Any]) -> None:
    """Check the values of options of this command, by name, without opening the source.

    Raises:
        InvalidInputError: one is wrong.
    """
    known = wanted_camera.__annotations__.keys() | AskedOfBox.__annotations__.keys()
    wanted_camera(**{name: value for name, value in given.items() if name in known})


class _WrongCommandLineError(InvalidInputError):
    """A person has to correct it: a service is not started again."""

    exit_code = click.UsageError.exit_code


@contextlib.contextmanager
def _wrong_command_line() -> Iterator[None]:
    """Let what is wrong with the options end as an option that is not known.

    A file or a source on this machine that cannot be opened may be there later, as a webcam or a
    folder that is mounted after the start.
    """
    try:
        yield
    except (FileAccessError, SourceError):
        raise
    except InvalidInputError as error:
        raise _WrongCommandLineError(str(error)) from None


def _as_json(summary: Summary) -> str:
    return orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2).decode()


def _in_options(message: str) -> str:
    """Return what is wrong with a hello, with the options that its fields are from."""

    def option(found: re.Match[str]) -> str:
        name = "name" if found[1] == "camera" else found[1]
        return f"--{name.replace('_', '-')}"

    return re.sub(r"\bhello\.([a-z_]+)", option, message)


def source_credentials(username: str | None, password_file: Path | None) -> Credentials | None:
    """Return the credentials for the source; None: its address may have them.

    Raises:
        InvalidInputError: the password cannot be read, or is nobody's.
    """
    password = os.environ.get("EDGEBOX_SOURCE_PASSWORD", "")
    if password_file is not None:
        password = read_text(password_file, "--source-password-file").rstrip()
        if username is None:
            raise InvalidInputError("--source-username: is needed with a password")
    return None if username is None else Credentials(username, password)


def _opened(
    text: str, open_: Callable[..., FrameSource], credentials: Credentials | None
) -> FrameSource:
    """Open a source; one of the network that cannot be opened is tried again for ever.

    Raises:
        InvalidInputError: there is no such source on this machine.
    """
    retry, since_ms, said = Backoff(random.Random()), wall_clock_ms(), ""
    while True:
        try:
            return open_(text, credentials=credentials, retry=retry)
        except SourceError as error:
            if "://" not in text or text.startswith("file:"):
                raise
            if error.cause.reason != said:
                said = error.cause.reason
                lost = f"{lost_text(since_ms, said)}; trying again"
                click.echo(f"{lost}. To do: {error.cause.remedy}", err=True)
            time.sleep(retry.wait_s())


def _token(
    server: str, name: str, given: str | None, code: str | None, fingerprint: str | None
) -> str | None:
    """Return the camera's token: for the code, as given, or kept at an earlier start.

    Raises:
        EdgeboxError: the code gives none, or the token cannot be kept.
    """
    kept = KeptTokens()
    known = kept.get(server, name)
    if code is None:
        return given or known
    kept.prepare()
    try:
        token = asyncio.run(pair(server, code, name, fingerprint=fingerprint))
    except PairingRefusedError:
        if known is None:
            raise
        return known  # a service names its code at every start: it was used at the first
    click.echo(f"paired; the token of {name} is kept in {kept.put(server, name, token)}", err=True)
    return token


async def _run(
    daemon: Camera,
    duration_s: float | None,
    show: Callable[[Camera], Coroutine[None, None, None]] | None,
) -> Summary:
    on_end_signals(daemon.stop)
    showing = asyncio.create_task(show(daemon)) if show else None
    try:
        return await daemon.run(duration_s)
    finally:
        if showing is not None:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)


@contextlib.contextmanager
def _written_to(path: Path | None) -> Iterator[Callable[[FrameRecord], None] | None]:
    """Open `--frames` and return what writes a record into it; None: nothing is written.

    Raises:
        FileAccessError: it cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        file = path.open("wb", buffering=0)
    except OSError as error:
        raise FileAccessError(f"--frames {path}: cannot be written: {error.strerror}") from None
    full = False

    def write(record: FrameRecord) -> None:
        nonlocal full
        if full:
            return
        try:
            file.write(orjson.dumps(record.to_json(), option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:  # frames matter more than notes of them
            full = True
            click.echo(
                f"edgebox camera: --frames {path}: cannot be written any more: {error.strerror}; "
                "the camera goes on without",
                err=True,
            )

    with file:
        yield write


def host_name() -> str:
    """Return this machine's name with what the protocol does not allow replaced."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64] or "camera"
