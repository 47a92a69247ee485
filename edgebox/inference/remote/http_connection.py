"""One kept connection to an HTTP server, used by one thread at a time. Blocking.

`http.client` sets TCP_NODELAY, and a kept connection saves a round trip for each request.
"""

import functools
import hashlib
import hmac
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from edgebox.domain.errors import ConfigError, InvalidInputError, ModelError
from edgebox.link.box_address import OTHER_CERTIFICATE, authorization, fingerprint_of
from edgebox.link.connection_errors import explained

CONNECT_LIMIT_S = 5.0
"""For connecting, and for answers that need no model."""
BODY_BYTES_MAX = 256 << 20
"""Longest answer that is read: a batch's outputs take megabytes."""


_UNKNOWN_ISSUER = (18, 19, 20, 21)
"""OpenSSL's codes of certificates whose signer is not known."""
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons where the other side speaks something else."""
_HTTP = b"HTTP/"
"""What every answer begins with."""


class UnreachableError(ModelError):
    """A server cannot be reached, or the connection to it is gone."""


class BrokenError(UnreachableError):
    """The connection broke or is to another server, or what came is no HTTP, whatever was asked."""


class NotThereError(UnreachableError):
    """A server accepts no connection: nothing was sent to it, or what was is lost with it."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is, and what is needed to use it."""

    url: str
    """http://HOST:PORT or https://HOST:PORT; a path in front of /v2 may follow."""
    token: Callable[[], str | None] = field(default=lambda: None, repr=False)
    """Reads the token, anew for each `ServerConnection`: it may have been exchanged."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    fingerprint: str = ""
    """SHA-256 of the only certificate to accept; empty: what is trusted."""

    @property
    def host(self) -> str:
        """Host and port, for people."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ServerConnection:
    """A connection that is opened when it is needed."""

    def __init__(self, address: ServerAddress) -> None:
        """Connect to nothing yet.

        Raises:
            ModelError: the certificates to trust or the token cannot be read, or no header can
                carry it.
        """
        self.address = address
        parts = urlsplit(address.url)
        self._path = parts.path.rstrip("/")
        try:
            self._headers = {"Accept-Encoding": "identity", **authorization(address.token())}
        except ConfigError as error:  # it names the key
            raise ModelError(str(error)) from None
        except InvalidInputError as error:
            raise ModelError(f"token_file: {error}") from None
        host = parts.hostname or ""
        self._http: HTTPConnection
        if parts.scheme == "https":
            self._http = HTTPSConnection(
                host, parts.port, timeout=CONNECT_LIMIT_S, context=_trust(address)
            )
        else:
            self._http = HTTPConnection(host, parts.port, timeout=CONNECT_LIMIT_S)
        self._shut = False
        self.made = 0
        """Connections that were made so far."""

    def ask(
        self,
        method: str,
        path: str,
        body: Sequence[bytes | memoryview] = (),
        headers: Mapping[str, str] | None = None,
        *,
        limit_s: float | None = CONNECT_LIMIT_S,
    ) -> Reply:
        """Send a request and return the answer.

        A server may end a kept connection at any moment. So if it is gone before a byte of the
        answer came, the request is sent once more over a new one, within the same time. Where one
        ends unanswered, another one shows whether the server is there.

        Args:
            method: of HTTP.
            path: behind the server's address.
            body: the parts of the body, in order.
            headers: those of this request.
            limit_s: how long the answer may take; None: until the connection is shut.

        Raises:
            NotThereError: no connection can be made.
            BrokenError: the connection broke.
            UnreachableError: there is no answer within `limit_s`.
        """
        until_s = None if limit_s is None else time.monotonic() + limit_s
        kept = self._http.sock is not None
        try:
            while True:
                try:
                    return self._ask(method, path, body, headers, until_s)
                except (RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    self._http.close()
                    if self._shut:
                        raise
                    if not kept:
                        self._find(until_s)
                        raise
                    kept = False
        except (OSError, HTTPException) as error:
            self._http.close()
            kind = UnreachableError if isinstance(error, TimeoutError) else BrokenError
            raise kind(self._unreachable(error)) from error
        except BaseException:
            self._http.close()
            raise

    def shut(self) -> None:
        """End what waits for an answer, from another thread; nothing is asked any more."""
        self._shut = True
        try:
            if (sock := self._http.sock) is not None:
                sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _ask(
        self,
        method: str,
        path: str,
        body: Sequence[bytes | memoryview],
        headers: Mapping[str, str] | None,
        until_s: float | None,
    ) -> Reply:
        if self._http.sock is None:
            self._http.timeout = _connect_limit_s(until_s)
            self._connect()
        if self._shut:
            raise TimeoutError("timed out")
        self._http.sock.settimeout(_left_s(until_s))
        self._http.response_class = functools.partial(_TimedResponse, until_s)  # type: ignore[assignment]
        sent = {**self._headers, **(headers or {})}
        if method != "GET":
            sent["Content-Length"] = str(sum(map(len, body)))
        self._http.request(method, self._path + path, body=body or None, headers=sent)
        response = self._http.getresponse()
        content = response.read(BODY_BYTES_MAX + 1)
        if len(content) > BODY_BYTES_MAX:
            most = BODY_BYTES_MAX >> 20
            raise ModelError(f"{self.address.url} answers more than the {most} MiB that are read")
        if response.length:  # reading a part says nothing of one that is cut off
            raise IncompleteRead(content, response.length)
        return Reply(response.status, response.headers, content)  # type: ignore[arg-type]

    def _unreachable(self, error: Exception) -> str:
        return f"{self.address.url} cannot be reached: {_advised(error)}"

    def _find(self, until_s: float | None) -> None:
        """Connect once, without TLS, to know whether a server is there.

        Raises:
            NotThereError: there is none.
        """
        address = self._http.host, self._http.port
        try:
            socket.create_connection(address, _connect_limit_s(until_s)).close()
        except OSError as error:
            raise NotThereError(self._unreachable(error)) from error

    def _connect(self) -> None:
        try:
            self._http.connect()
        except ssl.SSLError:
            raise
        except OSError as error:
            raise NotThereError(self._unreachable(error)) from error
        self.made += 1
        if self.address.fingerprint:
            assert isinstance(self._http.sock, ssl.SSLSocket)
            found = hashlib.sha256(self._http.sock.getpeercert(binary_form=True) or b"").digest()
            if not hmac.compare_digest(found, fingerprint_of(self.address.fingerprint)):
                raise BrokenError(f"{self.address.url}: {OTHER_CERTIFICATE}. {_NEW_FINGERPRINT}")


class _TimedResponse(HTTPResponse):
    """A response that is read until an instant, however slowly it comes.

    The time limit of a socket is for each read alone: a byte now and then would keep it for ever.
    """

    def __init__(
        self, until_s: float | None, sock: socket.socket, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(until_s, sock))

    def begin(self) -> None:
        """Read the head of an answer; what does not begin like HTTP need not have a line end."""
        first = self.fp.peek()[: len(_HTTP)]
        if not _HTTP.startswith(first):
            raise BadStatusLine("")
        super().begin()


class _TimedReader(io.RawIOBase):
    """Reads a socket until an instant."""

    def __init__(self, until_s: float | None, sock: socket.socket) -> None:
        self._until_s = until_s
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left_s(self._until_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _connect_limit_s(until_s: float | None) -> float:
    left_s = _left_s(until_s)
    return CONNECT_LIMIT_S if left_s is None else min(CONNECT_LIMIT_S, left_s)


def _left_s(until_s: float | None) -> float | None:
    """Return the time until an instant; None: there is no limit.

    Raises:
        TimeoutError: it has passed.
    """
    if until_s is None:
        return None
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s


_NEW_FINGERPRINT = "If it is right, name it as this executor's fingerprint, and restart this box"


def _trust(address: ServerAddress) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.ca_file)
    except OSError as error:
        raise ModelError(f"ca_file: {address.ca_file} cannot be used: {error}") from None
    if address.fingerprint:  # compared after the connection is made, in place of the signature
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _advised(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted ({error.verify_message.rstrip('.')})"
        if error.verify_code in _UNKNOWN_ISSUER:
            return f"{why}; name its fingerprint, or the ca_file that signed it"
        return f"{why}; give the server another one, or name the fingerprint of this one"
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return "it does not answer with TLS: if it has none, its address begins with http://"
    return _of_answer(error) if isinstance(error, HTTPException) else explained(error)


def _of_answer(error: HTTPException) -> str:
    """Return what is wrong with an answer; the error's own text may have bytes of it."""
    if isinstance(error, RemoteDisconnected):
        return (
            "it ended the connection unanswered; a server with TLS needs an address with https://"
        )
    if isinstance(error, IncompleteRead):
        return "it ended the connection in the middle of an answer"
    return "what it answers is no HTTP"
