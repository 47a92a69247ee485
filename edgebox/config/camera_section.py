"""The sections that name cameras whose pictures the box fetches itself.

Credentials are apart from the address: one that has them is split, so that no document shows them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgebox.config.keys import key, one_too_many
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.home_folder import expanded
from edgebox.domain.source_address import (
    WANTED,
    Credentials,
    SourceAddress,
    SourceKind,
    read_address,
)
from edgebox.domain.zones import NAME_PATTERN

PATHS = {"cameras": ("password_file",)}
"""Keys of these sections that hold a path."""
URLS = ("url", "substream_url")
_NAME_WANTED = "1 to 64 letters, digits, '.', '_' or '-'"


@dataclass(frozen=True, slots=True)
class CameraParameters:
    """A camera whose pictures the box fetches itself."""

    name: str = key("", "Name of the camera", pattern=NAME_PATTERN, wanted=_NAME_WANTED)
    url: str = key(
        "",
        "Where its pictures are: rtsp://, rtsps://, http:// or https:// with its path; file: with "
        "a video file, relative to this file; or webcam:0",
        secret="path",
    )
    substream_url: str = key(
        "",
        "A smaller stream of the same camera, used while it is large enough",
        may_be_empty=True,
        secret="path",
    )
    username: str = key("", "User name for the camera", may_be_empty=True, secret="all")
    password: str = key(
        "", "Its password; better in a file of its own", may_be_empty=True, secret="all"
    )
    password_file: str = key(
        "", "A file with the password, relative to this file", may_be_empty=True
    )
    password_env: str = key(
        "", "Or the environment variable that has the password", may_be_empty=True
    )
    app: str = key(
        "default",
        "The application its frames belong to",
        pattern=NAME_PATTERN,
        wanted=_NAME_WANTED,
    )
    family: str = key("", "Its model family; empty: the box's default", may_be_empty=True)
    pipeline: str = key("", "Its pipeline; empty: the box's default", may_be_empty=True)
    slo_ms: float = key(
        300.0, "Milliseconds from a picture's capture to its answer", low=1, high=60_000
    )
    rate_hz: float = key(10.0, "Pictures a second", low=0.01, high=1_000)
    min_rate_hz: float = key(0.0, "Lowest useful pictures a second", low=0, high=1_000)
    min_accuracy: float = key(0.0, "Run no variant below this accuracy", low=0, high=1)
    decoder: str = key(
        "software",
        "What decodes its video: software, or a type of hardware device that `edgebox doctor` "
        "lists, like cuda; without such a device it is software all the same",
    )
    motion_gate: bool = key(
        False, "Whether pictures of a scene that stands still are left out, but for one a second"
    )

    def __post_init__(self) -> None:
        """Split an address that has credentials, so that no document and no message has them."""
        for name in URLS:
            try:
                address, found = read_address(getattr(self, name))
            except InvalidInputError:
                continue  # to be reported
            if found is None:
                continue
            known = Credentials(self.username, self.password)
            if not self.username and not self._passwords:
                object.__setattr__(self, "username", found.username)
                object.__setattr__(self, "password", found.password)
            elif found != known:
                continue  # to be reported
            object.__setattr__(self, name, address.text)

    @property
    def _passwords(self) -> list[str]:
        """The names of the keys that give a password."""
        names = ("password", "password_file", "password_env")
        return [name for name in names if getattr(self, name)]

    @property
    def addresses(self) -> tuple[SourceAddress, SourceAddress | None]:
        """The address of its stream, and of its smaller one if it has one."""
        substream = read_address(self.substream_url)[0] if self.substream_url else None
        return read_address(self.url)[0], substream

    @property
    def credentials(self) -> Credentials | None:
        """What stands in this file; None: nothing does."""
        return Credentials(self.username, self.password) if self.username else None


def camera_contradictions(cameras: Sequence[CameraParameters]) -> Iterator[str]:
    """Yield what is wrong although each key alone is right."""
    names: set[str] = set()
    for number, camera in enumerate(cameras):
        path = f"cameras[{number}]"
        if not camera.name:
            yield f"{path}.name: is needed"
        elif camera.name in names:
            yield f'{path}.name: another camera is called "{camera.name}", too'
        names.add(camera.name)
        yield from (f"{path}.{problem}" for problem in _of(camera))


def _of(camera: CameraParameters) -> Iterator[str]:
    if not camera.url:
        yield f"url: {WANTED}"
    for name in URLS:
        if text := getattr(camera, name):
            try:
                _, found = read_address(text)
            except InvalidInputError as error:
                yield f"{name}: {error}"
            else:
                if found is not None:
                    yield f"{name}: has another user or password in it than the other keys"
    if camera.min_rate_hz > camera.rate_hz:
        yield (
            f"min_rate_hz: must not be above rate_hz ({camera.rate_hz:g}), "
            f"not {camera.min_rate_hz:g}"
        )
    given = camera._passwords
    if len(given) > 1:
        yield one_too_many(given[1], given[0])
    if given and not camera.username:
        yield "username: is needed with a password"


def in_folder(folder: Path, url: str) -> str:
    """Return an address with the relative path of a file in a folder."""
    try:
        address, _ = read_address(url)
    except InvalidInputError:
        return url  # to be reported
    if address.kind is not SourceKind.FILE:
        return url
    return f"file:{folder / expanded(address.text)}"
