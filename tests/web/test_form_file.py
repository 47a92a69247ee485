"""The file of a form: found whatever its bytes are, and no form breaks the reader."""

import asyncio

import aiohttp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.web.form_file import file_of_form


async def sent(form: aiohttp.FormData) -> tuple[bytes, str]:
    """Return the body and the Content-Type that a client sends."""
    payload = form()
    return await payload.as_bytes(), payload.headers["Content-Type"]


@given(st.binary(max_size=300), st.text(max_size=20))
@example(b"\r\n--", "")
@example(b"\r\n\r\n", "\r\n")
def test_the_file_is_found_between_fields(content: bytes, note: str) -> None:
    form = aiohttp.FormData()
    form.add_field("note", note)
    form.add_field("image", content, filename="a.jpg", content_type="image/jpeg")
    form.add_field("after", note)
    body, content_type = asyncio.run(sent(form))
    assert file_of_form(body, content_type) == content


@given(st.binary(max_size=200))
def test_no_body_breaks_the_reader(body: bytes) -> None:
    for start in (b"", b"--x\r\n", b"--x\r\nContent-Type: image/png\r\n\r\n"):
        try:
            found = file_of_form(start + body, "multipart/form-data; boundary=x")
        except InvalidInputError:
            continue
        assert bytes(found) in body


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"", "multipart/form-data", "needs a boundary"),
        (b"hello", "multipart/form-data; boundary=x", "the boundary of the Content-Type is not"),
        (b"--x\r\n", "multipart/form-data; boundary=x", "cut short"),
        (b"--x--\r\n", "multipart/form-data; boundary=x", "the form has 0 files"),
        (b"--x\r\n\r\n\r\n" * 100 + b"--x--", "multipart/form-data; boundary=x", "64 parts"),
    ],
)
def test_what_is_no_form_is_said(body: bytes, content_type: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        file_of_form(body, content_type)


async def test_two_files_are_one_too_many() -> None:
    form = aiohttp.FormData()
    for name in ("a.jpg", "b.jpg"):
        form.add_field("image", b"x", filename=name)
    with pytest.raises(InvalidInputError, match="the form has 2 files"):
        file_of_form(*await sent(form))


@pytest.mark.parametrize("name", ["a\0b''x", "punycode''%ff%fe", "idna''%ff", "utf-8''%ff"])
def test_a_file_may_have_a_name_in_any_encoding(name: str) -> None:
    head = f'Content-Disposition: form-data; name="image"; filename*={name}'
    body = f"--x\r\n{head}\r\n\r\npicture\r\n--x--".encode()
    assert bytes(file_of_form(body, "multipart/form-data; boundary=x")) == b"picture"


def test_a_header_that_the_library_cannot_read_is_said() -> None:
    head = f"Content-Disposition: form-data; filename*{'1' * 5_000}*=a"
    body = f"--x\r\n{head}\r\n\r\npicture\r\n--x--".encode()
    with pytest.raises(InvalidInputError, match="header that cannot be read"):
        file_of_form(body, "multipart/form-data; boundary=x")
