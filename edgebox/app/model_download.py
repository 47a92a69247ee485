"""Fetches a file of the catalogue from its source, a mirror or a folder: whole and verified.

Blocks; run it off any event loop. Proxies are those of the environment (HTTPS_PROXY, HTTP_PROXY,
NO_PROXY). A download that was interrupted continues where it ended.
"""

import contextlib
import fcntl
import http.client
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import Request, build_opener, getproxies, proxy_bypass

from edgebox import __version__
from edgebox.domain.errors import ModelError
from edgebox.inference.catalogue import CatalogueEntry

Progress = Callable[[str, float], None]

_FOLDER = ".downloads"
"""In the folder of imported families; hidden, so that nothing in it is served."""
_TIMEOUT_S = 30.0
"""Limit of each step of a transfer: to connect, and to receive something."""
_CHUNK_BYTES = 1 << 16
_UNREACHABLE = (URLError, http.client.HTTPException, TimeoutError, ConnectionError)


class _UnreadableError(Exception):
    """What is to be copied cannot be read, whatever becomes of what is written."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextlib.contextmanager
def fetched(
    entry: CatalogueEntry, models: Path, mirror: str | None, progress: Progress
) -> Iterator[Path]:
    """Yield the verified file of a model; it is deleted at the end.

    Args:
        entry: the model.
        models: the folder of imported families; the file is put beside them meanwhile.
        mirror: a folder or the URL of one, that has the file; None: its source.
        progress: called with what is done and the share.

    Raises:
        ModelError: it cannot be had, or is not the file of the catalogue.
    """
    folder = models / _FOLDER
    part, whole = folder / f"{entry.sha256}.part", folder / entry.file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("ab+") as file:
            _lock(file, entry)
            _fill(entry, file, part, mirror, progress)
            part.replace(whole)
    except OSError as error:
        raise ModelError(f"{part}: cannot be written: {error.strerror or error}") from None
    finally:
        _remove_empty(part)
    try:
        yield whole
    finally:
        whole.unlink(missing_ok=True)
        _remove_empty(part)


def _remove_empty(part: Path) -> None:
    """Remove an unfinished file of which nothing was received, and folders with nothing in them."""
    with contextlib.suppress(OSError):
        if part.exists() and not part.stat().st_size:
            part.unlink()
        part.parent.rmdir()
        part.parent.parent.rmdir()


def _lock(file: IO[bytes], entry: CatalogueEntry) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ModelError(f"another edgebox models get downloads {entry.name} just now") from None


def _fill(
    entry: CatalogueEntry, file: IO[bytes], part: Path, mirror: str | None, progress: Progress
) -> None:
    """Complete the file, then verify all of it."""
    if mirror is not None and "://" not in mirror:
        where = str(_in_folder(entry, Path(mirror)))
        file.truncate(0)
        try:
            with _opened(Path(where)) as source:
                _copy(entry, source, file, progress)
        except _UnreadableError as error:
            raise ModelError(f"--from {where}: cannot be read: {error.reason.strerror}") from None
    else:
        where = entry.url if mirror is None else _in_mirror(entry, mirror)
        _download(entry, where, file, progress)
    file.flush()
    file.seek(0)
    digest = sha256(file.read()).hexdigest()
    if digest == entry.sha256:
        os.fsync(file.fileno())
        return
    part.unlink()
    raise ModelError(
        f"{shown(where)} is not the file of the catalogue: its sha256 is {digest}, not "
        f"{entry.sha256}. Nothing was installed. Something on the way changed it, as a proxy that "
        "asks for a login does, or the mirror has another file"
    )


def _in_folder(entry: CatalogueEntry, folder: Path) -> Path:
    path = folder if folder.is_file() else folder / entry.file
    if path.is_file():
        return path
    if not folder.is_dir():
        raise ModelError(f"--from {folder}: there is no such folder")
    raise ModelError(
        f"--from {folder}: has no {entry.file}. Where there is a network, download it from "
        f"{entry.url} and save it there under this name"
    )


def _in_mirror(entry: CatalogueEntry, mirror: str) -> str:
    if urlsplit(mirror).scheme not in ("http", "https"):
        raise ModelError(f"--from {shown(mirror)}: a mirror is a folder, or begins with https://")
    return f"{mirror.rstrip('/')}/{quote(entry.file)}"


def _download(entry: CatalogueEntry, url: str, file: IO[bytes], progress: Progress) -> None:
    """Download what is missing.

    Raises:
        ModelError: the server cannot be reached, refuses, or ends early.
    """
    there = file.seek(0, os.SEEK_END)
    if there == entry.size_bytes:
        return  # all but its verification
    headers = {"User-Agent": f"edgebox/{__version__}", "Accept-Encoding": "identity"}
    if 0 < there < entry.size_bytes:
        headers["Range"] = f"bytes={there}-"
    else:
        file.truncate(0)
    try:
        # Made anew: it has the proxies of this moment.
        with build_opener().open(Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
            if not _continues(answer, there):
                file.truncate(0)
            _copy(entry, answer, file, progress)
    except HTTPError as error:
        error.close()
        _refused(entry, url, error)
    except (*_UNREACHABLE, _UnreadableError) as error:
        _unreachable(entry, url, error)
    if (there := file.tell()) < entry.size_bytes:
        raise ModelError(
            f"the connection to {_host(url)} ended after {there} of {entry.size_bytes} bytes; the "
            "same command continues there"
        )


def _continues(answer: Any, there: int) -> bool:
    said = str(answer.headers.get("Content-Range", ""))
    return bool(answer.status == http.client.PARTIAL_CONTENT) and said.startswith(f"bytes {there}-")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise _UnreadableError(error) from error


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    """Yield what a file or an answer has.

    Raises:
        _UnreadableError: it cannot be read.
    """
    while True:
        try:
            content = source.read(_CHUNK_BYTES)
        except OSError as error:
            raise _UnreadableError(error) from error
        if not content:
            return
        yield content


def _copy(entry: CatalogueEntry, source: IO[bytes], file: IO[bytes], progress: Progress) -> None:
    done = file.seek(0, os.SEEK_END)
    for content in _pieces(source):
        done += len(content)
        if done > entry.size_bytes:
            file.truncate(0)
            raise ModelError(
                f"what was received is larger than {entry.file}, which has {entry.size_bytes} "
                "bytes. Nothing was installed"
            )
        file.write(content)
        progress(f"downloading {entry.name}", done / entry.size_bytes)


def _refused(entry: CatalogueEntry, url: str, error: HTTPError) -> NoReturn:
    why = f"{error.code} {error.reason}".strip()
    if error.code == http.client.PROXY_AUTHENTICATION_REQUIRED:
        why += "; the proxy wants a login: HTTPS_PROXY=http://USER:PASSWORD@PROXY:PORT"
    raise ModelError(f"{_host(url)}{_by_proxy(url)} answered {why}.\n{_otherwise(entry)}")


def _unreachable(entry: CatalogueEntry, url: str, error: Exception) -> NoReturn:
    cause = getattr(error, "reason", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted ({cause.verify_message})"
        advice = "Where a proxy has its own authority: SSL_CERT_FILE=FILE names its certificate"
    else:
        why = _reason(cause)
        proxy = "" if _by_proxy(url) else " Behind a proxy: HTTPS_PROXY=http://PROXY:PORT."
        advice = f"Check the network of this machine.{proxy}".rstrip(".")
    raise ModelError(
        f"{entry.name} cannot be downloaded: {_host(url)}{_by_proxy(url)} cannot be reached: "
        f"{why}.\n  {advice}.\n{_otherwise(entry)}"
    ) from None


def _reason(cause: object) -> str:
    if isinstance(cause, socket.gaierror):
        return "the name is not known (no network, or no DNS)"
    if isinstance(cause, TimeoutError):
        return f"no answer within {_TIMEOUT_S:g} s"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return str(cause) or type(cause).__name__


def _otherwise(entry: CatalogueEntry) -> str:
    return (
        f"  Without a network: download {entry.url} elsewhere, bring {entry.file} here in a "
        f"folder, and run: edgebox models get {entry.name} --from FOLDER"
    )


def _by_proxy(url: str) -> str:
    """Return through which proxy a URL is asked; empty: directly."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return f" (through the proxy {_host(proxy if '://' in proxy else f'//{proxy}')})"


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def shown(where: str) -> str:
    """Return an address without a password in it."""
    if "://" not in where:
        return where
    parts = urlsplit(where)
    return urlunsplit(parts._replace(netloc=_host(where)))
