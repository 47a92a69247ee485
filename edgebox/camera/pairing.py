"""A camera's token: fetched with a pairing code, and kept for the next start."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from edgebox.domain.errors import ConfigError, EdgeboxError, KeptFileError
from edgebox.domain.home_folder import expanded
from edgebox.link.box_address import (
    OTHER_CERTIFICATE,
    UNKNOWN_CERTIFICATE,
    fingerprint_of,
    http_url,
    stream_url,
)
from edgebox.link.connection_errors import explained

_TIMEOUT_S = 30.0


class PairingRefusedError(EdgeboxError):
    """The box gave no token for the code."""

    code = "pairing"


def connector(fingerprint: str | None) -> aiohttp.TCPConnector | None:
    """Return what connects to a box with this certificate only; None: any that the system trusts.

    Raises:
        InvalidInputError: it is no fingerprint.
    """
    if fingerprint is None:
        return None
    return aiohttp.TCPConnector(ssl=aiohttp.Fingerprint(fingerprint_of(fingerprint)))


def why(error: Exception) -> str:
    """Return why a box could not be reached, in words."""
    if isinstance(error, aiohttp.ServerFingerprintMismatch):
        return OTHER_CERTIFICATE
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"{UNKNOWN_CERTIFICATE} ({error.certificate_error})"
    return explained(error)


async def pair(server: str, code: str, name: str, *, fingerprint: str | None = None) -> str:
    """Return the token that a box gives the camera of this name for a code, which ends then.

    Raises:
        InvalidInputError: `server` or `fingerprint` is malformed.
        PairingRefusedError: the box cannot be reached, or refuses; the message says why.
    """
    url = http_url(stream_url(server), "pair")
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector(fingerprint)) as client,
            client.post(url, json={"code": code, "camera": name}) as response,
        ):
            answer = _object(await response.read())
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise PairingRefusedError(f"{url}: cannot connect: {why(error)}") from None
    token = answer.get("token")
    if not isinstance(token, str):
        raise PairingRefusedError(str(answer.get("detail", f"{url}: this is no edgebox")))
    return token


def _object(body: bytes) -> dict[str, Any]:
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(body)
        if isinstance(found, dict):
            return found
    return {}


class KeptTokens:
    """The tokens of this user's cameras, by box and name, in a file that only the user can read."""

    def __init__(self, file: Path | None = None) -> None:
        """Use a file; None: edgebox/tokens.json in the user's folder for configuration."""
        folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        self._file: Path | None = None
        with contextlib.suppress(ConfigError):  # without a home folder nothing is kept
            self._file = file or expanded(folder) / "edgebox" / "tokens.json"

    def prepare(self) -> Path:
        """Make the folder of the file, which is returned.

        To be called before a pairing code is used up for a token that cannot be kept.

        Raises:
            StorageError: there is no home folder, no token can be written there, or the file has
                tokens that cannot be read, which must not be lost.
        """
        if self._file is None:
            raise KeptFileError(
                "the camera's token cannot be kept: this user has no home folder: set HOME or "
                "XDG_CONFIG_HOME, or make a token on the box and name its file with --token-file"
            )
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not os.access(self._file.parent, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise KeptFileError(f"{self._file}: no token can be kept ({error.strerror})") from error
        _tokens_in(self._file)
        return self._file

    def get(self, server: str, name: str) -> str | None:
        """Return a camera's token at a box; None: there is none."""
        token = self._read().get(_key(server, name))
        return token if isinstance(token, str) else None

    def put(self, server: str, name: str, token: str) -> Path:
        """Keep a camera's token; return the file.

        Raises:
            StorageError: it cannot be written.
        """
        file = self.prepare()
        with _alone(file.parent):
            return self._put(file, _key(server, name), token)

    def _put(self, file: Path, key: str, token: str) -> Path:
        kept = {**_tokens_in(file), key: token}
        new = file.with_name(f"{file.name}.{os.getpid()}.part")
        try:
            with os.fdopen(
                os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
            ) as written:
                written.write(orjson.dumps(kept, option=orjson.OPT_INDENT_2))
                written.flush()
                os.fsync(written.fileno())
            new.replace(file)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            raise KeptFileError(f"{file}: the token cannot be kept ({error})") from error
        return file

    def _read(self) -> dict[str, Any]:
        try:
            return {} if self._file is None else _object(self._file.read_bytes())
        except OSError:
            return {}


def _tokens_in(file: Path) -> dict[str, Any]:
    """Return the tokens of a file; none if there is no such file.

    Raises:
        KeptFileError: it cannot be read, or is damaged.
    """
    try:
        found = orjson.loads(file.read_bytes()) if file.exists() else {}
        if isinstance(found, dict):
            return found
        why_not = "it is no JSON object"
    except orjson.JSONDecodeError as error:
        why_not = f"it is damaged: {error}"
    except OSError as error:
        raise KeptFileError(f"{file}: the tokens in it cannot be read ({error})") from error
    raise KeptFileError(
        f"{file}: the tokens in it cannot be read ({why_not}); mend it, or move it away and pair "
        "its cameras again"
    )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others waiting who would keep a token in a folder, where its file system can do that.

    Cameras that are paired at once would else each write what they read before the others wrote.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # noqa: PLC0415 - Windows has none

            descriptor = os.open(folder, os.O_RDONLY)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _key(server: str, name: str) -> str:
    return f"{stream_url(server)} {name}"
