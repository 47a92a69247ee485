"""Addresses of sources: what they mean, and that nobody sees the credentials in them."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.source_address import Credentials, SourceAddress, SourceKind, read_address

TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1)


@pytest.mark.parametrize(
    ("typed", "text", "credentials"),
    [
        ("rtsp://cam/stream", "rtsp://cam/stream", None),
        ("RTSP://cam/stream", "rtsp://cam/stream", None),
        ("rtsp://ann:secret@cam:8554/a?b=1", "rtsp://cam:8554/a?b=1", ("ann", "secret")),
        ("rtsp://ann:p%40ss@cam/a", "rtsp://cam/a", ("ann", "p@ss")),
        ("rtsp://ann:p@ss@cam/a", "rtsp://cam/a", ("ann", "p@ss")),
        ("rtsp://ann:pa/ss@cam/a", "rtsp://cam/a", ("ann", "pa/ss")),
        ("rtsp://cam:554/a@b", "rtsp://cam:554/a@b", None),
        ("http://ann@cam/", "http://cam/", ("ann", "")),
        ("https://[::1]:8443/x", "https://[::1]:8443/x", None),
    ],
)
def test_a_network_address_is_split(
    typed: str, text: str, credentials: tuple[str, str] | None
) -> None:
    address, found = read_address(typed)
    assert (address.kind, address.text) == (SourceKind.NETWORK, text)
    assert found == (None if credentials is None else Credentials(*credentials))


@pytest.mark.parametrize(
    ("typed", "kind", "text"),
    [
        ("webcam", SourceKind.WEBCAM, "0"),
        ("webcam:2", SourceKind.WEBCAM, "2"),
        ("file:clip.mp4", SourceKind.FILE, "clip.mp4"),
        ("file:/a/clip.mp4", SourceKind.FILE, "/a/clip.mp4"),
        ("file:///a/clip.mp4", SourceKind.FILE, "/a/clip.mp4"),
        ("/a/12:30.mp4", SourceKind.FILE, "/a/12:30.mp4"),
        ("clip.mp4", SourceKind.FILE, "clip.mp4"),
    ],
)
def test_files_and_webcams(typed: str, kind: SourceKind, text: str) -> None:
    assert read_address(typed) == (SourceAddress(kind, text), None)


@pytest.mark.parametrize(
    "typed",
    ["", " ", "ftp://cam/a", "rtsp://", "rtsp:///path", "rtsp://cam:99999/a", "rtsp://ca m/a",
     "file:", "webcam:", "webcam:x", "concat:a|b", "rtsp://cam:0/a",
     "file:rtsp://ann:secret@cam/a"],
)  # fmt: skip
def test_what_is_no_address_is_refused_without_repeating_it(typed: str) -> None:
    with pytest.raises(InvalidInputError, match="must be an address like"):
        read_address(typed)


@given(username=TEXTS, password=st.text(st.characters(codec="utf-8", categories=("L", "N", "P"))))
def test_credentials_survive_the_address_that_ffmpeg_gets(username: str, password: str) -> None:
    address, _ = read_address("rtsp://cam:8554/path?x=1")
    whole = address.with_credentials(Credentials(username, password))
    parts = urlsplit(whole)
    assert (unquote(parts.username or ""), unquote(parts.password or "")) == (username, password)
    assert read_address(whole) == (address, Credentials(username, password))


def test_of_a_network_address_only_scheme_host_and_port_are_shown() -> None:
    address, _ = read_address("rtsp://ann:secret@cam:8554/user=admin_password=hunter2?pwd=hunter2")
    assert address.shown == "rtsp://cam:8554"
    assert "secret" not in repr(Credentials("ann", "secret"))
