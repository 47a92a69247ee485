"""Decides what the address of a source of pictures means, and what of it may be shown. Pure.

User name and password are separate from the address everywhere: an address that has them is split
on input. Of a network address only scheme, host and port are shown, because many cameras take a
password in the path or the query as well.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from edgebox.domain.errors import InvalidInputError

DEFAULT_PORTS = {"rtsp": 554, "rtsps": 322, "http": 80, "https": 443}
"""The schemes of network sources, and their ports where an address names none."""
ADDRESS_LENGTH_MAX = 2_000
WANTED = (
    "must be an address like rtsp://CAMERA/stream (also rtsps, http and https), file:PATH for a "
    "video file, or webcam:0"
)
_UNQUOTED = re.compile(r"([^/?#@:]+:(?!\d{1,5}[/?#])[^@]*)@")
"""A user and a password with a slash in it; what follows a colon is not a port."""
_WEBCAM = re.compile(r"webcam(?::(\d{1,2}))?")


class SourceKind(StrEnum):
    """The kind of a source of pictures."""

    NETWORK = "network"
    FILE = "file"
    """A video file, played in real time and over again."""
    WEBCAM = "webcam"
    """A camera of this machine."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password of a source. Neither is ever shown."""

    username: str
    password: str = ""

    def __repr__(self) -> str:
        """Return what a log may show."""
        return "Credentials(...)"


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """The address of a source, without credentials."""

    kind: SourceKind
    text: str
    """The address of a stream, the path of a file, or a webcam's number."""

    @property
    def shown(self) -> str:
        """What people and programs see of it."""
        match self.kind:
            case SourceKind.NETWORK:
                parts = urlsplit(self.text)
                return f"{parts.scheme}://{parts.netloc}"
            case SourceKind.WEBCAM:
                return f"webcam:{self.text}"
        return f"file:{self.text}"

    @property
    def host_and_port(self) -> tuple[str, int] | None:
        """Where a network source is reached; None: it is on this machine."""
        if self.kind is not SourceKind.NETWORK:
            return None
        parts = urlsplit(self.text)
        return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]

    def with_credentials(self, credentials: Credentials | None) -> str:
        """Return the address as FFmpeg takes it: for its ears only."""
        if self.kind is not SourceKind.NETWORK or credentials is None:
            return self.text
        parts = urlsplit(self.text)
        user, password = quote(credentials.username, safe=""), quote(credentials.password, safe="")
        return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.netloc}"))


def read_address(text: str) -> tuple[SourceAddress, Credentials | None]:
    """Split what a person typed into an address and the credentials in it; None: there are none.

    Raises:
        InvalidInputError: it is no address; the message says what one is, without what was typed.
    """
    typed = text.strip()
    if not typed or len(typed) > ADDRESS_LENGTH_MAX or not typed.isprintable():
        raise InvalidInputError(WANTED)
    if webcam := _WEBCAM.fullmatch(typed):
        return SourceAddress(SourceKind.WEBCAM, str(int(webcam[1] or 0))), None
    scheme, colon, rest = typed.partition(":")
    if not colon or scheme == "file" or typed.startswith(("/", ".")):
        if scheme != "file":
            return SourceAddress(SourceKind.FILE, typed), None
        path = re.sub(r"^//(?=/)", "", rest)
        # Another address behind "file:" might have a password, which nothing would hide.
        if not path or path.startswith("//") or "://" in path:
            raise InvalidInputError(WANTED)
        return SourceAddress(SourceKind.FILE, path), None
    return _network_address(typed)


def _network_address(typed: str) -> tuple[SourceAddress, Credentials | None]:
    userinfo, at, after = _authority(typed)
    scheme = typed.partition(":")[0].lower()
    try:
        parts = urlsplit(f"{scheme}://{after}")
        port = parts.port
        host = parts.hostname
    except ValueError:
        raise InvalidInputError(WANTED) from None
    if scheme not in DEFAULT_PORTS or not host or port == 0 or re.search(r"\s", typed):
        raise InvalidInputError(WANTED)
    address = SourceAddress(SourceKind.NETWORK, urlunsplit(parts._replace(fragment="")))
    if not at:
        return address, None
    username, _, password = userinfo.partition(":")
    return address, Credentials(unquote(username), unquote(password))


def _authority(typed: str) -> tuple[str, str, str]:
    """Return (user and password, "@" if there are any, host and what follows).

    People type passwords with / ? # and @ in them as they are.
    """
    rest = typed.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    userinfo, at, _ = authority.rpartition("@")
    if not at and (unquoted := _UNQUOTED.match(rest)):
        userinfo, at = unquoted[1], "@"
    return userinfo, at, rest[len(userinfo) + 1 :] if at else rest
